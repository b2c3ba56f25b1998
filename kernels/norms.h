// norms.h - rms norm and layer norm along the rows of a matrix, forward.
// Rows of up to BN columns stay in the tile (one read); longer ones are read again for each pass, from L2 when they
// fit.
#pragma once
#include "parts/shapes.h"

namespace tile::kernels {

struct NormConfig {
  int ROWS = 1;          ///< rows per program
  int BN = 1024;         ///< columns per block
  bool resident = true;  ///< BN >= columns: the row is read once
  int warps = 4;
};

namespace detail {

/// A row in blocks of BN columns, read once if it is resident, else at every pass.
template <class T>
class RowBlocks {
 public:
  RowBlocks(const NormConfig& c, const Tensor<const T, 2>& x, const Tile& row) : c_(c), x_(x), row_(row) {
    if (c.resident) whole_ = read(Tile(0));
  }
  /// Calls fn(first column, block as f32) for every block; columns past the end are 0.
  template <class Fn>
  void each(Fn fn) {
    if (c_.resident) return fn(Tile(0), whole_);
    for (auto n : range(0, x_.dim(1), c_.BN)) fn(n, read(n));
  }

 private:
  Tile read(const Tile& n) { return cast(x_.load({row_, n}, {c_.ROWS, c_.BN}), f32); }
  NormConfig c_;
  const Tensor<const T, 2>& x_;
  Tile row_, whole_;
};

}  // namespace detail

/// Y = X rstd * W with rstd = 1 / sqrt(mean(X^2) + eps) of each row (Zhang and Sennrich 2019). X, Y are [rows,
/// columns], W is [columns], RSTD is [rows] f32 (what a backward pass needs). Grid {ceil(rows / ROWS)}.
template <class T>
void rms_norm_program(const NormConfig& c, Tensor<const T, 2> X, Tensor<const T, 1> W, Tensor<T, 2> Y,
                      Tensor<float, 1> RSTD, F32 eps) {
  num_warps(c.warps);
  auto row = program_id(0) * c.ROWS;
  auto inverse_n = 1.f / cast(X.dim(1), f32);
  detail::RowBlocks<T> blocks(c, X, row);
  Tile squares = zeros({c.ROWS, c.BN}, f32);
  blocks.each([&](const Tile&, const Tile& x) { squares = fma(x, x, squares); });
  auto r = rsqrt(sum(squares, axis(1)) * inverse_n + eps);
  blocks.each([&](const Tile& n, const Tile& x) {
    auto w = cast(W.load({n}, {c.BN}), f32).row();
    Y.store({row, n}, cast(x * r * w, dtype_of<T>()));
  });
  RSTD.store({row}, reshape(r, {c.ROWS}));
}

/// Y = (X - mean) rstd * W + B with rstd = 1 / sqrt(mean((X - mean)^2) + eps) of each row (Ba et al. 2016); the
/// variance is taken around the mean, not as E[X^2] - mean^2, which cancels. MEAN and RSTD are [rows] f32.
template <class T>
void layer_norm_program(const NormConfig& c, Tensor<const T, 2> X, Tensor<const T, 1> W, Tensor<const T, 1> B,
                        Tensor<T, 2> Y, Tensor<float, 1> MEAN, Tensor<float, 1> RSTD, F32 eps) {
  num_warps(c.warps);
  auto row = program_id(0) * c.ROWS;
  auto columns = X.dim(1);
  auto inverse_n = 1.f / cast(columns, f32);
  detail::RowBlocks<T> blocks(c, X, row);
  Tile total = zeros({c.ROWS, c.BN}, f32), squares = zeros({c.ROWS, c.BN}, f32);
  blocks.each([&](const Tile&, const Tile& x) { total += x; });
  auto mean = sum(total, axis(1)) * inverse_n;
  blocks.each([&](const Tile& n, const Tile& x) {
    auto centred = where(n + arange(0, c.BN).row() < columns, x - mean, 0.f);  // padding is 0, not -mean
    squares = fma(centred, centred, squares);
  });
  auto r = rsqrt(sum(squares, axis(1)) * inverse_n + eps);
  blocks.each([&](const Tile& n, const Tile& x) {
    auto w = cast(W.load({n}, {c.BN}), f32).row(), b = cast(B.load({n}, {c.BN}), f32).row();
    Y.store({row, n}, cast(fma((x - mean) * r, w, b), dtype_of<T>()));
  });
  MEAN.store({row}, reshape(mean, {c.ROWS}));
  RSTD.store({row}, reshape(r, {c.ROWS}));
}

template <class T>
const auto& rms_norm_kernel() {
  static const auto k =
      kernel(typed_name("rms_norm", dtype_of<T>()), rms_norm_program<T>)
          .grid([](const NormConfig& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.ROWS)}; });
  return k;
}
template <class T>
const auto& layer_norm_kernel() {
  static const auto k =
      kernel(typed_name("layer_norm", dtype_of<T>()), layer_norm_program<T>)
          .grid([](const NormConfig& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.ROWS)}; });
  return k;
}

