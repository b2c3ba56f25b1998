// attention_dropout.h - which weights of attention a training step drops: a function of the pair alone, so that forward,
// backward and the reference agree whatever their tiles.
//
// The mask of four pairs comes from one counter of Philox 4x32-10 (dsl/random.h): those whose queries and whose keys
// differ in bit 3 of their index only. Accumulators of tensor cores, and their transposes, have such four in one thread.
#pragma once
#include <optional>

#include "dsl/random.h"
#include "kernels/parts/attention_scores.h"

namespace tile::kernels {

namespace detail {
/// Along `axis`, elements whose index has bit 3 clear come from `clear`, the others from `set`, in their order.
inline Tile interleave_bit3(const Tile& clear, const Tile& set, int axis) {
  const Shape half = clear.shape();
  const int rows = static_cast<int>(half[0]), columns = static_cast<int>(half[1]);
  const Tile both = join(clear, set);  // [rows, columns, 2]
  if (axis == 1)
    return reshape(permute(reshape(both, {rows, columns / 8, 8, 2}), {0, 1, 3, 2}), {rows, 2 * columns});
  return reshape(permute(reshape(both, {rows / 8, 8, columns, 2}), {0, 3, 1, 2}), {2 * rows, columns});
}
}  // namespace detail

/// Weights of one head. Pair (i, j) of query head h of sequence b is kept where word 2 (i / 8 % 2) + j / 8 % 2 of
///   philox(counter = {i without bit 3, j without bit 3, b Hq + h, offset mod 2^32}, key = seed ^ (offset / 2^32) 2^32)
/// is at least p 2^32; without bit 3: bits above it move down by one.
class AttentionDropout {
 public:
  /// Scalars: u64 seed and offset, f32 p in [0, 1).
  AttentionDropout(const Tile& seed, const Tile& offset, const Tile& p)
      : key0_(cast(seed, u32)),
        key1_(cast(seed >> 32, u32) ^ cast(offset >> 32, u32)),
        offset_(cast(offset, u32)),
        threshold_(cast(p * 0x1p32f, u32)),
        scale_(1.f / (1.f - p)) {}

  /// What weights that are kept are multiplied by.
  const Tile& scale() const { return scale_; }

  /// i1 [BM, BN] of queries m0 .. and keys n0 .. of the head; [BN, BM] where `transposed`. m0 and n0 are multiples of
  /// 16, and so are BM and BN. `heads`: query heads of a sequence.
  Tile kept(const AttentionConfig& c, const AttentionHead& at, const Tile& heads, const Tile& m0, const Tile& n0,
            bool transposed) const {
    static_check(c.BM % 16 == 0 && c.BN % 16 == 0, "dropout needs tiles of multiples of 16");
    auto counters = [](const Tile& first, int count, bool down) {
      const Tile index = cast(first / 2 + arange(0, count / 2), u32);
      return down ? index.col() : index.row();
    };
    const int rows = transposed ? c.BN : c.BM, columns = transposed ? c.BM : c.BN;
    const auto words = philox(counters(m0, c.BM, !transposed), counters(n0, c.BN, transposed),
                              cast(at.batch * heads + at.head, u32), offset_, key0_, key1_);
    auto keep = [&](int down, int across) {
      const int query = transposed ? across : down, key = transposed ? down : across;
      return broadcast_to(words[static_cast<size_t>(2 * query + key)] >= threshold_, {rows / 2, columns / 2});
    };
    return detail::interleave_bit3(detail::interleave_bit3(keep(0, 0), keep(0, 1), 1),
                                   detail::interleave_bit3(keep(1, 0), keep(1, 1), 1), 0);
  }

 private:
  Tile key0_, key1_, offset_, threshold_, scale_;
};

/// With config.dropout only.
inline std::optional<AttentionDropout> attention_dropout(const AttentionConfig& c, const Tile& seed, const Tile& offset,
                                                         const Tile& p) {
  if (!c.dropout) return std::nullopt;
  return AttentionDropout(seed, offset, p);
}

}  // namespace tile::kernels
