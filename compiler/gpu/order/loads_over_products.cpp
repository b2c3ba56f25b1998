// loads_over_products.cpp - starts loads of what is added to results before the loop of products, not behind it.
// Before: layouts, roles; behind a loop of products stands a load of a box at a place known before it: the sums of
//         earlier batches, what a layer adds to its input.
// After:  the load stands in front of the loop, and its latency runs while products do. Where registers have no room
//         for that, in front of a product behind the loop.
//
// Before: behind such a load, its tile is exchanged to the layout of results, in front of a product that does not ask.
// After:  the product is on its way first.
//
// Only where one program has the multiprocessor: of several, the others compute while this one waits. And only where
// the loop's own tiles, those beside it and the load's result (of words, or such as go on to shared memory in the words
// they came in) fit the consumers' registers.
#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/forms/async_products.h"
#include "compiler/gpu/forms/blocks.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/gpu_passes.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of a thread for addresses, descriptors and fragments while products run.
constexpr int64_t kOfProducts = 64;

int64_t registersOfTile(Type type) { return isa<RankedTensorType>(type) ? registersOf(type) : 0; }

/// Tiles made by the statement or inside it, as if all were alive at once; none: there are no products.
std::optional<int64_t> registersInside(Operation* statement) {
  int64_t registers = 0;
  bool multiplies = false;
  statement->walk([&](Operation* op) {
    const bool isAround = op == statement && op->getNumRegions();
    if (isAround || isa<scf::ForOp, scf::IfOp, MmaWaitOp>(op)) return;  // their results are made inside
    auto product = dyn_cast<MmaOp>(op);
    multiplies |= product != nullptr;
    // A product has its accumulator's registers.
    for (Value result : op->getResults()) registers += registersOfTile(result.getType());
  });
  return multiplies ? std::optional(registers) : std::nullopt;
}

/// A load may start before the statement instead of behind it.
bool canPass(Operation* load, Operation* statement) {
  const MemoryRoot root = rootOf(addressOf(load));
  return !statement
              ->walk([&](Operation* op) {
                if (isa<LoadOp, GatherOp>(op) && isVolatile(op)) return WalkResult::interrupt();
                if (isAcquire(op)) return WalkResult::interrupt();
                if (writesGlobal(op) && !root.isApartFrom(rootOf(addressOf(op)))) return WalkResult::interrupt();
                return WalkResult::advance();
              })
              .wasInterrupted();
}

class LoadsOverProductsPass : public PassWrapper<LoadsOverProductsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LoadsOverProductsPass)
  StringRef getArgument() const override { return "tile-loads-over-products"; }
  StringRef getDescription() const override { return "start loads in front of loops of products"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    getOperation().walk([](SpecializeOp roles) {
      if (roles.getPrograms() > 1 || !roles.getConsumerRegs()) return;
      roles.getConsumer().walk([&](Block* block) { runOn(*block, roles.getConsumerRegs()); });
    });
  }

 private:
  static void runOn(Block& block, int64_t limit) {
    SmallVector<LoadOp> loads;
    for (Operation& op : block)
      if (auto load = dyn_cast<LoadOp>(op); load && !isVolatile(load) && isOfWords(load)) loads.push_back(load);
    for (LoadOp load : loads) {
      llvm::SetVector<Operation*> moved;  // the load, and what its address is made of, last first
      Operation* place = placeFor(load, limit, moved);
      if (!place) continue;
      for (Operation* op : llvm::reverse(moved)) op->moveBefore(place);
    }
    for (LoadOp load : loads) exchangeBehindProduct(load);
  }

  /// The exchange of what was loaded, and what is made of it, wait for the load. A product that needs none of it goes
  /// first; in loops the order is the kernel's.
  static void exchangeBehindProduct(LoadOp load) {
    auto exchange = load->hasOneUse() ? dyn_cast<ConvertOp>(*load->user_begin()) : ConvertOp();
    if (!exchange || load->getBlock() != exchange->getBlock() || load->getParentOfType<LoopLikeOpInterface>()) return;
    llvm::SetVector<Operation*> made;
    made.insert(exchange);
    for (Operation* op = exchange->getNextNode(); op; op = op->getNextNode()) {
      const bool isMade =
          llvm::any_of(op->getOperands(), [&](Value operand) { return made.contains(operand.getDefiningOp()); });
      if (asyncProduct(op)) {
        if (isMade) return;
        for (Operation* part : llvm::reverse(made)) part->moveAfter(op);
        return;
      }
      if (op->getNumRegions() || (!isMemoryEffectFree(op) && !isa<RingAcquireOp>(op))) return;
      if (isMade) made.insert(op);
    }
  }

  /// Narrower elements would be taken out of their words in front of the loop, where they are waited for, unless all
  /// that happens to them is that they go to shared memory on their way to another layout.
  static bool isOfWords(LoadOp load) {
    auto type = dyn_cast<RankedTensorType>(load.getType());
    if (!type || !type.getElementType().isIntOrFloat()) return false;
    auto goesToShared = [](Operation* user) { return isa<ConvertOp>(user) && scratchOf(user); };
    return type.getElementTypeBitWidth() >= 32 || llvm::all_of(load->getUsers(), goesToShared);
  }

  /// The first statement with products that the load can stand in front of, as far as the loop in front of it, and that
  /// leaves it the registers; null: none.
  static Operation* placeFor(LoadOp load, int64_t limit, llvm::SetVector<Operation*>& moved) {
    Operation* place = nullptr;
    size_t count = 0;
    moved.insert(load);
    for (Operation* op = load->getPrevNode(); op; op = op->getPrevNode()) {
      const bool isPart = llvm::any_of(op->getUsers(), [&](Operation* user) { return moved.contains(user); });
      if (isPart) {
        const bool isScalar = llvm::none_of(op->getResultTypes(), [](Type type) { return isa<ShapedType>(type); });
        if (!isScalar || !isPure(op) || op->getNumRegions()) break;
        moved.insert(op);
        continue;
      }
      if (!canPass(load, op)) break;
      const bool isWaiting = place && place == op->getNextNode() && isa<RingAcquireOp, SmemSlotOp>(op);
      // In loops, registers of straight-line products are short, and copies of their own run ahead.
      if (!op->getNumRegions() && op->getParentOfType<LoopLikeOpInterface>() && !isWaiting) continue;
      const bool multiplies = registersInside(op).has_value();
      const bool fits = multiplies && heldOver(op, load) + registersOfTile(load.getType()) + kOfProducts <= limit;
      if (isWaiting || fits) place = op, count = moved.size();
      if (op->getNumRegions() && multiplies) break;
    }
    while (moved.size() > count) moved.pop_back();
    return place;
  }

  /// Registers of tiles that a thread holds at most while the statement runs: its own, and those of before that
  /// somebody reads in it or behind it.
  static int64_t heldOver(Operation* statement, LoadOp load) {
    int64_t held = *registersInside(statement);
    for (Operation* op = statement->getPrevNode(); op; op = op->getPrevNode())
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation* user) {
              Operation* here = statement->getBlock()->findAncestorOpInBlock(*user);
              return here && !here->isBeforeInBlock(statement);
            }))
          held += registersOfTile(result.getType());
    for (BlockArgument argument : load->getBlock()->getArguments()) held += registersOfTile(argument.getType());
    return held;
  }
};

}  // namespace

std::unique_ptr<Pass> createLoadsOverProductsPass() { return std::make_unique<LoadsOverProductsPass>(); }

}  // namespace tile::ir
