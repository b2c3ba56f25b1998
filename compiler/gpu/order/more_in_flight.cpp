// more_in_flight.cpp - loops whose loads are too few to keep memory busy do several iterations at a time.
// Before: layouts; a loop without products loads, computes, loads again. A program that has a multiprocessor for itself
//         waits for all of memory's latency in every iteration. Where many share it others load meanwhile, which is
//         enough unless each thread loads little.
// After:  the body of such a loop is that of several iterations, with their loads at its top; loops of half as many,
//         and so on, do what remains. As many iterations as bring the bytes wanted on their way, and as registers and
//         instruction caches have room for.
//
// Sums stay in their order. Loads stay where somebody might write what they read: the program (through the same
// argument), or others (atomics that order memory, volatile reads). A walk along pointers that are loaded, each from
// where the one before leads, has one load on its way whatever is done.
#include <map>

#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/products.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/products/unroll_loops.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Bytes on their way that keep a multiprocessor's share of the second-level cache busy: its latency times 64 a cycle.
constexpr int64_t kWantedBytes = 64 << 10;

/// What one program may take of a multiprocessor.
struct Room {
  int64_t wantedBytes;  ///< on their way
  int64_t leastTimes;   ///< that they are what an iteration has: less is not worth the code
  /// Iterations in one body at most, and what a thread does in such a body, in words that it computes: more would not
  /// fit the instruction caches, and an iteration of so much work waits for little besides.
  int64_t mostBodies, mostWork;
  int64_t registers;  ///< of a thread
};
Room roomOfOne(const Target& target, int64_t threads) {
  return {kWantedBytes, 2, 8, 768, std::min<int64_t>(target.maxRegsPerThread, target.registersPerSm / threads)};
}
/// Of one among as many as fit where each thread has few registers: its share of the bytes; and registers with which
/// half as many fit.
Room roomOfMany(const Target& target, int64_t threads) {
  constexpr int64_t kFew = 32;
  return {kWantedBytes * threads * kFew / target.registersPerSm, 4, 4, 256, 2 * kFew};
}

bool isTile(Type type) { return isa<RankedTensorType>(type); }
bool isRead(Operation* op) { return isa<LoadOp, GatherOp>(op); }

/// What an address may be made of: neither meetings of threads nor memory.
bool isArithmetic(Operation* op) { return isMemoryEffectFree(op) && op->getNumRegions() == 0 && !scratchOf(op); }

/// Moves loads of a block, and what their addresses are made of, to the first of them: those that need no others, then
/// those at places that these say.
class LoadsFirst {
 public:
  LoadsFirst(Block& block, const llvm::DenseSet<Operation*>& movable) : block_(block) {
    for (Operation& op : block) {
      if (!first_ && movable.contains(&op)) first_ = &op;
      if (first_ && (isRead(&op) ? movable.contains(&op) : isArithmetic(&op))) findLevel(&op);
    }
  }

  void run() {
    for (const auto& loads : loads_)
      for (Operation* load : loads) place(load);
    Operation* last = nullptr;
    for (Operation* op : order_) {
      if (last) op->moveAfter(last);
      last = op;
    }
  }

 private:
  /// Where the op stands behind the first load, what makes its operand; null for others.
  Operation* behindFirst(Value operand) const {
    Operation* from = operand.getDefiningOp();
    return from && from->getBlock() == &block_ && !from->isBeforeInBlock(first_) ? from : nullptr;
  }

  void findLevel(Operation* op) {
    size_t level = 0;
    for (Value operand : op->getOperands())
      if (Operation* from = behindFirst(operand)) {
        auto it = levels_.find(from);
        if (it == levels_.end()) return;
        level = std::max(level, it->second + isRead(from));
      }
    levels_[op] = level;
    if (!isRead(op)) return;
    if (loads_.size() <= level) loads_.resize(level + 1);
    loads_[level].push_back(op);
  }

  void place(Operation* op) {
    if (order_.contains(op)) return;
    for (Value operand : op->getOperands())
      if (Operation* from = behindFirst(operand)) place(from);
    order_.insert(op);
  }

  Block& block_;
  Operation* first_ = nullptr;
  llvm::DenseMap<Operation*, size_t> levels_;  ///< loads on the way to an op; absent: it stays
  std::vector<std::vector<Operation*>> loads_;  ///< by level
  llvm::SetVector<Operation*> order_;
};

class MoreInFlight {
 public:
  explicit MoreInFlight(scf::ForOp loop) : loop_(loop) {}

