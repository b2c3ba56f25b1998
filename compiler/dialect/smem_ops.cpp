// smem_ops.cpp - verifiers of the ops on tiles in shared memory. Messages name what was expected and what was found.
#include "compiler/dialect/histograms.h"
#include "compiler/dialect/products.h"

namespace tile::ir {
using namespace mlir;

namespace {

LogicalResult verifyFits(Operation* op, ArrayRef<int64_t> box, Type element, SmemType smem) {
  if (box.size() != 2) return op->emitOpError() << "expects a box of 2 dims, found " << box.size();
  for (int d = 0; d < 2; ++d)
    if (box[d] < 1 || box[d] > smem.getShape()[d])
      return op->emitOpError() << "expects 1 to " << smem.getShape()[d] << " elements along dim " << d << " of " << smem
                               << ", found " << box[d];
  if (element != smem.getElementType())
    return op->emitOpError() << "expects a buffer of " << element << ", found " << smem;
  if (smem.isRing()) return op->emitOpError() << "expects one stage, found the ring " << smem;
  return success();
}

LogicalResult verifyTile(Operation* op, Type tile, SmemType smem) {
  auto type = cast<RankedTensorType>(tile);
  if (smem.getInterleaved()) return op->emitOpError() << "expects elements in their order, found " << smem;
  return verifyFits(op, type.getShape(), type.getElementType(), smem);
}

/// All dims but the last, or the last that are a row, as one.
SmallVector<int64_t, 2> asRows(ArrayRef<int64_t> box, SmemType smem) {
  if (box.size() < 3) return SmallVector<int64_t, 2>(box);
  const auto across = static_cast<size_t>(smem.columnDims(box));
  int64_t rows = 1, columns = 1;
  for (int64_t extent : box.drop_back(across)) rows *= extent;
  for (int64_t extent : box.take_back(across)) columns *= extent;
  return {rows, columns};
}

LogicalResult verifyBoxCopy(Operation* op, ViewType view, OperandRange indices, ArrayRef<int64_t> box, SmemType smem) {
  if (static_cast<int64_t>(indices.size()) != view.getRank())
    return op->emitOpError() << "expects one index per view dim (" << view.getRank() << "), found " << indices.size();
  if (view.getRank() == 1 && (box.size() != 2 || box[0] != 1 || smem.getMinor() != 1))
    return op->emitOpError() << "expects a box of one row and a buffer with minor = 1 for a view of 1 dim, found "
                             << smem;
  if (static_cast<int64_t>(box.size()) > std::max<int64_t>(view.getRank(), 2))
    return op->emitOpError() << "expects a box of at most " << view.getRank() << " dims, found " << box.size();
  if (box.size() > 2 && smem.getMinor() != 1)
    return op->emitOpError() << "expects a buffer with minor = 1 for a box of " << box.size() << " dims, found "
                             << smem;
  return verifyFits(op, asRows(box, smem), view.getElementType(), smem);
}

LogicalResult verifyGather(Operation* op, PtrType ptr, Value offsets, Value mask, SmemType smem) {
  auto type = cast<RankedTensorType>(offsets.getType());
  if (mask && cast<RankedTensorType>(mask.getType()).getShape() != type.getShape())
    return op->emitOpError() << "mask must have the shape of " << type << ", found " << mask.getType();
  return verifyFits(op, type.getShape(), ptr.getElementType(), smem);
}

}  // namespace

LogicalResult LoadSharedOp::verify() {
  return verifyBoxCopy(*this, getView().getType(), getIndices(), getBox(), getResult().getType());
}
LogicalResult AsyncCopyOp::verify() {
  if (getBox().size() != 2) return emitOpError() << "expects a box of 2 dims, found " << getBox().size();
  return verifyBoxCopy(*this, getView().getType(), getIndices(), getBox(), getTarget().getType());
}
LogicalResult GatherSharedOp::verify() {
  return verifyGather(*this, getPtr().getType(), getOffsets(), getMask(), getResult().getType());
}
LogicalResult AsyncGatherOp::verify() {
  return verifyGather(*this, getPtr().getType(), getOffsets(), getMask(), getTarget().getType());
}
LogicalResult ShareOp::verify() { return verifyTile(*this, getSource().getType(), getResult().getType()); }
LogicalResult SmemLoadOp::verify() { return verifyTile(*this, getResult().getType(), getSource().getType()); }
LogicalResult SmemStoreOp::verify() { return verifyTile(*this, getValue().getType(), getTarget().getType()); }

LogicalResult SmemCountOp::verify() {
  const SmemType type = getTarget().getType();
  if (type.isRing() || type.getShape().size() != 2 || type.getShape()[0] != 1 || type.getMinor() != 1 ||
      type.getShape()[1] % getCopies() != 0)
    return emitOpError() << "expects one row of numbers, " << getCopies() << " of each, found " << type;
  return verifyWeights(*this, getSource(), getWeights(), type.getElementType());
}

LogicalResult SmemZeroOp::verify() {
  if (!getBox()) return success();
  const SmemType type = getTarget().getType();
  if (type.isRing() || type.getInterleaved() || type.getShape().size() != 2)
    return emitOpError() << "has a box in one plain tile of two dims, found " << type;
  if (getBox()->size() != 2 || (*getBox())[0] < 0 || (*getBox())[1] < 0 || (*getBox())[0] > type.getShape()[0] ||
      (*getBox())[1] > type.getShape()[1])
    return emitOpError() << "expects a box inside of " << type;
  return success();
}

LogicalResult SmemTurnOp::verify() {
  SmemType from = getSource().getType(), to = getTarget().getType();
  for (SmemType type : {from, to})
    if (type.isRing()) return emitOpError() << "expects one stage, found the ring " << type;
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType() ||
      from.getMinor() == to.getMinor() || from.getInterleaved())
    return emitOpError() << "expects the same tile with another minor dim, found " << from << " and " << to;
  if (!turns(from.elementBytes()) || from.getShape()[0] % 32 != 0 || from.getShape()[1] % 32 != 0)
    return emitOpError() << "turns whole 32x32 blocks of 8-bit or 32-bit elements, found " << from;
  return success();
}
LogicalResult SmemSlotOp::verify() {
  const SmemType slot = getRing().getType().slotType(), type = getResult().getType();
  if (type.isRing()) return emitOpError() << "expects one stage, found the ring " << type;
  if (type == slot || (type.slotBytes() <= slot.slotBytes() && type.alignment() <= slot.alignment())) return success();
  return emitOpError() << "expects a tile that fits a stage of " << slot.slotBytes() << " bytes aligned to "
                       << slot.alignment() << ", found " << type << " of " << type.slotBytes() << " aligned to "
                       << type.alignment();
}
LogicalResult SmemTransOp::verify() {
  if (getResult().getType() == getSource().getType().transposed()) return success();
  return emitOpError() << "expects " << getSource().getType().transposed() << ", found " << getResult().getType();
}

