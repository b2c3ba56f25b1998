// fold_arguments.cpp - scalar arguments that every launch of this code promises to be 1 (`tile.one`; most are strides
// of rows) become the constant 1: products with them fold away, and rows are seen to be contiguous.
#include "compiler/transforms/transforms.h"

namespace tile::ir {
#define GEN_PASS_DEF_FOLDARGUMENTS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

struct FoldArguments : impl::FoldArgumentsBase<FoldArguments> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration()) return;
    OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
    for (BlockArgument arg : func.getArguments()) {
      if (!func.getArgAttr(arg.getArgNumber(), "tile.one") || arg.use_empty()) continue;
      arg.replaceAllUsesWith(
          arith::ConstantOp::create(builder, arg.getLoc(), builder.getIntegerAttr(arg.getType(), 1)));
    }
  }
};

}  // namespace
}  // namespace tile::ir
