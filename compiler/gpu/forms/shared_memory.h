// shared_memory.h - which ops use which bytes of a program's shared memory: for reports, placement and barriers.
#pragma once
#include <vector>

#include "compiler/dialect/dialect.h"
#include "runtime/abi.h"

namespace tile::ir {

/// On smem_alloc: a ring of two stages that the iterations of one loop use alternately.
inline constexpr const char* kAlternatesAttr = "tile.alternates";
/// On smem_alloc: a ring whose loop has one product and, behind it and a barrier, copies into the stage that the
/// previous iteration's product has read.
inline constexpr const char* kRotatesAttr = "tile.rotates";

/// On load_shared and async_copy: for each index, whether it is never negative in iterations that exist.
inline constexpr const char* kFromZeroAttr = "tile.from_zero";

/// On a kernel: the size of its clusters, which are along axis 0 of the grid.
inline constexpr const char* kClusterAttr = "tile.cluster";
/// On tile.specialize: consumers need nearly all their registers.
inline constexpr const char* kTightAttr = "tile.tight";
/// On a kernel with roles: the registers of as many programs on a multiprocessor may not suffice.
inline constexpr const char* kCrowdedAttr = "tile.crowded";
/// On load_shared and tma_load: the copy is the same for all programs of a cluster, each of which makes a part of it.
inline constexpr const char* kMulticastAttr = "tile.multicast";

/// The allocation behind a tile in shared memory, through slots and transposes; null if unknown.
SmemAllocOp allocationOf(mlir::Value smem);
/// After place_buffers: all buffers and scratch with address and the user's line, in order of address.
std::vector<BufferInfo> sharedBuffers(mlir::func::FuncOp func);
/// Bytes for the barriers of a ring, and for the payloads behind them.
int64_t ringBytes(RingAllocOp ring);
/// "ring of 3 x 128x64xf16", "128x64xf16", "barriers of a ring of 3", or what a scratch is for.
std::string bufferName(mlir::Operation* op);

inline constexpr const char* kSharedBytesAttr = "tile.shared_bytes";

}  // namespace tile::ir
