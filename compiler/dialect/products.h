// products.h - where products are, and what the types of a tile.mma's operands say about how a warpgroup computes it.
//
// wgmma takes 16-bit operands from shared memory in either order, others only where elements along k are neighbours. A
// first operand may come from registers, though, so one tile that lies the other way is read into registers by the
// threads (its "fragments"). When that tile is b, the product is computed as its transpose, b^T a^T: then b^T comes
// first. So are products whose columns are divided among warpgroups and whose rows are not (warps along M not in
// fours), of 16-bit elements, or of others that lie along k in both operands: tiles of few rows, or of other numbers of
// rows than instructions have.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// It is a product of matrices (placed or not), or one stands inside.
bool hasProduct(mlir::Operation* op);
/// One stands in a loop inside.
bool hasProductInLoop(mlir::Operation* op);

/// The engine computes acc^T += b^T a^T: its rows are the columns of the accumulator, warps along N are in fours.
bool isTransposed(MmaOp op);
/// The operand in shared memory (possibly a tile.smem_trans) that the threads of a warpgroup read into registers, or
/// null.
mlir::Value fragmentOperand(MmaOp op);

}  // namespace tile::ir
