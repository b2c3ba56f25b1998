// histograms.h - what verifiers of ops that count values, or add up their weights, share.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Counts are i32; weights are one for each value, of the type that they are added in.
inline mlir::LogicalResult verifyWeights(mlir::Operation* op, mlir::Value source, mlir::Value weights,
                                         mlir::Type sums) {
  if (!weights) return sums.isInteger(32) ? mlir::success() : op->emitOpError() << "counts in i32, found " << sums;
  auto from = mlir::cast<mlir::RankedTensorType>(source.getType());
  auto type = mlir::cast<mlir::RankedTensorType>(weights.getType());
  if (type.getShape() == from.getShape() && type.getElementType() == sums) return mlir::success();
  return op->emitOpError() << "expects a weight of " << sums << " for each element of " << from << ", found " << type;
}

}  // namespace tile::ir
