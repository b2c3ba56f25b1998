// gla_state.h - the state of gated linear attention that walks from chunk to chunk, on chip, and what rows of the chunks
// get from it and from each other.
#pragma once
#include "gla_chunks.h"

namespace tile::kernels::detail {

/// Decays of a chunk as powers of 2, where they can be inverted.
class GlaChunkDecays {
  static constexpr int kRows = GlaDecays::kRows;

 public:
  static constexpr float kMost = 96;  ///< log2 of decays that are inverted: f32 and bf16 have 126

  /// `reverse`: from behind a row to the chunk's end, else from its start through the row.
  GlaChunkDecays(const Tile& g, int rows, int channels, bool reverse)
      : blocks_(rows / kRows), channels_(channels), reverse_(reverse), gates_(reshape(g, {blocks_, kRows, channels})) {
    const Tile sums = reshape(sum(gates_, axis(1)), {blocks_, channels}) * kLog2E;
    // Here warps meet: all learn the gates of all blocks.
    const Tile block = reshape(arange(0, blocks_), {blocks_, 1, 1});
    Tile all = zeros({1, 1, channels}, f32);
    for (int n = 0; n < blocks_; ++n) {
      const int at = reverse ? blocks_ - 1 - n : n;
      before_ = n == 0 ? all : Tile(where(block == at, all, before_));
      all += reshape(extract(sums, {at, 0}, {1, channels}), {1, 1, channels});
    }
    chunk_ = reshape(all, {channels});
    least = min(sums) * static_cast<float>(blocks_);
  }
  Tile least;  ///< no decay of the chunk is less than 2^this
  Tile is_mild() const { return least >= -kMost; }
  const Tile& chunk() const { return chunk_; }  ///< that of all rows, [channels]
  /// Those of the rows, and by `more`, [channels]; [rows / kRows, kRows, channels].
  Tile within(const Tile& more) const {
    const Tile scanned = cumsum(gates_, axis(1), {.reverse = reverse_});
    return fma(reverse_ ? Tile(scanned - gates_) : scanned, Tile(kLog2E), before_ + reshape(more, {1, 1, channels_}));
  }

 private:
  int blocks_, channels_;
  bool reverse_;
  Tile gates_, before_, chunk_;
};

/// S [K, V] (turned: [V, K]) walks forward: a chunk's rows get q_t S decayed to t, and the scores times v; S gets
/// k_u v_u^T decayed to the chunk's end. In reverse, from the last chunk to the first, keys and queries change places.
///
/// With `mild` chunks choose. Where the decays since some row before are numbers that neither vanish nor, inverted,
/// overflow, rows that meet the state are multiplied by them, and rows that it gets by their inverse: these then meet in
/// one product, whatever their distance, and a state that is held without those decays is never decayed. Where they
/// grow too small the state takes them, and counting begins again. Where those of one chunk are too small, levels
/// (GlaChunk) do its work, which never invert. For types with the exponents of f32.
template <class T>
class GlaState {

 public:
  Tile held;   ///< what walks
  Tile decay;  ///< of the last chunk, [K]

  GlaState(const GlaChunkConfig& c, const Tile& start, bool reverse)
      : held(gla_is_turned(c) ? trans(start) : start),
        c_(c),
        turned_(gla_is_turned(c)),
        reverse_(reverse),
        pending_(zeros({c.BK}, f32)),
        since_(cast(Tile(0), f32)) {}

  /// Takes the decays it is held without.
  void settle() {
    if (!c_.mild) return;
    multiply(exp2(pending_));
    pending_ = zeros({c_.BK}, f32), since_ = cast(Tile(0), f32);
  }
  /// [K, V]
  Tile value() const { return turned_ ? trans(held) : held; }

  /// Takes a chunk; what its rows get, [BT, V] (turned: [V, BT]) f32. `v`: values, in reverse the gradients of o.
  Tile step(const Tile& q, const Tile& k, const Tile& g, const Tile& v, const Tile& scale) {
    Tile rows = zeros({c_.BT, c_.BV}, f32);
    if (turned_) rows = trans(rows);
    decay = zeros({c_.BK}, f32);
    if (!c_.mild) {
      by_levels(q, k, g, v, scale, rows);
      return rows;
    }
    const GlaChunkDecays decays(g, c_.BT, c_.BK, reverse_);
    const Tile mild = decays.is_mild();
    if_(mild & (since_ + decays.least < -decays.kMost), [&] { settle(); });
    if_(
        mild,
        [&] {
          const Tile power = decays.within(pending_);
          auto times = [&](const Tile& x, const Tile& by, bool scaled) {
            const Tile y = reshape(exp2(by), {c_.BT, c_.BK}) * cast(x, f32);
            return cast(scaled ? Tile(y * scale) : y, dtype_of<T>());
          };
          const Tile meets = times(reverse_ ? k : q, power, !reverse_);
          const Tile comes = times(reverse_ ? q : k, -power, reverse_);
          pending_ += decays.chunk(), since_ += decays.least;
          decay = exp2(decays.chunk());
          rows = across(meets);
          auto row = arange(0, c_.BT).col(), column = arange(0, c_.BT).row();
          const Tile is_pair = reverse_ ? Tile(column >= row) : Tile(column <= row);
          const Tile scores = cast(where(is_pair, dot(meets, trans(comes)), 0.f), dtype_of<T>());
          add(comes, v);
          inside(scores, v, rows);
        },
        [&] {
          // Of their own: read again under the layout of the products they would be in registers on either way.
          const Tile one = cast(decays.least < -decays.kMost, f32);
          auto own = [&](const Tile& x) { return cast(cast(x, f32) * one, dtype_of<T>()); };
          by_levels(own(q), own(k), g, v, scale, rows);
        });
    return rows;
  }

 private:
  void by_levels(const Tile& q, const Tile& k, const Tile& g, const Tile& v, const Tile& scale, Tile& rows) {
    GlaChunk<T> x(q, k, g, c_.BT, c_.BK, c_.warps);
    const auto levels = x.levels();
    const Tile q_g = x.queries(scale), k_g = x.keys();
    decay = x.decay();
    settle();
    // What stands between the products has its place: nothing is held in registers longer than it must.
    const auto products = x.products(levels);
    rows = across(reverse_ ? k_g : q_g);
    const Tile scores = x.scores(x.near(), x.far(products), c_.BT, scale);
    multiply(decay);
    add(reverse_ ? q_g : k_g, v);
    inside(reverse_ ? trans(scores) : scores, v, rows);
  }
  void multiply(const Tile& decays) { held = held * (turned_ ? trans(decays.col()) : decays.col()); }
  Tile across(const Tile& meets) const {
    const Tile now = cast(held, dtype_of<T>());
    return turned_ ? dot(now, trans(meets)) : dot(meets, now);
  }
  void add(const Tile& comes, const Tile& v) {
    held = turned_ ? dot(trans(v), comes, held) : dot(trans(comes), v, held);
  }
  void inside(const Tile& scores, const Tile& v, Tile& rows) const {
    rows = turned_ ? dot(trans(v), trans(scores), rows) : dot(scores, v, rows);
  }

  const GlaChunkConfig& c_;
  bool turned_, reverse_;
  Tile pending_;  ///< log2 of the decays that the state is held without, [K]
  Tile since_;    ///< none of them is less than this
};

}  // namespace tile::kernels::detail
