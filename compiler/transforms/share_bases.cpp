// share_bases.cpp - addresses of neighbours in a grid are made from each other's.
// Before: gathers at p + ((z + 1) * layer + y * row) and p + (z * layer + (y - 1) * row), in 64 bits: places that differ
//         by strides of the launch, each with products of its own.
// After:  the first gather's address, plus layer, minus row.
//
// Sums and products of 64 bits wrap, and every way to compute them is the same. Numbers of 32 bits are only taken apart
// where their ranges show that nothing wraps before they are widened. Addresses that something is written to stay as
// they are, and so do those that would be known to be less aligned. Kernels without products alone: of the others bulk
// copies are made, by how their places are computed.
#include <numeric>

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

/// factor * product of numbers; those of 32 bits are widened, with their sign.
struct Term {
  SmallVector<Value, 2> numbers;  ///< sorted
  uint64_t factor = 0;
};

/// A number of 64 bits as a sum of terms, modulo 2^64.
class Sum {
 public:
  void add(Term term) {
    auto* same = llvm::find_if(terms_, [&](const Term& t) { return t.numbers == term.numbers; });
    if (same == terms_.end())
      terms_.push_back(std::move(term));
    else
      same->factor += term.factor;
    llvm::erase_if(terms_, [](const Term& t) { return t.factor == 0; });
  }
  void add(const Sum& other, uint64_t factor = 1) {
    for (const Term& t : other.terms_) add({t.numbers, t.factor * factor});
  }
  Sum times(const Sum& other) const {
    Sum product;
    for (const Term& a : terms_)
      for (const Term& b : other.terms_) {
        Term both = a;
        both.numbers.append(b.numbers);
        llvm::sort(both.numbers, [](Value x, Value y) { return x.getAsOpaquePointer() < y.getAsOpaquePointer(); });
        both.factor *= b.factor;
        product.add(std::move(both));
      }
    return product;
  }
  ArrayRef<Term> terms() const { return terms_; }
  bool isReasonable() const {
    constexpr size_t kMostTerms = 12, kMostNumbers = 6;
    return terms_.size() <= kMostTerms &&
           llvm::all_of(terms_, [](const Term& t) { return t.numbers.size() <= kMostNumbers; });
  }

 private:
  SmallVector<Term> terms_;
};

/// Takes numbers apart.
class Sums {
 public:
  explicit Sums(const Facts& facts) : facts_(facts) {}

  /// Of a scalar of 64 bits.
  Sum of(Value value, int depth = 0) {
    // Squares of squares would be taken apart again and again.
    if (auto known = known_.find(value); known != known_.end()) return known->second;
    return known_.try_emplace(value, made(value, depth)).first->second;
  }

 private:
  Sum made(Value value, int depth) {
    Operation* op = value.getDefiningOp();
    if (auto constant = getConstantIntValue(value)) return number({}, static_cast<uint64_t>(*constant));
    std::optional<Sum> sum;
    if (op && depth < kDeepest) {
      auto part = [&](unsigned i) { return of(op->getOperand(i), depth + 1); };
      if (isa<arith::AddIOp, arith::SubIOp>(op)) {
        sum = part(0);
        sum->add(part(1), isa<arith::SubIOp>(op) ? ~uint64_t{0} : 1);
      } else if (isa<arith::MulIOp>(op)) {
        sum = part(0).times(part(1));
      } else if (auto widened = dyn_cast<arith::ExtSIOp>(op); widened && widened.getIn().getType().isInteger(32)) {
        sum = widenedOf(widened.getIn(), depth + 1);
      }
    }
    return sum && sum->isReasonable() ? *sum : number({value}, 1);
  }

  static constexpr int kDeepest = 24;

  static Sum number(SmallVector<Value, 2> numbers, uint64_t factor) {
    Sum sum;
    sum.add({std::move(numbers), factor});
    return sum;
  }

  /// Of a scalar of 32 bits, widened with its sign.
  Sum widenedOf(Value value, int depth) const {
    Operation* op = value.getDefiningOp();
    if (auto constant = getConstantIntValue(value)) return number({}, static_cast<uint64_t>(*constant));
    if (op && depth < kDeepest && isa<arith::AddIOp, arith::SubIOp>(op)) {
      const Range a = facts_.rangeOf(op->getOperand(0)), b = facts_.rangeOf(op->getOperand(1));
      const bool adds = isa<arith::AddIOp>(op);
      const int64_t low = a.min + (adds ? b.min : -b.max), high = a.max + (adds ? b.max : -b.min);
      if (low >= INT32_MIN && high <= INT32_MAX) {
        Sum sum = widenedOf(op->getOperand(0), depth + 1);
        sum.add(widenedOf(op->getOperand(1), depth + 1), adds ? 1 : ~uint64_t{0});
        return sum;
      }
    }
    return number({value}, 1);
  }

