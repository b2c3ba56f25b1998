// online_softmax.h - softmax over a row that arrives in blocks (Milakov and Gimelshein 2018), in base 2.
#pragma once
#include <cmath>
#include <numbers>

#include "../../dsl/tile.h"

namespace tile::kernels {

inline constexpr float kLog2E = std::numbers::log2e_v<float>, kLn2 = std::numbers::ln2_v<float>;

/// State of `rows` independent rows. With scores s and a factor c (scale * log2 e), after any number of updates
///   m = max of all s,  d = sum of 2^{c s - c m};  so  sum of e^{scale s} = d 2^{c m}.
struct OnlineSoftmax {
  Tile m, d;  ///< [rows, 1] f32

  explicit OnlineSoftmax(int rows) : m(full({rows, 1}, -INFINITY, f32)), d(zeros({rows, 1}, f32)) {}

  /// Adds a block of scores [rows, n] (f32) and returns its weights p = 2^{c s - c m}; what was accumulated with
  /// earlier weights must be multiplied by `rescale` ([rows, 1]). c must be positive. `guard` is needed where a row may
  /// have seen only -inf so far: without it -inf - (-inf) makes NaN. `wide`: c s may overflow where s does not. Weights
  /// (and with them d) are larger by 2^lift: for element types that are coarse near 0.
  Tile update(const Tile& scores, const Tile& c, Tile& rescale, bool guard, bool wide = false, int lift = 0) {
    const Tile m_next = max(m, max(scores, axis(1)));
    Tile p;
    if (wide) {
      const Tile reference = guard ? where(m_next == -INFINITY, 0.f, m_next) : m_next;
      rescale = exp2((m - reference) * c);
      p = exp2(lift ? fma(scores - reference, c, float(lift)) : (scores - reference) * c);
    } else {
      Tile reference = m_next * c;
      if (guard) reference = where(m_next == -INFINITY, 0.f, reference);
      rescale = exp2(fma(m, c, -reference));
      p = exp2(fma(scores, c, lift ? float(lift) - reference : -reference));  // one multiply-add, one exp2 each
    }
    d = fma(d, rescale, sum(p, axis(1)));
    m = m_next;
    return p;
  }
};

/// Combines the (maximum, sum) pairs of two parts of a row into the pair of both; associative and commutative, with
/// (-inf, 0) as identity, so pairs reduce in any tree. Natural base.
struct SoftmaxPair {
  Tile m, d;
};
inline SoftmaxPair combine(const SoftmaxPair& a, const SoftmaxPair& b) {
  auto m = max(a.m, b.m);
  auto safe = where(m == -INFINITY, 0.f, m);
  return {m, a.d * exp2((a.m - safe) * kLog2E) + b.d * exp2((b.m - safe) * kLog2E)};
}

}  // namespace tile::kernels
