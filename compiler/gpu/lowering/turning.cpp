// turning.cpp - warps that turn tiles of 8-bit or 32-bit elements on their way from ring to ring: rows become columns.
//
// Bytes. ldmatrix.trans moves 16-bit pairs: of 8 source rows and 16 bytes of each, a thread (g = lane / 4,
// t = lane % 4) gets bytes 2 g, + 1 of two rows. Two such registers hold four source rows of two target rows, and two
// byte permutations make of them four neighbours of either target row: what stmatrix writes. Its first matrix has
// target rows 2 g for threads g below 4 and 2 g + 1 for the others, its second one the rest: in swizzled rows each
// falls into 8 different 16-byte bank groups.
//
// Which source row ends up where is a matter of the addresses that lanes give to ldmatrix. An interleaved target takes
// rows as they come: registers x of threads t have rows 8 x + 2 t, + 1. A plain one wants 4 t to 4 t + 3 in thread t,
// so register x has rows 4 t + 2 x, + 1; exchanging the two registers of threads 2 and 3 keeps the 8 rows of a matrix
// in different bank groups, and the permutation puts that right.
//
// Words. A thread reads one word at a time, of source row k + t and the column that is the target's row g of a matrix;
// four such matrices are what stmatrix writes: 16 bytes of 32 target rows. Both sides want 8 different 16-byte bank
// groups of a panel of 128 bytes. Chunk c of source row k is in group c ^ (k & 7), chunk k / 4 of target row n in group
// (k / 4) ^ (n & 7): a matrix takes the columns of chunks c and c ^ 5. Source rows t of either then fall into four
// groups each, which differ in bit 2, as the rows of the target do.
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

void storeMatrices(Emitter& e, Value* pointer, ArrayRef<Value*> words) {
  SmallVector<Value*> args{pointer};
  args.append(words.begin(), words.end());
  e.inlineAsm(e.b.getVoidTy(), "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};",
              "r,r,r,r,r,~{memory}", args);
}

/// Offset of a 16-byte chunk in a row that is `row` (less a multiple of 16) rows behind a tile's start: its swizzle's
/// share. `chunk` stays below the chunks of a panel.
Value* swizzled(IRBuilder<>& b, const layout::SharedTile& tile, Value* row, Value* chunk) {
  const int64_t chunks = tile.swizzle / 16;
  Value* flip = b.CreateAnd(b.CreateLShr(b.CreateMul(row, b.getInt32(static_cast<uint32_t>(tile.swizzle))), 7),
                            b.getInt32(static_cast<uint32_t>(chunks - 1)));
  return b.CreateShl(b.CreateXor(chunk, flip), 4);
}

/// What the warps divide a tile into.
class Turn {
 public:
  virtual ~Turn() = default;
  virtual int64_t parts() const = 0;
  virtual void part(Value* number) const = 0;
};

class ByteTurn : public Turn {
 public:
  ByteTurn(Emitter& e, SmemTurnOp op)
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

