// late_updates.cpp - moves the op that makes the next value of a carried tile behind everything that reads the current
// value. Then both can live in one buffer (share_buffers.cpp): the update happens in place, and no iteration copies the
// tile.
#include "compiler/dialect/dialect.h"
#include "compiler/host/host.h"
#include "compiler/host/plan.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
namespace {
using namespace mlir;

/// The first op of the block that uses a result of `op`, itself or something inside it.
Operation* firstUser(Operation* op) {
  Operation* first = nullptr;
  for (Operation* user : op->getUsers()) {
    Operation* at = op->getBlock()->findAncestorOpInBlock(*user);
    if (at && (!first || at->isBeforeInBlock(first))) first = at;
  }
  return first;
}

/// What evaluates `arg` in the block, directly or through elementwise ops that are evaluated where their result is
/// needed; `update` and what only it needs do not count. The last of them, or null.
Operation* lastReader(Value arg, Operation* update, Block* body) {
  Operation* last = nullptr;
  SmallVector<Value> values{arg};
  DenseSet<Value> seen{arg};
  while (!values.empty())
    for (Operation* user : values.pop_back_val().getUsers()) {
      Operation* at = body->findAncestorOpInBlock(*user);
      if (!at || at == update || at == body->getTerminator()) continue;
      if (at == user && (isElementwise(user) || isa<BroadcastOp, ReshapeOp, TransOp>(user))) {
        for (Value result : user->getResults())
          if (seen.insert(result).second) values.push_back(result);
        if (!user->hasOneUse() || *user->getUsers().begin() != update)
          if (!last || last->isBeforeInBlock(at)) last = at;
        continue;
      }
      if (!last || last->isBeforeInBlock(at)) last = at;
    }
  return last;
}

class LateUpdatesPass : public PassWrapper<LateUpdatesPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LateUpdatesPass)
  StringRef getArgument() const override { return "tile-late-updates"; }
  StringRef getDescription() const override {
    return "carried tiles are updated behind what reads their value of this iteration";
  }

  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) {
      Block* body = loop.getBody();
      for (auto [arg, next] : llvm::zip(loop.getRegionIterArgs(), body->getTerminator()->getOperands())) {
        Operation* update = next.getDefiningOp();
        if (!isTile(arg) || !update || update->getBlock() != body || !isMemoryEffectFree(update)) continue;
        Operation *reader = lastReader(arg, update, body), *user = firstUser(update);
        // What reads the old value may itself need the new one: then there are two values at once.
        if (!reader || !update->isBeforeInBlock(reader) || !reader->isBeforeInBlock(user)) continue;
        update->moveAfter(reader);
      }
    });
  }
};

}  // namespace

std::unique_ptr<Pass> createLateUpdatesPass() { return std::make_unique<LateUpdatesPass>(); }

}  // namespace tile::ir
