// raise_boxes.cpp - matrices that loops of products gather through a base and masks of rows and columns are boxes of
// views, which bulk copies can load.
// Before: gather p offsets rows * stride + columns, mask (first + rows < M) & (at + columns < K), in a loop that
//         advances `p` or `at`
// After:  a view made in front of the loop (p, dims [M, K], strides [stride, 1]) and a load of it at [first, at]
//
// A pointer is taken apart into its root, which the loop does not change, and sums of scalars, of which those that are
// multiples of the stride count rows. What is known not to be negative becomes the place of the box, so that one view
// (and tensor map) serves many programs; the rest moves the root. The bound of a dim is the mask's, moved by as much.
// As everywhere, arithmetic of indices is taken to stay within its type; a quotient of numbers that are not negative
// is taken not to be negative (the other one would come of a program behind the grid of tiles, which masks leave out).
//
// Rows that wrap around at the end of a matrix (`rows % M`) are a box, too, where nobody looks at those past the end
// (counts.h): as zeros they are as good.
//
// Only where bulk copies can then load all operands that the loop gathers: others are as well off as they are.

#include "compiler/analysis/facts.h"
#include "compiler/gpu/counts.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/tma_box.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

scf::ForOp loopOf(Value v) {  // whose induction variable it is
  auto arg = dyn_cast<BlockArgument>(v);
  auto loop = arg ? dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp()) : scf::ForOp();
  return loop && arg == loop.getInductionVar() ? loop : scf::ForOp();
}

/// What is known of one dim of a gathered matrix.
struct Side {
  int64_t first = 0;               ///< of what counts its elements in the offsets
  LinearForm place;                ///< what the pointer adds, in elements along this dim
  std::optional<LinearForm> room;  ///< as many elements the mask lets pass
};

class BoxRaiser {
 public:
  BoxRaiser(GatherOp gather, scf::ForOp loop, const Facts& facts) : gather_(gather), loop_(loop), facts_(facts) {}

  /// The load beside the gather; null: it is no box that is known to be one.
  LoadOp run() {
    auto type = dyn_cast<RankedTensorType>(gather_.getType());
    if (!type || type.getRank() != 2 || !gather_.getOffsets()) return {};
    shape_ = type.getShape();
    Value other = gather_.getOther();
    if (other && !matchPattern(other, m_AnyZeroFloat()) && !matchPattern(other, m_Zero())) return {};
    if (!readOffsets(gather_.getOffsets())) return {};
    if (Value mask = gather_.getMask(); mask && !readMask(mask)) return {};
    Value root = follow(gather_.getPtr());
    if (!root || !isBefore(root)) return {};
    return emit(root);
  }

 private:
  bool isBefore(Value v) const { return loop_.isDefinedOutsideOfLoop(v); }
  bool isBefore(const LinearForm& form) const {
    return llvm::all_of(form.symbols, [&](const auto& s) { return isBefore(s.first); });
  }

  // ---- offsets and masks

