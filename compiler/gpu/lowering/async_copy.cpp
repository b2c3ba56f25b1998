// async_copy.cpp - global to shared memory: cp.async where chunks of 4 bytes or more are aligned, else through registers.
//
// Threads stand in rows of 2^c along the buffer's contiguous dim, so that neighbours read neighbouring chunks; each thread
// takes every (threads / 2^c)-th row. Its addresses are one base per copy plus constants: what changes from iteration to
// iteration of a loop is the same for all threads and is added last.
#include "compiler/gpu/copy_layout.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/MathExtras.h"

namespace tile::ir {
using namespace llvm;

namespace {

/// Issues the chunks of one copy. Chunks through registers are loaded in batches before they are stored.
class ChunkCopier {
 public:
  ChunkCopier(Emitter& e, int bytes) : e_(e), bytes_(bytes) {}

  /// `read`: chunk is read if true (null: always), else zeros. `partial`: bytes to read, the rest zeros (null: all).
  /// `write`: false leaves the buffer alone (null: always write).
  void copy(Value* target, Value* source, Value* read, Value* partial, Value* write) {
    if (bytes_ < 4) {
      pending_.push_back({target, source, e_.andAll({read, write}), write});
      if (pending_.size() == kBatch) finish();
      return;
    }
    IRBuilder<>& b = e_.b;
    Value* size = partial;
    if (read) size = b.CreateSelect(read, partial ? partial : e_.i32(bytes_), e_.i32(0));
    emitIf(e_, write, [&] {
      SmallVector<Value*, 3> args{target, source};
      if (size) args.push_back(size);
      b.CreateIntrinsic(intrinsic(size), {}, args);
    });
  }

  void finish() {
    Type* type = e_.b.getIntNTy(8 * bytes_);
    SmallVector<Value*> loaded;
    for (const Pending& p : pending_) loaded.push_back(loadVector(e_, p.source, type, 1, p.read, {Constant::getNullValue(type)})[0]);
    for (auto [p, value] : zip(pending_, loaded)) storeVector(e_, p.target, {value}, p.write);
    pending_.clear();
  }

 private:
  static constexpr size_t kBatch = 16;
  struct Pending {
    Value *target, *source, *read, *write;
  };

  Intrinsic::ID intrinsic(bool sized) const {
    switch (bytes_) {
      case 4: return sized ? Intrinsic::nvvm_cp_async_ca_shared_global_4_s : Intrinsic::nvvm_cp_async_ca_shared_global_4;
      case 8: return sized ? Intrinsic::nvvm_cp_async_ca_shared_global_8_s : Intrinsic::nvvm_cp_async_ca_shared_global_8;
      default: return sized ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s : Intrinsic::nvvm_cp_async_cg_shared_global_16;
    }
  }

