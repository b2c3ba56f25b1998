// convolution.h - 2-D convolution as a product without the matrix of patches (implicit GEMM): rows are output pixels,
// columns output channels, the inner dim walks over the taps of the filter and blocks of input channels. The pixels of
// a tile are a patch of images (a box of X for every tap, which copy engines take), or any that follow one another (a
// gather).
#pragma once
#include <tuple>

#include "parts/shapes.h"

namespace tile::kernels {

struct ConvolutionConfig {
  int BM = 128, BN = 128, BK = 64;  ///< pixels, output channels, input channels
  int stages = 3;
  int warps = 4;
  int stride = 1, pad = 0, dilation = 1;
  int PN = 0, PH = 0, PW = 0;  ///< a patch's images, rows and columns: BM pixels, stride 1. 0: pixels are gathered
  bool producer = false;  ///< gathered by warps of their own (GPUs with bulk tensor copies): one program per
                          ///< multiprocessor instead of two, and no copies between products
};

/// The tile (m, n) of the product as patches of pixels.
template <class T>
void convolve_patches(const ConvolutionConfig& c, const Tensor<const T, 4>& X, const Tensor<const T, 4>& F,
                      const Tensor<T, 4>& Y) {
  static_check(c.PN * c.PH * c.PW == c.BM && c.stride == 1, "a patch has BM pixels, of a convolution of stride 1");
  auto down = cdiv(Y.dim(1), c.PH), across = cdiv(Y.dim(2), c.PW);
  auto n = program_id(0) / (down * across) * c.PN;
  auto p = program_id(0) / across % down * c.PH, q = program_id(0) % across * c.PW, k = program_id(1) * c.BN;
  auto blocks = cdiv(X.dim(3), c.BK), S = F.dim(1);
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto i : range(0, F.dim(0) * S * blocks, {.stages = c.stages})) {
    auto tap = i / blocks, r = tap / S, s = tap % S, channel = i % blocks * c.BK;
    auto x = X.load({n, p - c.pad + r * c.dilation, q - c.pad + s * c.dilation, channel}, {c.PN, c.PH, c.PW, c.BK});
    acc = dot(reshape(x, {c.BM, c.BK}), F.load({r, s, channel, k}, {c.BK, c.BN}), acc);
  }
  Y.store({n, p, q, k}, reshape(cast(acc, dtype_of<T>()), {c.PN, c.PH, c.PW, c.BN}));
}

/// Y[n, p, q, k] = sum_{r, s, c} X[n, p stride - pad + r dilation, q stride - pad + s dilation, c] F[r, s, c, k],
/// pixels outside X counting as 0. X is [N, H, W, C], F is [R, S, C, K], Y is [N, P, Q, K]; sums in f32. Grid {ceil(N P
/// Q / BM), ceil(K / BN)}, of patches {ceil(N / PN) ceil(P / PH) ceil(Q / PW), ceil(K / BN)}.
template <class T>
void convolution_program(const ConvolutionConfig& c, Tensor<const T, 4> X, Tensor<const T, 4> F, Tensor<T, 4> Y) {
  num_warps(c.warps);
  if (c.PN) return convolve_patches(c, X, F, Y);
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
  static const auto k =
      kernel(typed_name("convolution", dtype_of<T>()), convolution_program<T>)
          .grid([](const ConvolutionConfig& c, const auto&, const auto&, const auto& y) {
            const int64_t columns = cdiv(y.shape[3], c.BN);
            if (c.PN) return Grid{cdiv(y.shape[0], c.PN) * cdiv(y.shape[1], c.PH) * cdiv(y.shape[2], c.PW), columns};
            return Grid{cdiv(y.shape[0] * y.shape[1] * y.shape[2], c.BM), columns};
          });
  return k;
}

/// What a default configuration depends on.
struct ConvolutionSizes {
  int64_t images, p, q, channels, filters;  ///< N, P, Q, C, K
  int stride = 1;
  bool aligned = true;  ///< addresses and strides of X, F, Y are multiples of 16 bytes
};

