// gla_gradients.h - kernels of the backward pass of gated linear attention, all of them parallel over chunks. They read
// what gla_prepare_chunks made, the states S before each chunk and the gradients R of the states behind each chunk
// (both by gla_state_pass, the second one reversed). With A, G, E as in gla_chunked.h and all rows those of one chunk:
//   gla_gradient_scores   DA = dO V^T on and below the diagonal, mirrored above it
//   gla_gradient_values   dV = A^T dO + K_G R
//   gla_fused_values      dV, R and the chunks' decays, straight from q, k, g and dO: one walk, instead of the kernel
//                         above and what it reads
//   gla_gradient_keys     dQ = scale 2^G (dO S^T) + gradients through the scores, by levels (parts/gla_chunks.h)
//                         dK = 2^E (V R^T) + the same
//                         dG_t = sum over rows >= t of (q dQ - k dK) + what goes through the state behind the chunk
// Every result is written by one program: no atomics, the same bits every time.
#pragma once
#include "parts/gla_state.h"

namespace tile::kernels {

namespace detail {
/// Gradients of the scores before their scale, [BT, BT] of type T: dO V^T on and below the diagonal, mirrored above it.
/// What a pair of rows is told goes to its query as to its key.
template <class T>
Tile gla_mirrored(const Tile& below, const Tile& above, int bt) {
  return cast(where(arange(0, bt).row() <= arange(0, bt).col(), below, above), dtype_of<T>());
}
}  // namespace detail

/// DA [B, H, L, BT] of q's type: see gla_mirrored. Grid {sequences * H, chunks of the longest}.
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
  da_rows.store({at.batch, at.head, t0, 0}, detail::gla_mirrored<T>(below, above, c.BT));
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

/// DV [B, H, L, V] and the walk of R from the last chunk to the first, straight from q, k, g and dO: dV = A^T dO +
/// K_G R, R' = diag(DECAY) R + Q_G^T dO. STATES [C, H, K, V] are R behind each chunk, DECAY [C, H, K] the chunks'
/// decays; START and END as in gla_state_pass. BK covers K. Grid as of a GlaWalk.
template <class T>
void gla_fused_values_program(const GlaChunkConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K,
                              Tensor<const float, 4> G, Tensor<const T, 4> DO, Tensor<const int32_t, 1> CU_SEQLENS,
                              Tensor<const float, 4> START, Tensor<float, 4> END, Tensor<T, 4> STATES,
                              Tensor<float, 3> DECAY, Tensor<T, 4> DV, F32 scale) {
  num_warps(c.warps);
  auto [v0, at, first, last, state_index] = detail::GlaWalk(c, DO.dim(1), DO.dim(2), DO.dim(3), CU_SEQLENS);
  auto q_rows = at.rows(Q), k_rows = at.rows(K), do_rows = at.rows(DO);
  auto g_rows = at.rows(G);
  auto dv_rows = at.rows(DV);
  detail::GlaState<T> state(
      c, c.initial_state ? START.load({state_index, at.head, 0, v0}, {c.BK, c.BV}) : zeros({c.BK, c.BV}, f32), true);
  for (auto i : range(first, last, 1, {.stages = c.stages})) {
    auto chunk = first + last - 1 - i, t0 = chunk * c.BT, number = at.first_chunk + chunk;
    auto g = g_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BK});
    auto q = q_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BK});
    auto k = k_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BK});
    auto d_o = do_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
    const Tile dv = cast(
        state.step(q, k, g, d_o, scale, [&](const Tile& behind) { STATES.store({number, at.head, 0, v0}, behind); }),
        dtype_of<T>());
    for (auto _ : when(v0 == 0)) DECAY.store({number, at.head, 0}, state.decay);
    dv_rows.store({at.batch, at.head, t0, v0}, detail::gla_is_turned(c) ? trans(dv) : dv);
  }
  if (c.final_state) END.store({state_index, at.head, 0, v0}, state.value());
}

