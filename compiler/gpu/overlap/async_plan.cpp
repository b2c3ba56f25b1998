// async_plan.cpp - a walk over a block that keeps a queue of unfinished products, and decides where each is waited for.
#include "compiler/gpu/overlap/async_plan.h"

#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/products.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tile::ir {
using namespace mlir;

Operation* endOf(Block& block) {
  return !block.empty() && block.back().hasTrait<OpTrait::IsTerminator>() ? &block.back() : nullptr;
}

namespace {

constexpr int kMostPending = 7;      ///< the most groups that tile.mma_wait can leave running
constexpr int kOtherRegisters = 64;  ///< registers of a thread for addresses and counters

/// Whether the result's registers are, or may be, those of the operand.
bool renames(Operation* op) { return isa_and_nonnull<ConvertOp, TransOp, ReshapeOp>(op); }

Value throughRenames(Value value) {
  while (renames(value.getDefiningOp())) value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Whether the conversion exchanges a few values that were loaded from global memory in this iteration or the previous
/// one. It waits for the load: behind a product, the product runs during that wait.
bool handsOnLoaded(ConvertOp convert) {
  constexpr int64_t kFew = 8;  // registers
  if (registersOf(convert.getSource().getType()) > kFew || registersOf(convert.getType()) > kFew) return false;
  Value from = throughRenames(convert.getSource());
  const bool isCarried = isa<BlockArgument>(from) && from.getParentBlock() == convert->getBlock();
  return isCarried || (isa_and_nonnull<LoadOp, GatherOp>(from.getDefiningOp()) &&
                       from.getParentBlock() == convert->getBlock());
}

/// Whether the result should be made right in front of its first reader: tiles that are cheap to make, but occupy
/// registers while products run (masks, indices, rows of statistics).
bool belongsToReader(Operation* op) {
  if (auto convert = dyn_cast<ConvertOp>(op)) return handsOnLoaded(convert);
  if (op->getNumRegions() != 0 || op->getNumResults() != 1 || op->hasTrait<OpTrait::ConstantLike>()) return false;
  auto tile = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!tile) return false;
  if (auto load = dyn_cast<SmemLoadOp>(op)) return load.getSource().getType().getShape()[0] == 1;
  if (isa<BroadcastOp, ReshapeOp>(op) && op->getOperand(0).getDefiningOp<SmemLoadOp>())
    return belongsToReader(op->getOperand(0).getDefiningOp());
  return tile.getElementType().isInteger() && isPure(op) && !isa<ConvertOp, TransOp>(op);
}

/// Ops of a loop's body whose results are made of what the iteration before loaded, and of nothing else: exchanged
/// between threads, and computed with. Behind a product, that work is done while the product runs.
llvm::DenseSet<Operation*> madeOfEarlyLoads(Block& block) {
  llvm::DenseSet<Operation*> made;
  auto loop = dyn_cast<scf::ForOp>(block.getParentOp());
  if (!loop) return made;
  auto isLoadedBefore = [&](Value value) {
    auto arg = dyn_cast<BlockArgument>(throughRenames(value));
    if (!arg || arg.getOwner() != &block || arg == loop.getInductionVar()) return false;
    Value next = loop.getTiedLoopYieldedValue(arg)->get();
    return isa_and_nonnull<LoadOp, GatherOp>(next.getDefiningOp()) && next.getParentBlock() == &block;
  };
  auto isMade = [&](Operation& op) {
    if (auto convert = dyn_cast<ConvertOp>(op)) return isLoadedBefore(convert.getSource());
    if (!isElementwise(&op) || op.getNumResults() != 1 || !isPure(&op) || op.hasTrait<OpTrait::ConstantLike>() ||
        !isa<RankedTensorType>(op.getResult(0).getType()))
      return false;
    auto isOf = [&](Value operand) { return made.contains(operand.getDefiningOp()); };
    return llvm::any_of(op.getOperands(), isOf) && llvm::all_of(op.getOperands(), [&](Value operand) {
             Operation* from = operand.getDefiningOp();
             if (isOf(operand) || isLoadedBefore(operand)) return true;
             return from && (from->getBlock() != &block || isa<SplatOp>(from));
           });
  };
  for (Operation& op : block)
    if (isMade(op)) made.insert(&op);
  return made;
}

/// The first statement of the op's block that reads its result.
Operation* firstReader(Operation* op) {
  Operation* first = nullptr;
  for (Operation* user : op->getUsers()) {
    Operation* here = op->getBlock()->findAncestorOpInBlock(*user);
    if (here && (!first || here->isBeforeInBlock(first))) first = here;
  }
  return first;
}

/// Whether the result's registers are, or may be, those of some of the operands.
bool movesRegisters(Operation* op) { return renames(op) || isa<CatOp, BroadcastOp, ExtractOp, SplatOp>(op); }

/// Ops that write the registers of the value: the last computations of its elements, and the ops behind them that only
/// rename registers.
llvm::SmallSetVector<Operation*, 8> writersOf(Value value) {
  llvm::SmallSetVector<Operation*, 8> writers;
  SmallVector<Value> pending{value};
  while (!pending.empty()) {
    Operation* op = pending.pop_back_val().getDefiningOp();
    if (op && writers.insert(op) && movesRegisters(op)) pending.append(op->operand_begin(), op->operand_end());
  }
  return writers;
}

/// The loop argument that is the product's register operand A, or null.
BlockArgument carriedA(MmaOp product, Block& block) {
  auto arg = dyn_cast<BlockArgument>(throughRenames(product.getA()));
  return arg && arg.getOwner() == &block && isa<scf::ForOp>(block.getParentOp()) ? arg : BlockArgument();
}

Value yieldedFor(BlockArgument arg) {
  auto loop = cast<scf::ForOp>(arg.getOwner()->getParentOp());
  return loop.getYieldedValues()[arg.getArgNumber() - loop.getNumInductionVars()];
}

class BlockPlan {
 public:
  BlockPlan(Block& block, const AsyncReads& reads, const Carries& carries, const Carry& entry)
      : block_(block), reads_(reads), carries_(carries) {
    for (Group group : entry.groups) open_.push_back(group);
    first_ = 0;
    for (Held held : entry.releases) {
      held_.push_back({held, last()});
      ++unreleased_[held.release.getRing()];
    }
    for (auto store : block.getOps<SmemStoreOp>())
      storesFromMemory_ |= isAlternating(store.getTarget(), block) && comesFromMemory(store, block);
    for (Operation& op : block)
      if (MmaOp product = asyncProduct(&op)) {
        lastProduct_ = &op;
        addAccumulators(product);
      }
  }

