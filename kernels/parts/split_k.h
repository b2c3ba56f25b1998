// split_k.h - products whose sums over K are computed in parts, by programs of their own, where an output has too few
// tiles to keep all multiprocessors busy, or a last round of tiles would leave most of them idle.
//
// A launch has `whole` programs with a tile each, and behind them `splits` programs for every other tile. Those write
// their part to a workspace; a second kernel adds the parts of a tile in their order, with programs for the whole
// machine. (The last program of a tile to arrive adding them, in the same launch, was slower on an H200 except for two
// parts of long sums: one multiprocessor reads 3 parts of 128 x 192 in 26 thousand cycles.)
#pragma once
#include <numeric>

#include "shapes.h"

namespace tile::kernels {

/// How many of all tiles are computed whole and how many in parts: what fills whole rounds of the multiprocessors stays
/// whole. With splits = 1 nothing is split.
struct SplitCounts {
  int64_t whole = 0, split = 0;
  SplitCounts(int64_t tiles, int splits, int multiprocessors) : whole(tiles) {
    if (splits <= 1 || multiprocessors < 1) return;
    whole = tiles / multiprocessors * multiprocessors;
    split = tiles - whole;
  }
};

/// What a program computes: part `part` of the sum of tile `tile`, counted over all batches.
struct SplitPart {
  Tile tile, part;
  Tile slot;      ///< where it goes in PARTS [split tiles * splits, at most BM, BN]; meaningless for whole tiles
  Tile is_whole;  ///< the only part

  /// The part's share of `depth` in blocks of `block`: [begin, end).
  struct Range {
    Tile begin, end;
  };
  Range range(int splits, const Tile& depth, int block) const {
    auto share = where(is_whole, depth, cdiv(cdiv(depth, block), splits) * block);
    auto begin = part * share;
    return {begin, min(begin + share, depth)};
  }
};
inline SplitPart split_part(int splits, const Tile& whole) {
  auto program = program_id(0), slot = program - whole, behind = max(slot, 0);
  return {min(program, whole) + behind / splits, behind % splits, slot, program < whole};
}

/// Which block of which tile a program of the second kernel adds up: `rows` x `columns` of a tile of bm x bn, grid
/// {split tiles * blocks of a tile}.
struct SplitBlock {
  int rows, columns;
  int across;  ///< blocks side by side
  int per_tile;
  SplitBlock(int bm, int bn)
      : rows(std::gcd(bm, 32)), columns(std::gcd(bn, 128)), across(bn / columns), per_tile(across * (bm / rows)) {}

  /// The tile (counted from the first one split) and the block's first row and column in it.
  struct At {
    Tile tile, row, column;
  };
  At at() const {
    auto program = program_id(0), inside = program % per_tile;
    return {program / per_tile, inside / across * rows, inside % across * columns};
  }
  /// The sum of the block's parts, in order. PARTS [split tiles * splits, at most bm, bn].
  template <class Sum>
  Tile sum(const At& own, int splits, const Tensor<const Sum, 3>& PARTS) const {
    Tile total = PARTS.load({own.tile * splits, own.row, own.column}, {rows, columns});
    for (int s = 1; s < splits; ++s)
      total += PARTS.load({own.tile * splits + s, own.row, own.column}, {rows, columns});
    return total;
  }
};

}  // namespace tile::kernels
