// fields.h - places a constant apart: the fields of records.
#pragma once
#include "compiler/analysis/facts.h"

namespace tile::ir {

/// Where a pointer starts but for a constant number of elements: another pointer, and a scalar added to it (or none).
struct RecordStart {
  mlir::Value ptr, offset;
  bool operator==(const RecordStart&) const = default;
  /// Elements that the start is a multiple of, in memory.
  int64_t alignment(const Facts& facts, int bytes) const;
};
std::pair<RecordStart, int64_t> withoutConstantPart(mlir::Value ptr);

/// Two accesses through pointers never meet, whichever of their elements: they start at one pointer, and how far apart
/// their constant parts are is no multiple of what all else in their places is one of. `repeated`: as far as they are
/// from different iterations, too.
bool areOtherFields(mlir::Operation* access, mlir::Operation* other, bool repeated, const Facts& facts);

}  // namespace tile::ir
