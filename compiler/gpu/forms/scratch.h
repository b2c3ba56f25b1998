// scratch.h - shared memory that an op needs only while it runs (conversions, reductions across warps, ...).
// place_buffers asks how much, and writes the address to the op's attribute `tile.scratch`, where the emitter finds it.
#pragma once
#include <optional>
#include <string>

#include "mlir/IR/Operation.h"

namespace tile::ir {

inline constexpr const char* kScratchAttr = "tile.scratch";  ///< i32 byte offset
/// On an extract whose box overlaps those of other extracts of the tile: the whole tile is put, once for all of them.
inline constexpr const char* kPutsWholeAttr = "tile.puts_whole";
/// On a take whose scratch an earlier take of the same tile has filled, so that it only reads; also on such extracts.
inline constexpr const char* kScratchFilledAttr = "tile.scratch_filled";

/// The most bytes of a tile (with gaps) that stays in shared memory for further takes from it.
inline constexpr int64_t kMostSharedTake = 16896;
/// On a take in front of a loop that only makes a copy of its tile: takes with kReadsCopyAttr in the loop, from the
/// same tile, read the copy.
inline constexpr const char* kMakesCopyAttr = "tile.makes_copy";
inline constexpr const char* kReadsCopyAttr = "tile.reads_copy";

/// On the first op of a group that shares one barrier (meet_together.cpp): i32, the number of the group. It puts the
/// elements of all members into their scratch; the others have kMetAttr with the same number, and only read.
inline constexpr const char* kMeetsAttr = "tile.meets";
inline constexpr const char* kMetAttr = "tile.met";
/// The other members of the group; none: the op has a barrier of its own.
llvm::SmallVector<mlir::Operation*> metWith(mlir::Operation* first);

/// On takes from a tile that has gaps in shared memory (Gaps in moves.h): array of i64, `bytes` and `row`.
inline constexpr const char* kScratchGapsAttr = "tile.scratch_gaps";

struct Scratch {
  int64_t bytes = 0, alignment = 16;
  int64_t piece = 0;  ///< not 0: each warp uses a piece of this many bytes, and no other
  /// Whether only lanes of one warp exchange, so that no barrier of all warps is needed.
  bool warpLocal() const { return piece != 0; }
};
/// On an op whose warps use pieces of their own: i32, bytes from one piece to the next, if that is more than the op
/// needs. Ops with the same pitch and the same address need no barrier between them.
inline constexpr const char* kScratchPitchAttr = "tile.scratch_pitch";
/// Nullopt: the op needs none.
std::optional<Scratch> scratchOf(mlir::Operation* op);
/// What an op with scratch does, for reports: "conversion of 64x64xf16".
std::string scratchName(mlir::Operation* op);

}  // namespace tile::ir
