// tile_order.h - which output tile a program works on.
#pragma once
#include <algorithm>

#include "../../dsl/tile.h"

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

/// In the same grid, where a head's first tiles have the most work: the last `together` heads take turns, the first tile
/// of each, then the second of each, and so on, so that the launch ends with short tiles of many heads and not with
/// whole heads. Before them it goes head by head: short tiles beside long ones even out what they ask of the memory.
inline HeadTile tile_of_heads(const Tile& together) {
  auto tiles = num_programs(0), heads = num_programs(1);
  auto program = program_id(0) + tiles * (program_id(1) + heads * program_id(2));
  auto in_turns = max(min(together, heads * num_programs(2)), 1);
  auto first = heads * num_programs(2) - in_turns;
  auto later = program - first * tiles;
  auto head = where(later < 0, program / tiles, first + later % in_turns);
  return {where(later < 0, program % tiles, later / in_turns), head % heads, head / heads};
}

/// How many heads should take turns on a stream's device, for `tiles` each that read the same `bytes`: four tiles for
/// each multiprocessor, of heads that together leave half of the L2 cache to other things.
inline int heads_together(const Stream& stream, int64_t tiles, int64_t bytes) {
  const DeviceProperties& device = stream.device().properties();
  const auto room = static_cast<int64_t>(device.l2_bytes / 2) / std::max<int64_t>(bytes, 1);
  const int64_t wanted = cdiv<int64_t>(4 * device.multiprocessors, std::max<int64_t>(tiles, 1));
  return static_cast<int>(std::clamp<int64_t>(std::min(room, wanted), 1, 1 << 16));
}

}  // namespace tile::kernels
