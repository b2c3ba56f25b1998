// elementwise_op.cpp - elementwise ops register by register, or several registers at once where the target has
// instructions for that, or where neighbours share a word.
#include <array>

#include "compiler/gpu/lowering/alike.h"
#include "compiler/gpu/lowering/byte_floats.h"
#include "compiler/gpu/lowering/fp8_pairs.h"
#include "compiler/gpu/lowering/half_pairs.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/packed_bits.h"
#include "compiler/gpu/lowering/short_pairs.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of a conversion in groups; where some are left over one of them is converted several times.
template <size_t kTogether, class Convert>
void convertTogether(Emitter& e, Operation* op, Convert convert) {
  llvm::ArrayRef<llvm::Value*> held = e.regs(op->getOperand(0));
  Regs out(held.size(), llvm::PoisonValue::get(e.elementType(op->getResult(0))));
  SmallVector<size_t> real;
  const bool tile = isa<RankedTensorType>(op->getResult(0).getType());
  for (size_t reg = 0; reg < held.size(); ++reg)
    if (!tile || !e.layoutOf(op->getResult(0)).isRegPadding(static_cast<int>(reg))) real.push_back(reg);
  for (size_t i = 0; i < real.size(); i += kTogether) {
    std::array<llvm::Value*, kTogether> group;
    for (size_t j = 0; j < kTogether; ++j) group[j] = held[real[std::min(i + j, real.size() - 1)]];
    group = convert(e.b, op, group);
    for (size_t j = 0; j < kTogether && i + j < real.size(); ++j) out[real[i + j]] = group[j];
  }
  e.define(op->getResult(0), std::move(out));
}

/// Conversions for which there are instructions of two or four elements. False: it is none.
bool emitConversion(Emitter& e, Operation* op) {
  if (hasFp8Pairs(e.target, op)) {
    convertTogether<2>(e, op, [&](llvm::IRBuilderBase& builder, Operation* o, std::array<llvm::Value*, 2> pair) {
      return convertFp8Pair(e.target, builder, o, pair);
    });
    return true;
  }
  if (hasByteFloats(op)) {
    convertTogether<4>(e, op, [&](llvm::IRBuilderBase& builder, Operation* o, std::array<llvm::Value*, 4> bytes) {
      return convertBytes(builder, o, e.facts(), bytes);
    });
    return true;
  }
  if (auto lowest = lowestOfFew(op, e.facts()); lowest && e.regs(op->getOperand(0)).size() > 1) {
    convertTogether<2>(e, op, [&](llvm::IRBuilderBase& builder, Operation* o, std::array<llvm::Value*, 2> pair) {
      return convertFew(builder, o, *lowest, pair);
    });
    return true;
  }
  return false;
}

/// There is an instruction for two elements of 16 bits at a time.
bool hasHalfPairs(const Target& target, Operation* op) {
  if (hasShortPairs(target, op)) return true;
  const bool isSign = isa<arith::NegFOp, math::AbsFOp>(op);
  if (!isSign && !isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op)) return false;
  const Type element = getElementTypeOrSelf(op->getResult(0).getType());
  return element.isF16() || (element.isBF16() && (isSign || target.sm >= 90));
}

/// bf16 is the upper half of f32.
bool widensUpperHalves(Operation* op) {
  return isa<arith::ExtFOp>(op) && getElementTypeOrSelf(op->getOperand(0).getType()).isBF16() &&
         getElementTypeOrSelf(op->getResult(0).getType()).isF32();
}

/// Rounded to 16 bits and computed with: two by two, and each where it lies. (What only takes results of such an op to
/// memory or into fragments packs pairs of its own, which the code generator merges with the conversions.)
bool roundsToHalves(Operation* op) {
  if (!isa<arith::TruncFOp>(op) || !getElementTypeOrSelf(op->getOperand(0).getType()).isF32()) return false;
  const Type element = getElementTypeOrSelf(op->getResult(0).getType());
  return (element.isF16() || element.isBF16()) && llvm::any_of(op->getUsers(), [](Operation* user) {
           return isa<TakeOp>(user) ||
                  (user->hasTrait<OpTrait::Elementwise>() && user->getDialect()->getNamespace() == "arith");
         });
}

