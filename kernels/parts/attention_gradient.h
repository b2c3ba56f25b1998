// attention_gradient.h - the programs of attention_backward.h: gradients of attention from Q, K, V, O, dO and LSE;
// scores are computed again and never stored (Dao 2023, FlashAttention-2). With t the scores, P = e^{t - LSE} and delta
// = rowsum(O dO):
//   dV = P^T dO      dP = dO V^T      dT = P (dP - delta)      dS = dT dt/d(scale q.k)
//   dQ = scale dS K      dK = scale dS^T Q, summed over the query heads that share the key head
// With dropout, P' are the weights of pairs that are kept and 0 for others, and f = 1 / (1 - p):
//   dV = f P'^T dO      dT = f (P' dP - P delta / f)
// Products are without the outer f, which comes to what is stored.
//
//   1 attention_backward_prepare   delta, and LSE as an addend of exponents
//   2 attention_backward_keys      dK and dV, a program for each block of keys; with config.accumulate also dQ, added
//                                  up in memory in whatever order programs come
//   3 attention_backward_queries   dQ, a program for each block of queries       (deterministic)
//     attention_backward_convert   dQ from the sums of step 2                    (with accumulate)
#pragma once
#include "attention_dropout.h"
#include "attention_options.h"

namespace tile::kernels {

namespace detail {

/// Rows first .. of one sequence and head as a tensor of their own: what lies past its end is the next sequence.
template <class T>
Tensor<T, 2> rows_of(const Tensor<T, 4>& tensor, const Tile& batch, const Tile& head, const Tile& first,
                     const Tile& count) {
  return make_view<T>(tensor.ptr() + cast(batch, i64) * tensor.stride(0) + cast(head, i64) * tensor.stride(1) +
                          cast(first, i64) * tensor.stride(2),
                      {count, tensor.dim(3)}, {tensor.stride(2), tensor.stride(3)});
}
template <class T>
Tensor<T, 1> rows_of(const Tensor<T, 3>& tensor, const Tile& batch, const Tile& head, const Tile& first,
                     const Tile& count) {
  return make_view<T>(tensor.ptr() + cast(batch, i64) * tensor.stride(0) + cast(head, i64) * tensor.stride(1) +
                          cast(first, i64) * tensor.stride(2),
                      {count}, {tensor.stride(2)});
}

/// x where index + i < end for row i, 0 below.
inline Tile rows_below(const Tile& x, const Tile& index, const Tile& end) {
  const int rows = static_cast<int>(x.shape()[0]);
  return where(broadcast_to((index + arange(0, rows)).col() < end, x.shape()), x, 0.f);
}

/// The parts of the two main programs that do not depend on the direction they walk in.
template <class T, class TBias, class ScoreMod, class ScoreGradient, class MaskMod>
struct AttentionGradient {
  const AttentionConfig& c;
  const ScoreMod& score_mod;
  const ScoreGradient& score_gradient;
  const MaskMod& mask_mod;
  const Tile &scale, &softcap;
  const Tensor<const float, 2>& slopes;
  const Tensor<const TBias, 4>& bias;
  std::optional<AttentionDropout> dropout;

  using Scores = AttentionScores<TBias, ScoreMod, MaskMod>;
  Scores scores(const AttentionHead& at) const {
    return Scores(c, at, score_mod, mask_mod, scale, softcap, c.alibi ? slopes.load({at.batch, at.head}) : Tile(0.f),
                  bias);
  }
  Prec precision() const { return c.tf32 ? Prec::tf32 : Prec::ieee; }
  Tile product(const Tile& a, const Tile& b, const Tile& acc) const { return dot(a, b, acc, precision()); }
  Tile product(const Tile& a, const Tile& b) const { return dot(a, b, precision()); }

