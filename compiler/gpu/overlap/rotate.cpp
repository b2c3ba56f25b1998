// rotate.cpp - overlaps chained asynchronous products: in a loop where product 2 multiplies what elementwise work made
// of product 1, product 2 moves one iteration later, so that it runs beside the elementwise work of its successor.
// Before: for j: S = product 1 (j); P = f(S); O = product 2 (P, V(j), rescaled O)
// After:  if any: prologue: the iteration lb without product 2
//                 for j from the second: S = product 1 (j); O = product 2 (P, V(j - 1), O); P = f(S), rescale O
//                 epilogue: product 2 of the last iteration
//         else the loop's initial values.
//         Where masks make a loop of their own of the first iterations anyway (peel_masks), there is no prologue:
//                 for all j: S = product 1 (j); if j is not the first: O = product 2 (P, V(j - 1), O); ...
//         That is a third less code, and the branch disappears from all loops but the first.
// Delayed are products whose first operand is in registers and comes from another product of the same iteration, and
// whose result is only carried into the next; with them the loads of their second operand. Values that a delayed op
// takes from the rest of its iteration (P, the rescaled O, indices) become loop-carried. Products that need no result
// of this iteration come first. `tile.overlap = 0` on the loop turns it off.
// Where nothing can be delayed, a product that needs no result of this iteration still starts in front of the
// elementwise work it can run beside.
#include "compiler/analysis/facts.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/overlap/rotation.h"
#include "compiler/gpu/rings/register_plan.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Lower bound of the second iteration; the upper bound where lb + step would wrap.
Value secondBound(OpBuilder& b, scf::ForOp loop, const Facts& facts) {
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), step = loop.getStep(), upper = loop.getUpperBound();
  Type type = lower.getType();
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  Range from = facts.rangeOf(lower), by = facts.rangeOf(step);
  int64_t most;
  bool fits = !__builtin_add_overflow(from.max, by.max, &most) && most <= fullRange(bits).max;
  if (fits || bits == 64) return b.createOrFold<arith::AddIOp>(loc, lower, step);
  auto wide = [&](Value v) { return arith::ExtSIOp::create(b, loc, b.getI64Type(), v).getResult(); };
  Value sum = arith::AddIOp::create(b, loc, wide(lower), wide(step));
  return arith::TruncIOp::create(b, loc, type, arith::MinSIOp::create(b, loc, sum, wide(upper)));
}

class RotatePass : public PassWrapper<RotatePass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RotatePass)
  StringRef getArgument() const override { return "tile-rotate"; }
  StringRef getDescription() const override { return "move the second of two chained products an iteration later"; }
  void getDependentDialects(DialectRegistry& registry) const override {
    registry.insert<TileDialect, arith::ArithDialect, scf::SCFDialect>();
  }

  explicit RotatePass(TargetOf target) : targetOf_(std::move(target)) {}

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || !hasAsyncProduct(func)) return markAllAnalysesPreserved();
    SmallVector<scf::ForOp> loops;
    func.walk([&](scf::ForOp loop) {
      auto hint = loop->getAttrOfType<IntegerAttr>("tile.overlap");
      if (!hint || hint.getInt() != 0) loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      RotationPlan rotation(loop);
      if (!rotation.find() || (!loop->hasAttr("tile.overlap") && isTooMuch(func, loop, rotation))) {
        startEarly(func, loop);
        continue;
      }
      Facts facts(func);
      bool runs = facts.rangeOf(loop.getLowerBound()).max < facts.rangeOf(loop.getUpperBound()).min;
      if (rotation.canBranch() && masksAtStart(loop, facts))
        rewriteRotated(rotation, runs, nullptr);
      else
        rewriteRotated(rotation, runs, [&](OpBuilder& b) { return secondBound(b, loop, facts); });
    }
  }

 private:
  void startEarly(func::FuncOp func, scf::ForOp loop) const {
    if (accumulatorsHold(func, loop)) return;
    for (Operation& op : llvm::make_early_inc_range(*loop.getBody()))
      if (asyncProduct(&op)) moveUp(&op);
  }

  /// The accumulators of the loop, all at once, are more than a thread has registers for.
  bool accumulatorsHold(func::FuncOp func, scf::ForOp loop) const {
    const int64_t warps = warpsOf(func);
    if (!warps) return true;
    int64_t bits = 0;
    for (Operation& op : *loop.getBody())
      if (MmaOp product = asyncProduct(&op)) {
        auto type = product.getResult().getType();
        bits += type.getNumElements() * type.getElementTypeBitWidth();
      }
    return bits / 32 / (warps * 32) + RegisterEstimate::kOther > mostRegisters(warps);
  }

  /// The product, with what reads its operands, behind the first one whose elementwise work it can run beside.
  static void moveUp(Operation* product) {
    SmallVector<Operation*> moved{product};  // last first
    llvm::DenseSet<Operation*> set{product};
    Operation* place = nullptr;
    size_t count = 0;
    bool passesWork = false;
    for (Operation* op = product->getPrevNode(); op && isMovable(op); op = op->getPrevNode()) {
      const bool isNeeded = llvm::any_of(op->getUsers(), [&](Operation* user) { return set.contains(user); });
      const bool isProduct = asyncProduct(op) != nullptr;
      const bool makesTile = llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
      if (isProduct && passesWork) place = op, count = moved.size();
      if (isNeeded && makesTile && !op->hasTrait<OpTrait::ConstantLike>()) break;
      passesWork |= makesTile && !isNeeded && !isProduct;
      if (!isNeeded) continue;
      moved.push_back(op);
      set.insert(op);
    }
    if (!place) return;
    moved.truncate(count);
    for (Operation* op : moved) op->moveAfter(place);
  }

  int64_t mostRegisters(int64_t numWarps) const {
    const std::vector<RolePlan> roles = rolePlans(static_cast<int>(numWarps), targetOf_());
    return roles.empty() ? targetOf_().maxRegsPerThread : roles.back().consumerRegs;
  }

  /// Whether the products of two iterations hold more than the registers of a thread: they would be finished one by
  /// one, and some of their accumulators spilled.
  bool isTooMuch(func::FuncOp func, scf::ForOp loop, const RotationPlan& rotation) const {
    const int64_t warps = warpsOf(func);
    if (!warps) return false;
    const int64_t most = mostRegisters(warps);
    const int64_t held = rotation.registersInFlight(warps * 32);
    if (held + RegisterEstimate::kOther <= most) return false;
    loop.emitRemark() << "products are not overlapped with the elementwise work of the next iteration: those of two "
                         "iterations hold "
                      << held << " registers of each thread, which has " << most;
    return true;
  }

  TargetOf targetOf_;
};

}  // namespace

std::unique_ptr<Pass> createRotatePass(TargetOf target) { return std::make_unique<RotatePass>(std::move(target)); }

}  // namespace tile::ir
