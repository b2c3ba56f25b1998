// attention_options.h - what a caller of attention may ask for beside the tensors, checked and turned into the flags of
// a config. Host side.
#pragma once
#include "attention_scores.h"

namespace tile::kernels {

/// TBias: f16, bf16 or f32 for a bias that is added to the scores, u8 for a mask that hides where it is 0.
template <class TBias = float>
struct AttentionOptions {
  float scale = 1;
  bool causal = false;  ///< query i sees key j where j <= i + Sk - Sq
  bool top_left =
      false;          ///< causal, window and alibi align the first query with the first key instead of last with last
  int left = -1;      ///< keys at most this far before the aligned one; -1: no limit
  int right = -1;     ///< and this far behind it
  float softcap = 0;  ///< t = softcap tanh(t / softcap); 0: none
  TensorView<const float, 2> slopes{};  ///< [B, Hq] or [1, Hq]: t -= slope |i + Sk - Sq - j|
  TensorView<const TBias, 4> bias{};    ///< [B or 1, Hq or 1, Sq, Sk]
  /// Packed sequences: Q [1, Hq, total, D] and so on; both have the same number of elements, sequences + 1.
  TensorView<const int32_t, 1> cu_q{}, cu_k{};
  int max_sq = 0, max_sk = 0;  ///< with cu_q: no sequence is longer (max_sk: backward)
  /// Factors of the elements of Q, K and V, [B or 1, H or 1]; all or none.
  TensorView<const float, 2> q_scale{}, k_scale{}, v_scale{};
  /// Weights are dropped with this probability, in [0, 1), rounded to a multiple p of 1/256 (at most 255/256), and the
  /// others multiplied by 1 / (1 - p); LSE is that of all weights. Which ones: a function of seed, offset, sequence, query head, query and key (attention_dropout.h).
  /// Backward takes what forward was given.
  float dropout = 0;
  uint64_t seed = 0, offset = 0;  ///< offset: a number of the call, to use a seed more than once
  /// Forward: values may be NaN or infinite where the mask hides them (0 * NaN is NaN otherwise); a query that sees one
  /// gives NaN. A second product in every block that the mask cuts. Chooses the kernel; those with callables are made
  /// with it.
  bool guard_values = false;
};

/// Sizes of one call, with the options' broadcast dims stretched.
template <class TBias>
struct AttentionProblem {
  AttentionOptions<TBias> options;
  int64_t b, hq, hkv, sq, sk, d, dv;  ///< as the tensors have them
  int64_t sequences;                  ///< b, or the packed ones
  bool both_sides = false;            ///< causal and a window to the right

  AttentionProblem(const AttentionOptions<TBias>& o, const std::array<int64_t, 4>& q, const std::array<int64_t, 4>& k,
                   const std::array<int64_t, 4>& v)
      : options(o),
        b(q[0]),
        hq(q[1]),
        hkv(k[1]),
        sq(q[2]),
        sk(k[2]),
        d(q[3]),
        dv(v[3]),
        sequences(o.cu_q.data ? o.cu_q.shape[0] - 1 : b) {
    // A limit no pair reaches is one that does not overflow either.
    const int64_t far = sq + sk;
    both_sides = o.causal && o.right > 0;
    options.left = static_cast<int>(std::min<int64_t>(o.left, far));
    options.right = static_cast<int>(std::min<int64_t>(o.right, far));
    stretch(options.slopes, {sequences, hq});
    stretch(options.bias, {sequences, hq, -1, -1});
    stretch(options.q_scale, {sequences, hq});
    stretch(options.k_scale, {sequences, hkv});
    stretch(options.v_scale, {sequences, hkv});
  }

  void complete(AttentionConfig& c) const {
    c.causal = options.causal || options.right == 0;
    c.top_left = options.top_left;
    c.left = options.left >= 0, c.right = options.right > 0 && !options.causal;
    c.softcap = options.softcap != 0;
    c.alibi = options.slopes.data, c.bias = options.bias.data;
    c.varlen = options.cu_q.data, c.descale = options.q_scale.data;
    c.dropout = options.dropout != 0;
    c.positive_scale = options.scale > 0;
  }

