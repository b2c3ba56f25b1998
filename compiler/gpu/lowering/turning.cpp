// turning.cpp - warps that turn tiles of 8-bit elements on their way from ring to ring: rows become columns.
//
// ldmatrix.trans moves 16-bit pairs: of 8 source rows and 16 bytes of each, a thread (g = lane / 4, t = lane % 4) gets
// bytes 2 g, + 1 of two rows. Two such registers hold four source rows of two target rows, and two byte permutations
// make of them four neighbours of either target row: what stmatrix writes. Its first matrix has target rows 2 g for
// threads g below 4 and 2 g + 1 for the others, its second one the rest: in swizzled rows each falls into 8 different
// 16-byte bank groups.
//
// Which source row ends up where is a matter of the addresses that lanes give to ldmatrix. An interleaved target takes
// rows as they come: registers x of threads t have rows 8 x + 2 t, + 1. A plain one wants 4 t to 4 t + 3 in thread t,
// so register x has rows 4 t + 2 x, + 1; exchanging the two registers of threads 2 and 3 keeps the 8 rows of a matrix
// in different bank groups, and the permutation puts that right.
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace llvm;

namespace {

constexpr int kRows = 32;     ///< of the source, in one ldmatrix; bytes of a target's row
constexpr int kColumns = 16;  ///< bytes of a source's row; rows of the target
constexpr int kWords = 4;     ///< registers of one matrix instruction
constexpr int kAtOnce = 2;    ///< reads under way: these warps have few registers

/// Offset of a 16-byte chunk in a row that is `row` (less a multiple of 16) rows behind a tile's start: its swizzle's
/// share. `chunk` stays below the chunks of a panel.
Value* swizzled(IRBuilder<>& b, const layout::SharedTile& tile, Value* row, Value* chunk) {
  const int64_t chunks = tile.swizzle / 16;
  Value* flip = b.CreateAnd(b.CreateLShr(b.CreateMul(row, b.getInt32(static_cast<uint32_t>(tile.swizzle))), 7),
                            b.getInt32(static_cast<uint32_t>(chunks - 1)));
  return b.CreateShl(b.CreateXor(chunk, flip), 4);
}

class Turn {
 public:
  Turn(Emitter& e, SmemTurnOp op)
      : e_(e),
        b_(e.b),
        from_(op.getSource().getType().slot()),
        to_(op.getTarget().getType().slot()),
        source_(e.scalar(op.getSource())),
        target_(e.scalar(op.getTarget())),
        interleaved_(op.getTarget().getType().getInterleaved()) {
    Value* lane = e.lane();
    Value *matrix = b_.CreateLShr(lane, 3), *at = b_.CreateAnd(lane, 7);  // lanes 8 i to 8 i + 7 point to matrix i
    // Source rows.
    Value *x = b_.CreateAnd(matrix, 1), *half = b_.CreateLShr(matrix, 1), *quad = b_.CreateLShr(at, 1);
    row_ = lane;
    if (!interleaved_) {
      Value* pair = b_.CreateShl(b_.CreateXor(x, b_.CreateLShr(quad, 1)), 1);
      row_ = b_.CreateAdd(b_.CreateAdd(b_.CreateShl(half, 4), b_.CreateShl(quad, 2)),
                          b_.CreateAdd(pair, b_.CreateAnd(at, 1)));
    }
    // Target rows: matrices 2 h + s of the two sets s, 16 bytes further for h = 1.
    Value* set = b_.CreateXor(x, b_.CreateLShr(at, 2));
    Value* row = b_.CreateAdd(b_.CreateShl(at, 1), set);
    Value* start = b_.CreateMul(row, e.i32(to_.swizzle));
    for (int64_t block = 0; block < from_.rows / kRows; ++block) {
      const int64_t chunk = block * (kRows / 16), chunks = to_.swizzle / 16;
      Value* inPanel = b_.CreateAdd(half, e.i32(chunk % chunks));
      Value* offset = b_.CreateAdd(start, swizzled(b_, to_, row, inPanel));
      places_.push_back(b_.CreateAdd(offset, e.i32(chunk / chunks * to_.rows * to_.swizzle)));
    }
    // Byte permutations: even bytes of both registers, or odd ones; the later register first where they were exchanged.
    Value* lower = b_.CreateICmpULT(lane, e.i32(16));
    Value* isLate = interleaved_ ? b_.getFalse() : b_.CreateICmpNE(b_.CreateAnd(lane, 2), e.i32(0));
    Value* even = b_.CreateSelect(isLate, e.i32(0x2064), e.i32(0x6420));
    Value* odd = b_.CreateSelect(isLate, e.i32(0x3175), e.i32(0x7531));
    selectors_[0] = b_.CreateSelect(lower, even, odd);
    selectors_[1] = b_.CreateSelect(lower, odd, even);
  }

