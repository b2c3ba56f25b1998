// integer_facts.cpp - one rule per operation.
#include "compiler/analysis/integer_facts.h"

#include "compiler/analysis/difference.h"
#include "compiler/analysis/no_wrap.h"
#include "compiler/dialect/dialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tile::ir {
using namespace mlir;

Shape shapeOfType(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type)) return tensor.getShape();
  return {};
}

bool isIntegerType(Type type) { return isa<IntegerType>(getElementTypeOrSelf(type)); }

unsigned integerBits(Type type) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  return integer ? std::min(integer.getWidth(), 64u) : 64u;
}

namespace {

using Found = std::optional<IntegerFacts>;

class Rules {
 public:
  Rules(Operation* op, const Facts& known)
      : op_(op),
        known_(known),
        shape_(shapeOfType(op->getResult(0).getType())),
        bits_(integerBits(op->getResult(0).getType())) {}

  Found apply() const {
    return llvm::TypeSwitch<Operation*, Found>(op_)
        .Case<arith::ConstantOp>([&](auto constant) { return ofConstant(constant.getValue()); })
        .Case<ProgramIdOp>([&](auto) { return found(unknownAxis({}), {0, fullRange(32).max - 1}); })
        .Case<RingReserveOp, RingAcquireOp>([&](auto o) {
          return found(unknownAxis({}), {0, o.getRing().getType().getStages() - 1});
        })
        .Case<NumProgramsOp>([&](auto) { return found(unknownAxis({}), {1, fullRange(32).max}); })
        .Case<ViewDimOp>([&](auto d) {  // a launch with a negative dim is refused
          return found(constantAxis({}, known_.dimDivisibility(d.getView(), d.getDim())), {0, fullRange(64).max});
        })
        .Case<ViewStrideOp>([&](auto d) {
          const bool isUnit = known_.unitStrideDim(d.getView()) == static_cast<int>(d.getDim());
          return found(constantAxis({}, known_.strideDivisibility(d.getView(), d.getDim())),
                       isUnit ? Range{1, 1} : fullRange(64));
        })
        .Case<PtrToIntOp>([&](auto p) { return found(constantAxis({}, known_.alignOf(p.getPtr())), fullRange(64)); })
        .Case<IotaOp>([&](auto iota) {
          const int64_t start = iota.getStart();
          return found(iotaAxis(start, shape_[0]), {start, start + shape_[0] - 1});
        })
        .Case<ConvertOp>([&](auto) { return found(axis(0), range(0)); })
        .Case<SplatOp>([&](auto) { return found(constantAxis(shape_, elementDivisibility(axis(0))), range(0)); })
        .Case<BroadcastOp>([&](auto) { return found(broadcastAxis(axis(0), operandShape(), shape_), range(0)); })
        .Case<ReshapeOp>([&](auto) { return found(reshapeAxis(axis(0), operandShape(), shape_), range(0)); })
        .Case<TransOp>([&](auto t) { return found(transposeAxis(axis(0), t.getPermutation()), range(0)); })
        .Case<ExtractOp>([&](auto e) { return found(extractAxis(axis(0), e.getOffsets(), shape_), range(0)); })
        .Case<ItemOp>([&](auto) { return found(constantAxis({}, elementDivisibility(axis(0))), range(0)); })
        .Case<CatOp>([&](auto) {
          Range r = range(0);
          for (Value v : op_->getOperands()) r = join(r, known_.rangeOf(v));
          return found(unknownAxis(shape_), r);
        })
        .Case<PutOp>([&](auto p) {
          Range r = known_.rangeOf(p.getInto());
          for (Value v : p.getValues()) r = join(r, known_.rangeOf(v));
          return found(unknownAxis(shape_), r);
        })
        .Case<HistogramOp>([&](auto h) {
          const Range none{0, 0}, one = h.getWeights() ? join(none, range(1)) : Range{0, 1};
          const int64_t most = h.getSource().getType().getNumElements();
          return found(unknownAxis(shape_), mulRange(one, {most, most}, bits_));
        })
        .Case<AssumeOp>([&](auto a) {
          AxisFacts r = axis(0);
          for (int64_t& d : r.divisibility) d = std::max(d, powerOfTwoIn(a.getMultipleOf()));
          const Range all = fullRange(bits_);
          const Range promised{a.getAtLeast().value_or(all.min), a.getAtMost().value_or(all.max)};
          return found(r, common(range(0), promised).value_or(range(0)));
        })
        .Case<arith::AddIOp>([&](auto o) {
          return found(addAxis(axis(0), axis(1)), exact(o, addRange(range(0), range(1), width(o))));
        })
        .Case<arith::SubIOp>([&](auto o) { return found(subAxis(axis(0), axis(1)), ofDifference(o)); })
        .Case<arith::MulIOp>([&](auto o) {
          AxisFacts r = constantOf(1) == 1 ? axis(0) : constantOf(0) == 1 ? axis(1) : mulAxis(axis(0), axis(1));
          return found(r, exact(o, mulRange(range(0), range(1), width(o))));
        })
        .Case<arith::ShLIOp>([&](auto) { return ofShiftLeft(); })
        .Case<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp, arith::RemSIOp, arith::DivUIOp,
              arith::CeilDivUIOp, arith::RemUIOp, arith::ShRSIOp, arith::ShRUIOp>([&](Operation*) {
          return ofDivision();
        })
        .Case<arith::AndIOp>([&](auto) { return ofAnd(); })
        .Case<arith::OrIOp>([&](auto) { return found(ofEqualOperands(), orRange(range(0), range(1))); })
        .Case<arith::XOrIOp>([&](auto) { return found(ofEqualOperands(), xorRange(range(0), range(1))); })
        .Case<math::CtPopOp, math::CountLeadingZerosOp, math::CountTrailingZerosOp>([&](Operation*) {
          return found(ofEqualOperands(), wrapped({0, bits_}, bits_));
        })
        .Case<arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp>([&](Operation*) { return ofMinMax(); })
        .Case<arith::SelectOp>([&](auto select) {
          const bool byElement = isa<RankedTensorType>(select.getCondition().getType()) || shape_.empty();
          return found(byElement ? selectAxis(axis(0), axis(1), axis(2)) : joinAxis(axis(1), axis(2)),
                       join(range(1), range(2)));
        })
        .Case<arith::ExtSIOp>([&](auto ext) {
          const unsigned from = integerBits(ext.getIn().getType());
          if (from == 1) return found(ofEqualOperands(), {-1, 0});
          return found(ofSignExtension(from), range(0));
        })
        .Case<arith::ExtUIOp>([&](auto ext) { return ofZeroExtension(integerBits(ext.getIn().getType())); })
        .Case<arith::TruncIOp>([&](auto o) {
          if (bits_ == 1) return found(ofEqualOperands(), {0, 1});
          return found(ofFewBits(), wrapped(exact(o, range(0)), bits_));
        })
        .Case<arith::CmpIOp>([&](auto cmp) { return found(comparedAxis(cmp), comparedRange(cmp)); })
        .Case<GatherOp>([&](auto gather) { return ofGather(gather); })
        .Case<TakeOp, ReduceOp, ScanOp>([](Operation*) { return std::nullopt; })
        .Default([&](Operation*) -> Found {
          if (!op_->hasTrait<OpTrait::Elementwise>()) return std::nullopt;
          return found(ofEqualOperands(), fullRange(bits_));
        });
  }

