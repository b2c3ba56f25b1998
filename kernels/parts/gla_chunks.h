// gla_chunks.h - what the chunked kernels of gated linear attention share: which rows a program works on (whole batches
// or sequences packed one behind the other), and decays between rows of a chunk that never need a positive exponent.
#pragma once
#include "kernels/parts/online_softmax.h"
#include "kernels/parts/shapes.h"

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

/// Sums of log decays between rows of a chunk, as products with matrices of zeros and ones: what is exact in them costs
/// the matrix units nothing, and every sum has the layout of the product it is used in.
///
/// Pairs of rows t > u are split by the highest bit in which t and u differ. At level s (a power of two) t is in the
/// upper half of a block of 2 s rows and u in its lower half; the decay from u to t is the decay from u to the end of
/// the lower half times the decay from the start of the upper half to t. Both are powers of two with exponents <= 0, so
/// the scores of one level are one product of decayed queries and decayed keys, whatever the gates.
class GlaDecays {
 public:
  GlaDecays(int rows, DType type) : type_(type), t_(arange(0, rows).col()), u_(arange(0, rows).row()) {}

  /// Log decays (base 2) ready to be summed: f16 sums have errors of S 2^-12 in exponents of size S, less than rounding
  /// 2^-S to 16 bits makes. The bound keeps 0 * -inf out of the sums; 2 to the -60000 is 0 anyway.
  static Tile prepared(const Tile& g, DType type) { return cast(max(g * kLog2E, -60000.f), type); }

  /// Row t: from the start of the chunk through t.
  Tile from_start(const Tile& g) const { return dot(ones_where(u_ <= t_), g); }
  /// Row t: from behind t to the end of the chunk.
  Tile to_end(const Tile& g) const { return dot(ones_where(u_ > t_), g); }
  /// Upper rows t: from the start of their half through t. Lower rows u: from behind u to the end of their half.
  Tile at_level(const Tile& s, const Tile& g) const {
    auto middle = middle_of(t_, s);
    return dot(ones_where((u_ >= middle) ^ (u_ > t_)), g);  // middle <= u <= t or t < u < middle
  }
  /// The pairs of a level, the diagonal, and all pairs t >= u.
  Tile pairs(const Tile& s) const {
    auto middle = middle_of(t_, s);
    return (middle == middle_of(u_, s)) & (u_ < where(t_ >= middle, middle, 0));
  }
  Tile diagonal() const { return t_ == u_; }
  Tile causal() const { return u_ <= t_; }

 private:
  /// First row of the upper half of the block of 2 s rows around `row`. Conditions are written with it because it needs
  /// no registers for pairs: the matrices are computed where they are used.
  static Tile middle_of(const Tile& row, const Tile& s) { return (row & -s) | s; }
  Tile ones_where(const Tile& condition) const { return cast(where(condition, 1.f, 0.f), type_); }
  DType type_;
  Tile t_, u_;
};

/// Type in which log decays are summed by products.
template <class T>
constexpr DType gate_type() {
  return dtype_of<T>() == f32 ? f32 : f16;
}

}  // namespace detail
}  // namespace tile::kernels
