// gla_chunks.h - what the chunked kernels of gated linear attention share: which rows a program works on (whole batches
// or sequences packed one behind the other), and decays between rows of a chunk that never need a positive exponent.
#pragma once
#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>
#include <vector>

#include "online_softmax.h"
#include "shapes.h"

namespace tile::kernels {

struct GlaChunkConfig {
  int BT = 64;            ///< rows of a chunk, a power of two from 16 to 128
  int BK = 64, BV = 64;   ///< channels of K and V a program holds at a time, multiples of 16
  bool one_block = true;  ///< K <= BK: no loop over blocks of K
  bool one_v = false;     ///< V <= BV: no loop over blocks of V
  int segment = 0;        ///< chunks a program walks through, 0: the whole sequence
  bool reverse = false;   ///< from the last chunk to the first (gradients of the states)
  bool initial_state = false, final_state = false, total_decay = false, chunk_states = false;
  bool varlen = false;  ///< B = 1; sequence n is rows [cu_seqlens[n], cu_seqlens[n + 1])
  int stages = 2;
  int warps = 4;
  bool roles = false;  ///< blocks of K come by a producer of their own, which runs ahead from chunk to chunk
  int programs = 0;    ///< that a multiprocessor shall run at a time, 0: no matter
  bool mild = false;   ///< chunks whose decays can be inverted take one product (parts/gla_state.h)
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

/// Chunks [first, last) of a segment of a sequence of `rows` rows; all of them where nothing is cut into segments.
inline std::pair<Tile, Tile> gla_segment_chunks(const GlaChunkConfig& c, const Tile& rows, const Tile& segment) {
  const Tile chunks = cdiv(rows, c.BT);
  if (!c.segment) return {Tile(0), chunks};
  const Tile first = segment * c.segment;
  return {first, min(first + c.segment, chunks)};
}

/// A program with a block of K and V of the state of one sequence and head. Those of a state are neighbours in
/// program_id(0): {sequences * H * ceil(K / BK) * ceil(V / BV)}.
struct GlaStateBlock {
  Tile v0, k0;  ///< first column and row
  GlaSpan at;

  /// `heads`, `rows`, `channels` and `columns` are H, L, K and V.
  GlaStateBlock(const GlaChunkConfig& c, const Tile& heads, const Tile& rows, const Tile& channels, const Tile& columns,
                const Tensor<const int32_t, 1>& cu_seqlens)
      : GlaStateBlock(c, program_id(0), heads, rows, cdiv(channels, c.BK), cdiv(columns, c.BV), cu_seqlens) {}

 private:
  GlaStateBlock(const GlaChunkConfig& c, const Tile& index, const Tile& heads, const Tile& rows, const Tile& k_blocks,
                const Tile& v_blocks, const Tensor<const int32_t, 1>& cu_seqlens)
      : v0(index % v_blocks * c.BV),
        k0(index / v_blocks % k_blocks * c.BK),
        at(c.varlen, c.BT, index / (v_blocks * k_blocks), heads, rows, cu_seqlens) {}
};

/// A program that walks through the chunks of a segment, of one sequence and head, with BV columns of V. The grid is
/// {sequences * H * ceil(V / BV), segments}.
struct GlaWalk {
  Tile v0;  ///< first column
  GlaSpan at;
  Tile first, last;  ///< chunks
  Tile state;        ///< number of the segment's state, which begins or ends there

