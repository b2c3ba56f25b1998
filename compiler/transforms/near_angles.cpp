// near_angles.cpp - marks sines, cosines and tangents of f32 whose argument is known to be near zero (`near`): what was
// made of a few whole numbers (twiddle factors), of random numbers, or clamped. Their quadrant is found with f32, which
// is much cheaper than with f64 (math_functions.cpp).
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/lowering/math_functions.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
#define GEN_PASS_DEF_NEARANGLES
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

/// What x lies between, but for roundings, if it is a number (else its sine is none either).
struct Interval {
  double low = -INFINITY, high = INFINITY;
  bool isNumber = false;  ///< it is
  bool isFinite() const { return std::isfinite(low) && std::isfinite(high); }
};

Interval joined(Interval a, Interval b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.isNumber && b.isNumber};
}

/// What `combine`, which is largest and smallest at the ends of both, makes of finite numbers.
Interval ofEnds(Interval a, Interval b, llvm::function_ref<double(double, double)> combine) {
  if (!a.isFinite() || !b.isFinite()) return {};
  const auto ends = {combine(a.low, b.low), combine(a.low, b.high), combine(a.high, b.low), combine(a.high, b.high)};
  return {std::min(ends), std::max(ends), a.isNumber && b.isNumber};
}

/// The smaller of two. `skips`: of one that is no number and one that is, the latter.
Interval smaller(Interval a, Interval b, bool skips) {
  Interval least{std::min(a.low, b.low), std::min(a.high, b.high)};
  if (skips && !a.isNumber) least.high = std::max(least.high, b.high);
  if (skips && !b.isNumber) least.high = std::max(least.high, a.high);
  least.isNumber = skips ? a.isNumber || b.isNumber : a.isNumber && b.isNumber;
  return least;
}
Interval negative(Interval a) { return {-a.high, -a.low, a.isNumber}; }

class Bounds {
 public:
  explicit Bounds(Facts& facts) : facts_(facts) {}

  Interval of(Value x) {
    APFloat number(0.0);
    DenseFPElementsAttr same;
    if (matchPattern(x, m_ConstantFloat(&number))) return exactly(number.convertToDouble());
    if (matchPattern(x, m_Constant(&same)) && same.isSplat())
      return exactly(same.getSplatValue<APFloat>().convertToDouble());
    // Everything while it is looked at: what a loop makes of what it carries holds whatever that was.
    auto [it, isNew] = known_.try_emplace(x, Interval());
    if (!isNew || depth_ > kDeepest) return it->second;
    ++depth_;
    const Interval bounds = isa<BlockArgument>(x) ? ofCarried(cast<BlockArgument>(x)) : ofResult(cast<OpResult>(x));
    --depth_;
    return known_[x] = bounds;
  }

 private:
  static constexpr int kDeepest = 16;

  /// A NaN is anything: it is between no ends, and comparisons with it choose either.
  static Interval exactly(double value) { return std::isnan(value) ? Interval() : Interval{value, value, true}; }

  Interval ofCarried(BlockArgument x) {
    auto loop = dyn_cast<scf::ForOp>(x.getOwner()->getParentOp());
    if (!loop || x == loop.getInductionVar()) return {};
    return joined(of(loop.getTiedLoopInit(x)->get()), of(loop.getTiedLoopYieldedValue(x)->get()));
  }

  Interval ofResult(OpResult x) {
    Operation* op = x.getDefiningOp();
    auto in = [&](unsigned i) { return of(op->getOperand(i)); };
    return llvm::TypeSwitch<Operation*, Interval>(op)
        .Case<arith::SIToFPOp, arith::UIToFPOp>([&](Operation* cast) -> Interval {
          const Range range = facts_.rangeOf(cast->getOperand(0));
          if (isa<arith::UIToFPOp>(cast) && range.min < 0) return {};
          const bool isFlag = getElementTypeOrSelf(cast->getOperand(0)).isInteger(1);
          if (isFlag && isa<arith::SIToFPOp>(cast)) return {-1, 0, true};  // a sign is all it has
          return {static_cast<double>(range.min), static_cast<double>(range.max), true};
        })
        .Case<arith::MulFOp>([&](auto) { return ofEnds(in(0), in(1), [](double a, double b) { return a * b; }); })
        .Case<arith::AddFOp>([&](auto) { return ofEnds(in(0), in(1), [](double a, double b) { return a + b; }); })
        .Case<arith::SubFOp>([&](auto) -> Interval {
          auto whole = op->getOperand(1).getDefiningOp<math::FloorOp>();
          if (whole && whole.getOperand() == op->getOperand(0)) return {0, 1};
          return ofEnds(in(0), in(1), [](double a, double b) { return a - b; });
        })
        .Case<arith::DivFOp>([&](auto) -> Interval {
          const Interval by = in(1);
          if (by.low <= 0 && by.high >= 0) return {};
          return ofEnds(in(0), by, [](double a, double b) { return a / b; });
        })
        .Case<arith::RemFOp>([&](auto) -> Interval {
          const Interval by = in(1);
          const double most = std::max(std::abs(by.low), std::abs(by.high));
          return {-most, most};
        })
        .Case<arith::MinimumFOp>([&](auto) { return smaller(in(0), in(1), false); })
        .Case<arith::MinNumFOp>([&](auto) { return smaller(in(0), in(1), true); })
        .Case<arith::MaximumFOp>([&](auto) { return negative(smaller(negative(in(0)), negative(in(1)), false)); })
        .Case<arith::MaxNumFOp>([&](auto) { return negative(smaller(negative(in(0)), negative(in(1)), true)); })
        .Case<math::SinOp, math::CosOp, math::TanhOp>([&](auto) {
          return Interval{-1, 1};
        })
        .Case<math::AtanOp, math::Atan2Op>([&](auto) {
          return Interval{-M_PI, M_PI};
        })
        .Case<arith::SelectOp>([&](auto) { return joined(in(1), in(2)); })
        .Case<arith::NegFOp>([&](auto) { return negative(in(0)); })
        .Case<math::AbsFOp>([&](auto) { return joined(in(0), negative(in(0))); })
        .Case<scf::ForOp>([&](scf::ForOp loop) { return of(loop.getRegionIterArg(x.getResultNumber())); })
        .Case<SplatOp, BroadcastOp, ReshapeOp, TransOp, ExtractOp>([&](auto) { return in(0); })
        .Default([](Operation*) { return Interval(); });
  }

  Facts& facts_;
  DenseMap<Value, Interval> known_;
  int depth_ = 0;
};

class NearAnglesPass : public impl::NearAnglesBase<NearAnglesPass> {
 public:
  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    Facts facts(getOperation());
    Bounds bounds(facts);
    getOperation().walk([&](Operation* op) {
      if (!isa<math::SinOp, math::CosOp, math::TanOp>(op)) return;
      if (!getElementTypeOrSelf(op->getResult(0).getType()).isF32()) return;
      const Interval angle = bounds.of(op->getOperand(0));
      if (angle.low >= -kNearAngle && angle.high <= kNearAngle) op->setAttr(kNear, UnitAttr::get(op->getContext()));
    });
  }
};

}  // namespace
}  // namespace tile::ir
