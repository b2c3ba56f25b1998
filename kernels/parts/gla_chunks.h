// gla_chunks.h - what the chunked kernels of gated linear attention share: which rows a program works on (whole batches
// or sequences packed one behind the other), and decays between rows of a chunk that never need a positive exponent.
#pragma once
#include <bit>

#include "online_softmax.h"
#include "shapes.h"

namespace tile::kernels {

struct GlaChunkConfig {
  int BT = 64;            ///< rows of a chunk, a power of two from 16 to 128
  int BK = 64, BV = 64;   ///< channels of K and V a program holds at a time, multiples of 16
  bool one_block = true;  ///< K <= BK: no loop over blocks of K
  int segment = 0;        ///< chunks a program walks through, 0: the whole sequence
  bool reverse = false;   ///< from the last chunk to the first (gradients of the states)
  bool initial_state = false, final_state = false, total_decay = false, chunk_states = false;
  bool varlen = false;  ///< B = 1; sequence n is rows [cu_seqlens[n], cu_seqlens[n + 1])
  int stages = 2;
  int warps = 4;
  bool roles = false;  ///< blocks of K come by a producer of their own, which runs ahead from chunk to chunk
  int programs = 0;  ///< that a multiprocessor shall run at a time, 0: no matter
};

namespace detail {

/// The sequence and head of a program. Chunks are numbered through all sequences without two sharing a number; with
/// packed sequences some numbers stay unused.
class GlaSpan {
  bool varlen_;

 public:
  Tile batch, head, sequence;  ///< batch and head index q, k, v, g, o; the sequence indexes states
  Tile start, length;          ///< rows of the sequence
  Tile first_chunk;

  /// `index` counts sequence * heads + head, `rows` is the dim L.
  GlaSpan(bool varlen, int bt, const Tile& index, const Tile& heads, const Tile& rows,
          const Tensor<const int32_t, 1>& cu_seqlens)
      : varlen_(varlen),
        batch(varlen ? Tile(0) : Tile(index / heads)),
        head(index % heads),
        sequence(index / heads),
        start(varlen ? cu_seqlens.load({sequence}) : Tile(0)),
        length(varlen ? Tile(cu_seqlens.load({sequence + 1}) - start) : Tile(rows)),
        first_chunk(varlen ? Tile(start / bt + sequence) : Tile(sequence * cdiv(rows, bt))) {}

  /// The tensor [B, H, L, D] with only the rows of this sequence, numbered from 0.
  template <class T>
  Tensor<T, 4> rows(const Tensor<T, 4>& tensor) const {
    if (!varlen_) return tensor;
    auto first = tensor.ptr() + cast(start, i64) * tensor.stride(2);
    return make_view<T, 4>(first, {tensor.dim64(0), tensor.dim64(1), cast(length, i64), tensor.dim64(3)},
                           {tensor.stride(0), tensor.stride(1), tensor.stride(2), tensor.stride(3)});
  }
};

/// Queries and keys of a chunk, decayed inside blocks of rows that double with every step: a query of row t by the
/// decays from the start of its block through t, a key of row u by those from behind u to the end of its block. Decays
/// are multiplied (numbers in [0, 1]), never divided or taken from exponents of differences: nothing can overflow,
/// whatever the gates, and a gate of -inf is 0 and no NaN.
///
/// Pairs of rows t > u are split by the highest bit in which t and u differ. At level s (a power of two) t is in the
/// upper half of a block of 2 s rows and u in its lower half; the decay from u to t is the decay from u to the end of
/// the lower half times the decay from the start of the upper half to t. So the scores of one level are one product, of
/// the tile that has decayed queries in upper halves and decayed keys in lower ones with its own transpose.
class GlaDecayed {
 public:
  /// q, k and the natural logs g of the rows' decays: f32 [rows, channels]. Blocks of one row. Queries are multiplied
  /// by `scale` when one block is left.
  GlaDecayed(const Tile& q, const Tile& k, const Tile& g, const Tile& scale, int rows, int channels)
      : rows_(rows), channels_(channels), scale_(scale), total_(exp2(g * kLog2E)), q_(q * total_), k_(k) {}

