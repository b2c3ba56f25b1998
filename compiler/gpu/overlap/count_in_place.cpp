// count_in_place.cpp - histograms that loops add up go on counting in one table.
// Before: a tile is carried by a loop (or several, one in the other or one behind the other) that only adds histograms
//         to it. Each clears a table in shared memory, counts, and every thread reads its part to add it.
// After:  the table is filled with what the tile begins with in front of the loop, counted in by its iterations
//         (smem_count), and read behind it. Threads meet at neither end of an iteration, and carry nothing.
//
// Sums of integers are the same in any order, and weights are added in any. Nobody may read the tile in between: each
// value of it has one use. What a loop that does not run, or a branch not taken, leaves is what the tile was.
//
// Floats and integers of 64 bits are added in shared memory by compare and swap, which lanes of a warp that have the
// same number repeat one after the other: neighbours tend to. Their tables have each number several times, side by side
// (in banks of their own), while programs leave each other the shared memory for it. They begin with zeros.
#include "compiler/dialect/tiles.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/rings/memory_plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// An op that hands the tile on: a sum, or a loop or branch with such ops inside.
struct Link {
  Operation* op;
  unsigned index;                       ///< the operand of a sum, the result of others
  SmallVector<HistogramOp> added = {};  ///< to a sum
};

/// The way of a tile through loops that add to it.
class Counts {
 public:
  /// Begins with what the loop carries as its number `index`.
  Counts(LoopLikeOpInterface loop, unsigned index) : first_(loop), init_(loop.getInits()[index]) {
    Value carried = through(loop, index);
    if (carried && hasCounts()) last_ = follow(carried, loop->getBlock());
  }

  bool found() const { return last_ != nullptr; }
  /// With its numbers so many times.
  int64_t bytes(int64_t copies) const { return copies * tileBytes(init_.getType()); }
  /// How often to have each number, where there is room.
  int64_t wantedCopies(int64_t warps) const {
    constexpr int64_t kMost = 8;
    constexpr int64_t kBytesOfWarp = 4 << 10;  // a little more than each has in a full multiprocessor
    if (tileType(init_).getElementType().isInteger(32)) return 1;
    int64_t copies = kMost;
    while (copies > 1 && bytes(copies) > warps * kBytesOfWarp) copies /= 2;
    return copies;
  }
  void forEach(llvm::function_ref<void(HistogramOp)> take) const {
    for (const Link& link : links_)
      for (HistogramOp histogram : link.added) take(histogram);
  }

  /// Counts in a table. Loops and branches still hand on the tile, as it was, and are listed in `unused`.
  void rewrite(int64_t copies, SmallVector<Operation*>& unused) {
    OpBuilder b(first_);
    const Location loc = first_.getLoc();
    auto type = tileType(init_);
    auto row = RankedTensorType::get({1, copies * type.getDimSize(0)}, type.getElementType());
    auto smem = SmemType::get(b.getContext(), row.getShape(), row.getElementType(), /*minor=*/1, /*stages=*/1);
    Value table = SmemAllocOp::create(b, loc, smem, IntegerAttr());
    Value filling = copies == 1 ? b.createOrFold<ReshapeOp>(loc, row, init_)
                                : arith::ConstantOp::create(b, loc, b.getZeroAttr(row)).getResult();
    SmemStoreOp::create(b, loc, filling, table);
    BarrierOp::create(b, loc);  // here, or the first iteration would need one, and with it all of them

    b.setInsertionPointAfter(first_->getBlock()->findAncestorOpInBlock(*last_.getDefiningOp()));
    Value counted = SmemLoadOp::create(b, loc, row, table);
    if (copies == 1) counted = ReshapeOp::create(b, loc, type, counted);
    if (copies > 1) counted = sumOf(b, loc, init_, sumOfCopies(b, loc, counted, type));
    last_.replaceAllUsesWith(counted);
    for (const Link& link : links_) cut(link, table, copies, unused);
  }

 private:
  static Value sumOf(OpBuilder& b, Location loc, Value x, Value y) {
    if (isa<FloatType>(getElementTypeOrSelf(x.getType()))) return arith::AddFOp::create(b, loc, x, y);
    return arith::AddIOp::create(b, loc, x, y);
  }
  /// Of what lies side by side in a row.
  static Value sumOfCopies(OpBuilder& b, Location loc, Value row, RankedTensorType type) {
    const int64_t numbers = type.getDimSize(0);
    auto each = RankedTensorType::get({numbers, tileType(row).getDimSize(1) / numbers}, type.getElementType());
    Value copies = ReshapeOp::create(b, loc, each, row);
    auto column = RankedTensorType::get({numbers, 1}, type.getElementType());
    auto sum = ReduceOp::create(b, loc, TypeRange{column}, ValueRange{copies}, /*axis=*/1);
    OpBuilder::InsertionGuard guard(b);
    const Type element = type.getElementType();
    Block* body = b.createBlock(&sum.getCombiner(), {}, {element, element}, {loc, loc});
    YieldOp::create(b, loc, sumOf(b, loc, body->getArgument(0), body->getArgument(1)));
    b.setInsertionPointAfter(sum);
    return ReshapeOp::create(b, loc, type, sum.getResult(0));
  }