  /// Adds a part of an address: multiples of the stride count rows.
  void addOffset(LinearForm& rows, LinearForm& columns, Value v, int64_t factor) const {
    v = numberBehind(v);
    if (auto c = getConstantIntValue(v)) {
      const int64_t all = factor * *c;
      const bool isOfRows = strideNumber_ && all % *strideNumber_ == 0;
      return void(isOfRows ? rows.constant += all / *strideNumber_ : columns.constant += all);
    }
    if (v == stride_) return void(rows.constant += factor);
    if (auto add = v.getDefiningOp<arith::AddIOp>()) {
      addOffset(rows, columns, add.getLhs(), factor);
      return addOffset(rows, columns, add.getRhs(), factor);
    }
    if (auto sub = v.getDefiningOp<arith::SubIOp>()) {
      addOffset(rows, columns, sub.getLhs(), factor);
      return addOffset(rows, columns, sub.getRhs(), -factor);
    }
    if (auto mul = v.getDefiningOp<arith::MulIOp>()) {
      Value a = mul.getLhs(), b = mul.getRhs();
      if (stride_ && numberBehind(a) == stride_) std::swap(a, b);
      if (stride_ && numberBehind(b) == stride_) return addSum(rows, a, factor);
      if (auto c = getConstantIntValue(b)) return addOffset(rows, columns, a, factor * *c);
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
      auto wrap = v.getDefiningOp<arith::RemSIOp>();
      const std::optional<Count> count = countOf(wrap ? wrap.getLhs() : v, dim);
      if (!count || std::exchange(seen[count->dim], true)) return false;
      if (!wrap && !count->scalars.isConstant()) return false;
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
    return unit_ >= 0 && seen[0] && seen[1] && (stride_ || strideNumber_) && (!stride_ || isBefore(stride_));
  }
  /// Rows past the end that begin again with the first one, and that nobody looks at: they may as well be zeros.
  bool isWrapOfNobody(arith::RemSIOp wrap, const Count& count) {
    Bound bound{count, {}};
    if (auto c = numberOf(wrap.getRhs()))
      bound.end.constant = *c;
    else if (Value scalar = scalarOf(wrap.getRhs()))
      bound.end = sumOf(scalar);
    else
      return false;
    auto isAbove = [&](const auto& s) { return s.second > 0 && isCount(s.first); };
    if (!llvm::all_of(count.scalars.symbols, isAbove)) return false;
    setRoom(bound);
    return isStoredWithin(gather_.getResult(), count.dim, bound);
  }

  void setRoom(const Bound& bound) {
    LinearForm room = bound.end.plus(bound.count.scalars.scaled(-1));
    room.constant -= bound.count.first;
    sides_[bound.count.dim].room = room;
  }
  bool readMask(Value mask) {
    SmallVector<Bound, 2> bounds;
    if (!boundsOf(mask, bounds)) return false;
    for (const Bound& bound : bounds) {
      if (sides_[bound.count.dim].room) return false;
      setRoom(bound);
    }
    return true;
  }

  // ---- pointers

  /// Adds to both sides what a pointer adds to its root, and returns that.
  Value follow(Value pointer) {
    LinearForm &rows = sides_[1 - unit_].place, &columns = sides_[unit_].place;
    for (;;) {
      if (auto add = pointer.getDefiningOp<PtrAddOp>()) {
        addOffset(rows, columns, add.getOffset(), 1);
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
      addOffset(rows, columns, add.getOffset(), 1);
      next = add.getPtr();
    }
    const auto step = getConstantIntValue(loop.getStep());
    if (!step || !rows.isConstant() || !columns.isConstant() || rows.constant % *step || columns.constant % *step)
      return false;
    LinearForm done = sumOf(loop.getLowerBound()).scaled(-1);
    if (behind) {
      for (Value bound : {loop.getUpperBound(), loop.getLowerBound()})
        if (facts_.divisibility(bound) % *step) return false;
      done = done.plus(sumOf(loop.getUpperBound()));
    } else {
      done.add(loop.getInductionVar(), 1);
    }
    LinearForm &toRows = sides_[1 - unit_].place, &toColumns = sides_[unit_].place;
    toRows = toRows.plus(done.scaled(rows.constant / *step));
    toColumns = toColumns.plus(done.scaled(columns.constant / *step));
    return true;
  }

  // ---- places

  bool isCount(Value v, int depth = 0) const {
    v = numberBehind(v);
    if (depth > 12) return false;
    auto is = [&](Value x) { return isCount(x, depth + 1); };
    if (isa_and_nonnull<ProgramIdOp, NumProgramsOp, arith::CeilDivUIOp>(v.getDefiningOp())) return true;
    if (facts_.rangeOf(v).min >= 0) return true;
    if (scf::ForOp loop = loopOf(v)) return is(loop.getLowerBound());
    Operation* op = v.getDefiningOp();
    if (isa_and_nonnull<arith::AddIOp, arith::MulIOp, arith::MinSIOp>(op))
      return is(op->getOperand(0)) && is(op->getOperand(1));
    if (isa_and_nonnull<arith::MaxSIOp>(op)) return is(op->getOperand(0)) || is(op->getOperand(1));
    return isa_and_nonnull<arith::DivSIOp, arith::RemSIOp>(op) && is(op->getOperand(0));
  }
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

  // ---- the load

  Value emit(OpBuilder& b, const LinearForm& form, bool narrow) const {
    const Location loc = gather_.getLoc();
    const Type type = narrow ? b.getI32Type() : b.getI64Type();
    Value sum;
    auto number = [&](int64_t n) -> Value { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, n)); };
    for (auto [symbol, factor] : form.symbols) {
      Value v = symbol;
      if (v.getType() != type) v = arith::ExtSIOp::create(b, loc, type, v);
      if (factor != 1) v = arith::MulIOp::create(b, loc, v, number(factor));
      sum = sum ? arith::AddIOp::create(b, loc, sum, v).getResult() : v;
    }
    if (!sum) return number(form.constant);
    return form.constant ? arith::AddIOp::create(b, loc, sum, number(form.constant)).getResult() : sum;
  }
  static bool isNarrow(const LinearForm& form) {
    return llvm::all_of(form.symbols, [](const auto& s) { return s.first.getType().isInteger(32); });
  }

