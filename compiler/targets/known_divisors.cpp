// known_divisors.cpp - see known_divisors.h.
//
// Of d, with d <= 2^l, 2^k <= d:
//   dividends that may be negative (Granlund and Montgomery, "Division by invariant integers", figure 5.2):
//     f = floor(2^(31 + l) / d) + 1 - 2^32;  x / d = (x + mulhi(f, x) >> l - 1) - (x < 0 ? -1 : 0)
//   others (Robison, "N-bit unsigned division via N-bit multiply-add"):
//     t = floor(2^(32 + k) / d);  x / d = (f x + a) >> 32 + k  with  f, a = t + 1, 0 or t, t: one of them is exact
//     (powers of two: f = a = 2^32 - 1)
#include "compiler/targets/known_divisors.h"

#include <map>

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/ValueHandle.h"

namespace tile::ir {
using namespace llvm;

namespace {

constexpr unsigned kFewest = 8;  ///< divisions that are worth a factor, where no loop repeats them all

bool isQuotient(const Instruction& i) {
  return i.getOpcode() == Instruction::SDiv || i.getOpcode() == Instruction::UDiv;
}
bool isSigned(const Instruction& i) {
  return i.getOpcode() == Instruction::SDiv || i.getOpcode() == Instruction::SRem;
}
bool isDivision(const Instruction& i) {
  return isQuotient(i) || i.getOpcode() == Instruction::SRem || i.getOpcode() == Instruction::URem;
}

/// The number that all lanes of a divisor are; computed again, where only vectors of it are there. Null: they differ.
Value* numberIn(Value* divisor, int depth = 0) {
  constexpr int kDeepest = 6;
  if (!divisor->getType()->isVectorTy()) return divisor;
  if (Value* known = getSplatValue(divisor)) return known;
  auto* inst = dyn_cast<Instruction>(divisor);
  if (auto* repeated = dyn_cast<ShuffleVectorInst>(divisor); repeated && repeated->isZeroEltSplat())
    return IRBuilder<>(inst).CreateExtractElement(repeated->getOperand(0), uint64_t{0});
  const bool isRepeatable = isa_and_nonnull<BinaryOperator, ICmpInst, SelectInst, MinMaxIntrinsic>(inst);
  if (!isRepeatable || isDivision(*inst) || depth > kDeepest) return nullptr;
  auto* extreme = dyn_cast<MinMaxIntrinsic>(inst);
  SmallVector<Value*> numbers;
  for (Value* operand : extreme ? extreme->args() : inst->operands()) {
    numbers.push_back(numberIn(operand, depth + 1));
    if (!numbers.back()) return nullptr;
  }
  IRBuilder<> b(inst);
  if (auto* compare = dyn_cast<ICmpInst>(inst)) return b.CreateICmp(compare->getPredicate(), numbers[0], numbers[1]);
  if (extreme) return b.CreateBinaryIntrinsic(extreme->getIntrinsicID(), numbers[0], numbers[1]);
  if (isa<SelectInst>(inst)) return b.CreateSelect(numbers[0], numbers[1], numbers[2]);
  return b.CreateBinOp(cast<BinaryOperator>(inst)->getOpcode(), numbers[0], numbers[1]);
}

/// Divisions of one kind by one number.
struct Group {
  TrackingVH<Value> by;  ///< may be a quotient itself
  SmallVector<Instruction*> divisions;
  unsigned weight = 0;            ///< how many of them, a repeated one counts as many
  BasicBlock* ahead = nullptr;    ///< where the factor can be computed for all of them
};

/// What divides by a number: in scalars. Sizes are taken without their sign, except by `sign`.
struct Factor {
  Value *factor, *shift;
  Value* more = nullptr;  ///< what is added to the product of a dividend that is not negative
  Value *size, *sign = nullptr;

  Factor spread(IRBuilder<>& b, unsigned lanes) const {
    auto all = [&](Value* scalar) { return scalar ? b.CreateVectorSplat(lanes, scalar) : nullptr; };
    return {all(factor), all(shift), all(more), all(size), all(sign)};
  }
};

class Divisions {
 public:
  Divisions(Function& f, FunctionAnalysisManager& analyses, bool forHost)
      : f_(f),
        forHost_(forHost),
        loops_(analyses.getResult<LoopAnalysis>(f)),
        tree_(analyses.getResult<DominatorTreeAnalysis>(f)),
        query_(f.getDataLayout(), &tree_, &analyses.getResult<AssumptionAnalysis>(f)) {}

  bool run() {
    for (Instruction& inst : make_early_inc_range(instructions(f_))) note(inst);
    bool changes = false;
    for (auto& [key, group] : groups_) {
      if (group.weight < kFewest) continue;
      changes = true;
      rewrite(group.by, key.second, group);
    }
    return changes;
  }