 private:
  static Found found(AxisFacts axis, Range range) { return IntegerFacts{std::move(axis), range}; }

  AxisFacts axis(unsigned i) const { return known_.of(op_->getOperand(i)); }
  Range range(unsigned i) const { return known_.rangeOf(op_->getOperand(i)); }
  Shape operandShape() const { return shapeOfType(op_->getOperand(0).getType()); }
  std::optional<int64_t> constantOf(unsigned i) const {
    const Range r = range(i);
    return r.isConstant() ? std::optional(r.min) : std::nullopt;
  }

  /// Of a function of each element alone.
  AxisFacts ofEqualOperands() const {
    SmallVector<AxisFacts> operands;
    for (Value v : op_->getOperands()) {
      if (!isIntegerType(v.getType()) || shapeOfType(v.getType()) != shape_) return unknownAxis(shape_);
      operands.push_back(known_.of(v));
    }
    return elementwiseAxis(shape_, operands);
  }

  /// Equal places are read alike.
  Found ofGather(GatherOp gather) const {
    Value offsets = gather.getOffsets(), mask = gather.getMask(), other = gather.getOther();
    if (!offsets || shapeOfType(offsets.getType()) != shape_ || gather.getCache() == CacheHint::volatile_)
      return std::nullopt;
    SmallVector<AxisFacts> decide{known_.of(offsets)};
    if (mask && !known_.ignoresMasks()) {
      decide.push_back(known_.of(mask));
      if (other) decide.push_back(known_.of(other));
    }
    return found(elementwiseAxis(shape_, decide), fullRange(bits_));
  }

