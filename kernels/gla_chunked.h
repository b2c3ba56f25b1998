// gla_chunked.h - the kernels of fast gated linear attention (Yang et al. 2024): what chunks of BT rows need is
// prepared for all chunks in parallel, the state then walks from chunk to chunk on chip. See gated_linear_attention.h
// for the recurrence; gla_forward.h and gla_backward.h put these kernels together.
//
// With G the sums of log2 decays from the start of a chunk and E those to its end, H the number of heads, C the number
// of chunks:
//   gla_prepare_chunks   Q_G = scale q 2^G,  K_G = k 2^E,  DECAY = 2^{total},  A_tu = scale q_t.(k_u 2^{G_t - G_u})
//   gla_state_pass       S' = diag(DECAY) S + K_G^T V, chunk after chunk: states at chunk starts, or at segment ends
//   gla_scan_output      O = Q_G S + A V and the walk of S in one kernel
//   gla_chunk_output     O = Q_G S + A V from states in memory, all chunks in parallel
//   gla_fused            O from q, k, v, g: everything of a chunk in one kernel, nothing but O in memory
//   gla_fused_states     the walk of a state alone, straight from k, v, g: states at chunk starts
// Nothing takes a positive exponent (parts/gla_chunks.h), except where that is known to be safe (mild,
// parts/gla_state.h). Rows past the end of a sequence read as 0.
#pragma once
#include "parts/gla_state.h"

