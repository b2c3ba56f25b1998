// resident_tiles.h - which tiles a product of f32 (IEEE or tf32x3) or f64 is computed in, several programs of which a
// multiprocessor has room for: those that the model below says take least time.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>

#include "product_tiles.h"

namespace tile::kernels {

struct ResidentTile {
  int bm, bn, bk, warps, stages;
  int resident;           ///< programs that registers leave room for
  double alone, crowded;  ///< cycles for each of K: of a program alone, and of each of many
  int splits = 1;
};

namespace detail {
/// Fitted together with kFill below to 1,500 measurements of 135 products for each type (H200; M of 1 to 8192, N of 64
/// to 11008, K of 64 to 8192, both orders of B), without those whose programs were not dealt out evenly
/// (runtime/cuda/early_launch.h).
inline constexpr ResidentTile kTilesOfF32[] = {
    {128, 128, 32, 8, 3, 1, 65.7, 169.8}, {96, 128, 32, 8, 3, 1, 86.5, 111.5}, {64, 128, 32, 8, 3, 2, 32.0, 94.7},
    {64, 128, 16, 4, 4, 3, 65.7, 90.6},   {64, 64, 32, 4, 3, 4, 36.5, 47.8},   {32, 64, 32, 4, 4, 4, 24.2, 28.4},
    {16, 128, 32, 4, 4, 2, 8.9, 28.8},    {32, 32, 32, 2, 4, 6, 28.6, 13.8},
};
inline constexpr ResidentTile kTilesOfF64[] = {
    {128, 64, 16, 4, 4, 2, 37.2, 70.1}, {96, 96, 16, 4, 3, 2, 53.5, 77.4}, {64, 96, 16, 4, 3, 2, 35.6, 52.6},
    {64, 64, 16, 4, 4, 3, 38.8, 35.7},  {32, 64, 16, 4, 4, 4, 25.2, 19.2}, {16, 128, 16, 4, 4, 3, 14.1, 25.9},
    {16, 64, 32, 2, 4, 2, 25.8, 10.7},  {32, 32, 16, 2, 6, 4, 25.8, 10.0},
};

/// In tf32x3 (509 measurements of 26 products; those of warpgroups, from 128 x 128 on, before their sums were added
/// outside the tensor cores. Since then 4096 x 4096 x 4096 takes 1.52 to 1.68 ms in 128 x 128, by the model 1.65, and
/// 1.59 to 1.87 ms in 128 x 192, by the model 1.85, depending on the order of B).
inline constexpr ResidentTile kTilesOfTf32x3[] = {
    {128, 192, 32, 8, 2, 1, 83.6, 101.5}, {128, 128, 32, 8, 2, 1, 56.1, 67.5}, {64, 128, 32, 4, 3, 3, 31.7, 54.9},
    {64, 64, 32, 4, 3, 4, 22.7, 31.0},    {32, 64, 32, 4, 4, 4, 25.4, 18.1},   {16, 128, 32, 4, 4, 3, 19.0, 17.3},
};

/// Bytes of shared memory of a tile's ring.
inline int64_t ring_bytes(const ResidentTile& t, DType in) {
  return int64_t{t.bm + t.bn} * t.bk * t.stages * static_cast<int64_t>(size_of(in));
}

/// Cycles that a product takes in these tiles, less what it takes in any. The programs of a round are dealt out evenly;
/// a multiprocessor's are as fast as one of them alone, or as its units let all of them be (the root of the sum of both
/// squares lies between).
inline double cycles_of(const ResidentTile& t, const ProductSizes& s, int64_t k, const Machine& machine) {
  const bool is_f64 = s.in == DType::f64;
  const double kFill = is_f64 ? 41 : 20;  // of K, that a program takes to begin and end
  constexpr PartCosts kParts{.launch = 2800, .part = 110, .bytes_per_cycle = 1140};
  // Shared memory leaves room for as many, whatever registers do. (1 KB of each program is the system's.)
  const int64_t fit = (int64_t{machine.shared_bytes} + 1024) / (ring_bytes(t, s.in) + 1024);
  const double resident = double(std::clamp<int64_t>(fit, 1, t.resident)), multiprocessors = machine.multiprocessors;
  auto rounds = [&](int64_t programs, double depth) {
    return cycles_in_rounds(double(programs), resident * multiprocessors, [&](double running) {
      return (depth + kFill) * std::hypot(t.alone, std::ceil(running / multiprocessors) * t.crowded);
    });
  };
  const int64_t tiles = s.batch * cdiv(s.m, int64_t{t.bm}) * cdiv(s.n, int64_t{t.bn});
  if (t.splits == 1) return rounds(tiles, double(k));
  const auto part_bytes = double(std::min<int64_t>(t.bm, s.m) * t.bn) * double(size_of(s.in));
  return cycles_in_parts(tiles, t.splits, machine.multiprocessors, double(k), part_bytes, kParts, rounds);
}

inline ResidentTile fastest_resident_tile(const ProductSizes& s, const Machine& machine) {
  constexpr int64_t kLeastDepth = 256, kMostSplits = 12;  // of K for each part
  const int64_t k = s.k > 0 ? s.k : 4096;
  const int64_t most = s.may_split ? std::clamp<int64_t>(s.k / kLeastDepth, 1, kMostSplits) : 1;
  ResidentTile best{};
  double least = 0;
  std::span<const ResidentTile> tiles = kTilesOfF32;
  if (s.in == DType::f64) tiles = kTilesOfF64;
  if (s.tf32x3) tiles = kTilesOfTf32x3;
  for (ResidentTile tile : tiles) {
    const int64_t all = s.batch * cdiv(s.m, int64_t{tile.bm}) * cdiv(s.n, int64_t{tile.bn});
    // Parts only where there is no round of whole tiles (others were not measured).
    const int64_t parts =
        all > 0 && all < machine.multiprocessors ? std::min(most, 2 * machine.multiprocessors / all) : 1;
    for (; tile.splits <= parts; ++tile.splits) {
      const double cycles = cycles_of(tile, s, k, machine) * (tile.splits > 1 ? 1.01 : 1);  // the plain one if in doubt
      if (least == 0 || cycles < least) least = cycles, best = tile;
    }
  }
  return best;
}
}  // namespace detail

/// The tile that takes least time by the model on a GPU, with parts of K where those help and sizes.may_split.
inline ResidentTile resident_tile(const ProductSizes& sizes, const Machine& machine) {
  return detail::kept<ResidentTile>(sizes, machine, [&] { return detail::fastest_resident_tile(sizes, machine); });
}

}  // namespace tile::kernels
