// facts.cpp - one forward pass over structured IR. Loops start from what enters them and join what comes round until
// nothing changes; ranges that keep growing jump to their type's limits, so it ends after a few rounds.
#include "compiler/analysis/facts.h"

#include "compiler/analysis/axis_facts.h"
#include "compiler/analysis/difference.h"
#include "compiler/analysis/no_wrap.h"
#include "compiler/dialect/dialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tile::ir {
using namespace mlir;

namespace {

Shape shapeOf(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type)) return tensor.getShape();
  return {};
}

unsigned bitsOf(Type type) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  return integer ? std::min(integer.getWidth(), 64u) : 64u;
}

bool isInteger(Type type) { return isa<IntegerType>(getElementTypeOrSelf(type)); }

int64_t elementBytes(Type ptrOrView) {
  Type element = ptrOrView;
  if (auto ptr = dyn_cast<PtrType>(getElementTypeOrSelf(ptrOrView))) element = ptr.getElementType();
  if (auto view = dyn_cast<ViewType>(ptrOrView)) element = view.getElementType();
  return element.isIntOrFloat() ? std::max<int64_t>(element.getIntOrFloatBitWidth() / 8, 1) : 1;
}

ViewFacts unknownView(ViewType type) {
  ViewFacts v;
  v.align = elementBytes(type);
  v.strideDivisibility.assign(type.getRank(), 1);
  v.dimDivisibility.assign(type.getRank(), 1);
  return v;
}

ViewFacts joinView(const ViewFacts& a, const ViewFacts& b) {
  ViewFacts r = a;
  r.align = std::min(a.align, b.align);
  if (a.unitStrideDim != b.unitStrideDim) r.unitStrideDim = -1;
  for (size_t d = 0; d < r.strideDivisibility.size(); ++d) {
    r.strideDivisibility[d] = std::min(a.strideDivisibility[d], b.strideDivisibility[d]);
    r.dimDivisibility[d] = std::min(a.dimDivisibility[d], b.dimDivisibility[d]);
  }
  return r;
}

}  // namespace

/// Fills the maps of a Facts.
class FactsBuilder {
 public:
  explicit FactsBuilder(Facts& facts) : facts_(facts) {}

  void function(FunctionOpInterface func) {
    for (BlockArgument arg : func.getArguments()) argument(func, arg);
    for (Block& block : func.getFunctionBody()) run(block);
  }

 private:
  /// Everything known about one value, to carry it across region boundaries.
  struct Known {
    std::optional<AxisFacts> axis;
    std::optional<Range> range;
    std::optional<int64_t> align;
    std::optional<ViewFacts> view;
    bool operator==(const Known&) const = default;
  };

  Known known(Value v) const {
    Known k;
    if (isInteger(v.getType())) k.axis = facts_.of(v), k.range = facts_.rangeOf(v);
    if (isa<PtrType>(v.getType())) k.align = facts_.alignOf(v);
    if (auto type = dyn_cast<ViewType>(v.getType())) {
      auto it = facts_.views_.find(v);
      k.view = it == facts_.views_.end() ? unknownView(type) : it->second;
    }
    return k;
  }

  static Known join(const Known& a, const Known& b) {
    Known r;
    if (a.axis) r.axis = joinAxis(*a.axis, *b.axis), r.range = ir::join(*a.range, *b.range);
    if (a.align) r.align = std::min(*a.align, *b.align);
    if (a.view) r.view = joinView(*a.view, *b.view);
    return r;
  }

  void set(Value v, const Known& k) {
    if (k.axis) facts_.axis_[v] = *k.axis;
    if (k.range) facts_.range_[v] = *k.range;
    if (k.align) facts_.align_[v] = *k.align;
    if (k.view) facts_.views_[v] = *k.view;
  }
  void set(Value v, AxisFacts axis, Range range) {
    // The last multiple of a block's size, and the numbers of the block on top of it, do not wrap.
    facts_.range_[v] = multiplesIn(wrapped(range, bitsOf(v.getType())), elementDivisibility(axis));
    facts_.axis_[v] = std::move(axis);
  }
  void forget(Value v) {
    facts_.axis_.erase(v);
    facts_.range_.erase(v);
    facts_.align_.erase(v);
    facts_.views_.erase(v);
  }