  /// ROW or DELTA of queries m0 ..; 0 past the last one.
  Tile rows(const AttentionHead& at, const Tensor<const float, 3>& tensor, const Tile& tensor_batch,
            const Tile& m0) const {
    if (!c.varlen) return tensor.load({tensor_batch, at.head, m0}, {c.BM});
    return rows_of(tensor, tensor_batch, at.head, at.q_start, at.sq).load({m0}, {c.BM});
  }

  struct Weights {
    Tile p, slope;  ///< f32; slope as in AttentionScores. With dropout p is negative where a pair is dropped
  };
  /// From the products q.k of a block; `lse` (as prepared) broadcasts against them. `heads`: query heads of a sequence.
  Weights weights(const Scores& scores, const AttentionHead& at, const Tile& heads, const Tile& qk, const Tile& lse,
                  const Tile& m0, const Tile& n0, bool masked, bool transposed, const Tile* whole = nullptr) const {
    const auto t = scores(qk, m0, n0, masked, transposed, score_gradient, whole);
    const Tile unit = scores.unit() * kLog2E;
    const Tile p = exp2(scores.wide() ? (t.s - lse) * unit : fma(t.s, unit, lse));
    if (!dropout) return {p, t.slope};
    // Known once and kept in the sign: it takes no registers until dS.
    return {where(dropout->kept(c, at, heads, m0, n0, transposed), p, -p), t.slope};
  }
  /// What dV is the sum of: those of pairs that are kept.
  Tile kept(const Weights& w) const { return dropout ? max(w.p, 0.f) : w.p; }
  /// dS (with dropout, without f) from weights, the products dO.v and DELTA.
  Tile score_gradients(const Scores& scores, const Weights& w, const Tile& dov, const Tile& delta) const {
    const Tile ds = dropout ? fma(kept(w), dov, abs(w.p) * delta) : w.p * (dov - delta);
    return cast(scores.template has_slope<ScoreGradient>() ? ds * w.slope : ds, dtype_of<T>());
  }
  /// x, with dropout times f.
  Tile scaled(const Tile& x) const { return dropout ? x * dropout->scale() : x; }
};

}  // namespace detail

/// Which blocks the two main programs visit: those the band sees. Other walks have the same two functions; what these
/// return is called for each head with step(block, masked) or, for blocks from lists, step(block, masked, whole).
struct BandWalk {
  /// Blocks of queries for the block of keys that starts at n0. `keep_ragged` as in visible_blocks.
  auto queries(const AttentionConfig& c, const AttentionHead& sequence, const Tile& n0, bool keep_ragged) const {
    BlockRange<Tile> blocks =
        visible_blocks(sequence.band.transposed(), n0, c.BN, sequence.sk, sequence.sq, c.BM, keep_ragged);
    // Keys past the last one read as 0, too, but e^{0 - LSE} may be infinite. That only matters to dQ: there a last
    // block of keys masks in every iteration.
    if (c.accumulate) {
      const Tile inside = n0 + c.BN <= sequence.sk;
      blocks.whole_begin = where(inside, blocks.whole_begin, blocks.end);
      blocks.whole_end = where(inside, blocks.whole_end, blocks.end);
    }
    return [=, &c, &sequence](const Tile&, const auto& step) {
      for_each_block(blocks, sequence.band.has_right || c.accumulate, sequence.band.has_left || !keep_ragged, c.split,
                     {.stages = c.stages}, step);
    };
  }
  /// Blocks of keys for the block of queries that starts at m0.
  auto keys(const AttentionConfig& c, const AttentionHead& at, const Tile& m0) const {
    return [=, &c, &at](const Tile&, const auto& step) {
      for_each_block(visible_blocks(at.band, m0, c.BM, at.sq, at.sk, c.BN), at.band.has_left, true, c.split,
                     {.stages = c.stages}, step);
    };
  }
};

/// Step 1. O and dO are [B, Hq, Sq, Dv]; LSE, ROW and DELTA [B, Hq, Sq] f32: ROW = lse_factor LSE, or 0 where no key
/// was visible, DELTA = delta_factor delta (with dropout -1 / f, else 1). With config.accumulate
/// DQ_SUM, [B, Hq, Sq, D] f32, becomes 0. Grid {ceil(Sq / BM), Hq, B}.
template <class T>
void attention_backward_prepare_program(const AttentionConfig& c, Tensor<const T, 4> O, Tensor<const T, 4> DO,
                                        Tensor<const float, 3> LSE, Tensor<float, 3> ROW, Tensor<float, 3> DELTA,
                                        Tensor<float, 4> DQ_SUM, F32 lse_factor, F32 delta_factor) {
  num_warps(c.warps);
  auto m0 = program_id(0) * c.BM, head = program_id(1), batch = program_id(2);
  auto o = cast(O.load({batch, head, m0, 0}, {c.BM, c.DV}), f32);
  auto d_o = cast(DO.load({batch, head, m0, 0}, {c.BM, c.DV}), f32);
  DELTA.store({batch, head, m0}, reshape(sum(o * d_o, axis(1)) * delta_factor, {c.BM}));
  auto lse = LSE.load({batch, head, m0}, {c.BM});
  ROW.store({batch, head, m0}, where(lse == -INFINITY, 0.f, lse * lse_factor));
  if (c.accumulate) DQ_SUM.store({batch, head, m0, 0}, zeros({c.BM, c.D}, f32));
}

/// Step 2. K, V, dK and dV are [B, Hkv, Sk, D or Dv], Q and dO [B, Hq, Sq, D or Dv], ROW, DELTA and DQ_SUM those of
/// step
/// 1. Grid {ceil(Sk / BN), Hkv, B}; packed sequences as in forward, {ceil(max_sk / BN), Hkv, sequences}.
///
/// Scores are computed transposed, keys down the tile: P^T and dS^T then are the first operands of the products that
/// follow, straight from the registers they were computed in.
template <class T, class TBias, class ScoreMod, class ScoreGradient, class MaskMod, class Walk = BandWalk>
void attention_backward_keys_program(const AttentionConfig& c, const ScoreMod& score_mod,
                                     const ScoreGradient& score_gradient, const MaskMod& mask_mod, Tensor<const T, 4> Q,
                                     Tensor<const T, 4> K, Tensor<const T, 4> V, Tensor<const T, 4> DO,
                                     Tensor<const float, 3> ROW, Tensor<const float, 3> DELTA, Tensor<T, 4> DK,
                                     Tensor<T, 4> DV, Tensor<float, 4> DQ_SUM, F32 scale, F32 softcap, I32 left,
                                     I32 right, Tensor<const float, 2> slopes, Tensor<const TBias, 4> bias,
                                     Tensor<const int32_t, 1> cu_q, Tensor<const int32_t, 1> cu_k, F32 p_drop,
                                     U64 seed, U64 offset, I32 together, const Walk& walk = {}) {
  num_warps(c.warps);
  constexpr DType type = dtype_of<T>();
  const detail::AttentionGradient<T, TBias, ScoreMod, ScoreGradient, MaskMod> gradient{
      c, score_mod, score_gradient, mask_mod, scale, softcap, slopes, bias, attention_dropout(c, seed, offset, p_drop)};
  const HeadTile own = c.own_tile(together);
  auto n0 = own.tile * c.BN, kv_head = own.head, batch = own.batch;
  const Tile tensor_batch = c.varlen ? Tile(0) : batch;
  const Tile group = c.group ? Tile(c.group) : Q.dim(1) / K.dim(1);

  // Sizes and places of the sequence; the query head does not matter for them.
  const AttentionHead sequence = attention_head(c, Q, K, batch, kv_head, kv_head, cu_q, cu_k, left, right);
  Tile k = K.load({tensor_batch, kv_head, sequence.k_start + n0, 0}, {c.BN, c.D});
  Tile v = V.load({tensor_batch, kv_head, sequence.k_start + n0, 0}, {c.BN, c.DV});
  if (c.varlen && c.accumulate) {  // dQ sums over keys: those of the next sequence must add nothing
    k = detail::rows_below(k, n0, sequence.sk);
    v = detail::rows_below(v, n0, sequence.sk);
  }
  // Queries past the last one read as 0 and add nothing, unless a callable makes something of them.
  const bool keep_ragged = !c.varlen && !kGiven<ScoreMod, NoScoreMod>;
  const auto visit = walk.queries(c, sequence, Tile(n0), keep_ragged);

  Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.DV}, f32);
  auto add_head = [&](const Tile& head) {
    AttentionHead at = sequence;
    at.head = head, at.mask_rows = !keep_ragged;
    const auto scores = gradient.scores(at);
    auto step = [&](const Tile& block, bool masked, const Tile* whole = nullptr) {
      auto m0 = block * c.BM;
      Tile q = Q.load({tensor_batch, head, at.q_start + m0, 0}, {c.BM, c.D});
      Tile d_o = DO.load({tensor_batch, head, at.q_start + m0, 0}, {c.BM, c.DV});
      if (c.varlen && masked) q = detail::rows_below(q, m0, at.sq), d_o = detail::rows_below(d_o, m0, at.sq);
      auto row = gradient.rows(at, ROW, tensor_batch, m0).row();
      auto qk = gradient.product(k, trans(q)), dov = gradient.product(v, trans(d_o));
      const auto w = gradient.weights(scores, at, Q.dim(1), qk, row, m0, n0, masked, true, whole);
      // P before dS would be there twice, for dS and rounded for dV: registers that longer tiles use better.
      const Tile ds = gradient.score_gradients(scores, w, dov, gradient.rows(at, DELTA, tensor_batch, m0).row());
      dv = gradient.product(cast(gradient.kept(w), type), d_o, dv);
      auto add_to_dk = [&] { dk = gradient.product(ds, q, dk); };
      if (!c.accumulate) return add_to_dk();
      // The part of dQ comes first: it leaves for memory while dK is computed. Where its rows do not share out evenly
      // among the warps, those of its transpose may.
      const bool turned = c.BM % 64 != 0 && c.BM % (16 * c.warps) != 0 && c.D % (16 * c.warps) == 0;
      const Tile part = turned ? trans(gradient.product(trans(k), ds)) : gradient.product(trans(ds), k);
      add_to_dk();
      DQ_SUM.atomic_add({tensor_batch, head, at.q_start + m0, 0}, part);
    };
    visit(head, step);
  };
  if (c.group == 1)
    add_head(kv_head);
  else
    for (auto g : range(0, group)) add_head(kv_head * group + g);

  auto store = [&](const Tensor<T, 4>& tensor, const Tile& x) {
    if (c.varlen)
      detail::rows_of(tensor, tensor_batch, kv_head, sequence.k_start, sequence.sk).store({n0, 0}, cast(x, type));
    else
      tensor.store({batch, kv_head, n0, 0}, cast(x, type));
  };
  store(DK, gradient.scaled(dk * scale));
  store(DV, gradient.scaled(dv));
}

