// copied_loop.h - loops whose copies to shared memory run ahead of their iterations, through rings of buffers.
#pragma once
#include <memory>

#include "compiler/dialect/dialect.h"
#include "compiler/gpu/rings/copy_slice.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {

struct CopiedLoop {
  mlir::scf::ForOp loop;
  llvm::SmallVector<mlir::Operation*> copies;
  std::unique_ptr<CopySlice> slice;
  int stages = 0;
  int asked = 0;  ///< stages the user wants; 0: no wish
  int64_t bytesPerStage = 0;
};

/// Whether a copy (or share) fills less than its buffer has, and the rest must be zero.
bool needsZeros(mlir::Operation* copy);
/// What of the buffer need not be zero around what such a copy fills; empty where that is no box of two dims.
llvm::SmallVector<int64_t> boxAmongZeros(mlir::Operation* copy);

/// Makes the loop one whose copies run `stages` - 1 iterations ahead; returns the new one.
mlir::scf::ForOp pipelineCopies(CopiedLoop& ring);

}  // namespace tile::ir