  void run(Block& block) {
    for (Operation& op : block) visit(&op);
  }

  // ---- sources of facts

  void argument(FunctionOpInterface func, BlockArgument arg) {
    const unsigned n = arg.getArgNumber();
    auto number = [&](StringRef name) -> int64_t {
      auto attr = func.getArgAttrOfType<IntegerAttr>(n, name);
      return attr && attr.getInt() > 0 ? powerOfTwoIn(attr.getInt()) : 1;
    };
    if (isInteger(arg.getType())) {
      AxisFacts axis = constantAxis(shapeOf(arg.getType()), number("tile.multiple_of"));
      set(arg, axis, fullRange(bitsOf(arg.getType())));
    } else if (isa<PtrType>(arg.getType())) {
      facts_.align_[arg] = std::max(elementBytes(arg.getType()), number("tile.align"));
    } else if (auto type = dyn_cast<ViewType>(arg.getType())) {
      ViewFacts view = unknownView(type);
      view.align = std::max(view.align, number("tile.align"));
      if (auto attr = func.getArgAttrOfType<IntegerAttr>(n, "tile.unit_stride"))
        if (attr.getInt() >= 0 && attr.getInt() < type.getRank()) view.unitStrideDim = static_cast<int>(attr.getInt());
      auto list = [&](StringRef name, SmallVector<int64_t, 4>& into) {
        auto attr = func.getArgAttrOfType<DenseI32ArrayAttr>(n, name);
        for (size_t d = 0; attr && d < into.size() && d < static_cast<size_t>(attr.size()); ++d)
          if (attr[d] > 0) into[d] = powerOfTwoIn(attr[d]);
      };
      list("tile.stride_multiple_of", view.strideDivisibility);
      list("tile.dim_multiple_of", view.dimDivisibility);
      facts_.views_[arg] = view;
    }
  }

  // ---- control flow

  /// Runs `body` (which sets what comes round for each argument) until the arguments' facts hold for every round.
  void fixedPoint(Block::BlockArgListType args, ValueRange inits, llvm::function_ref<SmallVector<Value>()> body) {
    std::vector<Known> state;
    for (Value init : inits) state.push_back(known(init));
    for (int round = 0;; ++round) {
      for (auto [arg, k] : llvm::zip(args, state)) set(arg, k);
      SmallVector<Value> back = body();
      bool changed = false;
      for (size_t i = 0; i < state.size(); ++i) {
        Known next = join(state[i], known(back[i]));
        if (next == state[i]) continue;
        changed = true;
        if (next.range && next.range != state[i].range && round >= 1) next.range = widened(*state[i].range, *next.range, bitsOf(args[i].getType()));
        state[i] = next;
      }
      if (!changed) return;
    }
  }

  static Range widened(Range before, Range after, unsigned bits) {
    const Range full = fullRange(bits);
    return {after.min < before.min ? full.min : after.min, after.max > before.max ? full.max : after.max};
  }

  void visitFor(scf::ForOp loop) {
    Range lower = facts_.rangeOf(loop.getLowerBound()), upper = facts_.rangeOf(loop.getUpperBound());
    Range iv{lower.min, std::max(lower.min, upper.max == fullRange(64).min ? upper.max : upper.max - 1)};
    if (loop.getUnsignedCmp()) iv = fullRange(bitsOf(loop.getInductionVar().getType()));
    const int64_t step = facts_.divisibility(loop.getLowerBound());
    set(loop.getInductionVar(), constantAxis({}, std::min(step, facts_.divisibility(loop.getStep()))), iv);
    fixedPoint(loop.getRegionIterArgs(), loop.getInitArgs(), [&] {
      run(*loop.getBody());
      return SmallVector<Value>(loop.getYieldedValues());
    });
    for (auto [result, arg] : llvm::zip(loop.getResults(), loop.getRegionIterArgs())) set(result, known(arg));
  }

