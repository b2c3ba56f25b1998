// peel_edges.cpp - programs that lie wholly inside a picture or grid do without what only its edges need.
// Before: straight-line code reads neighbours at clamp(x + k, 0, W - 1), at (x + k + W) % W, at x == 0 ? W - 1 : x - 1,
//         or each under a mask of its own (x + k >= 0 & x + k < W), for tiles of places x = start + 0, 1, 2, ...; or
//         several boxes of a view beside each other, which the view bounds.
// After:  if (no clamp, remainder or choice changes anything, and every such mask is true) { the rest of the block
//         without them, and with boxes marked as inside of their views } else { the rest of the block as it was }
// Through clamped and wrapped places nothing is known to lie side by side: every element is read alone. Inside,
// neighbours are neighbours again: vectors, and windows that several reads share. The condition is made of scalars,
// once for a program.
//
// The condition is that of edge_conditions.h. Code with products, and loops, are left alone (peel_masks.cpp is for
// those).
#include "compiler/dialect/boxes.h"
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/edge_conditions.h"
#include "compiler/transforms/transforms.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tile::ir {
#define GEN_PASS_DEF_PEELEDGES
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

constexpr int64_t kMostOps = 500;  ///< a longer block is not copied,
/// unless much of it are reads at clamped places (a filter with weights of its own for every neighbour): so many
/// operations for each of them, and less than the caches of instructions hold.
constexpr int64_t kOpsOfRead = 40, kMostOpsOfReads = 2000;
constexpr size_t kManyMasks = 4;  ///< so many masks cost more than one condition and a copy of the code
/// So do so many boxes of tiles of so many elements, if they lie in so many rows: neighbours along a row share
/// accesses. Of more than the most, all of which could be under way at a time, registers are worth more.
constexpr size_t kManyBoxes = 8, kMostBoxes = 32, kManyRows = 6;
/// On hosts one mask is worth it, since every vector computes it, and so are a few boxes in any rows.
constexpr size_t kManyHostMasks = 1, kManyHostBoxes = 3, kManyHostRows = 1;
constexpr int64_t kLargeBox = 64;
constexpr int64_t kLongRow = 128;  ///< in shorter ones threads have few neighbours, which do not pay for wraps
constexpr int kDeepest = 32;

/// Boxes of a tile's elements that code reads and writes.
struct Box {
  Value view;
  ValueRange indices;
  ArrayRef<int64_t> shape;
};
std::optional<Box> boxOf(Operation* op) {
  auto shaped = [](auto access, Type type) -> std::optional<Box> {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile || tile.getNumElements() == 1) return std::nullopt;
    return Box{access.getView(), access.getIndices(), tile.getShape()};
  };
  if (auto load = dyn_cast<LoadOp>(op)) return shaped(load, load.getType());
  if (auto store = dyn_cast<StoreOp>(op)) return shaped(store, store.getValue().getType());
  return std::nullopt;
}

/// What an operation is inside.
struct Inside {
  Value other;  ///< this (clamps), or the operand without `times` times `n` (remainders); null: all of `truth`
  Value n;
  int64_t times = 0;
  bool truth = true;
};

/// The value without one addend that is the scalar n in every element; null if it is none.
Value withoutOne(OpBuilder& b, Location loc, Value value, Value n, const IRMapping& map, int depth = 0) {
  const Type type = value.getType();
  if (value == n) return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Operation* op = value.getDefiningOp();
  if (!op || depth > kDeepest) return {};
  if (isa<SplatOp, BroadcastOp, ReshapeOp, TransOp>(op)) {
    Value operand = withoutOne(b, loc, op->getOperand(0), n, map, depth + 1);
    if (!operand) return {};
    Operation* copy = b.clone(*op);
    copy->setOperand(0, operand);
    return copy->getResult(0);
  }
  if (!isa<arith::AddIOp>(op)) return {};
  for (unsigned i : {0u, 1u})
    if (Value rest = withoutOne(b, loc, op->getOperand(i), n, map, depth + 1))
      return b.createOrFold<arith::AddIOp>(loc, map.lookupOrDefault(op->getOperand(1 - i)), rest);
  return {};
}

/// Whether the comparison asks, for a floor_mod, for a remainder whose sign is not the divisor's; and of which one.
Operation* asksForSign(arith::CmpIOp compare) {
  auto signs = compare.getLhs().getDefiningOp<arith::XOrIOp>();
  if (!signs || compare.getPredicate() != arith::CmpIPredicate::slt || !matchPattern(compare.getRhs(), m_Zero()))
    return nullptr;
  auto rem = signs.getLhs().getDefiningOp<arith::RemSIOp>();
  return rem && rem.getRhs() == signs.getRhs() ? rem : nullptr;
}

