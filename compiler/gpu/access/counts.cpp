// counts.cpp - see counts.h.
#include "compiler/gpu/access/counts.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tile::ir {
using namespace mlir;

Value numberBehind(Value v) {
  while (auto op = v.getDefiningOp<arith::ExtSIOp>()) v = op.getIn();
  return v;
}
bool wrapsSoon(Value v) {
  auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(v.getType()));
  return type && type.getWidth() < 32;
}

namespace {

/// `left`: operations that may still be taken apart (sums of sums have 2^depth parts). What is not, or has factors that
/// no address has, stands for itself.
void addParts(LinearForm& form, Value v, int64_t factor, int& left) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  auto times = [factor](int64_t c) -> std::optional<int64_t> {
    int64_t product;
    const bool fits = !llvm::MulOverflow(factor, c, product) && std::abs(product) <= kLargest;
    return fits ? std::optional(product) : std::nullopt;
  };
  v = numberBehind(v);
  if (auto c = getConstantIntValue(v)) {
    if (auto part = times(*c)) return void(form.constant += *part);
  } else if (--left >= 0 && !wrapsSoon(v)) {
    if (auto add = v.getDefiningOp<arith::AddIOp>()) {
      addParts(form, add.getLhs(), factor, left);
      return addParts(form, add.getRhs(), factor, left);
    }
    if (auto sub = v.getDefiningOp<arith::SubIOp>()) {
      addParts(form, sub.getLhs(), factor, left);
      return addParts(form, sub.getRhs(), -factor, left);
    }
    if (auto mul = v.getDefiningOp<arith::MulIOp>())
      if (auto c = getConstantIntValue(mul.getRhs()))
        if (auto all = times(*c)) return *all ? addParts(form, mul.getLhs(), *all, left) : void();
  }
  form.add(v, factor);
}

}  // namespace

void addSum(LinearForm& form, Value v, int64_t factor) {
  int left = kMostParts;
  addParts(form, v, factor, left);
}
LinearForm sumOf(Value v) {
  LinearForm form;
  addSum(form, v, 1);
  return form;
}

Value alongOneDim(Value v, int* dim) {
  while (Operation* op = v.getDefiningOp()) {
    if (!isa<BroadcastOp, ReshapeOp, arith::ExtSIOp>(op)) break;
    if (isa<ReshapeOp>(op)) {
      auto from = cast<RankedTensorType>(op->getOperand(0).getType());
      auto to = cast<RankedTensorType>(op->getResult(0).getType());
      if (from.getRank() != 1 || to.getRank() != 2) return {};
      if (to.getDimSize(0) != 1 && to.getDimSize(1) != 1) return {};
      if (dim) *dim = to.getDimSize(0) == 1 ? 1 : 0;
    }
    v = op->getOperand(0);
  }
  return v;
}
Value scalarOf(Value tile) {
  Value v = alongOneDim(tile, nullptr);
  auto splat = v ? v.getDefiningOp<SplatOp>() : SplatOp();
  return splat ? splat.getValue() : Value();
}
std::optional<int64_t> numberOf(Value tile) {
  DenseIntElementsAttr all;
  if (matchPattern(tile, m_Constant(&all)) && all.isSplat()) return all.getSplatValue<APInt>().getSExtValue();
  return std::nullopt;
}

namespace {

bool readCount(Value v, Count& count, bool& counts) {
  v = alongOneDim(v, &count.dim);
  if (!v) return false;
  if (auto iota = v.getDefiningOp<IotaOp>()) {
    const int64_t first = static_cast<int64_t>(iota.getStart()), past = first + iota.getType().getNumElements();
    const unsigned bits = iota.getType().getElementTypeBitWidth();
    if (bits < 32 && past > int64_t{1} << (bits - 1)) return false;  // it begins again below 0
    if (std::exchange(counts, true)) return false;
    count.first = first;
    return true;
  }
  if (auto add = v.getDefiningOp<arith::AddIOp>(); add && !wrapsSoon(v))
    return readCount(add.getLhs(), count, counts) && readCount(add.getRhs(), count, counts);
  if (auto c = numberOf(v)) return count.scalars.constant += *c, true;
  auto splat = v.getDefiningOp<SplatOp>();
  if (splat) addSum(count.scalars, splat.getValue(), 1);
  return static_cast<bool>(splat);
}

bool isZero(const LinearForm& form) { return form.isConstant() && form.constant == 0; }

}  // namespace

std::optional<Count> countOf(Value tile, int dim) {
  Count count{dim, 0, {}};
  bool counts = false;
  if (!readCount(tile, count, counts) || !counts || count.dim < 0) return std::nullopt;
  return count;
}

bool Bound::operator==(const Bound& other) const {
  LinearForm left = end.plus(count.scalars.scaled(-1)), right = other.end.plus(other.count.scalars.scaled(-1));
  left.constant -= count.first, right.constant -= other.count.first;
  return count.dim == other.count.dim && isZero(left.plus(right.scaled(-1)));
}