/// DQ, DK [B, H, L, K] and DG f32 of the same shape. S and R are [C, H, K, V], DECAY [C, H, K]. With one_v DA is made
/// here and not read. Grid {sequences * H, chunks of the longest}; with one_block {sequences * H * ceil(K / BK), the
/// same}: a program for every block of K.
template <class T>
void gla_gradient_keys_program(const GlaChunkConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K,
                               Tensor<const T, 4> V, Tensor<const float, 4> G, Tensor<const T, 4> DO,
                               Tensor<const T, 4> DA, Tensor<const T, 4> S, Tensor<const T, 4> R,
                               Tensor<const float, 3> DECAY, Tensor<const int32_t, 1> CU_SEQLENS, Tensor<T, 4> DQ,
                               Tensor<T, 4> DK, Tensor<float, 4> DG, F32 scale) {
  num_warps(c.warps);
  if (c.programs) programs_per_multiprocessor(c.programs);
  using Decays = detail::GlaDecays;
  constexpr int kRows = Decays::kRows;
  const int blocks = c.BT / kRows;  // of rows
  auto k_blocks = c.one_block ? Tile(cdiv(Q.dim(3), c.BK)) : Tile(1);
  detail::GlaSpan at(c.varlen, c.BT, program_id(0) / k_blocks, Q.dim(1), Q.dim(2), CU_SEQLENS);
  auto chunk = program_id(1), t0 = chunk * c.BT, number = at.first_chunk + chunk;
  if (c.varlen) return_if(t0 >= at.length);
  auto q_rows = at.rows(Q), k_rows = at.rows(K), v_rows = at.rows(V), do_rows = at.rows(DO), da_rows = at.rows(DA);
  auto g_rows = at.rows(G);
  auto dq_rows = at.rows(DQ), dk_rows = at.rows(DK);
  auto dg_rows = at.rows(DG);

  Tile d_o_all, v_all, da;
  if (c.one_v) {
    d_o_all = do_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BV});
    v_all = v_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BV});
    da = detail::gla_mirrored<T>(dot(d_o_all, trans(v_all)), dot(v_all, trans(d_o_all)), c.BT);
  } else {
    da = da_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BT});
  }
  // DA is symmetric: what reaches a query of an upper half through the keys of the lower half and a key through queries
  // is one product, decayed on either side. Pairs of rows of one block of kRows are the work of one warp.
  Tile near, diagonal;
  auto near_pairs = [&](int s) { return where(reshape(detail::gla_pairs(kRows, s), {1, kRows, kRows}), near, 0.f); };
  auto find_near = [&] {
    auto in_blocks = reshape(da, {blocks, kRows, blocks, kRows});
    auto is_own = reshape(arange(0, blocks), {blocks, 1, 1, 1}) == reshape(arange(0, blocks), {1, 1, blocks, 1});
    near = blocks == 1 ? reshape(da, {1, kRows, kRows})
                       : reshape(cast(sum(where(is_own, cast(in_blocks, f32), 0.f), axis(2)), dtype_of<T>()),
                                 {blocks, kRows, kRows});
    diagonal = reshape(sum(cast(near_pairs(0), f32), axis(2)), {c.BT, 1});
  };
  if (!c.mild) find_near();
  auto in_blocks = [&](const Tile& x) { return reshape(x, {blocks, kRows, c.BK}); };
  // Gradients of q and k through the scores, and all of them from those of the state, before their scale and with it;
  // the part of those of k that came through the state behind the chunk. In blocks of rows.
  Tile dq, dk, dk_behind;
  auto by_levels = [&](const Tile& q, const Tile& k, const Tile& g, auto&& through_states) {
    // The diagonal without decays, then pairs level by level.
    dq = diagonal * cast(k, f32), dk = diagonal * cast(q, f32);
    auto decay_of_row = exp2(g * kLog2E);
    Decays decays(decay_of_row, decay_of_row, ones({c.BT, c.BK}, f32), c.BT, c.BK);
    for (int s = 1; s < kRows; s *= 2) {
      auto upper = Decays::upper(c.BT, s);
      auto weight = decays.level(s);
      auto x = cast(cast(where(upper, q, k), f32) * weight, dtype_of<T>());
      auto through = reshape(dot(near_pairs(s), decays.in_blocks(x)), {c.BT, c.BK}) * weight;
      decays.merge(s);
      dq += where(upper, through, 0.f);
      dk += where(upper, 0.f, through);
    }
    decays.meet();
    dq = in_blocks(dq), dk = in_blocks(dk);
    auto q_blocks = in_blocks(q), k_blocks = in_blocks(k);
    for (int half = 1; half < blocks; half *= 2) {
      auto upper = decays.upper_blocks(half);
      auto weight = decays.level_of_blocks(half);
      auto x = reshape(cast(cast(where(upper, q_blocks, k_blocks), f32) * weight, dtype_of<T>()), {c.BT, c.BK});
      auto through = in_blocks(dot(where(detail::gla_pairs(c.BT, half * kRows), da, 0.f), x)) * weight;
      dq += where(upper, through, 0.f);
      dk += where(upper, 0.f, through);
    }
    auto [dq_s, dk_s] = through_states();
    dk_behind = in_blocks(dk_s) * decays.to_end();
    dq = (dq + in_blocks(dq_s) * decays.from_start()) * scale;
    dk = dk * scale + dk_behind;
  };

  auto step = [&](const Tile& k0) {
    auto q = q_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto k = k_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto g = g_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    // Through the states before and behind the chunk, [BT, BK] and [BK, 1].
    Tile dq_s, dk_s, kept;
    auto in_both = [](const Tile& s, const Tile& r) { return sum(cast(s, f32) * cast(r, f32), axis(1)); };
    auto state = [&](const Tensor<const T, 4>& states, const Tile& v0) {
      return states.load({number, at.head, k0, v0}, {c.BK, c.BV});
    };
    auto through_states = [&] {
      if (c.one_v) {
        auto s = state(S, 0), r = state(R, 0);
        kept = in_both(s, r);
        dq_s = dot(d_o_all, trans(s)), dk_s = dot(v_all, trans(r));
      } else {
        dq_s = zeros({c.BT, c.BK}, f32), dk_s = zeros({c.BT, c.BK}, f32), kept = zeros({c.BK, 1}, f32);
        for (auto v0 : range(0, V.dim(3), c.BV, {.stages = c.stages})) {
          auto d_o = do_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
          auto v = v_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
          auto s = state(S, v0), r = state(R, v0);
          dq_s = dot(d_o, trans(s), dq_s), dk_s = dot(v, trans(r), dk_s);
          kept += in_both(s, r);
        }
      }
      return std::pair(dq_s, dk_s);
    };
    // With one_v first: the copies of the next block's states, the largest of all, then have the most time.
    const bool first = c.one_v || c.mild;
    if (first) through_states();
    auto there = [&] { return first ? std::pair(dq_s, dk_s) : through_states(); };
    if (!c.mild) {
      by_levels(q, k, g, there);
    } else {
      dq = dk = dk_behind = zeros({blocks, kRows, c.BK}, f32);
      detail::GlaChunkDecays decays(c.BT, c.BK);
      decays.meet(g);
      if_(
          decays.is_mild(),
          [&] {
            const Tile power = decays.within(g, zeros({c.BK}, f32));
            auto times = [&](const Tile& x, const Tile& weights) {
              return cast(reshape(weights, {c.BT, c.BK}) * cast(x, f32), dtype_of<T>());
            };
            auto row = arange(0, c.BT).col(), column = arange(0, c.BT).row();
            const Tile decayed = exp2(power), inverse = exp2(-power);
            const Tile q_g = times(q, decayed), k_g = times(k, inverse);
            dq = in_blocks(dot(where(column <= row, da, 0.f), k_g) + dq_s) * decayed * scale;
            dk = in_blocks(dot(where(column >= row, da, 0.f), q_g)) * inverse * scale;
            dk_behind = in_blocks(dk_s * exp2(decays.chunk()).row()) * inverse;
            dk += dk_behind;
          },
          [&] {
            find_near();
            by_levels(q, k, g, there);
          });
    }
    auto q_blocks = in_blocks(q), k_blocks = in_blocks(k);
    auto decay = DECAY.load({number, at.head, k0}, {c.BK});
    auto behind =
        decay * reshape(kept, {c.BK}) + reshape(sum(sum(dk_behind * cast(k_blocks, f32), axis(1)), axis(0)), {c.BK});
    auto gates = reshape(cast(q_blocks, f32) * dq - cast(k_blocks, f32) * dk, {c.BT, c.BK});
    dq_rows.store({at.batch, at.head, t0, k0}, reshape(cast(dq, dtype_of<T>()), {c.BT, c.BK}));
    dk_rows.store({at.batch, at.head, t0, k0}, reshape(cast(dk, dtype_of<T>()), {c.BT, c.BK}));
    dg_rows.store({at.batch, at.head, t0, k0}, cumsum(gates, axis(0), {.reverse = true}) + behind.row());
  };
  if (c.one_block) {
    step(program_id(0) % k_blocks * c.BK);
  } else {
    const Choice producer = c.roles ? Choice::automatic : Choice::never;
    // What a block reads it has in registers soon, or needs last: the next one's copies have its time with one stage.
    for (auto k0 : range(0, Q.dim(3), c.BK, {.stages = 1, .specialize = producer})) step(k0);
  }
}

template <class T>
const auto& gla_fused_values_kernel() {
  static const auto k = kernel(typed_name("gla_fused_values", dtype_of<T>()), gla_fused_values_program<T>);
  return k;
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
