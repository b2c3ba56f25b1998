// softmax.h - softmax along the rows of a matrix, in the forms that differ by how often they touch memory.
//
//   form     loads + stores per element   numerically safe
//   naive    2 + 1                        no: overflows where x > 88 (f32)
//   safe     3 + 1                        yes: subtracts the row maximum, found in a pass of its own
//   online   2 + 1                        yes: maximum and sum in one pass (Milakov and Gimelshein 2018)
//   pairs    1 + 1                        yes: the row is one tile; (maximum, sum) pairs reduced as a tree
//   resident 1 + 1                        yes: the row is one tile; maximum, then sum. The fastest
//
// The first three walk the row in blocks of BN columns and take rows of any length; the last two need BN >= columns.
// All compute in f32. A row of only -inf gives NaN (0/0), as the formula does.
#pragma once
#include "parts/online_softmax.h"
#include "parts/shapes.h"

namespace tile::kernels {

enum class SoftmaxForm { naive, safe, online, pairs, resident };

struct SoftmaxConfig {
  SoftmaxForm form = SoftmaxForm::resident;
  int ROWS = 1;   ///< rows per program
  int BN = 1024;  ///< columns per block
  int warps = 4;
};

namespace detail {

inline Tile exp_of(const Tile& x) { return exp2(x * kLog2E); }

/// e^{x - m}, where x = m = -inf (nothing but -inf so far) counts as e^{-inf} = 0.
inline Tile exp_below(const Tile& x, const Tile& m) { return exp_of(x - where(m == -INFINITY, 0.f, m)); }

}  // namespace detail

/// Y = softmax(X) row by row; X and Y are [rows, columns]. Grid {ceil(rows / ROWS)}.
template <class T>
void softmax_program(const SoftmaxConfig& c, Tensor<const T, 2> X, Tensor<T, 2> Y) {
  num_warps(c.warps);
  auto row = program_id(0) * c.ROWS;
  auto columns = X.dim(1);
  // Columns past the end read as -inf: they add e^{-inf} = 0 to sums and never are a maximum.
  auto block = [&](const Tile& column) { return cast(X.load({row, column}, {c.ROWS, c.BN}, {.pad = -INFINITY}), f32); };
  auto put = [&](const Tile& column, const Tile& y) { Y.store({row, column}, cast(y, dtype_of<T>())); };
  Tile m = full({c.ROWS, 1}, -INFINITY, f32), d = zeros({c.ROWS, 1}, f32);

  switch (c.form) {
    case SoftmaxForm::naive:
      for (auto n : range(0, columns, c.BN)) d += sum(detail::exp_of(block(n)), axis(1));
      for (auto n : range(0, columns, c.BN)) put(n, detail::exp_of(block(n)) / d);
      break;
    case SoftmaxForm::safe:
      for (auto n : range(0, columns, c.BN)) m = max(m, max(block(n), axis(1)));
      for (auto n : range(0, columns, c.BN)) d += sum(detail::exp_below(block(n), m), axis(1));
      for (auto n : range(0, columns, c.BN)) put(n, detail::exp_below(block(n), m) / d);
      break;
    case SoftmaxForm::online:
      for (auto n : range(0, columns, c.BN)) {
        auto x = block(n);
        auto m_next = max(m, max(x, axis(1)));
        d = d * detail::exp_below(m, m_next) + sum(detail::exp_below(x, m_next), axis(1));
        m = m_next;
      }
      for (auto n : range(0, columns, c.BN)) put(n, detail::exp_below(block(n), m) / d);
      break;
    case SoftmaxForm::pairs: {
      auto x = block(0);
      // Every element is the pair (x, 1) of a row of one element.
      auto [top, total] = reduce({x, full({c.ROWS, c.BN}, 1.f, f32)}, axis(1), [](Tile m1, Tile d1, Tile m2, Tile d2) {
        SoftmaxPair both = combine({m1, d1}, {m2, d2});
        return std::tuple{both.m, both.d};
      });
      put(0, detail::exp_below(x, top) / total);
      break;
    }
    case SoftmaxForm::resident: {
      auto x = block(0);
      auto e = detail::exp_of(x - max(x, axis(1)));
      put(0, e / sum(e, axis(1)));
      break;
    }
  }
}

template <class T>
const auto& softmax_kernel() {
  static const auto k =
      kernel(typed_name("softmax", dtype_of<T>()), softmax_program<T>)
          .grid([](const SoftmaxConfig& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[0], c.ROWS)}; });
  return k;
}

namespace detail {
inline SoftmaxConfig softmax_config_by_size(int64_t columns, const Machine& machine) {
  if (!machine.gpu) {
    return columns <= 65536 ? SoftmaxConfig{SoftmaxForm::resident, 1, block_of(columns), 1}
                            : SoftmaxConfig{SoftmaxForm::online, 1, 4096, 1};
  }
  if (columns > 32768) return {SoftmaxForm::online, 1, 8192, 8};
  int width = std::max(power_of_two_above(columns), 32);
  return {SoftmaxForm::resident, std::max(1, 1024 / width), width, width <= 2048 ? 4 : width <= 8192 ? 8 : 16};
}
}  // namespace detail

/// The row in registers while it fits, else two passes. A tuned width is one of its own number of columns.
inline TuningKey softmax_tuning_key(int64_t columns) { return TuningKey().fact("N", columns); }
inline SoftmaxConfig default_softmax_config(int64_t columns, const Machine& machine) {
  return tuned("softmax", machine.model, softmax_tuning_key(columns), detail::softmax_config_by_size(columns, machine));
}
inline std::vector<SoftmaxConfig> softmax_space(const SoftmaxConfig& base, int64_t columns, const Machine& machine) {
  Space<SoftmaxConfig> space(base);
  if (!machine.gpu) return space.vary(&SoftmaxConfig::ROWS, {1, 2, 4, 8});
  const int width = std::max(power_of_two_above(columns), 32);
  for (int rows : {1, 2, 4})
    for (int warps : {2, 4, 8, 16, 32}) {
      if (width <= 32768) space.also({SoftmaxForm::resident, rows, width, warps});
      for (int block : {2048, 4096, 8192})
        if (block < width) space.also({SoftmaxForm::online, rows, block, warps});
    }
  return space;
}

/// Y = softmax(X) along the rows, [rows, columns]; dtypes f16, bf16, f32.
template <class T>
Status softmax_rows(StreamAt stream, Input<T, 2> X, TensorView<T, 2> Y, const SoftmaxConfig& config) {
  ShapeCheck check("softmax");
  bool whole_row = config.form == SoftmaxForm::pairs || config.form == SoftmaxForm::resident;
  check.shape("Y", Y, {X.shape[0], X.shape[1]}, "that of X")
      .require(!whole_row || config.BN >= X.shape[1],
               "the pairs and resident forms hold a row in one tile: BN = {} is less than the {} columns", config.BN,
               X.shape[1]);
  if (!check.ok()) return stream.refuse(check.error());
  return softmax_kernel<T>().try_call(stream, config, X, Y);
}
template <class T>
Status softmax_rows(StreamAt stream, Input<T, 2> X, TensorView<T, 2> Y) {
  return softmax_rows<T>(stream, X, Y, default_softmax_config(X.shape[1], Machine::of(stream)));
}

}  // namespace tile::kernels