  void visitWhile(scf::WhileOp loop) {
    fixedPoint(loop.getBeforeArguments(), loop.getInits(), [&] {
      run(*loop.getBeforeBody());
      for (auto [arg, value] : llvm::zip(loop.getAfterArguments(), loop.getConditionOp().getArgs())) set(arg, known(value));
      run(*loop.getAfterBody());
      return SmallVector<Value>(loop.getYieldOp().getOperands());
    });
    for (auto [result, value] : llvm::zip(loop.getResults(), loop.getConditionOp().getArgs())) set(result, known(value));
  }

  // Sums that promise not to wrap (nsw) are computed wide and cut to what the type holds.
  template <class Op>
  static unsigned width(Op op, unsigned bits) {
    return neverWraps(op) ? 64 : bits;
  }
  template <class Op>
  static Range exact(Op op, Range r, unsigned bits) {
    if (width(op, bits) == bits) return r;
    return cut(fullRange(bits), r);
  }

  Range differenceOf(arith::SubIOp op, Range a, Range b, unsigned bits) const {
    Range r = exact(op, subRange(a, b, width(op, bits)), bits);
    if (shapeOf(op.getType()).empty()) {
      const Range parts = differenceRange(op.getLhs(), op.getRhs(), [&](Value v) { return facts_.rangeOf(v); });
      const Range full = fullRange(bits);
      // Of numbers; it is the result where that cannot wrap.
      if (full.min <= parts.min && parts.max <= full.max) r = cut(r, parts);
    }
    return r;
  }
  /// What both hold; the first where they contradict each other (code that never runs).
  static Range cut(Range a, Range b) {
    const Range both{std::max(a.min, b.min), std::min(a.max, b.max)};
    return both.min <= both.max ? both : a;
  }

  void visitIf(scf::IfOp op) {
    run(*op.thenBlock());
    if (!op.elseBlock()) return;
    run(*op.elseBlock());
    for (auto [i, result] : llvm::enumerate(op.getResults()))
      set(result, join(known(op.thenYield().getOperand(i)), known(op.elseYield().getOperand(i))));
  }

  // ---- pointers and views

  void visitMakeView(MakeViewOp op) {
    ViewFacts view = unknownView(op.getResult().getType());
    view.align = facts_.alignOf(op.getPtr());
    for (auto [d, dim, stride] : llvm::enumerate(op.getDims(), op.getStrides())) {
      view.dimDivisibility[d] = facts_.divisibility(dim);
      view.strideDivisibility[d] = facts_.divisibility(stride);
      if (facts_.rangeOf(stride) == Range{1, 1}) view.unitStrideDim = static_cast<int>(d);  // the last one wins
    }
    facts_.views_[op.getResult()] = view;
  }