  template <class T>
  void check(ShapeCheck& check, const TensorView<const T, 4>& K, const TensorView<const T, 4>& V) const {
    const AttentionOptions<TBias>& o = options;
    check.shape("K", K, {b, -1, -1, d}, "[B, Hkv, Sk, D]")
        .shape("V", V, {b, hkv, sk, -1}, "[B, Hkv, Sk, Dv]")
        .require(hkv > 0 && hq % hkv == 0, "the {} query heads must be a multiple of the {} key heads", hq, hkv)
        .require(!both_sides, "causal is a window of 0 to the right, but right is {}", o.right)
        .require(o.softcap >= 0, "softcap must not be negative, found {}", o.softcap)
        .require(o.dropout >= 0 && o.dropout < 1, "dropout must be at least 0 and below 1, found {}", o.dropout)
        .require(!o.cu_q.data == !o.cu_k.data, "cu_q and cu_k are to be given together");
    if (o.slopes.data) check.shape("slopes", o.slopes, {sequences, hq}, "[B, Hq]");
    if (o.bias.data)
      check.shape("bias", o.bias, {sequences, hq, o.cu_q.data ? o.max_sq : sq, o.cu_q.data ? -1 : sk},
                  "[B, Hq, Sq, Sk]");
    if (o.cu_q.data)
      check.shape("cu_k", o.cu_k, {sequences + 1}, "[sequences + 1]")
          .require(b == 1, "packed sequences have batch 1 (the tensors are [1, H, total, D]), found {}", b)
          .require(o.max_sq > 0 || sq == 0, "packed sequences need max_sq, found {}", o.max_sq);
    check.require(!o.q_scale.data == !o.k_scale.data && !o.q_scale.data == !o.v_scale.data,
                  "q_scale, k_scale and v_scale are to be given together");
    if (o.q_scale.data && o.k_scale.data && o.v_scale.data)
      check.shape("q_scale", o.q_scale, {sequences, hq}, "[B, Hq]")
          .shape("k_scale", o.k_scale, {sequences, hkv}, "[B, Hkv]")
          .shape("v_scale", o.v_scale, {sequences, hkv}, "[B, Hkv]");
  }
  /// How many heads take turns (heads_together) in programs of blocks of queries, whose tiles share keys and values.
  int queries_together(const Stream& stream, const AttentionConfig& c, size_t element) const {
    const int64_t row = (d + dv) * static_cast<int64_t>(element);
    return heads_together(stream, cdiv<int64_t>(mean(sq), c.BM), mean(sk) * row);
  }
  /// And in backward's programs of blocks of keys, whose tiles share Q, dO and, if they add to them, the sums of dQ.
  int keys_together(const Stream& stream, const AttentionConfig& c, size_t element) const {
    const int64_t row = (d + dv) * static_cast<int64_t>(element) + (c.accumulate ? 4 * d : 0);
    return heads_together(stream, cdiv<int64_t>(mean(sk), c.BN), mean(sq) * row);
  }
  /// Rows of one sequence.
  int64_t mean(int64_t rows) const { return options.cu_q.data ? rows / std::max<int64_t>(sequences, 1) : rows; }
  void check_config(ShapeCheck& check, const AttentionConfig& c) const {
    check.require(c.D >= d && c.DV >= dv, "config.D = {}, DV = {} must cover head dims {} and {}", c.D, c.DV, d, dv);
  }
};

/// Grid over blocks of queries, query heads and sequences.
inline Grid attention_grid(const AttentionConfig& c, const std::array<int64_t, 4>& q, int64_t sequences,
                           int64_t max_sq) {
  return Grid{cdiv<int64_t>(c.varlen ? max_sq : q[2], c.BM), q[1], sequences};
}

}  // namespace tile::kernels
