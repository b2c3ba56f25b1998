// cross_entropy.h - softmax cross entropy of rows of logits against one label each, forward and backward, for
// vocabularies of any size: logits are read once forward, once backward, and no probabilities are stored.
#pragma once
#include <limits>

#include "parts/shapes.h"

namespace tile::kernels {

struct CrossEntropyConfig {
  int BLOCK = 4096;  ///< columns at a time, a multiple of SUM
  int SUM = 8;       ///< columns that share a running maximum and sum
  int warps = 8;
};

/// LOSS_i = LSE_i - X[i, LABEL_i] with LSE_i = log(sum_j e^X[i, j]); 0 where LABEL_i == ignore. X is [rows, classes],
/// LABEL [rows] (other labels outside [0, classes) give a loss of LSE_i), LOSS and LSE [rows] f32. One pass (Milakov
/// and Gimelshein 2018): a running maximum and sum for every SUM columns of a block, combined behind the loop. Grid
/// {rows}.
template <class T>
void cross_entropy_program(const CrossEntropyConfig& c, Tensor<const T, 2> X, Tensor<const int64_t, 1> LABEL,
                           Tensor<float, 1> LOSS, Tensor<float, 1> LSE, I64 ignore) {
  constexpr float kLog2e = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
  static_check(c.SUM > 0 && c.BLOCK % c.SUM == 0, "BLOCK must be a multiple of SUM");
  num_warps(c.warps);
  auto row = program_id(0);
  // Finite, so that columns of -inf and those past the end add 0 without a special case.
  const int sums = c.BLOCK / c.SUM;
  Tile m = full({sums, 1}, std::numeric_limits<float>::lowest(), f32), s = zeros({sums, 1}, f32);
  for (auto n : range(0, X.dim(1), c.BLOCK)) {
    auto x = reshape(cast(X.load({row, n}, {c.BLOCK}, {.pad = -std::numeric_limits<double>::infinity()}), f32),
                     {sums, c.SUM});
    auto highest = max(m, max(x, axis(1)));
    s = fma(s, exp2((m - highest) * kLog2e), sum(exp2((x - highest) * kLog2e), axis(1)));
    m = highest;
  }
  auto highest = max(m);
  auto lse = fma(log2(sum(s * exp2((m - highest) * kLog2e))), kLn2, highest);
  auto label = LABEL.load({row});
  LSE.store({row}, lse);
  LOSS.store({row}, where(label == ignore, 0.f, lse - cast(X.load({row, label}), f32)));
}

/// DX[i, j] = (e^(X[i, j] - LSE_i) - [j == LABEL_i]) DLOSS_i, 0 where LABEL_i == ignore: the gradient of LOSS. Shapes
/// as forward, DLOSS [rows] f32. Grid {rows, ceil(classes / BLOCK)}.
template <class T>
void cross_entropy_backward_program(const CrossEntropyConfig& c, Tensor<const T, 2> X, Tensor<const int64_t, 1> LABEL,
                                    Tensor<const float, 1> LSE, Tensor<const float, 1> DLOSS, Tensor<T, 2> DX,
                                    I64 ignore) {
  constexpr float kLog2e = 1.4426950408889634f;
  num_warps(c.warps);
  auto row = program_id(0), n = program_id(1) * c.BLOCK;
  auto label = LABEL.load({row});
  auto scale = where(label == ignore, 0.f, DLOSS.load({row}));
  auto p = exp2((cast(X.load({row, n}, {c.BLOCK}), f32) - LSE.load({row})) * kLog2e);
  auto hit = n + arange(0, c.BLOCK) == label;
  DX.store({row, n}, cast(where(hit, p - 1.f, p) * scale, dtype_of<T>()));
}

template <class T>
const auto& cross_entropy_kernel() {
  static const auto k =
      kernel(typed_name("cross_entropy", dtype_of<T>()), cross_entropy_program<T>)
          .grid([](const CrossEntropyConfig&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
  return k;
}
template <class T>
const auto& cross_entropy_backward_kernel() {
  static const auto k = kernel(typed_name("cross_entropy_backward", dtype_of<T>()), cross_entropy_backward_program<T>)
                            .grid([](const CrossEntropyConfig& c, const auto& x, const auto&...) {
                              return Grid{x.shape[0], cdiv(x.shape[1], c.BLOCK)};
                            });
  return k;
}

inline CrossEntropyConfig default_cross_entropy_config(int64_t classes, const Machine& machine) {
  // A thread of a GPU holds 8 columns next to each other; hosts compute a sum in whole vectors, and few of them.
  if (!machine.gpu) {
    const int sum = classes < 1024 ? 8 : 64;
    return {std::min(4096, round_up(classes, sum)), sum, 1};
  }
  if (classes <= 1024) return {std::max(256, power_of_two_above(classes)), 8, 4};
  return {4096, 8, 8};
}

/// X is [rows, classes], dtypes f16, bf16, f32; LABEL, LOSS, LSE are [rows].
template <class T>
Status cross_entropy(StreamAt stream, TensorView<const T, 2> X, TensorView<const int64_t, 1> LABEL,
                     TensorView<float, 1> LOSS, TensorView<float, 1> LSE, int64_t ignore,
                     const CrossEntropyConfig& config) {
  ShapeCheck check("cross_entropy");
  check.require(X.shape[1] > 0, "X has no classes")
      .shape("LABEL", LABEL, {X.shape[0]}, "[rows]")
      .shape("LOSS", LOSS, {X.shape[0]}, "[rows]")
      .shape("LSE", LSE, {X.shape[0]}, "[rows]");
  if (!check.ok()) return stream.refuse(check.error());
  return cross_entropy_kernel<T>().try_call(stream, config, X, LABEL, LOSS, LSE, ignore);
}
template <class T>
Status cross_entropy(StreamAt stream, TensorView<const T, 2> X, TensorView<const int64_t, 1> LABEL,
                     TensorView<float, 1> LOSS, TensorView<float, 1> LSE, int64_t ignore = -100) {
  return cross_entropy<T>(stream, X, LABEL, LOSS, LSE, ignore,
                          default_cross_entropy_config(X.shape[1], Machine::of(stream)));
}
template <class T>
requires(!std::is_const_v<T>) Status
    cross_entropy(StreamAt stream, TensorView<T, 2> X, TensorView<const int64_t, 1> LABEL, TensorView<float, 1> LOSS,
                  TensorView<float, 1> LSE, int64_t ignore = -100) {
  return cross_entropy<T>(stream, TensorView<const T, 2>(X), LABEL, LOSS, LSE, ignore);
}

/// The gradient of cross_entropy; DX is [rows, classes], DLOSS is [rows].
template <class T>
Status cross_entropy_backward(StreamAt stream, Input<T, 2> X, TensorView<const int64_t, 1> LABEL,
                              TensorView<const float, 1> LSE, TensorView<const float, 1> DLOSS, TensorView<T, 2> DX,
                              int64_t ignore, const CrossEntropyConfig& config) {
  ShapeCheck check("cross_entropy_backward");
  check.shape("LABEL", LABEL, {X.shape[0]}, "[rows]")
      .shape("LSE", LSE, {X.shape[0]}, "[rows]")
      .shape("DLOSS", DLOSS, {X.shape[0]}, "[rows]")
      .shape("DX", DX, {X.shape[0], X.shape[1]}, "that of X");
  if (!check.ok()) return stream.refuse(check.error());
  return cross_entropy_backward_kernel<T>().try_call(stream, config, X, LABEL, LSE, DLOSS, DX, ignore);
}
template <class T>
Status cross_entropy_backward(StreamAt stream, Input<T, 2> X, TensorView<const int64_t, 1> LABEL,
                              TensorView<const float, 1> LSE, TensorView<const float, 1> DLOSS, TensorView<T, 2> DX,
                              int64_t ignore = -100) {
  return cross_entropy_backward<T>(stream, X, LABEL, LSE, DLOSS, DX, ignore,
                                   default_cross_entropy_config(X.shape[1], Machine::of(stream)));
}

}  // namespace tile::kernels
