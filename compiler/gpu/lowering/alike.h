// alike.h - registers of a thread that are known to hold equal values: flags of neighbours on one side of a bound,
// factors of groups.
#pragma once
#include "compiler/layout/layout.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace tile::ir {

/// For a tile in which aligned groups of `constancy` elements along each dim are equal: for every register of a thread,
/// the first register that holds the same value (possibly itself).
llvm::SmallVector<size_t> firstOfEqual(llvm::ArrayRef<int64_t> constancy, const layout::Layout& layout);

}  // namespace tile::ir
