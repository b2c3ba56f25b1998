// promises.cpp - see promises.h.
#include "compiler/analysis/promises.h"

#include "compiler/analysis/axis_facts.h"
#include "compiler/analysis/integer_facts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

class Reader {
 public:
  explicit Reader(const Facts& facts) : facts_(facts) {}

  void read(Value condition) {
    if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
      read(both.getLhs());
      return read(both.getRhs());
    }
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    if (!compare || compare.getLhs().getType().isInteger(1)) return;
    const Value a = compare.getLhs(), b = compare.getRhs();
    using P = arith::CmpIPredicate;
    switch (compare.getPredicate()) {
      case P::eq:
        equal(a, b);
        return equal(b, a);
      case P::ne: return;
      case P::slt: return ordered(a, b, 1);
      case P::sle: return ordered(a, b, 0);
      case P::sgt: return ordered(b, a, 1);
      case P::sge: return ordered(b, a, 0);
      case P::ult: return orderedUnsigned(a, b, 1);
      case P::ule: return orderedUnsigned(a, b, 0);
      case P::ugt: return orderedUnsigned(b, a, 1);
      case P::uge: return orderedUnsigned(b, a, 0);
    }
  }

  SmallVector<Promise> promises;

 private:
  Range rangeOf(Value v) const { return facts_.rangeOf(v); }
  static Range all(Value v) { return fullRange(integerBits(v.getType())); }

  /// The lower one is at least `apart` below the upper one.
  void ordered(Value lower, Value upper, int64_t apart) {
    const Range least = rangeOf(lower), most = rangeOf(upper);
    Range below = all(lower), above = all(upper);
    if (most.max >= below.min + apart) below.max = most.max - apart;
    if (least.min <= above.max - apart) above.min = least.min + apart;
    promises.push_back({lower, below});
    promises.push_back({upper, above});
  }
  /// Of numbers without a sign: what is below one that is not negative is not, either.
  void orderedUnsigned(Value lower, Value upper, int64_t apart) {
    const Range most = rangeOf(upper);
    if (most.isNonNegative() && most.max >= apart) promises.push_back({lower, {0, most.max - apart}});
  }
  void equal(Value value, Value other) {
    promises.push_back({value, rangeOf(other)});
    APInt rest, by;
    Operation* op = value.getDefiningOp();
    if (!op || !matchPattern(other, m_ConstantInt(&rest)) || !rest.isZero()) return;
    if (op->getNumOperands() != 2 || !matchPattern(op->getOperand(1), m_ConstantInt(&by)) || by.getActiveBits() > 31)
      return;
    const auto number = static_cast<int64_t>(by.getZExtValue());
    if (isa<arith::RemSIOp, arith::RemUIOp>(op) && number > 0)
      promises.push_back({op->getOperand(0), all(op->getOperand(0)), powerOfTwoIn(number)});
    else if (isa<arith::AndIOp>(op) && llvm::isMask_64(by.getZExtValue()))
      promises.push_back({op->getOperand(0), all(op->getOperand(0)), number + 1});
  }

  const Facts& facts_;
};

}  // namespace

SmallVector<Promise> promisesOf(Value condition, const Facts& facts) {
  Reader reader(facts);
  reader.read(condition);
  return std::move(reader.promises);
}

}  // namespace tile::ir
