// defer_reductions.cpp - sums that a loop only accumulates are reduced across lanes and warps once, behind the loop,
// instead of in every iteration. So are running maxima and minima, and whether any or all elements satisfy a condition.
// Before: for (or while): l' = l * alpha + (sum of p along an axis); alpha may be absent, and l has no other use
// After:  for (or while): l' = l * alpha + (sum over the registers of each thread); along the axis, l now has one
//         element for every lane and warp
//         behind the loop: the sum over those
//
// This takes as many registers as before, and no shuffles in the loop. It needs layouts. The language leaves the order
// of a reduction's additions open, so the result is one of those it allows. A scalar to which sums of whole tiles are
// added is treated as a tile of one element; sums whose dims of size 1 are dropped before they are added are added with
// them. What is accumulated in a branch only (`if (first) l += sum`) is so there.
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/gpu_passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

/// l' = l [* factor] + sum, as it stands in the loop, or l' = max(l, largest).
struct Accumulation {
  Operation* add = nullptr;       ///< fma, addf or what the reduction combines by: yields l'
  Operation* multiply = nullptr;  ///< mulf in front of an addf
  Value factor;
  ReduceOp sum;
  ConvertOp moved;  ///< between the sum and l, whose layout is another one; null: there is none
};

/// How a reduced axis lies in the threads: its digits as dims of their own, the registers' ones reduced one by one.
struct AxisDigits {
  SmallVector<int64_t> split;     ///< the tile's shape with a dim per digit, major first
  SmallVector<int64_t> partial;   ///< the tile's shape with the axis' threads
  SmallVector<int> registerDims;  ///< dims of `split` to reduce
  int64_t threads = 1;            ///< lanes and warps along the axis
};

/// Of equal values it makes the same one: it does not matter how often the first value of all takes part.
bool keepsEqual(Operation* op) {
  return isa<arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxSIOp, arith::MinSIOp,
             arith::MaxUIOp, arith::MinUIOp, arith::AndIOp, arith::OrIOp>(op);
}
/// Exact and with 0 as what changes nothing: the first value of all can be added behind the loop.
bool addsIntegers(Operation* op) { return isa<arith::AddIOp, arith::XOrIOp>(op); }
bool canWait(Operation* op) { return isa<arith::AddFOp>(op) || keepsEqual(op) || addsIntegers(op); }

/// The one operation that a reduction of one tile combines by; null where it is another one than those of this file.
Operation* combinerOf(ReduceOp reduce) {
  Block& body = reduce.getCombiner().front();
  Operation* op = &body.front();
  if (reduce.getSources().size() != 1 || !canWait(op)) return nullptr;
  const Value x = op->getOperand(0), y = op->getOperand(1);
  const bool isWhole = body.getTerminator()->getOperand(0) == op->getResult(0) && isa<BlockArgument>(x) &&
                       isa<BlockArgument>(y) && x != y;
  return isWhole ? op : nullptr;
}

/// The reduction combines by what its result is accumulated by (a sum may be accumulated by an fma).
bool isAccumulatedBy(ReduceOp reduce, Operation* add) {
  Operation* combiner = combinerOf(reduce);
  if (!combiner) return false;
  return isa<arith::AddFOp>(combiner) ? isa<arith::AddFOp, math::FmaOp>(add) : combiner->getName() == add->getName();
}

std::optional<AxisDigits> axisDigits(ReduceOp reduce) {
  auto type = cast<RankedTensorType>(reduce.getSources()[0].getType());
  auto layout = layoutOf(type);
  const int axis = static_cast<int>(reduce.getAxis());
  if (!layout || layout->isPadded(axis)) return std::nullopt;
  struct Part {
    int64_t stride, count;
    bool inRegisters;
  };
  SmallVector<Part> parts;
  auto take = [&](const std::vector<layout::Digit>& digits, bool inRegisters) {
    for (const layout::Digit& digit : digits)
      if (digit.dim == axis) parts.push_back({digit.stride, digit.count, inRegisters});
  };
  take(layout->regs(), true);
  take(layout->lanes(), false);
  take(layout->warps(), false);
  llvm::sort(parts, [](const Part& a, const Part& b) { return a.stride > b.stride; });

  AxisDigits result;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (static_cast<int>(dim) != axis) {
      result.split.push_back(size);
      result.partial.push_back(size);
      continue;
    }
    for (const Part& part : parts) {
      if (part.inRegisters)
        result.registerDims.push_back(static_cast<int>(result.split.size()));
      else
        result.threads *= part.count;
      result.split.push_back(part.count);
    }
    result.partial.push_back(result.threads);
  }
  if (result.threads == 1 || static_cast<int64_t>(result.split.size()) > kMaxTileRank) return std::nullopt;
  return result;
}

