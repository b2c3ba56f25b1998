// convolution.h - 2-D convolution as a product without the matrix of patches (implicit GEMM): rows are output pixels,
// columns output channels, the inner dim walks over the taps of the filter and blocks of input channels.
#pragma once
#include "kernels/parts/shapes.h"

namespace tile::kernels {

struct ConvolutionConfig {
  int BM = 128, BN = 128, BK = 64;  ///< pixels, output channels, input channels
  int stages = 3;
  int warps = 4;
  int stride = 1, pad = 0, dilation = 1;
  bool producer = false;  ///< warps of their own gather pixels (GPUs with bulk tensor copies)
};

/// Y[n, p, q, k] = sum_{r, s, c} X[n, p stride - pad + r dilation, q stride - pad + s dilation, c] F[r, s, c, k],
/// pixels outside X counting as 0. X is [N, H, W, C], F is [R, S, C, K], Y is [N, P, Q, K]; sums in f32. Grid {ceil(N P
/// Q / BM), ceil(K / BN)}.
template <class T>
void convolution_program(const ConvolutionConfig& c, Tensor<const T, 4> X, Tensor<const T, 4> F, Tensor<T, 4> Y) {
  num_warps(c.warps);
  auto P = Y.dim(1), Q = Y.dim(2), H = X.dim(1), W = X.dim(2), channels = X.dim(3);
  auto pixel = program_id(0) * c.BM + arange(0, c.BM);
  auto image = pixel / (P * Q), p = pixel / Q % P, q = pixel % Q;
  auto k = program_id(1) * c.BN;
  auto blocks = cdiv(channels, c.BK), S = F.dim(1);
  auto first = cast(image, i64) * X.stride(0);
  Tile acc = zeros({c.BM, c.BN}, f32);
  const Choice specialize = c.producer ? Choice::always : Choice::automatic;
  for (auto i : range(0, F.dim(0) * S * blocks, {.stages = c.stages, .specialize = specialize})) {
    auto tap = i / blocks, r = tap / S, s = tap % S;
    auto h = p * c.stride - c.pad + r * c.dilation, w = q * c.stride - c.pad + s * c.dilation;
    auto inside = (h >= 0) & (h < H) & (w >= 0) & (w < W) & (image < X.dim(0));
    auto at = first + cast(h, i64) * X.stride(1) + cast(w, i64) * X.stride(2);
    auto channel = i % blocks * c.BK + arange(0, c.BK);
    auto x = load(X.ptr() + at.col() + (cast(channel, i64) * X.stride(3)).row(),
                  {.mask = inside.col() & (channel < channels).row()});
    acc = dot(x, F.load({r, s, i % blocks * c.BK, k}, {c.BK, c.BN}), acc);
  }
  auto at = cast(image, i64) * Y.stride(0) + cast(p, i64) * Y.stride(1) + cast(q, i64) * Y.stride(2);
  auto columns = k + arange(0, c.BN);
  store(Y.ptr() + at.col() + (cast(columns, i64) * Y.stride(3)).row(), cast(acc, dtype_of<T>()),
        {.mask = (image < X.dim(0)).col() & (columns < Y.dim(3)).row()});
}

template <class T>
const auto& convolution_kernel() {
  static const auto k = kernel(typed_name("convolution", dtype_of<T>()), convolution_program<T>)
                            .grid([](const ConvolutionConfig& c, const auto&, const auto&, const auto& y) {
                              return Grid{cdiv(y.shape[0] * y.shape[1] * y.shape[2], c.BM), cdiv(y.shape[3], c.BN)};
                            });
  return k;
}

inline ConvolutionConfig default_convolution_config(int64_t channels, int64_t filters, const Machine& machine) {
  ConvolutionConfig c;
  if (!machine.gpu) c.stages = 1, c.warps = 1;
  if (filters <= 64) c.BN = 64;
  if (channels <= 32) c.BK = 32;
  if (channels <= 16) c.BK = 16;
  return c;
}

/// dtypes f16, bf16; strides of X, F, Y are free.
template <class T>
Status convolution(Stream& stream, Input<T, 4> X, Input<T, 4> F, TensorView<T, 4> Y, const ConvolutionConfig& c) {
  ShapeCheck check("convolution");
  check.require(c.stride > 0 && c.dilation > 0 && c.pad >= 0, "stride and dilation must be positive, pad not negative");
  if (!check.ok()) return check.error();
  auto outputs = [&](int64_t size, int64_t taps) {
    return std::max<int64_t>(0, (size + 2 * c.pad - c.dilation * (taps - 1) - 1) / c.stride + 1);
  };
  check.shape("F", F, {-1, -1, X.shape[3], Y.shape[3]}, "[R, S, C, K]")
      .shape("Y", Y, {X.shape[0], outputs(X.shape[1], F.shape[0]), outputs(X.shape[2], F.shape[1]), F.shape[3]},
             "[N, P, Q, K]");
  if (!check.ok()) return check.error();
  return convolution_kernel<T>().try_call(stream, c, X, F, Y);
}
template <class T>
Status convolution(Stream& stream, Input<T, 4> X, Input<T, 4> F, TensorView<T, 4> Y, int stride = 1, int pad = 0,
                   int dilation = 1) {
  ConvolutionConfig c = default_convolution_config(X.shape[3], F.shape[3], Machine::of(stream));
  c.stride = stride, c.pad = pad, c.dilation = dilation;
  return convolution<T>(stream, X, F, Y, c);
}

}  // namespace tile::kernels
