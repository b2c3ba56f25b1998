// block_sparse_attention_backward.h - dQ, dK and dV of block_sparse_attention.h: the programs of
// parts/attention_gradient.h over lists of blocks. Fast (dQ is summed in memory) and deterministic variants.
//
// The blocks of the lists are the tiles of the config that reads them, which are smaller than forward's. Lists are made
// by attention_lists.h: the kinds of a config's blocks by step 1, for lists that are known only as larger blocks (top-k
// of forward's, say) with the kinds of those as its mask; then attention_lists of the kinds, for the program of keys of
// their transposed view.
#pragma once
#include "attention_backward.h"
#include "block_sparse_attention.h"

namespace tile::kernels {

/// The lists of one backward pass.
struct AttentionBackwardLists {
  AttentionLists<const int32_t> keys;     ///< for every block of keys (config.keys.BN) blocks of queries (config.keys.BM)
  AttentionLists<const int32_t> queries;  ///< deterministic only: for every block of queries (config.queries.BM) blocks
                                          ///< of keys (config.queries.BN)
};

namespace detail {
/// The walk of a gradient program (see BandWalk) over lists.
struct ListWalk {
  const ListedBlocks& lists;

  auto walk(const AttentionConfig& c, const Tile& batch, const Tile& row) const {
    return [=, &c, this](const Tile& head, const auto& step) {
      for_each_listed_block(lists, batch, head, row, {.stages = c.stages}, step);
    };
  }
  auto queries(const AttentionConfig& c, const AttentionHead& sequence, const Tile& n0, bool) const {
    return walk(c, sequence.batch, n0 / c.BN);
  }
  auto keys(const AttentionConfig& c, const AttentionHead& at, const Tile& m0) const {
    return walk(c, at.batch, m0 / c.BM);
  }
};

template <class MaskMod>
ListedBlocks listed_blocks(const AttentionConfig& c, const Tensor<const int32_t, 3>& partial_counts,
                           const Tensor<const int32_t, 4>& partial_blocks, const Tensor<const int32_t, 3>& full_counts,
                           const Tensor<const int32_t, 4>& full_blocks) {
  return {partial_counts, partial_blocks, full_counts, full_blocks,
          c.left || c.right_edge() || kGiven<MaskMod, NoMaskMod>};
}
/// In place of the offsets of packed sequences, which there are none of.
inline Tensor<const int32_t, 1> no_offsets(const Tensor<const int32_t, 3>& any) {
  return make_view<const int32_t>(any.ptr(), {Tile(1)}, {Tile(1)});
}
}  // namespace detail

template <class Keys, class Queries>
struct BlockSparseAttentionBackwardKernels {
  Keys keys;
  Queries queries;
};

/// The two main kernels of a backward pass, with the callable that forward ran with. Keep the object: it holds the
/// compiled code. Shapes: Q, dQ [B, Hq, Sq, D], K, dK [B, Hkv, Sk, D], V, dV [B, Hkv, Sk, Dv], dO [B, Hq, Sq, Dv], ROW,
/// DELTA, DQ_SUM as attention_backward_prepare leaves them, lists as in AttentionBackwardLists with strides of 0 where
/// heads or batches share them. config.split: the keys end with a block.
template <class T, class MaskMod = NoMaskMod>
auto make_block_sparse_attention_backward_kernels(const std::string& name, MaskMod mask_mod = {}) {
  auto keys = kernel(typed_name((name + "_keys").c_str(), dtype_of<T>()),
                     [mask_mod](const AttentionConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K,
                                Tensor<const T, 4> V, Tensor<const T, 4> DO, Tensor<const float, 3> ROW,
                                Tensor<const float, 3> DELTA, Tensor<T, 4> DK, Tensor<T, 4> DV,
                                Tensor<float, 4> DQ_SUM, Tensor<const int32_t, 3> PARTIAL_COUNTS,
                                Tensor<const int32_t, 4> PARTIAL_BLOCKS, Tensor<const int32_t, 3> FULL_COUNTS,
                                Tensor<const int32_t, 4> FULL_BLOCKS, F32 scale, F32 softcap, I32 left, I32 right,
                                Tensor<const float, 2> slopes, F32 p_drop, U64 seed, U64 offset, I32 together) {
                       const ListedBlocks lists = detail::listed_blocks<MaskMod>(c, PARTIAL_COUNTS, PARTIAL_BLOCKS,
                                                                                 FULL_COUNTS, FULL_BLOCKS);
                       const Tensor<const int32_t, 1> none = detail::no_offsets(FULL_COUNTS);
                       // There is no bias: K stands in its place and is not read as one.
                       attention_backward_keys_program<T, T>(c, NoScoreMod{}, NoScoreGradient{}, mask_mod, Q, K, V, DO,
                                                             ROW, DELTA, DK, DV, DQ_SUM, scale, softcap, left, right,
                                                             slopes, K, none, none, p_drop, seed, offset, together,
                                                             detail::ListWalk{lists});
                     })
                  .grid([](const AttentionConfig& c, const auto&, const auto& k, const auto&...) {
                    return Grid{cdiv<int64_t>(k.shape[2], c.BN), k.shape[1], k.shape[0]};
                  });
  auto queries = kernel(typed_name((name + "_queries").c_str(), dtype_of<T>()),
                        [mask_mod](const AttentionConfig& c, Tensor<const T, 4> Q, Tensor<const T, 4> K,
                                   Tensor<const T, 4> V, Tensor<const T, 4> DO, Tensor<const float, 3> ROW,
                                   Tensor<const float, 3> DELTA, Tensor<T, 4> DQ,
                                   Tensor<const int32_t, 3> PARTIAL_COUNTS, Tensor<const int32_t, 4> PARTIAL_BLOCKS,
                                   Tensor<const int32_t, 3> FULL_COUNTS, Tensor<const int32_t, 4> FULL_BLOCKS,
                                   F32 scale, F32 softcap, I32 left, I32 right, Tensor<const float, 2> slopes,
                                   F32 p_drop, U64 seed, U64 offset, I32 together) {
                          const ListedBlocks lists = detail::listed_blocks<MaskMod>(c, PARTIAL_COUNTS, PARTIAL_BLOCKS,
                                                                                    FULL_COUNTS, FULL_BLOCKS);
                          const Tensor<const int32_t, 1> none = detail::no_offsets(FULL_COUNTS);
                          attention_backward_queries_program<T, T>(
                              c, NoScoreMod{}, NoScoreGradient{}, mask_mod, Q, K, V, DO, ROW, DELTA, DQ, scale, softcap,
                              left, right, slopes, K, none, none, p_drop, seed, offset, together,
                              detail::ListWalk{lists});
                        })
                     .grid([](const AttentionConfig& c, const auto& q, const auto&...) {
                       return attention_grid(c, q.shape, q.shape[0], q.shape[2]);
                     });
  return BlockSparseAttentionBackwardKernels<decltype(keys), decltype(queries)>{keys, queries};
}
template <class T>
const auto& block_sparse_attention_backward_kernels() {
  static const auto k = make_block_sparse_attention_backward_kernels<T>("block_sparse_attention_backward");
  return k;
}

namespace detail {
/// Blocks of lists are powers of two up to 128, so that they divide the blocks masks come in.
inline bool divides_blocks(int size) { return size <= 128 && power_of_two_above(size) == size; }
}  // namespace detail

/// Tiles, which are the blocks of the lists. Tuned ones where there are some for this machine (tables
/// "block_sparse_attention_backward" and, for the queries' program, "block_sparse_attention_backward_queries"; key
/// attention_backward_tuning_key), else by size. `deterministic` as for attention; `plain`: attention_is_plain holds
/// but for the band, which cuts few blocks.
inline AttentionBackwardConfig default_block_sparse_attention_backward_config(DType dtype, int64_t sq, int64_t sk,
                                                                              int64_t d, int64_t dv, bool causal,
                                                                              bool plain, bool deterministic,
                                                                              const Machine& machine) {
  AttentionBackwardConfig c =
      detail::attention_backward_config_by_size(dtype, sq, sk, d, dv, plain, deterministic, machine);
  for (AttentionConfig* one : {&c.keys, &c.queries})
    for (int* size : {&one->BM, &one->BN})
      if (!detail::divides_blocks(*size)) *size = std::min(128, power_of_two_above(*size) / 2);
  const TuningKey key = attention_backward_tuning_key(dtype, sq, d, dv, causal);
  c.keys = tuned("block_sparse_attention_backward", machine.model, key, c.keys);
  c.queries = tuned("block_sparse_attention_backward_queries", machine.model, key, c.queries);
  c.keys.accumulate = !deterministic;
  c.keys.dealt = c.queries.dealt = causal && machine.warpgroups && dtype != DType::f32;
  return c;
}

/// Tiles worth measuring for the keys' program or the queries' one.
inline std::vector<AttentionConfig> block_sparse_attention_backward_space(const AttentionConfig& base, bool of_keys,
                                                                          int64_t sk, DType dtype,
                                                                          const Machine& machine) {
  std::vector<AttentionConfig> space;
  for (AttentionConfig c : attention_backward_space(base, of_keys, dtype, machine)) {
    if (c.split != base.split || !detail::divides_blocks(c.BM) || !detail::divides_blocks(c.BN)) continue;
    c.split = c.BN > 0 && sk % c.BN == 0;  // here it is a fact of the lists
    space.push_back(c);
  }
  return space;
}

/// Launches `kernels` (from make_block_sparse_attention_backward_kernels) after checking shapes. Tensors, workspace and
/// options as for run_attention_backward; bias and packed sequences are refused. The lists are trusted.
template <class Kernels, class T>
Status run_block_sparse_attention_backward(const Kernels& kernels, StreamAt stream, Input<T, 4> Q, Input<T, 4> K,
                                           Input<T, 4> V, Input<T, 4> O, Input<T, 4> DO, TensorView<const float, 3> LSE,
                                           TensorView<T, 4> DQ, TensorView<T, 4> DK, TensorView<T, 4> DV,
                                           TensorView<float, 1> workspace, AttentionBackwardLists lists,
                                           const AttentionOptions<>& options, AttentionBackwardConfig config) {
  AttentionProblem<float> p(options, Q.shape, K.shape, V.shape);
  const bool fast = config.keys.accumulate;
  ShapeCheck check("block_sparse_attention_backward");
  check.require(!options.bias.data && !options.cu_q.data && !options.q_scale.data,
                "bias, packed sequences and factors of Q, K and V are not supported");
  p.check(check, K, V);
  const auto [row, delta, sums] = detail::check_gradients(check, p, O, DO, LSE, DQ, DK, DV, workspace, !fast);
  complete_lists(check, "keys.", lists.keys, {p.b, p.hq, cdiv<int64_t>(p.sk, config.keys.BN)});
  if (!fast) complete_lists(check, "queries.", lists.queries, {p.b, p.hq, cdiv<int64_t>(p.sq, config.queries.BM)});
  for (AttentionConfig* c : {&config.keys, &config.queries}) {
    p.complete(*c), p.check_config(check, *c);
    c->split = p.sk % c->BN == 0;
  }
  if (!check.ok()) return stream.refuse(check.error());
  config.keys.group = static_cast<int>(p.hq / p.hkv);

  const auto& o = p.options;
  const auto slopes = detail::or_unused(o.slopes, LSE.data);
  const AttentionConfig small = config.small();
  if (Status s = attention_backward_prepare_kernel<T>().try_call(stream, small, O, DO, LSE, row, delta, sums, -kLog2E,
                                                                 dropout_delta_factor(o.dropout));
      !s)
    return s;
  const AttentionLists<const int32_t>&k = lists.keys, &q = lists.queries;
  if (Status s = kernels.keys.try_call(stream, config.keys, Q, K, V, DO, row, delta, DK, DV, sums, k.partial_counts,
                                       k.partial_blocks, k.full_counts, k.full_blocks, o.scale, o.softcap, o.left,
                                       o.right, slopes, o.dropout, o.seed, o.offset,
                                       p.keys_together(stream, config.keys, sizeof(T)));
      !s)
    return s;
  if (fast)
    return attention_backward_convert_kernel<T>().try_call(stream, small, sums, DQ,
                                                           o.scale * dropout_scale(o.dropout), 0,
                                                           TensorView<const int32_t, 1>{});
  return kernels.queries.try_call(stream, config.queries, Q, K, V, DO, row, delta, DQ, q.partial_counts,
                                  q.partial_blocks, q.full_counts, q.full_blocks, o.scale, o.softcap, o.left, o.right,
                                  slopes, o.dropout, o.seed, o.offset,
                                  p.queries_together(stream, config.queries, sizeof(T)));
}

/// Without a callable: partial blocks are those the band of the options cuts.
template <class T>
Status block_sparse_attention_backward(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, Input<T, 4> V, Input<T, 4> O,
                                       Input<T, 4> DO, std::type_identity_t<TensorView<const float, 3>> LSE,
                                       std::type_identity_t<TensorView<T, 4>> DQ,
                                       std::type_identity_t<TensorView<T, 4>> DK,
                                       std::type_identity_t<TensorView<T, 4>> DV, TensorView<float, 1> workspace,
                                       const AttentionBackwardLists& lists, const AttentionOptions<>& options,
                                       const AttentionBackwardConfig& config) {
  return run_block_sparse_attention_backward<decltype(block_sparse_attention_backward_kernels<T>()), T>(
      block_sparse_attention_backward_kernels<T>(), stream, Q, K, V, O, DO, LSE, DQ, DK, DV, workspace, lists, options,
      config);
}

}  // namespace tile::kernels
