// choose_forms.cpp - resolves the branches of tile.on_host, which say what code for GPUs and for hosts does.
// Before: a kernel's inline assembly beside its form for hosts.
// After:  one of the two. Assembly that is left on a host is an error.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tile::ir {
#define GEN_PASS_DEF_CHOOSEFORMS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

struct ChooseForms : impl::ChooseFormsBase<ChooseForms> {
  using ChooseFormsBase::ChooseFormsBase;

  void runOnOperation() override {
    SmallVector<Operation*> branches;
    getOperation().walk([&](OnHostOp op) {
      for (Operation* user : op->getUsers()) branches.push_back(user);
      OpBuilder builder(op);
      op.replaceAllUsesWith(arith::ConstantOp::create(builder, op.getLoc(), builder.getBoolAttr(host)).getResult());
      op.erase();
    });
    if (!branches.empty()) {
      RewritePatternSet patterns(&getContext());
      scf::IfOp::getCanonicalizationPatterns(patterns, &getContext());
      if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) return signalPassFailure();
    }
    if (!host) return;
    getOperation().walk([&](InlineAsmOp op) {
      op.emitError() << "inline assembly is for GPUs and this one has no form for hosts: give one as the last "
                        "argument, [](Tile x) { return ...; }";
      signalPassFailure();
    });
  }
};

}  // namespace
}  // namespace tile::ir
