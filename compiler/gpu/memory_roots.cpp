// memory_roots.cpp - walking from addresses to arguments, and which ops touch memory other threads see.
#include "compiler/gpu/memory_roots.h"

#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir {
using namespace mlir;

Value rootOf(Value v) {
  for (int depth = 0; depth < 64; ++depth) {
    if (auto arg = dyn_cast<BlockArgument>(v)) {
      Operation* parent = arg.getOwner()->getParentOp();
      if (isa<func::FuncOp>(parent)) return v;
      auto loop = dyn_cast<scf::ForOp>(parent);
      if (!loop || arg == loop.getInductionVar()) return {};
      v = loop.getTiedLoopInit(arg)->get();
      continue;
    }
    Operation* op = v.getDefiningOp();
    if (auto add = dyn_cast<PtrAddOp>(op))
      v = add.getPtr();
    else if (auto make = dyn_cast<MakeViewOp>(op))
      v = make.getPtr();
    else if (auto ptr = dyn_cast<ViewPtrOp>(op))
      v = ptr.getView();
    else if (auto splat = dyn_cast<SplatOp>(op))
      v = splat.getValue();
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      v = loop.getInitArgs()[cast<OpResult>(v).getResultNumber()];
    else
      return {};
  }
  return {};
}

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
