// early_loads.cpp - moves loads in front of barriers, and of f64 divisions and roots.
// Before: layouts; loads and gathers into registers stand where the kernel wrote them, often behind a reduction whose
//         result weighs what is loaded.
// After:  a load whose address does not depend on the exchange at a barrier stands in front of the first such barrier
//         of its block that it can pass, so that its latency runs while warps wait. The assembler moves no load across
//         a barrier. Gathers of rows at addresses that were loaded also move in front of exchanges within a warp
//         (shuffles), which wait for other loads themselves: one latency instead of two. Divisions and roots of f64
//         count as barriers: they branch (numbers near the ends of the range take a slow path), and the assembler moves
//         no load across a branch either.
//
// What all programs read at the same address (factors of columns, say) stays: it is in a cache, and registers that are
// occupied longer could cost programs per multiprocessor.
#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/blocks.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/gpu_passes.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of a thread (32 bits each) that loads of tiles of one block may hold longer than they were written to: a
/// tile of 32 and a short vector.
constexpr int64_t kMostEarlyRegisters = 36;

/// The address comes from the program's or the iteration's place, or from memory.
bool isOfPlace(Operation* load) {
  SmallVector<Value> pending(load->getOperands());
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second) continue;
    Operation* op = value.getDefiningOp();
    if (!op && !isa<func::FuncOp>(value.getParentBlock()->getParentOp())) return true;
    if (!op) continue;
    if (isa<ProgramIdOp>(op) || !isMemoryEffectFree(op) || op->getNumRegions()) return true;
    pending.append(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Whether the op becomes code that the assembler moves no load across: a barrier, since results of lanes go through
/// shared memory, or a branch.
bool isMeeting(Operation* op) {
  if (isa<arith::DivFOp, math::SqrtOp>(op) && getElementTypeOrSelf(op->getResult(0).getType()).isF64()) return true;
  const auto scratch = scratchOf(op);
  return scratch && !scratch->warpLocal();
}

/// Lanes of a warp meet inside.
bool isMeetingOfLanes(Operation* op) {
  if (scratchOf(op)) return true;
  auto reduce = dyn_cast<ReduceOp>(op);
  const auto layout = reduce ? layoutOf(reduce.getSources()[0].getType()) : std::nullopt;
  return layout && llvm::any_of(layout->lanes(), [&](const layout::Digit& digit) {
           return digit.dim == static_cast<int>(reduce.getAxis());
         });
}

/// Tiles gathered at addresses that came through loads: of this iteration, or made an iteration early.
bool isOfLoadedRows(Operation* load) {
  auto gather = dyn_cast<GatherOp>(load);
  auto type = dyn_cast<RankedTensorType>(load->getResult(0).getType());
  if (!gather || !type || type.getRank() < 2) return false;
  SmallVector<Value> pending{gather.getOffsets()};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation* op = value ? value.getDefiningOp() : nullptr;
    if (!value || !seen.insert(value).second || !isa<RankedTensorType>(value.getType())) continue;
    if (!op || isa<LoadOp, GatherOp>(op)) return true;
    if (isMemoryEffectFree(op) && !op->getNumRegions()) pending.append(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// A load may stand in front of the op instead of behind it. Products and what waits stay where they are: registers
/// are short there, and copies of their own run ahead.
bool canPass(Operation* load, Operation* op) {
  if (isa<MmaOp>(op) || (op->getNumRegions() && !isa<ReduceOp, ScanOp>(op))) return false;
  if (isMemoryEffectFree(op)) return true;
  if (isa<LoadOp, GatherOp>(op)) return !isVolatile(op);
  if (!writesGlobal(op) || isAcquire(op)) return false;
  return rootOf(addressOf(load)).isApartFrom(rootOf(addressOf(op)));
}

class EarlyLoadsPass : public PassWrapper<EarlyLoadsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EarlyLoadsPass)
  StringRef getArgument() const override { return "tile-early-loads"; }
  StringRef getDescription() const override { return "move loads in front of barriers"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    for (Block* block : blocksOf(getOperation())) runOn(*block);
  }

 private:
  static void runOn(Block& block) {
    SmallVector<Operation*> loads;
    bool meets = false, lanesMeet = false;
    for (Operation& op : block) {
      if (isa<LoadOp, GatherOp>(op) && !isVolatile(&op) && isOfPlace(&op) &&
          (meets || (lanesMeet && isOfLoadedRows(&op))))
        loads.push_back(&op);
      meets |= isMeeting(&op);
      lanesMeet |= isMeetingOfLanes(&op);
    }
    int64_t held = 0;
    for (Operation* load : loads) {
      SmallVector<Operation*> moved;  // what the address is computed by comes along, last first
      Operation* place = placeFor(load, isOfLoadedRows(load) ? isMeetingOfLanes : isMeeting, moved);
      const Value loaded = load->getResult(0);
      const int64_t registers = isTile(loaded) ? registersOf(loaded.getType()) : 0;  // scalars say where tiles lie
      if (!place || held + registers > kMostEarlyRegisters) continue;
      held += registers;
      for (Operation* op : llvm::reverse(moved)) op->moveBefore(place);
    }
  }

  /// The first meeting of the block that the load can stand in front of, null: none.
  static Operation* placeFor(Operation* load, bool (*meet)(Operation*), SmallVector<Operation*>& moved) {
    Operation* place = nullptr;
    size_t count = 0;
    llvm::DenseSet<Operation*> set{load};
    moved.push_back(load);
    for (Operation* op = load->getPrevNode(); op; op = op->getPrevNode()) {
      if (llvm::any_of(op->getUsers(), [&](Operation* user) { return set.contains(user); })) {
        if (!isMemoryEffectFree(op) || op->getNumRegions() || isMeeting(op)) break;
        moved.push_back(op);
        set.insert(op);
      } else if (!canPass(load, op)) {
        break;
      } else if (meet(op)) {
        place = op;
        count = moved.size();
      }
    }
    moved.truncate(count);
    return place;
  }
};

}  // namespace

std::unique_ptr<Pass> createEarlyLoadsPass() { return std::make_unique<EarlyLoadsPass>(); }

}  // namespace tile::ir