  bool hasCounts() const {
    return llvm::any_of(links_, [](const Link& link) { return !link.added.empty(); });
  }

  /// The uses that lie in a block, or in blocks inside of it.
  static SmallVector<OpOperand*> usesIn(Value value, Block* block) {
    SmallVector<OpOperand*> uses;
    for (OpOperand& use : value.getUses())
      if (block->findAncestorOpInBlock(*use.getOwner())) uses.push_back(&use);
    return uses;
  }

  /// What the tile is behind the last op of the block that hands it on, and nothing else has seen before.
  Value follow(Value tile, Block* block) {
    while (Value next = pass(tile, block)) tile = next;
    return tile;
  }
  /// The number of the terminator's operand that the tile is at the end of the block, if it is nothing else.
  std::optional<unsigned> numberAtEnd(Value tile, Block* block) {
    const auto uses = usesIn(follow(tile, block), block);
    if (uses.size() != 1 || uses[0]->getOwner() != block->getTerminator()) return std::nullopt;
    return uses[0]->getOperandNumber();
  }

  /// The tile behind the only op of the block that uses it. Null: that op does something else with it.
  Value pass(Value tile, Block* block) {
    const auto uses = usesIn(tile, block);
    if (uses.empty()) return {};
    Operation* op = block->findAncestorOpInBlock(*uses[0]->getOwner());
    const size_t before = links_.size();
    Value next;
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      const bool isAlone =
          llvm::all_of(uses, [&](OpOperand* use) { return block->findAncestorOpInBlock(*use->getOwner()) == op; });
      if (isAlone && branch.elseBlock()) next = through(branch, tile);
    } else if (uses.size() == 1 && uses[0]->getOwner() == op) {
      if (isSum(op)) next = throughSum(op, uses[0]->getOperandNumber());
      if (isa<scf::ForOp, scf::WhileOp>(op)) {
        auto loop = cast<LoopLikeOpInterface>(op);
        next = through(loop, uses[0]->getOperandNumber() - loop.getInitsMutable()[0].getOperandNumber());
      }
    }
    if (!next) links_.resize(before, Link{nullptr, 0});
    return next;
  }

  static bool isSum(Operation* op) { return isa<arith::AddIOp, arith::AddFOp>(op); }
  Value throughSum(Operation* add, unsigned operand) {
    Link link{add, operand};
    if (!collect(add->getOperand(1 - operand), add, link.added)) return {};
    links_.push_back(std::move(link));
    return add->getResult(0);
  }
  /// The histograms whose sum the value is, if nobody else uses them and they are made where they are added: in front
  /// of a loop they are made once, but added in every iteration.
  static bool collect(Value value, Operation* user, SmallVector<HistogramOp>& histograms) {
    Operation* op = value.getDefiningOp();
    if (!op || !value.hasOneUse() || op->getBlock() != user->getBlock()) return false;
    if (auto histogram = dyn_cast<HistogramOp>(op)) {
      histograms.push_back(histogram);
      return true;
    }
    return isSum(op) && collect(op->getOperand(0), op, histograms) &&
           collect(op->getOperand(1), op, histograms);
  }

  Value through(scf::IfOp branch, Value tile) {
    const auto then = numberAtEnd(tile, branch.thenBlock());
    const auto otherwise = then ? numberAtEnd(tile, branch.elseBlock()) : std::nullopt;
    if (!otherwise || *then != *otherwise) return {};
    links_.push_back({branch, *then});
    return branch.getResult(*then);
  }

  Value through(LoopLikeOpInterface loop, unsigned index) {
    std::optional<unsigned> result, next;
    if (auto counted = dyn_cast<scf::ForOp>(*loop)) {
      result = next = numberAtEnd(counted.getRegionIterArg(index), counted.getBody());
    } else if (auto other = dyn_cast<scf::WhileOp>(*loop)) {
      const auto number = numberAtEnd(other.getBeforeArguments()[index], other.getBeforeBody());
      if (!number || *number == 0) return {};  // number 0 is the condition
      result = *number - 1;
      next = numberAtEnd(other.getAfterArguments()[*result], other.getAfterBody());
    }
    if (next != index) return {};
    links_.push_back({loop, *result});
    return loop->getResult(*result);
  }

  /// The op hands on what it was given.
  static void cut(const Link& link, Value table, int64_t copies, SmallVector<Operation*>& unused) {
    Value same;
    if (!isSum(link.op)) {
      unused.push_back(link.op);
      if (auto branch = dyn_cast<scf::IfOp>(link.op)) same = branch.thenYield().getOperand(link.index);
      if (auto loop = dyn_cast<scf::ForOp>(link.op)) same = loop.getInitArgs()[link.index];
      if (auto loop = dyn_cast<scf::WhileOp>(link.op)) {
        auto arg = cast<BlockArgument>(loop.getConditionOp().getArgs()[link.index]);
        same = loop.getInits()[arg.getArgNumber()];
      }
      return link.op->getResult(link.index).replaceAllUsesWith(same);
    }
    OpBuilder b(link.op);
    for (HistogramOp histogram : link.added)
      SmemCountOp::create(b, histogram.getLoc(), histogram.getSource(), histogram.getWeights(), table,
                          static_cast<uint32_t>(copies));
    Value sum = link.op->getOperand(1 - link.index);
    link.op->getResult(0).replaceAllUsesWith(link.op->getOperand(link.index));
    link.op->erase();
    eraseSum(sum);
  }
  /// Nobody uses the sum of histograms any more.
  static void eraseSum(Value sum) {
    Operation* op = sum.getDefiningOp();
    SmallVector<Value> parts;
    if (isSum(op)) parts.assign(op->operand_begin(), op->operand_end());
    op->erase();
    for (Value part : parts) eraseSum(part);
  }

  LoopLikeOpInterface first_;
  Value init_, last_;
  SmallVector<Link> links_;
};

