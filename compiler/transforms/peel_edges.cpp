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
// Places are linear: sums of scalars and of iotas. The condition is computed with 64 bits, and says as well that the
// program's own 32 bits do not wrap. Code with products, and loops, are left alone (peel_masks.cpp is for those).
#include <map>

#include "compiler/dialect/boxes.h"
#include "compiler/dialect/dialect.h"
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

constexpr int64_t kMostOps = 500;  ///< a longer block is not copied
constexpr size_t kManyMasks = 4;   ///< so many masks cost more than one condition and a copy of the code
/// So do so many boxes of tiles of so many elements, if they lie in so many rows: neighbours along a row share
/// accesses. Of more than the most, all of which could be under way at a time, registers are worth more.
constexpr size_t kManyBoxes = 8, kMostBoxes = 32, kManyRows = 6;
/// On hosts one mask is worth it, since every vector computes it, and so are a few boxes in any rows.
constexpr size_t kManyHostMasks = 1, kManyHostBoxes = 3, kManyHostRows = 1;
constexpr int64_t kLargeBox = 64;
constexpr int64_t kLongRow = 128;  ///< in shorter ones threads have few neighbours, which do not pay for wraps
constexpr int kDeepest = 32;
constexpr int64_t kMostFactor = 1 << 20;

bool is32(Value value) { return getElementTypeOrSelf(value.getType()).isInteger(32); }

/// The values of a tile's elements: the sum of scalars (times factors), and something from `low` to `high`.
struct Span {
  std::map<size_t, int64_t> scalars;  ///< their numbers in Edges, and factors
  int64_t low = 0, high = 0;
  bool isExact = true;  ///< no sum that could wrap

  void add(const Span& other, int64_t sign) {
    for (const auto& [key, factor] : other.scalars)
      if ((scalars[key] += sign * factor) == 0) scalars.erase(key);
    low += sign > 0 ? other.low : -other.high;
    high += sign > 0 ? other.high : -other.low;
  }
  /// Whether conditions of it fit 64 bits: the number, and scalars of 32 bits times their factors.
  bool isSmall() const {
    constexpr size_t kMostScalars = 64;
    constexpr int64_t kMostNumber = int64_t{1} << 48;
    return scalars.size() <= kMostScalars && low >= -kMostNumber && high <= kMostNumber &&
           llvm::all_of(scalars, [](const auto& part) { return std::abs(part.second) <= kMostFactor; });
  }
};

/// Clamps and masks of a block that are without effect where all of some sums are not above zero.
class Edges {
 public:
  /// `first`: where the condition will stand.
  explicit Edges(Operation* first) : first_(first) {}

  /// `x` where the tile is min or max of x and something that is the same for all elements; null otherwise.
  Value unclamped(Operation* op) {
    if (!isa_and_nonnull<arith::MaxSIOp, arith::MinSIOp>(op) || !isa<RankedTensorType>(op->getResult(0).getType()))
      return {};
    for (unsigned i : {0u, 1u}) {
      auto x = spanOf(op->getOperand(i)), bound = spanOf(op->getOperand(1 - i));
      if (!x || !bound || bound->low != bound->high || x->low == x->high) continue;
      const bool isMax = isa<arith::MaxSIOp>(op);
      if (!need(*x, *bound, isMax) || !needFits(*x) || !needFits(*bound)) return {};
      return op->getOperand(i);
    }
    return {};
  }

  /// Where the tile is a % n, and a is n too large at most (written "x + k + n", or not): n, and how often it goes.
  std::optional<std::pair<Value, int64_t>> unwrapped(Operation* op) {
    constexpr int64_t kMostTimes = 4;
    auto rem = dyn_cast_or_null<arith::RemSIOp>(op);
    if (!rem || !isa<RankedTensorType>(rem.getType())) return std::nullopt;
    auto a = spanOf(rem.getLhs()), by = spanOf(rem.getRhs());
    if (!a || !by || a->low == a->high || by->low != 0 || by->high != 0 || by->scalars.size() != 1) return std::nullopt;
    const auto [key, once] = *by->scalars.begin();
    auto found = a->scalars.find(key);
    const int64_t times = found == a->scalars.end() ? 0 : found->second;
    if (once != 1 || times < 0 || times > kMostTimes) return std::nullopt;
    Span place = *a;
    for (int64_t i = 0; i < times; ++i) place.add(*by, -1);
    if (!need(place, Span(), /*above=*/true) || !need(place, *by, /*above=*/false, 1) || !needFits(*a))
      return std::nullopt;
    return std::pair(scalars_[key], times);
  }

