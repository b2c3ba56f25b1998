// warp_grid.h - how the warps of a program divide each product, for all products of a kernel at once.
//
// Products whose accumulators meet in elementwise work (row maxima, rescaling, masks ...) must divide their rows alike,
// or every meeting would cost a trip through shared memory. Where one product's accumulator becomes another's first
// operand, all warps stand along M: then a warp owns whole rows, row reductions stay inside it, and the operand stays
// in registers. A class is computed by single warps or by warpgroups (64 rows each), never by both.
#pragma once
#include "compiler/dialect/dialect.h"
#include "compiler/targets/target.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace tile::ir {

/// What could compute one product: an engine of single warps always, one of warpgroups where target and types have one.
struct EngineChoice {
  Engine warps = Engine::fma;
  std::optional<Engine> warpgroups;
  bool transposed = false;  ///< warpgroups compute the transposed product: they divide its columns as rows
  bool canTurn = false;     ///< or the product as it is, an operand turning on its way through registers
  bool widensA = false;     ///< warpgroups: the first operand is made by the threads that hold it (turn_products.h)
  int columnUnit = 64;  ///< what the columns of a warpgroup must be a multiple of, when several share them
};

class WarpGrids {
 public:
  struct Grid {
    int m = 1, n = 1;  ///< warps
  };
  /// `enginesOf` answers for every tile.dot of the function. Warpgroups compute a class when they can compute each of
  /// its products without wasting much of any.
  WarpGrids(mlir::func::FuncOp func, int numWarps, llvm::function_ref<EngineChoice(DotOp)> enginesOf);

  Grid gridOf(DotOp dot) const { return grid_.lookup(dot.getOperation()); }
  Engine engineOf(DotOp dot) const { return engine_.lookup(dot.getOperation()); }
  /// Warpgroups compute its transpose; grid.n is a multiple of 4 instead of grid.m.
  bool isTransposed(DotOp dot) const { return transposed_.contains(dot.getOperation()); }
  /// The first operand is computed from accumulators held by the same warps, from indices alone, or widened: it need
  /// not leave the registers.
  bool keepsA(DotOp dot) const { return keepsA_.contains(dot.getOperation()); }

 private:
  mlir::Value leaderOf(mlir::Value value) const;
  void connect(mlir::Operation* op);
  void join(mlir::Value a, mlir::Value b);
  /// Made of indices and scalars alone, masks for example: computed again in whatever layout, so sharing one connects
  /// nobody.
  bool isRemade(mlir::Value tile);

  llvm::EquivalenceClasses<void*> classes_;  ///< Value::getAsOpaquePointer of tiles that share elements' owners
  llvm::DenseMap<mlir::Operation*, Grid> grid_;
  llvm::DenseMap<mlir::Operation*, Engine> engine_;
  llvm::DenseSet<mlir::Operation*> keepsA_, transposed_;
  llvm::DenseMap<mlir::Value, bool> remade_;
};

/// Warps for a kernel with products that does not say: accumulators of at most 128 registers per thread, at least 4
/// warps.
int planWarps(mlir::func::FuncOp func);
/// Warps for other kernels that do not say: 4, more when a thread would hold too much of the largest tile, fewer when
/// that has no element for each.
int defaultWarps(mlir::func::FuncOp func, const Target& target);

}  // namespace tile::ir