  /// If `carry` is given, the loop may leave products running at the end of an iteration; they are put there.
  void run(Carry* carry, bool registersInFlight) {
    for (Operation& op : block_)
      if (&op != endOf(block_)) statement(&op);
    if (carry) chooseCarried(*carry, registersInFlight);
    need(last() - (carry ? static_cast<int>(carry->groups.size()) : 0));
    if (carry)
      for (auto& [held, group] : held_) carry->releases.push_back({held.release, Guard::notFirst, loop()});
  }

  SmallVector<Item> items;

 private:
  // Each product is one group; groups are numbered in the order of issue, and open_ holds first_ .. last().
  int last() const { return first_ + static_cast<int>(open_.size()) - 1; }
  scf::ForOp loop() { return cast<scf::ForOp>(block_.getParentOp()); }

  /// Puts a wait for the group here unless it is finished already.
  void need(int group) {
    if (group < first_) return;
    Item wait;
    wait.kind = Item::wait;
    wait.pending = std::min(last() - group, kMostPending);
    while (static_cast<int>(open_.size()) > wait.pending) {
      wait.finished.push_back(open_.front().value);
      open_.erase(open_.begin());
      ++first_;
    }
    items.push_back(std::move(wait));
    // Releases of one ring stay in order: the groups that they wait for never decrease.
    llvm::erase_if(held_, [&](auto& entry) {
      if (entry.second >= first_) return false;
      release(entry.first);
      return true;
    });
    llvm::erase_if(deferred_, [&](auto& entry) {
      if (entry.second >= first_) return false;
      put(entry.first);
      return true;
    });
  }

