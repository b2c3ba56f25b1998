// wgmma_registers.cpp - where the elements that an instruction wants of a thread are.
#include "compiler/gpu/lowering/wgmma_registers.h"

#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace llvm;

int stepsOf(MmaOp op) { return static_cast<int>(warpgroupProduct(op).cover.k / engineRow(op.getEngine()).k); }

namespace {

// ---- what threads computed

/// Computed anew in every iteration of the loop: not from values that stay the same.
bool variesIn(mlir::Operation* loop, mlir::Value value, DenseSet<mlir::Value>& seen) {
  if (!loop->isAncestor(value.getParentRegion()->getParentOp()) || !seen.insert(value).second) return false;
  mlir::Operation* op = value.getDefiningOp();
  if (!op || op->getNumRegions() > 0 || !mlir::isPure(op)) return true;
  return llvm::any_of(op->getOperands(), [&](mlir::Value operand) { return variesIn(loop, operand, seen); });
}

/// The registers of a first operand are needed behind the product, too.
bool outlivesProduct(MmaOp op) {
  for (mlir::Operation* user : op.getA().getUsers()) {
    mlir::Operation* there = op->getBlock()->findAncestorOpInBlock(*user);
    if (!there || op->isBeforeInBlock(there)) return true;
  }
  if (llvm::count(op->getOperands(), op.getA()) > 1) return true;
  mlir::Operation* loop = op->getParentOp();
  while (loop && !mlir::isa<mlir::LoopLikeOpInterface, WorkLoopOp>(loop)) loop = loop->getParentOp();
  DenseSet<mlir::Value> seen;
  return loop && !variesIn(loop, op.getA(), seen);
}

/// Elements that threads hold of accumulators.
///
/// Of 16-bit elements these are the instruction's own. Of 8-bit ones it wants four neighbours along k in a register,
/// where a thread t of a quad has columns 2 t, + 1 of groups of 8. Counted in the order in which threads have them,
/// that is element 8 x + 2 t + c at place 4 t + 2 x + c of each 16, nothing is to be done, and b is counted in the same
/// order (interleaved). For a b in its own order threads fetch their four from the two of the quad that have them.
class RegisterOperand : public FirstOperand {
 public:
  RegisterOperand(Emitter& e, MmaOp op)
      : e_(e),
        values_(e.regs(op.getA())),
        k_(op.getK()),
        steps_(stepsOf(op)),
        isByte_(engineRow(op.getEngine()).operandBits == 8) {
    if (isByte_ && !op.getB().getType().getInterleaved()) exchange_.emplace(e);
    // ptxas 13.0 takes the registers of a first operand for free behind the product even where they are needed again:
    // masks that stay the same in all iterations lost their values on an H200. Such products read copies of their own,
    // made in a way it cannot see through: it undoes plain moves.
    if (outlivesProduct(op))
      zero_ =
          e.inlineAsm(e.b.getInt32Ty(), "{.reg .b32 t; mov.u32 t, %dynamic_smem_size; shr.u32 $0, t, 31;}", "=r", {});
  }

  SmallVector<Value*, 4> at(int rep, int step) const override {
    IRBuilder<>& b = e_.b;
    SmallVector<Value*, 4> out;
    for (int r = 0; r < 4; ++r) {
      Value* word = isByte_ ? quad(rep, step, r) : pair(rep, step, r);
      out.push_back(zero_ ? e_.inlineAsm(b.getInt32Ty(), "xor.b32 $0, $1, $2;", "=r,r,r", {word, zero_}) : word);
    }
    return out;
  }

 private:
  Value* pair(int rep, int step, int r) const {
    const int first = 2 * (r + 4 * (step + steps_ * rep));
    const int64_t column = 16 * step + 8 * (r / 2);
    Value* both = e_.packPair(inK(values_[first], column), inK(values_[first + 1], column + 1));
    return e_.b.CreateBitCast(both, e_.b.getInt32Ty());
  }

  Value* quad(int rep, int step, int r) const {
    SmallVector<Value*, 4> bytes;
    for (int group = 2 * (r / 2); group < 2 * (r / 2) + 2; ++group)
      for (int c = 0; c < 2; ++c)
        bytes.push_back(
            inK(values_[c + 2 * (r % 2) + 4 * (group + 4 * (step + steps_ * rep))], 32 * step + 8 * group + c));
    Value* word = e_.packQuad(bytes);
    return exchange_ ? exchange_->inOrder(word) : word;
  }

  /// Elements 4 t to 4 t + 3 of 16 are those of threads 2 t % 4 and the next, in their lower or upper halves.
  class Exchange {
   public:
    explicit Exchange(Emitter& e) : e_(e) {
      IRBuilder<>& b = e.b;
      Value* t = b.CreateAnd(e.lane(), 3);
      first_ = b.CreateOr(b.CreateAnd(e.lane(), ~3), b.CreateAnd(b.CreateShl(t, 1), 3));
      halves_ = b.CreateSelect(b.CreateICmpULT(t, e.i32(2)), e.i32(0x5410), e.i32(0x7632));
    }
    Value* inOrder(Value* word) const {
      IRBuilder<>& b = e_.b;
      auto from = [&](Value* lane) {
        return b.CreateIntrinsic(Intrinsic::nvvm_shfl_sync_idx_i32, {e_.i32(-1), word, lane, e_.i32(31)});
      };
      return b.CreateIntrinsic(Intrinsic::nvvm_prmt, {from(first_), from(b.CreateOr(first_, 1)), halves_});
    }