/// Step 3, deterministic. Tensors as in step 2, dQ [B, Hq, Sq, D]. Grid as in forward.
template <class T, class TBias, class ScoreMod, class ScoreGradient, class MaskMod, class Walk = BandWalk>
void attention_backward_queries_program(const AttentionConfig& c, const ScoreMod& score_mod,
                                        const ScoreGradient& score_gradient, const MaskMod& mask_mod,
                                        Tensor<const T, 4> Q, Tensor<const T, 4> K, Tensor<const T, 4> V,
                                        Tensor<const T, 4> DO, Tensor<const float, 3> ROW, Tensor<const float, 3> DELTA,
                                        Tensor<T, 4> DQ, F32 scale, F32 softcap, I32 left, I32 right,
                                        Tensor<const float, 2> slopes, Tensor<const TBias, 4> bias,
                                        Tensor<const int32_t, 1> cu_q, Tensor<const int32_t, 1> cu_k, F32 p_drop,
                                        U64 seed, U64 offset, I32 together, const Walk& walk = {}) {
  num_warps(c.warps);
  constexpr DType type = dtype_of<T>();
  const detail::AttentionGradient<T, TBias, ScoreMod, ScoreGradient, MaskMod> gradient{
      c, score_mod, score_gradient, mask_mod, scale, softcap, slopes, bias, attention_dropout(c, seed, offset, p_drop)};
  const HeadTile own = c.own_tile(together);
  auto head = own.head, batch = own.batch, kv_head = head / (Q.dim(1) / K.dim(1));
  const Tile tensor_batch = c.varlen ? Tile(0) : batch;
  const AttentionHead at = attention_head(c, Q, K, batch, head, kv_head, cu_q, cu_k, left, right);
  // As in forward: the programs with the most keys start first.
  auto m0 = (at.band.has_right ? num_programs(0) - 1 - own.tile : own.tile) * c.BM;
  const auto scores = gradient.scores(at);

  auto q = Q.load({tensor_batch, head, at.q_start + m0, 0}, {c.BM, c.D});
  auto d_o = DO.load({tensor_batch, head, at.q_start + m0, 0}, {c.BM, c.DV});
  auto row = gradient.rows(at, ROW, tensor_batch, m0).col(), delta = gradient.rows(at, DELTA, tensor_batch, m0).col();
  Tile dq = zeros({c.BM, c.D}, f32);
  auto step = [&](const Tile& block, bool masked, const Tile* whole = nullptr) {
    auto n0 = block * c.BN;
    Tile k = K.load({tensor_batch, kv_head, at.k_start + n0, 0}, {c.BN, c.D});
    Tile v = V.load({tensor_batch, kv_head, at.k_start + n0, 0}, {c.BN, c.DV});
    if (c.varlen && masked) k = detail::rows_below(k, n0, at.sk), v = detail::rows_below(v, n0, at.sk);
    auto qk = gradient.product(q, trans(k)), dov = gradient.product(d_o, trans(v));
    const auto w = gradient.weights(scores, at, Q.dim(1), qk, row, m0, n0, masked, false, whole);
    dq = gradient.product(gradient.score_gradients(scores, w, dov, delta), k, dq);
  };
  walk.keys(c, at, m0)(head, step);
  dq = gradient.scaled(dq * scale);
  if (c.varlen)
    detail::rows_of(DQ, tensor_batch, head, at.q_start, at.sq).store({m0, 0}, cast(dq, type));
  else
    DQ.store({batch, head, m0, 0}, cast(dq, type));
}

/// dQ = scale DQ_SUM. Grid as in forward.
template <class T>
void attention_backward_convert_program(const AttentionConfig& c, Tensor<const float, 4> DQ_SUM, Tensor<T, 4> DQ,
                                        F32 scale, Tensor<const int32_t, 1> cu_q) {
  num_warps(c.warps);
  auto m0 = program_id(0) * c.BM, head = program_id(1), batch = program_id(2);
  if (c.varlen) {
    const Tile start = cu_q.load({batch}), count = cu_q.load({batch + 1}) - start, first(0);
    auto sums = DQ_SUM.load({0, head, start + m0, 0}, {c.BM, c.D});
    detail::rows_of(DQ, first, head, start, count).store({m0, 0}, cast(sums * scale, dtype_of<T>()));
  } else {
    DQ.store({batch, head, m0, 0}, cast(DQ_SUM.load({batch, head, m0, 0}, {c.BM, c.D}) * scale, dtype_of<T>()));
  }
}

}  // namespace tile::kernels