  /// Ends programs of segments that their sequence does not have. `heads`, `rows` and `columns` are H, L and V.
  GlaWalk(const GlaChunkConfig& c, const Tile& heads, const Tile& rows, const Tile& columns,
          const Tensor<const int32_t, 1>& cu_seqlens)
      : v0(program_id(0) % cdiv(columns, c.BV) * c.BV),
        at(c.varlen, c.BT, program_id(0) / cdiv(columns, c.BV), heads, rows, cu_seqlens) {
    std::tie(first, last) = gla_segment_chunks(c, at.length, program_id(1));
    if (c.segment) return_if(first >= last);
    state = at.sequence * num_programs(1) + program_id(1);
  }
};

/// A walk holds its state transposed, [BV, BK]: where two warpgroups have 64 columns of V each, theirs are rows of all
/// products with the state, which is an operand in registers then (of K x V it would have to go to shared memory, and
/// warpgroups read each other's half of the keys, too: a quarter more of what bounds a walk).
inline bool gla_is_turned(const GlaChunkConfig& c) { return c.warps == 8 && c.BV == 128; }

/// Pairs of rows of a chunk inside one block of `block` rows, a power of two; of pairs that are not in one block of 8
/// rows only blocks of 8 and more tell. Blocks below 8 look at the last three bits alone, larger ones at the others:
/// many elements of a thread then share a comparison.
inline Tile gla_nested_block(int rows, int block) {
  auto t = arange(0, rows).col(), u = arange(0, rows).row();
  return block < 8 ? ((t ^ u) & 7) < block : ((t >> 3) ^ (u >> 3)) < block / 8;
}

/// Pairs of rows, in either order, whose numbers differ in bit `s` and in none above; 0: a row with itself.
inline Tile gla_pairs(int rows, int s) {
  auto t = arange(0, rows).col(), u = arange(0, rows).row();
  if (s == 0) return t == u;
  const int bit = std::countr_zero(static_cast<unsigned>(s));
  return ((t >> bit) ^ (u >> bit)) == 1;
}

/// Scores [rows, rows] of a query, its row, with keys at and before it; zeros for those behind it, whatever stood there.
/// Of type T.
template <class T>
Tile gla_pairs_of(const Tile& scores, int rows) {
  return cast(where(arange(0, rows).row() <= arange(0, rows).col(), scores, 0.f), dtype_of<T>());
}

/// Tiles [rows, channels] f32 decayed inside blocks of rows that double with every step: `up` by the decays from the
/// start of a row's block through the row, `down` by those from behind the row to the end of its block. Decays are
/// multiplied (numbers in [0, 1]), never divided or taken from exponents of differences: nothing can overflow, whatever
/// the gates, and a gate of -inf is 0 and no NaN.
///
/// Pairs of rows t > u are split by the highest bit in which t and u differ. At level s (a power of two) t is in the
/// upper half of a block of 2 s rows and u in its lower half; the decay from u to t is the decay from u to the end of
/// the lower half times the decay from the start of the upper half to t: what `level(s)` has of `down` in lower halves
/// and of `up` in upper ones.
///
/// Levels below kRows stay inside blocks that are the work of one warp each. Then warps meet: all learn the decays of
/// all blocks, and the other levels wait for nobody.
class GlaDecays {
 public:
  static constexpr int kRows = 16;

  /// `decays` are the rows' own, numbers in [0, 1]; `up` is decayed by them already.
  GlaDecays(const Tile& decays, const Tile& up, const Tile& down, int rows, int channels)
      : rows_(rows),
        channels_(channels),
        blocks_(rows / kRows),
        block_(reshape(arange(0, blocks_), {blocks_, 1, 1})),
        total_(decays),
        up_(up),
        down_(down) {}

  /// Whether a row is in an upper half at a level, [rows, 1].
  static Tile upper(int rows, int s) { return (arange(0, rows).col() & s) != 0; }
  Tile level(int s) const { return where(upper(rows_, s), up_, down_); }
  /// Joins every two blocks of s rows, s < kRows.
  void merge(int s) {
    const int n = rows_ / (2 * s);
    const Tile halves = reshape(total_, {n, 2, channels_}), half = reshape(arange(0, 2), {1, 2, 1});
    auto [lower, upper] =
        reduce({where(half == 0, halves, 1.f), where(half == 1, halves, 1.f)}, axis(1),
               [](const Tile& a, const Tile& b, const Tile& c, const Tile& d) { return std::tuple(a * c, b * d); });
    // Factors [n, 2, 1, channels] of whole halves.
    auto times = [&](const Tile& x, int of, const Tile& factor) {
      const Tile factors = where(reshape(arange(0, 2), {1, 2, 1, 1}) == of, reshape(factor, {n, 1, 1, channels_}), 1.f);
      return reshape(reshape(x, {n, 2, s, channels_}) * factors, {rows_, channels_});
    };
    up_ = times(up_, 1, lower);
    down_ = times(down_, 0, upper);
    total_ = reshape(lower * upper, {n, channels_});
  }