  const Facts& facts_;
  llvm::DenseMap<Value, Sum> known_;
};

/// Whether the number is an argument of the kernel, widened or not: what is made of such numbers is made once.
bool isOfLaunch(Value number) {
  auto argument = dyn_cast<BlockArgument>(number);
  return argument && isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

/// The ops that only compute what `value` is, itself included.
void gather(Value value, llvm::SmallSetVector<Operation*, 16>& ops) {
  Operation* op = value.getDefiningOp();
  if (!op || !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ExtSIOp>(op) || !ops.insert(op)) return;
  for (Value operand : op->getOperands()) gather(operand, ops);
}

class ShareBasesPass : public impl::ShareBasesBase<ShareBasesPass> {
  struct Base {
    PtrAddOp op;
    Sum place;
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
      gather(op.getOffset(), mine.ops);
      const bool isRead = llvm::all_of(op->getUsers(), [&](Operation* user) { return isa<GatherOp>(user); });
      const bool isShared = isRead && llvm::any_of(bases, [&](Base& other) {
                              return other.op.getPtr() == op.getPtr() && isBefore(other.op, op, dominance) &&
                                     makeFrom(other, mine, facts);
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

  static bool makeFrom(Base& first, Base& mine, const Facts& facts) {
    constexpr size_t kMostTerms = 2;
    Sum apart = mine.place;
    apart.add(first.place, ~uint64_t{0});
    if (apart.terms().empty() || apart.terms().size() > kMostTerms + 1) return false;
    size_t strides = 0;
    int64_t divisor = kZeroDivisibility;
    for (const Term& term : apart.terms()) {
      if (term.numbers.size() > 1 || (term.numbers.size() == 1 && !isOfLaunch(term.numbers[0]))) return false;
      strides += term.numbers.size();
      int64_t part = term.factor ? static_cast<int64_t>(term.factor & -term.factor) : kZeroDivisibility;
      if (term.numbers.size() == 1) part *= std::min<int64_t>(facts.divisibility(term.numbers[0]), 1 << 20);
      divisor = std::gcd(divisor, std::abs(part));
    }
    if (strides == 0 || strides > kMostTerms) return false;  // neighbours along a row are windows, found by constants
    const int64_t known = std::gcd(divisor, facts.divisibility(first.op.getOffset()));
    if (known < facts.divisibility(mine.op.getOffset())) return false;
    // What is saved: ops that only this address wants. Two are what the sum of another address costs.
    const auto own = llvm::count_if(mine.ops, [&](Operation* op) { return !first.ops.contains(op); });
    if (own <= static_cast<int64_t>(strides) + 1) return false;

    OpBuilder b(mine.op);
    mine.op.getPtrMutable().assign(first.op.getResult());
    mine.op.getOffsetMutable().assign(made(apart, b, mine.op.getLoc()));
    return true;
  }

  /// The constant last: windows look for it there.
  static Value made(const Sum& sum, OpBuilder& b, Location loc) {
    Value all, constant;
    auto whole = [&](uint64_t x) -> Value {
      return arith::ConstantIntOp::create(b, loc, b.getI64Type(), static_cast<int64_t>(x));
    };
    for (const Term& term : sum.terms()) {
      if (term.numbers.empty()) {
        constant = whole(term.factor);
        continue;
      }
      Value number = term.numbers[0];
      if (!number.getType().isInteger(64)) number = arith::ExtSIOp::create(b, loc, b.getI64Type(), number);
      const bool isTaken = term.factor == ~uint64_t{0};
      if (!isTaken && term.factor != 1) number = arith::MulIOp::create(b, loc, number, whole(term.factor));
      if (!all)
        all = isTaken ? arith::SubIOp::create(b, loc, whole(0), number).getResult() : number;
      else if (isTaken)
        all = arith::SubIOp::create(b, loc, all, number);
      else
        all = arith::AddIOp::create(b, loc, all, number);
    }
    return constant ? arith::AddIOp::create(b, loc, all, constant).getResult() : all;
  }
};

}  // namespace
}  // namespace tile::ir
