// gla_gradients.h - kernels of the backward pass of gated linear attention, all of them parallel over chunks. They read
// what gla_prepare_chunks made, the states S before each chunk and the gradients R of the states behind each chunk
// (both by gla_state_pass, the second one reversed). With A, G, E as in gla_chunked.h and all rows those of one chunk:
//   gla_gradient_scores   DA = dO V^T on and below the diagonal, mirrored above it
//   gla_gradient_values   dV = A^T dO + K_G R
//   gla_gradient_keys     dQ = scale 2^G (dO S^T) + gradients through the scores, by levels (parts/gla_chunks.h)
//                         dK = 2^E (V R^T) + the same
//                         dG_t = sum over rows >= t of (q dQ - k dK) + what goes through the state behind the chunk
// Every result is written by one program: no atomics, the same bits every time.
#pragma once
#include "parts/gla_chunks.h"

namespace tile::kernels {

/// DA [B, H, L, BT] of q's type: gradients of the scores before their scale, dA_tu for t >= u, mirrored to t < u: what
/// a pair of rows is told goes to its query as to its key. Grid {sequences * H, chunks of the longest}.
template <class T>
void gla_gradient_scores_program(const GlaChunkConfig& c, Tensor<const T, 4> DO, Tensor<const T, 4> V,
                                 Tensor<const int32_t, 1> CU_SEQLENS, Tensor<T, 4> DA) {
  num_warps(c.warps);
  if (c.programs) programs_per_multiprocessor(c.programs);
  detail::GlaSpan at(c.varlen, c.BT, program_id(0), V.dim(1), V.dim(2), CU_SEQLENS);
  auto t0 = program_id(1) * c.BT;
  if (c.varlen) return_if(t0 >= at.length);
  auto do_rows = at.rows(DO), v_rows = at.rows(V);
  auto da_rows = at.rows(DA);
  Tile below = zeros({c.BT, c.BT}, f32), above = zeros({c.BT, c.BT}, f32);
  for (auto v0 : range(0, V.dim(3), c.BV, {.stages = c.stages})) {
    auto d_o = do_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
    auto v = v_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
    below = dot(d_o, trans(v), below);
    above = dot(v, trans(d_o), above);
  }
  auto causal = arange(0, c.BT).row() <= arange(0, c.BT).col();
  da_rows.store({at.batch, at.head, t0, 0}, cast(where(causal, below, above), dtype_of<T>()));
}

/// DV [B, H, L, V]; R is [C, H, K, V]. Grid {sequences * H * ceil(V / BV), chunks of the longest}.
template <class T>
void gla_gradient_values_program(const GlaChunkConfig& c, Tensor<const T, 4> DO, Tensor<const T, 4> A,
                                 Tensor<const T, 4> K_G, Tensor<const T, 4> R, Tensor<const int32_t, 1> CU_SEQLENS,
                                 Tensor<T, 4> DV) {
  num_warps(c.warps);
  auto v_blocks = cdiv(DO.dim(3), c.BV);
  auto v0 = program_id(0) % v_blocks * c.BV;
  detail::GlaSpan at(c.varlen, c.BT, program_id(0) / v_blocks, DO.dim(1), DO.dim(2), CU_SEQLENS);
  auto chunk = program_id(1), t0 = chunk * c.BT;
  if (c.varlen) return_if(t0 >= at.length);
  auto do_rows = at.rows(DO), a_rows = at.rows(A), k_rows = at.rows(K_G);
  auto dv_rows = at.rows(DV);
  auto a = a_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BT});
  auto d_o = do_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
  Tile dv = dot(trans(a), d_o);
  for (auto k0 : range(0, K_G.dim(3), c.BK, {.stages = c.stages})) {
    auto k_g = k_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto r = R.load({at.first_chunk + chunk, at.head, k0, v0}, {c.BK, c.BV});
    dv = dot(k_g, r, dv);
  }
  dv_rows.store({at.batch, at.head, t0, v0}, cast(dv, dtype_of<T>()));
}

namespace detail {
/// Row t: the sum of rows t and below, as a product with ones. 16-bit products take the factors in two parts, so that
/// the sums of large values that cancel keep f32's precision but for 2^-17.
template <class T>
Tile sums_from_below(int rows, const Tile& x) {
  auto below = where(arange(0, rows).row() >= arange(0, rows).col(), 1.f, 0.f);
  if (dtype_of<T>() == f32) return dot(below, x);
  auto ones = cast(below, bf16), high = cast(x, bf16);
  return dot(ones, cast(x - cast(high, f32), bf16), dot(ones, high));
}
}  // namespace detail

