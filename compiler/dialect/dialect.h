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

namespace tile::ir {
/// More elements than this in one tile fit no program of any target.
inline constexpr int64_t kMaxTileElements = int64_t{1} << 22;
inline constexpr int64_t kMaxTileRank = 8;
/// Whether values of the type are numbers of the language (DType, signless).
bool isNumber(mlir::Type type);
/// Whether the type is an 8-bit float (f8E4M3FN, f8E5M2) or holds such.
bool isF8(mlir::Type type);
/// Whether the type is a tensor with a shape a tile can have: rank 1 to 8, static positive dims, kMaxTileElements.
bool isTileType(mlir::Type type);
/// Trait: a function of floats that the math dialect lacks. Every target has the code for it that this compiler emits.
template <class Op>
class IsFloatFunction : public mlir::OpTrait::TraitBase<Op, IsFloatFunction> {};
}  // namespace tile::ir

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