  // Sums that promise not to wrap (nsw) are computed wide and cut to what the type holds.
  template <class Op>
  unsigned width(Op op) const {
    return neverWraps(op) ? 64 : bits_;
  }
  template <class Op>
  Range exact(Op op, Range r) const {
    return width(op) == bits_ ? r : cut(fullRange(bits_), r);
  }
  /// What both hold; the first where they contradict each other (code that never runs).
  static Range cut(Range a, Range b) {
    const Range both{std::max(a.min, b.min), std::min(a.max, b.max)};
    return both.min <= both.max ? both : a;
  }

  int64_t number(const APInt& value) const { return bits_ == 1 ? value.getZExtValue() : value.getSExtValue(); }

  Found ofConstant(Attribute value) const {
    if (auto splat = dyn_cast<SplatElementsAttr>(value)) value = splat.getSplatValue<Attribute>();
    if (auto integer = dyn_cast<IntegerAttr>(value)) {
      const int64_t v = number(integer.getValue());
      return found(constantAxis(shape_, powerOfTwoIn(v)), {v, v});
    }
    auto dense = dyn_cast<DenseIntElementsAttr>(value);
    if (!dense) return std::nullopt;
    std::optional<Range> r;
    for (APInt element : dense.getValues<APInt>()) {
      const int64_t v = number(element);
      r = r ? join(*r, {v, v}) : Range{v, v};
    }
    return found(unknownAxis(shape_), r ? *r : fullRange(bits_));
  }

  Range ofDifference(arith::SubIOp op) const {
    const Range r = exact(op, subRange(range(0), range(1), width(op)));
    if (!shape_.empty()) return r;
    const Range parts = differenceRange(op.getLhs(), op.getRhs(), [&](Value v) { return known_.rangeOf(v); });
    const Range full = fullRange(bits_);
    // Of numbers; it is the result where that cannot wrap.
    return full.min <= parts.min && parts.max <= full.max ? cut(r, parts) : r;
  }

  Found ofShiftLeft() const {
    auto amount = constantOf(1);
    if (!amount || *amount < 0 || *amount >= static_cast<int64_t>(bits_) || *amount > 62)
      return found(ofEqualOperands(), fullRange(bits_));
    const int64_t factor = int64_t{1} << *amount;
    return found(factor == 1 ? axis(0) : mulAxis(axis(0), constantAxis(shape_, powerOfTwoIn(factor))),
                 mulRange(range(0), {factor, factor}, bits_));
  }

  Found ofAnd() const {
    auto mask = constantOf(1);
    const Range r = bits_ == 1 ? Range{0, 1} : andRange(range(0), range(1), bits_);
    if (mask && *mask > 0 && llvm::isMask_64(static_cast<uint64_t>(*mask)) && bits_ > 1) {  // 2^k - 1: a remainder
      constexpr int64_t kMost = int64_t{1} << 62;  // 2^63 is a multiple of it
      return found(floorRemAxis(axis(0), *mask < kMost ? *mask + 1 : kMost), r);
    }
    AxisFacts facts = ofEqualOperands();
    if (bits_ > 1)
      for (int64_t& d : facts.divisibility)
        d = std::max(elementDivisibility(axis(0)), elementDivisibility(axis(1)));
    return found(facts, r);
  }

  Found ofMinMax() const {
    const Range a = range(0), b = range(1);
    const bool isUnsigned = isa<arith::MinUIOp, arith::MaxUIOp>(op_), isMin = isa<arith::MinSIOp, arith::MinUIOp>(op_);
    // Of one bit with a sign true is -1.
    const bool known = bits_ > 1 && (!isUnsigned || (a.isNonNegative() && b.isNonNegative()));
    return found(eitherAxis(axis(0), axis(1)), !known ? join(a, b) : isMin ? minRange(a, b) : maxRange(a, b));
  }

  Found ofZeroExtension(unsigned from) const {
    const Range in = range(0);
    const Range r = in.isNonNegative() ? in : Range{0, from >= 64 ? fullRange(64).max : (int64_t{1} << from) - 1};
    // Without a sign the bits mean the same; with one, runs may jump where the sign changes, but not runs aligned to
    // their own length.
    const int64_t all = from < kManyBits ? int64_t{1} << from : kZeroDivisibility;
    return found(in.isNonNegative() || from == 1 ? axis(0) : floorRemAxis(axis(0), all), r);
  }

  // Runs of narrow integers go on where these begin again: 127, -128.
  static constexpr unsigned kManyBits = 32;  ///< places of 32 bits are taken not to wrap

  /// Wider, such runs end there. Those do not get there that lack one of both numbers.
  AxisFacts ofSignExtension(unsigned from) const {
    return from < kManyBits && range(0) == fullRange(from) ? floorRemAxis(axis(0), int64_t{1} << (from - 1)) : axis(0);
  }

