// simplify_masks.cpp - bounds that can never bite disappear: a comparison whose outcome the operands' ranges decide, as in
// `arange(0, 64) < 64`, becomes a constant. The canonicalizer then drops masks that are all true and erases stores under
// masks that are all false.
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"

namespace tile::ir {
#define GEN_PASS_DEF_SIMPLIFYMASKS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

struct SimplifyMasks : impl::SimplifyMasksBase<SimplifyMasks> {
  void runOnOperation() override {
    Facts facts(getOperation());
    SmallVector<arith::CmpIOp> decided;
    getOperation().walk([&](arith::CmpIOp compare) {
      if (facts.rangeOf(compare.getResult()).isConstant()) decided.push_back(compare);
    });
    for (arith::CmpIOp compare : decided) {
      OpBuilder builder(compare);
      TypedAttr value = builder.getBoolAttr(facts.rangeOf(compare.getResult()).min != 0);
      if (auto tensor = dyn_cast<RankedTensorType>(compare.getType()))
        value = DenseElementsAttr::get(tensor, ArrayRef<Attribute>(value));
      compare.getResult().replaceAllUsesWith(arith::ConstantOp::create(builder, compare.getLoc(), value));
      compare.erase();
    }
  }
};

}  // namespace
}  // namespace tile::ir