  Emitter& e_;
  int bytes_;
  SmallVector<Pending> pending_;
};

Value* wide(Emitter& e, Value* v) { return e.b.CreateSExt(v, e.b.getInt64Ty()); }

/// One dim of the copied box.
struct Axis {
  Value *start, *dim, *stride;  ///< i64: box origin, view dim, view stride in elements
  bool whole;                   ///< the box is entirely inside or entirely outside along this dim
};

}  // namespace

LogicalResult emitAsyncCopy(Emitter& e, AsyncCopyOp op) {
  IRBuilder<>& b = e.b;
  const SmemType type = op.getTarget().getType();
  const layout::SharedTile tile = type.slot();
  const int minor = static_cast<int>(type.getMinor()), major = 1 - minor;
  const int lead = static_cast<int>(op.getView().getType().getRank()) - 2;
  const ViewValue& view = e.view(op.getView());
  const Facts& facts = e.facts();
  const int eb = tile.elementBytes;
  int chunk = copyBytes(op, facts);

  auto axisOf = [&](int dim, int64_t extent) {
    bool whole = facts.dimDivisibility(op.getView(), dim) % extent == 0 && facts.divisibility(op.getIndices()[dim]) % extent == 0;
    return Axis{wide(e, e.scalar(op.getIndices()[dim])), view.dims[dim], view.strides[dim], whole};
  };
  const Axis rows = axisOf(lead + major, op.getBox()[major]), cols = axisOf(lead + minor, op.getBox()[minor]);
  const bool unit = facts.unitStrideDim(op.getView()) == lead + minor;
  // A view that may end inside a chunk: cp.async reads part of it; through registers, elements go one by one.
  bool mayCut = !cols.whole && facts.dimDivisibility(op.getView(), lead + minor) * eb % chunk != 0;
  if (chunk < 4 && mayCut) chunk = eb, mayCut = false;

  const int perChunk = chunk / eb;
  const int64_t boxRows = op.getBox()[major], chunksPerRow = op.getBox()[minor] / perChunk;
  const int threadCols = static_cast<int>(std::min<int64_t>(PowerOf2Ceil(chunksPerRow), 32));
  const int threadRows = e.numThreads() / threadCols;
  Value* threadCol = b.CreateURem(e.thread(), e.i32(threadCols));
  Value* threadRow = b.CreateUDiv(e.thread(), e.i32(threadCols));
  SmemAddress address(e, tile, threadRow, static_cast<int64_t>(PowerOf2Ceil(threadRows)) - 1,
                      b.CreateNUWMul(threadCol, e.i32(chunk)), (threadCols - 1) * chunk);

  // What all chunks share: does the iteration exist, is the box inside along the leading dims.
  SmallVector<Value*> shared;
  if (op.getEnable()) shared.push_back(e.scalar(op.getEnable()));
  Value* origin = e.i64(0);  // elements from the view's first to the box's
  for (int d = 0; d < lead; ++d) {
    Value* index = wide(e, e.scalar(op.getIndices()[d]));
    shared.push_back(b.CreateICmpULT(index, view.dims[d]));
    origin = b.CreateAdd(origin, b.CreateMul(index, view.strides[d]));
  }
  origin = b.CreateAdd(origin, b.CreateMul(rows.start, rows.stride));
  origin = b.CreateAdd(origin, unit ? cols.start : b.CreateMul(cols.start, cols.stride));
  for (const Axis* axis : {&rows, &cols})
    if (axis->whole) shared.push_back(b.CreateICmpULT(axis->start, axis->dim));
  Value* allShared = e.andAll(shared);

  Type* element = b.getIntNTy(8 * eb);
  Value* row64 = b.CreateZExt(threadRow, b.getInt64Ty());
  Value* col64 = b.CreateZExt(b.CreateNUWMul(threadCol, e.i32(perChunk)), b.getInt64Ty());
  Value* threadOffset = b.CreateAdd(b.CreateMul(row64, rows.stride), unit ? col64 : b.CreateMul(col64, cols.stride));
  Value* first = b.CreateGEP(element, b.CreateGEP(element, view.ptr, threadOffset), origin);

  ChunkCopier copier(e, chunk);
  for (int64_t r = 0; r < boxRows; r += threadRows) {
    Value* rowPointer = r ? b.CreateGEP(element, first, b.CreateMul(rows.stride, e.i64(r))) : first;
    Value* rowInside = nullptr;
    if (!rows.whole) rowInside = b.CreateICmpULT(b.CreateAdd(rows.start, b.CreateAdd(row64, e.i64(r))), rows.dim);
    Value* rowInBox = r + threadRows <= boxRows ? nullptr : b.CreateICmpULT(threadRow, e.i32(boxRows - r));
    for (int64_t c = 0; c < chunksPerRow; c += threadCols) {
      Value* pointer = rowPointer;
      if (c) pointer = unit ? b.CreateGEP(element, rowPointer, e.i64(c * perChunk))
                            : b.CreateGEP(element, rowPointer, b.CreateMul(cols.stride, e.i64(c * perChunk)));
      Value *colInside = nullptr, *partial = nullptr;
      if (!cols.whole) {
        Value* col = b.CreateAdd(cols.start, b.CreateAdd(col64, e.i64(c * perChunk)));
        colInside = b.CreateICmpULT(col, cols.dim);
        if (mayCut) {
          Value* left = b.CreateMul(b.CreateSub(cols.dim, col), e.i64(eb));
          Value* cut = b.CreateBinaryIntrinsic(Intrinsic::umin, left, e.i64(chunk));
          partial = b.CreateTrunc(cut, b.getInt32Ty());
        }
      }
      Value* colInBox = c + threadCols <= chunksPerRow ? nullptr : b.CreateICmpULT(threadCol, e.i32(chunksPerRow - c));
      copier.copy(address.at(e.scalar(op.getTarget()), r, c * chunk), pointer, e.andAll({allShared, rowInside, colInside}), partial,
                  e.andAll({rowInBox, colInBox}));
    }
  }
  copier.finish();
  return success();
}

LogicalResult emitAsyncGather(Emitter& e, AsyncGatherOp op) {
  IRBuilder<>& b = e.b;
  const SmemType type = op.getTarget().getType();
  const layout::SharedTile tile = type.slot();
  const int minor = static_cast<int>(type.getMinor()), major = 1 - minor;
  const layout::Layout& layout = e.layoutOf(op.getOffsets());
  const int eb = tile.elementBytes;
  // The offsets should be in asyncGatherLayout; any other layout costs width, not correctness.
  int perChunk = copyBytes(op, e.facts()) / eb;
  while (layout.contiguousRegs(minor) % perChunk) perChunk /= 2;

  SmemAddress address(e, tile, layout, major);
  Type* element = b.getIntNTy(8 * eb);
  Value* enable = op.getEnable() ? e.scalar(op.getEnable()) : nullptr;
  ArrayRef<Value*> offsets = e.regs(op.getOffsets()), mask;
  if (op.getMask()) mask = e.regs(op.getMask());
  if (op.getMask() && !(e.layoutOf(op.getMask()) == layout))
    return op.emitOpError("needs its mask in the layout of its offsets");
  ChunkCopier copier(e, perChunk * eb);
  for (int reg = 0; reg < layout.numRegs(); reg += perChunk) {
    if (layout.isRegPadding(reg)) continue;
    layout::Coord coord = layout.regCoord(reg);
    Value* pointer = b.CreateGEP(element, e.scalar(op.getPtr()), wide(e, offsets[reg]));
    copier.copy(address.at(e.scalar(op.getTarget()), coord[major], coord[minor] * eb), pointer,
                e.andAll({enable, mask.empty() ? nullptr : mask[reg]}), nullptr, e.inTile(layout, reg));
  }
  copier.finish();
  return success();
}

}  // namespace tile::ir
