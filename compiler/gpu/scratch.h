// scratch.h - shared memory an op needs only while it runs (conversions, reductions across warps, ...).
// place_buffers asks how much, writes the address into the op's `tile.scratch` attribute; the emitter uses it there.
#pragma once
#include <optional>
#include <string>

#include "mlir/IR/Operation.h"

namespace tile::ir {

inline constexpr const char* kScratchAttr = "tile.scratch";  ///< i32 byte offset
/// On an extract whose box overlaps those of others of the same tile: the whole tile is put, once for all of them.
inline constexpr const char* kPutsWholeAttr = "tile.puts_whole";
/// On a take whose scratch an earlier take of the same tile has filled: it only reads. So do extracts that put the whole.
inline constexpr const char* kScratchFilledAttr = "tile.scratch_filled";

/// A tile this large (bytes, with gaps) waits in shared memory for the next take from it.
inline constexpr int64_t kMostSharedTake = 16896;
/// On a take in front of a loop that is there for its scratch: takes with kReadsCopyAttr in the loop, of the same tile,
/// read that.
inline constexpr const char* kMakesCopyAttr = "tile.makes_copy";
inline constexpr const char* kReadsCopyAttr = "tile.reads_copy";

/// On an op at whose barrier others of its block meet, too: i32, the number of the group. It puts what they hand to
/// other threads into their scratch as well; they have kMetAttr with the same number and only read.
inline constexpr const char* kMeetsAttr = "tile.meets";
inline constexpr const char* kMetAttr = "tile.met";
/// The others; none: it meets alone.
llvm::SmallVector<mlir::Operation*> metWith(mlir::Operation* first);

/// On takes from a tile that lies in shared memory with gaps (moves.h): array of i64, `bytes` left free behind `row`.
inline constexpr const char* kScratchGapsAttr = "tile.scratch_gaps";

struct Scratch {
  int64_t bytes = 0, alignment = 16;
  std::string what;   ///< for reports: "conversion of 64x64xf16"
  int64_t piece = 0;  ///< bytes of the piece that a warp keeps to, if it does
  /// The op waits for lanes only.
  bool warpLocal() const { return piece != 0; }
};
/// On an op whose warps keep to pieces of their own: i32, bytes from one piece to the next, where that is more than it
/// needs. Ops that agree about that and begin at one place need no barrier between them.
inline constexpr const char* kScratchPitchAttr = "tile.scratch_pitch";
/// nullopt: the op needs none.
std::optional<Scratch> scratchOf(mlir::Operation* op);

}  // namespace tile::ir