  /// Parts are kColumns rows of the target.
  int64_t parts() const override { return from_.cols / kColumns; }
  void part(Value* column) const override {
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
  void store(Value* loaded, Value* write, int64_t block) const {
    SmallVector<Value*, kWords> words;
    for (unsigned half = 0; half < kWords / 2; ++half)
      for (Value* selector : selectors_)
        words.push_back(b_.CreateIntrinsic(
            Intrinsic::nvvm_prmt,
            {b_.CreateExtractValue(loaded, 2 * half), b_.CreateExtractValue(loaded, 2 * half + 1), selector}));
    storeMatrices(e_, b_.CreatePtrAdd(write, places_[static_cast<size_t>(block)]), words);
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

class WordTurn : public Turn {
  static constexpr int64_t kPanel = 128;        ///< bytes of a row of a panel: 32-bit elements have whole ones
  static constexpr int64_t kElements = 32;      ///< of a row of a panel
  static constexpr int64_t kPartRows = 16;      ///< of the source, in one part
  static constexpr int64_t kMatrices = kWords;  ///< of 4 words of 8 rows of the target

 public:
  WordTurn(Emitter& e, SmemTurnOp op)
      : e_(e), b_(e.b), from_(op.getSource().getType().slot()), to_(op.getTarget().getType().slot()) {
    Value* lane = e.lane();
    auto bits = [&](Value* value, int shift, int mask) {
      return b_.CreateAnd(b_.CreateLShr(value, static_cast<uint64_t>(shift)), e.i32(mask));
    };
    // Threads 4 g + t read column g of a matrix: words g % 4 of chunks i and i ^ 5 for matrix i.
    Value *t = bits(lane, 0, 3), *chunk = b_.CreateMul(bits(lane, 4, 1), e.i32(5));
    Value* read = b_.CreateAdd(b_.CreateMul(t, e.i32(kPanel)), b_.CreateShl(bits(lane, 2, 3), 2));
    read_ = b_.CreateAdd(b_.CreatePtrToInt(e.scalar(op.getSource()), b_.getInt32Ty()),
                         b_.CreateOr(read, b_.CreateShl(b_.CreateXor(chunk, t), 4)));
    // Lanes 8 i + r point to row r of matrix i.
    Value* ofRow = b_.CreateXor(bits(lane, 3, 3), b_.CreateMul(bits(lane, 2, 1), e.i32(5)));
    Value* row = b_.CreateOr(b_.CreateShl(ofRow, 2), bits(lane, 0, 3));
    Value* write = b_.CreateOr(b_.CreateMul(row, e.i32(kPanel)), b_.CreateShl(b_.CreateAnd(row, 7), 4));
    write_ = b_.CreateAdd(b_.CreatePtrToInt(e.scalar(op.getTarget()), b_.getInt32Ty()), write);
    pointer_ = e.scalar(op.getTarget())->getType();
  }

  /// Parts are kElements rows of the target, and of them what comes from kPartRows rows of the source.
  int64_t parts() const override { return from_.cols / kElements * partsOfColumn(); }
  void part(Value* number) const override {
    Value* column = b_.CreateUDiv(number, e_.i32(partsOfColumn()));
    Value* row = b_.CreateMul(b_.CreateURem(number, e_.i32(partsOfColumn())), e_.i32(kPartRows));
    Value* read = b_.CreateAdd(b_.CreateMul(column, e_.i32(from_.rows * kPanel)), b_.CreateMul(row, e_.i32(kPanel)));
    // Chunks of the target's rows, of which its panels have 8.
    Value* chunk = b_.CreateLShr(row, 2);
    Value* write = b_.CreateAdd(b_.CreateMul(column, e_.i32(kElements * kPanel)),
                                b_.CreateMul(b_.CreateLShr(chunk, 3), e_.i32(to_.rows * kPanel)));
    Value* first = b_.CreateShl(b_.CreateAnd(chunk, 7), 4);
    SmallVector<Value*> words;
    for (int64_t i = 0; i < kPartRows / 4; ++i)  // chunks of 4 rows of the source: the odd ones' bit 2 of the swizzle
      for (int64_t matrix = 0; matrix < kMatrices; ++matrix) {
        Value* there = b_.CreateXor(read_, e_.i32((matrix ^ i % 2 * 4) << 4));
        Value* at = b_.CreateAdd(b_.CreateAdd(there, read), e_.i32(i * 4 * kPanel));
        words.push_back(b_.CreateLoad(b_.getInt32Ty(), b_.CreateIntToPtr(at, pointer_)));
      }
    for (int64_t i = 0; i < kPartRows / 4; ++i) {
      Value* there = b_.CreateXor(write_, b_.CreateXor(first, e_.i32(i << 4)));
      storeMatrices(e_, b_.CreateIntToPtr(b_.CreateAdd(there, write), pointer_),
                    ArrayRef(words).slice(static_cast<size_t>(i * kMatrices), kMatrices));
    }
  }

 private:
  int64_t partsOfColumn() const { return from_.rows / kPartRows; }

  Emitter& e_;
  IRBuilder<>& b_;
  layout::SharedTile from_, to_;
  Value *read_, *write_;  ///< addresses for matrix 0 of a tile's first part; tiles begin at whole swizzles
  Type* pointer_;
};

/// One part has work enough for the loop not to be seen; several at once would want registers.
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
  std::unique_ptr<Turn> turn;
  if (op.getSource().getType().elementBytes() == 1)
    turn = std::make_unique<ByteTurn>(e, op);
  else
    turn = std::make_unique<WordTurn>(e, op);
  Function* function = b.GetInsertBlock()->getParent();
  auto block = [&](const char* name) { return BasicBlock::Create(b.getContext(), name, function); };
  auto *before = b.GetInsertBlock(), *body = block("turn"), *after = block("turned");
  // Tiles have at least two parts, three warps share them: the third may have none.
  Value* first = b.CreateSub(e.warp(), e.i32(e.numWarps() + 1));
  b.CreateCondBr(b.CreateICmpULT(first, e.i32(turn->parts())), body, after);
  b.SetInsertPoint(body);
  PHINode* part = b.CreatePHI(b.getInt32Ty(), 2, "part");
  part->addIncoming(first, before);
  turn->part(part);
  Value* next = b.CreateAdd(part, e.i32(SpecializeOp::kTurnerWarps));
  part->addIncoming(next, b.GetInsertBlock());
  keepRolled(b.CreateCondBr(b.CreateICmpULT(next, e.i32(turn->parts())), body, after));
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