  const Tile& queries() const { return q_; }
  const Tile& keys() const { return k_; }
  /// Queries in upper halves of blocks of twice the size, keys in lower ones.
  Tile level() const { return where((arange(0, rows_).col() & block_) != 0, q_, k_); }
  /// Joins every two blocks.
  void merge() {
    const int s = block_, n = rows_ / (2 * s);
    const Tile halves = reshape(total_, {n, 2, channels_}), half = reshape(arange(0, 2), {1, 2, 1});
    auto [lower, upper] = reduce({where(half == 0, halves, 1.f), where(half == 1, halves, 1.f)}, axis(1),
                                 [](const Tile& a, const Tile& b, const Tile& c, const Tile& d) {
                                   return std::tuple(a * c, b * d);
                                 });
    // Factors [n, 2, 1, channels] of whole halves.
    auto factors = [&](int of, const Tile& factor) {
      return where(reshape(arange(0, 2), {1, 2, 1, 1}) == of, reshape(factor, {n, 1, 1, channels_}), 1.f);
    };
    auto times = [&](const Tile& x, const Tile& factor) {
      return reshape(reshape(x, {n, 2, s, channels_}) * factor, {rows_, channels_});
    };
    q_ = times(q_, n == 1 ? factors(1, lower) * scale_ : factors(1, lower));
    k_ = times(k_, factors(0, upper));
    total_ = reshape(lower * upper, {n, channels_});
    block_ = 2 * s;
  }

 private:
  int rows_, channels_, block_ = 1;
  Tile scale_, total_, q_, k_;
};

/// Decays inside blocks of rows that double with every step, as GlaDecayed has them, of tiles whose rows lie in
/// different threads: every row knows the decay of its whole block.
class GlaDecays {
 public:
  GlaDecays(const Tile& g, int rows, int channels)
      : rows_(rows), channels_(channels), total_(exp2(g * kLog2E)), start_(total_), end_(ones({rows, channels}, f32)) {}

  const Tile& from_start() const { return start_; }
  const Tile& to_end() const { return end_; }
  Tile upper() const { return (arange(0, rows_).col() & block_) != 0; }
  /// Upper rows: from the start of their half through them. Lower rows: from behind them to the end of their half.
  Tile level() const { return where(upper(), start_, end_); }
  void merge() {
    const Tile halves = reshape(total_, {rows_ / (2 * block_), 2, block_, channels_});
    const Tile other = reshape(flip(halves, axis(1)), {rows_, channels_});
    start_ = where(upper(), start_ * other, start_);
    end_ = where(upper(), end_, end_ * other);
    if (2 * block_ < rows_) total_ *= other;
    block_ *= 2;
  }

 private:
  int rows_, channels_, block_ = 1;
  Tile total_, start_, end_;
};

/// Pairs of rows of a chunk, in either order, whose numbers differ in bit `s` and in none above; 0: a row with itself.
inline Tile gla_pairs(int rows, int s) {
  auto t = arange(0, rows).col(), u = arange(0, rows).row();
  if (s == 0) return t == u;
  const int bit = std::countr_zero(static_cast<unsigned>(s));
  return ((t >> bit) ^ (u >> bit)) == 1;
}

/// Pairs of rows of a chunk inside one block of `block` rows, a power of two; of pairs that are not in one block of 8
/// rows only blocks of 8 and more tell. Blocks below 8 look at the last three bits alone, larger ones at the others:
/// many elements of a thread then share a comparison.
inline Tile gla_nested_block(int rows, int block) {
  auto t = arange(0, rows).col(), u = arange(0, rows).row();
  return block < 8 ? ((t ^ u) & 7) < block : ((t >> 3) ^ (u >> 3)) < block / 8;
}

}  // namespace detail
}  // namespace tile::kernels