  /// Where the tile is chosen by where places x lie (x == 0 ? n - 1 : x - 1, or x < n ? x : 2 * n - x): the operand
  /// that is x and a number, if no x lies beyond the edge. Numbers are first places, scalars last ones.
  Value unturned(Operation* op) {
    auto select = dyn_cast_or_null<arith::SelectOp>(op);
    auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
    if (!compare || !isa<RankedTensorType>(select.getType()) || !isa<RankedTensorType>(compare.getType())) return {};
    auto x = spanOf(compare.getLhs()), edge = spanOf(compare.getRhs());
    if (!x || !edge || edge->low != edge->high || x->low == x->high || x->scalars.empty()) return {};
    const bool isFirst = edge->scalars.empty();
    bool truth = false;
    int64_t more = 0;
    switch (compare.getPredicate()) {
      case arith::CmpIPredicate::slt:
        truth = !isFirst, more = !isFirst;
        break;
      case arith::CmpIPredicate::sle:
        truth = !isFirst, more = isFirst;
        break;
      case arith::CmpIPredicate::sgt:
        truth = isFirst, more = isFirst;
        break;
      case arith::CmpIPredicate::sge:
        truth = isFirst, more = !isFirst;
        break;
      case arith::CmpIPredicate::eq:
        more = 1;
        break;
      case arith::CmpIPredicate::ne:
        truth = true, more = 1;
        break;
      default:
        return {};
    }
    Value inner = truth ? select.getTrueValue() : select.getFalseValue();
    auto chosen = spanOf(inner);
    if (!chosen || chosen->high - chosen->low != x->high - x->low) return {};
    Span apart = *chosen;
    apart.add(*x, -1);
    if (!apart.scalars.empty() || !need(*x, *edge, isFirst, more) || !needFits(*x) || !needFits(*edge) ||
        !needFits(*chosen))
      return {};
    return inner;
  }

  /// The scalar that all elements of the tile are, where it is one.
  Value scalarOf(Value tile) {
    auto span = spanOf(tile);
    const bool isOne =
        span && span->low == 0 && span->high == 0 && span->scalars.size() == 1 && span->scalars.begin()->second == 1;
    return isOne ? scalars_[span->scalars.begin()->first] : Value();
  }

  /// Whether the comparison of places can be true for all elements; then it is needed that it is.
  bool takesTrue(arith::CmpIOp compare) {
    auto a = spanOf(compare.getLhs()), b = spanOf(compare.getRhs());
    if (!a || !b || (a->low == a->high && b->low == b->high)) return false;
    int64_t more = 0;
    bool above = false;
    switch (compare.getPredicate()) {
      case arith::CmpIPredicate::slt:
        more = 1;
        break;
      case arith::CmpIPredicate::sle:
        break;
      case arith::CmpIPredicate::sgt:
        more = 1, above = true;
        break;
      case arith::CmpIPredicate::sge:
        above = true;
        break;
      default:
        return false;
    }
    return need(*a, *b, above, more) && needFits(*a) && needFits(*b);
  }

  /// Whether a box of a view can be inside of it; then it is needed that it is.
  bool takesInside(Value view, ValueRange indices, ArrayRef<int64_t> shape) {
    OpBuilder b(first_);
    const size_t lead = indices.size() - shape.size();
    for (auto [d, index] : llvm::enumerate(indices)) {
      const auto place = spanOf(index);
      if (!place || !isThere(view)) return false;
      Value dim = dimOf(b, view, static_cast<int64_t>(d));
      Span end;  // the last place of the dim
      end.scalars[numberOf(dim)] = 1, end.low = end.high = -1;
      Span last = *place;
      last.high += (d < lead ? 1 : shape[d - lead]) - 1, last.isExact = false;
      if (!need(*place, Span(), /*above=*/true) || !need(last, end, /*above=*/false) || !needFits(last)) return false;
    }
    return true;
  }

