// gla_state.h - the state of gated linear attention that walks from chunk to chunk, on chip, and what rows of the
// chunks get from it and from each other.
#pragma once
#include "gla_chunks.h"

namespace tile::kernels::detail {

/// Decays of a chunk from its start through a row, as powers of 2, where they can be inverted.
class GlaChunkDecays {
  static constexpr int kRows = GlaDecays::kRows;

 public:
  static constexpr float kMost = 96;  ///< log2 of decays that are inverted: f32 and bf16 have 126

  /// `g`: log of the gates, [rows, channels]. Here warps meet: all learn the gates of all blocks.
  GlaChunkDecays(const Tile& g, int rows, int channels)
      : blocks_(rows / kRows), channels_(channels), gates_(reshape(g, {blocks_, kRows, channels})) {
    const Tile sums = reshape(sum(gates_, axis(1)), {blocks_, channels_}) * kLog2E;
    const Tile block = reshape(arange(0, blocks_), {blocks_, 1, 1});
    Tile all = zeros({1, 1, channels_}, f32);
    for (int n = 0; n < blocks_; ++n) {
      before_ = n == 0 ? broadcast_to(all, {blocks_, 1, channels_}) : Tile(where(block == n, all, before_));
      all += reshape(extract(sums, {n, 0}, {1, channels_}), {1, 1, channels_});
    }
    chunk_ = reshape(all, {channels_});
    least = min(sums) * static_cast<float>(blocks_);
  }
  Tile least;  ///< no decay of the chunk is less than 2^this
  Tile is_mild() const { return least >= -kMost; }
  const Tile& chunk() const { return chunk_; }  ///< that of all rows, [channels]
  /// Those of the rows, and by `more`, [channels]; [rows / kRows, kRows, channels].
  Tile within(const Tile& more) const {
    return fma(cumsum(gates_, axis(1)), Tile(kLog2E), before_ + reshape(more, {1, 1, channels_}));
  }
  /// Rows x, [rows, channels], times 2^power (within); f32.
  Tile times(const Tile& x, const Tile& power) const {
    return reshape(exp2(power), {blocks_ * kRows, channels_}) * cast(x, f32);
  }
  /// A copy, for the branch of chunks that are not mild: read in both branches, x would be in registers under the
  /// layout of that branch's products on either way.
  Tile own(const Tile& x) const { return cast(cast(x, f32) * cast(least < -kMost, f32), x.dtype()); }

 private:
  int blocks_, channels_;
  Tile gates_, before_, chunk_;
};

/// S [K, V] (turned: [V, K]) walks forward: a chunk's rows get q_t S decayed to t, and the scores times v; S gets
/// k_u v_u^T decayed to the chunk's end. In reverse, from the last chunk to the first, keys and queries change places.
///
/// With `mild` (forward only) chunks choose. Where the decays since some row before are numbers that neither vanish
/// nor, inverted, overflow, queries are multiplied by them, and keys by their inverse: these then meet in one product,
/// whatever their distance, and a state that is held without those decays is never decayed. Where they grow too small
/// the state takes them, and counting begins again. Where those of one chunk are too small, levels (GlaChunk) do its
/// work, which never invert. For types with the exponents of f32, and keys below 2^(126 - kMost) in magnitude.
template <class T>
class GlaState {
 public:
  Tile held;   ///< what walks
  Tile decay;  ///< of the last chunk, [K]; without `mild`

  GlaState(const GlaChunkConfig& c, const Tile& start, bool reverse)
      : held(gla_is_turned(c) ? trans(start) : start),
        c_(c),
        turned_(gla_is_turned(c)),
        reverse_(reverse),
        mild_(c.mild && !reverse),
        pending_(zeros({c.BK}, f32)),
        since_(cast(Tile(0), f32)) {}

