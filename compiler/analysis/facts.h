// facts.h - what is known about integers before the kernel runs, for vectorised and aligned access.
//
// For an integer tile, along one dim and with every other coordinate fixed:
//   contiguity   the elements split into aligned groups of this many in which each is the one before plus 1
//   divisibility the first element of every such group is a multiple of this power of two (zero: kZeroDivisibility)
//   constancy    the elements split into aligned groups of this many that are equal
// Contiguity and constancy divide the dim's size. A scalar has one entry with contiguity and constancy 1. Unknown is 1
// everywhere, and always right.
#pragma once
#include <cstdint>

#include "compiler/analysis/range.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

struct AxisFacts {
  llvm::SmallVector<int64_t, 4> contiguity, divisibility, constancy;
  bool operator==(const AxisFacts&) const = default;
};

/// Divisibility reported for zero: a power of two larger than any alignment of interest.
inline constexpr int64_t kZeroDivisibility = int64_t{1} << 30;

/// Ends of an integer argument, of the kernel's.
inline constexpr llvm::StringLiteral kAtLeastAttr = "tile.at_least", kAtMostAttr = "tile.at_most";

/// What is known about a view value.
struct ViewFacts {
  int64_t align = 1;                       ///< bytes
  int unitStrideDim = -1;                  ///< dim whose stride is 1, -1: none known
  llvm::SmallVector<int64_t, 4> strideDivisibility, dimDivisibility;
  bool operator==(const ViewFacts&) const = default;
};

/// Facts about every value of one function, computed when made (one pass over the body, loops to a fixed point).
/// After changes to the IR they are stale: make new ones.
class Facts {
 public:
  /// `anyMask`: as if masks of loads were always true, for choices that are right either way.
  explicit Facts(mlir::Operation* func, bool anyMask = false);

  AxisFacts of(mlir::Value value) const;
  /// Largest known power of two that divides a scalar, or every element of a tile.
  int64_t divisibility(mlir::Value value) const;
  /// Values an integer (or every element of a tile) can take, signed; its type's whole range when nothing is known.
  Range rangeOf(mlir::Value value) const;

  /// Alignment in bytes promised for a pointer's or view's first element; at least the element's size.
  int64_t alignOf(mlir::Value ptrOrView) const;
  /// The view dim whose stride is 1; -1 when no dim is known to be.
  int unitStrideDim(mlir::Value view) const;
  int64_t strideDivisibility(mlir::Value view, int dim) const;  ///< in elements
  int64_t dimDivisibility(mlir::Value view, int dim) const;
  bool ignoresMasks() const { return anyMask_; }

 private:
  friend class FactsBuilder;
  bool anyMask_ = false;
  llvm::DenseMap<mlir::Value, AxisFacts> axis_;
  llvm::DenseMap<mlir::Value, Range> range_;
  llvm::DenseMap<mlir::Value, int64_t> align_;  ///< scalar pointers
  llvm::DenseMap<mlir::Value, ViewFacts> views_;
};

}  // namespace tile::ir
