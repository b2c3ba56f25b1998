// memory_roots.cpp - walking from addresses to arguments, and which ops touch memory other threads see.
#include "compiler/analysis/memory_roots.h"

#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir {
using namespace mlir;

/// The load of one element that an integer is, perhaps with promises; null: it is no such load.
static Operation* loadBehind(Value number) {
  Operation* op = number.getDefiningOp();
  while (op && isa<AssumeOp>(op)) op = op->getOperand(0).getDefiningOp();
  return op && isa<LoadOp, GatherOp>(op) && !isa<RankedTensorType>(op->getResult(0).getType()) ? op : nullptr;
}

namespace {

/// Walks from an address to everything it may be made from, through what loops carry and branches choose.
class RootFinder {
 public:
  MemoryRoot find(Value address) {
    follow(address, 0);
    while (!pending_.empty() && isKnown_) {
      auto [value, loads] = pending_.pop_back_val();
      step(value, loads);
    }
    return isKnown_ ? root_ : MemoryRoot();
  }

 private:
  static constexpr size_t kMost = 64;

  void follow(Value value, unsigned loads) {
    if (seen_.insert({value, loads}).second) pending_.push_back({value, loads});
    isKnown_ &= seen_.size() <= kMost;
  }
  void step(Value value, unsigned loads) {
    if (auto arg = dyn_cast<BlockArgument>(value)) return stepOut(arg, loads);
    const unsigned index = cast<OpResult>(value).getResultNumber();
    llvm::TypeSwitch<Operation*>(value.getDefiningOp())
        .Case([&](PtrAddOp op) { follow(op.getPtr(), loads); })
        .Case([&](MakeViewOp op) { follow(op.getPtr(), loads); })
        .Case([&](ViewPtrOp op) { follow(op.getView(), loads); })
        .Case([&](SplatOp op) { follow(op.getValue(), loads); })
        .Case([&](arith::SelectOp op) { follow(op.getTrueValue(), loads), follow(op.getFalseValue(), loads); })
        .Case([&](scf::ForOp op) { follow(op.getInitArgs()[index], loads), follow(op.getYieldedValues()[index], loads); })
        .Case([&](scf::WhileOp op) { follow(op.getConditionOp().getArgs()[index], loads); })
        .Case([&](scf::IfOp op) {
          follow(op.thenYield().getOperand(index), loads), follow(op.elseYield().getOperand(index), loads);
        })
        .Case([&](IntToPtrOp op) {
          Operation* load = loadBehind(op.getAddress());
          load ? follow(addressOf(load), loads + 1) : giveUp();
        })
        .Default([&](Operation*) { giveUp(); });
  }
  /// From an argument of a region.
  void stepOut(BlockArgument arg, unsigned loads) {
    Operation* parent = arg.getOwner()->getParentOp();
    const unsigned index = arg.getArgNumber();
    if (isa<func::FuncOp>(parent)) {
      const MemoryRoot root{arg, loads};
      isKnown_ &= !root_ || root_ == root;
      root_ = root;
    } else if (auto loop = dyn_cast<scf::ForOp>(parent); loop && arg != loop.getInductionVar()) {
      follow(loop.getTiedLoopInit(arg)->get(), loads);
      follow(loop.getTiedLoopYieldedValue(arg)->get(), loads);
    } else if (auto again = dyn_cast<scf::WhileOp>(parent)) {
      if (arg.getOwner() == again.getAfterBody()) return follow(again.getConditionOp().getArgs()[index], loads);
      follow(again.getInits()[index], loads), follow(again.getYieldOp().getOperand(index), loads);
    } else {
      giveUp();
    }
  }
  void giveUp() { isKnown_ = false; }

  SmallVector<std::pair<Value, unsigned>> pending_;
  llvm::DenseSet<std::pair<Value, unsigned>> seen_;
  MemoryRoot root_;
  bool isKnown_ = true;
};

}  // namespace

MemoryRoot rootOf(Value address) { return RootFinder().find(address); }

Value addressOf(Operation* op) {
  return llvm::TypeSwitch<Operation*, Value>(op)
      .Case<LoadOp, LoadSharedOp, StoreOp, AccumulateOp>([](auto o) { return o.getView(); })
      .Case<GatherOp, GatherSharedOp, ScatterOp, AtomicRmwOp, AtomicCasOp>([](auto o) { return o.getPtr(); })
      .Default([](Operation*) { return Value(); });
}

bool isVolatile(Operation* load) {
  if (auto gather = dyn_cast<GatherOp>(load)) return gather.getCache() == CacheHint::volatile_;
  return cast<LoadOp>(load).getCache() == CacheHint::volatile_;
}

bool writesGlobal(Operation* op) { return isa<StoreOp, AccumulateOp, ScatterOp, AtomicRmwOp, AtomicCasOp>(op); }

namespace {
template <class Test>
bool hasOrder(Operation* op, Test test) {
  if (auto rmw = dyn_cast<AtomicRmwOp>(op)) return test(rmw.getOrder());
  if (auto cas = dyn_cast<AtomicCasOp>(op)) return test(cas.getOrder());
  return false;
}
}  // namespace

bool isAcquire(Operation* op) {
  return hasOrder(op, [](MemOrder order) { return order == MemOrder::acquire || order == MemOrder::acq_rel; });
}
bool isRelease(Operation* op) {
  return hasOrder(op, [](MemOrder order) { return order == MemOrder::release || order == MemOrder::acq_rel; });
}

}  // namespace tile::ir