  /// Runs no longer than half of the numbers that there are: where aligned, all of one sign.
  AxisFacts ofFewBits() const {
    return bits_ < kManyBits ? shorterRunsAxis(axis(0), int64_t{1} << (bits_ - 1)) : axis(0);
  }

  /// Of what is not negative by what is positive, rounding up.
  static Range ceilRange(Range dividend, Range by, unsigned bits) {
    const Range floor = divRange(dividend, by, bits);
    if (!by.isConstant()) return addRange(floor, {0, 1}, bits);
    auto ceil = [&](int64_t v, int64_t down) { return down + (v % by.min != 0); };
    return {ceil(dividend.min, floor.min), ceil(dividend.max, floor.max)};
  }

  Found ofDivision() const {
    const AxisFacts a = axis(0), b = axis(1);
    const Range dividend = range(0), divisor = range(1);
    const bool isShift = isa<arith::ShRSIOp, arith::ShRUIOp>(op_), isRest = isa<arith::RemSIOp, arith::RemUIOp>(op_);
    const bool ceils = isa<arith::CeilDivSIOp, arith::CeilDivUIOp>(op_);
    const bool isUnsigned = isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp, arith::ShRUIOp>(op_);

    Range by = divisor;
    if (isShift) {  // by 2^k
      if (divisor.min < 0 || divisor.max >= std::min<int64_t>(bits_, 62))
        return found(elementwiseAxis(shape_, {a, b}), fullRange(bits_));
      by = {int64_t{1} << divisor.min, int64_t{1} << divisor.max};
    }
    Range range = fullRange(bits_);
    if (dividend.isNonNegative() && by.min > 0)
      range = ceils    ? ceilRange(dividend, by, bits_)
              : isRest ? remRange(dividend, by, bits_)
                       : divRange(dividend, by, bits_);
    else if (isa<arith::RemUIOp>(op_) && by.min > 0)
      range = {0, by.max - 1};
    else if (isa<arith::ShRUIOp>(op_) && divisor.min > 0 && bits_ < 64)  // the upper bits of a word
      range = {0, ((int64_t{1} << bits_) - 1) >> divisor.min};
    else if (isa<arith::ShRSIOp>(op_))
      range = {dividend.min >> divisor.min, dividend.max >> (dividend.max < 0 ? divisor.max : divisor.min)};
    else if (isa<arith::DivSIOp>(op_))
      range = divRange(dividend, by, bits_);
    else if (isa<arith::RemSIOp>(op_))
      range = remRange(dividend, by, bits_);

    AxisFacts axis = divisionAxis(op_->getOperand(0), by);
    // The least of two numbers has the least of their quotients: rows past the end that are the last one.
    Operation* chosen = isRest || isUnsigned ? nullptr : op_->getOperand(0).getDefiningOp();
    if (isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(chosen)) {
      const AxisFacts either =
          eitherAxis(divisionAxis(chosen->getOperand(0), by), divisionAxis(chosen->getOperand(1), by));
      for (auto [all, one] : llvm::zip(axis.constancy, either.constancy)) all = std::max(all, one);
    }
    return found(axis, range);
  }

  /// Of the dividend by numbers of the range, as this division rounds.
  AxisFacts divisionAxis(Value dividend, Range by) const {
    const bool isRest = isa<arith::RemSIOp, arith::RemUIOp>(op_);
    const bool ceils = isa<arith::CeilDivSIOp, arith::CeilDivUIOp>(op_);
    const bool floors = isa<arith::FloorDivSIOp, arith::ShRSIOp>(op_);
    const bool isUnsigned = isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp, arith::ShRUIOp>(op_);
    const AxisFacts a = known_.of(dividend), b = axis(1);
    // Multiples of a constant divisor have no rest, of either sign.
    const bool isExact = by.isConstant() && by.min > 0 && elementDivisibility(a) % by.min == 0;
    const bool likeFloor = isUnsigned || floors || takenNotNegative(dividend) || isExact;
    AxisFacts axis = elementwiseAxis(shape_, {a, b});
    // By a number of the launch (the tutorial's `rows % M`): dividends are taken not to be negative, as their range
    // can rarely be known, and neither are quotients and remainders. README of the language says so.
    if (dividesByNumberOfLaunch(op_))
      axis = isRest ? floorRemAxis(a, elementDivisibility(b)) : floorDivAxis(a, elementDivisibility(b), false);
    else if (by.isConstant() && by.min > 0 && likeFloor && (!ceils || isExact))
      axis = isRest ? floorRemAxis(a, by.min) : floorDivAxis(a, by.min);
    else if (by.isConstant() && by.min > 0 && isRest)  // the remainder of a multiple is a multiple, of either sign
      for (int64_t& d : axis.divisibility) d = std::min(elementDivisibility(a), powerOfTwoIn(by.min));
    return axis;
  }

