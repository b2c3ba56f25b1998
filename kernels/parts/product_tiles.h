// product_tiles.h - which tiles a product is computed in by warpgroups: those that the model below says take least
// time. Products of f32 as such and of f64 are in resident_tiles.h.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

#include "machine.h"
#include "split_k.h"

namespace tile::kernels {

/// A product's sizes; k = 0: not known.
struct ProductSizes {
  int64_t batch, m, n, k;
  bool may_split = false;  ///< there is a workspace for parts of K
  DType in = DType::f16;   ///< f32: in tf32 (product_tiles.h), as such (resident_tiles.h)
  bool along_k = false;    ///< of operands of one byte: B's neighbours lie along K, like A's
  bool tf32x3 = false;     ///< of f32: in three products of tf32 (resident_tiles.h)
  int beside = 1;          ///< products of the same A, of N columns each, that share tiles

  friend bool operator==(const ProductSizes&, const ProductSizes&) = default;
};

struct ProductTile {
  int bm, bn;  ///< bn: of all products beside each other
  int warps, stages;
  double rate;  ///< multiply-adds per cycle, of kMostPerCycle
  int splits = 1, cluster = 1, cluster_n = 1;
};

namespace detail {
/// Multiply-adds per cycle of a multiprocessor in one round of 128 tiles with K = 4096 (H200, f16), the largest tile's.
inline constexpr double kMostPerCycle = 1790;
/// Bytes per cycle that all multiprocessors read from the L2 cache, and that one of them does.
inline constexpr double kAllRead = 6400, kOneReads = 63;
inline constexpr double kStores = .077;  ///< cycles for each element of a tile that nothing hides

/// The same of other types, as far as measurements tell them from 16-bit floats.
struct ProductRates {
  double products;  ///< times as many multiply-adds
  double all_read, one_reads;
  double turned = 0;  ///< cycles for each column of a tile and each of K that B [K, N] is turned in
};
inline ProductRates rates_of(const ProductSizes& s) {
  if (is_f8(s.in)) return {1.9, kAllRead, kOneReads};
  if (s.in == DType::i8) return {1.6, 9000, 50, s.along_k ? 0 : .06};
  if (s.in == DType::f32) return {.5, 9000, 50};
  return {1, kAllRead, kOneReads};
}

/// Cycles of programs that a machine runs so many at a time of: rounds, each of which takes as long as `round` says of
/// the number that run in it.
template <class Round>
double cycles_in_rounds(double programs, double machine, const Round& round) {
  const double whole = std::floor(programs / machine), rest = programs - whole * machine;
  return whole * round(machine) + (rest > .5 ? round(rest) : 0);
}

/// What adding up parts of K takes.
struct PartCosts {
  double launch, part;     ///< cycles of the launch that adds them, and for each part of a tile
  double bytes_per_cycle;  ///< of parts written and read
};
/// Cycles of a product with parts of K: `rounds(programs, depth)` are those of whole tiles and of parts, which have
/// `bytes` each.
template <class Rounds>
double cycles_in_parts(int64_t tiles, int splits, int multiprocessors, double depth, double bytes,
                       const PartCosts& costs, const Rounds& rounds) {
  const SplitCounts counts(tiles, splits, multiprocessors);
  const int64_t parts = counts.split * splits;
  return rounds(counts.whole, depth) + rounds(parts, depth / splits) + costs.launch + costs.part * splits +
         double(parts) * bytes / costs.bytes_per_cycle;
}

/// What each size reaches of it. Rows that 64 does not divide are columns of the transposed product (they go by 8):
/// such tiles leave less of the last row of tiles empty (152 x 128 for M = 300, 72 x 64 for M = 72), and 144 x 256
/// reads less for each multiplication than 128 x 256 (8192 x 8192 x 8192 in 0.97 of the time). Measured in such a
/// round, but for 144, 152 and 160 x 256, which are taken to reach as much as 176 x 192.
inline constexpr ProductTile kProductTiles[] = {
    {128, 256, 8, 4, 1.0},   {128, 192, 8, 4, .97},   {192, 128, 12, 4, .97}, {128, 128, 8, 6, .95},
    {64, 128, 4, 6, .724},   {128, 64, 8, 6, .67},    {64, 64, 4, 6, .445},   {32, 128, 4, 6, .456},
    {32, 64, 4, 8, .27},     {40, 128, 4, 8, .54},    {72, 64, 4, 8, .47},    {72, 128, 8, 6, .767},
    {80, 64, 4, 8, .492},    {80, 128, 8, 6, .819},   {80, 256, 8, 4, .951},  {96, 64, 4, 8, .504},
    {96, 128, 8, 6, .876},   {96, 256, 8, 4, .975},   {104, 256, 8, 4, .98},  {112, 64, 4, 7, .523},
    {112, 128, 8, 6, .878},  {112, 256, 8, 4, .99},   {120, 256, 8, 4, .99},  {144, 64, 4, 7, .527},
    {144, 128, 8, 5, .959},  {144, 192, 12, 3, .981}, {144, 256, 8, 3, .995}, {152, 128, 8, 5, .949},
    {152, 256, 8, 3, .995},  {160, 256, 8, 3, .995},  {160, 64, 4, 6, .535},  {160, 128, 8, 5, .957},
    {160, 192, 12, 3, .987}, {176, 192, 12, 3, .995}, {256, 128, 8, 4, 1.0},
};

/// Cycles that a product takes in these tiles. The multiprocessors work on a tile each, round by round; a round takes
/// as long as its multiply-adds, as what all of them read from the L2 cache, or as what one of them reads, whichever is
/// longest. The constants are those with which the model chooses best among 25,000 measurements of 423 products (H200,
/// f16, both orders of B; M of 17 to 5700, N of 512 to 28672, K of 512 to 14336, also such that lines of 128 bytes do
/// not divide rows): what it chooses takes 1.04 times as long as the fastest that was measured of each (geometric
/// mean). Half of the products were enough to find them: with the other half 1.05. Of 400 other products what it
/// chooses takes 0.88 times as long as cuBLAS (before there was a model, 0.96), at M over 2048 1.01 times (1.07). Of f8
/// (9,500 measurements of 224 products) what it chooses takes 1.03 times as long as the fastest, 0.84 times as long as
/// what was chosen before; of tf32 and i8 (4,900 each of 135) 1.04 and 1.06 times; of 60 others each 0.94
/// and 0.90 times as long as what was chosen before.
inline double cycles_of(const ProductTile& t, const ProductSizes& s, int64_t k, int multiprocessors) {
  constexpr double kRagged = 1.15;  // rows of copies that end behind a matrix take longer (lowering/tma.cpp)
  constexpr double kLines = .57;    // how much longer where rows begin within a line of the cache
  // Cycles that a cluster's programs wait for each other, before and behind: between what chooses best (1100) and what
  // products of 1024 and 2048 took longer (2000 to 2700).
  constexpr double kMeet = 1500;
  constexpr PartCosts kParts{.launch = 2300, .part = 220, .bytes_per_cycle = 530};
  const int64_t rows = cdiv(s.m, int64_t{t.bm}), columns = cdiv(s.n, int64_t{t.bn}), tiles = s.batch * rows * columns;
  // Clusters of four leave some multiprocessors idle, whose number by groups they do not divide.
  const int64_t machine = std::max(t.cluster, t.cluster_n) > 2 ? multiprocessors * 10 / 11 : multiprocessors;
  const double ragged = s.m % t.bm != 0 ? kRagged : 1;
  // B's rows have K or N elements.
  const auto bytes = static_cast<int>(size_of(s.in));
  const ProductRates rates = rates_of(s);
  const int64_t line = 128 / bytes;
  const bool across = !(bytes == 1 && s.along_k) && s.n % line != 0;
  const double a = ragged * bytes * t.bm, b = ragged * bytes * t.bn;
  // What lines cost more is for the cache to read, once for a cluster.
  const double lines_a = a * (k % line != 0 ? kLines : 0) / t.cluster_n;
  const double lines_b = b * (k % line != 0 || across ? kLines : 0) / t.cluster;
  const double shared = a / t.cluster_n + b / t.cluster + lines_a + lines_b;
  const double area = double(t.bm) * t.bn;
  const double rate = kMostPerCycle * rates.products * t.rate;
  const double alone = std::max(area / rate, (a + b + lines_a + lines_b) / rates.one_reads) + rates.turned * t.bn;
  auto rounds = [&](int64_t programs, double depth) {
    return cycles_in_rounds(double(programs), double(machine),
                            [&](double running) { return depth * std::max(alone, running * shared / rates.all_read); });
  };
  const auto depth = double(k);
  if (t.splits == 1) return rounds(tiles, depth) + area * kStores + (t.cluster * t.cluster_n > 1 ? kMeet : 0);
  const auto part_bytes = double(std::min<int64_t>(t.bm, s.m) * t.bn * 4);
  return cycles_in_parts(tiles, t.splits, multiprocessors, depth, part_bytes, kParts, rounds);
}

/// Whether warpgroups share every one of the products as they would a single one. Sets the tile's warps.
inline bool takes_beside(ProductTile& tile, int products) {
  const int columns = tile.bn / products;
  if (tile.bm % 64 == 0) return columns >= 64 && columns % 8 == 0;
  if (columns % 64 != 0) return false;
  tile.warps = std::min(tile.warps, columns / 16);  // turned: 64 columns for each warpgroup
  return true;
}

/// The tile that takes least time by the model, with parts of K or a cluster where those help (not of products beside
/// each other).
inline ProductTile fastest_tile(const ProductSizes& sizes, int multiprocessors) {
  // A decode step: 1.01 to 1.2 times as fast as 64 rows, most of them empty.
  if (sizes.m <= 16 && !is_f8(sizes.in) && sizes.beside == 1) return {16, 128, 4, 8, 0};
  constexpr int64_t kMostSplits = 10;
  const int64_t least_depth = sizes.in == DType::i8 ? 800 : 400;  // of K for each part
  const int64_t k = sizes.k > 0 ? sizes.k : 4096;
  const int most = sizes.may_split ? static_cast<int>(std::clamp<int64_t>(sizes.k / least_depth, 1, kMostSplits)) : 1;
  const double turned = rates_of(sizes).turned;
  // Clusters of others were not measured.
  const bool clusters = size_of(sizes.in) == 2 || is_f8(sizes.in);
  ProductTile best{};
  double least = 0;
  ProductSizes all = sizes;
  all.n *= sizes.beside;
  auto consider = [&](const ProductTile& tile) {
    const double cycles = cycles_of(tile, all, k, multiprocessors);
    // Between nearly equal ones the plain one.
    const double doubt = tile.cluster * tile.cluster_n * tile.splits > 1 ? 1.01 : 1;
    if (least == 0 || cycles * doubt < least) least = cycles * doubt, best = tile;
  };
  for (ProductTile tile : kProductTiles) {
    if (sizes.m <= 64 && tile.bm > 64) continue;  // never the fastest there
    if (tile.bm == 256 && turned == 0) continue;  // as fast as 128 x 256
    const int64_t rows = cdiv(sizes.m, int64_t{tile.bm}), columns = cdiv(sizes.n, int64_t{tile.bn});
    const int64_t tiles = sizes.batch * rows * columns;
    if (sizes.beside > 1) {
      if (takes_beside(tile, sizes.beside)) consider(tile);
      continue;
    }
    consider(tile);
    if (clusters && rows % 2 == 0) tile.cluster = 2, consider(tile), tile.cluster = 1;
    // Programs of a cluster copy equal parts of whole tiles, of whole rows of a swizzle pattern (8).
    const bool divides = clusters && sizes.m % tile.bm == 0 && tile.bm % 32 == 0 && columns % 4 == 0;
    if (divides) tile.cluster_n = 4, consider(tile), tile.cluster_n = 1;
    const int64_t rest = tiles % multiprocessors;
    // More parts than multiprocessors only where there are no whole tiles beside them.
    const int64_t room = multiprocessors * (rest == tiles ? 2 : 1);
    for (tile.splits = 2; tile.splits <= most && rest > 0 && rest * tile.splits <= room; ++tile.splits) consider(tile);
  }
  return best;
}

/// What `choose` says of a product on a machine. Launches ask again and again for a few sizes, which are kept.
template <class Tile, class Choose>
Tile kept(const ProductSizes& sizes, const Machine& machine, const Choose& choose) {
  struct Known {
    ProductSizes sizes{};
    int multiprocessors = 0;
    uint32_t shared_bytes = 0;
    Tile tile{};
  };
  thread_local std::array<Known, 64> all;
  uint64_t mix = 0;
  for (int64_t size : {sizes.m, sizes.n, sizes.k}) mix = (mix + static_cast<uint64_t>(size)) * 0x9e3779b97f4a7c15;
  Known& known = all[mix >> 58];
  if (known.multiprocessors != machine.multiprocessors || known.shared_bytes != machine.shared_bytes ||
      known.sizes != sizes)
    known = {sizes, machine.multiprocessors, machine.shared_bytes, choose()};
  return known.tile;
}
}  // namespace detail

/// The same for a machine.
inline ProductTile warpgroup_tile(const ProductSizes& sizes, const Machine& machine) {
  return detail::kept<ProductTile>(sizes, machine,
                                   [&] { return detail::fastest_tile(sizes, machine.multiprocessors); });
}

}  // namespace tile::kernels
