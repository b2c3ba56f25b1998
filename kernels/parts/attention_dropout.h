// attention_dropout.h - which weights of attention a training step drops: a function of the pair alone, so that forward,
// backward and the reference agree whatever their tiles.
//
// One counter of Philox 4x32 decides 16 pairs, a byte each: those whose queries and whose keys differ in bits 0 and 3 of
// their index only. Accumulators of tensor cores have bit 3 of both and bit 0 of the columns in one thread, so that in
// either orientation a thread uses half of what it makes, eight bytes. Seven rounds, as other libraries' dropout has them.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>

#include "../../dsl/random.h"
#include "attention_scores.h"

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
/// Elements whose index along a row is even come from `even`, the others from `odd`.
inline Tile interleave_bit0(const Tile& even, const Tile& odd) {
  const Shape half = even.shape();
  return reshape(join(even, odd), {half[0], 2 * half[1]});
}
}  // namespace detail

/// What weights that are kept are multiplied by where a fraction `p` of them is dropped: 1 / (1 - T / 256), T as below.
inline float dropout_scale(float p) {
  return 256.f / (256.f - std::min(std::floor(p * 256.f + 0.5f), 255.f));
}

/// What the row sums of O dO are multiplied by for backward, where f waits until gradients are stored.
inline float dropout_delta_factor(float p) { return p == 0 ? 1.f : -1.f / dropout_scale(p); }

/// Weights of one head. Pair (i, j) of query head h of sequence b is kept where byte 2 (i / 8 % 2) + j / 8 % 2, counted from
/// the lowest, of word 2 (i % 2) + j % 2 of
///   philox(counter = {i', j', b Hq + h, offset mod 2^32}, key = seed ^ (offset / 2^32) 2^32)
/// is at least T: i' = i / 16 * 4 + i % 8 / 2 is i without bits 0 and 3, j' likewise, and T is 256 p rounded, at most 255.
class AttentionDropout {
 public:
  /// Scalars: u64 seed and offset, f32 p in [0, 1).
  AttentionDropout(const Tile& seed, const Tile& offset, const Tile& p)
      : key0_(cast(seed, u32)),
        key1_(cast(seed >> 32, u32) ^ cast(offset >> 32, u32)),
        offset_(cast(offset, u32)),
        dropped_(min(cast(p * 256.f + 0.5f, u32), 255u)),
        scale_(256.f / (256.f - cast(dropped_, f32))) {}

  /// As dropout_scale.
  const Tile& scale() const { return scale_; }

  /// i1 [BM, BN] of queries m0 .. and keys n0 .. of the head; [BN, BM] where `transposed`. m0 and n0 are multiples of
  /// 16, and so are BM and BN. `heads`: query heads of a sequence.
  Tile kept(const AttentionConfig& c, const AttentionHead& at, const Tile& heads, const Tile& m0, const Tile& n0,
            bool transposed) const {
    static_check(c.BM % 16 == 0 && c.BN % 16 == 0, "dropout needs tiles of multiples of 16");
    const int rows = transposed ? c.BN : c.BM, columns = transposed ? c.BM : c.BN;
    // Without bit 3; the rows that differ in bit 0 only are in different threads, which make the same words.
    const Tile down = cast((transposed ? n0 : m0) / 2 + arange(0, rows / 2), u32).col();
    const Tile across = cast((transposed ? m0 : n0) / 4 + arange(0, columns / 4), u32).row();
    const Tile pair_of_rows = down >> 1;
    const auto words =
        philox(transposed ? across : pair_of_rows, transposed ? pair_of_rows : across,
               cast(at.batch * heads + at.head, u32), offset_, key0_, key1_, kRounds);
    const Tile is_odd = (down & 1u) == 1u, threshold = dropped_ << 24;
    const Shape shape{rows / 2, columns / 4};
    std::array<Tile, 2> word;  // of even and of odd columns
    for (size_t bit = 0; bit < 2; ++bit)
      word[bit] = transposed ? where(is_odd, words[2 * bit + 1], words[2 * bit])
                             : where(is_odd, words[2 + bit], words[bit]);
    auto keep = [&](int down3, int across3) {
      const int query = transposed ? across3 : down3, key = transposed ? down3 : across3;
      const int above = 24 - 8 * (2 * query + key);
      auto of = [&](const Tile& w) { return broadcast_to((above ? w << above : w) >= threshold, shape); };
      return detail::interleave_bit0(of(word[0]), of(word[1]));
    };
    return detail::interleave_bit3(detail::interleave_bit3(keep(0, 0), keep(0, 1), 1),
                                   detail::interleave_bit3(keep(1, 0), keep(1, 1), 1), 0);
  }

 private:
  static constexpr int kRounds = 7;
  Tile key0_, key1_, offset_, dropped_, scale_;
};

/// With config.dropout only.
inline std::optional<AttentionDropout> attention_dropout(const AttentionConfig& c, const Tile& seed, const Tile& offset,
                                                         const Tile& p) {
  if (!c.dropout) return std::nullopt;
  return AttentionDropout(seed, offset, p);
}

}  // namespace tile::kernels
