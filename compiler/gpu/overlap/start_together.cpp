// start_together.cpp - which statements between two products of a block may stand behind the second one.
#include "compiler/gpu/overlap/start_together.h"

#include "compiler/gpu/forms/async_products.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of a thread that two results may occupy: that of the first lives until the second is there. More where it
/// would do so anyway, being stored only.
constexpr int64_t kMostRegisters = 32, kMostOfStored = 64;

/// Adds the buffer and everything that names its memory (its transpose, say).
void addNames(Value buffer, llvm::DenseSet<Value>& names) {
  SmallVector<Value> pending{buffer};
  while (!pending.empty()) {
    const Value name = pending.pop_back_val();
    if (!names.insert(name).second) continue;
    for (Operation* user : name.getUsers())
      llvm::copy_if(user->getResults(), std::back_inserter(pending),
                    [](Value v) { return isa<SmemType>(v.getType()); });
  }
}

/// The statements between two products that need the first one's result, in order. Nullopt: the second one needs them
/// or it, or some of them cannot stand behind it.
std::optional<SmallVector<Operation*>> whatWaits(MmaOp first, MmaOp second) {
  llvm::DenseSet<Value> made{first.getResult()};  // of it, buffers too
  auto isMade = [&](Operation* op) {
    return llvm::any_of(op->getOperands(), [&](Value v) { return made.contains(v); });
  };
  SmallVector<Operation*> waits;
  for (Operation* op = first->getNextNode(); op != second; op = op->getNextNode()) {
    if (op->getNumRegions() != 0) return std::nullopt;
    if (!isMade(op)) continue;
    if (auto store = dyn_cast<SmemStoreOp>(op)) {
      // A buffer of its own, that nobody has seen yet.
      auto buffer = store.getTarget().getDefiningOp<SmemAllocOp>();
      if (!buffer || buffer->getBlock() != op->getBlock() || !first->isBeforeInBlock(buffer)) return std::nullopt;
      addNames(buffer, made);
    } else if (!isPure(op)) {
      return std::nullopt;
    }
    made.insert(op->result_begin(), op->result_end());
    waits.push_back(op);
  }
  if (isMade(second)) return std::nullopt;
  return waits;
}

}  // namespace

void startTogether(Block& block) {
  // Results that live longer would be spilled.
  if (auto roles = block.getParentOp()->getParentOfType<SpecializeOp>(); roles && roles->hasAttr(kTightAttr)) return;
  SmallVector<MmaOp> products;
  for (Operation& op : block)
    if (MmaOp product = asyncProduct(&op)) products.push_back(product);
  for (size_t i = 1; i < products.size(); ++i) {
    MmaOp first = products[i - 1], second = products[i];
    const auto waits = whatWaits(first, second);
    if (!waits) continue;
    const bool isStored = llvm::all_of(*waits, [](Operation* op) { return isa<SmemStoreOp>(op); });
    const int64_t registers = registersOf(first.getType()) + registersOf(second.getType());
    if (registers > (isStored ? kMostOfStored : kMostRegisters)) continue;
    Operation* behind = second;
    for (Operation* op : *waits) op->moveAfter(behind), behind = op;
  }
}

}  // namespace tile::ir