/// A value that a loop hands from one iteration to the next.
struct Carried {
  Operation* loop = nullptr;
  Block* body = nullptr;
  BlockArgument arg;  ///< in the body
  Value next, result;
  OpOperand* init = nullptr;
  SmallVector<Value, 3> changed;  ///< block arguments and results: what has its type
  OpOperand* passed = nullptr;    ///< where a branch that does not make the next value hands this one on

  void setType(Type type) {
    for (Value value : changed) value.setType(type);
  }
  /// The one operation that reads the value to make the next one; null where others do, too.
  Operation* reader() const {
    Operation* found = nullptr;
    for (OpOperand& use : arg.getUses())
      if (&use != passed && std::exchange(found, use.getOwner())) return nullptr;
    return found;
  }
  /// Where one side of a branch makes the next value, and the other one hands this one on: `body` is that side.
  void enterBranch() {
    auto branch = next.getDefiningOp<scf::IfOp>();
    if (!branch || branch->getBlock() != body || !next.hasOneUse()) return;
    const unsigned number = cast<OpResult>(next).getResultNumber();
    OpOperand &then = branch.thenYield()->getOpOperand(number), &other = branch.elseYield()->getOpOperand(number);
    if (then.get() != arg && other.get() != arg) return;
    passed = then.get() == arg ? &then : &other;
    OpOperand& made = passed == &then ? other : then;
    changed.push_back(next);
    next = made.get(), body = made.getOwner()->getBlock();
  }
};

SmallVector<Carried> carriedBy(Operation* op) {
  SmallVector<Carried> all;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [i, arg] : llvm::enumerate(loop.getRegionIterArgs()))
      all.push_back({op,
                     loop.getBody(),
                     arg,
                     loop.getYieldedValues()[i],
                     loop.getResult(i),
                     &loop.getInitArgsMutable()[i],
                     {arg, loop.getResult(i)}});
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    // What the condition only passes on.
    for (auto [i, passed] : llvm::enumerate(loop.getConditionOp().getArgs())) {
      auto before = dyn_cast<BlockArgument>(passed);
      if (!before || before.getOwner() != loop.getBeforeBody() || !before.hasOneUse()) continue;
      const unsigned number = before.getArgNumber();
      BlockArgument arg = loop.getAfterArguments()[i];
      all.push_back({op,
                     loop.getAfterBody(),
                     arg,
                     loop.getYieldOp().getOperand(number),
                     loop.getResult(i),
                     &loop.getInitsMutable()[number],
                     {before, arg, loop.getResult(i)}});
    }
  }
  return all;
}

class Deferral {
 public:
  explicit Deferral(Carried carried) : carried_(std::move(carried)) { carried_.enterBranch(); }

  void run() {
    carryAsTile();
    carryAsReduced();
    if (auto found = match()) rewrite(*found);
  }

 private:
  /// s' = s [* factor] + the element that a sum left: carried as that tile of one element, an item behind the loop.
  void carryAsTile() {
    BlockArgument carried = carried_.arg;
    if (!isa<FloatType, IntegerType>(carried.getType())) return;
    Operation *add = carried_.next.getDefiningOp(), *first = carried_.reader();
    if (!add || !first || add->getBlock() != carried_.body || !add->hasOneUse()) return;
    if (!isa<math::FmaOp>(add) && !canWait(add)) return;
    const bool isScaled = first != add && isa<arith::MulFOp>(first) && isa<arith::AddFOp>(add) && first->hasOneUse() &&
                          *first->getUsers().begin() == add && first->getBlock() == add->getBlock();
    if (first != add && !isScaled) return;
    ItemOp item;
    for (Value operand : add->getOperands())
      if (auto op = operand.getDefiningOp<ItemOp>(); op && op->hasOneUse()) item = op;
    auto sum = item ? item.getSource().getDefiningOp<ReduceOp>() : ReduceOp();
    if (!sum || !sum->hasOneUse() || !isAccumulatedBy(sum, add) || sum->getBlock() != carried_.body) return;
    auto fma = dyn_cast<math::FmaOp>(add);
    if (fma && (fma.getC() != item.getResult() || carried == fma.getC())) return;
    if (!axisDigits(sum)) return;

    const Type type = sum.getResult(0).getType();
    auto asTile = [&](Operation* op) {
      OpBuilder b(op);
      for (OpOperand& operand : op->getOpOperands()) {
        if (operand.get() == item.getResult())
          operand.set(sum.getResult(0));
        else if (operand.get() != carried && !isa<RankedTensorType>(operand.get().getType()))
          operand.set(SplatOp::create(b, op->getLoc(), type, operand.get()));
      }
      op->getResult(0).setType(type);
    };
    OpBuilder b(carried_.loop);
    carried_.init->set(SplatOp::create(b, carried_.loop->getLoc(), type, carried_.init->get()));
    if (isScaled) asTile(first);
    asTile(add);
    carried_.setType(type);
    item.erase();
    Value result = carried_.result;
    b.setInsertionPointAfter(carried_.loop);
    auto total = ItemOp::create(b, carried_.loop->getLoc(), getElementTypeOrSelf(type), result);
    result.replaceAllUsesExcept(total.getResult(), total);
  }

