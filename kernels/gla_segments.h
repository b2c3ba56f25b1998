// gla_segments.h - long sequences of few heads are cut into segments, one program each: what segments do to a state,
// and from that the states they begin with. A segment of rows t does to a state that reaches it
//   S' = diag(2^{all of its gates}) S + sum over t of 2^{gates behind t} k_t v_t^T
// and to the gradient of a state behind it, from its last row to its first,
//   R' = diag(2^{all of its gates}) R + sum over t of 2^{gates through t} q_t do_t^T
#pragma once
#include "parts/gla_chunks.h"

namespace tile::kernels {

/// The sums of segments: EFFECT [sequences * segments, H, K, V], and TOTAL [sequences * segments, H, K] their decays.
/// X has K channels and Y V: k and v, or with reverse q and do; the sum is multiplied by `scale`. Chunks are walked in
/// the direction in which their decays grow: the sum is never decayed, so no product waits for the one before it. Grid
/// {sequences * H * ceil(K / BK) * ceil(V / BV), segments to compute}: they begin with number `first_segment`.
template <class T>
void gla_segment_effects_program(const GlaChunkConfig& c, Tensor<const T, 4> X, Tensor<const T, 4> Y,
                                 Tensor<const float, 4> G, Tensor<const int32_t, 1> CU_SEQLENS, Tensor<float, 4> EFFECT,
                                 Tensor<float, 3> TOTAL, F32 scale, I32 segments, I32 first_segment) {
  num_warps(c.warps);
  if (c.programs) programs_per_multiprocessor(c.programs);
  const auto [v0, k0, at] = detail::GlaStateBlock(c, X.dim(1), X.dim(2), X.dim(3), Y.dim(3), CU_SEQLENS);
  auto segment = program_id(1) + first_segment;
  auto [first, last] = detail::gla_segment_chunks(c, at.length, segment);
  return_if(first >= last);
  auto x_rows = at.rows(X), y_rows = at.rows(Y);
  auto g_rows = at.rows(G);

  Tile effect = zeros({c.BK, c.BV}, f32), passed = zeros({c.BK}, f32);
  for (auto i : range(first, last, 1, {.stages = c.stages})) {
    auto t0 = (c.reverse ? Tile(i) : Tile(first + last - 1 - i)) * c.BT;
    auto g = g_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto x = x_rows.load({at.batch, at.head, t0, k0}, {c.BT, c.BK});
    auto y = y_rows.load({at.batch, at.head, t0, v0}, {c.BT, c.BV});
    auto x_g = detail::GlaRowDecays(g, c.BT, c.BK, c.reverse).decayed<T>(x, passed);
    effect = dot(trans(x_g), y, effect);
  }
  auto number = at.sequence * segments + segment;
  EFFECT.store({number, at.head, k0, v0}, effect * scale);
  // Every block of V finds the same decays; the first one writes them.
  for (auto _ : when(v0 == 0)) TOTAL.store({number, at.head, k0}, exp2(passed));
}

/// From EFFECT and TOTAL of segments, as gla_segment_effects leaves them (or gla_state_pass, from zero states), to the
/// states they begin with: STARTS [sequences * segments, H, K, V], of the first one START [sequences, H, K, V] or zero.
/// The state behind the last one, whose effect nobody else needs, goes to END. Reversed, the last segment is the first.
/// Grid {sequences * H * blocks of K * blocks of V}.
inline void gla_segment_scan_program(const GlaChunkConfig& c, Tensor<const float, 4> EFFECT,
                                     Tensor<const float, 3> TOTAL, Tensor<const int32_t, 1> CU_SEQLENS,
                                     Tensor<const float, 4> START, Tensor<float, 4> STARTS, Tensor<float, 4> END,
                                     I32 rows, I32 segments) {
  num_warps(c.warps);
  const auto [v0, k0, at] = detail::GlaStateBlock(c, EFFECT.dim(1), rows, EFFECT.dim(2), EFFECT.dim(3), CU_SEQLENS);
  auto first = at.sequence * segments, used = cdiv(cdiv(at.length, c.BT), c.segment);
  auto number = [&](const Tile& i) { return first + (c.reverse ? used - 1 - i : i); };
  Tile state = c.initial_state ? START.load({at.sequence, at.head, k0, v0}, {c.BK, c.BV}) : zeros({c.BK, c.BV}, f32);
  for (auto i : range(0, c.final_state ? used : Tile(used - 1), 1, {.stages = c.stages})) {
    auto segment = number(i);
    auto effect = EFFECT.load({segment, at.head, k0, v0}, {c.BK, c.BV});
    auto total = TOTAL.load({segment, at.head, k0}, {c.BK});
    STARTS.store({segment, at.head, k0, v0}, state);
    state = fma(state, total.col(), effect);
  }
  if (c.final_state)
    END.store({at.sequence, at.head, k0, v0}, state);
  else
    for (auto _ : when(used > 0)) STARTS.store({number(used - 1), at.head, k0, v0}, state);
}

template <class T>
const auto& gla_segment_effects_kernel() {
  static const auto k = kernel(typed_name("gla_segment_effects", dtype_of<T>()), gla_segment_effects_program<T>);
  return k;
}

inline const auto& gla_segment_scan_kernel() {
  static const auto k = kernel("gla_segment_scan", gla_segment_scan_program);
  return k;
}

}  // namespace tile::kernels