 private:
  void note(Instruction& inst) {
    if (!isDivision(inst) || !inst.getType()->getScalarType()->isIntegerTy(32)) return;
    if (isa<Constant>(inst.getOperand(1))) return;
    Value* by = numberIn(inst.getOperand(1));
    if (!by || isa<Constant>(by)) return;
    const bool mayBeNegative =
        isSigned(inst) && !isKnownNonNegative(inst.getOperand(0), query_.getWithInstruction(&inst));
    Group& group = groups_[{by, mayBeNegative ? Kind::negative : isSigned(inst) ? Kind::positive : Kind::unsign}];
    const Loop* loop = loops_.getLoopFor(inst.getParent());
    // (A number that an outer loop changes may divide few times before it does: copies of a decoder, say.)
    BasicBlock* ahead = outside(inst.getParent(), by);
    const bool isRepeated = loop && loop->isInnermost() && loop->isLoopInvariant(by) &&
                            !(isa<Instruction>(by) && loops_.getLoopFor(cast<Instruction>(by)->getParent()));
    group.by = by;
    group.divisions.push_back(&inst);
    auto* lanes = dyn_cast<FixedVectorType>(inst.getType());
    group.weight += isRepeated ? kFewest : lanes ? lanes->getNumElements() : 1;
    group.ahead = group.ahead ? outside(tree_.findNearestCommonDominator(group.ahead, ahead), by) : ahead;
  }

  /// In front of all loops that leave the number as it is.
  BasicBlock* outside(BasicBlock* block, Value* by) const {
    for (Loop* loop = loops_.getLoopFor(block); loop && loop->isLoopInvariant(by); loop = loops_.getLoopFor(block))
      block = tree_[loop->getHeader()]->getIDom()->getBlock();  // not every loop has a block of its own in front
    return block;
  }

  enum class Kind { negative, positive, unsign };

  void rewrite(Value* by, Kind kind, Group& group) {
    Instruction* at = group.ahead->getTerminator();
    for (Instruction* inst : group.divisions)
      if (inst->getParent() == group.ahead && inst->comesBefore(at)) at = inst;
    IRBuilder<> b(at);
    b.SetCurrentDebugLocation(group.divisions.front()->getDebugLoc());
    // Hosts divide to make the factor, perhaps where the program would not have divided: then by some number.
    if (forHost_ && !isGuaranteedNotToBePoison(by, query_.AC, at, &tree_)) by = b.CreateFreeze(by);
    const Factor factor = kind == Kind::negative ? signedFactor(b, by) : unsignedFactor(b, by, kind == Kind::positive);
    std::map<unsigned, Factor> vectors;  // by their lanes
    for (Instruction* inst : group.divisions)
      if (auto* type = dyn_cast<FixedVectorType>(inst->getType()); type && !vectors.contains(type->getNumElements()))
        vectors[type->getNumElements()] = factor.spread(b, type->getNumElements());
    for (Instruction* inst : group.divisions) {
      b.SetInsertPoint(inst);
      auto* type = dyn_cast<FixedVectorType>(inst->getType());
      Value* result = divided(b, *inst, type ? vectors[type->getNumElements()] : factor);
      result->takeName(inst);
      inst->replaceAllUsesWith(result);
      inst->eraseFromParent();
    }
  }

  /// floor(2^exponent / d) of a result below 2^32, or equal to it, which is 0: d > 0.
  Value* floorOfPower(IRBuilder<>& b, Value* exponent, Value* d) const {
    Type *wide = b.getInt64Ty(), *real = b.getDoubleTy();
    Value *power = b.CreateShl(b.getInt64(1), b.CreateZExt(exponent, wide)), *d64 = b.CreateZExt(d, wide);
    if (forHost_) return b.CreateTrunc(b.CreateUDiv(power, d64), b.getInt32Ty());
    // Two steps of Newton make 50 bits of 20; from below, so that the floor is right or one too small.
    Value *x = b.CreateUIToFP(d, real), *one = ConstantFP::get(real, 1.0);
    Value* y = b.CreateIntrinsic(Intrinsic::nvvm_rcp_approx_ftz_d, {}, {x});
    auto fma = [&](Value* p, Value* q, Value* r) { return b.CreateIntrinsic(Intrinsic::fma, {real}, {p, q, r}); };
    for (int i = 0; i < 2; ++i) y = fma(y, fma(b.CreateFNeg(x), y, one), y);
    y = b.CreateFMul(y, ConstantFP::get(real, 1 - 0x1p-40));
    Value* scale = b.CreateShl(b.CreateZExt(b.CreateAdd(exponent, b.getInt32(1023)), wide), 52);
    Value* t = b.CreateFPToUI(b.CreateFMul(y, b.CreateBitCast(scale, real)), b.getInt32Ty());
    Value* rest = b.CreateSub(power, b.CreateMul(b.CreateZExt(t, wide), d64));
    return b.CreateAdd(t, b.CreateZExt(b.CreateICmpUGE(rest, d64), b.getInt32Ty()));
  }