bool boundsOf(Value mask, SmallVectorImpl<Bound>& bounds, int dim) {
  mask = alongOneDim(mask, &dim);
  if (!mask) return false;
  if (auto both = mask.getDefiningOp<arith::AndIOp>()) {
    const bool left = boundsOf(both.getLhs(), bounds, dim), right = boundsOf(both.getRhs(), bounds, dim);
    return left && right;
  }
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  if (!compare) return false;
  Value low = compare.getLhs(), high = compare.getRhs();
  int64_t more = 0;
  switch (compare.getPredicate()) {
    case arith::CmpIPredicate::slt:
      break;
    case arith::CmpIPredicate::sle:
      more = 1;
      break;
    case arith::CmpIPredicate::sgt:
      std::swap(low, high);
      break;
    case arith::CmpIPredicate::sge:
      std::swap(low, high), more = 1;
      break;
    default:
      return false;
  }
  auto count = countOf(low, dim);
  if (!count) return false;
  Bound bound{*count, {}};
  if (auto c = numberOf(high))
    bound.end.constant = *c;
  else if (Value scalar = scalarOf(high))
    bound.end = sumOf(scalar);
  else
    return false;
  bound.end.constant += more;
  bounds.push_back(bound);
  return true;
}

namespace {

/// Follows what is computed of a matrix, with the dim that one of its rows (or columns) has become.
class Followed {
 public:
  explicit Followed(Bound bound) : bound_(std::move(bound)) {}

  bool all(Value tile, int dim) {
    if (!seen_.insert({tile, dim}).second) return true;
    return llvm::all_of(tile.getUses(), [&](OpOperand& use) { return one(use, dim); });
  }

 private:
  bool one(OpOperand& use, int dim) {
    Operation* op = use.getOwner();
    auto type = cast<RankedTensorType>(use.get().getType());
    if (auto dot = dyn_cast<DotOp>(op)) {
      // Sums run over the other dim.
      if (type.getRank() != 2 || (use.getOperandNumber() == 0 && dim != 0) || (use.getOperandNumber() == 1 && dim != 1))
        return false;
      return all(dot.getResult(), dim);
    }
    if (auto trans = dyn_cast<TransOp>(op)) {
      const auto* at = llvm::find(trans.getPermutation(), dim);
      return all(trans.getResult(), static_cast<int>(at - trans.getPermutation().begin()));
    }
    if (isa<BroadcastOp>(op)) return type.getDimSize(dim) > 1 && all(op->getResult(0), dim);
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      const auto to = sourceDim(tileType(reshape.getResult()).getShape(), type.getShape(), dim);
      return to && type.getDimSize(dim) > 1 && all(reshape.getResult(), static_cast<int>(*to));
    }
    if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      auto loop = dyn_cast<scf::ForOp>(yield->getParentOp());
      const unsigned n = use.getOperandNumber();
      return loop && !outlivesBound(loop, n) && all(loop.getRegionIterArg(n), dim) && all(loop.getResult(n), dim);
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      const unsigned controls = loop.getNumControlOperands();
      if (use.getOperandNumber() < controls) return false;
      const unsigned n = use.getOperandNumber() - controls;
      return all(loop.getRegionIterArg(n), dim) && all(loop.getResult(n), dim);
    }
    if (auto scatter = dyn_cast<ScatterOp>(op)) {
      SmallVector<Bound, 2> bounds;
      if (use.get() != scatter.getValue() || !scatter.getMask()) return false;
      boundsOf(scatter.getMask(), bounds);
      bound_.count.dim = dim;
      return llvm::is_contained(bounds, bound_);
    }
    return op->getNumResults() == 1 && isElementwise(op) && isMemoryEffectFree(op) && all(op->getResult(0), dim);
  }

  /// Whether rows behind the bound of one iteration may be rows in front of that of a later one: of a loop that changes
  /// the bound, and carries what is computed of the rows without choosing something else (zeros) where it does.
  bool outlivesBound(scf::ForOp loop, unsigned number) const {
    auto isFixed = [&](const auto& symbol) { return loop.isDefinedOutsideOfLoop(symbol.first); };
    if (llvm::all_of(bound_.end.symbols, isFixed) && llvm::all_of(bound_.count.scalars.symbols, isFixed)) return false;
    auto chooses = [](Operation* op) {  // all rows at once
      auto choice = dyn_cast_if_present<arith::SelectOp>(op);
      return choice && (!isa<RankedTensorType>(choice.getCondition().getType()) || scalarOf(choice.getCondition()));
    };
    return !chooses(loop.getYieldedValues()[number].getDefiningOp()) &&
           !llvm::all_of(loop.getRegionIterArg(number).getUsers(), chooses);
  }

  Bound bound_;
  llvm::DenseSet<std::pair<Value, int>> seen_;
};

}  // namespace

SmallVector<Bound, 2> partsOf(const Bound& bound) {
  SmallVector<Bound, 2> parts;
  auto least = bound.end.symbols.size() == 1 && bound.end.symbols[0].second == 1
                   ? bound.end.symbols[0].first.getDefiningOp<arith::MinSIOp>()
                   : arith::MinSIOp();
  if (!least) return {bound};
  for (Value end : least->getOperands()) {
    Bound part{bound.count, sumOf(end)};
    part.end.constant += bound.end.constant;
    parts.append(partsOf(part));
  }
  return parts;
}
bool isStoredWithin(Value matrix, int dim, Bound bound) { return Followed(std::move(bound)).all(matrix, dim); }

}  // namespace tile::ir
