// join_cats.cpp - a cat one of whose operands is a cat along the same axis takes the operands of that one: then one op
// sees all the pieces. Hosts interleave them in registers if the axis is the innermost one (host/rearrange.cpp); on
// GPUs pieces of one shape are parts of the threads' registers, however many there are.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"

namespace tile::ir {
#define GEN_PASS_DEF_JOINCATS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

class JoinCatsPass : public impl::JoinCatsBase<JoinCatsPass> {
 public:
  using JoinCatsBase::JoinCatsBase;

 private:
  void runOnOperation() override {
    getOperation().walk([this](CatOp cat) {  // operands come first, so that chains of any length fold up
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
      if (joined.empty() || (keepAlike && areAlike(cat.getSources()) && !areAlike(pieces))) return;
      cat.getSourcesMutable().assign(pieces);
      for (CatOp inner : joined) inner.erase();
    });
  }

  static bool areAlike(ValueRange tiles) {
    return llvm::all_of(tiles, [&](Value tile) { return tile.getType() == tiles[0].getType(); });
  }
};

}  // namespace
}  // namespace tile::ir