namespace detail {
/// The patch of c.BM pixels, sides powers of two, that leaves the fewest outside of [N, P, Q]; of equals the one with
/// the fewest images, then the squarest: neighbours' taps are the same pixels.
inline void choose_patch(ConvolutionConfig& c, const ConvolutionSizes& s) {
  auto padded = [](int64_t size, int side) { return cdiv(size, side) * side; };
  auto cost = [&](int n, int h, int w) {
    return std::tuple(padded(s.images, n) * padded(s.p, h) * padded(s.q, w), n, std::max(h, w));
  };
  c.PN = c.BM, c.PH = c.PW = 1;
  for (int h = 1; h <= c.BM; h *= 2)
    for (int w = 1; h * w <= c.BM; w *= 2)
      if (cost(c.BM / (h * w), h, w) < cost(c.PN, c.PH, c.PW)) c.PN = c.BM / (h * w), c.PH = h, c.PW = w;
}
}  // namespace detail

inline ConvolutionConfig default_convolution_config(const ConvolutionSizes& s, const Machine& machine) {
  ConvolutionConfig c;
  if (!machine.gpu) c.stages = 1, c.warps = 1;
  if (s.filters <= 64) c.BN = 64;
  if (s.channels <= 32) c.BK = 32;
  if (s.channels <= 16) c.BK = 16;
  c.stride = s.stride;
  if (!machine.warpgroups || s.stride != 1 || !s.aligned || s.channels % 8 != 0 || s.filters % 8 != 0) return c;
  // Two warpgroups, 128 accumulators in each thread, as the product of matrices has them.
  c.warps = 8, c.stages = 4;
  const int64_t pixels = s.images * s.p * s.q;
  if (s.filters > 128)
    c.BN = 256;
  else if (2 * cdiv(pixels, 256) >= machine.multiprocessors)
    c.BM = 256;
  if (cdiv(pixels, c.BM) * cdiv(s.filters, c.BN) < machine.multiprocessors / 2 && c.BN == 256) c.BN = 128;
  detail::choose_patch(c, s);
  return c;
}

/// dtypes f16, bf16; strides of X, F, Y are free.
template <class T>
Status convolution(StreamAt stream, Input<T, 4> X, Input<T, 4> F, TensorView<T, 4> Y, const ConvolutionConfig& c) {
  ShapeCheck check("convolution");
  check.require(c.stride > 0 && c.dilation > 0 && c.pad >= 0, "stride and dilation must be positive, pad not negative")
      .require(!c.PN || (c.PN * c.PH * c.PW == c.BM && c.stride == 1),
               "a patch of {} x {} x {} pixels must have BM = {} of them, and stride 1", c.PN, c.PH, c.PW, c.BM);
  if (!check.ok()) return stream.refuse(check.error());
  auto outputs = [&](int64_t size, int64_t taps) {
    return std::max<int64_t>(0, (size + 2 * c.pad - c.dilation * (taps - 1) - 1) / c.stride + 1);
  };
  check.shape("F", F, {-1, -1, X.shape[3], Y.shape[3]}, "[R, S, C, K]")
      .shape("Y", Y, {X.shape[0], outputs(X.shape[1], F.shape[0]), outputs(X.shape[2], F.shape[1]), F.shape[3]},
             "[N, P, Q, K]");
  if (!check.ok()) return stream.refuse(check.error());
  return convolution_kernel<T>().try_call(stream, c, X, F, Y);
}
template <class T>
Status convolution(StreamAt stream, Input<T, 4> X, Input<T, 4> F, TensorView<T, 4> Y, int stride = 1, int pad = 0,
                   int dilation = 1) {
  auto isAligned = [](const auto& view) {
    bool fits = reinterpret_cast<uintptr_t>(view.data) % 16 == 0 && view.strides[3] == 1;
    for (int d = 0; d < 3; ++d) fits &= view.strides[d] * static_cast<int64_t>(sizeof(T)) % 16 == 0;
    return fits;
  };
  ConvolutionSizes sizes{Y.shape[0], Y.shape[1], Y.shape[2], X.shape[3], F.shape[3], stride};
  sizes.aligned = isAligned(X) && isAligned(F) && isAligned(Y);
  ConvolutionConfig c = default_convolution_config(sizes, Machine::of(stream));
  c.pad = pad, c.dilation = dilation;
  return convolution<T>(stream, X, F, Y, c);
}

}  // namespace tile::kernels