  /// How many iterations a body should have; 1: it stays.
  int64_t bodies(const Room& room) {
    // Whoever asks for a number gets that.
    if (loop_->hasAttr(kUnrollAttr) || loop_->hasAttr(kAsAskedAttr) || !isPlain()) return 1;
    int64_t registers = 0, work = 1;
    std::map<int, int64_t> atATime;  // bytes, by the loads that are waited for first
    for (Operation& op : *loop_.getBody()) {
      work += workOf(&op);
      const auto behind = canMove(&op) ? loadsBehind(&op) : std::nullopt;
      if (!behind) continue;
      const Type type = op.getResult(0).getType();
      atATime[*behind] += isTile(type) ? tileBytes(type) : elementBytes(type);
      registers += registersOf(type);
    }
    int64_t bytes = 0;
    for (auto [loads, each] : atATime) bytes = std::max(bytes, each);
    if (bytes == 0 || room.wantedBytes / bytes < room.leastTimes) return 1;
    int64_t bodies = std::min(
        {room.mostBodies, room.wantedBytes / bytes, room.mostWork / work, freeRegisters(room.registers) / registers});
    if (const auto trips = loop_.getStaticTripCount()) bodies = std::min<int64_t>(bodies, trips->getSExtValue());
    return bodies < 2 ? 1 : int64_t{1} << llvm::Log2_64(static_cast<uint64_t>(bodies));
  }

  /// Loads that nothing in the loop writes to.
  bool canMove(Operation* op) const {
    if (!isRead(op)) return false;
    const MemoryRoot root = rootOf(addressOf(op));
    return llvm::all_of(writes_, [&](Operation* write) { return root.isApartFrom(rootOf(addressOf(write))); });
  }

 private:
  /// Nothing but arithmetic, loads, and stores without order: no loops, branches, products or copies.
  bool isPlain() {
    writes_.clear();
    for (Operation& op : *loop_.getBody()) {
      if (op.hasTrait<OpTrait::IsTerminator>()) continue;
      if (isRead(&op) ? isVolatile(&op) : writesGlobal(&op) && (isAcquire(&op) || isRelease(&op))) return false;
      if (writesGlobal(&op)) writes_.push_back(&op);
      const bool isKnown = isRead(&op) || writesGlobal(&op) || isa<SmemCountOp>(op) || isMemoryEffectFree(&op);
      if (!isKnown || hasProduct(&op) || (op.getNumRegions() && !isa<ReduceOp, ScanOp>(op))) return false;
    }
    return true;
  }

  /// A load that reads another place in every iteration, and iterations ahead can tell which: how many loads, one behind
  /// the other, its place is made of. Nullopt: another load.
  std::optional<int> loadsBehind(Operation* load) {
    Way way;
    for (Value operand : load->getOperands())
      if (!isKnownAhead(operand, 0, way)) return std::nullopt;
    return way.varies ? std::optional(way.loads) : std::nullopt;
  }

