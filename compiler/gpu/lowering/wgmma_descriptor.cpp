// wgmma_descriptor.cpp - addresses as instructions want them, in units of 16 bytes.
#include "compiler/gpu/lowering/wgmma_descriptor.h"

namespace tile::ir {
using namespace llvm;

Descriptor::Descriptor(Emitter& e, mlir::Value smem, const layout::OperandDescriptor& operand)
    : e_(e), operand_(operand) {
  low_ = e.b.CreateAdd(start(smem), e.i32(static_cast<uint32_t>(operand.bits)));
}

void Descriptor::addBytes(Value* bytes) { low_ = e_.b.CreateAdd(low_, e_.b.CreateLShr(bytes, 4)); }

Value* Descriptor::first() const {
  IRBuilder<>& b = e_.b;
  Value* high = e_.i64(static_cast<int64_t>(operand_.bits & ~uint64_t{0xFFFFFFFF}));
  return b.CreateOr(b.CreateZExt(low_, b.getInt64Ty()), high, "", /*IsDisjoint=*/true);
}

// (address & 0x3FFFF) >> 4 of the buffer; slots are added behind the shift, which leaves the rest invariant in loops.
Value* Descriptor::start(mlir::Value smem) {
  IRBuilder<>& b = e_.b;
  if (auto trans = smem.getDefiningOp<SmemTransOp>()) return start(trans.getSource());
  if (auto slot = smem.getDefiningOp<SmemSlotOp>()) {
    Value* units = b.CreateNUWMul(e_.scalar(slot.getIndex()), e_.i32(slot.getRing().getType().slotBytes() / 16));
    return b.CreateAdd(start(slot.getRing()), units);
  }
  Value* address = b.CreatePtrToInt(e_.scalar(smem), b.getInt32Ty());
  return b.CreateLShr(b.CreateAnd(address, 0x3FFFF), 4);
}

mlir::FailureOr<layout::OperandDescriptor> describe(MmaOp op, SmemType type, bool isA) {
  const bool kMinor = type.getMinor() == (isA ? 1 : 0);
  if (auto operand = layout::operandDescriptor(type.slot(), kMinor)) return *operand;
  return op.emitOpError() << "cannot read " << type << " as operand " << (isA ? "a" : "b")
                          << ": expects a swizzled tile in groups of 8 rows"
                          << (kMinor ? "" : ", of 16-bit elements where k is not minor");
}

}  // namespace tile::ir