   private:
    Emitter& e_;
    Value *first_, *halves_;
  };

  // Padding registers hold garbage; along k they must be zero. Lanes add up to 6 columns.
  Value* inK(Value* v, int64_t column) const {
    if (column + 6 < k_) return v;
    IRBuilder<>& b = e_.b;
    Value* k = b.CreateAdd(b.CreateShl(b.CreateAnd(e_.lane(), 3), 1), e_.i32(column));
    return b.CreateSelect(b.CreateICmpULT(k, e_.i32(k_)), v, Constant::getNullValue(v->getType()));
  }

  Emitter& e_;
  ArrayRef<Value*> values_;
  int64_t k_;
  int steps_;
  bool isByte_;
  std::optional<Exchange> exchange_;  ///< between the threads of a quad; none where k is counted in their order
  Value* zero_ = nullptr;             ///< to make copies with; null: none are needed
};

// ---- what threads read from shared memory

/// 32-bit elements: pairs of neighbouring rows.
class WordFragments : public FirstOperand {
 public:
  WordFragments(Emitter& e, MmaOp op)
      : e_(e),
        layout_(fragmentLayout(op)),
        base_(e.scalar(fragmentOperand(op))),
        address_(e, mlir::cast<SmemType>(fragmentOperand(op).getType()).slot(), layout_, /*rowDim=*/1),
        steps_(stepsOf(op)) {}

  SmallVector<Value*, 4> at(int rep, int step) const override {
    SmallVector<Value*, 4> out;
    for (int pair = 0; pair < 4; pair += 2) {
      const layout::Coord coord = layout_.regCoord(pair + 4 * (step + steps_ * rep));
      out.append(loadVector(e_, address_.at(base_, coord[1], 4 * coord[0]), e_.b.getInt32Ty(), 2));
    }
    return out;
  }

 private:
  Emitter& e_;
  layout::Layout layout_;
  Value* base_;
  SmemAddress address_;
  int steps_;
};

/// Bytes: a register holds four neighbours along k, 4 (lane % 4) to + 3 and 16 behind, of one row. Each is made from
/// reads of two neighbouring rows in four steps of k, and a transposition. Lanes 2 and 3 of four read the steps in the
/// order 2, 3, 0, 1: with the others' they fall into four different 16-byte chunks, and the transposition puts them
/// right.
class ByteFragments : public FirstOperand {
 public:
  ByteFragments(Emitter& e, MmaOp op)
      : e_(e), rows_(64 * warpgroupProduct(op).teamsM), base_(e.scalar(fragmentOperand(op))) {
    IRBuilder<>& b = e.b;
    const layout::SharedTile tile = mlir::cast<SmemType>(fragmentOperand(op).getType()).slot();
    Value* quad = b.CreateAnd(e.lane(), 3);
    Value* late = b.CreateAnd(quad, 2);
    Value* k = b.CreateOr(b.CreateShl(quad, 2), late);
    Value* row = e.threadCoord(accumulatorLayout(op), isTransposed(op) ? 1 : 0);
    const auto rowBits = static_cast<int64_t>(PowerOf2Ceil(static_cast<uint64_t>(rows_))) - 2;  // pairs of rows
    for (int half = 0; half < 2; ++half)
      addresses_.emplace_back(e, tile, half ? b.CreateXor(k, 2) : k, /*rowMask=*/14, row, rowBits);
    Value* isLate = b.CreateICmpNE(late, e.i32(0));
    even_ = b.CreateSelect(isLate, e.i32(0x1054), e.i32(0x5410));
    odd_ = b.CreateSelect(isLate, e.i32(0x3276), e.i32(0x7632));
  }

  SmallVector<Value*, 4> at(int rep, int step) const override {
    IRBuilder<>& b = e_.b;
    auto permute = [&](Value* x, Value* y, Value* selector) {
      return b.CreateIntrinsic(Intrinsic::nvvm_prmt, {x, y, selector});
    };
    SmallVector<Value*, 4> out;
    for (int k : {0, 16}) {
      Value* halves[2];
      for (int half = 0; half < 2; ++half) {
        Value* words[2];
        for (int i = 0; i < 2; ++i) {
          Value* pointer = addresses_[static_cast<size_t>(half)].at(base_, 32 * step + k + i, rep * rows_);
          words[i] = b.CreateZExt(b.CreateAlignedLoad(b.getInt16Ty(), pointer, Align(2)), b.getInt32Ty());
        }
        halves[half] = permute(words[0], words[1], e_.i32(0x5140));
      }
      out.push_back(permute(halves[0], halves[1], even_));
      out.push_back(permute(halves[0], halves[1], odd_));
    }
    return out;
  }

 private:
  Emitter& e_;
  int64_t rows_;  ///< from repetition to repetition
  Value* base_;
  SmallVector<SmemAddress, 2> addresses_;  ///< of the first and of the last two steps of k out of four
  Value *even_, *odd_;                     ///< what puts the steps of a row in order
};

}  // namespace

std::unique_ptr<FirstOperand> operandInRegisters(Emitter& e, MmaOp op) {
  return std::make_unique<RegisterOperand>(e, op);
}

std::unique_ptr<FirstOperand> operandOfFragments(Emitter& e, MmaOp op) {
  if (engineRow(op.getEngine()).operandBits == 8) return std::make_unique<ByteFragments>(e, op);
  return std::make_unique<WordFragments>(e, op);
}

}  // namespace tile::ir
