// facts.cpp - one forward pass over structured IR. Loops start from what enters them and join what comes round until
// nothing changes; ranges that keep growing jump to their type's limits, so it ends after a few rounds.
#include "compiler/analysis/facts.h"

#include "compiler/analysis/integer_facts.h"
#include "compiler/dialect/dialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace tile::ir {
using namespace mlir;

namespace {

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
    if (isIntegerType(v.getType())) k.axis = facts_.of(v), k.range = facts_.rangeOf(v);
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
    facts_.range_[v] = multiplesIn(wrapped(range, integerBits(v.getType())), elementDivisibility(axis));
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
    if (isIntegerType(arg.getType())) {
      AxisFacts axis = constantAxis(shapeOfType(arg.getType()), number("tile.multiple_of"));
      Range range = fullRange(integerBits(arg.getType()));
      if (auto attr = func.getArgAttrOfType<IntegerAttr>(n, kAtLeastAttr)) range.min = attr.getInt();
      if (auto attr = func.getArgAttrOfType<IntegerAttr>(n, kAtMostAttr)) range.max = attr.getInt();
      set(arg, axis, range);
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

  /// Runs `body` (which sets what comes round for each argument) until the arguments' facts hold for every round. A
  /// loop in another one goes on from what it found in the other's round before, which can only have grown: else every
  /// level of nesting would double the work.
  void fixedPoint(Operation* loop, Block::BlockArgListType args, ValueRange inits,
                  llvm::function_ref<SmallVector<Value>()> body) {
    std::vector<Known> state;
    const auto before = loops_.find(loop);
    for (auto [i, init] : llvm::enumerate(inits))
      state.push_back(before == loops_.end() ? known(init) : join(before->second[i], known(init)));
    for (int round = 0;; ++round) {
      for (auto [arg, k] : llvm::zip(args, state)) set(arg, k);
      SmallVector<Value> back = body();
      bool changed = false;
      for (size_t i = 0; i < state.size(); ++i) {
        Known next = join(state[i], known(back[i]));
        if (next == state[i]) continue;
        changed = true;
        if (next.range && next.range != state[i].range && round >= 1)
          next.range = widened(*state[i].range, *next.range, integerBits(args[i].getType()));
        state[i] = next;
      }
      if (changed) continue;
      loops_[loop] = std::move(state);
      return;
    }
  }

  static Range widened(Range before, Range after, unsigned bits) {
    const Range full = fullRange(bits);
    return {after.min < before.min ? full.min : after.min, after.max > before.max ? full.max : after.max};
  }

  void visitFor(scf::ForOp loop) {
    Range lower = facts_.rangeOf(loop.getLowerBound()), upper = facts_.rangeOf(loop.getUpperBound());
    Range iv{lower.min, std::max(lower.min, upper.max == fullRange(64).min ? upper.max : upper.max - 1)};
    if (loop.getUnsignedCmp()) iv = fullRange(integerBits(loop.getInductionVar().getType()));
    const int64_t step = facts_.divisibility(loop.getLowerBound());
    set(loop.getInductionVar(), constantAxis({}, std::min(step, facts_.divisibility(loop.getStep()))), iv);
    fixedPoint(loop, loop.getRegionIterArgs(), loop.getInitArgs(), [&] {
      run(*loop.getBody());
      return SmallVector<Value>(loop.getYieldedValues());
    });
    for (auto [result, arg] : llvm::zip(loop.getResults(), loop.getRegionIterArgs())) set(result, known(arg));
  }

  void visitWhile(scf::WhileOp loop) {
    fixedPoint(loop, loop.getBeforeArguments(), loop.getInits(), [&] {
      run(*loop.getBeforeBody());
      for (auto [arg, value] : llvm::zip(loop.getAfterArguments(), loop.getConditionOp().getArgs()))
        set(arg, known(value));
      run(*loop.getAfterBody());
      return SmallVector<Value>(loop.getYieldOp().getOperands());
    });
    for (auto [result, value] : llvm::zip(loop.getResults(), loop.getConditionOp().getArgs()))
      set(result, known(value));
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
      const int64_t bytes = elementBytes(add.getPtr().getType());
      if (isa<PtrType>(add.getPtr().getType()))
        facts_.align_[add.getResult()] =
            std::max(bytes, std::min(facts_.alignOf(add.getPtr()), facts_.divisibility(add.getOffset()) * bytes));
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
    if (auto select = dyn_cast<arith::SelectOp>(op); select && !isIntegerType(select.getType())) {
      if (!isa<RankedTensorType>(select.getType()))
        set(select.getResult(), join(known(select.getTrueValue()), known(select.getFalseValue())));
      return;
    }
    if (op->getNumResults() == 1 && isIntegerType(op->getResult(0).getType()))
      if (auto found = integerFacts(op, facts_)) set(op->getResult(0), std::move(found->axis), found->range);
    for (Region& region : op->getRegions())  // combiners: nothing known about their arguments
      for (Block& block : region) run(block);
  }

  Facts& facts_;
  llvm::DenseMap<Operation*, std::vector<Known>> loops_;  ///< what holds of their arguments in every round
};

Facts::Facts(Operation* func, bool anyMask) : anyMask_(anyMask) {
  if (auto f = dyn_cast<FunctionOpInterface>(func); f && !f.isExternal()) FactsBuilder(*this).function(f);
}

AxisFacts Facts::of(Value value) const {
  auto it = axis_.find(value);
  return it == axis_.end() ? unknownAxis(shapeOfType(value.getType())) : it->second;
}

int64_t Facts::divisibility(Value value) const { return elementDivisibility(of(value)); }

Range Facts::rangeOf(Value value) const {
  auto it = range_.find(value);
  return it == range_.end() ? fullRange(integerBits(value.getType())) : it->second;
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