  LoadOp emit(Value root) {
    LinearForm box[2], rest[2], dims[2];
    for (int d : {0, 1}) {
      divide(sides_[d].place, box[d], rest[d]);
      rest[d].constant += sides_[d].first;
      if (!isBefore(rest[d])) return {};
      if (sides_[d].room)
        dims[d] = sides_[d].room->plus(box[d]);
      else
        dims[d].constant = box[d].symbols.empty() ? box[d].constant + shape_[static_cast<size_t>(d)] : INT32_MAX;
      if (!isBefore(dims[d])) return {};
    }
    // In front of as many loops as do not change it.
    scf::ForOp front = loop_;
    for (auto outer = front->getParentOfType<scf::ForOp>(); outer; outer = outer->getParentOfType<scf::ForOp>()) {
      auto fixed = [&](Value v) { return outer.isDefinedOutsideOfLoop(v); };
      auto all = [&](const LinearForm& f) {
        return llvm::all_of(f.symbols, [&](const auto& s) { return fixed(s.first); });
      };
      if (front->getParentOp() != outer || !fixed(root) || (stride_ && !fixed(stride_))) break;
      if (!all(rest[0]) || !all(rest[1]) || !all(dims[0]) || !all(dims[1])) break;
      front = outer;
    }
    OpBuilder b(front);
    const Location loc = gather_.getLoc();
    auto wide = [&](int64_t n) -> Value { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(n)); };
    LinearForm step;
    if (stride_)
      step.add(stride_, 1);
    else
      step.constant = *strideNumber_;
    Value stride = emit(b, step, false);
    Value start = root;
    const LinearForm &rows = rest[1 - unit_], &columns = rest[unit_];
    if (!rows.symbols.empty() || rows.constant)
      start = PtrAddOp::create(b, loc, start, arith::MulIOp::create(b, loc, emit(b, rows, false), stride));
    if (!columns.symbols.empty() || columns.constant) start = PtrAddOp::create(b, loc, start, emit(b, columns, false));
    SmallVector<Value> sizes{emit(b, dims[0], false), emit(b, dims[1], false)};
    SmallVector<Value> strides{stride, stride};
    strides[static_cast<size_t>(unit_)] = wide(1);
    auto type = cast<RankedTensorType>(gather_.getType());
    Value view = MakeViewOp::create(b, loc, ViewType::get(2, type.getElementType()), start, sizes, strides);
    b.setInsertionPoint(gather_);
    SmallVector<Value> places{emit(b, box[0], isNarrow(box[0])), emit(b, box[1], isNarrow(box[1]))};
    return LoadOp::create(b, loc, type, view, places, /*pad=*/FloatAttr(), gather_.getCache());
  }

  mutable GatherOp gather_;
  mutable scf::ForOp loop_;
  const Facts& facts_;
  ArrayRef<int64_t> shape_;
  Side sides_[2];
  int unit_ = -1;
  Value stride_;
  std::optional<int64_t> strideNumber_;
};

class RaiseBoxesPass : public PassWrapper<RaiseBoxesPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RaiseBoxesPass)
  StringRef getArgument() const override { return "tile-raise-boxes"; }
  StringRef getDescription() const override { return "make boxes of views of matrices that loops of products gather"; }

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (!loop.getBody()->getOps<DotOp>().empty()) loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) raise(loop);
  }

 private:
  static bool isMatrix(GatherOp gather) {
    auto type = dyn_cast<RankedTensorType>(gather.getType());
    return type && type.getRank() == 2 && type.getDimSize(0) > 1 && type.getDimSize(1) > 1;
  }

  /// Element by element of a product of the loop.
  static bool isOfProduct(Value tile, int depth = 0) {
    Operation* op = tile.getDefiningOp();
    if (isa_and_nonnull<DotOp>(op)) return true;
    return op && depth < 8 && isElementwise(op) &&
           llvm::any_of(op->getOperands(), [&](Value v) { return isOfProduct(v, depth + 1); });
  }
  /// Whether products multiply the tile, or what is computed of it and of others that are loaded.
  static bool isOperand(Value tile) {
    return llvm::any_of(tile.getUses(), [](OpOperand& use) {
      Operation* op = use.getOwner();
      if (isa<DotOp>(op)) return use.getOperandNumber() < 2;
      return op->getNumResults() == 1 && (isa<TransOp>(op) || isElementwise(op)) && !isOfProduct(op->getResult(0)) &&
             isOperand(op->getResult(0));
    });
  }

  /// Bulk copies can load the box.
  static bool isBulk(LoadOp load, const Facts& facts) {
    auto type = cast<RankedTensorType>(load.getType());
    return beginsAtUnits(load.getView(), load.getIndices(), facts) &&
           tmaBox(load.getView(), type.getShape(), type.getElementType(), facts, /*isStore=*/false);
  }

  void raise(scf::ForOp loop) {
    struct Box {
      GatherOp gather;
      LoadOp load;
    };
    SmallVector<Box> boxes;
    loop.walk([&](GatherOp gather) {
      if (isMatrix(gather)) boxes.push_back({gather, {}});
    });
    if (boxes.empty()) return;
    {
      const Facts facts(getOperation());
      for (Box& box : boxes)
        if (box.gather->getParentOp() == loop) box.load = BoxRaiser(box.gather, loop, facts).run();
    }
    const Facts facts(getOperation());
    const bool fine = llvm::all_of(boxes, [&](const Box& box) {
      return !isOperand(GatherOp(box.gather).getResult()) || (box.load && isBulk(box.load, facts));
    });
    for (const Box& box : boxes) {
      if (!box.load) continue;
      if (!fine || !isBulk(box.load, facts)) {
        box.load->erase();
        continue;
      }
      GatherOp(box.gather).replaceAllUsesWith(LoadOp(box.load).getResult());
      box.gather->erase();
    }
  }
};

}  // namespace

std::unique_ptr<Pass> createRaiseBoxesPass() { return std::make_unique<RaiseBoxesPass>(); }

}  // namespace tile::ir