class CountInPlacePass : public PassWrapper<CountInPlacePass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountInPlacePass)
  explicit CountInPlacePass(TargetOf target) : target_(std::move(target)) {}
  CountInPlacePass(const CountInPlacePass& other) = default;
  StringRef getArgument() const override { return "tile-count-in-place"; }
  StringRef getDescription() const override { return "count in one table what loops add up of histograms"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    SmallVector<LoopLikeOpInterface> loops;
    getOperation().walk<WalkOrder::PreOrder>([&](LoopLikeOpInterface loop) {  // a table for as long as possible
      if (isa<scf::ForOp, scf::WhileOp>(*loop)) loops.push_back(loop);
    });
    SmallVector<Operation*> unused;
    for (LoopLikeOpInterface loop : loops)
      for (unsigned i = 0, carried = loop.getInits().size(); i < carried; ++i) {
        auto type = dyn_cast<RankedTensorType>(loop.getInits()[i].getType());
        if (!type || type.getRank() != 1) continue;
        Counts counts(loop, i);
        if (!counts.found()) continue;
        const int64_t copies = counts.wantedCopies(warpsOf(getOperation()));
        if (fits(counts, copies)) counts.rewrite(copies, unused);
        else if (fits(counts, 1)) counts.rewrite(1, unused);
      }
    if (!unused.empty() && failed(dropUnused(unused))) signalPassFailure();
  }

 private:
  /// Tables live as long as their loops: beside each other, and beside the scratch of other ops.
  bool fits(const Counts& counts, int64_t copies) {
    llvm::DenseSet<Operation*> kept;
    counts.forEach([&](HistogramOp histogram) { kept.insert(histogram); });
    // Behind the loop copies may have to come together through as much.
    int64_t bytes = counts.bytes(copies) * (copies > 1 ? 2 : 1) +
                    estimateScratch(getOperation(), [&](Operation* op) { return kept.contains(op); });
    getOperation().walk([&](Operation* op) {
      if (auto alloc = dyn_cast<SmemAllocOp>(op)) bytes += alloc.getResult().getType().bytes();
      if (auto ring = dyn_cast<RingAllocOp>(op)) bytes += ringBytes(ring);
    });
    return bytes <= target_().maxSharedBytes;
  }

  /// Loops and branches without the values that come round as they are.
  static LogicalResult dropUnused(ArrayRef<Operation*> ops) {
    RewritePatternSet patterns(ops[0]->getContext());
    scf::ForOp::getCanonicalizationPatterns(patterns, patterns.getContext());
    scf::IfOp::getCanonicalizationPatterns(patterns, patterns.getContext());
    scf::WhileOp::getCanonicalizationPatterns(patterns, patterns.getContext());
    return applyOpPatternsGreedily(ops, std::move(patterns));
  }

  TargetOf target_;
};

}  // namespace

std::unique_ptr<Pass> createCountInPlacePass(TargetOf target) {
  return std::make_unique<CountInPlacePass>(std::move(target));
}

}  // namespace tile::ir
