// edge_conditions.h - where places lie that code reads, and when all of them are inside a picture or grid: what
// peel_edges asks about clamps, wraps, masks and boxes, and the condition under which none of them has an effect.
//
// Places are linear: sums of scalars and of iotas. The condition is made of scalars, once for a program; it is computed
// with 64 bits, and says as well that the program's own 32 bits do not wrap.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace tile::ir {

/// Clamps and masks of a block that are without effect where all of some sums are not above zero.
class Edges {
 public:
  /// `first`: where the condition will stand.
  explicit Edges(mlir::Operation* first) : first_(first) {}

  /// `x` where the tile is min or max of x and something that is the same for all elements; null otherwise.
  mlir::Value unclamped(mlir::Operation* op);

  /// Where the tile is a % n, and a is n too large at most (written "x + k + n", or not): n, and how often it goes.
  std::optional<std::pair<mlir::Value, int64_t>> unwrapped(mlir::Operation* op);

  /// Where the tile is chosen by where places x lie (x == 0 ? n - 1 : x - 1, or x < n ? x : 2 * n - x): the operand
  /// that is x and a number, if no x lies beyond the edge. Numbers are first places, scalars last ones.
  mlir::Value unturned(mlir::Operation* op);

  /// The scalar that all elements of the tile are, where it is one.
  mlir::Value scalarOf(mlir::Value tile);

  /// Whether the comparison of places can be true for all elements; then it is needed that it is.
  bool takesTrue(mlir::arith::CmpIOp compare);

  /// Whether a box of a view can be inside of it; then it is needed that it is.
  bool takesInside(mlir::Value view, mlir::ValueRange indices, llvm::ArrayRef<int64_t> shape);

  bool isEmpty() const { return needs_.empty(); }

  /// All that is needed, as one i1.
  mlir::Value condition(mlir::OpBuilder& b, mlir::Location loc) const;

 private:
  /// The values of a tile's elements: the sum of scalars (times factors), and something from `low` to `high`.
  struct Span {
    std::map<size_t, int64_t> scalars;  ///< their numbers in scalars_, and factors
    int64_t low = 0, high = 0;
    bool isExact = true;  ///< no sum that could wrap

    void add(const Span& other, int64_t sign);
    /// Whether conditions of it fit 64 bits: the number, and scalars of 32 bits times their factors.
    bool isSmall() const;
  };
  using Scalars = std::vector<std::pair<size_t, int64_t>>;

  /// Its number: what follows from an order of addresses would be other code in every run.
  size_t numberOf(mlir::Value scalar);

  /// Every value is looked at once: sums of sums would be walked 2^depth times.
  std::optional<Span> spanOf(mlir::Value value, int depth = 0);

  std::optional<Span> findSpan(mlir::Value value, int depth);

  /// The size of a view's dim, one value for all boxes.
  mlir::Value dimOf(mlir::OpBuilder& b, mlir::Value view, int64_t d);

  bool isThere(mlir::Value scalar) const;

  /// a <= b (or a >= b), by `more` at least, for all elements. False: that is never so.
  bool need(Span a, const Span& b, bool above, int64_t more = 0);
  bool needFits(const Span& span);

  mlir::Operation* first_;
  std::map<Scalars, int64_t> needs_;  ///< scalars times factors, and a number: not above zero
  llvm::DenseMap<mlir::Value, std::optional<Span>> known_;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> dims_;
  llvm::SetVector<mlir::Value> scalars_;
};

}  // namespace tile::ir
