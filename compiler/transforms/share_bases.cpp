// share_bases.cpp - addresses of neighbours in a grid are made from each other's.
// Before: gathers at p + ((z + 1) * layer + y * row) and p + (z * layer + (y - 1) * row), in 64 bits: places that
//         differ by strides of the launch, each with products of its own.
// After:  the first gather's address, plus layer, minus row.
//
// Sums and products of 64 bits wrap, and every way to compute them is the same. Numbers of 32 bits are only taken apart
// where their ranges show that nothing wraps before they are widened. Addresses that something is written to stay as
// they are, and so do those that would be known to be less aligned. Kernels without products alone: of the others bulk
// copies are made, by how their places are computed.
#include <numeric>

#include "compiler/analysis/definitions.h"
#include "compiler/analysis/sum_of_products.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/products.h"
#include "compiler/transforms/transforms.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace tile::ir {
#define GEN_PASS_DEF_SHAREBASES
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

/// Takes numbers of 64 bits apart: sums of products of others, modulo 2^64. Those of 32 bits are widened, with their
/// sign.
class Sums {
 public:
  explicit Sums(const Facts& facts) : facts_(facts) {}

  SumOfProducts of(Value value, int depth = 0) {
    // Squares of squares would be taken apart again and again.
    if (auto known = known_.find(value); known != known_.end()) return known->second;
    return known_.try_emplace(value, made(value, depth)).first->second;
  }
  Value number(uint32_t index) const { return numbers_[index]; }

 private:
  static constexpr int kDeepest = 24;

  SumOfProducts made(Value value, int depth) {
    constexpr size_t kMostProducts = 12, kMostNumbers = 6;
    Operation* op = value.getDefiningOp();
    if (auto constant = getConstantIntValue(value)) return constantSum(*constant);
    std::optional<SumOfProducts> sum;
    if (op && depth < kDeepest) {
      auto part = [&](unsigned i) { return of(op->getOperand(i), depth + 1); };
      if (isa<arith::AddIOp, arith::SubIOp>(op))
        sum = plus(part(0), part(1), isa<arith::SubIOp>(op) ? -1 : 1);
      else if (isa<arith::MulIOp>(op))
        sum = times(part(0), part(1));
      else if (auto widened = dyn_cast<arith::ExtSIOp>(op); widened && widened.getIn().getType().isInteger(32))
        sum = widenedOf(widened.getIn(), depth + 1);
    }
    return sum && isSmall(*sum, kMostProducts, kMostNumbers) ? *sum : itself(value);
  }

  /// Of a scalar of 32 bits, widened with its sign.
  SumOfProducts widenedOf(Value value, int depth) {
    Operation* op = value.getDefiningOp();
    if (auto constant = getConstantIntValue(value)) return constantSum(*constant);
    if (op && depth < kDeepest && isa<arith::AddIOp, arith::SubIOp>(op)) {
      const Range a = facts_.rangeOf(op->getOperand(0)), b = facts_.rangeOf(op->getOperand(1));
      const bool adds = isa<arith::AddIOp>(op);
      const int64_t low = a.min + (adds ? b.min : -b.max), high = a.max + (adds ? b.max : -b.min);
      if (low >= INT32_MIN && high <= INT32_MAX)
        return plus(widenedOf(op->getOperand(0), depth + 1), widenedOf(op->getOperand(1), depth + 1), adds ? 1 : -1);
    }
    return itself(value);
  }

  static SumOfProducts constantSum(int64_t x) { return x ? SumOfProducts{{{}, x}} : SumOfProducts(); }
  SumOfProducts itself(Value value) {
    numbers_.insert(value);
    return {{{static_cast<uint32_t>(llvm::find(numbers_, value) - numbers_.begin())}, 1}};
  }

  const Facts& facts_;
  llvm::SetVector<Value> numbers_;  ///< in the order they were met
  llvm::DenseMap<Value, SumOfProducts> known_;
};

/// The ops that only compute what `value` is, itself included.
void collect(Value value, llvm::SmallSetVector<Operation*, 16>& ops) {
  Operation* op = value.getDefiningOp();
  if (!op || !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ExtSIOp>(op) || !ops.insert(op)) return;
  for (Value operand : op->getOperands()) collect(operand, ops);
}

class ShareBasesPass : public impl::ShareBasesBase<ShareBasesPass> {
  struct Base {
    PtrAddOp op;
    SumOfProducts place;
    llvm::SmallSetVector<Operation*, 16> ops;
  };

