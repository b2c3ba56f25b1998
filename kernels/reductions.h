// reductions.h - one number from every row of a matrix: sum, mean, max, min, prod, argmax, argmin.
#pragma once
#include "parts/shapes.h"

namespace tile::kernels {

enum class RowReduction { sum, mean, max, min, prod, argmax, argmin };

struct RowReductionConfig {
  RowReduction op = RowReduction::sum;
  int ROWS = 1;   ///< rows per program
  int BN = 1024;  ///< columns per block
  int warps = 4;
};

/// Y[r] = op over X[r, :]; X is [rows, columns] with columns > 0, Y is [rows]. Floats reduce in f32. Grid {ceil(rows /
/// ROWS)}. Lanes of the block tile accumulate on their own; only the last step combines across lanes.
template <class T>
void row_reduction_program(const RowReductionConfig& c, Tensor<const T, 2> X, Tensor<T, 1> Y) {
  num_warps(c.warps);
  auto row = program_id(0) * c.ROWS;
  auto columns = X.dim(1);
  const float identity = c.op == RowReduction::max    ? -INFINITY
                         : c.op == RowReduction::min  ? INFINITY
                         : c.op == RowReduction::prod ? 1.f
                                                      : 0.f;
  Tile acc = full({c.ROWS, c.BN}, identity, f32);
  for (auto n : range(0, columns, c.BN)) {
    auto x = cast(X.load({row, n}, {c.ROWS, c.BN}, {.pad = identity}), f32);
    switch (c.op) {
      case RowReduction::max:
        acc = max(acc, x);
        break;
      case RowReduction::min:
        acc = min(acc, x);
        break;
      case RowReduction::prod:
        acc = acc * x;
        break;
      default:
        acc = acc + x;
    }
  }
  Tile y;
  switch (c.op) {
    case RowReduction::max:
      y = max(acc, axis(1));
      break;
    case RowReduction::min:
      y = min(acc, axis(1));
      break;
    case RowReduction::prod:
      y = prod(acc, axis(1));
      break;
    case RowReduction::mean:
      y = sum(acc, axis(1)) / cast(columns, f32);
      break;
    default:
      y = sum(acc, axis(1));
  }
  Y.store({row}, cast(reshape(y, {c.ROWS}), dtype_of<T>()));
}

/// Y[r] = first column of X[r, :] that holds the row's largest (argmax) or smallest (argmin) value.
template <class T>
void row_arg_program(const RowReductionConfig& c, Tensor<const T, 2> X, Tensor<int32_t, 1> Y) {
  num_warps(c.warps);
  auto row = program_id(0) * c.ROWS;
  const bool largest = c.op == RowReduction::argmax;
  Tile best = full({c.ROWS, c.BN}, largest ? -INFINITY : INFINITY, f32), where_best = zeros({c.ROWS, c.BN}, i32);
  for (auto n : range(0, X.dim(1), c.BN)) {
    auto x = cast(X.load({row, n}, {c.ROWS, c.BN}, {.pad = largest ? -INFINITY : INFINITY}), f32);
    auto better = largest ? x > best : x < best;  // strict: an equal value further right does not replace the first
    where_best = where(better, n + arange(0, c.BN).row(), where_best);
    best = where(better, x, best);
  }
  // Every lane holds the first best of its own columns; across lanes the better value wins, then the lower column.
  auto [value, column] = reduce({best, where_best}, axis(1), [&](Tile v1, Tile i1, Tile v2, Tile i2) {
    auto first = largest ? (v1 > v2) | ((v1 == v2) & (i1 < i2)) : (v1 < v2) | ((v1 == v2) & (i1 < i2));
    return std::tuple{where(first, v1, v2), where(first, i1, i2)};
  });
  Y.store({row}, reshape(column, {c.ROWS}));
}

template <class T>
const auto& row_reduction_kernel() {
  static const auto k =
      kernel(typed_name("row_reduction", dtype_of<T>()), row_reduction_program<T>)
          .grid([](const RowReductionConfig& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[0], c.ROWS)}; });
  return k;
}
template <class T>
const auto& row_arg_kernel() {
  static const auto k =
      kernel(typed_name("row_arg", dtype_of<T>()), row_arg_program<T>)
          .grid([](const RowReductionConfig& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[0], c.ROWS)}; });
  return k;
}