  void visit(Operation* op) {
    for (Value result : op->getResults()) forget(result);
    if (auto loop = dyn_cast<scf::ForOp>(op)) return visitFor(loop);
    if (auto loop = dyn_cast<scf::WhileOp>(op)) return visitWhile(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op)) return visitIf(branch);
    if (auto loop = dyn_cast<WorkLoopOp>(op))  // program ids
      for (BlockArgument id : loop.getBody().getArguments()) set(id, unknownAxis({}), {0, fullRange(32).max - 1});
    if (auto taken = dyn_cast<TakeOverOp>(op)) {
      for (auto [value, same] : llvm::zip(taken.getValues(), taken.getResults())) set(same, known(value));
      return;
    }
    if (auto make = dyn_cast<MakeViewOp>(op)) return visitMakeView(make);
    if (auto add = dyn_cast<PtrAddOp>(op)) {
      if (isa<PtrType>(add.getPtr().getType()))
        facts_.align_[add.getResult()] = std::max(elementBytes(add.getPtr().getType()),
                                                  std::min(facts_.alignOf(add.getPtr()), facts_.divisibility(add.getOffset()) * elementBytes(add.getPtr().getType())));
      return;
    }
    if (auto pointer = dyn_cast<IntToPtrOp>(op)) {
      facts_.align_[pointer.getResult()] =
          std::max(elementBytes(pointer.getType()), facts_.divisibility(pointer.getAddress()));
      return;
    }
    if (auto ptr = dyn_cast<ViewPtrOp>(op)) {
      facts_.align_[ptr.getResult()] = facts_.alignOf(ptr.getView());
      return;
    }
    if (auto select = dyn_cast<arith::SelectOp>(op); select && !isInteger(select.getType())) {
      if (!isa<RankedTensorType>(select.getType()))
        set(select.getResult(), join(known(select.getTrueValue()), known(select.getFalseValue())));
      return;
    }
    if (op->getNumResults() == 1 && isInteger(op->getResult(0).getType())) visitInteger(op, op->getResult(0));
    for (Region& region : op->getRegions())  // combiners: nothing known about their arguments
      for (Block& block : region) run(block);
  }

  // ---- integers

  std::optional<int64_t> constantOf(Value v) const {
    Range r = facts_.rangeOf(v);
    if (r.isConstant()) return r.min;
    return std::nullopt;
  }

  void visitInteger(Operation* op, Value result) {
    const Shape shape = shapeOf(result.getType());
    const unsigned bits = bitsOf(result.getType());
    auto axis = [&](unsigned i) { return facts_.of(op->getOperand(i)); };
    auto range = [&](unsigned i) { return facts_.rangeOf(op->getOperand(i)); };
    auto operandsAxis = [&] {
      SmallVector<AxisFacts> operands;
      for (Value v : op->getOperands())
        if (isInteger(v.getType()) && shapeOf(v.getType()) == shape) operands.push_back(facts_.of(v));
        else return unknownAxis(shape);
      return elementwiseAxis(shape, operands);
    };

    llvm::TypeSwitch<Operation*>(op)
        .Case<arith::ConstantOp>([&](auto c) {
          Attribute value = c.getValue();
          if (auto splat = dyn_cast<SplatElementsAttr>(value)) value = splat.getSplatValue<Attribute>();
          if (auto integer = dyn_cast<IntegerAttr>(value)) {
            const int64_t v = bits == 1 ? integer.getValue().getZExtValue() : integer.getValue().getSExtValue();
            set(result, constantAxis(shape, powerOfTwoIn(v)), {v, v});
          } else if (auto dense = dyn_cast<DenseIntElementsAttr>(value)) {
            Range r = fullRange(bits);
            bool first = true;
            for (APInt element : dense.getValues<APInt>()) {
              const int64_t v = bits == 1 ? element.getZExtValue() : element.getSExtValue();
              r = first ? Range{v, v} : ir::join(r, {v, v});
              first = false;
            }
            set(result, unknownAxis(shape), r);
          }
        })
        .Case<ProgramIdOp>([&](auto) { set(result, unknownAxis({}), {0, fullRange(32).max - 1}); })
        .Case<RingReserveOp, RingAcquireOp>([&](auto o) {
          set(result, unknownAxis({}), {0, o.getRing().getType().getStages() - 1});
        })
        .Case<NumProgramsOp>([&](auto) { set(result, unknownAxis({}), {1, fullRange(32).max}); })
        .Case<ViewDimOp>([&](auto d) {  // a launch with a negative dim is refused
          set(result, constantAxis({}, facts_.dimDivisibility(d.getView(), d.getDim())), {0, fullRange(64).max});
        })
        .Case<ViewStrideOp>([&](auto d) {
          const bool unit = facts_.unitStrideDim(d.getView()) == static_cast<int>(d.getDim());
          set(result, constantAxis({}, facts_.strideDivisibility(d.getView(), d.getDim())), unit ? Range{1, 1} : fullRange(64));
        })
        .Case<PtrToIntOp>([&](auto p) { set(result, constantAxis({}, facts_.alignOf(p.getPtr())), fullRange(64)); })
        .Case<IotaOp>([&](auto iota) {
          const int64_t start = iota.getStart();
          set(result, iotaAxis(start, shape[0]), {start, start + shape[0] - 1});
        })
        .Case<ConvertOp>([&](auto) { set(result, axis(0), range(0)); })
        .Case<SplatOp>([&](auto) { set(result, constantAxis(shape, elementDivisibility(axis(0))), range(0)); })
        .Case<BroadcastOp>([&](auto) { set(result, broadcastAxis(axis(0), shapeOf(op->getOperand(0).getType()), shape), range(0)); })
        .Case<ReshapeOp>([&](auto) { set(result, reshapeAxis(axis(0), shapeOf(op->getOperand(0).getType()), shape), range(0)); })
        .Case<TransOp>([&](auto t) { set(result, transposeAxis(axis(0), t.getPermutation()), range(0)); })
        .Case<ExtractOp>([&](auto e) { set(result, extractAxis(axis(0), e.getOffsets(), shape), range(0)); })
        .Case<ItemOp>([&](auto) { set(result, constantAxis({}, elementDivisibility(axis(0))), range(0)); })
        .Case<CatOp>([&](auto) {
          Range r = range(0);
          for (Value v : op->getOperands()) r = ir::join(r, facts_.rangeOf(v));
          set(result, unknownAxis(shape), r);
        })
        .Case<TakeOp>([&](auto) { forget(result); })
        .Case<HistogramOp>([&](auto h) { set(result, unknownAxis(shape), {0, h.getSource().getType().getNumElements()}); })
        .Case<AssumeOp>([&](auto a) {
          AxisFacts r = axis(0);
          for (int64_t& d : r.divisibility) d = std::max(d, powerOfTwoIn(a.getMultipleOf()));
          set(result, r, range(0));
        })
        .Case<arith::AddIOp>([&](auto o) { set(result, addAxis(axis(0), axis(1)), exact(o, addRange(range(0), range(1), width(o, bits)), bits)); })
        .Case<arith::SubIOp>([&](auto o) { set(result, subAxis(axis(0), axis(1)), differenceOf(o, range(0), range(1), bits)); })
        .Case<arith::MulIOp>([&](auto) {
          AxisFacts r = constantOf(op->getOperand(1)) == 1   ? axis(0)
                        : constantOf(op->getOperand(0)) == 1 ? axis(1)
                                                             : mulAxis(axis(0), axis(1));
          set(result, r, mulRange(range(0), range(1), bits));
        })
        .Case<arith::ShLIOp>([&](auto) {
          auto amount = constantOf(op->getOperand(1));
          if (!amount || *amount < 0 || *amount >= static_cast<int64_t>(bits) || *amount > 62) return set(result, operandsAxis(), fullRange(bits));
          const int64_t factor = int64_t{1} << *amount;
          set(result, factor == 1 ? axis(0) : mulAxis(axis(0), constantAxis(shape, powerOfTwoIn(factor))),
              mulRange(range(0), {factor, factor}, bits));
        })
        .Case<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp, arith::RemSIOp, arith::DivUIOp, arith::CeilDivUIOp,
              arith::RemUIOp, arith::ShRSIOp, arith::ShRUIOp>([&](Operation*) { visitDivision(op, result); })
        .Case<arith::AndIOp>([&](auto) {
          auto mask = constantOf(op->getOperand(1));
          Range r = bits == 1 ? Range{0, 1} : andRange(range(0), range(1), bits);
          if (mask && *mask > 0 && ((*mask + 1) & *mask) == 0 && bits > 1)  // 2^k - 1 keeps a remainder
            return set(result, floorRemAxis(axis(0), *mask + 1), r);
          AxisFacts facts = operandsAxis();
          if (bits > 1)
            for (int64_t& d : facts.divisibility) d = std::max(elementDivisibility(axis(0)), elementDivisibility(axis(1)));
          set(result, facts, r);
        })
        .Case<arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp>([&](Operation*) {
          Range a = range(0), b = range(1);
          Range r = isa<arith::MinSIOp>(op)   ? minRange(a, b)
                    : isa<arith::MaxSIOp>(op) ? maxRange(a, b)
                    : a.isNonNegative() && b.isNonNegative()
                        ? (isa<arith::MinUIOp>(op) ? minRange(a, b) : maxRange(a, b))
                        : ir::join(a, b);
          set(result, eitherAxis(axis(0), axis(1)), r);
        })
        .Case<arith::SelectOp>([&](auto select) {
          AxisFacts condition = facts_.of(select.getCondition());
          AxisFacts r = isa<RankedTensorType>(select.getCondition().getType()) || shape.empty()
                            ? selectAxis(condition, axis(1), axis(2))
                            : joinAxis(axis(1), axis(2));
          set(result, r, ir::join(range(1), range(2)));
        })
        .Case<arith::ExtSIOp>([&](auto ext) {
          // i1 extends to 0 or -1.
          set(result, bitsOf(ext.getIn().getType()) == 1 ? operandsAxis() : axis(0), bitsOf(ext.getIn().getType()) == 1 ? Range{-1, 0} : range(0));
        })
        .Case<arith::ExtUIOp>([&](auto ext) {
          const unsigned from = bitsOf(ext.getIn().getType());
          Range r = range(0);
          if (!r.isNonNegative()) r = {0, from >= 64 ? fullRange(64).max : (int64_t{1} << from) - 1};
          // Without a sign the bits mean the same; with one, runs may jump where the sign changes, but not runs aligned
          // to their own length.
          set(result, range(0).isNonNegative() || from == 1 ? axis(0) : floorRemAxis(axis(0), kZeroDivisibility), r);
        })
        .Case<arith::TruncIOp>([&](auto o) {
          if (bits == 1) return set(result, operandsAxis(), {0, 1});
          set(result, axis(0), wrapped(exact(o, range(0), bits), bits));
        })
        .Case<arith::CmpIOp>([&](auto cmp) { visitCompare(cmp); })
        .Case<ReduceOp, ScanOp>([&](Operation*) { forget(result); })
        .Default([&](Operation*) {
          if (op->hasTrait<OpTrait::Elementwise>()) set(result, operandsAxis(), fullRange(bits));
        });
  }

  /// Of what is not negative by what is positive, rounding up.
  static Range ceilRange(Range dividend, Range by, unsigned bits) {
    const Range floor = divRange(dividend, by, bits);
    if (!by.isConstant()) return addRange(floor, {0, 1}, bits);
    auto ceil = [&](int64_t v, int64_t down) { return down + (v % by.min != 0); };
    return {ceil(dividend.min, floor.min), ceil(dividend.max, floor.max)};
  }

  void visitDivision(Operation* op, Value result) {
    const Shape shape = shapeOf(result.getType());
    const unsigned bits = bitsOf(result.getType());
    const AxisFacts a = facts_.of(op->getOperand(0)), b = facts_.of(op->getOperand(1));
    const Range dividend = facts_.rangeOf(op->getOperand(0)), divisor = facts_.rangeOf(op->getOperand(1));
    const bool shift = isa<arith::ShRSIOp, arith::ShRUIOp>(op), remainder = isa<arith::RemSIOp, arith::RemUIOp>(op);
    const bool ceils = isa<arith::CeilDivSIOp, arith::CeilDivUIOp>(op), floors = isa<arith::FloorDivSIOp, arith::ShRSIOp>(op);
    const bool isUnsigned = isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp, arith::ShRUIOp>(op);

    Range by = divisor;
    if (shift) {  // by 2^k
      if (divisor.min < 0 || divisor.max >= std::min<int64_t>(bits, 62)) return set(result, elementwiseAxis(shape, {a, b}), fullRange(bits));
      by = {int64_t{1} << divisor.min, int64_t{1} << divisor.max};
    }
    Range range = fullRange(bits);
    if (dividend.isNonNegative() && by.min > 0)
      range = ceils       ? ceilRange(dividend, by, bits)
              : remainder ? remRange(dividend, by, bits)
                          : divRange(dividend, by, bits);
    else if (isa<arith::RemUIOp>(op) && by.min > 0)
      range = {0, by.max - 1};
    else if (!isUnsigned && isa<arith::DivSIOp>(op))
      range = divRange(dividend, by, bits);
    else if (!isUnsigned && remainder)
      range = remRange(dividend, by, bits);

    const bool likeFloor = isUnsigned || floors || dividend.isNonNegative();
    const bool sameForAll = shape.empty() || llvm::equal(b.constancy, shape);
    AxisFacts axis = elementwiseAxis(shape, {a, b});
    // By a number of the launch (the tutorial's `rows % M`): dividends are taken not to be negative, as their range
    // can rarely be known. README of the language says so.
    if (!by.isConstant() && !shift && !ceils && sameForAll)
      axis = remainder ? floorRemAxis(a, elementDivisibility(b)) : floorDivAxis(a, elementDivisibility(b), false);
    else if (by.isConstant() && by.min > 0 && likeFloor && !ceils)
      axis = remainder ? floorRemAxis(a, by.min) : floorDivAxis(a, by.min);
    else if (by.isConstant() && by.min > 0 && remainder)  // the remainder of a multiple is a multiple, of either sign
      for (int64_t& d : axis.divisibility) d = std::min(elementDivisibility(a), powerOfTwoIn(by.min));
    set(result, axis, range);
  }

  void visitCompare(arith::CmpIOp cmp) {
    using P = arith::CmpIPredicate;
    const Shape shape = shapeOf(cmp.getType());
    AxisFacts a = facts_.of(cmp.getLhs()), b = facts_.of(cmp.getRhs());
    AxisFacts axis = elementwiseAxis(shape, {a, b});
    switch (cmp.getPredicate()) {
      case P::slt: case P::sge: case P::ult: case P::uge: axis = compareAxis(shape, a, b); break;
      case P::sgt: case P::sle: case P::ugt: case P::ule: axis = compareAxis(shape, b, a); break;
      default: break;
    }
    set(cmp.getResult(), axis, comparedRange(cmp));
  }

  /// 0 or 1 where the operands' ranges decide.
  Range comparedRange(arith::CmpIOp cmp) const {
    using P = arith::CmpIPredicate;
    const Range a = facts_.rangeOf(cmp.getLhs()), b = facts_.rangeOf(cmp.getRhs());
    auto decide = [](bool yes, bool no) { return yes ? Range{1, 1} : no ? Range{0, 0} : Range{0, 1}; };
    P p = cmp.getPredicate();
    const bool isUnsigned = p == P::ult || p == P::ule || p == P::ugt || p == P::uge;
    if (isUnsigned && !(a.isNonNegative() && b.isNonNegative())) return {0, 1};
    switch (p) {
      case P::eq: return decide(a.isConstant() && a == b, a.max < b.min || b.max < a.min);
      case P::ne: return decide(a.max < b.min || b.max < a.min, a.isConstant() && a == b);
      case P::slt: case P::ult: return decide(a.max < b.min, a.min >= b.max);
      case P::sle: case P::ule: return decide(a.max <= b.min, a.min > b.max);
      case P::sgt: case P::ugt: return decide(a.min > b.max, a.max <= b.min);
      case P::sge: case P::uge: return decide(a.min >= b.max, a.max < b.min);
    }
    return {0, 1};
  }

  Facts& facts_;
};

