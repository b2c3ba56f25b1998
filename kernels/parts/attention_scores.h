// attention_scores.h - from products q.k to the scores attention takes the softmax of, and which of them are visible.
// Shared by forward and backward, and by tiles of scores in either orientation: `rows` and `columns` are the indices of
// queries and keys, one a column of the tile and the other a row.
//
//   t = scale q.k        softcap: t = cap tanh(t / cap)      alibi: t -= slope |i + offset - j|      bias: t += bias
//   t = score_mod(t)     visible: j < Sk, the band around i + offset, mask_mod, a mask tensor
#pragma once
#include "attention_blocks.h"
#include "online_softmax.h"
#include "shapes.h"
#include "tile_order.h"

namespace tile::kernels {

struct AttentionConfig {
  int BM = 128, BN = 64;  ///< queries and keys per tile
  int D = 64, DV = 64;    ///< tile widths: head dims rounded up to a multiple of 16, columns past the end read as 0
  bool causal = false;    ///< query i sees key j where j <= i + Sk - Sq (the last query sees every key)
  bool top_left = false;  ///< the band starts in the top left corner: j <= i
  bool left = false;      ///< keys further back than window_left are not seen
  bool right = false;     ///< nor those further ahead than window_right; exclusive with causal
  bool softcap = false;
  bool alibi = false;
  bool bias = false;           ///< a tensor added to the scores or, with elements of u8, one that hides where it is 0
  bool varlen = false;         ///< sequences packed one behind the other
  bool descale = false;        ///< Q, K and V have factors, per head or one for all
  bool dropout = false;        ///< weights are dropped at random (attention_dropout.h)
  bool positive_scale = true;  ///< scale > 0, known at launch: it folds into the exponent's multiply-add
  bool tf32 = false;           ///< f32 only
  bool split = true;        ///< blocks that need no mask run in a loop of their own, made here and not by the compiler
  bool accumulate = false;  ///< backward: dQ is summed in memory, in no particular order
  int group = 0;            ///< backward: query heads per key head, 0 if only the launch knows
  bool dealt = false;       ///< with a right side: the last heads' tiles are dealt out in turns (tile_of_heads)
  bool turns = false;       ///< warpgroups take turns at the tensor cores
  int stages = 2;
  int warps = 4;

  /// The band has a right side.
  bool right_edge() const { return causal || right; }
  /// The tile of this program.
  HeadTile own_tile(const Tile& together) const {
    return dealt && right_edge() ? tile_of_heads(together) : tile_of_heads();
  }
};

/// Leaves scores and visibility as they are. Callables in its place get: the score t (f32), batch and query head (i32
/// scalars), indices i and j (i32, shapes that broadcast to the scores' one).
struct NoScoreMod {
  Tile operator()(const Tile& t, const Tile&, const Tile&, const Tile&, const Tile&) const { return t; }
};
struct NoMaskMod {};
/// For a score_mod's derivative d(score_mod)/dt at t: same arguments.
struct NoScoreGradient {};

template <class F, class None>
inline constexpr bool kGiven = !std::is_same_v<F, None>;

/// What all queries of one program and one head have in common.
struct AttentionHead {
  Tile batch, head, kv_head;
  Tile sq, sk;            ///< of this sequence
  Tile q_start, k_start;  ///< rows before it in the packed tensors; 0 without varlen
  Band<Tile> band;
  bool mask_rows = false;  ///< queries past the end of the sequence must not count
};

/// The head and sequence of a program. Q [B, Hq, Sq, D], K [B, Hkv, Sk, D]; packed: [1, H, total, D].
template <class TQ, class TK>
AttentionHead attention_head(const AttentionConfig& c, const Tensor<TQ, 4>& Q, const Tensor<TK, 4>& K,
                             const Tile& batch, const Tile& head, const Tile& kv_head,
                             const Tensor<const int32_t, 1>& cu_q, const Tensor<const int32_t, 1>& cu_k,
                             const Tile& left, const Tile& right) {
  const Tile none(0);
  const Tile q_start = c.varlen ? cu_q.load({batch}) : none, k_start = c.varlen ? cu_k.load({batch}) : none;
  const Tile sq = c.varlen ? cu_q.load({batch + 1}) - q_start : Q.dim(2),
             sk = c.varlen ? cu_k.load({batch + 1}) - k_start : K.dim(2);
  return {
      batch, head,    kv_head, sq,
      sk,    q_start, k_start, {c.top_left ? none : sk - sq, left, c.causal ? none : right, c.left, c.right_edge()}};
}

/// Scores of one head.
template <class TBias, class ScoreMod, class MaskMod>
class AttentionScores {
 public:
  static constexpr bool kHides = std::is_same_v<TBias, uint8_t>;  ///< the tensor is a mask and not added

  /// `scale` has the factors of Q and K in it. `slope` (of alibi) and `bias` are used where the config says so.
  AttentionScores(const AttentionConfig& c, const AttentionHead& h, const ScoreMod& score_mod, const MaskMod& mask_mod,
                  const Tile& scale, const Tile& softcap, const Tile& slope, const Tensor<const TBias, 4>& bias)
      : c_(c),
        h_(h),
        score_mod_(score_mod),
        mask_mod_(mask_mod),
        scale_(scale),
        softcap_(softcap),
        slope_(slope),
        bias_(bias),
        unit_(natural()   ? Tile(1.f)
              : c.softcap ? softcap
                          : scale) {}

