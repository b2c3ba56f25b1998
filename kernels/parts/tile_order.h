// tile_order.h - which output tile a program works on.
#pragma once
#include "dsl/tile.h"

namespace tile::kernels {

struct TileIndex {
  Tile m, n;
};

/// Row-major walk over groups of `group` tile rows, column by column inside a group: programs that run at the same time
/// share rows of A and columns of B, so that both stay in the L2 cache. Any grid size; `program` counts from 0 to num_m
/// * num_n - 1.
inline TileIndex grouped_order(const Tile& program, const Tile& num_m, const Tile& num_n, int group) {
  auto per_group = num_n * group;
  auto first_m = program / per_group * group;
  auto rows = min(num_m - first_m, group);  // the last group may be lower
  auto inside = program % per_group;
  return {first_m + inside % rows, inside / rows};
}

}  // namespace tile::kernels