/// The comparisons that a mask is a conjunction of.
void conjunctsOf(Value mask, llvm::SetVector<Operation*>& found, int depth = 0) {
  Operation* op = mask ? mask.getDefiningOp() : nullptr;
  if (!op || depth > kDeepest) return;
  if (isa<arith::CmpIOp>(op)) found.insert(op);
  if (isa<arith::AndIOp, BroadcastOp, ReshapeOp, TransOp>(op))
    for (Value operand : op->getOperands()) conjunctsOf(operand, found, depth + 1);
}

/// What a block reads that its edges make slow, and whether a copy of the block without them is worth it.
class Survey {
 public:
  Survey(Block& block, bool host) : wraps_(wrapped(block)) {
    int64_t ops = 0;
    for (Operation& op : block) {
      op.walk([&](Operation*) { ++ops; });
      for (Value result : op.getResults())
        if (llvm::any_of(op.getOperands(), [&](Value v) { return clamped_.contains(v); })) clamped_.insert(result);
      if (auto gather = dyn_cast<GatherOp>(op)) see(gather);
      if (auto load = dyn_cast<LoadOp>(op); load && boxOf(load)) see(load);
      if (auto scatter = dyn_cast<ScatterOp>(op)) conjunctsOf(scatter.getMask(), compares_);
      if (isClamp(op, block)) clamped_.insert(op.getResult(0)), hasClamps_ = true;
    }
    const int64_t clampedReads = llvm::count_if(block, [&](Operation& op) {
      auto gather = dyn_cast<GatherOp>(op);
      return gather && clamped_.contains(gather.getPtr());
    });
    hasClamps_ = hasClamps_ && clampedReads > 0;
    const bool hasMasks = first_ && (hasClamps_ || masks_.size() >= (host ? kManyHostMasks : kManyMasks));
    hasBoxes_ = places_ >= (host ? kManyHostBoxes : kManyBoxes) && places_ <= kMostBoxes &&
                rows_ >= (host ? kManyHostRows : kManyRows);
    const int64_t mostOps =
        hasClamps_ ? std::max(kMostOps, std::min(kMostOpsOfReads, kOpsOfRead * clampedReads)) : kMostOps;
    if (ops > mostOps || (!hasMasks && !hasBoxes_))
      first_ = nullptr;
    else if (hasBoxes_ && (!first_ || firstBox_->isBeforeInBlock(first_)))
      first_ = firstBox_;
  }

  /// The first read that gains, where the condition will stand; null: a copy is not worth it.
  Operation* first() const { return first_; }
  bool hasBoxes() const { return hasBoxes_; }
  /// Whether a mask is a conjunction of this comparison and others.
  bool isOfMask(Operation* op) const { return compares_.contains(op); }
  /// Edges::unwrapped, of the scalars by which places are wrapped.
  std::optional<std::pair<Value, int64_t>> unwrapped(Edges& edges, Operation& op) const {
    auto wrap = edges.unwrapped(&op);
    return wrap && wraps_.contains(wrap->first.getAsOpaquePointer()) ? wrap : std::nullopt;
  }

 private:
  void see(GatherOp gather) {
    if (gather.getMask()) masks_.insert(gather.getMask());
    if (!first_ && (gather.getMask() || clamped_.contains(gather.getPtr()))) first_ = gather;
    conjunctsOf(gather.getMask(), compares_);
  }

  void see(LoadOp load) {
    auto& others = boxes_[load.getView()];
    auto isSame = [&](LoadOp other) { return other.getIndices() == load.getIndices(); };
    auto isRow = [&](LoadOp other) { return other.getIndices().drop_back() == load.getIndices().drop_back(); };
    if (cast<RankedTensorType>(load.getType()).getNumElements() < kLargeBox || llvm::any_of(others, isSame)) return;
    rows_ += llvm::none_of(others, isRow), ++places_;
    others.push_back(load);
    if (!firstBox_) firstBox_ = load;
  }

