// count_ops.cpp - what counts in shared memory must look like.
#include "compiler/dialect/count_ops.h"

#define GET_OP_CLASSES
#include "compiler/dialect/tile_counts.cpp.inc"

namespace tile::ir {
using namespace mlir;

LogicalResult SmemCountOp::verify() {
  const SmemType type = getTarget().getType();
  if (type.isRing() || type.getShape().size() != 2 || type.getShape()[0] != 1 || type.getMinor() != 1 ||
      !type.getElementType().isInteger(32))
    return emitOpError() << "expects one row of i32, found " << type;
  return success();
}

}  // namespace tile::ir
