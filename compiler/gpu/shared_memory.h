// shared_memory.h - who uses which bytes of a program's shared memory. For reports, placement and hazards.
#pragma once
#include <vector>

#include "compiler/dialect/dialect.h"
#include "runtime/abi.h"

namespace tile::ir {

/// On smem_alloc: a ring of two stages, of which the iterations of one loop use one and the other in turn.
inline constexpr const char* kAlternatesAttr = "tile.alternates";
/// On smem_alloc: a ring whose loop has one product, and copies behind it into the stage that the iteration's before it
/// has read, with a barrier between.
inline constexpr const char* kRotatesAttr = "tile.rotates";

/// On load_shared and async_copy: for each index whether it is never negative in an iteration that exists.
inline constexpr const char* kFromZeroAttr = "tile.from_zero";

/// On a kernel: programs that differ by 1 in program_id 0 run in clusters of so many.
inline constexpr const char* kClusterAttr = "tile.cluster";
/// On tile.specialize: consumers need about all the registers they have.
inline constexpr const char* kTightAttr = "tile.tight";
/// On load_shared and tma_load: the copy is the same for all programs of a cluster, which share the work.
inline constexpr const char* kMulticastAttr = "tile.multicast";

/// The allocation behind a tile in shared memory, through slots and transposes; null when it is not known.
SmemAllocOp allocationOf(mlir::Value smem);
/// After place_buffers: every buffer and scratch with its place and the user's line, in order of address.
std::vector<BufferInfo> sharedBuffers(mlir::func::FuncOp func);
/// Barriers of a ring and the payloads behind them.
int64_t ringBytes(RingAllocOp ring);
/// "ring of 3 x 128x64xf16", "128x64xf16", "barriers of a ring of 3", or what a scratch is for.
std::string bufferName(mlir::Operation* op);

inline constexpr const char* kSharedBytesAttr = "tile.shared_bytes";

}  // namespace tile::ir
