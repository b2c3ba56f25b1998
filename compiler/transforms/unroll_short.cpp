// unroll_short.cpp - short loops that read memory start all of their loads together.
// Before: for s in 0..3 { sum += gather(x + s, mask(s)) }, three round trips to memory one after the other, and a mask
//         whose parts are compared with a counter.
// After:  three gathers in a row, with constants in their places and masks, and the three additions.
//
// Inner loops first, as long as a thread has registers for what is on its way. Loops for which the kernel says how they
// are to run, and loops that write or contain products, stay.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/products.h"
#include "compiler/dialect/tiles.h"
#include "compiler/dialect/warps.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_UNROLLSHORT
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

constexpr int64_t kMostShortTrips = 8;
constexpr int64_t kMostLoadedRegisters = 40;   ///< of a thread, for what all bodies load
constexpr int64_t kMostShortOperations = 512;  ///< of all bodies

/// Whether the address or the mask of a load depends on what the loop carries: loads of the next body would wait.
bool readsCarried(Operation* load, scf::ForOp loop) {
  SmallVector<Value> pending(load->getOperands());
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second) continue;
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      if (arg.getOwner() == loop.getBody() && arg != loop.getInductionVar()) return true;
      continue;
    }
    Operation* op = value.getDefiningOp();
    if (op->getBlock() == loop.getBody()) llvm::append_range(pending, op->getOperands());
  }
  return false;
}

class UnrollShortPass : public impl::UnrollShortBase<UnrollShortPass> {
  void runOnOperation() override {
    threads_ = warpsOf(getOperation(), kUsualWarps) * 32;
    SmallVector<scf::ForOp> loops;  // inner ones first
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (pays(loop)) (void)loopUnrollFull(loop);
  }

  /// Registers of a thread for what an operation loads; narrow elements of gathers have one each.
  int64_t registersOf(Operation* load) const {
    auto type = dyn_cast<RankedTensorType>(load->getResult(0).getType());
    if (!type) return 1;
    const int64_t elements = std::max<int64_t>(1, type.getNumElements() / threads_);
    const int64_t bits = type.getElementTypeBitWidth();
    return isa<GatherOp>(load) && bits < 32 ? elements : std::max<int64_t>(1, elements * bits / 32);
  }

  bool pays(scf::ForOp loop) const {
    const auto trips = loop.getStaticTripCount();
    if (!trips || trips->getActiveBits() > 31 || trips->getSExtValue() < 2 || trips->getSExtValue() > kMostShortTrips)
      return false;
    if (llvm::any_of(loop->getAttrs(), [](NamedAttribute a) { return a.getName().strref().starts_with("tile."); }))
      return false;
    const int64_t times = trips->getSExtValue();
    int64_t registers = 0, operations = 0;
    for (Operation& op : loop.getBody()->without_terminator()) {
      ++operations;
      if (op.getNumRegions() != 0 || hasProduct(&op)) return false;
      if (isa<GatherOp, LoadOp>(op)) {
        if (readsCarried(&op, loop)) return false;
        registers += registersOf(&op);
      } else if (!isMemoryEffectFree(&op)) {
        return false;
      }
    }
    return registers > 0 && registers * times <= kMostLoadedRegisters && operations * times <= kMostShortOperations;
  }

  int64_t threads_ = 128;
};

}  // namespace
}  // namespace tile::ir