  bool isClamp(Operation& op, Block& block) const {
    auto type = op.getNumResults() == 1 ? dyn_cast<RankedTensorType>(op.getResult(0).getType()) : RankedTensorType();
    if (!type || type.getRank() == 0 || type.getShape().back() == 1 ||
        !isa<arith::MaxSIOp, arith::MinSIOp, arith::RemSIOp, arith::SelectOp>(op))
      return false;
    Edges alone(block.getTerminator());
    const bool turns = isa<arith::SelectOp, arith::RemSIOp>(op) && type.getShape().back() >= kLongRow;
    return alone.unclamped(&op) || (turns && (alone.unturned(&op) || unwrapped(alone, op)));
  }

  /// The scalars by which places are wrapped: several dividends, or one that adds the scalar first. Where quotients by
  /// it are wanted as well, places run through all rows of a picture, and few programs lie in one.
  static llvm::DenseSet<void*> wrapped(Block& block) {
    llvm::DenseMap<void*, int> dividends;
    llvm::DenseSet<void*> found;
    Edges edges(block.getTerminator());
    for (Operation& op : block)
      if (auto wrap = edges.unwrapped(&op))
        if (wrap->second > 0 || ++dividends[wrap->first.getAsOpaquePointer()] > 1)
          found.insert(wrap->first.getAsOpaquePointer());
    for (Operation& op : block)
      if (auto div = dyn_cast<arith::DivSIOp>(op))
        if (Value by = edges.scalarOf(div.getRhs())) found.erase(by.getAsOpaquePointer());
    return found;
  }

  const llvm::DenseSet<void*> wraps_;
  llvm::DenseSet<Value> masks_, clamped_;
  llvm::SetVector<Operation*> compares_;
  llvm::MapVector<Value, SmallVector<LoadOp>> boxes_;  ///< of a view, each at a place of its own
  size_t places_ = 0, rows_ = 0;                       ///< of boxes
  Operation *first_ = nullptr, *firstBox_ = nullptr;
  bool hasClamps_ = false, hasBoxes_ = false;
};

