// async_waits.cpp - puts tile.mma_wait where the results of asynchronous products (wgmma engines) are needed.
// Before: such products read like any other. After: their values pass through a tile.mma_wait before anybody reads
// them.
//
// A walk over each block keeps the queue of unfinished groups. What an op needs finished gets a wait in front of it
// that leaves the groups issued later running. What an op needs:
//   - its operands, but for the accumulator of another product that is the value's last use;
//   - products whose shared memory it may overwrite (async_products.h);
//   - everything, when it touches the accumulator of a product further down;
//   - the releases a ring_acquire would wait for in vain.
// Two kinds of ops go later instead of waiting: ring_release, behind the wait that covers the stage's readers, and pure
// ops that write the registers an unfinished product has as operand A (the next iteration's, too): ptxas serialises all
// products when it sees such a write (C7513).
//
// What is stored into buffers that take turns is stored under the products of the iteration before: their wait stands in
// front of this one's product, and so does the barrier behind it.
//
// At the edges of regions everything is finished, with one exception: the last products of a loop run on into the next
// iteration when all that happens to their results there is to be accumulated on. That iteration issues its own
// products, then waits for the old ones, then releases their stages; behind the loop one more wait and release follow,
// and all of that stands under "the loop runs" (guard_loop.h); what the loop's products accumulate on at first is written
// in front of it (start_accumulators.h).
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/overlap/async_plan.h"
#include "compiler/gpu/overlap/guard_loop.h"
#include "compiler/gpu/overlap/start_accumulators.h"
#include "compiler/gpu/overlap/start_together.h"
#include "compiler/gpu/rings/ring_groups.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

class WaitInserter {
 public:
  WaitInserter(func::FuncOp func, bool registersInFlight)
      : func_(func), reads_(func), registersInFlight_(registersInFlight) {}
  void run() {
    visit(func_.getBody().front());
    for (Operation* release : replaced_) release->erase();
  }
  /// Loops that leave products running, inner ones first.
  SmallVector<scf::ForOp> carryingLoops() const {
    SmallVector<scf::ForOp> loops;
    for (auto& [loop, carry] : carries_) loops.push_back(cast<scf::ForOp>(loop));
    return loops;
  }

 private:
  void visit(Block& block) {
    for (Operation& op : block)
      for (Region& region : op.getRegions())
        for (Block& inner : region)
          if (llvm::any_of(inner, [](Operation& o) { return hasAsyncProduct(&o); })) visit(inner);
    startTogether(block);
    sinkToReaders(block);
    auto loop = dyn_cast<scf::ForOp>(block.getParentOp());
    Carry entry, left;
    const bool carries = loop && !waitsForFewStages(block);
    // What an iteration leaves is in front of the next.
    if (carries) (void)planBlock(block, reads_, carries_, {}, &entry, registersInFlight_);
    SmallVector<Item> items = planBlock(block, reads_, carries_, entry, carries ? &left : nullptr, registersInFlight_);
    if (!sameProducts(entry, left)) {  // no steady state: iterations finish what they start
      left = {};
      items = planBlock(block, reads_, carries_, {}, nullptr);
    }
    if (!left.groups.empty()) carries_[loop] = left;
    for (Held held : left.releases) replaced_.push_back(held.release);
    apply(block, items);
  }

  /// A ring of few stages is all that the iteration waits for, and products all it does with tiles. Products that run on
  /// would keep a stage until the next is filled, so that of two no copies were ever under way at once: that costs more
  /// than products that pause between iterations (H200, f16 4096, tiles of 128 x 128: 304 to 452 TFLOP/s with 2 stages,
  /// 564 to 620 with 3; with 4 nothing, and smaller tiles lose).
  static bool waitsForFewStages(Block& block) {
    constexpr unsigned kFew = 3;
    if (!onlyMultiplies(block)) return false;
    auto acquires = block.getOps<RingAcquireOp>();
    return llvm::hasSingleElement(acquires) && (*acquires.begin()).getRing().getType().getStages() <= kFew;
  }

