// shared.cpp - buffers in shared memory: addresses, stores, loads, zeroing.
#include <algorithm>
#include <numeric>

#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "compiler/gpu/rings/stage_reads.h"
#include "compiler/layout/matrix_store.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace llvm;

Value* emitThreadSum(Emitter& e, const layout::ThreadSum& sum) {
  Value* total = nullptr;
  for (const layout::ThreadTerm& term : sum.terms) {
    if (term.mod == 1 || term.mul == 0) continue;
    bool isLane = term.source == layout::ThreadTerm::lane;
    Value* v = isLane ? e.lane() : e.warp();
    const int extent = (isLane ? e.target.lanes : e.numWarps()) / term.div;
    if (term.div > 1) v = e.b.CreateUDiv(v, e.i32(term.div));
    if (term.mod < extent) v = e.b.CreateURem(v, e.i32(term.mod));
    if (term.mul > 1) v = e.b.CreateNUWMul(v, e.i32(term.mul));
    total = total ? e.b.CreateNUWAdd(total, v) : v;
  }
  return total ? total : e.i32(0);
}

void emitIf(Emitter& e, Value* condition, function_ref<void()> body) {
  if (!condition) return body();
  Function* function = e.b.GetInsertBlock()->getParent();
  BasicBlock* then = BasicBlock::Create(e.b.getContext(), "then", function);
  BasicBlock* after = BasicBlock::Create(e.b.getContext(), "after", function);
  e.b.CreateCondBr(condition, then, after);
  e.b.SetInsertPoint(then);
  body();
  e.b.CreateBr(after);
  e.b.SetInsertPoint(after);
}

// ---- addresses

SmemAddress::SmemAddress(Emitter& e, const layout::SharedTile& tile, Value* row, int64_t rowMask, Value* byte,
                         int64_t byteMask)
    : e_(e), tile_(tile), row_(row), byte_(byte), rowMask_(rowMask), byteMask_(byteMask) {
  offset_ = offsetOf(row, byte);
}

SmemAddress::SmemAddress(Emitter& e, const layout::SharedTile& tile, const layout::ThreadSum& row,
                         const layout::ThreadSum& byte)
    : SmemAddress(e, tile, emitThreadSum(e, row), row.mask(e.numWarps()), emitThreadSum(e, byte),
                  byte.mask(e.numWarps())) {}

namespace {

int64_t coordMask(const layout::Layout& layout, int dim) {
  int64_t bits = 0;
  for (int warp = 0; warp < layout.numWarps(); ++warp)
    for (int lane = 0; lane < layout.numLanes(); ++lane) bits |= layout.threadCoord(lane, warp)[dim];
  return bits;
}

}  // namespace

SmemAddress::SmemAddress(Emitter& e, const layout::SharedTile& tile, const layout::Layout& layout, int rowDim)
    : SmemAddress(e, tile, e.threadCoord(layout, rowDim), coordMask(layout, rowDim),
                  e.b.CreateMul(e.threadCoord(layout, 1 - rowDim), e.i32(tile.elementBytes)),
                  coordMask(layout, 1 - rowDim) * tile.elementBytes) {}

// layout::SharedTile::address on values.
Value* SmemAddress::offsetOf(Value* row, Value* byte) const {
  IRBuilder<>& b = e_.b;
  if (!tile_.swizzle) return b.CreateAdd(b.CreateMul(row, e_.i32(tile_.pitch)), byte);
  const int64_t s = tile_.swizzle;
  Value* flip = b.CreateShl(b.CreateAnd(b.CreateLShr(b.CreateMul(row, e_.i32(s)), 7), s / 16 - 1), 4);
  Value* inside = b.CreateXor(b.CreateAnd(byte, s - 1), flip);
  Value* offset = b.CreateAdd(b.CreateMul(row, e_.i32(s)), inside);
  if (tile_.panels() == 1) return offset;
  return b.CreateAdd(offset, b.CreateMul(b.CreateUDiv(byte, e_.i32(s)), e_.i32(tile_.rows * s)));
}