namespace detail {
inline NormConfig norm_config_by_size(int64_t columns, const Machine& machine) {
  if (!machine.gpu) {
    return columns <= 16384 ? NormConfig{1, block_of(columns), true, 1} : NormConfig{1, 4096, false, 1};
  }
  if (columns > 16384) return {1, 4096, false, 8};
  int width = std::max(power_of_two_above(columns), 32);
  return {std::max(1, 1024 / width), width, true, width <= 2048 ? 4 : width <= 8192 ? 8 : 16};
}
}  // namespace detail

inline TuningKey norm_tuning_key(int64_t columns) { return TuningKey().fact("N", columns); }
inline NormConfig default_norm_config(int64_t columns, const Machine& machine) {
  return tuned("norm", machine.model, norm_tuning_key(columns), detail::norm_config_by_size(columns, machine));
}
inline std::vector<NormConfig> norm_space(const NormConfig& base, int64_t columns, const Machine& machine) {
  Space<NormConfig> space(base);
  if (!machine.gpu) return space.vary(&NormConfig::ROWS, {1, 2, 4, 8});
  const int width = std::max(power_of_two_above(columns), 32);
  for (int rows : {1, 2, 4})
    for (int warps : {2, 4, 8, 16, 32}) {
      if (width <= 32768) space.also({rows, width, true, warps});
      if (width > 4096) space.also({rows, 4096, false, warps});
    }
  return space;
}

namespace detail {
inline ShapeCheck& check_norm(ShapeCheck& check, const NormConfig& c, std::array<int64_t, 2> x) {
  return check.require(x[1] > 0, "X has no columns")
      .require(!c.resident || c.BN >= x[1], "a resident row needs BN >= columns: BN = {}, {} columns", c.BN, x[1]);
}
}  // namespace detail

/// X, Y are [rows, columns], W is [columns], RSTD is [rows]; dtypes f16, bf16, f32.
template <class T>
Status rms_norm(StreamAt stream, Input<T, 2> X, Input<T, 1> W, TensorView<T, 2> Y, TensorView<float, 1> RSTD, float eps,
                const NormConfig& config) {
  ShapeCheck check("rms_norm");
  detail::check_norm(check, config, X.shape)
      .shape("W", W, {X.shape[1]}, "[columns]")
      .shape("Y", Y, {X.shape[0], X.shape[1]}, "that of X")
      .shape("RSTD", RSTD, {X.shape[0]}, "[rows]");
  if (!check.ok()) return stream.refuse(check.error());
  return rms_norm_kernel<T>().try_call(stream, config, X, W, Y, RSTD, eps);
}
template <class T>
Status rms_norm(StreamAt stream, Input<T, 2> X, Input<T, 1> W, TensorView<T, 2> Y, TensorView<float, 1> RSTD,
                float eps = 1e-6f) {
  return rms_norm<T>(stream, X, W, Y, RSTD, eps, default_norm_config(X.shape[1], Machine::of(stream)));
}

/// X, Y are [rows, columns], W, B are [columns], MEAN, RSTD are [rows]; dtypes f16, bf16, f32.
template <class T>
Status layer_norm(StreamAt stream, Input<T, 2> X, Input<T, 1> W, Input<T, 1> B, TensorView<T, 2> Y,
                  TensorView<float, 1> MEAN, TensorView<float, 1> RSTD, float eps, const NormConfig& config) {
  ShapeCheck check("layer_norm");
  detail::check_norm(check, config, X.shape)
      .shape("W", W, {X.shape[1]}, "[columns]")
      .shape("B", B, {X.shape[1]}, "[columns]")
      .shape("Y", Y, {X.shape[0], X.shape[1]}, "that of X")
      .shape("MEAN", MEAN, {X.shape[0]}, "[rows]")
      .shape("RSTD", RSTD, {X.shape[0]}, "[rows]");
  if (!check.ok()) return stream.refuse(check.error());
  return layer_norm_kernel<T>().try_call(stream, config, X, W, B, Y, MEAN, RSTD, eps);
}
template <class T>
Status layer_norm(StreamAt stream, Input<T, 2> X, Input<T, 1> W, Input<T, 1> B, TensorView<T, 2> Y,
                  TensorView<float, 1> MEAN, TensorView<float, 1> RSTD, float eps = 1e-5f) {
  return layer_norm<T>(stream, X, W, B, Y, MEAN, RSTD, eps, default_norm_config(X.shape[1], Machine::of(stream)));
}

}  // namespace tile::kernels
