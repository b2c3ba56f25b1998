// near_angles.cpp - marks sines, cosines and tangents of f32 whose argument is known to be near zero (`near`): what was
// made of a few whole numbers (twiddle factors) or of random numbers. Their quadrant is found with f32, which is much
// cheaper than with f64 (math_functions.cpp).
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/lowering/math_functions.h"
#include "compiler/transforms/transforms.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
#define GEN_PASS_DEF_NEARANGLES
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

constexpr int kDeepest = 16;

/// What no |x| is above, but for roundings; infinite where nothing is known.
double boundOf(Value x, Facts& facts, int depth = 0) {
  APFloat number(0.0);
  DenseFPElementsAttr same;
  if (matchPattern(x, m_ConstantFloat(&number))) return std::abs(number.convertToDouble());
  if (matchPattern(x, m_Constant(&same)) && same.isSplat())
    return std::abs(same.getSplatValue<APFloat>().convertToDouble());
  Operation* op = x.getDefiningOp();
  if (!op || depth > kDeepest) return INFINITY;
  auto of = [&](unsigned i) { return boundOf(op->getOperand(i), facts, depth + 1); };
  return llvm::TypeSwitch<Operation*, double>(op)
      .Case<arith::SIToFPOp, arith::UIToFPOp>([&](Operation* cast) {
        const Range range = facts.rangeOf(cast->getOperand(0));
        if (isa<arith::UIToFPOp>(cast) && range.min < 0) return double(INFINITY);
        return std::max(std::abs(static_cast<double>(range.min)), std::abs(static_cast<double>(range.max)));
      })
      .Case<arith::MulFOp>([&](auto) {
        const double a = of(0), b = of(1);
        return std::isinf(a) || std::isinf(b) ? double(INFINITY) : a * b;
      })
      .Case<arith::AddFOp, arith::SubFOp>([&](auto) { return of(0) + of(1); })
      .Case<arith::SelectOp>([&](auto) { return std::max(of(1), of(2)); })
      .Case<arith::NegFOp, math::AbsFOp, SplatOp, BroadcastOp, ReshapeOp, TransOp, ExtractOp>(
          [&](auto) { return of(0); })
      .Default([](Operation*) { return double(INFINITY); });
}

class NearAnglesPass : public impl::NearAnglesBase<NearAnglesPass> {
 public:
  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    Facts facts(getOperation());
    getOperation().walk([&](Operation* op) {
      if (!isa<math::SinOp, math::CosOp, math::TanOp>(op)) return;
      if (getElementTypeOrSelf(op->getResult(0).getType()).isF32() && boundOf(op->getOperand(0), facts) <= kNearAngle)
        op->setAttr(kNear, UnitAttr::get(op->getContext()));
    });
  }
};

}  // namespace
}  // namespace tile::ir