  /// What is divided is taken not to be negative where it is made of what is not by sums, products and divisions:
  /// places in flat memory, `block * (program_id(0) / n) + i`, whose products have no range that would show that they
  /// do not wrap. README of the language says so, too.
  bool takenNotNegative(Value v, int depth = 0) const {
    constexpr int kDeepest = 8;
    if (known_.rangeOf(v).isNonNegative()) return true;
    Operation* op = v.getDefiningOp();
    if (!op || depth == kDeepest) return false;
    if (dividesByNumberOfLaunch(op)) {
      // That dividends of tiles are not negative is a promise; scalars divide distances and what lies in front, too.
      const bool isTile = !shapeOfType(op->getResult(0).getType()).empty();
      return isTile || takenNotNegative(op->getOperand(0), depth + 1);
    }
    if (isa<arith::AddIOp, arith::MulIOp>(op))
      return integerBits(v.getType()) >= 32 &&  // bytes wrap soon
             takenNotNegative(op->getOperand(0), depth + 1) && takenNotNegative(op->getOperand(1), depth + 1);
    if (isa<arith::DivSIOp, arith::RemSIOp>(op))
      return known_.rangeOf(op->getOperand(1)).min > 0 && takenNotNegative(op->getOperand(0), depth + 1);
    if (isa<arith::ExtSIOp>(op) && integerBits(op->getOperand(0).getType()) == 1) return false;  // 0 or -1
    return isa<BroadcastOp, ReshapeOp, SplatOp, arith::ExtSIOp>(op) && takenNotNegative(op->getOperand(0), depth + 1);
  }

  /// A quotient rounded down, or a remainder, by what is not known while compiling, but the same for all elements.
  bool dividesByNumberOfLaunch(Operation* op) const {
    if (!isa_and_nonnull<arith::DivSIOp, arith::FloorDivSIOp, arith::RemSIOp, arith::DivUIOp, arith::RemUIOp>(op))
      return false;
    Value by = op->getOperand(1);
    const Shape shape = shapeOfType(by.getType());
    return !known_.rangeOf(by).isConstant() && (shape.empty() || llvm::equal(known_.of(by).constancy, shape));
  }

  AxisFacts comparedAxis(arith::CmpIOp cmp) const {
    using P = arith::CmpIPredicate;
    const AxisFacts a = axis(0), b = axis(1);
    switch (cmp.getPredicate()) {
      case P::slt:
      case P::sge:
      case P::ult:
      case P::uge:
        return compareAxis(shape_, a, b);
      case P::sgt:
      case P::sle:
      case P::ugt:
      case P::ule:
        return compareAxis(shape_, b, a);
      default:
        return elementwiseAxis(shape_, {a, b});
    }
  }

  /// 0 or 1 where the operands' ranges decide.
  Range comparedRange(arith::CmpIOp cmp) const {
    using P = arith::CmpIPredicate;
    const Range a = range(0), b = range(1);
    auto decide = [](bool yes, bool no) { return yes ? Range{1, 1} : no ? Range{0, 0} : Range{0, 1}; };
    const P p = cmp.getPredicate();
    const bool isUnsigned = p == P::ult || p == P::ule || p == P::ugt || p == P::uge;
    if (isUnsigned && !(a.isNonNegative() && b.isNonNegative())) return {0, 1};
    const bool isOrdered = p != P::eq && p != P::ne;
    if (isOrdered && !isUnsigned && integerBits(cmp.getLhs().getType()) == 1) return {0, 1};  // true is -1 there
    const bool apart = a.max < b.min || b.max < a.min, same = a.isConstant() && a == b;
    switch (p) {
      case P::eq: return decide(same, apart);
      case P::ne: return decide(apart, same);
      case P::slt: case P::ult: return decide(a.max < b.min, a.min >= b.max);
      case P::sle: case P::ule: return decide(a.max <= b.min, a.min > b.max);
      case P::sgt: case P::ugt: return decide(a.min > b.max, a.max <= b.min);
      case P::sge: case P::uge: return decide(a.min >= b.max, a.max < b.min);
    }
    return {0, 1};
  }

  Operation* op_;
  const Facts& known_;
  Shape shape_;
  unsigned bits_;
};

}  // namespace

std::optional<IntegerFacts> integerFacts(Operation* op, const Facts& known) {
  return Rules(op, known).apply();
}

}  // namespace tile::ir
