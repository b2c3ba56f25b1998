// unroll_loops.cpp - unrolls loops that ask for it and whose trip count is known at launch only.
// Before: `tile.unroll` of a loop without products or stages, with an unknown trip count. LLVM would unroll it with an
//         exit test behind every body, and the loads of the next body would wait for that test.
// After:  a loop whose body is that many copies of the old one, with all their loads started together, and one behind
//         it for the remaining iterations. Loops with a known trip count keep the attribute: LLVM unrolls those.
#include "compiler/gpu/products/unroll_loops.h"

#include "compiler/dialect/products.h"
#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/dot_passes.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Of loops that count down: box places `x - (i + c)` of body c become `(x - i) - c`, as sums are. Then all bodies
/// share an address, and the constant is in what is added to it.
void moveConstantsLast(scf::ForOp loop) {
  auto isPlace = [](arith::SubIOp sub) {
    return isa<IntegerType>(sub.getType()) &&
           llvm::all_of(sub->getUsers(), [](Operation* user) { return isa<LoadOp, StoreOp, AccumulateOp>(user); });
  };
  SmallVector<arith::SubIOp> places;
  loop.getBody()->walk([&](arith::SubIOp sub) {
    if (isPlace(sub)) places.push_back(sub);
  });
  for (arith::SubIOp sub : places) {
    const auto [from, by] = withoutConstants(sub.getRhs(), INT32_MAX);
    if (by == 0) continue;
    OpBuilder b(sub);
    Value base = arith::SubIOp::create(b, sub.getLoc(), sub.getLhs(), from);
    Value constant = arith::ConstantOp::create(b, sub.getLoc(), b.getIntegerAttr(sub.getType(), -by));
    sub.replaceAllUsesWith(arith::AddIOp::create(b, sub.getLoc(), base, constant).getResult());
    sub.erase();
  }
}

}  // namespace

bool unrollBy(scf::ForOp loop, int64_t factor, bool anyStep, scf::ForOp* rest) {
  APInt step;
  const bool isConstant = matchPattern(loop.getStep(), m_ConstantInt(&step));
  if (isConstant ? !step.isStrictlyPositive() : !anyStep) return false;
  // The number of iterations is counted as one without a sign. By steps of 1 a negative one ends both loops at once,
  // where it has not wrapped: it cannot from 0 on.
  APInt first;
  const bool fromZero = matchPattern(loop.getLowerBound(), m_ConstantInt(&first)) && !first.isStrictlyPositive();
  if (!loop.getStaticTripCount() && (!isConstant || !step.isOne() || !fromZero || loop.getUnsignedCmp())) {
    OpBuilder b(loop);
    const Value low = loop.getLowerBound(), high = loop.getUpperBound();
    loop.setUpperBound(loop.getUnsignedCmp() ? arith::MaxUIOp::create(b, loop.getLoc(), low, high).getResult()
                                             : arith::MaxSIOp::create(b, loop.getLoc(), low, high).getResult());
  }
  const auto made = loopUnrollByFactor(loop, factor);
  if (succeeded(made))
    for (const std::optional<scf::ForOp>& part : {made->mainLoopOp, made->epilogueLoopOp})
      if (part) moveConstantsLast(*part);
  if (rest) *rest = succeeded(made) && made->epilogueLoopOp ? *made->epilogueLoopOp : scf::ForOp();
  return succeeded(made);
}

namespace {

/// Operations of all bodies together: more of them would take minutes to compile.
constexpr int64_t kMostOperations = 4096;

class UnrollLoopsPass : public PassWrapper<UnrollLoopsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(UnrollLoopsPass)
  StringRef getArgument() const override { return "tile-unroll-loops"; }
  StringRef getDescription() const override { return "unroll loops of unknown trip count that ask for it"; }

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;  // inner ones first
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      auto asked = loop->getAttrOfType<IntegerAttr>(kUnrollAttr);
      auto stages = loop->getAttrOfType<IntegerAttr>("tile.stages");
      if (!asked || asked.getInt() < 2 || (stages && stages.getInt() > 1) || hasProduct(loop)) continue;
      int64_t operations = 0;
      loop.getBody()->walk([&](Operation*) { ++operations; });
      if (loop.getStaticTripCount() || operations * asked.getInt() > kMostOperations) continue;
      loop->removeAttr(kUnrollAttr);
      loop->setAttr(kAsAskedAttr, UnitAttr::get(&getContext()));
      if (unrollBy(loop, asked.getInt())) continue;
      loop->removeAttr(kAsAskedAttr);
      loop->setAttr(kUnrollAttr, asked);
    }
  }
};

}  // namespace

std::unique_ptr<Pass> createUnrollLoopsPass() { return std::make_unique<UnrollLoopsPass>(); }

}  // namespace tile::ir
