// async_products.cpp - queries about asynchronous products, and the check that nobody reads an unfinished one.
#include "compiler/gpu/forms/async_products.h"

#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir {
using namespace mlir;

MmaOp asyncProduct(Operation* op) {
  auto mma = dyn_cast_or_null<MmaOp>(op);
  return mma && isWgmma(mma.getEngine()) ? mma : MmaOp();
}

bool hasAsyncProduct(Operation* op) {
  return op->walk([](MmaOp mma) { return asyncProduct(mma) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

Value slotOf(Value smem) {
  while (Operation* op = smem.getDefiningOp()) {
    if (auto slot = dyn_cast<SmemSlotOp>(op)) return slot.getIndex();
    auto trans = dyn_cast<SmemTransOp>(op);
    if (!trans) break;
    smem = trans.getSource();
  }
  return {};
}

bool isAlternating(Value smem, Block& loopBody) {
  auto alloc = allocationOf(smem);
  Value slot = slotOf(smem);
  return alloc && alloc->hasAttr(kAlternatesAttr) && slot && slot.getParentBlock() == &loopBody;
}

// ---- shared memory

AsyncReads::AsyncReads(func::FuncOp func) {
  func.walk([&](Operation* op) {
    Value target;
    if (auto load = dyn_cast<TmaLoadOp>(op)) target = load.getTarget();
    if (auto turn = dyn_cast<SmemTurnOp>(op)) target = turn.getTarget();
    if (op->getParentOfType<SpecializeOp>()) {
      if (auto copy = dyn_cast<AsyncCopyOp>(op)) target = copy.getTarget();
      if (auto gather = dyn_cast<AsyncGatherOp>(op)) target = gather.getTarget();
    }
    if (auto alloc = target ? allocationOf(target) : SmemAllocOp()) stages_.insert(alloc);
  });
}

static SmallVector<Value> sharedOperands(MmaOp product) {
  SmallVector<Value> tiles;
  for (Value operand : {Value(product.getA()), Value(product.getB())})
    if (isa<SmemType>(operand.getType())) tiles.push_back(operand);
  return tiles;
}

/// The product's stages rotate in the loop `op` stands in: the ring lives as long, so its bytes serve nothing else
/// there.
static bool rotatesAround(Operation* op, MmaOp product) {
  return op->getBlock() == product->getBlock() && llvm::all_of(sharedOperands(product), [&](Value tile) {
           auto alloc = allocationOf(tile);
           auto slot = dyn_cast_or_null<BlockArgument>(slotOf(tile));
           return alloc && alloc->hasAttr(kRotatesAttr) && slot && slot.getOwner() == product->getBlock();
         });
}

/// The tile lies there while the loop that `op` stands in runs, and nothing in it writes to it (weights of a
/// recurrence): its bytes serve nothing else, for the next iteration reads them again.
static bool staysAround(Operation* op, MmaOp product, Value tile) {
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  auto alloc = allocationOf(tile);
  if (!loop || !alloc || product->getBlock() != op->getBlock() || loop->isAncestor(alloc)) return false;
  SmallVector<Value> names{alloc.getResult()};
  while (!names.empty())
    for (Operation* user : names.pop_back_val().getUsers()) {
      if (isa<SmemSlotOp, SmemTransOp>(user))
        names.push_back(user->getResult(0));
      else if (!isa<MmaOp, SmemLoadOp>(user) && loop->isAncestor(user))
        return false;
    }
  return true;
}

/// Only ops on tiles with layouts can need scratch.
static bool hasLayouts(Operation* op) {
  return llvm::all_of(op->getOperandTypes(), [](Type t) { return !isa<RankedTensorType>(t) || layoutOf(t); });
}

bool AsyncReads::threatens(Operation* op, MmaOp product, bool isOfEarlier) const {
  if (rotatesAround(op, product)) return false;
  // Of buffers that take turns this iteration writes the one that the last one's product does not read. The other
  // threads' products of the last iteration are finished before this one's: async_plan.cpp.
  Block& block = *op->getBlock();
  auto isOther = [&](Value tile) {
    return isOfEarlier && &block == product->getBlock() && isAlternating(tile, block);
  };
  if (auto store = dyn_cast<SmemStoreOp>(op); store && isOther(store.getTarget())) return false;
  // A write to other bytes is a threat too, unless it can only be to other bytes: buffers whose last statement is over
  // share their memory with others. Those of stages are never shared, and those that take turns not inside their loop.
  const bool stagesOnly = llvm::all_of(sharedOperands(product), [&](Value tile) {
    auto alloc = allocationOf(tile);
    return alloc && (stages_.contains(alloc) || isOther(tile) || staysAround(op, product, tile));
  });
  auto writes = [&](Value target) {
    if (!stagesOnly) return true;
    return llvm::any_of(sharedOperands(product),
                        [&](Value tile) { return allocationOf(tile) == allocationOf(target); });
  };
  auto threat = [&](Operation* inner) {
    return llvm::TypeSwitch<Operation*, bool>(inner)
        .Case<BarrierOp>([&](auto) { return !stagesOnly; })
        .Case<SmemStoreOp, SmemZeroOp, AsyncCopyOp, AsyncGatherOp>([&](auto o) { return writes(o.getTarget()); })
        .Case<TmaStoreOp>([&](TmaStoreOp o) { return writes(o.getStaging()); })
        .Case<AtomicRmwOp, AtomicCasOp>(
            [&](auto o) { return !stagesOnly && (o.getOrder() != MemOrder::relaxed || scratchOf(o)); })
        .Default([&](Operation* o) { return !stagesOnly && hasLayouts(o) && scratchOf(o).has_value(); });
  };
  return op->walk([&](Operation* inner) { return threat(inner) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

// ---- the check

namespace {

/// Walks the program with the unfinished groups in order of issue; a group is the value that now names its result.
class WaitChecker {
 public:
  LogicalResult block(Block& block) {
    Slots outside;
    std::swap(outside, acquired_);
    for (Operation& op : block)
      if (failed(visit(&op))) return failure();
    std::swap(outside, acquired_);
    return success();
  }

 private:
  using Groups = SmallVector<Value>;
  using Slots = llvm::DenseMap<Value, SmallVector<Value>>;  ///< by ring, oldest first

  LogicalResult visit(Operation* op) {
    if (auto wait = dyn_cast<MmaWaitOp>(op)) {
      if (open_.size() > wait.getPending()) open_.erase(open_.begin(), open_.end() - wait.getPending());
      for (Value acc : wait.getAccs())
        if (llvm::is_contained(open_, acc))
          return op->emitError() << "waits until " << wait.getPending()
                                 << " groups are unfinished, which leaves the group of its operand among them";
      return success();
    }
    if (auto acquire = dyn_cast<RingAcquireOp>(op)) acquired_[acquire.getRing()].push_back(acquire.getSlot());
    if (auto release = dyn_cast<RingReleaseOp>(op)) return visitRelease(release);
    MmaOp product = asyncProduct(op);
    for (OpOperand& operand : op->getOpOperands()) {
      if (!isRaw(operand.get())) continue;
      if (product && &operand == &product.getAccMutable() && operand.get().hasOneUse()) continue;
      if (isa<scf::YieldOp>(op) && isa<scf::ForOp>(op->getParentOp())) continue;  // goes on as the next argument
      return op->emitError() << "reads the result of an asynchronous product that no tile.mma_wait has finished";
    }
    if (product) {
      open_.push_back(product.getResult());
      raw_.insert(product.getResult());
      return success();
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) return visitLoop(loop);
    if (op->getNumRegions() == 0) return success();
    for (Region& region : op->getRegions())
      for (Block& inner : region) {
        Groups before = open_;
        if (failed(block(inner))) return failure();
        // Whatever branch ran: what was unfinished in front may still be.
        for (Value group : llvm::reverse(before))
          if (!llvm::is_contained(open_, group)) open_.insert(open_.begin(), group);
      }
    return success();
  }

  /// Conditional releases belong to stages of another iteration, which has been waited for as a whole.
  LogicalResult visitRelease(RingReleaseOp release) {
    auto& slots = acquired_[release.getRing()];
    if (release.getEnable() || slots.empty()) return success();
    Value slot = slots.front();
    slots.erase(slots.begin());
    for (Value group : open_)
      if (auto product = group.getDefiningOp<MmaOp>();
          product && (slotOf(product.getA()) == slot || slotOf(product.getB()) == slot))
        return release.emitError() << "releases a stage that an unfinished asynchronous product reads";
    return success();
  }

  LogicalResult visitLoop(scf::ForOp loop) {
    Groups before = open_;
    for (int round = 0; round < 2; ++round) {
      if (failed(block(*loop.getBody()))) return failure();
      auto yielded = loop.getYieldedValues();
      auto carry = [&](ValueRange names) {
        for (auto [value, name] : llvm::zip(yielded, names)) {
          if (!isRaw(value)) continue;
          raw_.insert(name);
          for (Value& group : open_)
            if (group == value) group = name;
        }
      };
      if (round == 0)
        carry(loop.getRegionIterArgs());
      else
        carry(loop.getResults());
    }
    for (Value group : llvm::reverse(before))
      if (!llvm::is_contained(open_, group)) open_.insert(open_.begin(), group);
    return success();
  }

  bool isRaw(Value value) const { return raw_.contains(value); }

  Groups open_;                ///< oldest first
  Slots acquired_;             ///< in this block, not yet released
  llvm::DenseSet<Value> raw_;  ///< results nobody waited for, finished or not
};

}  // namespace

LogicalResult checkAsyncWaits(func::FuncOp func) { return WaitChecker().block(func.getBody().front()); }

}  // namespace tile::ir
