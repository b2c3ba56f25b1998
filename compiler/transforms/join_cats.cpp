// join_cats.cpp - a cat whose operand is another cat along the same axis takes that one's operands: one op then sees all
// the pieces, and interleaves them in registers where the axis is the innermost (rearrange.cpp).
#include "compiler/dialect/dialect.h"
#include "compiler/host/host.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
namespace {
using namespace mlir;

class JoinCatsPass : public PassWrapper<JoinCatsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(JoinCatsPass)
  StringRef getArgument() const override { return "tile-join-cats"; }
  StringRef getDescription() const override { return "cats of cats along one axis become one"; }

  void runOnOperation() override {
    getOperation().walk([](CatOp cat) {  // operands come first, so that chains of any length fold up
      SmallVector<Value> pieces;
      SmallVector<CatOp> joined;
      for (Value source : cat.getSources()) {
        auto inner = source.getDefiningOp<CatOp>();
        if (!inner || inner.getAxis() != cat.getAxis() || !source.hasOneUse()) {
          pieces.push_back(source);
          continue;
        }
        llvm::append_range(pieces, inner.getSources());
        joined.push_back(inner);
      }
      if (joined.empty()) return;
      cat.getSourcesMutable().assign(pieces);
      for (CatOp inner : joined) inner.erase();
    });
  }
};

}  // namespace

std::unique_ptr<Pass> createJoinCatsPass() { return std::make_unique<JoinCatsPass>(); }

}  // namespace tile::ir
