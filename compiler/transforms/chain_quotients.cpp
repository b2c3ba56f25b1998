// chain_quotients.cpp - divides once where a flat index is taken apart by products of sizes.
// Before: x / a, (x / a) % b and x / (a b): places in a tensor of several dims, as one writes them down. The last one
//         is a division more, by a number that is made for it.
// After:  x / (a b) is (x / a) / b, which comes with (x / a) % b; x % (a b) is what that leaves of x.
//
// Kernels without products alone. Quotients are cut towards zero either way, so that both are the same for numbers of
// any sign; divisors that are products are taken not to wrap (README of the language).
#include <algorithm>

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/products.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_CHAINQUOTIENTS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

bool isUnsigned(Operation* op) { return isa<arith::DivUIOp, arith::RemUIOp>(op); }
bool isQuotient(Operation* op) { return isa_and_nonnull<arith::DivSIOp, arith::DivUIOp>(op); }
bool isDivision(Operation* op) { return isQuotient(op) || isa_and_nonnull<arith::RemSIOp, arith::RemUIOp>(op); }

/// The number behind a tile of equal elements: what was spread over it.
Value spread(Value tile) {
  while (isa_and_nonnull<SplatOp, BroadcastOp, ReshapeOp>(tile.getDefiningOp()))
    tile = tile.getDefiningOp()->getOperand(0);
  return tile;
}

bool isOneNumber(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return !type || type.getNumElements() == 1;
}

/// The numbers whose product a divisor is, in an order of their own.
class Factors {
 public:
  explicit Factors(Value product) {
    if (!add(product, /*isSpread=*/false)) all_.assign(1, product);
    llvm::sort(all_, [](Value a, Value b) { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); });
  }
  size_t size() const { return all_.size(); }
  /// `this` is the product of both.
  bool areOf(const Factors& a, const Factors& b) const {
    SmallVector<Value> both;
    std::merge(a.all_.begin(), a.all_.end(), b.all_.begin(), b.all_.end(), std::back_inserter(both),
               [](Value x, Value y) { return x.getAsOpaquePointer() < y.getAsOpaquePointer(); });
    return both == all_;
  }

 private:
  /// False: a factor has several numbers and was spread, along its rows or along its columns, which are other factors.
  bool add(Value product, bool isSpread) {
    constexpr size_t kMost = 16;
    const Value from = spread(product);
    isSpread |= from != product;
    auto times = from.getDefiningOp<arith::MulIOp>();
    if (times && all_.size() <= kMost) return add(times.getLhs(), isSpread) && add(times.getRhs(), isSpread);
    all_.push_back(from);
    return !isSpread || isOneNumber(from);
  }
  SmallVector<Value> all_;
};

class ChainQuotientsPass : public impl::ChainQuotientsBase<ChainQuotientsPass> {
  void runOnOperation() override {
    SmallVector<Operation*> divisions;
    getOperation().walk([&](Operation* op) {
      if (isDivision(op)) divisions.push_back(op);
    });
    // Kernels of products compute places again under each layout, not all of them under every one.
    if (divisions.size() < 3 || hasProduct(getOperation())) return;
    const DominanceInfo dominance(getOperation());
    // Those by products of most factors first: what their chains begin with becomes one itself.
    SmallVector<std::pair<size_t, Operation*>> byProducts;
    for (Operation* op : divisions)
      if (const size_t factors = Factors(op->getOperand(1)).size(); factors > 1) byProducts.emplace_back(factors, op);
    llvm::stable_sort(byProducts, [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto [factors, op] : byProducts)
      if (Operation* step = lastStep(op, divisions, dominance)) replace(op, step, dominance);
  }

  /// (x / a) / b or (x / a) % b for `op`, a division of x by a b.
  static Operation* lastStep(Operation* op, ArrayRef<Operation*> divisions, const DominanceInfo& dominance) {
    const Factors product(op->getOperand(1));
    for (Operation* step : divisions) {
      Operation* first = step->getOperand(0).getDefiningOp();
      if (step == op || !isQuotient(first) || first == op || first->getOperand(0) != op->getOperand(0) ||
          isUnsigned(first) != isUnsigned(op) || isUnsigned(step) != isUnsigned(op))
        continue;
      // What stands behind it is made in front of it as well, and is the same then.
      const bool isThere = dominance.properlyDominates(first, op);
      if (!isThere && (!dominance.properlyDominates(op, first) || !isKnownAt(op, first->getOperand(1), dominance)))
        continue;
      if (product.areOf(Factors(first->getOperand(1)), Factors(step->getOperand(1))) &&
          isKnownAt(op, step->getOperand(1), dominance))
        return step;
    }
    return nullptr;
  }

  /// A divisor that is there, or a tile of one number that is.
  static bool isKnownAt(Operation* op, Value divisor, const DominanceInfo& dominance) {
    auto splat = divisor.getDefiningOp<SplatOp>();
    return dominance.properlyDominates(splat ? splat.getValue() : divisor, op);
  }
  static Value knownAt(OpBuilder& b, Value divisor) {
    auto splat = divisor.getDefiningOp<SplatOp>();
    return splat ? b.clone(*splat)->getResult(0) : divisor;
  }

  static void replace(Operation* op, Operation* step, const DominanceInfo& dominance) {
    OpBuilder b(op);
    const Location loc = op->getLoc();
    auto quotient = [&](Value x, Value by) -> Value {
      return isUnsigned(op) ? arith::DivUIOp::create(b, loc, x, by).getResult()
                            : arith::DivSIOp::create(b, loc, x, by).getResult();
    };
    Operation* first = step->getOperand(0).getDefiningOp();
    const Value begin = dominance.properlyDominates(first, op)
                            ? first->getResult(0)
                            : quotient(op->getOperand(0), knownAt(b, first->getOperand(1)));
    Value made = quotient(begin, knownAt(b, step->getOperand(1)));
    if (!isQuotient(op)) {
      const Value whole = arith::MulIOp::create(b, loc, made, op->getOperand(1));
      made = arith::SubIOp::create(b, loc, op->getOperand(0), whole);
    }
    // The operation stays where it is, without users: others may look at it still.
    op->getResult(0).replaceAllUsesWith(made);
  }
};

}  // namespace
}  // namespace tile::ir
