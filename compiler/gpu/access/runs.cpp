// runs.cpp - see runs.h.
#include "compiler/gpu/access/runs.h"

#include "compiler/analysis/linear_form.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/fields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tile::ir {
using namespace mlir;

namespace {

Value behindConverts(Value v) {
  while (auto convert = v.getDefiningOp<ConvertOp>()) v = convert->getOperand(0);
  return v;
}

/// The vector l of a scan that adds it up, if l is never negative and no sum of it wraps; otherwise null.
Value lengthsOf(Value ends, const Facts& facts) {
  auto scan = ends.getDefiningOp<ScanOp>();
  if (!scan || scan.getNumResults() != 1 || scan.getReverse()) return {};
  const Value lengths = scan.getOperand(0);
  auto type = dyn_cast<RankedTensorType>(lengths.getType());
  if (!type || type.getRank() != 1) return {};
  Block& combiner = scan->getRegion(0).front();
  auto sum = dyn_cast<arith::AddIOp>(combiner.front());
  if (!sum || combiner.getTerminator()->getOperand(0) != sum.getResult() || sum.getLhs() == sum.getRhs() ||
      !isa<BlockArgument>(sum.getLhs()) || !isa<BlockArgument>(sum.getRhs()))
    return {};
  const Range range = facts.rangeOf(lengths), all = fullRange(type.getElementTypeBitWidth());
  const int64_t most = std::min<int64_t>(INT32_MAX, all.max) / type.getNumElements();
  return range.isNonNegative() && range.max <= most ? lengths : Value();
}

constexpr int64_t kFar = int64_t{1} << 40;  ///< sums of so many parts stay far inside 64 bits

/// Numbers that one element of several tiles has, as sums of parts (the symbols of a form: tiles and scalars), where a
/// mask lets the element through.
class MaskedSums {
 public:
  MaskedSums(Value mask, const Facts& facts) : facts_(facts) {
    if (!mask) return;
    addConditions(mask);
    // Behind all of them: they decide which side of a select is looked at.
    for (Value condition : conditions_)
      if (auto compare = condition.getDefiningOp<arith::CmpIOp>()) addBounds(compare);
  }

  /// The exact number: what wraps, or may, is a part itself.
  LinearForm of(Value v) {
    v = behindConverts(v);
    if (auto it = made_.find(v); it != made_.end()) return it->second;
    LinearForm form = make(v);
    if (!fits(form, v)) form = part(v);
    return made_[v] = form;
  }

  /// No number of the form is smaller; INT64_MIN: nothing is known. Of the bounds, each by itself may help.
  int64_t smallest(const LinearForm& form) const {
    int64_t least = rangeOf(form).min;
    for (const LinearForm& bound : notNegative_) least = std::max(least, rangeOf(form.plus(bound.scaled(-1))).min);
    return least;
  }

 private:
  static constexpr size_t kMostParts = 64;

  static LinearForm part(Value v, int64_t factor = 1) {
    LinearForm form;
    form.add(v, factor);
    return form;
  }
  bool fits(const LinearForm& form, Value v) const {
    const Range range = rangeOf(form), type = fullRange(getElementTypeOrSelf(v.getType()).getIntOrFloatBitWidth());
    return form.symbols.size() <= kMostParts && range != fullRange(64) && type.contains(range.min) &&
           type.contains(range.max);
  }

  LinearForm make(Value v) {
    if (auto constant = getConstantIntValue(v); constant && std::abs(*constant) < kFar) {
      LinearForm form;
      form.constant = *constant;
      return form;
    }
    Operation* op = v.getDefiningOp();
    if (isa_and_nonnull<arith::AddIOp>(op)) return of(op->getOperand(0)).plus(of(op->getOperand(1)));
    if (isa_and_nonnull<arith::SubIOp>(op)) return of(op->getOperand(0)).plus(of(op->getOperand(1)).scaled(-1));
    if (isa_and_nonnull<arith::ExtUIOp, arith::ExtSIOp>(op)) {
      const Value narrow = op->getOperand(0);
      const bool isSigned = isa<arith::ExtSIOp>(op);
      if (getElementTypeOrSelf(narrow.getType()).isInteger(1)) return part(narrow, isSigned ? -1 : 1);
      if (isSigned || facts_.rangeOf(narrow).isNonNegative()) return of(narrow);
    }
    if (auto select = dyn_cast_if_present<arith::SelectOp>(op))
      if (llvm::is_contained(conditions_, behindConverts(select.getCondition()))) return of(select.getTrueValue());
    return part(v);
  }

  Range rangeOf(const LinearForm& form) const {
    Range sum{form.constant, form.constant};
    for (auto [v, factor] : form.symbols) {
      const Value lengths = lengthsOf(v, facts_);
      const Range one =
          lengths ? Range{0, facts_.rangeOf(lengths).max * tileType(lengths).getNumElements()} : facts_.rangeOf(v);
      sum = addRange(sum, mulRange(one, {factor, factor}, 64), 64);
    }
    return sum;
  }

  void addConditions(Value mask) {
    mask = behindConverts(mask);
    conditions_.push_back(mask);
    auto both = mask.getDefiningOp<arith::AndIOp>();
    if (!both || conditions_.size() > kMostParts) return;
    addConditions(both.getLhs());
    addConditions(both.getRhs());
  }

