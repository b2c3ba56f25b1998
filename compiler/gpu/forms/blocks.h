// blocks.h - the blocks of a kernel whose ops may change places.
#pragma once
#include <optional>

#include "compiler/dialect/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tile::ir {

/// All blocks, those of loops and conditions included, but for the combiners of reductions and scans.
inline llvm::SmallVector<mlir::Block*> blocksOf(mlir::func::FuncOp func) {
  llvm::SmallVector<mlir::Block*> blocks;
  func.walk([&](mlir::Operation* op) {
    if (mlir::isa<ReduceOp, ScanOp>(op)) return;
    for (mlir::Region& region : op->getRegions())
      for (mlir::Block& block : region) blocks.push_back(&block);
  });
  return blocks;
}

/// What `op` (with all inside it) needs of what stands in its block from `place` on, in order; nullopt: some of it
/// cannot stand in front of `place`. Reads of memory can only `withReads`, where the caller has seen to it that nothing
/// in between changes what they read.
std::optional<llvm::SmallVector<mlir::Operation*>> partsBehind(mlir::Operation* op, mlir::Operation* place,
                                                               bool withReads = false);

}  // namespace tile::ir
