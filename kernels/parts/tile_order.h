// tile_order.h - which output tile a program works on.
#pragma once
#include <algorithm>

#include "dsl/tile.h"

namespace tile::kernels {

struct TileIndex {
  Tile m, n;
};

/// One of the tiles of a head.
struct HeadTile {
  Tile tile, head, batch;
};

/// Row-major walk over groups of `group` tile rows, column by column inside a group: programs that run at the same time
/// share rows of A and columns of B, so that both stay in the L2 cache. Any grid size; `program` counts from 0 to num_m
/// * num_n - 1.
template <class Int>
TileIndex grouped_order(const Tile& program, const Tile& num_m, const Tile& num_n, const Int& group) {
  auto per_group = num_n * group;
  auto first_m = program / per_group * group;
  auto rows = min(num_m - first_m, group);  // the last group may be lower
  auto inside = program % per_group;
  return {first_m + inside % rows, inside / rows};
}

/// The tile of a program in a grid {tiles, heads, batches}, head by head.
inline HeadTile tile_of_heads() { return {program_id(0), program_id(1), program_id(2)}; }

/// In the same grid `together` heads take turns: the first tile of each, then the second of each, and so on. Where a
/// head's first tiles have the most work, the launch then ends with short tiles of many heads and not with whole heads:
/// 2 to 6 % less time where a multiprocessor gets 10 to 30 tiles.
inline HeadTile tile_of_heads(const Tile& together) {
  auto tiles = num_programs(0), heads = num_programs(1);
  auto program = program_id(0) + tiles * (program_id(1) + heads * program_id(2));
  const TileIndex at = grouped_order(program, heads * num_programs(2), tiles, together);
  return {at.n, at.m % heads, at.m / heads};
}

/// How many heads, of which each one's tiles read the same `bytes`, should take turns on a stream's device: what they
/// read fills a third of its L2 cache.
inline int heads_together(const Stream& stream, int64_t bytes) {
  const auto room = static_cast<int64_t>(stream.device().properties().l2_bytes / 3);
  return static_cast<int>(std::clamp<int64_t>(room / std::max<int64_t>(bytes, 1), 1, 64));
}

}  // namespace tile::kernels
