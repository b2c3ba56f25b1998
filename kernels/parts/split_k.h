// split_k.h - products whose sums over K are computed in parts, by programs of their own, where an output has too few
// tiles to keep all multiprocessors busy, or a last round of tiles would leave most of them idle.
//
// A launch has `whole` programs with a tile each, and behind them `splits` programs for every other tile. Those write
// their part to a workspace; the last one of a tile to arrive adds them all, in their order: results do not depend on
// who that is. Nobody waits.
#pragma once
#include <algorithm>

#include "kernels/parts/machine.h"
#include "kernels/parts/shapes.h"
#include "runtime/buffer.h"

namespace tile::kernels {

/// Tiles that are split arrive at counters of their own: the start of the workspace. There are fewer of them than
/// multiprocessors.
inline constexpr int kSplitCounters = 1024;

/// How many of all tiles are computed whole and how many in parts: what fills whole rounds of the multiprocessors stays
/// whole. With splits = 1 nothing is split.
struct SplitCounts {
  int64_t whole = 0, split = 0;
  SplitCounts(int64_t tiles, int splits, int multiprocessors) : whole(tiles) {
    if (splits <= 1 || multiprocessors < 1) return;
    whole = tiles / multiprocessors * multiprocessors;
    if (tiles - whole > kSplitCounters) whole = tiles - kSplitCounters;
    split = tiles - whole;
  }
  int64_t programs(int splits) const { return whole + split * splits; }
  /// Bytes of workspace for parts of `part_bytes` each; 0 if no tile is split.
  size_t workspace_bytes(int splits, int64_t part_bytes) const {
    return split == 0 ? 0 : kSplitCounters * sizeof(int32_t) + static_cast<size_t>(split * splits * part_bytes);
  }
};

/// Allocates a workspace for split sums: its counters are zero, as they are again behind every launch. One stream at a
/// time may use it, for one product or many. No bytes, no memory. Errors: the device has no room.
inline Result<DeviceMemory> make_split_workspace(const std::shared_ptr<Device>& device, size_t bytes) {
  Result<DeviceMemory> memory = DeviceMemory::allocate(device, bytes);
  if (!memory || bytes == 0) return memory;
  Stream& stream = device->default_stream();
  const int32_t zero = 0;
  if (Status filled = memory->fill(stream, &zero, sizeof(zero)); !filled) return filled.error();
  if (Status done = stream.synchronize(); !done) return done.error();
  return memory;
}

/// The workspace as kernels take it: PARTS [part, BM, BN], ARRIVED [split tiles].
template <class Sum>
struct SplitWorkspace {
  TensorView<Sum, 3> parts = TensorView<Sum, 3>::contiguous(nullptr, {0, 0, 0});
  TensorView<int32_t, 1> arrived = TensorView<int32_t, 1>::contiguous(nullptr, {0});

  SplitWorkspace(void* memory, const SplitCounts& counts, int splits, int bm, int bn) {
    if (counts.split == 0 || !memory) return;
    auto* counters = static_cast<int32_t*>(memory);
    arrived = TensorView<int32_t, 1>::contiguous(counters, {counts.split});
    parts = TensorView<Sum, 3>::contiguous(reinterpret_cast<Sum*>(counters + kSplitCounters),
                                           {counts.split * splits, bm, bn});
  }
};

/// What a program computes: part `part` of the sum of tile `tile`, counted over all batches.
struct SplitPart {
  Tile tile, part;
  Tile slot;      ///< of PARTS; meaningless for whole tiles
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

/// Runs finish(sum [BM, BN]) in one program for every tile, with the sum of all its parts. ARRIVED is zero before and
/// after.
template <class Sum, class Finish>
void finish_split(const SplitPart& own, int splits, const Tile& acc, const Tensor<Sum, 3>& PARTS,
                  const Tensor<int32_t, 1>& ARRIVED, const Finish& finish) {
  const int rows = static_cast<int>(acc.shape()[0]), columns = static_cast<int>(acc.shape()[1]);
  Tile sum = acc, last = own.is_whole;
  if_(!own.is_whole, [&] {
    PARTS.store({own.slot, 0, 0}, acc);
    auto counter = ARRIVED.ptr() + own.slot / splits;
    last = atomic_add(counter, 1) == splits - 1;
    if_(last, [&] {
      auto first = own.slot - own.part;
      sum = PARTS.load({first, 0, 0}, {rows, columns});
      for (auto s : range(1, splits)) sum += PARTS.load({first + s, 0, 0}, {rows, columns});
      atomic_exchange(counter, 0, {.order = Order::relaxed});
    });
  });
  if_(last, [&] { finish(sum); });
}

}  // namespace tile::kernels
