// gathered_box.cpp - see gathered_box.h.
//
// A pointer is taken apart into its root, which the loop does not change, and sums of scalars, of which those that are
// multiples of the stride count rows. What is known not to be negative becomes the place of the box, so that one view
// (and tensor map) serves many programs; the rest moves the root. The bound of a dim is the mask's, moved by as much.
// As everywhere, arithmetic of indices is taken to stay within its type; a quotient of numbers that are not negative
// is taken not to be negative (the other one would come of a program behind the grid of tiles, which masks leave out).
//
// Rows that wrap around at the end of a matrix (`rows % M`), or are one of its rows there (`where(rows < M, rows, 0)`,
// `min(rows, M - 1)`), are a box, too, where nobody looks at those past the end (counts.h): as zeros they are as good.
//
// Where a program has a matrix of its own, `head * T * D` behind the first one, the heads are a dim of the view: it is
// then the same for all programs, and the launch can describe it (launch_views.h).
#include "compiler/gpu/products/gathered_box.h"

#include <numeric>

#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/access/counts.h"
#include "compiler/gpu/access/launch_views.h"
#include "compiler/gpu/products/outer_dims.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// What is known of one dim of a gathered matrix.
struct Side {
  int64_t first = 0;               ///< of what counts its elements in the offsets
  LinearForm place;                ///< what the pointer adds, in elements along this dim
  std::optional<Bound> bound;      ///< of the mask
  std::optional<LinearForm> room;  ///< as many elements it lets pass
};

/// A box of a view, found and not made yet.
struct Found {
  Value root;
  LinearForm box[2], rest[2], dims[2];
  SmallVector<OuterDim, 3> outer;
};

class BoxRaiser {
 public:
  BoxRaiser(Operation* op, scf::ForOp loop, const Facts& facts)
      : op_(op), loop_(loop), facts_(facts), notNegative_(facts) {}
  ~BoxRaiser() {  // behind what has been made of the box
    for (Operation* op : llvm::reverse(made_))
      if (op->use_empty()) op->erase();
  }

  /// Makes the view, and the places of a box of it beside the op. Null: it is no box that is known to be one.
  Value run(RankedTensorType type, Value pointer, Value offsets, Value mask, SmallVectorImpl<Value>& places) {
    if (!type || type.getRank() != 2 || !offsets) return {};
    type_ = type, shape_ = type.getShape();
    if (!readOffsets(offsets)) return {};
    if (mask && !readMask(mask)) return {};
    Found found;
    found.root = follow(pointer);
    if (!found.root) return {};
    Found apart = found;
    notNegative_.rely(true);
    divideAll(apart);
    chooseRooms(apart);
    if (haveRunForward() && divideOuter(apart) && isOfLaunch(apart) && isBefore(apart)) return emit(apart, places);
    notNegative_.rely(false);
    divideAll(found);
    chooseRooms(found);
    if (!loop_ || !haveRunForward()) return {};
    setDims(found);
    return isBefore(found) ? emit(found, places) : Value();
  }

 private:
  bool isBefore(Value v) const { return !loop_ || loop_.isDefinedOutsideOfLoop(v); }
  bool isBefore(const LinearForm& form) const {
    return llvm::all_of(form.symbols, [&](const auto& s) { return isBefore(s.first); });
  }
  /// All that the view is made of is there in front of the loop.
  bool isBefore(const Found& found) const {
    for (int d : {0, 1})
      if (!isBefore(found.rest[d]) || !isBefore(found.dims[d])) return false;
    auto factorsAreBefore = [&](const OuterDim& outer) {
      return llvm::all_of(outer.factors, [&](Value factor) { return isBefore(factor); });
    };
    return isBefore(found.root) && (!stride_ || isBefore(stride_)) && llvm::all_of(found.outer, factorsAreBefore);
  }

  // ---- offsets and masks

