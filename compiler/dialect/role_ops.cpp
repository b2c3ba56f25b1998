// role_ops.cpp - verifiers of roles, rings and bulk copies. Messages name what was expected and what was found.
#include "compiler/dialect/dialect.h"
#include "runtime/abi.h"

namespace tile::ir {
using namespace mlir;

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stages) {
  if (stages < 1 || stages > 1024) return emitError() << "!tile.ring must have 1 to 1024 stages, found " << stages;
  return success();
}

LogicalResult SpecializeOp::verify() {
  for (uint32_t regs : {getProducerRegs(), getConsumerRegs()})
    if (regs != 0 && (regs < 24 || regs > 256 || regs % 8 != 0))
      return emitOpError() << "expects registers from 24 to 256 in steps of 8, or 0, found " << regs;
  if (!isa<func::FuncOp>((*this)->getParentOp())) return emitOpError("must stand directly in a kernel");
  if (hasTurner() && getProducer().walk([](RingCommitOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return emitOpError("has a turner, so its producer must be one thread: threads of the other warps cannot copy");
  return success();
}

LogicalResult WorkLoopOp::verify() {
  Block& body = getBody().front();
  if (body.getNumArguments() != 3 || llvm::any_of(body.getArgumentTypes(), [](Type t) { return !t.isInteger(32); }))
    return emitOpError("expects a body with three i32 arguments: the program's x, y and z");
  return success();
}

int64_t HandOverOp::wordsOf(TypeRange types) {
  int64_t words = 0;
  for (Type type : types) words += type.getIntOrFloatBitWidth() > 32 ? 2 : 1;
  return words;
}

namespace {

/// `types`: of the op's scalars. Both ends of a ring have the same, and stages hold them in rows of four words.
LogicalResult verifyHanded(Operation* op, Value ring, TypeRange types) {
  for (Type type : types)
    if (type.getIntOrFloatBitWidth() > 64)
      return op->emitOpError() << "expects scalars of at most 64 bits, found " << type;
  for (Operation* user : ring.getUsers())
    if (auto handed = dyn_cast<HandOverOp>(user); handed && TypeRange(handed.getValues()) != types)
      return op->emitOpError("expects the types of the ring's hand_over");
  auto alloc = ring.getDefiningOp<RingAllocOp>();
  const auto needed = static_cast<int64_t>(llvm::alignTo(4 * HandOverOp::wordsOf(types), 16));
  if (!alloc || (alloc.getPayload() >= needed && alloc.getPayload() % 16 == 0)) return success();
  return op->emitOpError() << "expects a ring with a payload of " << needed << " bytes, found " << alloc.getPayload();
}

}  // namespace

LogicalResult HandOverOp::verify() { return verifyHanded(*this, getRing(), getValues().getTypes()); }
LogicalResult TakeOverOp::verify() { return verifyHanded(*this, getRing(), getValues().getTypes()); }

namespace {

LogicalResult verifyBulk(Operation* op, ViewType view, OperandRange indices, SmemType smem) {
  if (static_cast<int64_t>(indices.size()) != view.getRank())
    return op->emitOpError() << "expects one index per view dim (" << view.getRank() << "), found " << indices.size();
  if (view.getRank() > 5) return op->emitOpError() << "expects a view of at most 5 dims, found " << view;
  if (view.getElementType() != smem.getElementType())
    return op->emitOpError() << "expects a buffer of " << view.getElementType() << ", found " << smem;
  if (smem.isRing()) return op->emitOpError() << "expects one stage, found the ring " << smem;
  return success();
}

}  // namespace

LogicalResult TmaLoadOp::verify() {
  return verifyBulk(*this, getView().getType(), getIndices(), getTarget().getType());
}

LogicalResult TmaDescribeOp::verify() {
  if (!getView().getDefiningOp<MakeViewOp>()) return emitOpError("expects a view made by tile.make_view");
  const SmemType memory = getMemory().getType();
  if (memory.bytes() == kTensorMapBytes) return success();
  return emitOpError() << "expects " << kTensorMapBytes << " bytes of memory, found " << memory;
}

LogicalResult TmaStoreOp::verify() {
  SmemType staging = getStaging().getType();
  auto tile = cast<RankedTensorType>(getValue().getType());
  if (failed(verifyBulk(*this, getView().getType(), getIndices(), staging))) return failure();
  if (tile.getElementType() != staging.getElementType())
    return emitOpError() << "expects a buffer of " << tile.getElementType() << ", found " << staging;
  Type element = tile.getElementType();
  if (getAdd() && !element.isF32() && !element.isF16() && !element.isBF16() && !element.isInteger(32))
    return emitOpError() << "adds f32, f16, bf16 or i32, found " << tile;
  if (staging.getMinor() != 1 || staging.getShape()[0] != tile.getDimSize(0) ||
      tile.getDimSize(1) % staging.getShape()[1] != 0)
    return emitOpError() << "expects staging with " << tile.getDimSize(0) << " rows, a divisor of "
                         << tile.getDimSize(1) << " columns and minor = 1, found " << staging;
  return success();
}

}  // namespace tile::ir
