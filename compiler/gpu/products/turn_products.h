// turn_products.h - which operands of products are widened on their way (quantised weights), for transposing products
// so that such an operand comes first.
#pragma once
#include "compiler/gpu/dot_passes.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

/// Whether the tile is made by elementwise work from loads alone, most of them of narrower elements than its own. Each
/// thread can then make the elements that a warpgroup's product takes from its registers, without an exchange through
/// shared memory. `others`: rows or columns of the other operand. Beside few of them, which only single warps multiply
/// otherwise, this is worth it where words of several numbers are taken apart, and factors of groups are gathered, too;
/// beside many, threads read fewer of these for elements that they exchange.
bool isWidened(mlir::Value tile, int64_t others);

/// Whether the tile is made in its loop by elementwise work from a load as large as itself, from smaller loads, and
/// from smaller tiles that the loop does not change (statistics of its rows, say), but not from products; and one op
/// reads it.
bool isMadeOfLoads(mlir::Value tile);

}  // namespace tile::ir