  /// Adds a part of an address: multiples of the stride count rows. `left`: operations that may still be taken apart.
  void addOffset(LinearForm& rows, LinearForm& columns, Value v, int64_t factor, int& left) const {
    v = numberBehind(v);
    if (auto c = getConstantIntValue(v)) {
      const int64_t all = factor * *c;
      const bool isOfRows = strideNumber_ && all % *strideNumber_ == 0;
      return void(isOfRows ? rows.constant += all / *strideNumber_ : columns.constant += all);
    }
    if (v == stride_) return void(rows.constant += factor);
    const bool isTakenApart = --left >= 0 && !wrapsSoon(v);
    if (auto add = v.getDefiningOp<arith::AddIOp>(); add && isTakenApart) {
      addOffset(rows, columns, add.getLhs(), factor, left);
      return addOffset(rows, columns, add.getRhs(), factor, left);
    }
    if (auto sub = v.getDefiningOp<arith::SubIOp>(); sub && isTakenApart) {
      addOffset(rows, columns, sub.getLhs(), factor, left);
      return addOffset(rows, columns, sub.getRhs(), -factor, left);
    }
    if (auto mul = v.getDefiningOp<arith::MulIOp>(); mul && isTakenApart) {
      Value a = mul.getLhs(), b = mul.getRhs();
      if (stride_ && numberBehind(a) == stride_) std::swap(a, b);
      if (stride_ && numberBehind(b) == stride_) return addSum(rows, a, factor);
      if (auto c = getConstantIntValue(b)) return addOffset(rows, columns, a, factor * *c, left);
    }
    if (strideNumber_ && factor % *strideNumber_ == 0) return addSum(rows, v, factor / *strideNumber_);
    addSum(columns, v, factor);
  }

