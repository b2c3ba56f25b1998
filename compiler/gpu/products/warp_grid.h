// warp_grid.h - how the warps of a program divide the result of each product, for all products of a kernel at once.
//
// Products whose accumulators are combined by elementwise work (row maxima, rescaling, masks ...) form a class. They
// must divide their rows alike, otherwise this work would need conversions through shared memory. If one product's
// accumulator becomes the first operand of another, all warps lie along M: a warp then owns whole rows, row reductions
// stay inside it, and the operand stays in registers. A class is computed by single warps or by warpgroups (64 rows
// each), never by both.
#pragma once
#include "compiler/dialect/dialect.h"
#include "compiler/targets/target.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace tile::ir {

/// The engines that can compute a product: one of single warps always, one of warpgroups if target and types have one.
struct EngineChoice {
  Engine warps = Engine::fma;
  std::optional<Engine> warpgroups;
  /// Warpgroups compute the transposed product, and so divide the columns of this one; or the product itself, with an
  /// operand that turns on its way.
  bool transposed = false;
  bool bothAlongK = false;  ///< warpgroups: neighbours of both operands lie along k, which either may then be first
  bool widensA = false;     ///< warpgroups: threads widen the first operand and keep it in registers (turn_products.h)
  int columnUnit = 64;  ///< what the columns of a warpgroup must be a multiple of, when several share them
  int narrowUnit = 64;  ///< the same where panels of the second operand may be narrower for it, which costs more copies
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
  /// Whether warpgroups compute the transposed product; then grid.n is a multiple of 4 instead of grid.m.
  bool isTransposed(DotOp dot) const { return transposed_.contains(dot.getOperation()); }
  /// Whether the first operand stays in registers: it is computed from accumulators of the same warps, from indices
  /// alone, or by widening.
  bool keepsA(DotOp dot) const { return keepsA_.contains(dot.getOperation()); }

 private:
  mlir::Value leaderOf(mlir::Value value) const;
  void connect(mlir::Operation* op);
  void join(mlir::Value a, mlir::Value b);
  /// Whether the tile is computed from indices and scalars alone (a mask, say): it can be computed again under any
  /// layout, so products that share it need not be of one class.
  bool isRemade(mlir::Value tile);

  llvm::EquivalenceClasses<void*> classes_;  ///< tiles (Value::getAsOpaquePointer) whose elements the same threads hold
  llvm::DenseMap<mlir::Operation*, Grid> grid_;
  llvm::DenseMap<mlir::Operation*, Engine> engine_;
  llvm::DenseSet<mlir::Operation*> keepsA_, transposed_;
  llvm::DenseMap<mlir::Value, bool> remade_;
};

/// Elements of the largest tile.
int64_t largestTile(mlir::func::FuncOp func);
/// Whether an innermost loop has such an operation.
bool anyInInnermostLoop(mlir::func::FuncOp func, llvm::function_ref<bool(mlir::Operation*)> is);
/// A kernel that says how many programs share a multiprocessor has registers for no more warps, and one code for all
/// launches.
bool sharesAsAsked(mlir::func::FuncOp func);

/// The number of warps for a kernel with products that does not set one: at least 4, and enough for accumulators of at
/// most 128 registers per thread.
int planWarps(mlir::func::FuncOp func);
/// Whether one warp is better than four: all products are small and of loops in which threads also combine what comes
/// of them, but load nothing (squarings until rows agree). A warp has their tiles in its registers, and waits for nobody;
/// four would compute more in all, and meet several times an iteration.
bool productsFitOneWarp(mlir::func::FuncOp func);
/// The number where each program has a multiprocessor for itself, `ofMany` where they share it. Of one warpgroup, two
/// programs share; where there is one, a second warpgroup takes the place of the other program, and all of the shared
/// memory holds stages.
int planWarpsOfFew(mlir::func::FuncOp func, int ofMany);
/// The number for other kernels: 4, more if a thread would hold too much of their tiles (estimateRegisters), one if no
/// tile has more than two elements for each thread of a warp, or a kernel without loops no more than a warp reads with
/// one access of each lane.
int defaultWarps(mlir::func::FuncOp func, const Target& target);
/// planWarpsOfFew for them: up to 16, as long as each thread has four elements of the largest tile; not where threads
/// combine in every step of a loop. No other program's warps hide what these wait for.
int warpsOfFew(mlir::func::FuncOp func, int ofMany, const Target& target);

}  // namespace tile::ir
