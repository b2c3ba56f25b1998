// attention_lists.h - which blocks of keys each block of queries visits in block_sparse_attention.h, made on the
// device: from a mask function and a band, from a mask of blocks, from the content of Q and K (top-k of pooled scores).
//
//   1 attention_block_kinds   every block: seen by nobody, by some of its pairs, by all of them
//   2 attention_top_blocks    of those seen, only the k best of every row stay             (optional)
//   3 attention_lists         the lists
#pragma once
#include "parts/attention_options.h"

namespace tile::kernels {

/// What step 1 says of a block.
enum BlockKind : int { kHiddenBlock = 0, kPartialBlock = 1, kFullBlock = 2 };

struct AttentionListsConfig {
  int BM = 128, BN = 128;        ///< queries and keys per block: the tile of the attention that reads the lists
  int MASK_BM = 0, MASK_BN = 0;  ///< those of the mask of blocks, multiples of BM and BN; 0: there is no such mask
  bool causal = false, top_left = false, left = false, right = false;  ///< the band, as in AttentionConfig
  int D = 128;      ///< channels, rounded up                                    (steps before 2)
  int WIDTH = 128;  ///< blocks of a row looked at together; step 2: at least all of a row
  int warps = 4;
};

/// The lists' blocks and band for an attention with this config.
inline AttentionListsConfig attention_lists_config(const AttentionConfig& c) {
  return {
      .BM = c.BM, .BN = c.BN, .causal = c.causal, .top_left = c.top_left, .left = c.left, .right = c.right, .D = c.D};
}

/// Step 1: KINDS [B', H', Mb, Nb] for Sq queries and Sk keys; B' and H' may be 1 where nothing depends on them. MASK
/// [B', H', ceil(Sq / MASK_BM), ceil(Sk / MASK_BN)] hides the blocks where it is 0. What lies past the last query or
/// key makes no block partial. Grid {Nb, Mb, B' H'}.
template <class MaskMod>
void attention_block_kinds_program(const AttentionListsConfig& c, const MaskMod& mask_mod, Tensor<int32_t, 4> KINDS,
                                   Tensor<const int32_t, 4> MASK, I32 sq, I32 sk, I32 left, I32 right) {
  num_warps(c.warps);
  auto n = program_id(0), m = program_id(1);
  auto batch = program_id(2) / KINDS.dim(1), head = program_id(2) - batch * KINDS.dim(1);
  const Tile i = (m * c.BM + arange(0, c.BM)).col(), j = (n * c.BN + arange(0, c.BN)).row();
  const Tile inside = (i < sq) & (j < sk);
  Tile visible = inside;
  const Tile aligned = c.top_left ? i : i + (sk - sq);
  if (c.causal || c.right) visible = visible & (j <= (c.right ? aligned + right : aligned));
  if (c.left) visible = visible & (j >= aligned - left);
  if constexpr (kGiven<MaskMod, NoMaskMod>)
    visible = visible & broadcast_to(mask_mod(Tile(batch), Tile(head), i, j), {c.BM, c.BN});
  auto count = [](const Tile& x) { return sum(sum(where(x, 1, 0), axis(1)), axis(0)); };
  const Tile seen = count(visible);
  Tile kind = where(seen == 0, int(kHiddenBlock), where(seen == count(inside), int(kFullBlock), int(kPartialBlock)));
  if (c.MASK_BM)
    kind =
        where(MASK.load({batch, head, m / (c.MASK_BM / c.BM), n / (c.MASK_BN / c.BN)}) != 0, kind, int(kHiddenBlock));
  KINDS.store({batch, head, m, n}, kind);
}

/// MEANS [B, Hkv, Nb, D] f32 of the rows of each block of K [B, Hkv, Sk, D]. Grid {Nb, Hkv, B}.
template <class T>
void attention_block_means_program(const AttentionListsConfig& c, Tensor<const T, 4> K, Tensor<float, 4> MEANS) {
  num_warps(c.warps);
  auto n = program_id(0), head = program_id(1), batch = program_id(2);
  auto rows = min(K.dim(2) - n * c.BN, c.BN);
  auto k = cast(K.load({batch, head, n * c.BN, 0}, {c.BN, c.D}), f32);
  MEANS.store({batch, head, n, 0}, sum(k, axis(0)) / cast(rows, f32));
}

/// SCORES [B, Hq, Mb, Nb] f32: sign times the product of the means of each block of Q [B, Hq, Sq, D] and of K. Grid
/// {Mb, Hq, B}.
template <class T>
void attention_pooled_scores_program(const AttentionListsConfig& c, Tensor<const T, 4> Q, Tensor<const float, 4> MEANS,
                                     Tensor<float, 4> SCORES, F32 sign) {
  num_warps(c.warps);
  const int together = 16;
  auto m = program_id(0), head = program_id(1), batch = program_id(2);
  auto kv_head = head / (Q.dim(1) / MEANS.dim(1));
  auto rows = min(Q.dim(2) - m * c.BM, c.BM);
  auto q = sum(cast(Q.load({batch, head, m * c.BM, 0}, {c.BM, c.D}), f32), axis(0)) * (sign / cast(rows, f32));
  for (auto n0 : range(0, MEANS.dim(2), together)) {
    auto k = MEANS.load({batch, kv_head, n0, 0}, {together, c.D});
    SCORES.store({batch, head, m, n0}, reshape(sum(k * q, axis(1)), {together}));
  }
}

/// Step 2: of the blocks KINDS [B, Hq, Mb, Nb] does not hide, the `k` with the highest SCORES stay in every row, of
/// equal ones the first. A score that is not a number counts as the highest: such a block must show in the result. Grid
/// {Mb, Hq, B}.
inline void attention_top_blocks_program(const AttentionListsConfig& c, Tensor<const float, 4> SCORES,
                                         Tensor<int32_t, 4> KINDS, I32 k) {
  num_warps(c.warps);
  auto m = program_id(0), head = program_id(1), batch = program_id(2);
  const Tile at = arange(0, c.WIDTH);
  const Tile kind = KINDS.load({batch, head, m, 0}, {c.WIDTH});
  Tile s = SCORES.load({batch, head, m, 0}, {c.WIDTH});
  s = where(kind == int(kHiddenBlock), -INFINITY, where(s != s, INFINITY, s));
  Tile kept = full({c.WIDTH}, int(kHiddenBlock), i32);
  for (auto _ : range(0, k)) {
    const Tile best = (at == argmax(s, axis(0))) & (s > -INFINITY);
    kept = where(best, kind, kept);
    s = where(best, -INFINITY, s);
  }
  KINDS.store({batch, head, m, 0}, kept);
}

/// Step 3: COUNTS [B', H', Mb] and BLOCKS [B', H', Mb, Nb] of the partial and of the full blocks of KINDS, ascending;
/// what BLOCKS has behind the count is not written. Grid {Mb, H', B'}.
inline void attention_lists_program(const AttentionListsConfig& c, Tensor<const int32_t, 4> KINDS,
                                    Tensor<int32_t, 3> PARTIAL_COUNTS, Tensor<int32_t, 4> PARTIAL_BLOCKS,
                                    Tensor<int32_t, 3> FULL_COUNTS, Tensor<int32_t, 4> FULL_BLOCKS) {
  num_warps(c.warps);
  auto m = program_id(0), head = program_id(1), batch = program_id(2);
  auto row = [&](const Tensor<int32_t, 4>& t) {
    return t.ptr() + cast(batch, i64) * t.stride(0) + cast(head, i64) * t.stride(1) + cast(m, i64) * t.stride(2);
  };
  auto append = [&](const Tile& here, const Tile& n0, const Tensor<int32_t, 4>& blocks, Tile& count) {
    const Tile one = where(here, 1, 0), place = count + cumsum(one, axis(0)) - 1;
    store(row(blocks) + cast(place, i64) * blocks.stride(3), n0 + arange(0, c.WIDTH), {.mask = here});
    count += sum(one, axis(0));
  };
  Tile partial = zeros({1}, i32), whole = zeros({1}, i32);
  for (auto n0 : range(0, KINDS.dim(3), c.WIDTH)) {
    const Tile kind = KINDS.load({batch, head, m, n0}, {c.WIDTH});
    append(kind == int(kPartialBlock), n0, PARTIAL_BLOCKS, partial);
    append(kind == int(kFullBlock), n0, FULL_BLOCKS, whole);
  }
  PARTIAL_COUNTS.store({batch, head, m}, partial);
  FULL_COUNTS.store({batch, head, m}, whole);
}

/// Step 1 with a callable of the caller's on visibility (see parts/attention_scores.h); keep the result.
template <class MaskMod = NoMaskMod>
auto make_attention_block_kinds_kernel(const char* name, MaskMod mask_mod = {}) {
  return kernel(name,
                [mask_mod](const AttentionListsConfig& c, Tensor<int32_t, 4> KINDS, Tensor<const int32_t, 4> MASK,
                           I32 sq, I32 sk, I32 left,
                           I32 right) { attention_block_kinds_program(c, mask_mod, KINDS, MASK, sq, sk, left, right); })
      .grid([](const AttentionListsConfig&, const auto& kinds, const auto&...) {
        return Grid{kinds.shape[3], kinds.shape[2], kinds.shape[0] * kinds.shape[1]};
      });
}
inline const auto& attention_block_kinds_kernel() {
  static const auto k = make_attention_block_kinds_kernel("attention_block_kinds");
  return k;
}
namespace detail {
/// One program for each row of blocks of a [B, H, rows, ...] tensor.
template <class T>
Grid block_row_grid(const TensorView<T, 4>& t) {
  return Grid{t.shape[2], t.shape[1], t.shape[0]};
}
}  // namespace detail
template <class T>
const auto& attention_block_means_kernel() {
  static const auto k = kernel(typed_name("attention_block_means", dtype_of<T>()), attention_block_means_program<T>)
                            .grid([](const AttentionListsConfig&, const auto&, const auto& means) {
                              return detail::block_row_grid(means);
                            });
  return k;
}
template <class T>
const auto& attention_pooled_scores_kernel() {
  static const auto k = kernel(typed_name("attention_pooled_scores", dtype_of<T>()), attention_pooled_scores_program<T>)
                            .grid([](const AttentionListsConfig&, const auto&, const auto&, const auto& scores, float) {
                              return detail::block_row_grid(scores);
                            });
  return k;
}
inline const auto& attention_top_blocks_kernel() {
  static const auto k = kernel("attention_top_blocks", attention_top_blocks_program)
                            .grid([](const AttentionListsConfig&, const auto& scores, const auto&, int) {
                              return detail::block_row_grid(scores);
                            });
  return k;
}
inline const auto& attention_lists_kernel() {
  static const auto k = kernel("attention_lists", attention_lists_program)
                            .grid([](const AttentionListsConfig&, const auto& kinds, const auto&...) {
                              return detail::block_row_grid(kinds);
                            });
  return k;
}

/// Step 1 with `k` (from make_attention_block_kinds_kernel) for sq queries and sk keys. MASK without data: no mask of
/// blocks; else the config says the size of its blocks. `left` and `right` are read where the config has that side.
template <class K_>
Status attention_block_kinds(const K_& k, StreamAt stream, TensorView<int32_t, 4> KINDS,
                             TensorView<const int32_t, 4> MASK, int64_t sq, int64_t sk, int left, int right,
                             const AttentionListsConfig& c) {
  ShapeCheck check("attention_block_kinds");
  check
      .shape("KINDS", KINDS, {-1, -1, cdiv<int64_t>(sq, c.BM), cdiv<int64_t>(sk, c.BN)},
             "[B or 1, Hq or 1, ceil(Sq/BM), ceil(Sk/BN)]")
      .require(!MASK.data == !c.MASK_BM && !c.MASK_BM == !c.MASK_BN,
               "MASK, MASK_BM and MASK_BN are to be given together, found MASK_BM = {}, MASK_BN = {}", c.MASK_BM,
               c.MASK_BN)
      .require(c.MASK_BM % c.BM == 0 && c.MASK_BN % c.BN == 0,
               "blocks of the mask ({} x {}) must be multiples of the tile ({} x {})", c.MASK_BM, c.MASK_BN, c.BM,
               c.BN);
  if (!check.ok()) return stream.refuse(check.error());
  if (MASK.data) {
    stretch(MASK, {KINDS.shape[0], KINDS.shape[1], -1, -1});
    check.shape("MASK", MASK,
                {KINDS.shape[0], KINDS.shape[1], cdiv<int64_t>(sq, c.MASK_BM), cdiv<int64_t>(sk, c.MASK_BN)},
                "[B', H', ceil(Sq/MASK_BM), ceil(Sk/MASK_BN)]");
    if (!check.ok()) return stream.refuse(check.error());
  }
  const int far = static_cast<int>(sq + sk);  // a limit no pair reaches is one that does not overflow either
  return k.try_call(stream, c, KINDS, detail::or_unused(MASK, KINDS.data), static_cast<int>(sq), static_cast<int>(sk),
                    std::min(left, far), std::min(right, far));
}

/// Step 2: keeps the `k` blocks of every row of KINDS [B, Hq, Mb, Nb] whose pooled scores are highest. Scratch: MEANS
/// [B, Hkv, Nb, D] and SCORES [B, Hq, Mb, Nb]. Only the sign of `scale` matters.
template <class T>
Status attention_top_blocks(StreamAt stream, Input<T, 4> Q, Input<T, 4> K, TensorView<float, 4> MEANS,
                            TensorView<float, 4> SCORES, TensorView<int32_t, 4> KINDS, int k, float scale,
                            AttentionListsConfig c) {
  const int64_t mb = cdiv<int64_t>(Q.shape[2], c.BM), nb = cdiv<int64_t>(K.shape[2], c.BN);
  ShapeCheck check("attention_top_blocks");
  check.shape("K", K, {Q.shape[0], -1, -1, Q.shape[3]}, "[B, Hkv, Sk, D]")
      .require(K.shape[1] > 0 && Q.shape[1] % K.shape[1] == 0,
               "the {} query heads must be a multiple of the {} key heads", Q.shape[1], K.shape[1])
      .shape("MEANS", MEANS, {K.shape[0], K.shape[1], nb, K.shape[3]}, "[B, Hkv, ceil(Sk/BN), D]")
      .shape("SCORES", SCORES, {Q.shape[0], Q.shape[1], mb, nb}, "[B, Hq, ceil(Sq/BM), ceil(Sk/BN)]")
      .shape("KINDS", KINDS, {Q.shape[0], Q.shape[1], mb, nb}, "[B, Hq, ceil(Sq/BM), ceil(Sk/BN)]")
      .require(k >= 0, "k must not be negative, found {}", k);
  if (!check.ok()) return stream.refuse(check.error());
  c.D = round_up(K.shape[3], 16), c.WIDTH = std::max(16, power_of_two_above(nb));
  if (Status s = attention_block_means_kernel<T>().try_call(stream, c, K, MEANS); !s) return s;
  if (Status s = attention_pooled_scores_kernel<T>().try_call(stream, c, Q, TensorView<const float, 4>(MEANS), SCORES,
                                                              scale < 0 ? -1.f : 1.f);
      !s)
    return s;
  return attention_top_blocks_kernel().try_call(stream, c, TensorView<const float, 4>(SCORES), KINDS,
                                                static_cast<int>(std::min<int64_t>(k, nb)));
}

/// Lists of one call of attention: int32, B' and H' may be 1 for all.
template <class Int>
struct AttentionLists {
  TensorView<Int, 3> partial_counts;  ///< [B', H', Mb]
  TensorView<Int, 4> partial_blocks;  ///< [B', H', Mb, room]: indices of blocks of keys, any order, none twice
  TensorView<Int, 3> full_counts;
  TensorView<Int, 4> full_blocks;

