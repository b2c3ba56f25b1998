// joined_reductions.cpp - see joined_reductions.h.
#include "compiler/analysis/joined_reductions.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

static ReduceOp joined(ReduceOp first, ReduceOp later) {
  SmallVector<Value> sources(first.getSources());
  llvm::append_range(sources, later.getSources());
  SmallVector<Type> types(first.getResultTypes());
  llvm::append_range(types, later.getResultTypes());
  OpBuilder builder(first);
  auto both = ReduceOp::create(builder, first.getLoc(), types, sources, first.getAxis());
  // Arguments: what is accumulated of all operands, then the next element of each.
  Block& body = both.getCombiner().emplaceBlock();
  const size_t n = first.getNumResults(), m = later.getNumResults();
  for (int side = 0; side < 2; ++side)
    for (Value source : sources) body.addArgument(getElementTypeOrSelf(source), first.getLoc());
  builder.setInsertionPointToStart(&body);
  SmallVector<Value> yields;
  auto append = [&](ReduceOp part, size_t from, size_t count) {
    IRMapping map;
    Block& old = part.getCombiner().front();
    for (size_t i = 0; i < count; ++i) {
      map.map(old.getArgument(i), body.getArgument(from + i));
      map.map(old.getArgument(count + i), body.getArgument(n + m + from + i));
    }
    for (Operation& op : old.without_terminator()) builder.clone(op, map);
    for (Value v : old.getTerminator()->getOperands()) yields.push_back(map.lookupOrDefault(v));
  };
  append(first, 0, n);
  append(later, n, m);
  YieldOp::create(builder, first.getLoc(), yields);
  for (auto [old, now] : llvm::zip(first.getResults(), both.getResults().take_front(n))) old.replaceAllUsesWith(now);
  for (auto [old, now] : llvm::zip(later.getResults(), both.getResults().drop_front(n))) old.replaceAllUsesWith(now);
  first.erase();
  later.erase();
  return both;
}

void joinReductions(Operation* root, function_ref<bool(ReduceOp)> takes,
                    function_ref<bool(ReduceOp, ReduceOp)> moveBeside) {
  SmallVector<Block*> blocks;
  root->walk([&](Block* block) { blocks.push_back(block); });
  for (Block* block : blocks) {
    SmallVector<ReduceOp> firsts;  // joined ones in place of their first
    for (ReduceOp reduce : llvm::to_vector(block->getOps<ReduceOp>())) {
      if (!takes(reduce)) continue;
      auto* first = llvm::find_if(firsts, [&](ReduceOp other) { return moveBeside(other, reduce); });
      if (first == firsts.end())
        firsts.push_back(reduce);
      else
        *first = joined(*first, reduce);
    }
  }
}

}  // namespace tile::ir
