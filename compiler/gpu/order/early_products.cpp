// early_products.cpp - moves small products of single warps next to each other.
// Before: layouts; products stand where the kernel wrote them, often with an exchange through shared memory in between
//         that neither of them needs. Each is a chain of dependent instructions, and the assembler moves none of them
//         across a barrier.
// After:  a small product that does not depend on what stands between it and the previous product stands right behind
//         that one: their instructions alternate, which hides latency, and fewer barriers may be needed.
#include "compiler/gpu/forms/async_products.h"
#include "compiler/gpu/forms/blocks.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/gpu_passes.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of a thread that results of one block may hold longer than they were written to.
constexpr int64_t kMostHeldByEarly = 16;
/// Registers of a thread for all results of a block: larger products are enough work by themselves.
constexpr int64_t kMostOfBlock = 64;

bool isOfWarps(Operation* op) { return isa_and_nonnull<MmaOp>(op) && !asyncProduct(op); }

/// The product may stand in front of the op: it reads nothing that the op writes, and no phase of copies ends there.
bool canPass(MmaOp product, Operation* op) {
  if (isa<BarrierOp, AsyncWaitOp, RingAcquireOp, RingReleaseOp, AsyncCopyOp, AsyncGatherOp, SmemZeroOp>(op)) return false;
  if (op->getNumRegions() && !isa<ReduceOp, ScanOp>(op)) return false;
  auto store = dyn_cast<SmemStoreOp>(op);
  if (!store) return !asyncProduct(op);
  return llvm::all_of(product->getOperands(), [&](Value operand) {
    return !isa<SmemType>(operand.getType()) || allocationOf(operand) != allocationOf(store.getTarget());
  });
}

void makeEarly(Block& block) {
  SmallVector<MmaOp> products;
  int64_t all = 0, held = 0;
  for (auto product : block.getOps<MmaOp>()) {
    if (isOfWarps(product)) products.push_back(product);
    all += registersOf(product.getResult().getType());
  }
  if (all > kMostOfBlock) return;
  for (MmaOp product : products) {
    SmallVector<Operation*> moved{product};  // what it is computed from comes along, last first
    llvm::DenseSet<Operation*> set{product.getOperation()};
    Operation* place = nullptr;  // the first product that it can follow, with an exchange in between
    size_t count = 0;
    bool isApart = false;
    for (Operation* op = product->getPrevNode(); op; op = op->getPrevNode()) {
      if (llvm::any_of(op->getUsers(), [&](Operation* user) { return set.contains(user); })) {
        if (!isMemoryEffectFree(op) || op->getNumRegions() || isa<ConvertOp, MmaOp>(op)) break;
        moved.push_back(op);
        set.insert(op);
      } else if (!canPass(product, op)) {
        break;
      }
      isApart |= isa<SmemStoreOp>(op);
      if (isApart && isOfWarps(op)) place = op, count = moved.size();
    }
    if (!place) continue;
    moved.truncate(count);
    const int64_t own = registersOf(product.getResult().getType());
    if (held + own > kMostHeldByEarly) continue;
    held += own;
    for (Operation* op : moved) op->moveAfter(place);
  }
}

class EarlyProductsPass : public PassWrapper<EarlyProductsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EarlyProductsPass)
  StringRef getArgument() const override { return "tile-early-products"; }
  StringRef getDescription() const override { return "move small products of single warps next to each other"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    for (Block* block : blocksOf(getOperation())) makeEarly(*block);
  }
};

}  // namespace

std::unique_ptr<Pass> createEarlyProductsPass() { return std::make_unique<EarlyProductsPass>(); }

}  // namespace tile::ir
