// integer_facts.h - what one operation says about the integers it makes, from what is known about its operands.
#pragma once
#include <optional>

#include "compiler/analysis/axis_facts.h"
#include "mlir/IR/BuiltinTypes.h"

namespace tile::ir {

struct IntegerFacts {
  AxisFacts axis;
  Range range;  ///< before it is cut to what the type holds
};
/// Of the only result, an integer or a tile of them. Nullopt: nothing is known.
std::optional<IntegerFacts> integerFacts(mlir::Operation* op, const Facts& known);

/// Dims of a tile's type; none of a scalar's.
Shape shapeOfType(mlir::Type type);
bool isIntegerType(mlir::Type type);
/// Bits of its elements; 64 for index, and for what is no integer.
unsigned integerBits(mlir::Type type);

}  // namespace tile::ir