/// What is looked up may be put into shared memory element by element, and LLVM would round it so: ptxas may move one
/// of the conversions over the wait for the product that makes its operand, and then waits for all products (C7517).
bool isTaken(Operation* op) {
  return llvm::any_of(op->getUsers(), [](Operation* user) { return isa<TakeOp>(user); });
}
llvm::Value* roundPair(llvm::IRBuilderBase& b, llvm::Value* low, llvm::Value* high, llvm::Type* to) {
  return b.CreateIntrinsic(to->isHalfTy() ? llvm::Intrinsic::nvvm_ff2f16x2_rn : llvm::Intrinsic::nvvm_ff2bf16x2_rn,
                           {high, low});
}

/// The registers of one op. Each way returns how many registers it made from the given one on; 0: it does not apply.
class ElementwiseOp {
 public:
  ElementwiseOp(Emitter& e, Operation* op) : e_(e), op_(op), results_(op->getNumResults()) {
    if (isa<RankedTensorType>(op->getResult(0).getType())) {
      layout_ = &e.layoutOf(op->getResult(0));
      count_ = layout_->numRegs();
    }
    if (layout_ && isa<arith::CmpIOp>(op)) equal_ = firstOfEqual(e.facts().of(op->getResult(0)).constancy, *layout_);
    packed_ = static_cast<size_t>(packedElements(op));
  }

  LogicalResult emit() {
    using Way = size_t (ElementwiseOp::*)(size_t);
    const std::array<Way, 10> ways{
        &ElementwiseOp::equal,      &ElementwiseOp::packedBits,  &ElementwiseOp::halfPair, &ElementwiseOp::roundedPair,
        &ElementwiseOp::chosenWord, &ElementwiseOp::upperHalves, &ElementwiseOp::padding,  &ElementwiseOp::widenedBytes,
        &ElementwiseOp::byteOfWord, &ElementwiseOp::single};
    for (size_t reg = 0; reg < count_;) {
      size_t made = 0;
      for (Way way : ways)
        if ((made = (this->*way)(reg))) break;
      if (!made) return failure();
      reg += made;
    }
    for (auto [result, list] : llvm::zip(op_->getResults(), results_)) e_.define(result, std::move(list));
    return success();
  }

 private:
  llvm::ArrayRef<llvm::Value*> held(size_t operand = 0) const { return e_.regs(op_->getOperand(operand)); }
  bool isPadding(size_t reg) const { return layout_ && layout_->isRegPadding(static_cast<int>(reg)); }
  bool hasNext(size_t reg) const { return layout_ && reg + 1 < count_ && !isPadding(reg) && !isPadding(reg + 1); }

  size_t push(llvm::Value* vector) {
    const unsigned elements = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
    for (uint64_t i = 0; i < elements; ++i) results_[0].push_back(e_.b.CreateExtractElement(vector, i));
    return elements;
  }

  size_t equal(size_t reg) {
    if (equal_.empty() || equal_[reg] >= reg) return 0;
    results_[0].push_back(results_[0][equal_[reg]]);
    return 1;
  }

  size_t packedBits(size_t reg) {
    if (packed_ <= 1 || !layout_ || reg + packed_ > count_) return 0;
    SmallVector<llvm::ArrayRef<llvm::Value*>, 2> groups;
    for (Value operand : op_->getOperands()) groups.push_back(e_.regs(operand).slice(reg, packed_));
    const auto values = emitPackedBits(e_.b, op_, groups);
    if (!values) return 0;
    results_[0].append(values->begin(), values->end());
    return packed_;
  }