namespace tile::kernels {

/// Q_G, K_G [B, H, L, K] and A [B, H, L, BT] of q's type, DECAY [C, H, K] f32. Grid {sequences * H, chunks of the
/// longest}.
template <class T>
void gla_prepare_chunks_program(const GlaChunkConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K,
                                Tensor<const float, 4> G, Tensor<const int32_t, 1> CU_SEQLENS, Tensor<T, 4> Q_G,
                                Tensor<T, 4> K_G, Tensor<T, 4> A, Tensor<float, 3> DECAY, F32 scale) {
  num_warps(c.warps);
  if (c.programs) programs_per_multiprocessor(c.programs);
  detail::GlaSpan at(c.varlen, c.BT, program_id(0), Q.dim(1), Q.dim(2), CU_SEQLENS);
  auto chunk = program_id(1), t0 = chunk * c.BT;
  if (c.varlen) return_if(t0 >= at.length);
  auto q_rows = at.rows(Q), k_rows = at.rows(K);
  auto g_rows = at.rows(G);
  auto q_g_rows = at.rows(Q_G), k_g_rows = at.rows(K_G), a_rows = at.rows(A);

  using Chunk = detail::GlaChunk<T>;
  auto keep = [&](const Tile& k0, const Tile& q_g, const Tile& k_g, const Tile& decay) {
    DECAY.store({at.first_chunk + chunk, at.head, k0}, decay);
    q_g_rows.store({at.batch, at.head, t0, k0}, q_g);
    k_g_rows.store({at.batch, at.head, t0, k0}, k_g);
  };
  // Scores of all pairs, sums over blocks of K.
  Tile scores = zeros({c.BT, c.BT}, f32);
  auto by_levels = [&](const Tile& q, const Tile& k, const Tile& g, const Tile& k0) {
    Chunk x(q, k, g, c.BT, c.BK, c.warps);
    const auto levels = x.levels();
    keep(k0, x.queries(scale), x.keys(), x.decay());
    scores = fma(Chunk::joined(x.near(), Chunk::far(Chunk::products(levels)), c.BT), scale, scores);
  };
  auto step = [&](const Tile& k0) {
    auto g = g_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto q = q_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto k = k_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    if (!c.mild) return by_levels(q, k, g, k0);
    const detail::GlaChunkDecays decays(g, c.BT, c.BK);
    if_(
        decays.is_mild(),
        [&] {
          const Tile power = decays.within(zeros({c.BK}, f32)), total = exp2(decays.chunk());
          const Tile q_g = cast(decays.times(q, power) * scale, dtype_of<T>()), inverse = decays.times(k, -power);
          keep(k0, q_g, cast(inverse * total.row(), dtype_of<T>()), total);
          scores = dot(q_g, trans(cast(inverse, dtype_of<T>())), scores);
        },
        [&] { by_levels(decays.own(q), decays.own(k), g, k0); });
  };
  if (c.one_block) {
    step(0);
  } else {
    const Choice producer = c.roles ? Choice::automatic : Choice::never;
    for (auto k0 : range(0, Q.dim(3), c.BK, {.stages = c.stages, .specialize = producer})) step(k0);
  }
  a_rows.store({at.batch, at.head, t0, 0}, detail::gla_pairs_of<T>(scores, c.BT));
}

/// The walk of a state through the chunks of a segment: S' = diag(DECAY) S + X^T Y for rows x of X (K channels) and y
/// of Y (V channels). Segment n of a sequence starts from START[sequence * segments + n] (or zero) and ends in END of
/// the same index; TOTAL [sequences * segments, H, K] is the product of its decays; STATES [C, H, K, V] are the states
/// before each chunk, rounded to the type they are multiplied in. Reversed, chunks are walked from the last to the
/// first. Grid {sequences * H * ceil(K / BK) * ceil(V / BV), segments}.
template <class T>
void gla_state_pass_program(const GlaChunkConfig& c, Tensor<const T, 4> X, Tensor<const T, 4> Y,
                            Tensor<const float, 3> DECAY, Tensor<const int32_t, 1> CU_SEQLENS,
                            Tensor<const float, 4> START, Tensor<float, 4> END, Tensor<float, 3> TOTAL,
                            Tensor<T, 4> STATES) {
  num_warps(c.warps);
  const auto [v0, k0, at] = detail::GlaStateBlock(c, X.dim(1), X.dim(2), X.dim(3), Y.dim(3), CU_SEQLENS);
  auto [first, last] = detail::gla_segment_chunks(c, at.length, program_id(1));
  if (c.segment) return_if(first >= last);
  auto state_index = at.sequence * num_programs(1) + program_id(1);
  auto x_rows = at.rows(X), y_rows = at.rows(Y);

  Tile state = c.initial_state ? START.load({state_index, at.head, k0, v0}, {c.BK, c.BV}) : zeros({c.BK, c.BV}, f32);
  Tile total = ones({c.BK}, f32);
  for (auto i : range(first, last, 1, {.stages = c.stages})) {
    auto chunk = c.reverse ? first + last - 1 - i : Tile(i);
    if (c.chunk_states) STATES.store({at.first_chunk + chunk, at.head, k0, v0}, cast(state, dtype_of<T>()));
    auto x = x_rows.load({at.batch, at.head, chunk * c.BT, k0}, {c.BT, c.BK});
    auto y = y_rows.load({at.batch, at.head, chunk * c.BT, v0}, {c.BT, c.BV});
    auto decay = DECAY.load({at.first_chunk + chunk, at.head, k0}, {c.BK});
    state = dot(trans(x), y, state * decay.col());
    if (c.total_decay) total *= decay;
  }
  if (c.final_state) END.store({state_index, at.head, k0, v0}, state);
  if (c.total_decay) {
    // Every block of V finds the same product; the first one writes it.
    for (auto _ : when(v0 == 0)) TOTAL.store({state_index, at.head, k0}, total);
  }
}

/// O [B, H, L, V] = Q_G S + A V chunk after chunk, the state on chip; BK covers K. START and END as in gla_state_pass.
/// Grid {sequences * H * ceil(V / BV), segments}: programs of one head run side by side and share its rows of Q_G, K_G
/// and A in the L2 cache.
template <class T>
void gla_scan_output_program(const GlaChunkConfig& c, Tensor<const T, 4> Q_G, Tensor<const T, 4> K_G,
                             Tensor<const T, 4> V, Tensor<const T, 4> A, Tensor<const float, 3> DECAY,
                             Tensor<const int32_t, 1> CU_SEQLENS, Tensor<T, 4> O, Tensor<const float, 4> START,
                             Tensor<float, 4> END) {
  num_warps(c.warps);
  auto [v0, at, first, last, state_index] = detail::GlaWalk(c, V.dim(1), V.dim(2), V.dim(3), CU_SEQLENS);
  auto q_rows = at.rows(Q_G), k_rows = at.rows(K_G), v_rows = at.rows(V), a_rows = at.rows(A);
  auto o_rows = at.rows(O);

  Tile state = c.initial_state ? START.load({state_index, at.head, 0, v0}, {c.BK, c.BV}) : zeros({c.BK, c.BV}, f32);
  for (auto chunk : range(first, last, 1, {.stages = c.stages})) {
    auto t0 = chunk * c.BT;
    auto q_g = q_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BK});
    auto k_g = k_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BK});
    auto v = v_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
    auto a = a_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BT});
    auto decay = DECAY.load({at.first_chunk + chunk, at.head, 0}, {c.BK});
    auto before = cast(state, dtype_of<T>());
    state = dot(trans(k_g), v, state * decay.col());
    auto o = dot(q_g, before, dot(a, v));
    o_rows.store({at.batch, at.head, t0, v0}, cast(o, dtype_of<T>()));
  }
  if (c.final_state) END.store({state_index, at.head, 0, v0}, state);
}

