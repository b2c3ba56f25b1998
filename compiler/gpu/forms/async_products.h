// async_products.h - asynchronous products (wgmma engines), as the passes between layouts and emission see them. Each
// tile.mma on such an engine is one group; groups finish in the order in which they were issued.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// The product when `op` is an asynchronous one, else null.
MmaOp asyncProduct(mlir::Operation* op);
/// Whether the op is one, or has one in a region.
bool hasAsyncProduct(mlir::Operation* op);

/// The stage a product reads (its slot index) when the tile is a slot of a ring, else null.
mlir::Value slotOf(mlir::Value smem);
/// Whether the tile lies in one of two buffers that the iterations of the block's loop use alternately.
bool isAlternating(mlir::Value smem, mlir::Block& loopBody);

/// Which shared memory the unfinished products of a function may be reading, and what may overwrite it.
class AsyncReads {
 public:
  explicit AsyncReads(mlir::func::FuncOp func);

  /// Whether `product` must be finished before `op` (or anything in it) runs, because op may write what the product
  /// reads, or let other threads do so. Stages that a producer fills are written only after their release, so nothing
  /// else threatens them; nor does anything in a loop threaten what the loop only reads, and was there before it. In a
  /// ring that rotates, nothing in the loop threatens its product: the next iteration's writes stand behind the next
  /// product, where this one is finished. `isOfEarlier`: the product is from the previous iteration; stores to
  /// alternating buffers then write the other buffer.
  bool threatens(mlir::Operation* op, MmaOp product, bool isOfEarlier = false) const;

 private:
  llvm::DenseSet<mlir::Operation*> stages_;  ///< allocations that a producer fills
};

/// Fails with an error on the first op that reads an unfinished product. Every use of an asynchronous result must be
/// the accumulator of another product (and its only use), the operand of a tile.mma_wait that covers its group, or be
/// carried by a loop to such a use. Also fails if a stage is released that an unfinished product reads.
mlir::LogicalResult checkAsyncWaits(mlir::func::FuncOp func);

}  // namespace tile::ir