  bool readOffsets(Value offsets) {
    auto add = offsets.getDefiningOp<arith::AddIOp>();
    if (!add) return false;
    bool seen[2] = {};
    for (Value part : {add.getLhs(), add.getRhs()}) {
      int dim = -1;
      Value v = alongOneDim(part, &dim);
      if (!v) return false;
      std::optional<int64_t> number;
      Value scale;
      if (auto mul = v.getDefiningOp<arith::MulIOp>()) {
        for (auto [count, by] : {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())}) {
          number = numberOf(by), scale = scalarOf(by);
          if (number || scale) {
            v = alongOneDim(count, &dim);
            break;
          }
        }
        if (!v || (!number && !scale)) return false;
      }
      Operation* wrap = replacesRows(v) ? v.getDefiningOp() : nullptr;
      const std::optional<Count> count = countOf(wrap ? wrap->getOperand(isa<arith::SelectOp>(wrap) ? 1 : 0) : v, dim);
      if (!count || std::exchange(seen[count->dim], true)) return false;
      Side& side = sides_[count->dim];
      side.first = count->first + count->scalars.constant;
      side.place = count->scalars;
      side.place.constant = 0;
      if (wrap && !isWrapOfNobody(wrap, *count)) return false;
      if (!number && !scale) {
        unit_ = count->dim;
        continue;
      }
      if (stride_ || strideNumber_) return false;
      if (number && *number <= 0) return false;
      strideNumber_ = number;
      if (scale) stride_ = numberBehind(scale);
    }
    return unit_ >= 0 && seen[0] && seen[1] && (stride_ || strideNumber_);
  }
  /// Places of which those past an end are others: `rows % M`, `where(rows < M, rows, 0)`, `min(rows, M - 1)`.
  static bool replacesRows(Value v) {
    Operation* op = v.getDefiningOp();
    if (auto choice = dyn_cast_or_null<arith::SelectOp>(op))
      return isa<RankedTensorType>(choice.getCondition().getType());
    return isa_and_nonnull<arith::RemSIOp, arith::MinSIOp>(op);
  }
  /// The bound behind which the op gives other places than `count`.
  static std::optional<Bound> boundOf(Operation* wrap, const Count& count) {
    if (auto choice = dyn_cast<arith::SelectOp>(wrap)) {
      SmallVector<Bound, 2> bounds;
      if (!boundsOf(choice.getCondition(), bounds, count.dim) || bounds.size() != 1) return std::nullopt;
      const Count& other = bounds[0].count;
      const LinearForm difference = other.scalars.plus(count.scalars.scaled(-1));
      if (other.dim != count.dim || !difference.isConstant() || difference.constant + other.first != count.first)
        return std::nullopt;
      return bounds[0];
    }
    Bound bound{count, {}};
    if (auto c = numberOf(wrap->getOperand(1)))
      bound.end.constant = *c;
    else if (Value scalar = scalarOf(wrap->getOperand(1)))
      bound.end = sumOf(scalar);
    else
      return std::nullopt;
    if (isa<arith::MinSIOp>(wrap)) bound.end.constant += 1;
    return bound;
  }
  /// Rows past the end that are others, with which nobody does anything: they may as well be zeros.
  bool isWrapOfNobody(Operation* wrap, const Count& count) {
    const std::optional<Bound> bound = boundOf(wrap, count);
    auto isAbove = [&](const auto& s) { return s.second > 0 && isCount(s.first); };
    if (!bound || !llvm::all_of(count.scalars.symbols, isAbove)) return false;
    setRoom(*bound);
    return isa<GatherOp>(op_) && isStoredWithin(op_->getResult(0), count.dim, *bound);
  }

  static LinearForm roomOf(const Bound& bound) {
    LinearForm room = bound.end.plus(bound.count.scalars.scaled(-1));
    room.constant -= bound.count.first;
    return room;
  }
  void setRoom(const Bound& bound) { sides_[bound.count.dim].room = roomOf(bound); }
  static bool isSame(const LinearForm& a, const LinearForm& b) {
    const LinearForm difference = a.plus(b.scaled(-1));
    return difference.isConstant() && difference.constant == 0;
  }
  /// One bound for each side, which places that wrap around have said already, or the mask twice.
  bool readMask(Value mask) {
    SmallVector<Bound, 2> bounds;
    if (!boundsOf(mask, bounds)) return false;
    for (const Bound& bound : bounds) {
      Side& side = sides_[bound.count.dim];
      if (side.bound ? *side.bound == bound : side.room && isSame(*side.room, roomOf(bound))) continue;
      if (side.room || side.bound) return false;
      side.bound = bound;
    }
    return true;
  }
  /// What the mask's bounds leave. Of a bound that is the smallest of several, `min(L, T - chunk * L)`, one that makes a
  /// view of the launch is as good where nobody looks at elements behind the others.
  void chooseRooms(const Found& found) {
    for (int d : {0, 1}) {
      const std::optional<Bound>& bound = sides_[d].bound;
      if (!bound) continue;
      const SmallVector<Bound, 2> parts = partsOf(*bound);
      auto isEnough = [&](const Bound& part) {
        setRoom(part);
        return isOfLaunch(sides_[d].room->plus(found.box[d])) && llvm::all_of(parts, [&](const Bound& other) {
                 return other == part || (isa<GatherOp>(op_) && isStoredWithin(op_->getResult(0), d, other));
               });
      };
      if (parts.size() < 2 || llvm::none_of(parts, isEnough)) setRoom(*bound);
    }
  }

  // ---- pointers

  /// Adds to both sides what a pointer adds to its root, and returns that.
  Value follow(Value pointer) {
    LinearForm &rows = sides_[1 - unit_].place, &columns = sides_[unit_].place;
    for (;;) {
      if (auto add = pointer.getDefiningOp<PtrAddOp>()) {
        int left = kMostParts;
        addOffset(rows, columns, add.getOffset(), 1, left);
        pointer = add.getPtr();
        continue;
      }
      auto arg = dyn_cast<BlockArgument>(pointer);
      auto loop = arg ? dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp()) : pointer.getDefiningOp<scf::ForOp>();
      if (!loop || !isAdvanced(loop, arg ? arg.getArgNumber() - 1 : cast<OpResult>(pointer).getResultNumber(), !arg))
        return pointer;
      pointer = loop.getInitArgs()[arg ? arg.getArgNumber() - 1 : cast<OpResult>(pointer).getResultNumber()];
    }
  }
  /// A pointer that a loop advances by constants: adds what that is in this iteration, or behind the loop.
  bool isAdvanced(scf::ForOp loop, unsigned number, bool behind) {
    const BlockArgument arg = loop.getRegionIterArg(number);
    LinearForm rows, columns;
    Value next = loop.getYieldedValues()[number];
    while (next != arg) {
      auto add = next.getDefiningOp<PtrAddOp>();
      if (!add) return false;
      int left = kMostParts;
      addOffset(rows, columns, add.getOffset(), 1, left);
      next = add.getPtr();
    }
    const auto step = getConstantIntValue(loop.getStep());
    if (!step || *step <= 0 || !rows.isConstant() || !columns.isConstant()) return false;
    const int64_t whole = std::gcd(*step, std::gcd(rows.constant, columns.constant));
    LinearForm done = sumOf(loop.getLowerBound()).scaled(-1);
    if (whole != *step) {  // two numbers in a byte: bytes go by halves of the step
      if (behind || getConstantIntValue(loop.getLowerBound()) != 0) return false;
      done.add(quotient(loop, *step / whole), 1);
    } else if (behind) {
      for (Value bound : {loop.getUpperBound(), loop.getLowerBound()})
        if (facts_.divisibility(bound) % *step) return false;
      done = done.plus(sumOf(loop.getUpperBound()));
      behind_.push_back(done);
    } else {
      done.add(loop.getInductionVar(), 1);
    }
    LinearForm &toRows = sides_[1 - unit_].place, &toColumns = sides_[unit_].place;
    toRows = toRows.plus(done.scaled(rows.constant / whole));
    toColumns = toColumns.plus(done.scaled(columns.constant / whole));
    return true;
  }
  /// Of the induction variable by a divisor of the loop's step, from 0 on: without rest.
  Value quotient(scf::ForOp loop, int64_t by) {
    OpBuilder b = OpBuilder::atBlockBegin(loop.getBody());
    const Location loc = op_->getLoc();
    Value at = loop.getInductionVar();
    made_.push_back(arith::ConstantOp::create(b, loc, b.getIntegerAttr(at.getType(), by)));
    made_.push_back(arith::DivSIOp::create(b, loc, at, made_.back()->getResult(0)));
    return made_.back()->getResult(0);
  }

  /// Loops whose pointers are used behind them end where they begin, or further on. Of one that ends before that, and
  /// does nothing, the bounds would say that its pointers went back.
  bool haveRunForward() const {
    return llvm::all_of(behind_, [&](const LinearForm& done) { return notNegative_.isCount(done); });
  }

  // ---- places

  bool isCount(Value v) const { return notNegative_.isCount(v); }
  /// Divides what the pointer adds along a dim into the place of the box and the rest.
  void divide(const LinearForm& all, LinearForm& box, LinearForm& rest) const {
    LinearForm left = all;
    for (auto [symbol, factor] : all.symbols) {
      if (factor < 0) continue;
      scf::ForOp loop = loopOf(symbol);
      const bool counts = isCount(symbol);
      if (!counts && !loop) continue;
      LinearForm part;
      part.add(symbol, factor);
      // Counted from where the loop begins, where that is subtracted or not known to be above 0.
      if (loop && !loop.getLowerBound().getDefiningOp<arith::ConstantOp>()) {
        const LinearForm low = sumOf(loop.getLowerBound()).scaled(-factor);
        const bool has = llvm::all_of(low.symbols, [&](const auto& s) { return llvm::is_contained(all.symbols, s); });
        if (has || !counts) part = part.plus(low);
      }
      box = box.plus(part);
      left = left.plus(part.scaled(-1));
    }
    if (left.constant > 0) box.constant += std::exchange(left.constant, 0);
    rest = left;
  }

  void divideAll(Found& found) const {
    for (int d : {0, 1}) {
      divide(sides_[d].place, found.box[d], found.rest[d]);
      found.rest[d].constant += sides_[d].first;
    }
  }
  void setDims(Found& found) const {
    for (int d : {0, 1}) {
      const LinearForm& box = found.box[d];
      found.dims[d] = {};
      if (sides_[d].room)
        found.dims[d] = sides_[d].room->plus(box);
      else
        found.dims[d].constant = box.symbols.empty() ? box.constant + shape_[static_cast<size_t>(d)] : kAnySize;
    }
  }

  // ---- views that the launch knows

  static bool isOfLaunch(const LinearForm& form) {
    return llvm::all_of(form.symbols, [](const auto& s) { return ir::isOfLaunch(s.first); });
  }
  bool isOfLaunch(const Found& found) const {
    Value root = found.root;
    while (auto add = root.getDefiningOp<PtrAddOp>()) {
      if (!ir::isOfLaunch(add.getOffset())) return false;
      root = add.getPtr();
    }
    if (auto start = root.getDefiningOp<ViewPtrOp>()) root = start.getView();
    auto arg = dyn_cast<BlockArgument>(root);
    if (!arg || !isa<func::FuncOp>(arg.getOwner()->getParentOp())) return false;
    return (!stride_ || ir::isOfLaunch(stride_)) && isOfLaunch(found.dims[0]) && isOfLaunch(found.dims[1]) &&
           isOfLaunch(found.rest[0]) && isOfLaunch(found.rest[1]);
  }

  /// Moves to dims of their own what keeps the view from being the same for all programs.
  bool divideOuter(Found& found) const {
    setDims(found);
    for (int d : {0, 1}) {
      const bool countsRows = d != unit_;
      auto take = [&](LinearForm& from, const std::pair<Value, int64_t>& symbol) {
        auto outer = outerDim(symbol.first, symbol.second, countsRows, notNegative_);
        if (!outer || !addOuterDim(found.outer, *outer, 3)) return false;
        from.add(symbol.first, -symbol.second);
        return true;
      };
      for (const auto& symbol : SmallVector<std::pair<Value, int64_t>, 4>(found.rest[d].symbols))
        if (!ir::isOfLaunch(symbol.first) && !take(found.rest[d], symbol)) return false;
      for (const auto& symbol : SmallVector<std::pair<Value, int64_t>, 4>(found.dims[d].symbols))
        if (!ir::isOfLaunch(symbol.first) &&
            (!llvm::is_contained(found.box[d].symbols, symbol) || !take(found.box[d], symbol)))
          return false;
      // What nothing bounds may be more elements away than 31 bits hold, though few matrices.
      if (sides_[d].room) continue;
      for (const auto& symbol : SmallVector<std::pair<Value, int64_t>, 4>(found.box[d].symbols))
        if (auto outer = outerDim(symbol.first, symbol.second, countsRows, notNegative_);
            outer && !outer->factors.empty())
          if (!take(found.box[d], symbol)) return false;
    }
    setDims(found);
    return true;
  }

  // ---- the view

  Value emit(OpBuilder& b, const LinearForm& form, bool narrow) const {
    return emitSum(b, op_->getLoc(), form, narrow);
  }
  static bool isNarrow(const LinearForm& form) {
    return llvm::all_of(form.symbols, [](const auto& s) { return s.first.getType().isInteger(32); });
  }

  /// In front of as many loops as do not change it.
  Operation* placeOf(const Found& found) const {
    if (!loop_) return op_;
    scf::ForOp front = loop_;
    for (auto outer = front->getParentOfType<scf::ForOp>(); outer; outer = outer->getParentOfType<scf::ForOp>()) {
      auto fixed = [&](Value v) { return outer.isDefinedOutsideOfLoop(v); };
      auto all = [&](const LinearForm& f) {
        return llvm::all_of(f.symbols, [&](const auto& s) { return fixed(s.first); });
      };
      if (front->getParentOp() != outer || !fixed(found.root) || (stride_ && !fixed(stride_))) break;
      if (!all(found.rest[0]) || !all(found.rest[1]) || !all(found.dims[0]) || !all(found.dims[1])) break;
      if (!llvm::all_of(found.outer, [&](const OuterDim& o) { return llvm::all_of(o.factors, fixed); })) break;
      front = outer;
    }
    return front;
  }

  Value emit(const Found& found, SmallVectorImpl<Value>& places) {
    OpBuilder b(placeOf(found));
    const Location loc = op_->getLoc();
    auto wide = [&](int64_t n) -> Value { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(n)); };
    LinearForm step;
    if (stride_)
      step.add(stride_, 1);
    else
      step.constant = *strideNumber_;
    Value stride = emit(b, step, false);
    Value start = found.root;
    const LinearForm &rows = found.rest[1 - unit_], &columns = found.rest[unit_];
    if (!rows.symbols.empty() || rows.constant)
      start = PtrAddOp::create(b, loc, start, arith::MulIOp::create(b, loc, emit(b, rows, false), stride));
    if (!columns.symbols.empty() || columns.constant) start = PtrAddOp::create(b, loc, start, emit(b, columns, false));
    SmallVector<Value> sizes, strides;
    for (const OuterDim& outer : found.outer) {
      sizes.push_back(wide(kAnySize));
      strides.push_back(outerStride(b, loc, outer, stride));
    }
    for (int d : {0, 1}) {
      sizes.push_back(emit(b, found.dims[d], false));
      strides.push_back(d == unit_ ? wide(1) : stride);
    }
    const auto rank = static_cast<int64_t>(sizes.size());
    Value view = MakeViewOp::create(b, loc, ViewType::get(rank, type_.getElementType()), start, sizes, strides);
    if (ArrayRef<int32_t> relied = notNegative_.relied(); !relied.empty())
      view.getDefiningOp()->setAttr(kPositiveArgumentsAttr, b.getDenseI32ArrayAttr(relied));
    b.setInsertionPoint(op_);
    for (const OuterDim& outer : found.outer) places.push_back(outerPlace(b, loc, outer));
    for (int d : {0, 1}) places.push_back(emit(b, found.box[d], isNarrow(found.box[d])));
    return view;
  }

  Operation* op_;
  mutable scf::ForOp loop_;
  const Facts& facts_;
  RankedTensorType type_;
  ArrayRef<int64_t> shape_;
  Side sides_[2];
  int unit_ = -1;
  Value stride_;
  std::optional<int64_t> strideNumber_;
  SmallVector<Operation*> made_;       ///< numbers for places, unread where there is no box
  SmallVector<LinearForm, 1> behind_;  ///< from begin to end of loops whose pointers are used behind them
  mutable NotNegative notNegative_;
};

}  // namespace

