// warp_grid.h - how the warps of a program divide each product, for all products of a kernel at once.
//
// Products whose accumulators meet in elementwise work (row maxima, rescaling, masks ...) must divide their rows alike, or
// every meeting would cost a trip through shared memory. Where one product's accumulator becomes another's first operand,
// all warps stand along M: then a warp owns whole rows, row reductions stay inside it, and the operand stays in registers.
#pragma once
#include "compiler/dialect/dialect.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace tile::ir {

class WarpGrids {
 public:
  struct Grid {
    int m = 1, n = 1;
  };
  /// `engineOf` answers for every tile.dot of the function.
  WarpGrids(mlir::func::FuncOp func, int numWarps, llvm::function_ref<Engine(DotOp)> engineOf);

  Grid gridOf(DotOp dot) const { return grid_.lookup(dot.getOperation()); }
  /// The first operand is computed from accumulators held by the same warps: it need not leave the registers.
  bool keepsA(DotOp dot) const { return keepsA_.contains(dot.getOperation()); }

 private:
  mlir::Value leaderOf(mlir::Value value) const;
  void connect(mlir::Operation* op);
  void join(mlir::Value a, mlir::Value b);

  llvm::EquivalenceClasses<void*> classes_;  ///< Value::getAsOpaquePointer of tiles that share elements' owners
  llvm::DenseMap<mlir::Operation*, Grid> grid_;
  llvm::DenseSet<mlir::Operation*> keepsA_;
};

/// Warps for a kernel with products that does not say: accumulators of at most 128 registers per thread, at least 4 warps.
int planWarps(mlir::func::FuncOp func);

}  // namespace tile::ir
