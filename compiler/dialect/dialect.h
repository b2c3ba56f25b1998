// dialect.h - the tile dialect's C++ classes.
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/IR/TensorEncoding.h"

#include "compiler/layout/layout.h"
#include "compiler/layout/shared.h"

namespace tile::layout {
inline llvm::hash_code hash_value(const Digit& d) { return llvm::hash_combine(d.dim, d.count, d.stride); }
inline llvm::hash_code hash_value(const Layout& l) {
  auto range = [](const auto& list) { return llvm::hash_combine_range(list.begin(), list.end()); };
  return llvm::hash_combine(range(l.shape()), range(l.regs()), range(l.lanes()), range(l.warps()));
}
}  // namespace tile::layout

#include "compiler/dialect/tile_dialect.h.inc"
#include "compiler/dialect/tile_enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/tile_attrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/tile_types.h.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/tile_ops.h.inc"

namespace tile::ir {
/// Layout of a tile's type; nullopt before layouts are assigned, and for scalars.
std::optional<layout::Layout> layoutOf(mlir::Type type);
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, const layout::Layout& value);
}  // namespace tile::ir