  /// Behind the merges. From here on tiles are [rows / kRows, kRows, channels].
  void meet() {
    for (int i = 0; i < blocks_; ++i)
      totals_.push_back(reshape(extract(total_, {i, 0}, {1, channels_}), {1, 1, channels_}));
    up_ = in_blocks(up_);
    down_ = in_blocks(down_);
  }
  Tile in_blocks(const Tile& x) const { return reshape(x, {blocks_, kRows, channels_}); }
  /// `half` and `2 half` blocks are the halves and blocks of a level: s = half * kRows.
  Tile upper_blocks(int half) const { return (block_ / half) % 2 != 0; }
  Tile level_of_blocks(int half) const {
    const Tile near = where(upper_blocks(half), up_, down_);
    return half == 1 ? near : Tile(near * by_block([&](int i) {
                                     const int first = i / (2 * half) * 2 * half, middle = first + half;
                                     return i >= middle ? product(middle, i) : product(i + 1, middle);
                                   }));
  }
  /// From the start of the chunk, times `scale`; to its end.
  Tile from_start(const Tile& scale) const {
    return up_ * (by_block([&](int i) { return product(0, i); }) * scale);
  }
  Tile from_start() const {
    return up_ * by_block([&](int i) { return product(0, i); });
  }
  Tile to_end() const {
    return down_ * by_block([&](int i) { return product(i + 1, blocks_); });
  }

 private:
  /// The decay of blocks [first, end).
  Tile product(int first, int end) const {
    if (first == end) return ones({1, 1, channels_}, f32);
    Tile all = totals_[first];
    for (int i = first + 1; i < end; ++i) all *= totals_[i];
    return all;
  }
  /// [blocks, 1, channels]: a factor for each block.
  template <class Of>
  Tile by_block(Of of) const {
    Tile all = of(blocks_ - 1);
    for (int i = blocks_ - 2; i >= 0; --i) all = where(block_ == i, of(i), all);
    return all;
  }

  int rows_, channels_, blocks_;
  Tile block_, total_, up_, down_;
  std::vector<Tile> totals_;  ///< of all blocks, [1, 1, channels]
};

/// The decays of each row of a chunk behind it to the chunk's end or, with `through`, from the chunk's start through
/// it.
class GlaRowDecays {
 public:
  GlaRowDecays(const Tile& g, int rows, int channels, bool through)
      : rows_(rows), channels_(channels), blocks_(rows / GlaDecays::kRows), through_(through) {
    // Decays of e^-180 are 0, and gates of -inf must not meet with two signs.
    constexpr float kMost = -180;
    // Blocks of rows are the work of one warp each.
    const Tile gates = reshape(max(g, kMost), {blocks_, GlaDecays::kRows, channels_});
    const Tile scanned = cumsum(gates, axis(1), {.reverse = !through});
    inside_ = through ? scanned : Tile(scanned - gates);
    totals_ = reshape(sum(gates, axis(1)), {blocks_, channels_});
  }

  /// Log2 of the decay of the chunk, [channels].
  Tile chunk() const { return reshape(sum(totals_, axis(0)), {channels_}) * kLog2E; }

  /// Rows x decayed, and by what `passed` holds, [channels]: the log2 of the decays of chunks between this one and
  /// where rows are decayed to. This one's come to them. Of type T.
  template <class T>
  Tile decayed(const Tile& x, Tile& passed) const {
    const Tile block = reshape(arange(0, blocks_), {blocks_, 1, 1});
    // Here warps meet: all learn the gates of all blocks.
    Tile before, all = reshape(passed, {1, 1, channels_});
    for (int n = 0; n < blocks_; ++n) {
      const int at = through_ ? n : blocks_ - 1 - n;
      before = n == 0 ? all : Tile(where(block == at, all, before));
      all += reshape(extract(totals_, {at, 0}, {1, channels_}), {1, 1, channels_}) * kLog2E;
    }
    passed = reshape(all, {channels_});
    const Tile weights = exp2(fma(inside_, Tile(kLog2E), before));
    return cast(reshape(weights, {rows_, channels_}) * cast(x, f32), dtype_of<T>());
  }

 private:
  int rows_, channels_, blocks_;
  bool through_;
  Tile inside_, totals_;
};

/// Queries and keys of a chunk and how they meet, [rows, channels]: a query of row t by the decays from the start of
/// the chunk through t, a key of row u by those from behind u to its end, and the products q_t.(k_u decayed to t), each
/// level (GlaDecays) one product: of the tile that has decayed queries in upper halves and decayed keys in lower ones
/// with its own transpose. Levels inside blocks of kRows rows are products of single warps, the others of whole
/// warpgroups.
template <class T>
class GlaChunk {
  static constexpr int kRows = GlaDecays::kRows;
  using Tiles = std::vector<Tile>;