/// O = Q_G S + A V from the states before each chunk, STATES [C, H, K, V]. Any K. Grid {sequences * H * ceil(V / BV),
/// chunks of the longest}.
template <class T>
void gla_chunk_output_program(const GlaChunkConfig& c, Tensor<const T, 4> Q_G, Tensor<const T, 4> V,
                              Tensor<const T, 4> A, Tensor<const T, 4> STATES, Tensor<const int32_t, 1> CU_SEQLENS,
                              Tensor<T, 4> O) {
  num_warps(c.warps);
  auto v_blocks = cdiv(V.dim(3), c.BV);
  auto v0 = program_id(0) % v_blocks * c.BV;
  detail::GlaSpan at(c.varlen, c.BT, program_id(0) / v_blocks, V.dim(1), V.dim(2), CU_SEQLENS);
  auto chunk = program_id(1), t0 = chunk * c.BT;
  if (c.varlen) return_if(t0 >= at.length);
  auto q_rows = at.rows(Q_G), v_rows = at.rows(V), a_rows = at.rows(A);
  auto o_rows = at.rows(O);
  auto a = a_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BT});
  auto v = v_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
  Tile o = dot(a, v);
  for (auto k0 : range(0, Q_G.dim(3), c.BK, {.stages = c.stages})) {
    auto q_g = q_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto state = STATES.load({at.first_chunk + chunk, at.head, k0, v0}, {c.BK, c.BV});
    o = dot(q_g, state, o);
  }
  o_rows.store({at.batch, at.head, t0, v0}, cast(o, dtype_of<T>()));
}

/// O [B, H, L, V] straight from q, k, v, g: chunk after chunk, all that a chunk needs is made on chip while the state
/// walks. BK covers K. START and END as in gla_state_pass. Grid {sequences * H * ceil(V / BV), segments}.
template <class T>
void gla_fused_program(const GlaChunkConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K, Tensor<const T, 4> V,
                       Tensor<const float, 4> G, Tensor<const int32_t, 1> CU_SEQLENS, Tensor<T, 4> O,
                       Tensor<const float, 4> START, Tensor<float, 4> END, F32 scale) {
  num_warps(c.warps);
  if (c.programs) programs_per_multiprocessor(c.programs);
  auto [v0, at, first, last, state_index] = detail::GlaWalk(c, V.dim(1), V.dim(2), V.dim(3), CU_SEQLENS);
  auto q_rows = at.rows(Q), k_rows = at.rows(K), v_rows = at.rows(V);
  auto g_rows = at.rows(G);
  auto o_rows = at.rows(O);

  detail::GlaState<T> state(
      c, c.initial_state ? START.load({state_index, at.head, 0, v0}, {c.BK, c.BV}) : zeros({c.BK, c.BV}, f32), false);
  for (auto chunk : range(first, last, 1, {.stages = c.stages})) {
    auto t0 = chunk * c.BT;
    auto g = g_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BK});
    auto q = q_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BK});
    auto k = k_rows.load({at.batch, at.head, t0, 0}, {c.BT, c.BK});
    auto v = v_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
    const Tile o = cast(state.step(q, k, g, v, scale), dtype_of<T>());
    o_rows.store({at.batch, at.head, t0, v0}, detail::gla_is_turned(c) ? trans(o) : o);
  }
  if (c.final_state) {
    state.settle();
    END.store({state_index, at.head, 0, v0}, state.value());
  }
}