Value* SmemAddress::at(Value* base, int64_t rowConstant, int64_t byteConstant) const {
  IRBuilder<>& b = e_.b;
  if (auto split = layout::splitOffset(tile_, rowMask_, byteMask_, rowConstant, byteConstant)) {
    Value* offset = split->flip ? b.CreateXor(offset_, split->flip) : offset_;
    return b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), b.CreateInBoundsGEP(b.getInt8Ty(), base, offset),
                                        static_cast<unsigned>(split->add));
  }
  Value* offset = offsetOf(b.CreateAdd(row_, e_.i32(rowConstant)), b.CreateAdd(byte_, e_.i32(byteConstant)));
  return b.CreateInBoundsGEP(b.getInt8Ty(), base, offset);
}

// ---- ops
namespace {

/// Another tile for products is stored before threads meet: the fence behind that one serves both.
bool isFencedLater(SmemStoreOp store) {
  for (mlir::Operation* op = store->getNextNode(); op; op = op->getNextNode()) {
    if (auto other = dyn_cast<SmemStoreOp>(op); other && isReadByWgmma(other.getTarget())) return true;
    const bool isLocal =
        isa<SmemAllocOp, SmemSlotOp, SmemTransOp, SmemLoadOp, LoadOp>(op) || mlir::isMemoryEffectFree(op);
    if (!isLocal || op->getNumRegions() != 0 || op->hasAttr(kScratchAttr) || isa<MmaOp>(op)) return false;
  }
  return false;
}

LogicalResult emitSmemStore(Emitter& e, SmemStoreOp op) {
  SmemType type = op.getTarget().getType();
  storeTile(e, e.regs(op.getValue()), e.layoutOf(op.getValue()), e.scalar(op.getTarget()), type.slot(),
            static_cast<int>(type.getMinor()));
  if (isReadByWgmma(op.getTarget()) && !isFencedLater(op)) fenceAsyncProxy(e);
  return success();
}

LogicalResult emitSmemLoad(Emitter& e, SmemLoadOp op) {
  const layout::Layout& layout = e.layoutOf(op.getResult());
  SmemType type = op.getSource().getType();
  const int minor = static_cast<int>(type.getMinor()), major = 1 - minor;
  const layout::SharedTile tile = type.slot();
  if (auto values = loadByMatrices(e, e.elementType(op.getResult()), layout, e.scalar(op.getSource()), tile, minor)) {
    e.define(op.getResult(), *values);
    return success();
  }
  SmemAddress address(e, tile, layout, major);
  const int length = vectorLength(layout, tile, minor);
  Type* element = e.elementType(op.getResult());
  const SmallVector<Value*> zeros(length, Constant::getNullValue(element));
  Regs result(static_cast<size_t>(layout.numRegs()), zeros[0]);
  for (const std::vector<int>& run : layout.runs(minor, length)) {
    const int reg = run[0];
    if (layout.isRegPadding(reg)) continue;
    layout::Coord coord = layout.regCoord(reg);
    Value* pointer = address.at(e.scalar(op.getSource()), coord[major], coord[minor] * tile.elementBytes);
    const auto loaded = loadVector(e, pointer, element, length, e.inTile(layout, reg), zeros);
    for (auto [to, value] : llvm::zip(run, loaded)) result[static_cast<size_t>(to)] = value;
  }
  e.define(op.getResult(), result);
  return success();
}

/// Runs `body` for 0 ... count - 1, each by one thread.
void forEach(Emitter& e, int64_t count, llvm::function_ref<void(Value*)> body) {
  IRBuilder<>& b = e.b;
  Function* function = b.GetInsertBlock()->getParent();
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* head = BasicBlock::Create(b.getContext(), "each", function);
  BasicBlock* inside = BasicBlock::Create(b.getContext(), "each.body", function);
  BasicBlock* after = BasicBlock::Create(b.getContext(), "each.end", function);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  PHINode* index = b.CreatePHI(b.getInt32Ty(), 2);
  index->addIncoming(e.thread(), before);
  b.CreateCondBr(b.CreateICmpULT(index, e.i32(count)), inside, after);
  b.SetInsertPoint(inside);
  body(index);
  index->addIncoming(b.CreateAdd(index, e.i32(e.numThreads())), b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(after);
}

/// Zeros in rows [row, rows) and bytes [from, to) of each, in pieces that stay together under swizzles.
void zeroPart(Emitter& e, Value* base, const layout::SharedTile& tile, int64_t row, int64_t from, int64_t to) {
  if (row >= tile.rows || from >= to) return;
  IRBuilder<>& b = e.b;
  const int64_t piece = std::gcd(std::gcd(from, to), int64_t{16}), pieces = (to - from) / piece;
  Type* type = piece > 4 ? static_cast<Type*>(FixedVectorType::get(b.getInt32Ty(), static_cast<unsigned>(piece / 4)))
                         : b.getIntNTy(static_cast<unsigned>(8 * piece));
  forEach(e, (tile.rows - row) * pieces, [&](Value* index) {
    Value* r = b.CreateAdd(b.CreateUDiv(index, e.i32(pieces)), e.i32(row));
    Value* byte = b.CreateAdd(b.CreateMul(b.CreateURem(index, e.i32(pieces)), e.i32(piece)), e.i32(from));
    const SmemAddress address(e, tile, r, -1, byte, -1);
    b.CreateAlignedStore(Constant::getNullValue(type), address.at(base, 0, 0), Align(static_cast<uint64_t>(piece)));
  });
}

LogicalResult emitSmemZero(Emitter& e, SmemZeroOp op) {
  const SmemType type = op.getTarget().getType();
  Value* base = e.scalar(op.getTarget());
  if (const auto box = op.getBox()) {
    const layout::SharedTile tile = type.slot();
    const int64_t filled = (*box)[type.getMinor()] * tile.elementBytes;
    zeroPart(e, base, tile, 0, filled, tile.rowBytes());
    zeroPart(e, base, tile, (*box)[1 - type.getMinor()], 0, filled);
  } else {
    // slotBytes and the alignment are multiples of 16, so whole buffers are vectors of 16 bytes.
    IRBuilder<>& b = e.b;
    forEach(e, type.bytes() / 16, [&](Value* chunk) {
      Value* pointer = b.CreateInBoundsGEP(b.getInt8Ty(), base, b.CreateMul(chunk, e.i32(16)));
      b.CreateAlignedStore(Constant::getNullValue(FixedVectorType::get(b.getInt32Ty(), 4)), pointer, Align(16));
    });
  }
  if (isReadByWgmma(op.getTarget())) fenceAsyncProxy(e);
  return success();
}

LogicalResult emitAsyncWait(Emitter& e, AsyncWaitOp op) {
  e.b.CreateIntrinsic(Intrinsic::nvvm_cp_async_wait_group, {e.i32(op.getPending())});
  // What the copies wrote counts as this thread's ordinary stores.
  bool feedsWgmma = false;
  op->getParentOfType<mlir::func::FuncOp>().walk([&](mlir::Operation* copy) {
    if (auto box = dyn_cast<AsyncCopyOp>(copy)) feedsWgmma |= isReadByWgmma(box.getTarget());
    if (auto gather = dyn_cast<AsyncGatherOp>(copy)) feedsWgmma |= isReadByWgmma(gather.getTarget());
  });
  if (feedsWgmma) fenceAsyncProxy(e);
  return success();
}

LogicalResult emitSlot(Emitter& e, SmemSlotOp op) {
  Value* offset = e.b.CreateNUWMul(e.scalar(op.getIndex()), e.i32(op.getRing().getType().slotBytes()));
  e.define(op.getResult(), e.b.CreateInBoundsGEP(e.b.getInt8Ty(), e.scalar(op.getRing()), offset));
  return success();
}

LogicalResult emitAlloc(Emitter& e, SmemAllocOp op) {
  if (!op.getOffset()) return op.emitOpError("has no address: place_buffers has not run");
  e.define(op.getResult(), e.shared(*op.getOffset()));
  return success();
}

}  // namespace

namespace {

bool isAsync(mlir::Operation* op) { return isa<AsyncCopyOp, AsyncGatherOp, AsyncCommitOp>(op); }

// Scalar arithmetic and names of buffers: nothing that takes time or touches memory.
bool isTrivial(mlir::Operation* op) {
  if (isa<mlir::arith::ConstantOp, SplatOp>(op)) return true;
  return mlir::isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
         llvm::none_of(op->getResultTypes(), [](mlir::Type t) { return isa<mlir::RankedTensorType>(t); });
}

}  // namespace

SmallVector<mlir::Operation*> carriedBy(MmaOp op) {
  SmallVector<mlir::Operation*> carried;
  for (mlir::Operation* at = op->getPrevNode(); at && (isAsync(at) || isTrivial(at)); at = at->getPrevNode())
    if (isAsync(at)) carried.push_back(at);
  std::reverse(carried.begin(), carried.end());
  return carried;
}

bool isCarried(mlir::Operation* asyncOp) {
  mlir::Operation* at = asyncOp->getNextNode();
  while (at && (isAsync(at) || isTrivial(at))) at = at->getNextNode();
  auto mma = dyn_cast_or_null<MmaOp>(at);
  return mma && mma.getEngine() != Engine::fma;
}

LogicalResult emitAsyncOp(Emitter& e, mlir::Operation* op) {
  if (auto copy = dyn_cast<AsyncCopyOp>(op)) return emitAsyncCopy(e, copy);
  if (auto gather = dyn_cast<AsyncGatherOp>(op)) return emitAsyncGather(e, gather);
  e.b.CreateIntrinsic(Intrinsic::nvvm_cp_async_commit_group, {});
  return success();
}

bool isSmemOp(mlir::Operation* op) {
  return isa<SmemAllocOp, SmemSlotOp, SmemTransOp, SmemLoadOp, SmemStoreOp, SmemZeroOp, AsyncCopyOp, AsyncGatherOp,
             AsyncCommitOp, AsyncWaitOp, MmaOp, BatchMmaOp, MmaWaitOp>(op);
}

LogicalResult emitSmemOp(Emitter& e, mlir::Operation* op) {
  return TypeSwitch<mlir::Operation*, LogicalResult>(op)
      .Case([&](SmemAllocOp o) { return emitAlloc(e, o); })
      .Case([&](SmemSlotOp o) { return emitSlot(e, o); })
      .Case([&](SmemTransOp o) {
        e.define(o.getResult(), e.scalar(o.getSource()));
        return success();
      })
      .Case([&](SmemLoadOp o) { return emitSmemLoad(e, o); })
      .Case([&](SmemStoreOp o) { return emitSmemStore(e, o); })
      .Case([&](SmemZeroOp o) { return emitSmemZero(e, o); })
      .Case<AsyncCopyOp, AsyncGatherOp, AsyncCommitOp>(
          [&](mlir::Operation* o) { return isCarried(o) ? success() : emitAsyncOp(e, o); })
      .Case([&](AsyncWaitOp o) { return emitAsyncWait(e, o); })
      .Case([&](MmaOp o) {
        if (o.getEngine() == Engine::fma) return emitFma(e, o);
        return isWgmma(o.getEngine()) ? emitWgmma(e, o) : emitMma(e, o);
      })
      .Case([&](BatchMmaOp o) { return emitBatchMma(e, o); })
      .Case([&](MmaWaitOp o) { return emitMmaWait(e, o); })
      .Default([](mlir::Operation* o) { return o->emitOpError("has no lowering for the GPU"); });
}

}  // namespace tile::ir