  void put(Operation* op) {
    Item item;
    item.statement = op;
    items.push_back(std::move(item));
  }

  void release(Held held) {
    Item item;
    item.kind = Item::release;
    item.held = held;
    items.push_back(std::move(item));
    --unreleased_[held.release.getRing()];
  }

  /// The group that the reader of `op` needs, for ops that stand right in front of their reader: it is waited for
  /// first.
  int neededByReader(Operation* op) {
    int needed = first_ - 1;
    if (!belongsToReader(op)) return needed;
    Operation* reader = firstReader(op);
    if (!reader) return needed;
    if (belongsToReader(reader)) return neededByReader(reader);
    for (auto [i, group] : llvm::enumerate(open_))
      if (!asyncProduct(reader) && uses(reader, group.value)) needed = first_ + static_cast<int>(i);
    return needed;
  }

  /// Whether the product reads one of two stages that alternate between iterations. The barrier in front of it must
  /// then mean that all threads have finished the previous iteration's product: the next iteration stores where that
  /// one read.
  bool readsAlternating(MmaOp product) {
    return llvm::any_of(ValueRange{product.getA(), product.getB()}, [&](Value tile) {
      return isa<SmemType>(tile.getType()) && isAlternating(tile, block_);
    });
  }

  /// Whether a good part of what is stored was loaded from global memory by the same threads, in this iteration or the
  /// previous one. Such loops wait for memory rather than for products: the later they store, the more time loads have
  /// (conv3d with 32 channels at a time: 1.18 ms instead of 1.30).
  static bool comesFromMemory(SmemStoreOp store, Block& block) {
    constexpr int64_t kMuch = 3;
    auto bitsOf = [](Value value) {
      auto tile = cast<RankedTensorType>(value.getType());
      return tile.getNumElements() * static_cast<int64_t>(tile.getElementTypeBitWidth());
    };
    int64_t read = 0;
    SmallVector<Value> pending{store.getValue()};
    llvm::DenseSet<Value> seen;
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      if (!isa<RankedTensorType>(value.getType()) || !seen.insert(value).second) continue;
      if (auto arg = dyn_cast<BlockArgument>(value)) {
        if (arg.getOwner() == &block && isa<scf::ForOp>(block.getParentOp())) pending.push_back(yieldedFor(arg));
      } else if (Operation* op = value.getDefiningOp(); op->getBlock() == &block) {
        if (isa<LoadOp, GatherOp>(op)) read += bitsOf(value);
        pending.append(op->operand_begin(), op->operand_end());
      }
    }
    return read * kMuch >= bitsOf(store.getValue());
  }

