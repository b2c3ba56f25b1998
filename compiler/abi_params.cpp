// abi_params.cpp - function arguments to ParamInfo. Both back ends read the result, so that they agree on the slots.
#include "compiler/abi_params.h"

#include "compiler/dialect/dialect.h"

namespace tile::ir {

std::optional<DType> dtypeOf(mlir::Type type) {
  if (auto integer = mlir::dyn_cast<mlir::IntegerType>(type)) {
    if (!integer.isSignless()) return std::nullopt;
    switch (integer.getWidth()) {
      case 1: return DType::i1;
      case 8: return DType::i8;
      case 16: return DType::i16;
      case 32: return DType::i32;
      case 64: return DType::i64;
      default: return std::nullopt;
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
      p.rank = static_cast<uint8_t>(view.getRank());
      element = view.getElementType();
    } else {
      p.kind = ParamInfo::scalar;
    }
    std::optional<DType> dtype = dtypeOf(element);
    if (!dtype) {
      mlir::emitError(arg.getLoc()) << "parameter " << arg.getArgNumber() << " of kernel `" << kernel.getSymName()
                                    << "` must be a pointer, a view or a scalar of i1, i8 ... i64, f8, f16, bf16, f32 or f64; found "
                                    << arg.getType();
      return mlir::failure();
    }
    p.dtype = *dtype;
    params.push_back(p);
  }
  return params;
}

}  // namespace tile::ir