  static bool sameProducts(const Carry& a, const Carry& b) {
    return a.releases.size() == b.releases.size() && a.groups.size() == b.groups.size() &&
           llvm::all_of(llvm::zip(a.groups, b.groups),
                        [](auto pair) { return std::get<0>(pair).product == std::get<1>(pair).product; });
  }

  void apply(Block& block, ArrayRef<Item> items) {
    OpBuilder builder(func_.getContext());
    Operation* end = endOf(block);
    const Block::iterator here = end ? Block::iterator(end) : block.end();
    llvm::SmallPtrSet<Operation*, 32> done;
    builder.setInsertionPoint(&block, here);
    for (const Item& item : items) {
      switch (item.kind) {
        case Item::op:
          item.statement->moveBefore(&block, here);
          done.insert(item.statement);
          break;
        case Item::wait:
          finish(block, builder, item, done);
          break;
        case Item::release:
          if (Held held = item.held; held.guard == Guard::always)
            held.release->moveBefore(&block, here);
          else
            releaseAgain(builder, held);
          break;
      }
    }
  }

  void finish(Block& block, OpBuilder& builder, const Item& item, const llvm::SmallPtrSetImpl<Operation*>& done) {
    auto isLater = [&](OpOperand& use) {
      Operation* here = block.findAncestorOpInBlock(*use.getOwner());
      return here && !done.contains(here);
    };
    SmallVector<Value> values;
    for (Value value : item.finished)
      if (llvm::any_of(value.getUses(), [&](OpOperand& use) {
            MmaOp product = asyncProduct(use.getOwner());
            return isLater(use) && !(product && &use == &product.getAccMutable() && value.hasOneUse());
          }))
        values.push_back(value);
    Location loc = item.finished.back().getLoc();
    auto wait = MmaWaitOp::create(builder, loc, ValueRange(values).getTypes(), item.pending, values);
    for (auto [value, readable] : llvm::zip(values, wait.getResults()))
      value.replaceUsesWithIf(readable, [&](OpOperand& use) { return use.getOwner() != wait && isLater(use); });
  }

  /// One more release than the program has, in another place: of the iteration before, or of the last one.
  void releaseAgain(OpBuilder& builder, Held held) {
    scf::ForOp loop = held.loop;
    Location loc = held.release->getLoc();
    Value enable;
    if (held.guard == Guard::notFirst) {
      enable =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, loop.getInductionVar(), loop.getLowerBound());
    } else {
      auto less = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
      enable = builder.createOrFold<arith::CmpIOp>(loc, less, loop.getLowerBound(), loop.getUpperBound());
    }
    RingReleaseOp::create(builder, loc, held.release.getRing(), enable);
  }

  func::FuncOp func_;
  AsyncReads reads_;
  const bool registersInFlight_;
  Carries carries_;
  SmallVector<Operation*> replaced_;  ///< releases that guarded ones stand for
};

class AsyncWaitsPass : public PassWrapper<AsyncWaitsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AsyncWaitsPass)
  explicit AsyncWaitsPass(OptionsOf options) : options_(std::move(options)) {}
  StringRef getArgument() const override { return "tile-async-waits"; }
  StringRef getDescription() const override { return "wait for asynchronous products where their results are needed"; }
  void getDependentDialects(DialectRegistry& registry) const override {
    registry.insert<TileDialect, arith::ArithDialect>();
  }
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || !hasAsyncProduct(func)) return markAllAnalysesPreserved();
    WaitInserter inserter(func, !options_ || options_().registerOperandsInFlight.value_or(true));
    inserter.run();
    if (failed(checkAsyncWaits(func))) return signalPassFailure();
    for (scf::ForOp loop : inserter.carryingLoops()) {
      startAccumulators(loop);
      guardLoop(loop);
    }
  }

 private:
  OptionsOf options_;
};

}  // namespace

std::unique_ptr<Pass> createAsyncWaitsPass(OptionsOf options) {
  return std::make_unique<AsyncWaitsPass>(std::move(options));
}

}  // namespace tile::ir