  bool uses(Operation* op, Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation* user) { return block_.findAncestorOpInBlock(*user) == op; });
  }

  void statement(Operation* op) {
    if (auto free = dyn_cast<RingReleaseOp>(op)) return visitRelease(free);
    // What is computed from a reduction on goes into the registers of a carried operand, and must wait for the product
    // that reads them. ptxas waits here in any case, and schedules what follows better if the wait is explicit
    // (attention, 64 channels: up to 2.5 % on an H200).
    if (readsReduction(op)) need(lastWithCarriedA());
    if (auto acquire = dyn_cast<RingAcquireOp>(op)) visitAcquire(acquire);
    MmaOp product = asyncProduct(op);
    int needed = first_ - 1;
    if (!product && hasAsyncProduct(op)) needed = last();
    for (auto [i, group] : llvm::enumerate(open_)) {
      bool accumulates = product && product.getAcc() == group.value && group.value.hasOneUse();
      const bool takesTurns = product && group.isCarried && readsAlternating(product) && readsAlternating(group.product);
      if ((uses(op, group.value) && !accumulates) || takesTurns ||
          reads_.threatens(op, group.product, group.isCarried && !storesFromMemory_))
        needed = std::max(needed, first_ + static_cast<int>(i));
    }
    if (!product && touchesLaterAccumulator(op)) needed = last();
    needed = std::max(needed, neededByReader(op));
    // Ops that write registers which a running product reads are deferred behind the wait for that product, and so are
    // ops that use results of deferred ones.
    int after = first_ - 1, inputs = first_ - 1;
    for (auto [i, group] : llvm::enumerate(open_))
      if (writesA(op, group)) after = first_ + static_cast<int>(i);
    for (auto& [earlier, group] : deferred_)
      if (llvm::any_of(earlier->getResults(), [&](Value v) { return uses(op, v); })) inputs = std::max(inputs, group);
    if (after >= first_ && isPure(op) && op->getNumRegions() == 0) {
      need(needed);
      if (int behind = std::max(after, inputs); behind >= first_) {
        deferred_.push_back({op, behind});
        return;
      }
    }
    need(std::max({needed, after, inputs}));
    put(op);

    if (product) open_.push_back({product, product.getResult(), false});
    if (op == lastProduct_) finishCarried();
    if (auto it = carries_.find(op); it != carries_.end()) leaveLoop(cast<scf::ForOp>(op), it->second);
  }

  /// Records values that occupy the accumulator registers of this product earlier in the iteration.
  void addAccumulators(MmaOp product) {
    Value acc = throughRenames(product.getAcc());
    if (matchPattern(acc, m_Constant())) return;
    accumulators_.push_back({product, acc});
    if (!isa<scf::ForOp>(block_.getParentOp())) return;
    for (auto [arg, yielded] : llvm::zip(loop().getRegionIterArgs(), loop().getYieldedValues()))
      if (throughRenames(yielded) == product.getResult() && arg != acc) accumulators_.push_back({product, arg});
  }

  /// Whether the op reads or writes registers on which a later product accumulates. While products overlap, ptxas
  /// treats all their accumulators as in use from the first of them on, and serialises the products otherwise (C7517).
  bool touchesLaterAccumulator(Operation* op) {
    return llvm::any_of(accumulators_, [&](auto& entry) {
      auto& [product, value] = entry;
      return op->isBeforeInBlock(product) && (value.getDefiningOp() == op || uses(op, value));
    });
  }

  /// Whether the op reads the result of a reduction in this block, perhaps reshaped or converted.
  bool readsReduction(Operation* op) const {
    if (isa<ReshapeOp, ConvertOp>(op)) return false;
    return llvm::any_of(op->getOperands(), [&](Value value) {
      Operation* made = value.getDefiningOp();
      while (isa_and_nonnull<ReshapeOp, ConvertOp>(made)) made = made->getOperand(0).getDefiningOp();
      return isa_and_nonnull<ReduceOp>(made) && made->getBlock() == &block_;
    });
  }

  /// The last unfinished product whose first operand is a carried tile: this iteration writes its next value into the
  /// same registers.
  int lastWithCarriedA() {
    for (int i = static_cast<int>(open_.size()) - 1; i >= 0; --i)
      if (carriedA(open_[static_cast<size_t>(i)].product, block_)) return first_ + i;
    return first_ - 1;
  }

  bool writesA(Operation* op, Group& group) {
    Value a = group.product.getA();
    if (!isa<RankedTensorType>(a.getType())) return false;
    if (group.isCarried && writersOf(a).contains(op)) return true;
    BlockArgument arg = carriedA(group.product, block_);
    return arg && writersOf(yieldedFor(arg)).contains(op);
  }

  /// Behind the last product of this iteration: products of the previous one are waited for, which costs nothing here.
  void finishCarried() {
    int carried = first_ - 1;
    for (auto [i, group] : llvm::enumerate(open_))
      if (group.isCarried) carried = first_ + static_cast<int>(i);
    need(carried);
  }

  void leaveLoop(scf::ForOp loop, const Carry& carry) {
    for (Group group : carry.groups) {
      // If a later product of the same iteration accumulates on the result, it is no result of the loop by itself.
      Value name = group.value;
      for (auto [result, yielded] : llvm::zip(loop.getResults(), loop.getYieldedValues()))
        if (yielded == group.product.getResult()) name = result;
      open_.push_back({group.product, name, false});
    }
    for (Held held : carry.releases) {
      held_.push_back({{held.release, Guard::ran, loop}, last()});
      ++unreleased_[held.release.getRing()];
    }
    need(last());
  }

  // ---- rings

  void visitAcquire(RingAcquireOp acquire) {
    Value ring = acquire.getRing();
    if (unreleased_[ring] >= cast<RingType>(ring.getType()).getStages())
      for (auto& [held, group] : held_)
        if (held.release.getRing() == ring) {
          need(group);
          break;
        }
    ++unreleased_[ring];
    acquired_[ring].push_back(acquire.getSlot());
  }

  void visitRelease(RingReleaseOp free) {
    Value ring = free.getRing();
    int behind = first_ - 1;
    auto& slots = acquired_[ring];
    if (slots.empty()) {
      behind = last();  // acquired elsewhere: any product may read it
    } else {
      Value slot = slots.front();
      slots.erase(slots.begin());
      for (auto [i, group] : llvm::enumerate(open_))
        if (!group.isCarried && (slotOf(group.product.getA()) == slot || slotOf(group.product.getB()) == slot))
          behind = first_ + static_cast<int>(i);
    }
    for (auto& [held, group] : held_)
      if (held.release.getRing() == ring) behind = std::max(behind, group);
    if (behind < first_)
      release({free, Guard::always, {}});
    else
      held_.push_back({{free, Guard::always, {}}, behind});
  }

  // ---- loops

  /// Whether the product's only use is as the accumulator of a product of the next iteration (directly, or through a
  /// later product of this one).
  bool comesRound(MmaOp product) {
    Value result = product.getResult();
    if (!result.hasOneUse()) return false;
    OpOperand& use = *result.use_begin();
    if (MmaOp next = asyncProduct(use.getOwner()))
      return next->getBlock() == &block_ && &use == &next.getAccMutable() && isOpen(next);
    if (use.getOwner() != endOf(block_)) return false;
    BlockArgument arg = loop().getRegionIterArgs()[use.getOperandNumber()];
    if (!arg.hasOneUse()) return false;
    OpOperand& next = *arg.use_begin();
    MmaOp reader = asyncProduct(next.getOwner());
    return reader && reader->getBlock() == &block_ && &next == &reader.getAccMutable();
  }

  bool isOpen(MmaOp product) const {
    return llvm::any_of(open_, [&](Group group) { return group.product == product && !group.isCarried; });
  }

  /// Registers of a thread for a tile.
  static int registersOf(Value tile) {
    auto type = cast<RankedTensorType>(tile.getType());
    auto layout = layoutOf(type);
    return layout ? layout->numRegs() * static_cast<int>(type.getElementTypeBitWidth()) / 32 : 0;
  }

  /// Registers that are in use while products of the previous iteration still run: carried tiles, and the results of
  /// products that are issued before the first wait.
  int heldBesideCarried() {
    int held = 0;
    for (BlockArgument arg : loop().getRegionIterArgs())
      if (isa<RankedTensorType>(arg.getType())) held += registersOf(arg);
    for (const Item& item : items) {
      if (item.kind == Item::wait) break;
      MmaOp product = item.kind == Item::op ? asyncProduct(item.statement) : MmaOp();
      if (product && matchPattern(product.getAcc(), m_Constant())) held += registersOf(product.getResult());
    }
    return held;
  }

  void chooseCarried(Carry& carry, bool registersInFlight) {
    // Operands in registers of products that run on stay in use in the next iteration.
    auto roles = block_.getParentOp()->getParentOfType<SpecializeOp>();
    const int limit =
        roles && roles.getConsumerRegs() ? static_cast<int>(roles.getConsumerRegs()) - kOtherRegisters : 0;
    int held = limit ? heldBesideCarried() : 0;
    size_t begin = open_.size();
    while (begin > 0) {
      Group group = open_[begin - 1];
      const int number = first_ + static_cast<int>(begin) - 1;
      BlockArgument a = carriedA(group.product, block_);
      bool keeps = !group.isCarried && comesRound(group.product) && (!a || yieldedFor(a) == a) &&
                   open_.size() - begin < kMostPending;
      // A release under a condition would need that condition in the next iteration.
      for (auto& [held, behind] : held_)
        if (behind >= number && (held.release.getEnable() || held.guard != Guard::always)) keeps = false;
      for (auto& [op, behind] : deferred_)
        if (behind >= number) keeps = false;
      const bool isInRegisters = isa<RankedTensorType>(group.product.getA().getType());
      if (isInRegisters) held += registersOf(group.product.getA());
      if (isInRegisters || fragmentOperand(group.product)) keeps &= registersInFlight;
      if (!keeps || (limit && held > limit)) break;
      --begin;
    }
    for (size_t i = begin; i < open_.size(); ++i) {
      Group group = open_[i];
      group.isCarried = true;
      // In the next iteration the result is the carried argument, until a product accumulates on it.
      if (OpOperand& use = *group.product.getResult().use_begin(); use.getOwner() == endOf(block_))
        group.value = loop().getRegionIterArgs()[use.getOperandNumber()];
      carry.groups.push_back(group);
    }
  }

  Block& block_;
  const AsyncReads& reads_;
  const Carries& carries_;
  SmallVector<Group> open_;
  int first_ = 0;
  bool storesFromMemory_ = false;
  Operation* lastProduct_ = nullptr;
  SmallVector<std::pair<Operation*, Value>> accumulators_;  ///< products, and values that precede theirs
  SmallVector<std::pair<Held, int>> held_;                  ///< releases and the group they wait for
  SmallVector<std::pair<Operation*, int>> deferred_;        ///< writers of operands and the group they wait for
  llvm::DenseMap<Value, SmallVector<Value>> acquired_;  ///< slots of a ring that this block acquired and not released
  llvm::DenseMap<Value, int> unreleased_;
};

}  // namespace