  /// What was met between a load and what its address is made of.
  struct Way {
    bool varies = false;
    int loads = 0;
    llvm::DenseMap<Value, int> carried;           ///< with the loads in front of them
    llvm::DenseSet<std::pair<Value, int>> known;  ///< each is looked at once: sums of sums have 2^depth ways
  };
  /// `loads`: how many lie between what was asked for and the value.
  bool isKnownAhead(Value value, int loads, Way& way) {
    if (!value || loop_.isDefinedOutsideOfLoop(value)) return true;
    way.loads = std::max(way.loads, loads);
    if (value == loop_.getInductionVar()) return way.varies = true;
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      if (arg.getOwner() != loop_.getBody()) return false;
      way.varies = true;
      // Back where it began: a step that arithmetic makes can be made several times, one that memory says cannot.
      if (auto [it, isNew] = way.carried.try_emplace(value, loads); !isNew) return it->second == loads;
      return isKnownAhead(loop_.getYieldedValues()[arg.getArgNumber() - 1], loads, way);
    }
    if (!way.known.insert({value, loads}).second) return true;
    Operation* op = value.getDefiningOp();
    if (op->getBlock() != loop_.getBody() || !(isRead(op) ? canMove(op) : isArithmetic(op))) return false;
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return isKnownAhead(operand, loads + isRead(op), way); });
  }

  /// Words that a thread computes, roughly its instructions.
  static int64_t workOf(Operation* op) {
    constexpr int64_t kOfExchange = 24;  // lanes, or all threads, hand each other what they have
    constexpr int64_t kOfDouble = 64;    // divisions and functions, which are made of multiplications
    if (op->hasTrait<OpTrait::ConstantLike>() || op->hasTrait<OpTrait::IsTerminator>()) return 0;
    int64_t work = scratchOf(op) || op->getNumRegions() ? kOfExchange : 0;
    for (Value value : op->getNumRegions() ? ValueRange(op->getOperands()) : ValueRange(op->getResults()))
      work += registersOf(value.getType());
    const bool isMade = isa<arith::DivFOp>(op) ||
                        (isa<math::MathDialect>(op->getDialect()) && !isa<math::FmaOp, math::AbsFOp>(op));
    return isMade && getElementTypeOrSelf(op->getResult(0)).isF64() ? kOfDouble * work : work;
  }

  /// Of so many registers of a thread those besides what it carries, reads from outside of the loop, and computes with.
  int64_t freeRegisters(int64_t all) {
    constexpr int64_t kOther = 24;
    int64_t held = kOther, largest = 0;
    for (Type type : loop_.getResultTypes()) held += registersOf(type);
    llvm::DenseSet<Value> seen;
    for (Operation& op : *loop_.getBody()) {
      for (Value operand : op.getOperands())
        if (isTile(operand.getType()) && loop_.isDefinedOutsideOfLoop(operand) && seen.insert(operand).second &&
            !isCheap(operand))
          held += registersOf(operand.getType());
      for (Value result : op.getResults())
        if (isTile(result.getType())) largest = std::max(largest, registersOf(result.getType()));
    }
    held += 2 * largest;
    return std::max<int64_t>(0, all - held);
  }

  /// Constants, and places, which are made again where they are needed.
  static bool isCheap(Value tile) {
    Operation* op = tile.getDefiningOp();
    return op && (op->hasTrait<OpTrait::ConstantLike>() || isa<IotaOp, SplatOp>(op));
  }

  scf::ForOp loop_;
  SmallVector<Operation*> writes_;
};

class MoreInFlightPass : public PassWrapper<MoreInFlightPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MoreInFlightPass)
  MoreInFlightPass(TargetOf target, OptionsOf options) : target_(std::move(target)), options_(std::move(options)) {}
  StringRef getArgument() const override { return "tile-more-in-flight"; }
  StringRef getDescription() const override { return "several iterations' loads together"; }
  void getDependentDialects(DialectRegistry& registry) const override {
    registry.insert<TileDialect, arith::ArithDialect, scf::SCFDialect>();
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    const int warps = warpsOf(func);
    // Roles have their copies run ahead; who wants several programs on a multiprocessor gets their registers.
    if (func.isExternal() || !warps || func->hasAttr("tile.programs") ||
        func.walk([](SpecializeOp) { return WalkResult::interrupt(); }).wasInterrupted())
      return;
    SmallVector<scf::ForOp> loops;
    func.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) runOn(func, loop, warps);
  }

 private:
  void runOn(func::FuncOp func, scf::ForOp loop, int warps) const {
    MoreInFlight more(loop);
    const int64_t threads = warps * target_().lanes;
    // Inner loops begin and end often: what remains is done by loops of fewer bodies each time.
    const bool isInner = loop->getParentOfType<LoopLikeOpInterface>() != nullptr;
    const int64_t ofMany = isInner ? 1 : more.bodies(roomOfMany(target_(), threads));
    const int64_t bodies =
        chooseByGrid<int64_t>(func, options_(), ofMany, more.bodies(roomOfOne(target_(), threads)));
    if (bodies == 1) return;
    // The copies of a load are found by a mark: the loop may be another one afterwards, or none.
    constexpr StringLiteral kMark = "tile.first";
    for (Operation& op : *loop.getBody())
      if (more.canMove(&op)) op.setAttr(kMark, UnitAttr::get(func.getContext()));
    Block* around = loop->getBlock();
    // What remains by half as many, and so on: one iteration at a time it could take longer than all others.
    for (int64_t together = bodies; loop && together > 1; together /= 2) {
      scf::ForOp rest;
      unrollBy(loop, together, /*anyStep=*/true, &rest);
      loop = rest;
    }
    llvm::SetVector<Block*> blocks;
    llvm::DenseSet<Operation*> movable;
    around->walk([&](Operation* op) {
      if (op->removeAttr(kMark)) movable.insert(op), blocks.insert(op->getBlock());
    });
    for (Block* block : blocks) LoadsFirst(*block, movable).run();
  }

  TargetOf target_;
  OptionsOf options_;
};

}  // namespace

std::unique_ptr<Pass> createMoreInFlightPass(TargetOf target, OptionsOf options) {
  return std::make_unique<MoreInFlightPass>(std::move(target), std::move(options));
}

}  // namespace tile::ir