LoadOp boxOfGather(GatherOp gather, scf::ForOp loop, const Facts& facts) {
  Value other = gather.getOther();
  if (isVolatile(gather)) return {};  // read where it stands, by the thread that asks
  if (other && !matchPattern(other, m_PosZeroFloat()) && !matchPattern(other, m_Zero())) return {};
  auto type = dyn_cast<RankedTensorType>(gather.getType());
  SmallVector<Value> places;
  BoxRaiser raiser(gather, loop, facts);
  Value view = raiser.run(type, gather.getPtr(), gather.getOffsets(), gather.getMask(), places);
  if (!view) return {};
  OpBuilder b(gather);
  return LoadOp::create(b, gather.getLoc(), type, view, places, /*pad=*/FloatAttr(), gather.getCache());
}

StoreOp boxOfScatter(ScatterOp scatter, const Facts& facts) {
  auto type = dyn_cast<RankedTensorType>(scatter.getValue().getType());
  SmallVector<Value> places;
  BoxRaiser raiser(scatter, {}, facts);
  Value view = raiser.run(type, scatter.getPtr(), scatter.getOffsets(), scatter.getMask(), places);
  if (!view) return {};
  OpBuilder b(scatter);
  return StoreOp::create(b, scatter.getLoc(), scatter.getValue(), view, places, scatter.getCache());
}

}  // namespace tile::ir