/// The walk of a state straight from k, v, g; START and STATES as in gla_state_pass. Grid {sequences * H * ceil(K / BK)
/// * ceil(V / BV), segments}.
template <class T>
void gla_fused_states_program(const GlaChunkConfig& c, Tensor<const T, 4> K, Tensor<const T, 4> V,
                              Tensor<const float, 4> G, Tensor<const int32_t, 1> CU_SEQLENS,
                              Tensor<const float, 4> START, Tensor<T, 4> STATES) {
  num_warps(c.warps);
  if (c.programs) programs_per_multiprocessor(c.programs);
  const auto [v0, k0, at] = detail::GlaStateBlock(c, K.dim(1), K.dim(2), K.dim(3), V.dim(3), CU_SEQLENS);
  auto [first, last] = detail::gla_segment_chunks(c, at.length, program_id(1));
  if (c.segment) return_if(first >= last);
  auto state_index = at.sequence * num_programs(1) + program_id(1);
  auto k_rows = at.rows(K), v_rows = at.rows(V);
  auto g_rows = at.rows(G);
  Tile state = c.initial_state ? START.load({state_index, at.head, k0, v0}, {c.BK, c.BV}) : zeros({c.BK, c.BV}, f32);
  for (auto chunk : range(first, last, 1, {.stages = c.stages})) {
    auto t0 = chunk * c.BT;
    auto g = g_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto k = k_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto v = v_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
    const detail::GlaRowDecays decays(g, c.BT, c.BK, false);
    Tile passed = zeros({c.BK}, f32);
    auto k_g = decays.decayed<T>(k, passed);
    STATES.store({at.first_chunk + chunk, at.head, k0, v0}, cast(state, dtype_of<T>()));
    state = dot(trans(k_g), v, state * exp2(decays.chunk()).col());
  }
}

template <class T>
const auto& gla_prepare_chunks_kernel() {
  static const auto k = kernel(typed_name("gla_prepare_chunks", dtype_of<T>()), gla_prepare_chunks_program<T>);
  return k;
}
template <class T>
const auto& gla_state_pass_kernel() {
  static const auto k = kernel(typed_name("gla_state_pass", dtype_of<T>()), gla_state_pass_program<T>);
  return k;
}
template <class T>
const auto& gla_scan_output_kernel() {
  static const auto k = kernel(typed_name("gla_scan_output", dtype_of<T>()), gla_scan_output_program<T>);
  return k;
}
template <class T>
const auto& gla_fused_kernel() {
  static const auto k = kernel(typed_name("gla_fused", dtype_of<T>()), gla_fused_program<T>);
  return k;
}
template <class T>
const auto& gla_fused_states_kernel() {
  static const auto k = kernel(typed_name("gla_fused_states", dtype_of<T>()), gla_fused_states_program<T>);
  return k;
}
template <class T>
const auto& gla_chunk_output_kernel() {
  static const auto k = kernel(typed_name("gla_chunk_output", dtype_of<T>()), gla_chunk_output_program<T>);
  return k;
}

}  // namespace tile::kernels