  /// l' = l [* factor] + reshape(sum): carried under the shape that the sum has, reshaped behind the loop. A change of
  /// layout may stand on either side of the reshape.
  void carryAsReduced() {
    BlockArgument l = carried_.arg;
    Operation* add = carried_.next.getDefiningOp();
    auto type = dyn_cast<RankedTensorType>(l.getType());
    Operation* first = carried_.reader();
    if (!type || !add || add->getBlock() != carried_.body || !add->hasOneUse() || !first) return;
    if (!isa<math::FmaOp>(add) && !canWait(add)) return;
    const bool isScaled = first != add && isa<arith::MulFOp>(first) && isa<arith::AddFOp>(add) && first->hasOneUse() &&
                          *first->getUsers().begin() == add && first->getBlock() == add->getBlock();
    if (first != add && !isScaled) return;
    ReshapeOp flat;
    ConvertOp moved;
    for (Value operand : add->getOperands()) {
      auto convert = operand.getDefiningOp<ConvertOp>();
      const Value source = convert && convert->hasOneUse() ? convert.getSource() : operand;
      auto reshape = source.getDefiningOp<ReshapeOp>();
      if (!reshape || !reshape->hasOneUse()) continue;
      auto inner = reshape.getSource().getDefiningOp<ConvertOp>();
      auto sum = (inner && inner->hasOneUse() ? inner.getSource() : reshape.getSource()).getDefiningOp<ReduceOp>();
      if (!sum || !sum->hasOneUse() || !isAccumulatedBy(sum, add) || !axisDigits(sum)) continue;
      if (auto fma = dyn_cast<math::FmaOp>(add); fma && fma.getC() != operand) continue;
      flat = reshape, moved = source == operand ? ConvertOp() : convert;
    }
    if (!flat) return;
    auto reduced = cast<RankedTensorType>(flat.getSource().getType());
    const auto layout = layoutOf(type)->reshaped({reduced.getShape().begin(), reduced.getShape().end()});
    if (!layout) return;
    reduced = withLayout(RankedTensorType::get(reduced.getShape(), reduced.getElementType()), *layout);

    OpBuilder b(add);
    const Location loc = add->getLoc();
    Value sum = flat.getSource();
    if (sum.getType() != reduced) sum = ConvertOp::create(b, loc, reduced, sum);
    const Value replaced = moved ? moved.getResult() : flat.getResult();
    auto asReduced = [&](Operation* op) {
      OpBuilder here(op);
      for (OpOperand& operand : op->getOpOperands()) {
        if (operand.get() == replaced)
          operand.set(sum);
        else if (operand.get() != l && operand.get().getType() == type && operand.get().getDefiningOp() != first)
          operand.set(ReshapeOp::create(here, loc, reduced, operand.get()));
      }
      op->getResult(0).setType(reduced);
    };
    if (isScaled) asReduced(first);
    asReduced(add);
    if (moved) moved.erase();
    flat.erase();
    OpBuilder around(carried_.loop);
    carried_.init->set(reshaped(around, loc, carried_.init->get(), reduced));
    carried_.setType(reduced);
    around.setInsertionPointAfter(carried_.loop);
    auto back = ReshapeOp::create(around, loc, type, carried_.result);
    carried_.result.replaceAllUsesExcept(back.getResult(), back);
  }