LogicalResult BatchMmaOp::verify() {
  auto shapeOf = [](Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); };
  const ArrayRef<int64_t> a = shapeOf(getA()), b = shapeOf(getB()), acc = shapeOf(getAcc());
  if (a[0] != acc[0] || b[0] != acc[0] || a[1] != acc[1] || a[2] != b[1] || b[2] != acc[2])
    return emitOpError() << "operands must be as many matrices that fit: " << getA().getType() << " * "
                         << getB().getType() << " + " << getAcc().getType();
  return success();
}

LogicalResult MmaOp::verify() {
  auto acc = cast<RankedTensorType>(getAcc().getType());
  auto shapeOf = [](Type t) {
    if (auto smem = dyn_cast<SmemType>(t)) return smem.getShape();
    return cast<RankedTensorType>(t).getShape();
  };
  auto elementOf = [](Type t) {
    if (auto smem = dyn_cast<SmemType>(t)) return smem.getElementType();
    return cast<RankedTensorType>(t).getElementType();
  };
  ArrayRef<int64_t> a = shapeOf(getA().getType()), b = shapeOf(getB().getType());
  if (getWarpsM() < 1 || getWarpsN() < 1)
    return emitOpError() << "expects positive warps, found " << getWarpsM() << " x " << getWarpsN();
  const bool warpgroups = getEngine() >= Engine::wgmma_f16;  // the last rows of the enum
  const bool transposed = isTransposed(*this);
  const uint32_t inFours = transposed ? getWarpsN() : getWarpsM();
  if (warpgroups && inFours % 4 != 0)
    return emitOpError() << "expects warps along " << (transposed ? "N" : "M")
                         << " in multiples of 4 (warpgroups), found " << inFours;
  if (transposed && !isa<SmemType>(getA().getType()))
    return emitOpError() << "computes the transpose, so a must be in shared memory, found " << getA().getType();
  if (auto first = dyn_cast<SmemType>(getA().getType());
      transposed && fragmentOperand(*this) && !(first && first.getMinor() == 1))
    return emitOpError() << "reads " << getB().getType() << " through registers, so a must be in shared memory with k "
                         << "minor, found " << getA().getType();
  const bool inRegisters = isa<RankedTensorType>(getA().getType());
  if (warpgroups && inRegisters && elementOf(getA().getType()).getIntOrFloatBitWidth() > 16)
    return emitOpError() << "reads elements of at most 16 bits from registers, found " << getA().getType();
  if (auto first = dyn_cast<SmemType>(getA().getType()); first && first.getInterleaved())
    return emitOpError() << "expects a first operand with its elements in order, found " << first;
  if (SmemType second = getB().getType();
      second.getInterleaved() && !(warpgroups && inRegisters && second.getMinor() == 0))
    return emitOpError() << "reads an interleaved b along k, by warpgroups, with a in registers; found "
                         << getA().getType() << " and " << second;
  if (elementOf(getB().getType()).isF64() && isa<RankedTensorType>(getA().getType()))
    return emitOpError() << "reads 64-bit elements from shared memory only, found " << getA().getType();
  if (a[0] < acc.getDimSize(0) || b[1] < acc.getDimSize(1))
    return emitOpError() << "operands must cover " << acc << ", found " << getA().getType() << " and "
                         << getB().getType();
  if (a[1] < getK() || b[0] < getK())
    return emitOpError() << "operands must cover k = " << getK() << ", found " << getA().getType() << " and "
                         << getB().getType();
  const Type left = elementOf(getA().getType()), right = elementOf(getB().getType());
  if (left != right && !(isF8(left) && isF8(right)))
    return emitOpError() << "operands must have one element type, found " << getA().getType() << " and "
                         << getB().getType();
  for (Value operand : {getA(), Value(getB())})
    if (auto smem = dyn_cast<SmemType>(operand.getType()); smem && smem.isRing())
      return emitOpError() << "expects one stage, found the ring " << smem;
  return success();
}

}  // namespace tile::ir
