// gated_gemm.h - D = gate(A G) * (A U): the first half of a gated feed-forward block (Shazeer 2020), both products in
// one pass over A.
#pragma once
#include "parts/product_tiles.h"
#include "parts/shapes.h"
#include "parts/tile_order.h"

namespace tile::kernels {

enum class Gate : int { silu, gelu, sigmoid };

struct GatedGemmConfig {
  int BM = 128, BN = 128, BK = 64;
  int GROUP = 16;  ///< tile rows walked together (L2 reuse)
  int stages = 3;
  int warps = 8;
  Gate gate = Gate::silu;
};

namespace detail {
/// The gates on f32: x / (1 + e^-x), x (1 + erf(x / sqrt 2)) / 2, 1 / (1 + e^-x).
inline Tile apply_gate(Gate gate, const Tile& x) {
  if (gate == Gate::gelu) return x * fma(erf(x * 0.7071067811865476f), 0.5f, 0.5f);
  return gate == Gate::silu ? silu(x) : sigmoid(x);
}
}  // namespace detail

/// A is [M, K], G and U are [K, N], D is [M, N]; accumulators are f32. Grid {ceil(M / BM) * ceil(N / BN)}.
template <class T>
void gated_gemm_program(const GatedGemmConfig& c, Tensor<const T, 2> A, Tensor<const T, 2> G, Tensor<const T, 2> U,
                        Tensor<T, 2> D) {
  num_warps(c.warps);
  TileIndex at = grouped_order(program_id(0), cdiv(D.dim(0), c.BM), cdiv(D.dim(1), c.BN), c.GROUP);
  auto m = at.m * c.BM, n = at.n * c.BN;
  Tile g = zeros({c.BM, c.BN}, f32), u = g;
  for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
    auto a = A.load({m, k}, {c.BM, c.BK});
    g = dot(a, G.load({k, n}, {c.BK, c.BN}), g);
    u = dot(a, U.load({k, n}, {c.BK, c.BN}), u);
  }
  D.store({m, n}, cast(detail::apply_gate(c.gate, g) * u, dtype_of<T>()));
}

template <class T>
const auto& gated_gemm_kernel() {
  static const auto k = kernel(typed_name("gated_gemm", dtype_of<T>()), gated_gemm_program<T>)
                            .grid([](const GatedGemmConfig& c, const auto&, const auto&, const auto&, const auto& d) {
                              return Grid{cdiv(d.shape[0], c.BM) * cdiv(d.shape[1], c.BN)};
                            });
  return k;
}

/// `k` = 0: not known.
inline GatedGemmConfig default_gated_gemm_config(int64_t m, int64_t n, const Machine& machine, int64_t k = 0) {
  GatedGemmConfig c;
  if (!machine.gpu) {
    c.BK = 128, c.GROUP = 1, c.stages = 1, c.warps = 1;
    return c;
  }
  // Two accumulators: half the columns of a plain product's tile.
  if (machine.warpgroups) {
    const ProductTile t = warpgroup_tile({.batch = 1, .m = m, .n = n, .k = k, .beside = 2}, machine);
    c.BM = t.bm, c.BN = t.bn / 2, c.warps = t.warps, c.stages = t.stages;
    return c;
  }
  if (cdiv(m, c.BM) * cdiv(n, c.BN) < machine.multiprocessors) c.BM = 64, c.BN = 64, c.warps = 4;
  return c;
}

/// dtypes f16, bf16.
template <class T>
Status gated_gemm(StreamAt stream, Input<T, 2> A, Input<T, 2> G, Input<T, 2> U, TensorView<T, 2> D,
                  const GatedGemmConfig& config) {
  ShapeCheck check("gated_gemm");
  check.shape("G", G, {A.shape[1], D.shape[1]}, "[K, N]")
      .shape("U", U, {A.shape[1], D.shape[1]}, "[K, N]")
      .shape("D", D, {A.shape[0], G.shape[1]}, "[M, N]");
  if (!check.ok()) return stream.refuse(check.error());
  return gated_gemm_kernel<T>().try_call(stream, config, A, G, U, D);
}
template <class T>
Status gated_gemm(StreamAt stream, Input<T, 2> A, Input<T, 2> G, Input<T, 2> U, TensorView<T, 2> D,
                  Gate gate = Gate::silu) {
  GatedGemmConfig c = default_gated_gemm_config(D.shape[0], D.shape[1], Machine::of(stream), A.shape[1]);
  c.gate = gate;
  return gated_gemm<T>(stream, A, G, U, D, c);
}

}  // namespace tile::kernels
