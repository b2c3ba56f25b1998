// block_sparse_attention.h - attention forward over lists of blocks: every block of queries visits the blocks of keys
// it is listed with and no others. The lists come from attention_lists.h, or from elsewhere (they are what flex
// attention calls block masks: counts and indices of partial and of full blocks).
#pragma once
#include "attention.h"
#include "attention_lists.h"

namespace tile::kernels {

/// O = softmax(t) V over the pairs that are listed: all of a full block, of a partial one those inside the band and
/// allowed by mask_mod; t as in parts/attention_scores.h. Q [B, Hq, Sq, D], K [B, Hkv, Sk, D], V [B, Hkv, Sk, Dv], O
/// [B, Hq, Sq, Dv], LSE [B, Hq, Sq] f32. COUNTS [B, Hq, ceil(Sq / BM)], BLOCKS [B, Hq, ceil(Sq / BM), room], stride 0
/// where heads or batches share lists. A query without a visible key gives O = 0 and LSE = -inf. Blocks that are not
/// listed are not read. The partial list is read only where there is something to mask with. Grid {ceil(Sq / BM), Hq,
/// B}.
///
/// config.split: the keys end with a block, so that full blocks are never masked; without it they hide what is past the
/// last key.
template <class T, class MaskMod>
void block_sparse_attention_program(const AttentionConfig& c, const MaskMod& mask_mod, bool guard_values,
                                    Tensor<const T, 4> Q, Tensor<const T, 4> K, Tensor<const T, 4> V,
                                    Tensor<T, 4> O, Tensor<float, 3> LSE,
                                    Tensor<const int32_t, 3> PARTIAL_COUNTS, Tensor<const int32_t, 4> PARTIAL_BLOCKS,
                                    Tensor<const int32_t, 3> FULL_COUNTS, Tensor<const int32_t, 4> FULL_BLOCKS,
                                    F32 scale, F32 softcap, I32 left, I32 right, Tensor<const float, 2> slopes,
                                    F32 p_drop, U64 seed, U64 offset, I32 together) {
  num_warps(c.warps);
  const Prec precision = c.tf32 ? Prec::tf32 : Prec::ieee;
  const HeadTile own = c.own_tile(together);
  auto head = own.head, batch = own.batch;
  auto kv_head = head / (Q.dim(1) / K.dim(1));
  const Tile none(0), sq = Q.dim(2), sk = K.dim(2);
  const Band<Tile> band{c.top_left ? none : sk - sq, left, c.causal ? none : Tile(right), c.left, c.right_edge()};
  const AttentionHead at{batch, head, kv_head, sq, sk, none, none, band};
  // The last tiles of a causal launch have the longest lists. Starting with them leaves short ones to fill its end.
  const Tile m = band.has_right ? num_programs(0) - 1 - own.tile : own.tile;
  const Tile m0 = m * c.BM;

  // There is no bias (config.bias is off): K stands in its place and is not read as one.
  const NoScoreMod no_score_mod;
  const AttentionScores<const T, NoScoreMod, MaskMod> scores(c, at, no_score_mod, mask_mod, scale, softcap,
                                                             c.alibi ? slopes.load({batch, head}) : Tile(0.f), K);
  const Tile exponent_unit = scores.unit() * kLog2E;

  const ListedBlocks lists{PARTIAL_COUNTS, PARTIAL_BLOCKS, FULL_COUNTS, FULL_BLOCKS,
                           band.has_left || band.has_right || kGiven<MaskMod, NoMaskMod>};
  auto q = Q.load({batch, head, m0, 0}, {c.BM, c.D});
  Tile acc = zeros({c.BM, c.DV}, f32);
  OnlineSoftmax softmax(c.BM);
  std::optional<GuardedValues> guarded;
  if (guard_values) guarded.emplace(c.BM, c.DV);
  const std::optional<AttentionDropout> dropout = attention_dropout(c, seed, offset, p_drop);
  for_each_listed_block(
      lists, batch, head, m, {.stages = c.stages}, [&](const Tile& block, bool masked, const Tile* whole) {
        const Tile n0 = block * c.BN;
        auto k = K.load({batch, kv_head, n0, 0}, {c.BN, c.D});
        auto s = scores(dot(q, trans(k), zeros({c.BM, c.BN}, f32), precision), m0, n0, masked, false, {}, whole).s;
        Tile rescale;
        auto p = softmax.update(s, exponent_unit, rescale, masked, scores.wide());
        acc *= rescale;
        if (dropout) p = where(dropout->kept(c, at, Q.dim(1), m0, n0, false), p, 0.f);
        const Tile v = V.load({batch, kv_head, n0, 0}, {c.BN, c.DV}), weights = cast(p, dtype_of<T>());
        if (guarded && masked)
          acc = guarded->template product<T>(weights, s, v, acc, precision);
        else
          acc = dot(weights, v, acc, precision);
      });
  if (guarded) acc = guarded->apply(acc);

  // d is 0 only where no key was visible; NaN (from NaN inputs) must survive, hence == and not >.
  auto empty = softmax.d == 0.f;
  Tile weight = where(empty, 0.f, 1.f / softmax.d);
  if (dropout) weight *= dropout->scale();
  O.store({batch, head, m0, 0}, cast(acc * weight, dtype_of<T>()));
  const Tile lse = fma(softmax.m, scores.unit(), log2(softmax.d) * kLn2);
  LSE.store({batch, head, m0}, reshape(where(empty, -INFINITY, lse), {c.BM}));
}

/// A kernel with a callable of the caller's on the pairs of partial blocks: keep the result and launch it with
/// run_block_sparse_attention.
template <class T, class MaskMod = NoMaskMod>
auto make_block_sparse_attention_kernel(const char* name, MaskMod mask_mod = {}, bool guard_values = false) {
  return kernel(typed_name(name, dtype_of<T>()),
                [mask_mod, guard_values](const AttentionConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K, Tensor<const T, 4> V,
                           Tensor<T, 4> O, Tensor<float, 3> LSE, Tensor<const int32_t, 3> PARTIAL_COUNTS,
                           Tensor<const int32_t, 4> PARTIAL_BLOCKS, Tensor<const int32_t, 3> FULL_COUNTS,
                           Tensor<const int32_t, 4> FULL_BLOCKS, F32 scale, F32 softcap, I32 left, I32 right,
                           Tensor<const float, 2> slopes, F32 p_drop, U64 seed, U64 offset, I32 together) {
                  block_sparse_attention_program<T>(c, mask_mod, guard_values, Q, K, V, O, LSE, PARTIAL_COUNTS,
                                                    PARTIAL_BLOCKS, FULL_COUNTS, FULL_BLOCKS, scale, softcap, left,
                                                    right, slopes, p_drop, seed, offset, together);
                })
      .grid([](const AttentionConfig& c, const auto& q, const auto&...) {
        return attention_grid(c, q.shape, q.shape[0], q.shape[2]);
      });
}
template <class T>
const auto& block_sparse_attention_kernel() {
  static const auto k = make_block_sparse_attention_kernel<T>("block_sparse_attention");
  return k;
}
template <class T>
const auto& guarded_block_sparse_attention_kernel() {
  static const auto k = make_block_sparse_attention_kernel<T>("block_sparse_attention_guarded", NoMaskMod{}, true);
  return k;
}

/// Tiles, which are the blocks of the lists: powers of two, up to 128 x 128 where warpgroups multiply. Tuned ones where
/// there are some for this machine (table "block_sparse_attention", key attention_tuning_key), else by size.
inline AttentionConfig default_block_sparse_attention_config(DType dtype, int64_t sq, int64_t d, int64_t dv,
                                                             bool causal, float scale, const Machine& machine) {
  AttentionConfig c = detail::attention_config_by_size(dtype, sq, d, dv, causal, scale, machine);
  if (machine.warpgroups && dtype != DType::f32) {
    c.BM = sq > 64 ? 128 : 64, c.warps = c.BM / 16;
    c.BN = std::max(c.D, c.DV) <= 128 ? 128 : 64;
  }
  return tuned("block_sparse_attention", machine.model, attention_tuning_key(dtype, sq, d, dv, causal), c);
}

/// Tiles worth measuring: those of attention that are powers of two, so that they divide the blocks masks come in.
inline std::vector<AttentionConfig> block_sparse_attention_space(const AttentionConfig& base, DType dtype,
                                                                 const Machine& machine) {
  std::vector<AttentionConfig> space = attention_space(base, dtype, machine);
  std::erase_if(space, [](const AttentionConfig& c) {
    return std::max(c.BM, c.BN) > 128 || power_of_two_above(c.BM) != c.BM || power_of_two_above(c.BN) != c.BN;
  });
  return space;
}

/// Launches `k` (from make_block_sparse_attention_kernel) after checking shapes. Of the options, bias, packed sequences
/// and factors of f8 are refused. The lists are trusted: an index of a block that does not exist reads as keys of 0.
template <class K_, class T>
Status run_block_sparse_attention(const K_& k, StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V,
                                  TensorView<T, 4> O, TensorView<float, 3> LSE, AttentionLists<const int32_t> lists,
                                  const AttentionOptions<>& options, AttentionConfig config) {
  AttentionProblem<float> problem(options, Q.shape, K.shape, V.shape);
  const int64_t b = problem.b, h = problem.hq;
  ShapeCheck check("block_sparse_attention");
  check.require(!options.bias.data && !options.cu_q.data && !options.q_scale.data,
                "bias, packed sequences and factors of Q, K and V are not supported");
  problem.check(check, K, V);
  check.shape("O", O, {b, h, problem.sq, problem.dv}, "[B, Hq, Sq, Dv]")
      .shape("LSE", LSE, {b, h, problem.sq}, "[B, Hq, Sq]");
  complete_lists(check, "", lists, {b, h, cdiv<int64_t>(problem.sq, config.BM)});
  problem.complete(config);
  config.split = config.BN > 0 && problem.sk % config.BN == 0;
  problem.check_config(check, config);
  if (!check.ok()) return stream.refuse(check.error());
  const AttentionOptions<>& o = problem.options;
  return k.try_call(stream, config, Q, K, V, O, LSE, lists.partial_counts, lists.partial_blocks, lists.full_counts,
                    lists.full_blocks, o.scale, o.softcap, o.left, o.right, detail::or_unused(o.slopes, LSE.data),
                    o.dropout, o.seed, o.offset,
                    problem.queries_together(stream, config, sizeof(T)));
}

/// Without a callable: partial blocks are those the band of the options cuts.
template <class T>
Status block_sparse_attention(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, TensorView<T, 4> O,
                              TensorView<float, 3> LSE, const AttentionLists<const int32_t>& lists,
                              const AttentionOptions<>& options, const AttentionConfig& config) {
  const auto& k =
      options.guard_values ? guarded_block_sparse_attention_kernel<T>() : block_sparse_attention_kernel<T>();
  return run_block_sparse_attention(k, stream, TensorView<const T, 4>(Q), TensorView<const T, 4>(K),
                                    TensorView<const T, 4>(V), O, LSE, lists, options, config);
}

}  // namespace tile::kernels