  void addBounds(arith::CmpIOp compare) {
    if (getElementTypeOrSelf(compare.getLhs().getType()).isInteger(1)) return;  // 1 is -1 there
    const LinearForm a = of(compare.getLhs()), b = of(compare.getRhs());
    auto add = [&](const LinearForm& less, const LinearForm& more, int64_t apart) {
      LinearForm bound = more.plus(less.scaled(-1));
      bound.constant -= apart;
      notNegative_.push_back(std::move(bound));
    };
    // What is below a number that is not negative, both without a sign, is not negative either.
    auto addUnsigned = [&](const LinearForm& less, const LinearForm& more, int64_t apart) {
      if (rangeOf(more).min < 0) return;
      add(less, more, apart);
      add({}, less, 0);
    };
    using P = arith::CmpIPredicate;
    switch (compare.getPredicate()) {
      case P::eq:
        add(a, b, 0);
        return add(b, a, 0);
      case P::ne:  // 0, and never negative
        if (b.isConstant() && b.constant == 0 && rangeOf(a).min >= 0) add(b, a, 1);
        return;
      case P::slt:
        return add(a, b, 1);
      case P::sle:
        return add(a, b, 0);
      case P::sgt:
        return add(b, a, 1);
      case P::sge:
        return add(b, a, 0);
      case P::ult:
        return addUnsigned(a, b, 1);
      case P::ule:
        return addUnsigned(a, b, 0);
      case P::ugt:
        return addUnsigned(b, a, 1);
      case P::uge:
        return addUnsigned(b, a, 0);
    }
  }

  const Facts& facts_;
  SmallVector<Value> conditions_;        ///< that hold
  SmallVector<LinearForm> notNegative_;  ///< what they say of numbers
  llvm::DenseMap<Value, LinearForm> made_;
};

/// The part of a form that is one number for all elements of a tile.
LinearForm uniformPart(const LinearForm& form) {
  LinearForm uniform;
  for (auto [v, factor] : form.symbols)
    if (!isa<RankedTensorType>(v.getType()) || v.getDefiningOp<SplatOp>()) uniform.add(v, factor);
  return uniform;
}

/// A place is no earlier in a run than `fromBegin`, and no nearer to its last place than `beforeEnd`.
struct InRun {
  int64_t fromBegin, beforeEnd;
  bool isKnown() const { return std::min(fromBegin, beforeEnd) > -kFar; }
};

/// Where element i of a scatter writes: in the run of lengths[i] places that begins at the sum of the lengths before.
struct PlaceInRun {
  Value ends;  ///< the scan that adds lengths up
  RecordStart start;
  LinearForm uniform;  ///< what all elements' places have in common
  InRun all, beside;   ///< with it, and without
};

std::optional<PlaceInRun> placeInRun(Value offsets, Value mask, RecordStart start, int64_t by, const Facts& facts) {
  MaskedSums sums(mask, facts);
  LinearForm place = sums.of(offsets);
  const auto* ends =
      llvm::find_if(place.symbols, [&](const auto& part) { return part.second == 1 && lengthsOf(part.first, facts); });
  if (ends == place.symbols.end()) return std::nullopt;
  PlaceInRun found;
  found.ends = ends->first;
  const LinearForm length = sums.of(lengthsOf(found.ends, facts));
  found.start = start, place.constant += by;
  place.add(found.ends, -1);
  place = place.plus(length);
  auto inRun = [&](const LinearForm& at) {
    LinearForm left = length.plus(at.scaled(-1));
    --left.constant;
    return InRun{sums.smallest(at), sums.smallest(left)};
  };
  found.uniform = uniformPart(place);
  found.all = inRun(place), found.beside = inRun(place.plus(found.uniform.scaled(-1)));
  return found.all.isKnown() || found.beside.isKnown() ? std::optional(found) : std::nullopt;
}

std::optional<PlaceInRun> placeInRun(ScatterOp scatter, const Facts& facts) {
  const auto [start, by] = withoutConstantPart(scatter.getPtr());
  return placeInRun(scatter.getOffsets(), scatter.getMask(), start, by, facts);
}

std::optional<PlaceInRun> placeInRun(Value places, const Facts& facts) {
  places = behindConverts(places);
  auto select = places.getDefiningOp<arith::SelectOp>();
  // What is never put may be any number below 0: its other bits are not looked at.
  if (!select || facts.rangeOf(select.getFalseValue()).max >= 0) return placeInRun(places, Value(), {}, 0, facts);
  return placeInRun(select.getTrueValue(), select.getCondition(), {}, 0, facts);
}

/// Of tiles of one shape under one layout, where a thread has the same elements of both.
bool haveSameOwners(Value a, Value b) {
  auto x = cast<RankedTensorType>(a.getType()), y = cast<RankedTensorType>(b.getType());
  return x.getShape() == y.getShape() && x.getEncoding() == y.getEncoding();
}

bool areApart(const std::optional<PlaceInRun>& first, const std::optional<PlaceInRun>& second) {
  if (!first || !second || first->ends != second->ends || !(first->start == second->start)) return false;
  // Runs may begin anywhere, if at one place for both.
  auto overlapNone = [](const InRun& a, const InRun& b) {
    return a.isKnown() && b.isKnown() && -std::min(a.fromBegin, b.fromBegin) <= std::min(a.beforeEnd, b.beforeEnd);
  };
  const bool sameBegin = first->uniform.plus(second->uniform.scaled(-1)).isConstant();
  return overlapNone(first->all, second->all) || (sameBegin && overlapNone(first->beside, second->beside));
}

}  // namespace

bool areInOwnRuns(Operation* access, Operation* other, const Facts& facts) {
  auto x = dyn_cast<ScatterOp>(access), y = dyn_cast<ScatterOp>(other);
  if (!x || !y || !x.getOffsets() || !y.getOffsets() || !haveSameOwners(x.getOffsets(), y.getOffsets())) return false;
  return areApart(placeInRun(x, facts), placeInRun(y, facts));
}

bool areInOwnRuns(Value places, Value others, const Facts& facts) {
  return haveSameOwners(places, others) && areApart(placeInRun(places, facts), placeInRun(others, facts));
}

}  // namespace tile::ir