  size_t halfPair(size_t reg) {
    if (!hasNext(reg) || !hasHalfPairs(e_.target, op_)) return 0;
    const bool isPacked = llvm::any_of(op_->getOperands(), [&](Value operand) {
      return isPair(e_.regs(operand)[reg], e_.regs(operand)[reg + 1]);
    });
    if (!isPacked && !isForPairs(e_.target, op_)) return 0;
    SmallVector<llvm::Value*, 2> pairs;
    for (Value operand : op_->getOperands())
      pairs.push_back(e_.packPair(e_.regs(operand)[reg], e_.regs(operand)[reg + 1]));
    return push(e_.elementwise(op_, pairs));
  }

  size_t roundedPair(size_t reg) {
    if (!hasNext(reg) || !roundsToHalves(op_)) return 0;
    llvm::Value *low = held()[reg], *high = held()[reg + 1];
    return push(isTaken(op_) ? roundPair(e_.b, low, high, e_.elementType(op_->getResult(0)))
                             : e_.elementwise(op_, e_.packPair(low, high)));
  }

  size_t chosenWord(size_t reg) {
    llvm::Value* word = hasNext(reg) ? chooseWord(e_, op_, reg) : nullptr;
    return word ? push(word) : 0;
  }

  /// Where they lie, one instruction each: taken out of the register first, the upper one would be shifted down and up.
  size_t upperHalves(size_t reg) {
    if (!hasNext(reg) || !widensUpperHalves(op_) || !isPair(held()[reg], held()[reg + 1])) return 0;
    llvm::Value* word = e_.b.CreateBitCast(e_.packPair(held()[reg], held()[reg + 1]), e_.b.getInt32Ty());
    results_[0].push_back(e_.b.CreateBitCast(e_.b.CreateShl(word, 16), e_.b.getFloatTy()));
    results_[0].push_back(e_.b.CreateBitCast(e_.b.CreateAnd(word, 0xffff0000u), e_.b.getFloatTy()));
    return 2;
  }

  size_t widenedBytes(size_t reg) {
    if (!hasNext(reg) || reg + 4 > count_ || !hasNext(reg + 2) || !widensToPairs(e_.target, op_)) return 0;
    size_t made = 0;
    for (llvm::Value* pair : widenedPairs(e_.b, op_, held().slice(reg, 4))) made += push(pair);
    return made;
  }

  size_t byteOfWord(size_t reg) {
    if (op_->getNumOperands() != 1) return 0;
    llvm::Value* number = convertByteOfWord(e_.b, op_, held()[reg]);
    if (number) results_[0].push_back(number);
    return number ? 1 : 0;
  }

  size_t padding(size_t reg) {
    if (!isPadding(reg)) return 0;
    for (auto [i, list] : llvm::enumerate(results_))
      list.push_back(llvm::PoisonValue::get(e_.elementType(op_->getResult(i))));
    return 1;
  }

  /// 0: the op does not exist on GPUs, which it has reported.
  size_t single(size_t reg) {
    SmallVector<llvm::Value*, 3> args;
    for (Value operand : op_->getOperands())
      args.push_back(e_.regs(operand)[isa<RankedTensorType>(operand.getType()) ? reg : 0]);
    const auto values = emitElementwise(e_.b, op_, args, e_.math());
    if (values.size() != results_.size()) {
      std::string type;  // a type of its own would be printed in quotes
      llvm::raw_string_ostream(type) << getElementTypeOrSelf(op_->getResult(0).getType());
      op_->emitError() << op_->getName().stripDialect() << " of " << type
                       << " does not exist on GPU targets; compute in f32 or on the host";
      return 0;
    }
    for (auto [list, value] : llvm::zip(results_, values)) list.push_back(value);
    return 1;
  }

  Emitter& e_;
  Operation* op_;
  SmallVector<Regs, 2> results_;
  const layout::Layout* layout_ = nullptr;
  size_t count_ = 1, packed_ = 1;
  SmallVector<size_t> equal_;  ///< comparisons: for each register the first one that holds the same value
};

}  // namespace

LogicalResult emitElementwiseOp(Emitter& e, Operation* op) {
  return emitConversion(e, op) ? success() : ElementwiseOp(e, op).emit();
}

}  // namespace tile::ir
