// meet_together.cpp - lets exchanges between warps share one barrier.
// Before: layouts; conversions, takes, cats and reductions across warps each put elements into shared memory, wait at a
//         barrier for all warps, and get the elements they want.
// After:  those of a block that do not depend on each other form a group (tile.meets on the first one, tile.met on the
//         others): the first one puts elements for all of them before it waits, the others only get theirs, at their
//         own place in the block.
//
// What the others put must be computed in front of the first one. It is moved there if it neither reads memory nor
// depends on what a member of the group gets. The work is the same, but its results are held in registers at the same
// time: only little moves. Likewise the members' shared memory is needed at the same time: place_buffers splits a group
// again if that would cost programs per multiprocessor. Two exchanges in a loop stay apart: with one barrier each they
// alternate, which is as many barriers as one group needs, in front of it and behind.
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/blocks.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/gpu_passes.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Of one group: registers of the tiles that are put, shared memory. Of one op: what moves with it.
constexpr int64_t kMostPut = 64, kMostBytes = 12288;
constexpr size_t kMostMoved = 16;
constexpr int kMostBetween = 256;  ///< ops from the first to where another gets: so long its bytes are held

/// Puts, waits for all warps, gets.
bool isExchange(Operation* op) {
  const bool isKind = isa<ConvertOp, TransOp, ReshapeOp, ExtractOp, CatOp, TakeOp>(op) ||
                      (isa<ReduceOp>(op) && !votesAtBarrier(cast<ReduceOp>(op)));
  const auto scratch = isKind && !op->hasAttr(kReadsCopyAttr) ? scratchOf(op) : std::nullopt;
  return scratch && !scratch->warpLocal();
}

/// Threads put sums of what they hold, not the tiles.
int64_t registersPut(ReduceOp reduce) {
  const auto source = layoutOf(reduce.getSources()[0].getType());
  const int64_t left = source->sliced(static_cast<int>(reduce.getAxis())).numRegs();
  int64_t registers = 0;
  for (Value of : reduce.getSources()) registers += llvm::divideCeil(registersOf(of.getType()) * left, source->numRegs());
  return registers;
}

int64_t registersPut(Operation* op) {
  if (auto reduce = dyn_cast<ReduceOp>(op)) return registersPut(reduce);
  int64_t registers = 0;
  for (Value operand : isa<TakeOp>(op) ? op->getOperands().take_front(1) : op->getOperands())
    registers += registersOf(operand.getType());
  return registers;
}

/// Asynchronous products may end there: nothing that reads what they make may pass. Behind loops it is too late to get.
bool endsGroups(Operation* op) {
  if (isa<ReduceOp, ScanOp>(op)) return false;
  return op->walk([](Operation* inner) {
             return isa<MmaOp, MmaWaitOp, LoopLikeOpInterface>(inner) || isa<WorkLoopOp, SpecializeOp>(inner)
                        ? WalkResult::interrupt()
                        : WalkResult::advance();
           }).wasInterrupted();
}

/// What the op puts is made of; where a take looks is needed when it gets.
bool isPut(OpOperand& operand) { return !isa<TakeOp>(operand.getOwner()) || operand.getOperandNumber() == 0; }

/// Shared memory of ops, asked for once each: layouts are compared for it.
class Scratches {
 public:
  int64_t bytesOf(Operation* op) {
    auto [it, isNew] = bytes_.try_emplace(op, 0);
    if (isNew)
      if (const auto scratch = scratchOf(op)) it->second = scratch->bytes;
    return it->second;
  }

 private:
  llvm::DenseMap<Operation*, int64_t> bytes_;
};

class Group {
 public:
  /// `at` counts the ops of the block up to the first one.
  Group(Operation* first, int at, int64_t bytes)
      : first_(first), at_(at), registers_(registersPut(first)), bytes_(bytes) {}

