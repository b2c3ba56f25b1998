// expert_tiles.h - which tiles warpgroups compute a mixture of experts in: those that the model below says take least
// time. Blocks of rows belong to one expert each, so that how many there are depends on their height alone.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "machine.h"
#include "product_tiles.h"

namespace tile::kernels {

/// Sizes of a mixture of experts: rows of all experts, N columns, K; k = 0: not known.
struct ExpertSizes {
  int64_t rows, experts, n, k;
};

struct ExpertTile {
  int bm, bn, bk, warps, stages;
  double rate;  ///< multiply-adds per cycle, of kMostPerCycle
};

namespace detail {
/// Which tile is best follows the rows of an expert: few wait for weights from memory (deep rings of whole rows of
/// them), many for the tensor cores. Tiles with rows that 64 does not divide are columns of the transposed product.
/// Measured: 72 problems (the experts of Mixtral, Qwen3, DeepSeek and gpt-oss; 0.1 to 2048 rows of each) in 37
/// configurations on average.
inline constexpr ExpertTile kExpertTiles[] = {
    {16, 128, 128, 4, 6, .25}, {32, 128, 128, 4, 5, .456}, {64, 128, 64, 4, 6, .724}, {80, 256, 64, 8, 5, .85},
    {96, 256, 64, 8, 4, .93},  {112, 256, 64, 8, 4, .92},  {144, 128, 64, 8, 3, .8},  {128, 256, 64, 8, 4, 1.0},
};

/// Blocks of `height` rows where each row's expert is drawn at random: the chance that an expert has rows, and that it
/// has more than one, two, ... whole blocks (normal tails; of many blocks the last is half full on average).
inline double expected_blocks(double each, double experts, int height) {
  if (each > 8.0 * height) return experts * (each / height + .5);
  double blocks = 1 - std::exp(-each);
  for (int whole = 1;; ++whole) {
    const double more = .5 * std::erfc((whole * double(height) + .5 - each) / std::sqrt(2 * each));
    blocks += more;
    if (more < 1e-3 && whole * double(height) > each) return experts * blocks;
  }
}

/// Cycles as of a product (product_tiles.h): rounds of tiles, each as long as its multiply-adds, as what all
/// multiprocessors read from the L2 cache or as what one of them reads; blocks in the place of rows of tiles. What it
/// chooses takes 1.02 times as long as the fastest that was measured of each problem (geometric mean).
inline double cycles_of(const ExpertTile& t, const ExpertSizes& s, int multiprocessors) {
  const int programs = t.warps <= 4 && 2 * (t.bm + t.bn) * t.bk * t.stages < 112'000 ? 2 : 1;  // per multiprocessor
  const double each = double(s.rows) / double(std::max<int64_t>(s.experts, 1));
  const double tiles = expected_blocks(each, double(s.experts), t.bm) * double(cdiv(s.n, int64_t{t.bn}));
  const double area = double(t.bm) * t.bn, read = 2.0 * (t.bm + t.bn);
  const double alone = std::max(area * programs / (kMostPerCycle * t.rate), read / kOneReads);
  const double depth = s.k > 0 ? double(s.k) : 4096;
  return cycles_in_rounds(tiles, double(multiprocessors) * programs, [&](double running) {
    return depth * std::max(alone, running * read / kAllRead) + area * kStores;
  });
}
}  // namespace detail

/// The tile that takes least time by the model, of those that rows of an expert fill to two fifths and more.
inline ExpertTile expert_tile(const ExpertSizes& sizes, const Machine& machine) {
  const double each = double(sizes.rows) / double(std::max<int64_t>(sizes.experts, 1));
  const ExpertTile* best = nullptr;
  double least = 0;
  for (const ExpertTile& tile : detail::kExpertTiles) {
    if (best && tile.bm > 2.2 * each + 8) continue;
    const double cycles = detail::cycles_of(tile, sizes, machine.multiprocessors);
    if (!best || cycles < least) best = &tile, least = cycles;
  }
  return *best;
}

}  // namespace tile::kernels