  bool isEmpty() const { return needs_.empty(); }

  /// All that is needed, as one i1.
  Value condition(OpBuilder& b, Location loc) const {
    Value all;
    const Type wide = b.getI64Type();
    auto number = [&](int64_t n) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(n)).getResult(); };
    for (const auto& [scalars, constant] : needs_) {
      Value sum = number(constant);
      for (const auto& [key, factor] : scalars) {
        Value scalar = scalars_[key];
        if (scalar.getType() != wide) scalar = b.createOrFold<arith::ExtSIOp>(loc, wide, scalar);
        if (factor != 1) scalar = b.createOrFold<arith::MulIOp>(loc, scalar, number(factor));
        sum = b.createOrFold<arith::AddIOp>(loc, sum, scalar);
      }
      Value holds = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, sum, number(0));
      all = all ? b.createOrFold<arith::AndIOp>(loc, all, holds) : holds;
    }
    return all;
  }

 private:
  using Scalars = std::vector<std::pair<size_t, int64_t>>;

  /// Its number: what follows from an order of addresses would be other code in every run.
  size_t numberOf(Value scalar) {
    scalars_.insert(scalar);
    return static_cast<size_t>(llvm::find(scalars_, scalar) - scalars_.begin());
  }

  /// Every value is looked at once: sums of sums would be walked 2^depth times.
  std::optional<Span> spanOf(Value value, int depth = 0) {
    if (auto it = known_.find(value); it != known_.end()) return it->second;
    const std::optional<Span> span = findSpan(value, depth);
    known_.insert({value, span});
    return span;
  }

  std::optional<Span> findSpan(Value value, int depth) {
    Span span;
    APInt number;
    DenseIntElementsAttr same;
    if (!is32(value) || depth > kDeepest) return std::nullopt;
    if (matchPattern(value, m_ConstantInt(&number))) {
      span.low = span.high = number.getSExtValue();
      return span;
    }
    if (!isa<RankedTensorType>(value.getType())) {
      // What is added to a scalar is a number by itself: places that differ by it need one condition.
      auto add = value.getDefiningOp<arith::AddIOp>();
      if (add && matchPattern(add.getRhs(), m_ConstantInt(&number)) && isThere(add.getLhs())) {
        span.scalars[numberOf(add.getLhs())] = 1;
        span.low = span.high = number.getSExtValue(), span.isExact = false;
        return span;
      }
      if (!isThere(value)) return std::nullopt;
      span.scalars[numberOf(value)] = 1;
      return span;
    }
    if (matchPattern(value, m_Constant(&same)) && same.isSplat()) {
      span.low = span.high = same.getSplatValue<APInt>().getSExtValue();
      return span;
    }
    Operation* op = value.getDefiningOp();
    if (auto iota = dyn_cast_or_null<IotaOp>(op)) {
      span.low = static_cast<int64_t>(iota.getStart());
      span.high = span.low + cast<RankedTensorType>(value.getType()).getNumElements() - 1;
      return span;
    }
    if (isa_and_nonnull<SplatOp, BroadcastOp, ReshapeOp, TransOp>(op)) return spanOf(op->getOperand(0), depth + 1);
    if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
      auto a = spanOf(op->getOperand(0), depth + 1), b = spanOf(op->getOperand(1), depth + 1);
      if (!a || !b) return std::nullopt;
      a->add(*b, isa<arith::AddIOp>(op) ? 1 : -1);
      a->isExact = false;
      return a->isSmall() ? a : std::nullopt;
    }
    if (isa_and_nonnull<arith::MulIOp>(op) && matchPattern(op->getOperand(1), m_Constant(&same)) && same.isSplat()) {
      auto a = spanOf(op->getOperand(0), depth + 1);
      const int64_t factor = same.getSplatValue<APInt>().getSExtValue();
      if (!a || factor <= 0 || factor > kMostFactor) return std::nullopt;
      bool overflows = llvm::MulOverflow(a->low, factor, a->low);
      overflows |= llvm::MulOverflow(a->high, factor, a->high);
      for (auto& [key, part] : a->scalars) overflows |= llvm::MulOverflow(part, factor, part) != 0;
      a->isExact = false;
      return !overflows && a->isSmall() ? a : std::nullopt;
    }
    // A clamp or remainder inside of another: what it is in the middle.
    if (auto x = unclamped(op)) return spanOf(x, depth + 1);
    if (auto x = unturned(op)) return spanOf(x, depth + 1);
    if (auto wrap = unwrapped(op)) {
      auto a = spanOf(op->getOperand(0), depth + 1), by = spanOf(op->getOperand(1), depth + 1);
      for (int64_t i = 0; i < wrap->second; ++i) a->add(*by, -1);
      return a;
    }
    return std::nullopt;
  }

  /// The size of a view's dim, one value for all boxes.
  Value dimOf(OpBuilder& b, Value view, int64_t d) {
    Value& dim = dims_[{view, d}];
    auto made = view.getDefiningOp<MakeViewOp>();
    if (!dim && made) dim = made.getDims()[static_cast<size_t>(d)];
    if (!dim) dim = ViewDimOp::create(b, view.getLoc(), b.getI64Type(), view, static_cast<uint32_t>(d));
    return dim;
  }

  bool isThere(Value scalar) const {
    Operation* op = scalar.getDefiningOp();
    return !op || op->getBlock() != first_->getBlock() || op->isBeforeInBlock(first_);
  }

  /// a <= b (or a >= b), by `more` at least, for all elements. False: that is never so.
  bool need(Span a, const Span& b, bool above, int64_t more = 0) {
    a.add(b, -1);
    Scalars scalars;
    for (const auto& [key, factor] : a.scalars) scalars.emplace_back(key, above ? -factor : factor);
    const int64_t constant = (above ? -a.low : a.high) + more;
    if (scalars.empty()) return constant <= 0;
    auto [known, isNew] = needs_.try_emplace(scalars, constant);
    if (!isNew) known->second = std::max(known->second, constant);
    return true;
  }
  bool needFits(const Span& span) {
    if (span.isExact) return true;
    Span least, most;
    least.low = least.high = std::numeric_limits<int32_t>::min();
    most.low = most.high = std::numeric_limits<int32_t>::max();
    return need(span, least, /*above=*/true) && need(span, most, /*above=*/false);
  }

  Operation* first_;
  std::map<Scalars, int64_t> needs_;  ///< scalars times factors, and a number: not above zero
  llvm::DenseMap<Value, std::optional<Span>> known_;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> dims_;
  llvm::SetVector<Value> scalars_;
};

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
    // What may go, in the order of the block; and the first read that gains.
    llvm::DenseMap<Operation*, Inside> gone;
    llvm::SetVector<Operation*> compares;
    llvm::DenseSet<Value> masks, clamped;
    llvm::MapVector<Value, SmallVector<LoadOp>> boxes;  // of a view, each at a place of its own
    size_t places = 0, rows = 0;                        // of boxes
    Operation* first = nullptr;
    int64_t ops = 0;
    bool hasClamps = false;
    const llvm::DenseSet<void*> around = wrapped(block);
    auto unwrap = [&](Edges& edges, Operation& op) {
      auto wrap = edges.unwrapped(&op);
      return wrap && around.contains(wrap->first.getAsOpaquePointer()) ? wrap : std::nullopt;
    };
    for (Operation& op : block) {
      op.walk([&](Operation*) { ++ops; });
      auto gather = dyn_cast<GatherOp>(op);
      if (gather && gather.getMask()) masks.insert(gather.getMask());
      for (Value result : op.getResults())
        if (llvm::any_of(op.getOperands(), [&](Value v) { return clamped.contains(v); })) clamped.insert(result);
      if (gather && !first && (gather.getMask() || clamped.contains(gather.getPtr()))) first = gather;
      if (auto load = dyn_cast<LoadOp>(op); load && boxOf(load)) {
        auto& others = boxes[load.getView()];
        auto isSame = [&](LoadOp other) { return other.getIndices() == load.getIndices(); };
        auto isRow = [&](LoadOp other) { return other.getIndices().drop_back() == load.getIndices().drop_back(); };
        if (cast<RankedTensorType>(load.getType()).getNumElements() >= kLargeBox && llvm::none_of(others, isSame)) {
          rows += llvm::none_of(others, isRow), ++places;
          others.push_back(load);
        }
      }
      auto type = op.getNumResults() == 1 ? dyn_cast<RankedTensorType>(op.getResult(0).getType()) : RankedTensorType();
      if (!type || type.getRank() == 0 || type.getShape().back() == 1 ||
          !isa<arith::MaxSIOp, arith::MinSIOp, arith::RemSIOp, arith::SelectOp>(op))
        continue;
      Edges alone(block.getTerminator());
      const bool turns = isa<arith::SelectOp, arith::RemSIOp>(op) && type.getShape().back() >= kLongRow;
      if (alone.unclamped(&op) || (turns && (alone.unturned(&op) || unwrap(alone, op))))
        clamped.insert(op.getResult(0)), hasClamps = true;
    }
    hasClamps = hasClamps && first && llvm::any_of(block, [&](Operation& op) {
                  auto gather = dyn_cast<GatherOp>(op);
                  return gather && clamped.contains(gather.getPtr());
                });
    const bool hasMasks = first && (hasClamps || masks.size() >= (host ? kManyHostMasks : kManyMasks));
    const bool hasBoxes = places >= (host ? kManyHostBoxes : kManyBoxes) && places <= kMostBoxes &&
                          rows >= (host ? kManyHostRows : kManyRows);
    if (ops > kMostOps || (!hasMasks && !hasBoxes)) return;
    if (hasBoxes)
      for (const auto& [view, loads] : boxes)
        if (!loads.empty() && (!first || loads.front()->isBeforeInBlock(first))) first = loads.front();
    for (Operation& op : block)
      if (isa<GatherOp, ScatterOp>(op))
        conjunctsOf(isa<GatherOp>(op) ? cast<GatherOp>(op).getMask() : cast<ScatterOp>(op).getMask(), compares);
    Edges edges(first);
    llvm::DenseSet<Operation*> whole;  // boxes inside of their views
    for (Operation& op : block) {
      if (const auto box = hasBoxes ? boxOf(&op) : std::nullopt) {
        Edges trial = edges;
        if (trial.takesInside(box->view, box->indices, box->shape)) whole.insert(&op), edges = trial;
        continue;
      }
      auto compare = dyn_cast<arith::CmpIOp>(op);
      if (Operation* rem = compare ? asksForSign(compare) : nullptr; rem && gone.contains(rem)) gone[&op].truth = false;
      if (!compares.contains(&op) && !isa<arith::MaxSIOp, arith::MinSIOp, arith::RemSIOp, arith::SelectOp>(op))
        continue;
      Edges trial = edges;
      if (auto wrap = unwrap(trial, op))
        gone[&op] = {op.getOperand(0), wrap->first, wrap->second}, edges = trial;
      else if (isa<arith::RemSIOp>(op))
        continue;
      else if (Value x = isa<arith::SelectOp>(op) ? trial.unturned(&op) : trial.unclamped(&op))
        gone[&op].other = x, edges = trial;
      else if (compare && isa<RankedTensorType>(compare.getType()) && trial.takesTrue(compare))
        gone[&op] = {}, edges = trial;
    }
    if (edges.isEmpty()) return;
    scf::IfOp branch = split(block, first, edges, gone, whole);
    if (host) sinkTiles(branch);
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