namespace detail {
inline RowReductionConfig row_reduction_config_by_size(RowReduction op, int64_t columns, const Machine& machine) {
  if (!machine.gpu) {  // the values and columns so far of the best, and a block of the row, share the first cache
    const int64_t most = op == RowReduction::argmax || op == RowReduction::argmin ? 512 : 1024;
    return {op, 1, static_cast<int>(std::min<int64_t>(round_up(columns, 16), most)), 1};
  }
  int width = static_cast<int>(std::min<int64_t>(std::max(power_of_two_above(columns), 32), 4096));
  return {op, std::max(1, 1024 / width), width, width <= 1024 ? 4 : 8};
}
}  // namespace detail

inline TuningKey row_reduction_tuning_key(RowReduction op, int64_t columns) {
  return TuningKey().fact("op", static_cast<int64_t>(op)).fact("N", columns);
}
inline RowReductionConfig default_row_reduction_config(RowReduction op, int64_t columns, const Machine& machine) {
  return tuned("row_reduction", machine.model, row_reduction_tuning_key(op, columns),
               detail::row_reduction_config_by_size(op, columns, machine));
}
inline std::vector<RowReductionConfig> row_reduction_space(const RowReductionConfig& base, const Machine& machine) {
  Space<RowReductionConfig> space(base);
  space.vary(&RowReductionConfig::ROWS, {1, 2, 4}).vary(&RowReductionConfig::BN, {256, 1024, 4096, 8192});
  if (machine.gpu) space.vary(&RowReductionConfig::warps, {2, 4, 8, 16});
  return space;
}

namespace detail {
inline Status check_row_reduction(const RowReductionConfig& c, bool index, std::array<int64_t, 2> x,
                                  std::array<int64_t, 1> y) {
  bool wants_index = c.op == RowReduction::argmax || c.op == RowReduction::argmin;
  ShapeCheck check("row_reduction");
  check.require(y[0] == x[0], "Y must have shape [rows] = [{}], found [{}]", x[0], y[0])
      .require(x[1] > 0, "X has no columns, the reduction of nothing is not defined")
      .require(wants_index == index, "{}",
               wants_index ? "argmax and argmin need an i32 output" : "only argmax and argmin give an i32 output");
  return check.ok() ? Status(Ok{}) : Status(check.error());
}
}  // namespace detail

/// Y[r] = op of X[r, :]; X is [rows, columns], Y is [rows]; dtypes f16, bf16, f32. NaNs propagate through sum, mean and
/// prod; max and min pass over them.
template <class T>
Status reduce_rows(StreamAt stream, Input<T, 2> X, TensorView<T, 1> Y, const RowReductionConfig& config) {
  if (Status s = detail::check_row_reduction(config, false, X.shape, Y.shape); !s) return stream.refuse(s.error());
  return row_reduction_kernel<T>().try_call(stream, config, X, Y);
}
/// The same for argmax and argmin: Y is i32.
template <class T>
Status arg_rows(StreamAt stream, TensorView<const T, 2> X, TensorView<int32_t, 1> Y, const RowReductionConfig& config) {
  if (Status s = detail::check_row_reduction(config, true, X.shape, Y.shape); !s) return stream.refuse(s.error());
  return row_arg_kernel<T>().try_call(stream, config, X, Y);
}
template <class T>
requires(!std::is_const_v<T>) Status
    arg_rows(StreamAt stream, TensorView<T, 2> X, TensorView<int32_t, 1> Y, const RowReductionConfig& config) {
  return arg_rows<T>(stream, TensorView<const T, 2>(X), Y, config);
}

}  // namespace tile::kernels