static bool isProductBetween(Operation* op, Operation* end) {
  for (op = op->getNextNode(); op != end; op = op->getNextNode())
    if (asyncProduct(op)) return true;
  return false;
}

/// Whether the op loads a single number. ptxas likes to keep such numbers in uniform registers, and copies them there
/// right behind the load, so that the warp waits where it loads them.
static bool isNumberRead(Operation* op) {
  return isa<LoadOp, GatherOp>(op) && isa<FloatType>(op->getResult(0).getType()) && !isVolatile(op);
}

/// Whether there is a product between the load and `reader`, and the load may move behind it.
static bool mayWait(Operation* op, Operation* reader) {
  bool product = false;
  for (Operation* at = op->getNextNode(); at != reader; at = at->getNextNode()) {
    if (writesGlobal(at) || (at->getNumRegions() && !isa<ReduceOp, ScanOp>(at))) return false;
    product |= static_cast<bool>(asyncProduct(at));
  }
  return product;
}

void sinkToReaders(Block& block) {
  const llvm::DenseSet<Operation*> early = madeOfEarlyLoads(block);
  for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block))) {
    const bool isNumber = isNumberRead(&op), isEarly = early.contains(&op);
    // Reads of stages keep their place: the stage is released behind it.
    if (!isNumber && !isEarly && (!isPure(&op) || !belongsToReader(&op))) continue;
    Operation* reader = firstReader(&op);
    if (!reader || reader == op.getNextNode()) continue;
    const bool needsProduct = isEarly || isa<ConvertOp>(op);
    if (isNumber ? !mayWait(&op, reader) : needsProduct && !isProductBetween(&op, reader)) continue;
    // Right behind the product.
    while (isNumber && !asyncProduct(reader->getPrevNode())) reader = reader->getPrevNode();
    op.moveBefore(reader);
  }
}

SmallVector<Item> planBlock(Block& block, const AsyncReads& reads, const Carries& carries, const Carry& entry,
                            Carry* carry, bool registersInFlight) {
  BlockPlan plan(block, reads, carries, entry);
  plan.run(carry, registersInFlight);
  return std::move(plan.items);
}

}  // namespace tile::ir