  /// |d|, and 1 of 0.
  Value* sizeOf(IRBuilder<>& b, Value* d, bool hasSign) const {
    if (hasSign) d = b.CreateBinaryIntrinsic(Intrinsic::abs, d, b.getFalse());
    return b.CreateBinaryIntrinsic(Intrinsic::umax, d, b.getInt32(1));
  }
  Value* leadingZeros(IRBuilder<>& b, Value* x) const {
    return b.CreateBinaryIntrinsic(Intrinsic::ctlz, x, b.getFalse());
  }
  Value* signOf(IRBuilder<>& b, Value* d) const {
    return isKnownNonNegative(d, query_) ? nullptr : b.CreateOr(b.CreateAShr(d, 31), b.getInt32(1));
  }

  Factor signedFactor(IRBuilder<>& b, Value* d) const {
    Factor r{};
    r.size = sizeOf(b, d, true), r.sign = signOf(b, d);
    Value* zeros = leadingZeros(b, b.CreateSub(r.size, b.getInt32(1)));
    Value* l = b.CreateBinaryIntrinsic(Intrinsic::umax, b.CreateSub(b.getInt32(32), zeros), b.getInt32(1));
    r.shift = b.CreateSub(l, b.getInt32(1));
    r.factor = b.CreateAdd(floorOfPower(b, b.CreateAdd(l, b.getInt32(31)), r.size), b.getInt32(1));
    return r;
  }

  Factor unsignedFactor(IRBuilder<>& b, Value* d, bool hasSign) const {
    Factor r{};
    r.size = sizeOf(b, d, hasSign), r.sign = hasSign ? signOf(b, d) : nullptr;
    r.shift = b.CreateSub(b.getInt32(31), leadingZeros(b, r.size));
    Value *power = b.CreateShl(b.getInt32(1), r.shift), *all = b.getInt32(0xffffffff);
    Value* t = floorOfPower(b, b.CreateAdd(r.shift, b.getInt32(32)), r.size);
    Value* isLarger = b.CreateICmpULE(b.CreateAdd(b.CreateMul(r.size, t), r.size), power);
    Value* isPower = b.CreateICmpEQ(power, r.size);
    r.factor = b.CreateSelect(isPower, all, b.CreateAdd(t, b.CreateZExt(isLarger, b.getInt32Ty())));
    r.more = b.CreateSelect(isPower, all, b.CreateSelect(isLarger, b.getInt32(0), t));
    return r;
  }

  Value* divided(IRBuilder<>& b, Instruction& inst, const Factor& by) const {
    Value* x = inst.getOperand(0);
    Type *type = inst.getType(), *wide = type->getWithNewBitWidth(64);
    Value* q = nullptr;
    if (by.more) {
      Value* product = b.CreateMul(b.CreateZExt(x, wide), b.CreateZExt(by.factor, wide));
      product = b.CreateAdd(product, b.CreateZExt(by.more, wide));
      q = b.CreateLShr(b.CreateTrunc(b.CreateLShr(product, 32), type), by.shift);
    } else {
      Value* product = b.CreateMul(b.CreateSExt(x, wide), b.CreateSExt(by.factor, wide));
      Value* high = b.CreateAdd(b.CreateTrunc(b.CreateLShr(product, 32), type), x);
      q = b.CreateAdd(b.CreateAShr(high, by.shift), b.CreateLShr(x, 31));
    }
    // Frozen: else strength reduction would see sums through remainders, and keep their terms in registers.
    if (!isQuotient(inst)) return b.CreateFreeze(b.CreateSub(x, b.CreateMul(q, by.size)));
    return by.sign ? b.CreateMul(q, by.sign) : q;
  }

  Function& f_;
  bool forHost_;
  LoopInfo& loops_;
  DominatorTree& tree_;
  SimplifyQuery query_;
  MapVector<std::pair<Value*, Kind>, Group> groups_;
};

}  // namespace

PreservedAnalyses KnownDivisors::run(Function& function, FunctionAnalysisManager& analyses) {
  if (!Divisions(function, analyses, forHost_).run()) return PreservedAnalyses::all();
  PreservedAnalyses kept;
  kept.preserveSet<CFGAnalyses>();
  return kept;
}

}  // namespace tile::ir
