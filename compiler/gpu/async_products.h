// async_products.h - products that run behind the back of the program (wgmma engines), as the passes between layouts
// and emission see them. Each tile.mma on such an engine is one group; groups finish in the order they were issued.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// The product when `op` is an asynchronous one, else null.
MmaOp asyncProduct(mlir::Operation* op);
/// Whether the op is one, or has one in a region.
bool hasAsyncProduct(mlir::Operation* op);

/// The stage a product reads (its slot index) when the tile is a slot of a ring, else null.
mlir::Value slotOf(mlir::Value smem);
/// The tile lies in buffers that the iterations of the block's loop use in turn.
bool isAlternating(mlir::Value smem, mlir::Block& loopBody);

/// Which shared memory the unfinished products of a function may be reading, and what may overwrite it.
class AsyncReads {
 public:
  explicit AsyncReads(mlir::func::FuncOp func);

  /// Whether `product` must be finished before `op` (or anything in it) runs: op may write what it reads, or let other
  /// threads do so. Stages that a producer fills are written only after their release, nothing else threatens them.
  /// Nothing in its loop threatens the product of a ring that rotates: what the next iteration writes stands behind
  /// that one's product, where this one is finished. `isOfEarlier`: the product is the last iteration's. Stores to
  /// buffers that take turns leave alone what it reads.
  bool threatens(mlir::Operation* op, MmaOp product, bool isOfEarlier = false) const;

 private:
  llvm::DenseSet<mlir::Operation*> stages_;  ///< allocations that a producer fills
};

/// Fails with an error on the first op that reads an unfinished product: every use of an asynchronous result is the
/// accumulator of another one (its only use), the operand of a tile.mma_wait that covers its group, or comes round a
/// loop into such a use. Also when a stage is released that an unfinished product reads.
mlir::LogicalResult checkAsyncWaits(mlir::func::FuncOp func);

}  // namespace tile::ir
