// guard_steps.cpp - guards loops whose step is known at launch only. With a step of 0 or less they would never end, and
// passes that compute their trip count would divide by 0. Such a loop gets no iteration; on hosts, whose launches
// report what programs find, the launch fails and names the loop's line.
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"

namespace tile::ir {
#define GEN_PASS_DEF_GUARDSTEPS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

struct GuardSteps : impl::GuardStepsBase<GuardSteps> {
  using GuardStepsBase::GuardStepsBase;

  void runOnOperation() override {
    Facts facts(getOperation());
    getOperation().walk([&](scf::ForOp loop) {
      const Range step = facts.rangeOf(loop.getStep());
      if (step.min <= 0 && !(loop.getUnsignedCmp() && step.max < 0)) guard(loop);
    });
  }

  void guard(scf::ForOp loop) const {
    OpBuilder builder(loop);
    const Location loc = loop.getLoc();
    const Type type = loop.getStep().getType();
    auto constant = [&](int64_t n) -> Value {
      return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, n));
    };
    const auto counts = loop.getUnsignedCmp() ? arith::CmpIPredicate::ne : arith::CmpIPredicate::sgt;
    Value positive = arith::CmpIOp::create(builder, loc, counts, loop.getStep(), constant(0));
    if (report)
      AssertOp::create(builder, loc, positive, "the step of a range must be positive, found 0 or less");
    // Steps stay multiples of what they were: nothing is known to divide less than kZeroDivisibility.
    Value step = arith::SelectOp::create(builder, loc, positive, loop.getStep(), constant(kZeroDivisibility));
    Value end = arith::SelectOp::create(builder, loc, positive, loop.getUpperBound(), loop.getLowerBound());
    loop.getStepMutable().assign(step);
    loop.getUpperBoundMutable().assign(end);
  }
};

}  // namespace
}  // namespace tile::ir