  /// Takes the decays it is held without.
  void settle() {
    if (!mild_) return;
    multiply(exp2(pending_));
    pending_ = zeros({c_.BK}, f32), since_ = cast(Tile(0), f32);
  }
  /// [K, V]
  Tile value() const { return turned_ ? trans(held) : held; }

  /// Takes a chunk; what its rows get, [BT, V] (turned: [V, BT]) f32. `v`: values, in reverse the gradients of o.
  /// `before` gets the state before the chunk, of type T, [K, V], where its products read it; without `mild`.
  template <class Before>
  Tile step(const Tile& q, const Tile& k, const Tile& g, const Tile& v, const Tile& scale, Before before) {
    if (!mild_) return by_levels(q, k, g, v, scale, before);
    const GlaChunkDecays decays(g, c_.BT, c_.BK);
    const Tile is_mild = decays.is_mild();
    if_(is_mild & (since_ + decays.least < -decays.kMost), [&] { settle(); });
    Tile rows = zeros({c_.BT, c_.BV}, f32);
    if (turned_) rows = trans(rows);
    if_(
        is_mild, [&] { rows = at_once(q, k, v, decays, scale); },
        [&] { rows = by_levels(decays.own(q), decays.own(k), g, v, scale, before); });
    return rows;
  }
  Tile step(const Tile& q, const Tile& k, const Tile& g, const Tile& v, const Tile& scale) {
    return step(q, k, g, v, scale, [](const Tile&) {});
  }

 private:
  Tile at_once(const Tile& q, const Tile& k, const Tile& v, const GlaChunkDecays& decays, const Tile& scale) {
    const Tile power = decays.within(pending_);
    const Tile q_g = cast(decays.times(q, power) * scale, dtype_of<T>());
    const Tile k_g = cast(decays.times(k, -power), dtype_of<T>());
    pending_ += decays.chunk(), since_ += decays.least;
    Tile rows = across(q_g, cast(held, dtype_of<T>()));
    // What pairs a query with a key behind it may be infinite: it is chosen against, never multiplied.
    const Tile scores = gla_pairs_of<T>(dot(q_g, trans(k_g)), c_.BT);
    add(k_g, v);
    inside(scores, v, rows);
    return rows;
  }
  template <class Before>
  Tile by_levels(const Tile& q, const Tile& k, const Tile& g, const Tile& v, const Tile& scale, Before before) {
    GlaChunk<T> x(q, k, g, c_.BT, c_.BK, c_.warps);
    const auto levels = x.levels();
    const Tile q_g = x.queries(scale), k_g = x.keys();
    decay = x.decay();
    settle();
    // What stands between the products has its place: nothing is held in registers longer than it must.
    const auto products = x.products(levels);
    const Tile now = cast(held, dtype_of<T>());
    before(turned_ ? trans(now) : now);
    Tile rows = across(reverse_ ? k_g : q_g, now);
    const Tile scores = gla_pairs_of<T>(x.joined(x.near(), x.far(products), c_.BT) * scale, c_.BT);
    multiply(decay);
    add(reverse_ ? q_g : k_g, v);
    inside(reverse_ ? trans(scores) : scores, v, rows);
    return rows;
  }
  void multiply(const Tile& decays) { held = held * (turned_ ? trans(decays.col()) : decays.col()); }
  Tile across(const Tile& meets, const Tile& now) const { return turned_ ? dot(now, trans(meets)) : dot(meets, now); }
  void add(const Tile& comes, const Tile& v) {
    held = turned_ ? dot(trans(v), comes, held) : dot(trans(comes), v, held);
  }
  void inside(const Tile& scores, const Tile& v, Tile& rows) const {
    rows = turned_ ? dot(trans(v), trans(scores), rows) : dot(scores, v, rows);
  }

  const GlaChunkConfig& c_;
  bool turned_, reverse_, mild_;
  Tile pending_;  ///< log2 of the decays that the state is held without, [K]
  Tile since_;    ///< none of them is less than this
};

}  // namespace tile::kernels::detail