  /// The rows kColumns * column and following of the target.
  void column(Value* column) {
    const int64_t chunks = from_.swizzle / 16, blocks = from_.rows / kRows;
    Value* panel = b_.CreateMul(b_.CreateUDiv(column, e_.i32(chunks)), e_.i32(from_.rows * from_.swizzle));
    Value* offset = b_.CreateAdd(b_.CreateMul(row_, e_.i32(from_.swizzle)),
                                 swizzled(b_, from_, row_, b_.CreateURem(column, e_.i32(chunks))));
    Value* read = b_.CreatePtrAdd(source_, b_.CreateAdd(panel, offset));
    Value* write = b_.CreatePtrAdd(target_, b_.CreateMul(column, e_.i32(kColumns * to_.swizzle)));
    for (int64_t first = 0; first < blocks; first += kAtOnce) {
      SmallVector<Value*> loaded;
      const int64_t end = std::min(blocks, first + kAtOnce);
      for (int64_t block = first; block < end; ++block) {
        Value* pointer = b_.CreatePtrAdd(read, e_.i32(block * kRows * from_.swizzle));
        loaded.push_back(b_.CreateIntrinsic(Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16,
                                            {pointer->getType()}, {pointer}));
      }
      for (int64_t block = first; block < end; ++block) store(loaded[static_cast<size_t>(block - first)], write, block);
    }
  }

 private:
  void store(Value* loaded, Value* write, int64_t block) {
    SmallVector<Value*> args{b_.CreatePtrAdd(write, places_[static_cast<size_t>(block)])};
    for (unsigned half = 0; half < kWords / 2; ++half)
      for (Value* selector : selectors_)
        args.push_back(b_.CreateIntrinsic(
            Intrinsic::nvvm_prmt,
            {b_.CreateExtractValue(loaded, 2 * half), b_.CreateExtractValue(loaded, 2 * half + 1), selector}));
    e_.inlineAsm(b_.getVoidTy(), "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};",
                 "r,r,r,r,r,~{memory}", args);
  }

  Emitter& e_;
  IRBuilder<>& b_;
  layout::SharedTile from_, to_;
  Value *source_, *target_;
  bool interleaved_;
  Value* row_;
  SmallVector<Value*> places_;  ///< offset of each 32 bytes along the target's rows
  Value* selectors_[2];
};

/// One column has work enough for the loop not to be seen; several at once would want registers.
void keepRolled(BranchInst* latch) {
  LLVMContext& context = latch->getContext();
  MDNode* node = MDNode::get(context, {MDString::get(context, "llvm.loop.unroll.disable")});
  MDNode* self = MDNode::getDistinct(context, {nullptr, node});
  self->replaceOperandWith(0, self);
  latch->setMetadata(LLVMContext::MD_loop, self);
}

}  // namespace

LogicalResult emitSmemTurn(Emitter& e, SmemTurnOp op) {
  IRBuilder<>& b = e.b;
  Turn turn(e, op);
  const int64_t columns = op.getSource().getType().slot().cols / kColumns;
  Function* function = b.GetInsertBlock()->getParent();
  auto block = [&](const char* name) { return BasicBlock::Create(b.getContext(), name, function); };
  auto *before = b.GetInsertBlock(), *body = block("turn"), *after = block("turned");
  // Every warp has some: tiles have at least two columns of 16 bytes, three warps share them, the third may have none.
  Value* first = b.CreateSub(e.warp(), e.i32(e.numWarps() + 1));
  b.CreateCondBr(b.CreateICmpULT(first, e.i32(columns)), body, after);
  b.SetInsertPoint(body);
  PHINode* column = b.CreatePHI(b.getInt32Ty(), 2, "column");
  column->addIncoming(first, before);
  turn.column(column);
  Value* next = b.CreateAdd(column, e.i32(SpecializeOp::kTurnerWarps));
  column->addIncoming(next, b.GetInsertBlock());
  keepRolled(b.CreateCondBr(b.CreateICmpULT(next, e.i32(columns)), body, after));
  b.SetInsertPoint(after);
  return success();
}

LogicalResult emitTurnedCommit(Emitter& e, RingCommitOp op) {
  fenceAsyncProxy(e);
  e.syncWarp();  // every lane's stores are fenced
  arrive(e, fullBarrier(e, op.getRing(), e.scalar(op.getSlot())), e.b.CreateICmpEQ(e.lane(), e.i32(0)));
  return success();
}

}  // namespace tile::ir
