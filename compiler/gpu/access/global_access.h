// global_access.h - tiles that are read from or written to global memory, and what that says about their layouts.
#pragma once
#include "compiler/gpu/access/access_width.h"

namespace tile::ir {

/// On a store: threads write what they hold. In a kernel whose rings take all of the shared memory there is none to
/// bring results into rows that are written as a whole.
inline constexpr llvm::StringLiteral kAsComputedAttr = "tile.as_computed";

struct GlobalAccess {
  AccessWidth width;
  mlir::Value tile;  ///< what is read or written
};
/// Nullopt: the op accesses no global memory, or no tile of it.
std::optional<GlobalAccess> accessOf(mlir::Operation* op, const Facts& facts);

/// Whether it is an atomic whose result is not used: then the layout of its value matters.
bool addsToMemory(mlir::Operation* op);
/// Whether it is an atomic without a use of its result, for elements that were chosen by what was loaded: few, it
/// seems, so that it is a write that any threads can do. One for all elements, whatever it does, wants whole lines.
bool updatesFew(mlir::Operation* op);
/// Whether it is a gather all of whose addresses were computed from loaded elements: neighbours are not near each
/// other.
bool isLookup(mlir::Operation* op, const GlobalAccess& access);
/// Whether those elements are read from shared memory, where copies brought them.
bool isLookupOfCopies(mlir::Operation* op, const GlobalAccess& access);
/// Whether it is a gather whose places were computed as floats (pixels along a flow, cells of particles): neighbours
/// mostly lie near each other, though nothing says how near.
bool isPlaceInSpace(mlir::Operation* op, const GlobalAccess& access);
/// Whether the tile is computed, element by element, from gathers none of whose neighbours are known to lie side by
/// side, and from no other access of as many elements.
bool isReadHereAndThere(mlir::Value tile, const Facts& facts);

/// Whether the access is as good under any layout: lookups, atomics at scattered addresses, words that neighbours
/// share.
bool takesAnyLayout(mlir::Operation* op, const GlobalAccess& access, const Facts& facts);

/// How many neighbouring rows (of dim 0, in aligned groups) a gather reads from the same words: packed weights, factors
/// of groups. 1: none, as far as is known.
int64_t rowsAlike(mlir::Operation* op, const Facts& facts);
/// The same for neighbours along the last dim, at most 16.
int64_t columnsAlike(mlir::Operation* op, const Facts& facts);
/// How many elements of a gathered tile one word serves, along both dims.
int64_t elementsAlike(mlir::Operation* op, const Facts& facts);

/// The share of bytes that are used of all 32-byte sectors that a warp touches along `dim`, for all registers of one
/// row; or for one instruction, which moves `vector` elements of each thread.
double sectorUse(const layout::Layout& layout, int dim, int bytes, std::optional<int> vector = std::nullopt);
/// Whether the lanes of a warp together hold a run of at least 128 bytes along `dim`.
bool wholeLines(const layout::Layout& layout, int dim, int bytes);
/// Whether the tile is made by elementwise work alone from loads of narrower elements.
bool isWidenedInPlace(mlir::Value tile);

}  // namespace tile::ir
