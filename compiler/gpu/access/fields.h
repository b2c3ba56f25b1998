// fields.h - pointers that are a constant apart: fields of records.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// A pointer without its constant offset: another pointer, and a scalar that is added to it (or none).
struct RecordStart {
  mlir::Value ptr, offset;
  bool operator==(const RecordStart&) const = default;
  /// A number of elements that the address is a multiple of.
  int64_t alignment(const Facts& facts, int bytes) const;
};
std::pair<RecordStart, int64_t> withoutConstantPart(mlir::Value ptr);

/// Whether two gathers read at the same offsets, under the same mask, in the same way: they differ in their pointers.
bool readAlike(GatherOp gather, GatherOp other);

/// Elements between two gathers that may be read as one window (lowering/windows.cpp).
inline constexpr int64_t kFarthestInWindow = 8;
/// The gathers of a block that read at the offsets of `gather`, near it, and so may be read as one window.
struct WindowReaders {
  int64_t count = 0;   ///< gathers, itself included
  int64_t spread = 0;  ///< elements between the first and the last of them
};
WindowReaders readersOfWindow(GatherOp gather);
/// Whether a window of single elements is worth it: they are chosen from anew for every gather, which wants to save two
/// loads of five.
inline bool savesEnough(int64_t together, int64_t apart) { return 5 * together <= 3 * apart; }

/// Whether two accesses through pointers never touch the same element because they are different fields: both start at
/// one pointer, and the difference of their constant offsets is no multiple of a number that everything else in their
/// addresses is a multiple of. `repeated`: also if they belong to different iterations.
bool areOtherFields(mlir::Operation* access, mlir::Operation* other, bool repeated, const Facts& facts);

}  // namespace tile::ir