  operator AttentionLists<const Int>() const requires(!std::is_const_v<Int>) {
    return {partial_counts, partial_blocks, full_counts, full_blocks};
  }
};

/// Stretches dims of 1 and checks the shapes of lists for `rows` = [B, H, rows of blocks]; `of` begins their names in
/// messages.
inline void complete_lists(ShapeCheck& check, const std::string& of, AttentionLists<const int32_t>& lists,
                           const std::array<int64_t, 3>& rows) {
  const auto [b, h, m] = rows;
  for (auto* counts : {&lists.partial_counts, &lists.full_counts}) stretch(*counts, {b, h, -1});
  for (auto* blocks : {&lists.partial_blocks, &lists.full_blocks}) stretch(*blocks, {b, h, -1, -1});
  check.shape((of + "partial_counts").c_str(), lists.partial_counts, {b, h, m}, "[B, H, rows of blocks]")
      .shape((of + "partial_blocks").c_str(), lists.partial_blocks, {b, h, m, -1}, "[B, H, rows of blocks, room]")
      .shape((of + "full_counts").c_str(), lists.full_counts, {b, h, m}, "[B, H, rows of blocks]")
      .shape((of + "full_blocks").c_str(), lists.full_blocks, {b, h, m, -1}, "[B, H, rows of blocks, room]");
}

/// Step 3. BLOCKS have the shape of KINDS. For lists by block of keys: KINDS.transposed().
inline Status attention_lists(StreamAt stream, TensorView<const int32_t, 4> KINDS, const AttentionLists<int32_t>& lists,
                              const AttentionListsConfig& c) {
  const auto [b, h, mb, nb] = KINDS.shape;
  ShapeCheck check("attention_lists");
  check.shape("partial_counts", lists.partial_counts, {b, h, mb}, "[B', H', Mb]")
      .shape("partial_blocks", lists.partial_blocks, {b, h, mb, nb}, "[B', H', Mb, Nb]")
      .shape("full_counts", lists.full_counts, {b, h, mb}, "[B', H', Mb]")
      .shape("full_blocks", lists.full_blocks, {b, h, mb, nb}, "[B', H', Mb, Nb]");
  if (!check.ok()) return stream.refuse(check.error());
  return attention_lists_kernel().try_call(stream, c, KINDS, lists.partial_counts, lists.partial_blocks,
                                           lists.full_counts, lists.full_blocks);
}

}  // namespace tile::kernels
