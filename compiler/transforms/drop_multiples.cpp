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
      OpBuilder b(op);
      const Value rest = without(b, x, n.getSExtValue(), facts);
      if (rest && rest != x) op->setOperand(0, rest);
    }
  }

  /// `x` without what is added to it that n divides; null: the rest may be negative. Low bits do not ask whether sums
  /// wrap.
  static Value without(OpBuilder& b, Value x, int64_t n, const Facts& facts, int depth = 0) {
    constexpr int kDeepest = 16;
    Operation* op = depth < kDeepest ? x.getDefiningOp() : nullptr;
    const Value plain = facts.rangeOf(x).isNonNegative() ? x : Value();
    if (isa_and_nonnull<SplatOp, BroadcastOp, ReshapeOp, TransOp>(op)) {
      const Value from = op->getOperand(0), rest = without(b, from, n, facts, depth + 1);
      if (!rest || rest == from) return plain;
      Operation* moved = b.clone(*op);
      moved->setOperand(0, rest);
      return moved->getResult(0);
    }
    if (!isa_and_nonnull<arith::AddIOp>(op)) return plain;
    for (int i : {0, 1})
      if (facts.divisibility(op->getOperand(i)) % n == 0) return without(b, op->getOperand(1 - i), n, facts, depth + 1);
    const Value left = without(b, op->getOperand(0), n, facts, depth + 1);
    const Value right = without(b, op->getOperand(1), n, facts, depth + 1);
    if (!left || !right || (left == op->getOperand(0) && right == op->getOperand(1))) return plain;
    // Parts that are not negative may have a sum that is, where it wraps.
    const Range most = facts.rangeOf(op->getOperand(0)), more = facts.rangeOf(op->getOperand(1));
    const unsigned bits = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
    if (bits > 32 || most.max > INT32_MAX / 2 || more.max > INT32_MAX / 2) return plain;
    return arith::AddIOp::create(b, op->getLoc(), left, right);
  }
};

}  // namespace
}  // namespace tile::ir
