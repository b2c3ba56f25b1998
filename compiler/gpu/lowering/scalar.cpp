// scalar.cpp - the grid, pointers and views, and constant tiles.
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/roles.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

llvm::Value* programId(Emitter& e, int axis) {
  using namespace llvm;
  static constexpr Intrinsic::ID kId[] = {Intrinsic::nvvm_read_ptx_sreg_ctaid_x, Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
                                          Intrinsic::nvvm_read_ptx_sreg_ctaid_z};
  if (llvm::Value* known = e.roles().program[axis]) return known;
  return e.b.CreateIntrinsic(kId[axis], {});
}

LogicalResult emitGridOp(Emitter& e, Operation* op) {
  using namespace llvm;
  static constexpr Intrinsic::ID kCount[] = {Intrinsic::nvvm_read_ptx_sreg_nctaid_x,
                                             Intrinsic::nvvm_read_ptx_sreg_nctaid_y,
                                             Intrinsic::nvvm_read_ptx_sreg_nctaid_z};
  const auto axis = static_cast<int>(mlir::cast<IntegerAttr>(op->getAttr("axis")).getInt());
  const bool isId = mlir::isa<ProgramIdOp>(op);
  const KernelRoles& roles = e.roles();
  // With a work loop, fewer programs run than the grid has positions.
  if (isId && roles.hasWorkLoop() && !roles.program[axis])
    return op->emitOpError("must stand inside the kernel's tile.work_loop");
  if (isId)
    e.define(op->getResult(0), programId(e, axis));
  else
    e.define(op->getResult(0), roles.hasWorkLoop() ? roles.grid[axis] : e.b.CreateIntrinsic(kCount[axis], {}));
  return mlir::success();
}

LogicalResult emitPointerOp(Emitter& e, Operation* op) {
  llvm::IRBuilder<>& b = e.b;
  auto one = [&](llvm::Value* value) {
    e.define(op->getResult(0), value);
    return success();
  };
  return llvm::TypeSwitch<Operation*, LogicalResult>(op)
      .Case<PtrAddOp>([&](PtrAddOp o) -> LogicalResult {
        auto type = dyn_cast<PtrType>(o.getPtr().getType());
        if (!type) return o.emitOpError("on tiles must be gone before lowering (raise_pointers)");
        int64_t bytes = memoryBytes(llvmType(b.getContext(), type.getElementType()));
        llvm::Value* offset = b.CreateSExt(e.scalar(o.getOffset()), b.getInt64Ty());
        return one(b.CreatePtrAdd(e.scalar(o.getPtr()), b.CreateMul(offset, e.i64(bytes))));
      })
      .Case<PtrToIntOp>([&](PtrToIntOp o) { return one(b.CreatePtrToInt(e.scalar(o.getPtr()), b.getInt64Ty())); })
      .Case<IntToPtrOp>([&](IntToPtrOp o) { return one(b.CreateIntToPtr(e.scalar(o.getAddress()), b.getPtrTy(1))); })
      .Case<MakeViewOp>([&](MakeViewOp o) {
        ViewValue view{e.scalar(o.getPtr()), {}, {}};
        for (Value dim : o.getDims()) view.dims.push_back(e.scalar(dim));
        for (Value stride : o.getStrides()) view.strides.push_back(e.scalar(stride));
        e.defineView(o.getResult(), std::move(view));
        return success();
      })
      .Case<ViewPtrOp>([&](ViewPtrOp o) { return one(e.view(o.getView()).ptr); })
      .Case<ViewDimOp>([&](ViewDimOp o) { return one(e.view(o.getView()).dims[o.getDim()]); })
      .Case<ViewStrideOp>([&](ViewStrideOp o) { return one(e.view(o.getView()).strides[o.getDim()]); })
      .Default([](Operation* o) { return o->emitOpError("is not a pointer op"); });
}

// The elements go to constant memory in row-major order; each register loads its own.
LogicalResult emitConstantTable(Emitter& e, arith::ConstantOp op, DenseElementsAttr elements) {
  llvm::IRBuilder<>& b = e.b;
  const layout::Layout& layout = e.layoutOf(op.getResult());
  llvm::Type* element = e.elementType(op.getResult());
  llvm::Type* stored = element->isIntegerTy(1) ? b.getInt8Ty() : element;
  llvm::SmallVector<llvm::Constant*> values;
  for (TypedAttr value : elements.getValues<TypedAttr>()) {
    llvm::Constant* c = llvmConstant(b.getContext(), value);
    values.push_back(element->isIntegerTy(1) ? b.getInt8(llvm::cast<llvm::ConstantInt>(c)->getZExtValue()) : c);
  }
  auto* type = llvm::ArrayType::get(stored, values.size());
  auto* table = new llvm::GlobalVariable(*b.GetInsertBlock()->getModule(), type, /*isConstant=*/true,
                                         llvm::GlobalValue::InternalLinkage, llvm::ConstantArray::get(type, values),
                                         "tile_constant", nullptr, llvm::GlobalValue::NotThreadLocal, 1);
  table->setAlignment(llvm::Align(16));
  Regs result;
  for (int reg = 0; reg < layout.numRegs(); ++reg) {
    if (layout.isRegPadding(reg)) {
      result.push_back(llvm::PoisonValue::get(element));
      continue;
    }
    layout::Coord coord = layout.regCoord(reg);
    llvm::Value* index = e.i32(0);
    for (int dim = 0; dim < layout.rank(); ++dim) {
      llvm::Value* at = b.CreateAdd(e.threadCoord(layout, dim), e.i32(coord[dim]));
      // Padding reads the last element instead of past the table.
      if (layout.isPadded(dim)) at = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, at, e.i32(layout.shape()[dim] - 1));
      index = b.CreateAdd(b.CreateMul(index, e.i32(layout.shape()[dim])), at);
    }
    llvm::Value* ptr = b.CreateGEP(stored, table, b.CreateZExt(index, b.getInt64Ty()));
    result.push_back(loadVector(e, ptr, element, 1)[0]);
  }
  e.define(op.getResult(), std::move(result));
  return success();
}

}  // namespace tile::ir