  /// Tiles of scores are to be multiplied by it: t = unit * s. 1 where t is more than a multiple of something.
  const Tile& unit() const { return unit_; }
  /// t * log2 e may overflow where t does not: differences are to be taken first.
  bool wide() const { return adds(); }
  /// Inside the band, too, rows may have no visible key.
  bool has_holes() const { return c_.bias || kGiven<MaskMod, NoMaskMod> || kGiven<ScoreMod, NoScoreMod>; }

  struct Block {
    Tile s;      ///< -inf where invisible
    Tile slope;  ///< dt / d(scale q.k), where has_slope()
  };
  /// Products of queries m0 .. m0 + BM - 1 with keys n0 .. n0 + BN - 1, counted from the start of the sequence, to
  /// scores. `masked`: the block may reach outside the band or past the end. `transposed`: keys run down the tile.
  /// `whole` (an i1 scalar, for blocks that come from lists): where it is true, band and mask_mod hide nothing; keys
  /// past the end are hidden here unless config.split says that the keys end with a block.
  template <class ScoreGradient = NoScoreGradient>
  Block operator()(const Tile& products, const Tile& m0, const Tile& n0, bool masked, bool transposed = false,
                   const ScoreGradient& gradient = {}, const Tile* whole = nullptr) const {
    auto indices = [&](const Tile& first, int count, bool down) {
      return down ? (first + arange(0, count)).col() : (first + arange(0, count)).row();
    };
    const Tile rows = indices(m0, c_.BM, !transposed), columns = indices(n0, c_.BN, transposed);
    Tile s = products, slope = 1.f;
    if (c_.softcap) {
      s = tanh(s * (scale_ / softcap_));
      slope = fma(s, -s, 1.f);
    }
    if (natural()) {
      const Tile factor = c_.softcap ? softcap_ : scale_;
      if (c_.alibi && adds())
        s = fma(s, factor, fma(distance(rows, columns), -slope_, load_bias(m0, n0, transposed)));
      else if (c_.alibi)
        s = fma(distance(rows, columns), -slope_, s * factor);
      else if (adds())
        s = fma(s, factor, load_bias(m0, n0, transposed));
      else
        s *= factor;
      if constexpr (kGiven<ScoreGradient, NoScoreGradient>) {
        const Tile d = gradient(s, h_.batch, h_.head, rows, columns);
        slope = c_.softcap ? slope * d : d;
      }
      if constexpr (kGiven<ScoreMod, NoScoreMod>) s = score_mod_(s, h_.batch, h_.head, rows, columns);
    }
    auto hide = [&](const Tile& visible) { s = where(whole ? visible | *whole : visible, s, -INFINITY); };
    if (masked) hide(broadcast_to(in_band(rows, columns), s.shape()));
    if constexpr (kGiven<MaskMod, NoMaskMod>)
      hide(broadcast_to(mask_mod_(h_.batch, h_.head, rows, columns), s.shape()));
    if (whole && !c_.split) s = where(broadcast_to(columns < h_.sk, s.shape()), s, -INFINITY);
    if (c_.bias && kHides) s = where(load_bias(m0, n0, transposed) != 0, s, -INFINITY);
    return {s, slope};
  }
  template <class ScoreGradient = NoScoreGradient>
  bool has_slope() const {
    return c_.softcap || kGiven<ScoreGradient, NoScoreGradient>;
  }

 private:
  bool adds() const { return c_.bias && !kHides; }
  bool natural() const { return !c_.positive_scale || c_.alibi || adds() || kGiven<ScoreMod, NoScoreMod>; }

  Tile in_band(const Tile& rows, const Tile& columns) const {
    Tile visible = columns < h_.sk;
    if (h_.band.has_right) visible = visible & (columns <= rows + (h_.band.offset + h_.band.right));
    if (h_.band.has_left) visible = visible & (columns >= rows + (h_.band.offset - h_.band.left));
    if (h_.mask_rows) visible = visible & (rows < h_.sq);
    return visible;
  }
  /// |i + offset - j|; the difference of integers is exact where the product with a slope would not be.
  Tile distance(const Tile& rows, const Tile& columns) const {
    return abs(cast(rows + h_.band.offset, f32) - cast(columns, f32));
  }
  Tile load_bias(const Tile& m0, const Tile& n0, bool transposed) const {
    const Tile b = bias_.load({h_.batch, h_.head, m0, n0}, {c_.BM, c_.BN});
    const Tile turned = transposed ? trans(b) : b;
    return kHides ? turned : cast(turned, f32);
  }

  const AttentionConfig& c_;
  const AttentionHead& h_;
  const ScoreMod& score_mod_;
  const MaskMod& mask_mod_;
  Tile scale_, softcap_, slope_;
  const Tensor<const TBias, 4>& bias_;
  Tile unit_;
};

}  // namespace tile::kernels
