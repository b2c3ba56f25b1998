// quantized_gemm.h - D = A W with weights of 8 or 4 bits and one scale for every GROUP rows of a column; the weights
// are widened on their way to the tensor cores and never stored.
#pragma once
#include "kernels/parts/shapes.h"
#include "kernels/parts/tile_order.h"

namespace tile::kernels {

struct QuantizedGemmConfig {
  int BM = 64, BN = 128, BK = 64;
  int GROUP = 128;  ///< rows of W that share a scale, a multiple of BK
  int ORDER = 8;    ///< tile rows walked together (L2 reuse)
  int stages = 3;
  int warps = 4;
};

/// The weights of one tile as numbers. 8 bits: [K, N] of i8. 4 bits: [K / 2, N] of u8, row 2i in the lower half of row
/// i of the bytes, row 2i + 1 in the upper, each number plus 8.
template <class T, class W>
Tile load_weights(const QuantizedGemmConfig& c, const Tensor<const W, 2>& weights, const Tile& k, const Tile& n) {
  if constexpr (std::is_same_v<W, int8_t>) {
    return cast(weights.load({k, n}, {c.BK, c.BN}), dtype_of<T>());
  } else {
    auto bytes = weights.load({k / 2, n}, {c.BK / 2, c.BN});
    auto rows = reshape(permute(join(bytes & 15, bytes >> 4), {0, 2, 1}), {c.BK, c.BN});
    return cast(rows, dtype_of<T>()) - 8.f;
  }
}

/// D[m, n] = sum_k A[m, k] (w[k, n] S[k / GROUP, n]), products of T, sums in f32. A is [M, K], S is [K / GROUP, N], D
/// is [M, N]. Grid {ceil(M / BM) * ceil(N / BN)}.
template <class T, class W>
void quantized_gemm_program(const QuantizedGemmConfig& c, Tensor<const T, 2> A, Tensor<const W, 2> weights,
                            Tensor<const T, 2> S, Tensor<T, 2> D) {
  static_check(c.GROUP % c.BK == 0, "a group must be whole blocks of K");
  num_warps(c.warps);
  TileIndex at = grouped_order(program_id(0), cdiv(D.dim(0), c.BM), cdiv(D.dim(1), c.BN), c.ORDER);
  auto m = at.m * c.BM, n = at.n * c.BN;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
    auto w = load_weights<T>(c, weights, k, n) * S.load({k / c.GROUP, n}, {1, c.BN});
    acc = dot(A.load({m, k}, {c.BM, c.BK}), w, acc);
  }
  D.store({m, n}, cast(acc, dtype_of<T>()));
}

/// W: int8_t for 8 bits, uint8_t for 4.
template <class T, class W>
const auto& quantized_gemm_kernel() {
  static const auto k =
      kernel(typed_name(std::is_same_v<W, int8_t> ? "gemm_w8" : "gemm_w4", dtype_of<T>()), quantized_gemm_program<T, W>)
          .grid([](const QuantizedGemmConfig& c, const auto&, const auto&, const auto&, const auto& d) {
            return Grid{cdiv(d.shape[0], c.BM) * cdiv(d.shape[1], c.BN)};
          });
  return k;
}

inline QuantizedGemmConfig default_quantized_gemm_config(int64_t m, int64_t n, int group, const Machine& machine) {
  QuantizedGemmConfig c;
  c.GROUP = group;
  if (!machine.gpu) {
    c.BM = 128, c.ORDER = 1, c.stages = 1, c.warps = 1;
    return c;
  }
  if (m <= 32) c.BM = 32;
  if (cdiv(m, 128) * cdiv(n, 128) >= machine.multiprocessors) c.BM = 128, c.warps = 8;
  return c;
}

/// dtypes of A, S, D: f16, bf16.
template <class T, class W>
Status quantized_gemm(Stream& stream, Input<T, 2> A, TensorView<const W, 2> weights, Input<T, 2> S, TensorView<T, 2> D,
                      const QuantizedGemmConfig& config) {
  const int64_t depth = A.shape[1], packed = std::is_same_v<W, int8_t> ? depth : depth / 2;
  ShapeCheck check("quantized_gemm");
  check.require(depth % config.GROUP == 0, "K = {} must be a multiple of the group of {} rows", depth, config.GROUP)
      .shape("W", weights, {packed, D.shape[1]}, packed == depth ? "[K, N]" : "[K / 2, N]")
      .shape("S", S, {depth / config.GROUP, D.shape[1]}, "[K / GROUP, N]")
      .shape("D", D, {A.shape[0], D.shape[1]}, "[M, N]");
  if (!check.ok()) return check.error();
  return quantized_gemm_kernel<T, W>().try_call(stream, config, A, weights, S, D);
}
template <class T, class W>
Status quantized_gemm(Stream& stream, Input<T, 2> A, TensorView<const W, 2> weights, Input<T, 2> S,
                      TensorView<T, 2> D) {
  const int64_t groups = std::max<int64_t>(S.shape[0], 1);
  return quantized_gemm<T, W>(stream, A, weights, S, D,
                              default_quantized_gemm_config(
                                  D.shape[0], D.shape[1], static_cast<int>(A.shape[1] / groups), Machine::of(stream)));
}

}  // namespace tile::kernels
