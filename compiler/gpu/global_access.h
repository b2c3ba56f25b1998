// global_access.h - tiles that are read from or written to global memory, and what that says about their layouts.
#pragma once
#include "compiler/gpu/access_width.h"

namespace tile::ir {

struct GlobalAccess {
  AccessWidth width;
  mlir::Value tile;  ///< what is read or written
};
/// Nullopt: the op accesses no global memory, or no tile of it.
std::optional<GlobalAccess> accessOf(mlir::Operation* op, const Facts& facts);

/// An atomic whose result nobody reads: its value's layout matters.
bool addsToMemory(mlir::Operation* op);
/// A gather whose every address was computed from elements that were loaded: neighbours are nowhere near each other.
bool isLookup(mlir::Operation* op, const GlobalAccess& access);

/// Lookups, atomics at places that are not side by side, words that neighbours share: as good under any layout.
bool takesAnyLayout(mlir::Operation* op, const GlobalAccess& access, const Facts& facts);

/// Rows (of dim 0) side by side that a gather reads from the same words, in aligned groups: packed weights, factors of
/// groups. 1: all are different, as far as is known.
int64_t rowsAlike(mlir::Operation* op, const Facts& facts);
/// The same of neighbours along the last dim, at most 16.
int64_t columnsAlike(mlir::Operation* op, const Facts& facts);
/// Elements of a tile that is gathered, along both, that one word serves.
int64_t elementsAlike(mlir::Operation* op, const Facts& facts);

/// Bytes wanted of the bytes of all 32-byte sectors one warp touches along `dim` with all its registers of one row.
double sectorUse(const layout::Layout& layout, int dim, int bytes);
/// The lanes of a warp hold a run of at least 128 bytes along `dim` together.
bool wholeLines(const layout::Layout& layout, int dim, int bytes);
/// Elementwise work alone makes the tile of narrower elements that were read.
bool isWidenedInPlace(mlir::Value tile);

}  // namespace tile::ir
