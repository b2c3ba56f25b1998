// abi_params.cpp - function arguments to ParamInfo. Both back ends read the result, so that they agree on the slots.
#include "compiler/abi_params.h"

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tile::ir {

std::optional<DType> dtypeOf(mlir::Type type) {
  if (auto integer = mlir::dyn_cast<mlir::IntegerType>(type)) {
    if (!integer.isSignless()) return std::nullopt;
    switch (integer.getWidth()) {
      case 1:
        return DType::i1;
      case 8:
        return DType::i8;
      case 16:
        return DType::i16;
      case 32:
        return DType::i32;
      case 64:
        return DType::i64;
      default:
        return std::nullopt;
    }
  }
  if (type.isF16()) return DType::f16;
  if (type.isBF16()) return DType::bf16;
  if (type.isF32()) return DType::f32;
  if (type.isF64()) return DType::f64;
  if (mlir::isa<mlir::Float8E4M3FNType>(type)) return DType::f8e4m3;
  if (mlir::isa<mlir::Float8E5M2Type>(type)) return DType::f8e5m2;
  return std::nullopt;
}

namespace {

/// Nothing follows from the value: a copy, or a place behind it, that nobody reads is dead code.
bool isUnread(mlir::Value value) {
  llvm::SmallVector<mlir::Value> values{value};
  llvm::DenseSet<mlir::Operation*> seen;
  while (!values.empty())
    for (mlir::Operation* user : values.pop_back_val().getUsers()) {
      if (!seen.insert(user).second) continue;
      if (mlir::isa<ViewDimOp, ViewStrideOp>(user)) continue;  // of a view, not of its memory
      if (user->getNumRegions() || user->hasTrait<mlir::OpTrait::IsTerminator>() || !mlir::isMemoryEffectFree(user))
        return false;
      values.append(user->result_begin(), user->result_end());
    }
  return true;
}

// What the code may rely on is what every launch then checks.
void takePromises(mlir::func::FuncOp kernel, unsigned index, ParamInfo& p) {
  auto number = [&](llvm::StringRef name) -> int64_t {
    auto attr = kernel.getArgAttrOfType<mlir::IntegerAttr>(index, name);
    return attr ? attr.getInt() : 0;
  };
  // The facts keep the power of two in a number, and so do the checks.
  auto powerOfTwoIn = [](int64_t n) { return static_cast<uint32_t>(n > 0 ? n & -n : 0); };
  p.align = powerOfTwoIn(number("tile.align"));
  p.multiple_of = powerOfTwoIn(number("tile.multiple_of"));
  p.one = kernel.getArgAttr(index, "tile.one") != nullptr;
  // What no code looks at (the bias of a configuration without one) need not be there.
  const bool isUnused = p.kind != ParamInfo::scalar && isUnread(kernel.getArgument(index));
  p.nullable = isUnused || kernel.getArgAttr(index, "tile.nullable") != nullptr;
  if (p.kind != ParamInfo::view) return;
  if (auto unit = kernel.getArgAttrOfType<mlir::IntegerAttr>(index, "tile.unit_stride");
      unit && unit.getInt() >= 0 && unit.getInt() < p.rank)
    p.unit_stride = static_cast<int8_t>(unit.getInt());
  auto list = [&](llvm::StringRef name, std::array<uint32_t, kMaxRank>& into) {
    auto attr = kernel.getArgAttrOfType<mlir::DenseI32ArrayAttr>(index, name);
    for (int64_t d = 0; attr && d < std::min<int64_t>(attr.size(), p.rank); ++d)
      into[static_cast<size_t>(d)] = powerOfTwoIn(attr[d]);
  };
  list("tile.stride_multiple_of", p.stride_multiple_of);
  list("tile.dim_multiple_of", p.dim_multiple_of);
}

}  // namespace

mlir::FailureOr<std::vector<ParamInfo>> abiParams(mlir::func::FuncOp kernel) {
  std::vector<ParamInfo> params;
  for (mlir::BlockArgument arg : kernel.getArguments()) {
    ParamInfo p;
    mlir::Type element = arg.getType();
    if (auto ptr = mlir::dyn_cast<PtrType>(arg.getType())) {
      p.kind = ParamInfo::pointer;
      element = ptr.getElementType();
    } else if (auto view = mlir::dyn_cast<ViewType>(arg.getType())) {
      p.kind = ParamInfo::view;
      if (view.getRank() > kMaxRank) {
        mlir::emitError(arg.getLoc()) << "parameter " << arg.getArgNumber() << " of kernel `" << kernel.getSymName()
                                      << "` is a view of rank " << view.getRank() << "; at most " << kMaxRank
                                      << " is supported";
        return mlir::failure();
      }
      p.rank = static_cast<uint8_t>(view.getRank());
      element = view.getElementType();
    } else {
      p.kind = ParamInfo::scalar;
    }
    std::optional<DType> dtype = dtypeOf(element);
    if (!dtype) {
      mlir::emitError(arg.getLoc())
          << "parameter " << arg.getArgNumber() << " of kernel `" << kernel.getSymName()
          << "` must be a pointer, a view or a scalar of i1, i8 ... i64, f8, f16, bf16, f32 or f64; found "
          << arg.getType();
      return mlir::failure();
    }
    p.dtype = *dtype;
    p.stored = llvm::any_of(arg.getUsers(), [](mlir::Operation* user) { return mlir::isa<StoreOp>(user); });
    takePromises(kernel, arg.getArgNumber(), p);
    if (auto name = mlir::dyn_cast<mlir::NameLoc>(arg.getLoc())) p.name = name.getName().str();
    params.push_back(p);
  }
  return params;
}

}  // namespace tile::ir
