// drop_multiples.cpp - drops multiples of n from the dividend of a remainder by n, a constant power of two. In a loop
// that steps by whole groups, an element's place in its group is then the same in every iteration.
// Before: x % n, where x = m + r, m is a multiple of n (the counter of a loop over blocks, the start of a block), and
//         neither x nor r is negative.
// After:  r % n, which is often invariant in the loop, or a constant.
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_DROPMULTIPLES
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

/// Sums in front of a remainder by n, without what n divides. Every value is looked at once: sums of sums have 2^depth
/// parts.
class Multiples {
 public:
  Multiples(Operation* remainder, int64_t n, const Facts& facts) : b_(remainder), n_(n), facts_(facts) {}

  /// `x` without what is added to it that n divides; null: the rest may be negative. Low bits do not ask whether sums
  /// wrap.
  Value without(Value x) { return restOf(x, 0).value; }

 private:
  struct Rest {
    Value value;
    int64_t most = 0;  ///< it is never more
  };

  Rest restOf(Value x, int depth) {
    if (auto it = known_.find(x); it != known_.end()) return it->second;
    const Rest rest = find(x, depth);
    return known_[x] = rest;
  }

  Rest find(Value x, int depth) {
    constexpr int kDeepest = 16;
    Operation* op = depth < kDeepest ? x.getDefiningOp() : nullptr;
    const Range range = facts_.rangeOf(x);
    const Rest plain = range.isNonNegative() ? Rest{x, range.max} : Rest();
    auto of = [&](unsigned operand) { return restOf(op->getOperand(operand), depth + 1); };
    if (isa_and_nonnull<SplatOp, BroadcastOp, ReshapeOp, TransOp>(op)) {
      const Rest rest = of(0);
      if (!rest.value || rest.value == op->getOperand(0)) return plain;
      Operation* moved = b_.clone(*op);
      moved->setOperand(0, rest.value);
      return {moved->getResult(0), rest.most};
    }
    if (!isa_and_nonnull<arith::AddIOp>(op)) return plain;
    for (unsigned i : {0, 1})
      if (facts_.divisibility(op->getOperand(i)) % n_ == 0) return of(1 - i);
    const Rest left = of(0), right = of(1);
    if (!left.value || !right.value) return plain;
    if (left.value == op->getOperand(0) && right.value == op->getOperand(1)) return plain;
    // Parts that are not negative may have a sum that is, where it wraps.
    const unsigned bits = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
    if (bits > 32 || left.most + right.most > fullRange(bits).max) return plain;
    return {arith::AddIOp::create(b_, op->getLoc(), left.value, right.value), left.most + right.most};
  }

  OpBuilder b_;
  const int64_t n_;
  const Facts& facts_;
  llvm::DenseMap<Value, Rest> known_;
};

class DropMultiplesPass : public impl::DropMultiplesBase<DropMultiplesPass> {
  void runOnOperation() override {
    SmallVector<Operation*> remainders;
    getOperation().walk([&](Operation* op) {
      if (isa<arith::RemSIOp, arith::RemUIOp>(op)) remainders.push_back(op);
    });
    if (remainders.empty()) return;
    const Facts facts(getOperation());
    for (Operation* op : remainders) {
      APInt n;
      const Value x = op->getOperand(0);
      if (!matchPattern(op->getOperand(1), m_ConstantInt(&n)) || !n.isPowerOf2() || n.isNegative()) continue;
      const bool isPlain = isa<arith::RemUIOp>(op) || facts.rangeOf(x).isNonNegative();
      if (!isPlain || n.getActiveBits() > 31) continue;
      const Value rest = Multiples(op, n.getSExtValue(), facts).without(x);
      if (rest && rest != x) op->setOperand(0, rest);
    }
  }
};

}  // namespace
}  // namespace tile::ir