  static Value reshaped(OpBuilder& b, Location loc, Value tile, RankedTensorType type) {
    DenseElementsAttr constant;
    if (matchPattern(tile, m_Constant(&constant)) && constant.isSplat())
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, constant.getSplatValue<Attribute>()));
    return ReshapeOp::create(b, loc, type, tile);
  }

  std::optional<Accumulation> match() {
    BlockArgument l = carried_.arg;
    Value next = carried_.next;
    Operation* add = next.getDefiningOp();
    if (!add || add->getBlock() != carried_.body || !next.hasOneUse() || !carried_.reader()) return std::nullopt;
    Accumulation found;
    found.add = add;
    auto other = [](Operation* op, Value v) { return op->getOperand(0) == v ? op->getOperand(1) : op->getOperand(0); };
    Value sum;
    if (auto fma = dyn_cast<math::FmaOp>(add)) {
      if (fma.getA() != l && fma.getB() != l) return std::nullopt;
      found.factor = other(add, l);
      sum = fma.getC();
    } else if (canWait(add)) {
      Operation* user = carried_.reader();
      if (user == add) {
        sum = other(add, l);
      } else if (!isa<arith::AddFOp>(add)) {
        return std::nullopt;
      } else if (isa<arith::MulFOp>(user) && user->getBlock() == add->getBlock() && user->hasOneUse() &&
                 *user->getUsers().begin() == add) {
        found.multiply = user;
        found.factor = other(user, l);
        sum = other(add, user->getResult(0));
      }
    }
    if (!sum || !sum.hasOneUse()) return std::nullopt;
    // Sums that are wanted under another layout behind the loop move there, once.
    if (auto convert = sum.getDefiningOp<ConvertOp>(); convert && !found.factor && convert.getSource().hasOneUse()) {
      found.moved = convert;
      sum = convert.getSource();
    }
    found.sum = sum.getDefiningOp<ReduceOp>();
    if (!found.sum || !isAccumulatedBy(found.sum, add) || !carried_.loop->isAncestor(found.sum)) return std::nullopt;
    return found;
  }

  /// The types that a sum takes on its way from the tile over a thread's registers to an element of each thread.
  struct PartialSum {
    AxisDigits digits;
    RankedTensorType split;    ///< the tile, with the axis cut where registers end
    RankedTensorType partial;  ///< what each thread has summed
    RankedTensorType whole;    ///< the sum
  };
  /// Nullopt: it cannot be left to the end.
  std::optional<PartialSum> partialOf(Accumulation& found) {
    auto digits = axisDigits(found.sum);
    if (!digits) return std::nullopt;
    auto source = cast<RankedTensorType>(found.sum.getSources()[0].getType());
    auto splitLayout = layoutOf(source)->reshaped({digits->split.begin(), digits->split.end()});
    if (!splitLayout) return std::nullopt;
    Layout reduced = *splitLayout;
    for (int dim : digits->registerDims) reduced = reduced.sliced(dim);
    auto partialLayout = reduced.reshaped({digits->partial.begin(), digits->partial.end()});
    if (!partialLayout) return std::nullopt;
    // What the accumulator and its factor hold must lie where the partial sums do.
    auto whole = cast<RankedTensorType>(found.moved ? found.sum.getResult(0).getType() : carried_.arg.getType());
    if (partialLayout->sliced(static_cast<int>(found.sum.getAxis())) != *layoutOf(whole)) return std::nullopt;
    if (found.factor && found.factor.getType() != whole) return std::nullopt;
    auto typed = [&](ArrayRef<int64_t> shape, const Layout& layout) {
      return withLayout(RankedTensorType::get(shape, source.getElementType()), layout);
    };
    return PartialSum{*digits, typed(digits->split, *splitLayout), typed(digits->partial, *partialLayout), whole};
  }

  void rewrite(Accumulation& found) {
    const auto types = partialOf(found);
    if (!types) return;
    const Type wanted = carried_.arg.getType();
    Value part = sumOfRegisters(found, *types);
    const Value start = shareInit(found, *types);
    carried_.setType(types->partial);
    accumulate(found, part, types->partial);
    sumBehind(found, *types, start, wanted);
    if (found.moved) found.moved.erase();
    found.sum.erase();
  }

  /// In the loop, the sum over the registers of each thread.
  Value sumOfRegisters(Accumulation& found, const PartialSum& types) {
    Location loc = found.sum.getLoc();
    OpBuilder b(found.sum);
    Value tile = ReshapeOp::create(b, loc, types.split, found.sum.getSources()[0]);
    SmallVector<int64_t> shape = types.digits.split;
    Layout layout = *layoutOf(types.split);
    SmallVector<int> order(llvm::reverse(types.digits.registerDims));
    // Products are added by the first of these sums: it should be the longest.
    if (!keepsEqual(found.add) && sumsProducts(found.sum))
      llvm::stable_sort(order, [&](int a, int b) { return types.digits.split[a] > types.digits.split[b]; });
    for (int dim : order) {
      shape[dim] = 1;
      layout = layout.sliced(dim);
      tile = reduce(b, found.sum, tile, dim,
                    withLayout(RankedTensorType::get(shape, types.split.getElementType()), layout));
    }
    return ReshapeOp::create(b, loc, types.partial, tile);
  }

  /// In front of the loop, what each thread begins with: an equal share of the initial value for every thread along the
  /// axis (their number is a power of two), or all of it where that is the same; integers are 0, and the initial value
  /// (returned, if it is not 0) is added behind the loop.
  Value shareInit(Accumulation& found, const PartialSum& types) {
    Location loc = found.sum.getLoc();
    OpBuilder b(carried_.loop);
    OpOperand& init = *carried_.init;
    if (found.moved) init.set(underLayoutOf(b, init.get(), types.whole));
    Value start, shares;
    if (addsIntegers(found.add)) {
      if (!matchPattern(init.get(), m_Zero())) start = init.get();
      shares = arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(types.partial)));
    } else {
      shares = BroadcastOp::create(b, loc, types.partial, init.get());
    }
    const Type element = types.partial.getElementType();
    if (isa<FloatType>(element) && !keepsEqual(found.add)) {
      const double share = 1.0 / static_cast<double>(types.digits.threads);
      Value portion =
          arith::ConstantOp::create(b, loc, DenseElementsAttr::get(types.partial, b.getFloatAttr(element, share)));
      shares = arith::MulFOp::create(b, loc, shares, portion);
    }
    init.set(shares);
    return start;
  }

  /// In the loop, makes the accumulator, and its factor, those of each thread.
  void accumulate(Accumulation& found, Value part, RankedTensorType partial) {
    if (found.factor) {
      Operation* first = found.multiply ? found.multiply : found.add;
      OpBuilder b(first);
      Value factor = BroadcastOp::create(b, found.sum.getLoc(), partial, found.factor);
      first->replaceUsesOfWith(found.factor, factor);
    }
    if (found.multiply) found.multiply->getResult(0).setType(partial);
    found.add->replaceUsesOfWith(found.moved ? found.moved.getResult() : found.sum.getResult(0), part);
    found.add->getResult(0).setType(partial);
  }

  /// Behind the loop, the sum over threads.
  void sumBehind(Accumulation& found, const PartialSum& types, Value start, Type wanted) {
    SmallVector<OpOperand*> uses;
    for (OpOperand& use : carried_.result.getUses()) uses.push_back(&use);
    if (uses.empty()) return;
    OpBuilder b(carried_.loop->getContext());
    b.setInsertionPointAfter(carried_.loop);
    Value total = reduce(b, found.sum, carried_.result, static_cast<int>(found.sum.getAxis()), types.whole);
    if (start) {
      IRMapping map;
      for (Value operand : found.add->getOperands()) map.map(operand, operand == carried_.arg ? start : total);
      Operation* all = b.clone(*found.add, map);
      all->getResult(0).setType(total.getType());
      total = all->getResult(0);
    }
    if (found.moved) total = ConvertOp::create(b, found.sum.getLoc(), wanted, total);
    for (OpOperand* use : uses) use->set(total);
  }

  static Value underLayoutOf(OpBuilder& b, Value tile, RankedTensorType type) {
    DenseElementsAttr constant;
    if (matchPattern(tile, m_Constant(&constant)) && constant.isSplat())
      return arith::ConstantOp::create(b, tile.getLoc(),
                                       DenseElementsAttr::get(type, constant.getSplatValue<Attribute>()));
    return ConvertOp::create(b, tile.getLoc(), type, tile);
  }

  /// The same combiner over another tile.
  Value reduce(OpBuilder& b, ReduceOp like, Value tile, int axis, RankedTensorType type) {
    IRMapping map;
    map.map(like.getSources()[0], tile);
    auto made = cast<ReduceOp>(b.clone(*like, map));
    made.setAxis(static_cast<uint32_t>(axis));
    made.getResult(0).setType(type);
    return made.getResult(0);
  }

  Carried carried_;
};

class DeferReductionsPass : public PassWrapper<DeferReductionsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DeferReductionsPass)
  StringRef getArgument() const override { return "tile-defer-reductions"; }
  StringRef getDescription() const override {
    return "sums that loops only accumulate are taken across threads behind them";
  }
  void getDependentDialects(DialectRegistry& registry) const override {
    registry.insert<TileDialect, arith::ArithDialect>();
  }
  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    getOperation().walk([](Operation* loop) {
      for (Carried& carried : carriedBy(loop)) Deferral(std::move(carried)).run();
    });
  }
};

}  // namespace

std::unique_ptr<Pass> createDeferReductionsPass() { return std::make_unique<DeferReductionsPass>(); }

}  // namespace tile::ir
