// verify_attributes.cpp - the dialect's attributes on foreign operations: kernels, their arguments, loops. A promise
// that is malformed would be dropped silently or, worse, believed; a misspelt one would do nothing.
#include "compiler/dialect/boxes.h"
#include "compiler/dialect/dialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "runtime/spelling.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// An i32 in [low, high].
LogicalResult verifyNumber(Operation* op, NamedAttribute attr, int64_t low, int64_t high) {
  auto number = dyn_cast<IntegerAttr>(attr.getValue());
  if (number && number.getType().isInteger(32) && number.getInt() >= low && number.getInt() <= high) return success();
  return op->emitError() << "attribute '" << attr.getName().getValue() << "' must be an i32 between " << low << " and "
                         << high << ", found " << attr.getValue();
}

LogicalResult verifyUnit(Operation* op, NamedAttribute attr) {
  if (isa<UnitAttr>(attr.getValue())) return success();
  return op->emitError() << "attribute '" << attr.getName().getValue() << "' has no value, found " << attr.getValue();
}

/// `size` positive numbers (-1: one to three).
LogicalResult verifyList(Operation* op, NamedAttribute attr, int64_t size) {
  auto list = dyn_cast<DenseI32ArrayAttr>(attr.getValue());
  const bool sized = list && (size < 0 ? list.size() >= 1 && list.size() <= 3 : list.size() == size);
  if (sized && llvm::all_of(list.asArrayRef(), [](int32_t v) { return v > 0; })) return success();
  auto error = op->emitError() << "attribute '" << attr.getName().getValue() << "' must be array<i32> of ";
  if (size < 0)
    error << "one to three";
  else
    error << size;
  return error << " positive numbers, found " << attr.getValue();
}

LogicalResult verifyPowerOfTwo(Operation* op, NamedAttribute attr, int64_t most) {
  if (failed(verifyNumber(op, attr, 1, most))) return failure();
  if (llvm::isPowerOf2_64(cast<IntegerAttr>(attr.getValue()).getValue().getZExtValue())) return success();
  return op->emitError() << "attribute '" << attr.getName().getValue() << "' must be a power of 2, found "
                         << attr.getValue();
}

/// A name of ours that is not one of `names` but looks like one is a typing error.
LogicalResult verifyName(Operation* op, NamedAttribute attr, std::initializer_list<const char*> names) {
  const std::vector<std::string> list(names.begin(), names.end());
  const std::string name = attr.getName().str();
  if (llvm::is_contained(list, name) || nearest_name(name, list).empty()) return success();
  return op->emitError() << unknown_name("attribute", name, list);
}

}  // namespace

LogicalResult TileDialect::verifyOperationAttribute(Operation* op, NamedAttribute attr) {
  StringRef name = attr.getName().getValue();
  if (isa<FunctionOpInterface>(op)) {
    if (name == "tile.kernel") return verifyUnit(op, attr);
    if (name == "tile.num_warps" || name == "tile.programs") return verifyNumber(op, attr, 1, 32);
    if (name == "tile.cluster") return verifyPowerOfTwo(op, attr, 8);
    if (name == "tile.grid") return verifyList(op, attr, -1);
    return verifyName(op, attr, {"tile.kernel", "tile.num_warps", "tile.programs", "tile.cluster", "tile.grid"});
  }
  if (isa<scf::ForOp, scf::WhileOp>(op)) {
    if (name == "tile.stages") return verifyNumber(op, attr, 1, 1024);  // what fits is the planner's business
    if (name == "tile.unroll") return verifyNumber(op, attr, 1, 1024);
    if (name == "tile.specialize" || name == "tile.overlap" || name == "tile.pingpong")
      return verifyNumber(op, attr, 0, 1);
    return verifyName(op, attr, {"tile.stages", "tile.unroll", "tile.specialize", "tile.overlap", "tile.pingpong"});
  }
  if (name == "tile.multicast") {
    if (!isa<LoadSharedOp, TmaLoadOp>(op))
      return op->emitError() << "attribute '" << name << "' belongs on a copy of a box into shared memory";
    return verifyUnit(op, attr);
  }
  if (name == kInsideAttr) {
    if (!isa<LoadOp, StoreOp>(op))
      return op->emitError() << "attribute '" << name << "' belongs on a load or store of a box";
    return verifyUnit(op, attr);
  }
  if (name == "tile.tf32") {
    auto copy = dyn_cast<TmaLoadOp>(op);
    if (!copy || !copy.getTarget().getType().getElementType().isF32())
      return op->emitError() << "attribute '" << name << "' belongs on a bulk copy of f32";
    return verifyUnit(op, attr);
  }
  if (name == "tile.kernel" || name == "tile.num_warps" || name == "tile.programs" || name == "tile.cluster" ||
      name == "tile.grid")
    return op->emitError() << "attribute '" << name << "' belongs on a function";
  if (name == "tile.unroll") return op->emitError() << "attribute '" << name << "' belongs on a loop";
  return success();
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation* op, unsigned regionIndex, unsigned argIndex,
                                                    NamedAttribute attr) {
  StringRef name = attr.getName().getValue();
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func || argIndex >= func.getNumArguments()) return success();
  Type type = func.getArgumentTypes()[argIndex];
  auto view = dyn_cast<ViewType>(type);
  auto wrongType = [&](StringRef needs) {
    return op->emitError() << "attribute '" << name << "' of argument " << argIndex << " needs " << needs << ", found "
                           << type;
  };
  if (name == "tile.align") {
    if (!view && !isa<PtrType>(type)) return wrongType("a pointer or a view");
    auto number = dyn_cast<IntegerAttr>(attr.getValue());
    if (number && number.getType().isInteger(32) && number.getInt() > 0 && llvm::isPowerOf2_64(number.getInt()))
      return success();
    return op->emitError() << "attribute '" << name << "' must be an i32 power of two (bytes), found "
                           << attr.getValue();
  }
  if (name == "tile.nullable") return isa<PtrType>(type) ? verifyUnit(op, attr) : wrongType("a pointer");
  if (name == "tile.multiple_of")
    return type.isInteger() && isNumber(type) ? verifyNumber(op, attr, 1, INT32_MAX) : wrongType("an integer scalar");
  if (name == "tile.one")
    return type.isInteger() && isNumber(type) ? verifyUnit(op, attr) : wrongType("an integer scalar");
  if (name == "tile.unit_stride") return view ? verifyNumber(op, attr, 0, view.getRank() - 1) : wrongType("a view");
  if (name == "tile.no_bulk_copies") return view ? verifyUnit(op, attr) : wrongType("a view");
  if (name == "tile.stride_multiple_of" || name == "tile.dim_multiple_of")
    return view ? verifyList(op, attr, view.getRank()) : wrongType("a view");
  return verifyName(op, attr,
                    {"tile.align", "tile.nullable", "tile.multiple_of", "tile.one", "tile.unit_stride",
                     "tile.stride_multiple_of", "tile.dim_multiple_of", "tile.no_bulk_copies"});
}

}  // namespace tile::ir