 public:
  /// q and k of type T, g f32, the natural logs of the rows' decays. Warps multiply blocks of kRows rows, of all
  /// channels or, where there are more of them than blocks, of a part of them each.
  GlaChunk(const Tile& q, const Tile& k, const Tile& g, int rows, int channels, int warps)
      : rows_(rows),
        channels_(channels),
        blocks_(rows / kRows),
        parts_(std::gcd(std::max(1, warps / blocks_), channels / kRows)),
        decays_(decays_of(q, k, g, rows, channels)) {
    // The diagonal has no decay. Each level's product is right outside blocks of s rows, inside them lower levels know
    // better. While one runs the next one's rows are made.
    near_ = dot(for_warps(q), trans(for_warps(k)));
    for (int s = 1; s < kRows; s *= 2) {
      const Tile x = for_warps(cast(decays_.level(s), dtype_of<T>())), products = dot(x, trans(x));
      decays_.merge(s);
      near_ = where(reshape(gla_nested_block(kRows, s), {1, kRows, kRows}), near_, products);
    }
    // Here warps meet, once: blocks' own sums are made before.
    const Tile of_blocks = sum(reshape(g, {blocks_, kRows, channels_}), axis(1));
    if (parts_ > 1)
      near_ = reshape(sum(reshape(near_, {parts_, blocks_, kRows, kRows}), axis(0)), {blocks_, kRows, kRows});
    decays_.meet();
    // The decay of a chunk is multiplied into the state again and again: the sum's error is smaller than a product's.
    decay_ = exp2(reshape(sum(of_blocks, axis(0)), {channels_}) * kLog2E);
  }

  /// Of the whole chunk, [channels] f32.
  const Tile& decay() const { return decay_; }
  /// Decayed from the start of the chunk, times `scale`; of type T.
  Tile queries(const Tile& scale) const { return flat(decays_.from_start(scale)); }
  /// Decayed to the end of the chunk; of type T.
  Tile keys() const { return flat(decays_.to_end()); }
  /// What pairs of rows of different blocks are products of: all of them before the first product, so that one barrier
  /// serves all.
  Tiles levels() const {
    Tiles all;
    for (int half = 1; half < blocks_; half *= 2) all.push_back(flat(decays_.level_of_blocks(half)));
    return all;
  }
  /// Of pairs of rows of one block; what stands above the diagonal means nothing. [rows / kRows, kRows, kRows] f32.
  const Tile& near() const { return near_; }
  /// Their products: other work may stand between these and what is made of them.
  static Tiles products(const Tiles& levels) {
    Tiles all;
    for (const Tile& level : levels) all.push_back(dot(level, trans(level)));
    return all;
  }
  /// Of pairs of rows of different blocks, [rows, rows] f32.
  static Tile far(const Tiles& products) {
    if (products.empty()) return zeros({kRows, kRows}, f32);  // one block
    Tile all = products[0];
    const int rows = kRows << products.size();
    for (size_t i = 1; i < products.size(); ++i) all = where(gla_nested_block(rows, kRows << i), all, products[i]);
    return all;
  }
  /// Scores of all pairs, [rows, rows] f32; what stands above the diagonal means nothing.
  static Tile joined(const Tile& near, const Tile& far, int rows) {
    const int n = rows / kRows;
    const Tile own = reshape(broadcast_to(reshape(near, {n, kRows, 1, kRows}), {n, kRows, n, kRows}), {rows, rows});
    return n == 1 ? own : Tile(where(gla_nested_block(rows, kRows), own, far));
  }

 private:
  static GlaDecays decays_of(const Tile& q, const Tile& k, const Tile& g, int rows, int channels) {
    const Tile decays = exp2(g * kLog2E);
    return GlaDecays(decays, cast(q, f32) * decays, cast(k, f32), rows, channels);
  }
  Tile flat(const Tile& x) const { return reshape(cast(x, dtype_of<T>()), {rows_, channels_}); }
  Tile for_warps(const Tile& x) const {
    if (parts_ == 1) return decays_.in_blocks(x);
    const int each = channels_ / parts_;
    return reshape(permute(reshape(x, {blocks_, kRows, parts_, each}), {2, 0, 1, 3}), {parts_ * blocks_, kRows, each});
  }

  int rows_, channels_, blocks_, parts_;
  GlaDecays decays_;
  Tile near_, decay_;
};

}  // namespace detail
}  // namespace tile::kernels