/// DQ, DK [B, H, L, K] and DG f32 of the same shape. S and R are [C, H, K, V], DECAY [C, H, K]. Grid {sequences * H *
/// ceil(K / BK), chunks of the longest}.
template <class T>
void gla_gradient_keys_program(const GlaChunkConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K,
                               Tensor<const T, 4> V, Tensor<const float, 4> G, Tensor<const T, 4> DO,
                               Tensor<const T, 4> DA, Tensor<const T, 4> S, Tensor<const T, 4> R,
                               Tensor<const float, 3> DECAY, Tensor<const int32_t, 1> CU_SEQLENS, Tensor<T, 4> DQ,
                               Tensor<T, 4> DK, Tensor<float, 4> DG, F32 scale) {
  num_warps(c.warps);
  if (c.programs) programs_per_multiprocessor(c.programs);
  auto k_blocks = cdiv(Q.dim(3), c.BK);
  auto k0 = program_id(0) % k_blocks * c.BK;
  detail::GlaSpan at(c.varlen, c.BT, program_id(0) / k_blocks, Q.dim(1), Q.dim(2), CU_SEQLENS);
  auto chunk = program_id(1), t0 = chunk * c.BT, number = at.first_chunk + chunk;
  if (c.varlen) return_if(t0 >= at.length);
  auto q_rows = at.rows(Q), k_rows = at.rows(K), v_rows = at.rows(V), do_rows = at.rows(DO), da_rows = at.rows(DA);
  auto g_rows = at.rows(G);
  auto dq_rows = at.rows(DQ), dk_rows = at.rows(DK);
  auto dg_rows = at.rows(DG);

  // Through the states before and behind the chunk.
  Tile dq_s = zeros({c.BT, c.BK}, f32), dk_s = zeros({c.BT, c.BK}, f32), kept = zeros({c.BK, 1}, f32);
  for (auto v0 : range(0, V.dim(3), c.BV, {.stages = c.stages, .specialize = Choice::never})) {
    auto d_o = do_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
    auto v = v_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
    auto s = S.load({number, at.head, k0, v0}, {c.BK, c.BV});
    auto r = R.load({number, at.head, k0, v0}, {c.BK, c.BV});
    dq_s = dot(d_o, trans(s), dq_s);
    dk_s = dot(v, trans(r), dk_s);
    kept += sum(cast(s, f32) * cast(r, f32), axis(1));
  }

  auto q = q_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
  auto k = k_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
  auto g = g_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
  auto da = da_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BT});

  // Through the scores: the diagonal without decays, then pairs level by level. DA is symmetric: what reaches a query
  // of an upper half through the keys of the lower half and a key through queries is one product, decayed on either
  // side.
  auto diagonal = sum(where(detail::gla_pairs(c.BT, 0), cast(da, f32), 0.f), axis(1));
  Tile dq = diagonal * cast(k, f32), dk = diagonal * cast(q, f32);
  detail::GlaDecays decays(g, c.BT, c.BK);
  for (int s = 1; s < c.BT; s *= 2) {
    auto upper = decays.upper();
    auto weight = decays.level();
    auto pairs = where(detail::gla_pairs(c.BT, s), da, 0.f);
    auto through = dot(pairs, cast(cast(where(upper, q, k), f32) * weight, dtype_of<T>()));
    // Decays of rows of other warps wait for the product anyway.
    if (s < 16) decays.merge();
    through *= weight;
    dq += where(upper, through, 0.f);
    dk += where(upper, 0.f, through);
    if (s >= 16) decays.merge();
  }

  dk_s *= decays.to_end();
  auto decay = DECAY.load({number, at.head, k0}, {c.BK});
  auto behind = decay * reshape(kept, {c.BK}) + reshape(sum(dk_s * cast(k, f32), axis(0)), {c.BK});
  dq = (dq + dq_s * decays.from_start()) * scale;
  dk = dk * scale + dk_s;
  auto gates = cast(q, f32) * dq - cast(k, f32) * dk;
  dq_rows.store({at.batch, at.head, t0, k0}, cast(dq, dtype_of<T>()));
  dk_rows.store({at.batch, at.head, t0, k0}, cast(dk, dtype_of<T>()));
  dg_rows.store({at.batch, at.head, t0, k0}, detail::sums_from_below<T>(c.BT, gates) + behind.row());
}

template <class T>
const auto& gla_gradient_scores_kernel() {
  static const auto k = kernel(typed_name("gla_gradient_scores", dtype_of<T>()), gla_gradient_scores_program<T>);
  return k;
}
template <class T>
const auto& gla_gradient_values_kernel() {
  static const auto k = kernel(typed_name("gla_gradient_values", dtype_of<T>()), gla_gradient_values_program<T>);
  return k;
}
template <class T>
const auto& gla_gradient_keys_kernel() {
  static const auto k = kernel(typed_name("gla_gradient_keys", dtype_of<T>()), gla_gradient_keys_program<T>);
  return k;
}

}  // namespace tile::kernels
