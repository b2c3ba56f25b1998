// facts.h - what is known about integers before the kernel runs, for vectorised and aligned access.
//
// For an integer tile, along one dim and with every other coordinate fixed:
//   contiguity   the elements split into aligned groups of this many in which each is the one before plus 1
//   divisibility the first element of every such group is a multiple of this (of an all-zero value: kZeroDivisibility)
//   constancy    the elements split into aligned groups of this many that are equal
// A scalar has one entry with contiguity and constancy 1. Entries are powers of two except contiguity and constancy of
// whole dims, which are the dim's size. Unknown is 1 everywhere, and always right.
#pragma once
#include <cstdint>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

struct AxisFacts {
  llvm::SmallVector<int64_t, 4> contiguity, divisibility, constancy;
  bool operator==(const AxisFacts&) const = default;
};

/// Smallest and largest value an integer can have, as a signed number. For a tile: over all its elements.
struct Range {
  int64_t min, max;
  bool operator==(const Range&) const = default;
};

/// Divisibility reported for zero: a power of two larger than any alignment of interest.
inline constexpr int64_t kZeroDivisibility = int64_t{1} << 30;

/// Facts about every value of one function, computed when made (one pass over the body, loops to a fixed point).
/// Holds no references into the IR after changes to it: make a new one.
class Facts {
 public:
  explicit Facts(mlir::Operation* func);

  AxisFacts of(mlir::Value value) const;
  /// Largest known power of two that divides a scalar (or every element of a tile).
  int64_t divisibility(mlir::Value value) const;
  /// Alignment in bytes promised for a pointer's or view's first element; at least the element's size.
  int64_t alignOf(mlir::Value ptrOrView) const;
  /// The view dim whose stride is 1; -1 when no dim is known to be.
  int unitStrideDim(mlir::Value view) const;
  int64_t strideDivisibility(mlir::Value view, int dim) const;  ///< in elements
  int64_t dimDivisibility(mlir::Value view, int dim) const;
  /// Values an integer can take; its type's whole range when nothing is known.
  Range rangeOf(mlir::Value value) const;

 private:
  llvm::DenseMap<mlir::Value, AxisFacts> axis_;
  llvm::DenseMap<mlir::Value, Range> range_;
  llvm::DenseMap<mlir::Value, int64_t> align_;  ///< pointers and views, in bytes
};

}  // namespace tile::ir