  void runOnOperation() override {
    if (hasProduct(getOperation())) return;
    SmallVector<PtrAddOp> all;
    getOperation().walk([&](PtrAddOp op) {
      if (isa<PtrType>(op.getType()) && op.getOffset().getType().isInteger(64)) all.push_back(op);
    });
    if (all.size() < 2) return;
    const DominanceInfo dominance(getOperation());
    const Facts facts(getOperation());
    Sums sums(facts);
    SmallVector<Base> bases;
    for (PtrAddOp op : all) {
      Base mine{op, sums.of(op.getOffset()), {}};
      collect(op.getOffset(), mine.ops);
      const bool isRead = llvm::all_of(op->getUsers(), [&](Operation* user) { return isa<GatherOp>(user); });
      const bool isShared = isRead && llvm::any_of(bases, [&](Base& other) {
                              return other.op.getPtr() == op.getPtr() && isBefore(other.op, op, dominance) &&
                                     makeFrom(other, mine, sums, facts);
                            });
      if (!isShared) bases.push_back(std::move(mine));
    }
    if (bases.size() == all.size()) return;
    // What is left of the other sums goes, and strides that several addresses add become one.
    OpPassManager clean(getOperation()->getName());
    clean.addPass(createCanonicalizerPass());
    clean.addPass(createCSEPass());
    if (failed(runPipeline(clean, getOperation()))) signalPassFailure();
  }

  /// Whether `first` is known where `op` is, and made as often.
  static bool isBefore(PtrAddOp first, PtrAddOp op, const DominanceInfo& dominance) {
    return first->getParentOfType<LoopLikeOpInterface>() == op->getParentOfType<LoopLikeOpInterface>() &&
           dominance.properlyDominates(first.getOperation(), op);
  }

  static bool makeFrom(Base& first, Base& mine, const Sums& sums, const Facts& facts) {
    constexpr size_t kMostStrides = 2;
    const SumOfProducts apart = plus(mine.place, first.place, -1);
    size_t strides = 0;
    int64_t divisor = kZeroDivisibility;
    for (const auto& [numbers, factor] : apart) {
      if (numbers.size() > 1 || (!numbers.empty() && !argumentOfKernel(sums.number(numbers[0])))) return false;
      strides += numbers.size();
      int64_t part = factor & -factor;
      if (!numbers.empty()) part *= std::min<int64_t>(facts.divisibility(sums.number(numbers[0])), 1 << 20);
      divisor = std::gcd(divisor, std::abs(part));
    }
    if (strides == 0 || strides > kMostStrides) return false;  // neighbours along a row are windows, found by constants
    const int64_t known = std::gcd(divisor, facts.divisibility(first.op.getOffset()));
    if (known < facts.divisibility(mine.op.getOffset())) return false;
    // What is saved: ops that only this address wants. Two are what the sum of another address costs.
    const auto own = llvm::count_if(mine.ops, [&](Operation* op) { return !first.ops.contains(op); });
    if (own <= static_cast<int64_t>(strides) + 1) return false;

    OpBuilder b(mine.op);
    mine.op.getPtrMutable().assign(first.op.getResult());
    mine.op.getOffsetMutable().assign(made(apart, sums, b, mine.op.getLoc()));
    return true;
  }

  /// The constant last: windows look for it there.
  static Value made(const SumOfProducts& sum, const Sums& sums, OpBuilder& b, Location loc) {
    Value all, constant;
    auto whole = [&](int64_t x) -> Value { return arith::ConstantIntOp::create(b, loc, b.getI64Type(), x); };
    for (const auto& [numbers, factor] : sum) {
      if (numbers.empty()) {
        constant = whole(factor);
        continue;
      }
      Value number = sums.number(numbers[0]);
      if (!number.getType().isInteger(64)) number = arith::ExtSIOp::create(b, loc, b.getI64Type(), number);
      if (factor != -1 && factor != 1) number = arith::MulIOp::create(b, loc, number, whole(factor));
      if (factor == -1)
        all = arith::SubIOp::create(b, loc, all ? all : whole(0), number);
      else
        all = all ? arith::AddIOp::create(b, loc, all, number).getResult() : number;
    }
    return constant ? arith::AddIOp::create(b, loc, all, constant).getResult() : all;
  }
};

}  // namespace
}  // namespace tile::ir
