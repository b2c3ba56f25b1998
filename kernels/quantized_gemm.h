// quantized_gemm.h - D = A W with weights of 8 or 4 bits and one scale for every GROUP rows of a column; the weights
// are widened on their way to the tensor cores and never stored.
#pragma once
#include "parts/shapes.h"
#include "parts/tile_order.h"

namespace tile::kernels {

struct QuantizedGemmConfig {
  int BM = 64, BN = 128, BK = 64;
  int GROUP = 128;  ///< rows of W that share a scale: a multiple of BK, or a part of it
  int ORDER = 8;    ///< tile rows walked together (L2 reuse)
  int stages = 3;
  int warps = 4;
  int splits = 1;  ///< parts of K computed by programs of their own, added in a fixed order by a second kernel
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

/// The weights of rows k .. k + BK times their scales: a group's rows all of them, or whole groups.
inline Tile scale_weights(const QuantizedGemmConfig& c, const Tile& rows, const Tile& scales) {
  const int64_t groups = scales.shape()[0];
  if (groups == 1 || c.GROUP == 1) return rows * scales;
  const Shape apart = {groups, c.GROUP, c.BN};
  return rows * reshape(broadcast_to(expand_dims(scales, 1), apart), {c.BK, c.BN});
}

/// D[m, n] = sum_k A[m, k] (w[k, n] S[k / GROUP, n]), products of T, sums in f32. A is [M, K], S is [K / GROUP, N], D
/// is [M, N]. With config.splits > 1 the sum over part s of K goes to partial[s]. Grid {ceil(M / BM) * ceil(N / BN),
/// splits}.
template <class T, class W>
void quantized_gemm_program(const QuantizedGemmConfig& c, Tensor<const T, 2> A, Tensor<const W, 2> weights,
                            Tensor<const T, 2> S, Tensor<T, 2> D, Tensor<float, 3> partial) {
  static_check(c.BK > 0 && c.GROUP > 0 && (c.GROUP % c.BK == 0 || c.BK % c.GROUP == 0),
               "of GROUP and BK, one must be a multiple of the other");
  const int groups = c.GROUP > 0 && c.BK > c.GROUP ? c.BK / c.GROUP : 1;  // of one block
  num_warps(c.warps);
  TileIndex at = grouped_order(program_id(0), cdiv(D.dim(0), c.BM), cdiv(D.dim(1), c.BN), c.ORDER);
  auto m = at.m * c.BM, n = at.n * c.BN;
  auto begin = Tile(0), end = Tile(A.dim(1));
  if (c.splits > 1) {
    auto part = cdiv(cdiv(end, c.BK), c.splits) * c.BK;
    begin = program_id(1) * part, end = min(begin + part, end);
  }
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto k : range(begin, end, c.BK, {.stages = c.stages})) {
    auto w = scale_weights(c, load_weights<T>(c, weights, k, n), S.load({k / c.GROUP, n}, {groups, c.BN}));
    acc = dot(A.load({m, k}, {c.BM, c.BK}), w, acc);
  }
  if (c.splits > 1)
    partial.store({program_id(1), m, n}, acc);
  else
    D.store({m, n}, cast(acc, dtype_of<T>()));
}

/// D = the parts of a split product, added in order. Grid {ceil(M / 16) * ceil(N / 128)}.
template <class T>
void quantized_gemm_combine_program(const QuantizedGemmConfig& c, Tensor<const float, 3> partial, Tensor<T, 2> D) {
  const int BM = 16, BN = 128;
  num_warps(4);
  auto num_n = cdiv(D.dim(1), BN);
  auto m = program_id(0) / num_n * BM, n = program_id(0) % num_n * BN;
  Tile sum = partial.load({0, m, n}, {BM, BN});
  for (int s = 1; s < c.splits; ++s) sum += partial.load({s, m, n}, {BM, BN});
  D.store({m, n}, cast(sum, dtype_of<T>()));
}

/// W: int8_t for 8 bits, uint8_t for 4.
template <class T, class W>
const auto& quantized_gemm_kernel() {
  static const auto k =
      kernel(typed_name(std::is_same_v<W, int8_t> ? "gemm_w8" : "gemm_w4", dtype_of<T>()), quantized_gemm_program<T, W>)
          .grid([](const QuantizedGemmConfig& c, const auto&, const auto&, const auto&, const auto& d, const auto&) {
            return Grid{cdiv(d.shape[0], c.BM) * cdiv(d.shape[1], c.BN), c.splits};
          });
  return k;
}
template <class T>
const auto& quantized_gemm_combine_kernel() {
  static const auto k = kernel(typed_name("gemm_w_combine", dtype_of<T>()), quantized_gemm_combine_program<T>)
                            .grid([](const QuantizedGemmConfig&, const auto&, const auto& d) {
                              return Grid{cdiv(d.shape[0], 16) * cdiv(d.shape[1], 128)};
                            });
  return k;
}

/// Rows of K of one block: 64, or fewer where groups of other sizes ask for it; whole steps of the tensor cores. 0:
/// none.
constexpr int quantized_block(int group) {
  for (int rows : {64, 32, 48, 16})
    if (group > 0 && (group % rows == 0 || rows % group == 0)) return rows;
  return 0;
}

/// Splits K where that gives every multiprocessor work: the launch then needs a workspace.
inline QuantizedGemmConfig default_quantized_gemm_config(int64_t m, int64_t n, int64_t k, int group,
                                                         const Machine& machine) {
  QuantizedGemmConfig c;
  c.GROUP = group;
  if (const int rows = quantized_block(group)) c.BK = rows;
  if (!machine.gpu) {
    c.BM = 128, c.ORDER = 1, c.stages = 1, c.warps = 1;
    return c;
  }
  if (machine.warpgroups) {
    // Every tile row widens all weights again: high tiles. Low ones are wide, because every tile column reads all of A.
    c.warps = 8, c.stages = 4;
    c.BM = m > 128 ? 256 : m > 64 ? 128 : m > 32 ? 64 : m > 16 ? 32 : 16;
    if (c.BM == 256 && 2 * cdiv(m, 256) * cdiv(n, 128) <= machine.multiprocessors) c.BM = 128;
    if (c.BM <= 64 && n > 128) c.BN = 256, c.stages = 6;
  } else {
    if (m <= 32) c.BM = 32;
    if (cdiv(m, 128) * cdiv(n, 128) >= machine.multiprocessors) c.BM = 128, c.warps = 8;
  }
  const int64_t tiles = cdiv(m, c.BM) * cdiv(n, c.BN);
  if (2 * tiles <= machine.multiprocessors && tiles > 0)
    c.splits = static_cast<int>(std::clamp<int64_t>(std::min(machine.multiprocessors / tiles, k / 512), 1, 16));
  return c;
}
/// Bytes of the workspace that config.splits needs.
inline size_t quantized_gemm_workspace_bytes(const QuantizedGemmConfig& c, int64_t m, int64_t n) {
  return c.splits > 1 ? static_cast<size_t>(c.splits * m * n) * 4 : 0;
}

/// dtypes of A, S, D: f16, bf16. `workspace`: device memory of quantized_gemm_workspace_bytes, needed with
/// config.splits > 1, in use until the launch has finished.
template <class T, class W>
Status quantized_gemm(StreamAt stream, Input<T, 2> A, TensorView<const W, 2> weights, Input<T, 2> S, TensorView<T, 2> D,
                      const QuantizedGemmConfig& config, void* workspace = nullptr) {
  const int64_t depth = A.shape[1], packed = std::is_same_v<W, int8_t> ? depth : depth / 2;
  ShapeCheck check("quantized_gemm");
  check.require(config.GROUP > 0 && config.BK > 0, "config.GROUP and config.BK must be positive, found {} and {}",
                config.GROUP, config.BK);
  if (!check.ok()) return stream.refuse(check.error());
  check.require(config.GROUP % config.BK == 0 || config.BK % config.GROUP == 0,
                "of config.GROUP and config.BK one must be a multiple of the other, found {} and {}", config.GROUP,
                config.BK);
  if (!check.ok()) return stream.refuse(check.error());
  check.require(depth % config.GROUP == 0, "K = {} must be a multiple of the group of {} rows", depth, config.GROUP)
      .shape("W", weights, {packed, D.shape[1]}, packed == depth ? "[K, N]" : "[K / 2, N]")
      .shape("S", S, {depth / config.GROUP, D.shape[1]}, "[K / GROUP, N]")
      .shape("D", D, {A.shape[0], D.shape[1]}, "[M, N]")
      .require(config.splits >= 1, "config.splits must be at least 1, found {}", config.splits)
      .require(config.splits <= 1 || workspace, "config.splits = {} needs a workspace of {} bytes", config.splits,
               quantized_gemm_workspace_bytes(config, D.shape[0], D.shape[1]));
  if (!check.ok()) return stream.refuse(check.error());
  using Shape = std::array<int64_t, 3>;
  auto parts = TensorView<float, 3>::contiguous(
      static_cast<float*>(workspace),
      config.splits > 1 ? Shape{config.splits, D.shape[0], D.shape[1]} : Shape{0, 0, 0});
  Status done = quantized_gemm_kernel<T, W>().try_call(stream, config, A, weights, S, D, parts);
  if (!done || config.splits <= 1) return done;
  return quantized_gemm_combine_kernel<T>().try_call(stream, config, TensorView<const float, 3>(parts), D);
}
/// With the default configuration; without a workspace (see above) K is not split, which few rows want.
template <class T, class W>
Status quantized_gemm(StreamAt stream, Input<T, 2> A, TensorView<const W, 2> weights, Input<T, 2> S,
                      TensorView<T, 2> D) {
  const int64_t groups = std::max<int64_t>(S.shape[0], 1);
  QuantizedGemmConfig c = default_quantized_gemm_config(D.shape[0], D.shape[1], A.shape[1],
                                                        static_cast<int>(A.shape[1] / groups), Machine::of(stream));
  c.splits = 1;
  return quantized_gemm<T, W>(stream, A, weights, S, D, c);
}

}  // namespace tile::kernels