class PeelEdgesPass : public impl::PeelEdgesBase<PeelEdgesPass> {
 public:
  using PeelEdgesBase::PeelEdgesBase;
  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    bool hasProducts = false;
    llvm::SetVector<Block*> blocks;
    getOperation().walk([&](Operation* op) {
      hasProducts |= isa<DotOp, BatchDotOp>(op);
      if (isa<GatherOp, LoadOp>(op) && !op->getParentOfType<LoopLikeOpInterface>()) blocks.insert(op->getBlock());
    });
    if (hasProducts) return;
    for (Block* block : blocks) peel(*block);
  }

 private:
  void peel(Block& block) {
    const Survey survey(block, host);
    Operation* first = survey.first();
    if (!first) return;
    Edges edges(first);
    llvm::DenseMap<Operation*, Inside> gone;
    llvm::DenseSet<Operation*> whole;  // boxes inside of their views
    for (Operation& op : block) {
      Edges trial = edges;
      if (const auto box = survey.hasBoxes() ? boxOf(&op) : std::nullopt) {
        if (trial.takesInside(box->view, box->indices, box->shape)) whole.insert(&op), edges = trial;
      } else if (const auto is = withoutEdges(op, trial, survey, gone)) {
        gone[&op] = *is, edges = trial;
      }
    }
    if (edges.isEmpty()) return;
    scf::IfOp branch = split(block, first, edges, gone, whole);
    if (host) sinkTiles(branch);
  }

  /// What a clamp, wrap, choice or comparison for a mask is inside; nothing where it is none, or not known to be.
  /// `gone`: what in front of it has an inside.
  static std::optional<Inside> withoutEdges(Operation& op, Edges& edges, const Survey& survey,
                                            const llvm::DenseMap<Operation*, Inside>& gone) {
    auto compare = dyn_cast<arith::CmpIOp>(op);
    Inside is;
    if (Operation* rem = compare ? asksForSign(compare) : nullptr; rem && gone.contains(rem)) {
      is.truth = false;
      return is;
    }
    if (!survey.isOfMask(&op) && !isa<arith::MaxSIOp, arith::MinSIOp, arith::RemSIOp, arith::SelectOp>(op))
      return std::nullopt;
    if (auto wrap = survey.unwrapped(edges, op)) return Inside{op.getOperand(0), wrap->first, wrap->second};
    if (isa<arith::RemSIOp>(op)) return std::nullopt;
    is.other = isa<arith::SelectOp>(op) ? edges.unturned(&op) : edges.unclamped(&op);
    const bool isTrue = compare && isa<RankedTensorType>(compare.getType()) && edges.takesTrue(compare);
    return is.other || isTrue ? std::optional(is) : std::nullopt;
  }

  /// Tiles in front of the branch that only the branch reads are made inside of it, on each side that reads them: there
  /// they are fused with what reads them, and those of masks are left to the side that has masks.
  static void sinkTiles(scf::IfOp branch) {
    SmallVector<Operation*> before;
    for (Operation& op : *branch->getBlock()) {
      if (&op == branch) break;
      before.push_back(&op);
    }
    for (Operation* op : llvm::reverse(before)) {
      if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()) || op->use_empty() ||
          op->getNumRegions() || !isMemoryEffectFree(op) ||
          !llvm::all_of(op->getUsers(), [&](Operation* user) { return branch->isProperAncestor(user); }))
        continue;
      for (Region* side : {&branch.getThenRegion(), &branch.getElseRegion()}) {
        auto isHere = [&](OpOperand& use) { return side->isAncestor(use.getOwner()->getParentRegion()); };
        if (llvm::none_of(op->getUses(), isHere)) continue;
        OpBuilder b = OpBuilder::atBlockBegin(&side->front());
        op->getResult(0).replaceUsesWithIf(b.clone(*op)->getResult(0), isHere);
      }
      op->erase();
    }
  }

  /// What a clamp or remainder is inside.
  static Value withoutAll(OpBuilder& b, Operation& op, const Inside& is, const IRMapping& inside) {
    const Location loc = op.getLoc();
    if (is.times == 1)  // as it was before n was added: neighbours are seen to be neighbours
      if (Value rest = withoutOne(b, loc, is.other, is.n, inside)) return rest;
    Value left = inside.lookupOrDefault(is.other);
    for (int64_t i = 0; i < is.times; ++i)
      left = arith::SubIOp::create(b, loc, left, inside.lookupOrDefault(op.getOperand(1)));
    return left;
  }

  static scf::IfOp split(Block& block, Operation* first, const Edges& edges,
                         const llvm::DenseMap<Operation*, Inside>& gone, const llvm::DenseSet<Operation*>& whole) {
    const Location loc = first->getLoc();
    Operation* end = block.getTerminator();
    OpBuilder b(first);
    IRMapping inside;
    auto copy = [&](Operation& op) {
      auto found = gone.find(&op);
      if (found == gone.end()) {
        Operation* cloned = b.clone(op, inside);
        if (whole.contains(&op)) cloned->setAttr(kInsideAttr, UnitAttr::get(op.getContext()));
      } else if (const Inside& is = found->second; is.other) {
        inside.map(op.getResult(0), withoutAll(b, op, is, inside));
      } else {
        auto type = cast<RankedTensorType>(op.getResult(0).getType());
        inside.map(op.getResult(0), arith::ConstantOp::create(b, op.getLoc(), DenseElementsAttr::get(type, is.truth)));
      }
    };
    SmallVector<Operation*> rest, before;
    for (Operation& op : block.without_terminator()) (op.isBeforeInBlock(first) ? before : rest).push_back(&op);
    const llvm::SmallPtrSet<Operation*, 32> isRest(rest.begin(), rest.end());
    SmallVector<Value> left;
    for (Value value : end->getOperands())
      if (Operation* op = value.getDefiningOp(); op && isRest.contains(op)) left.push_back(value);

    const Value condition = edges.condition(b, loc);
    auto branch = scf::IfOp::create(b, loc, ValueRange(left).getTypes(), condition, /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    // Of what stands in front, what depends on something that goes.
    for (Operation* op : before) {
      const bool depends = llvm::any_of(op->getOperands(), [&](Value v) { return inside.contains(v); });
      if (gone.contains(op) || (depends && isMemoryEffectFree(op) && !op->getNumRegions())) copy(*op);
    }
    for (Operation* op : rest) copy(*op);
    auto finish = [&](Block* body, function_ref<Value(Value)> of) {
      if (left.empty()) return;
      OpBuilder at = OpBuilder::atBlockEnd(body);
      SmallVector<Value> values;
      for (Value value : left) values.push_back(of(value));
      scf::YieldOp::create(at, loc, values);
    };
    finish(branch.thenBlock(), [&](Value v) { return inside.lookupOrDefault(v); });
    Block* other = branch.elseBlock();
    Operation* stop = left.empty() ? other->getTerminator() : nullptr;
    for (Operation* op : rest) stop ? op->moveBefore(stop) : op->moveBefore(other, other->end());
    finish(other, [](Value v) { return v; });
    for (auto [value, result] : llvm::zip(left, branch.getResults())) end->replaceUsesOfWith(value, result);
    return branch;
  }
};

}  // namespace
}  // namespace tile::ir