Facts::Facts(Operation* func) {
  if (auto f = dyn_cast<FunctionOpInterface>(func); f && !f.isExternal()) FactsBuilder(*this).function(f);
}

AxisFacts Facts::of(Value value) const {
  auto it = axis_.find(value);
  return it == axis_.end() ? unknownAxis(shapeOf(value.getType())) : it->second;
}

int64_t Facts::divisibility(Value value) const { return elementDivisibility(of(value)); }

Range Facts::rangeOf(Value value) const {
  auto it = range_.find(value);
  return it == range_.end() ? fullRange(bitsOf(value.getType())) : it->second;
}

int64_t Facts::alignOf(Value v) const {
  if (auto it = views_.find(v); it != views_.end()) return it->second.align;
  auto it = align_.find(v);
  return it == align_.end() ? elementBytes(v.getType()) : it->second;
}

int Facts::unitStrideDim(Value view) const {
  auto it = views_.find(view);
  return it == views_.end() ? -1 : it->second.unitStrideDim;
}

int64_t Facts::strideDivisibility(Value view, int dim) const {
  auto it = views_.find(view);
  return it == views_.end() ? 1 : it->second.strideDivisibility[dim];
}

int64_t Facts::dimDivisibility(Value view, int dim) const {
  auto it = views_.find(view);
  return it == views_.end() ? 1 : it->second.dimDivisibility[dim];
}

}  // namespace tile::ir