  /// Whether `op` meets with the group: what it puts is then computed in front of the first one. `isEarlier`: ops that
  /// only get what groups before this one have put.
  bool take(Operation* op, Scratches& scratches, llvm::function_ref<bool(Operation*)> isEarlier) {
    const int64_t bytes = scratches.bytesOf(op);
    if (bytes_ + bytes > kMostBytes) return false;
    auto canMove = [&](Operation* def) {
      // Reductions in front of one barrier are all under way at once: registers for each.
      return def->getNumRegions() == 0 && isMemoryEffectFree(def) && (!scratches.bytesOf(def) || isEarlier(def));
    };
    llvm::SetVector<Operation*> moved;
    SmallVector<Operation*> open{op};
    bool waits = false;
    while (!open.empty() && !waits) {
      Operation* next = open.pop_back_val();
      next->walk([&](Operation* inner) {
        for (OpOperand& operand : inner->getOpOperands()) {
          Operation* def = operand.get().getDefiningOp();
          if ((next == op && !isPut(operand)) || !def || def->getBlock() != first_->getBlock()) continue;
          if (def != first_ && def->isBeforeInBlock(first_)) continue;
          waits |= def == first_ || !canMove(def);
          if (moved.insert(def)) open.push_back(def);
        }
      });
      waits |= moved.size() > kMostMoved;
    }
    // What was there before is held no longer for it.
    const int64_t registers = moved.empty() ? 0 : registersPut(op);
    if (waits || (registers && registers_ + registers > kMostPut)) return false;
    auto order = moved.takeVector();
    llvm::sort(order, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
    for (Operation* def : order) def->moveBefore(first_);
    others_.push_back(op);
    registers_ += registers, bytes_ += bytes;
    return true;
  }

  bool isNear(int at) const { return at - at_ <= kMostBetween; }
  void mark(int32_t number) const {
    if (others_.empty()) return;
    const Attribute group = Builder(first_->getContext()).getI32IntegerAttr(number);
    first_->setAttr(kMeetsAttr, group);
    for (Operation* op : others_) op->setAttr(kMetAttr, group);
  }

 private:
  Operation* first_;
  SmallVector<Operation*> others_;
  int at_;
  int64_t registers_, bytes_;
};

/// Those of a block between two ops that end groups.
class Groups {
 public:
  void add(Operation* op, int at) {
    // An op far behind the first one stays apart, and so do all behind it.
    while (near_ < groups_.size() && !groups_[near_].isNear(at)) ++near_;
    for (size_t g = near_; g < groups_.size(); ++g) {
      auto isEarlier = [&](Operation* def) {
        const auto it = groupOf_.find(def);
        return it != groupOf_.end() && it->second < g;
      };
      if (!groups_[g].take(op, scratches_, isEarlier)) continue;
      groupOf_[op] = g;
      return;
    }
    groups_.emplace_back(op, at, scratches_.bytesOf(op));
  }
  void close(int32_t& number) {
    for (const Group& group : groups_) group.mark(number++);
    groups_.clear(), groupOf_.clear(), near_ = 0;
  }

 private:
  std::vector<Group> groups_;
  llvm::DenseMap<Operation*, size_t> groupOf_;  ///< of all but first ones
  size_t near_ = 0;
  Scratches scratches_;
};

class MeetTogetherPass : public PassWrapper<MeetTogetherPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MeetTogetherPass)
  StringRef getArgument() const override { return "tile-meet-together"; }
  StringRef getDescription() const override { return "let conversions, takes and reductions share barriers"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    int32_t groups = 0;
    for (Block* block : blocksOf(getOperation())) {
      const bool isRepeated = isa<LoopLikeOpInterface, WorkLoopOp>(block->getParentOp());
      if (isRepeated && llvm::count_if(*block, [](Operation& op) { return isExchange(&op); }) <= 2) continue;
      Groups open;
      llvm::DenseSet<std::pair<Value, int>> put;
      int at = 0;
      for (Operation& op : llvm::make_early_inc_range(*block)) {
        ++at;
        if (endsGroups(&op)) open.close(groups);
        if (!isExchange(&op)) continue;
        // Takes from one tile share what the first of them puts, and so do boxes.
        if ((isa<TakeOp>(op) || op.hasAttr(kPutsWholeAttr)) && !put.insert({op.getOperand(0), int(isa<TakeOp>(op))}).second)
          continue;
        open.add(&op, at);
      }
      open.close(groups);
    }
  }
};

}  // namespace

std::unique_ptr<Pass> createMeetTogetherPass() { return std::make_unique<MeetTogetherPass>(); }

}  // namespace tile::ir
