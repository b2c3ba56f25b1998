// difference.cpp - both sides as sums of parts; parts that both have cancel, and a counter that is subtracted is
// replaced by the last value it takes.
#include "compiler/analysis/difference.h"

#include "compiler/analysis/linear_form.h"
#include "compiler/analysis/no_wrap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kDeepest = 4;  // sums of sums
constexpr size_t kMost = 6;  // parts
using RangeOf = llvm::function_ref<Range(Value)>;

unsigned bitsOf(Value v) {
  auto type = dyn_cast<IntegerType>(v.getType());
  return type ? type.getWidth() : 64;
}

/// The sum or difference is that of the numbers.
template <class Op>
bool isExact(Op op, Range (*combine)(Range, Range, unsigned), RangeOf rangeOf) {
  if (neverWraps(op)) return true;
  const Range wide = combine(rangeOf(op.getLhs()), rangeOf(op.getRhs()), 64), fits = fullRange(bitsOf(op.getResult()));
  return wide != fullRange(64) && fits.min <= wide.min && wide.max <= fits.max;
}

/// False: too many parts.
bool collect(LinearForm& sum, Value v, int64_t factor, RangeOf rangeOf, int depth = 0) {
  APInt constant;
  if (matchPattern(v, m_ConstantInt(&constant)) && constant.getSignificantBits() <= 62)
    return !__builtin_add_overflow(sum.constant, factor * constant.getSExtValue(), &sum.constant);
  Operation* op = depth < kDeepest ? v.getDefiningOp() : nullptr;
  auto both = [&](auto o, int64_t second) {
    return collect(sum, o.getLhs(), factor, rangeOf, depth + 1) &&
           collect(sum, o.getRhs(), factor * second, rangeOf, depth + 1);
  };
  if (auto add = dyn_cast_or_null<arith::AddIOp>(op); add && isExact(add, addRange, rangeOf)) return both(add, 1);
  if (auto sub = dyn_cast_or_null<arith::SubIOp>(op); sub && isExact(sub, subRange, rangeOf)) return both(sub, -1);
  if (auto wide = dyn_cast_or_null<arith::ExtSIOp>(op); wide && bitsOf(wide.getIn()) > 1)
    return collect(sum, wide.getIn(), factor, rangeOf, depth + 1);
  if (auto narrow = dyn_cast_or_null<arith::TruncIOp>(op); narrow && neverWraps(narrow))
    return collect(sum, narrow.getIn(), factor, rangeOf, depth + 1);
  sum.add(v, factor);
  return sum.symbols.size() <= kMost;
}

Range rangeOfSum(const LinearForm& sum, RangeOf rangeOf) {
  const Range everything = fullRange(64);
  Range all{sum.constant, sum.constant};
  for (auto [value, factor] : sum.symbols) {
    const Range part = mulRange(rangeOf(value), {factor, factor}, 64);
    if (part == everything) return everything;
    all = addRange(all, part, 64);
    if (all == everything) return everything;
  }
  return all;
}

/// What is at least `bound`, the end of a loop that begins at `begin` and has iterations: itself, what it is the
/// smallest of, and what it is chosen from beside `begin`.
void above(Value bound, Value begin, SmallVectorImpl<Value>& found) {
  found.push_back(bound);
  Operation* op = bound.getDefiningOp();
  if (!op || found.size() > kMost) return;
  if (auto least = dyn_cast<arith::MinSIOp>(op)) {
    above(least.getLhs(), begin, found);
    above(least.getRhs(), begin, found);
  } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (select.getFalseValue() == begin) above(select.getTrueValue(), begin, found);
    if (select.getTrueValue() == begin) above(select.getFalseValue(), begin, found);
  } else if (auto narrow = dyn_cast<arith::TruncIOp>(op); narrow && neverWraps(narrow)) {
    above(narrow.getIn(), begin, found);
  } else if (auto wide = dyn_cast<arith::ExtSIOp>(op); wide && bitsOf(wide.getIn()) > 1) {
    above(wide.getIn(), begin, found);
  }
}

scf::ForOp loopOf(Value counter) {
  auto argument = dyn_cast<BlockArgument>(counter);
  auto loop = argument ? dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  return loop && loop.getInductionVar() == counter && !loop.getUnsignedCmp() ? loop : scf::ForOp();
}

/// Something plus a constant.
using Bound = std::pair<Value, int64_t>;

/// What `part` is never more than (`most`), or never less than.
SmallVector<Bound> boundsOf(Value part, bool most) {
  SmallVector<Bound> bounds;
  if (scf::ForOp loop = loopOf(part)) {
    if (!most) return {{loop.getLowerBound(), 0}};
    SmallVector<Value> ends;
    above(loop.getUpperBound(), loop.getLowerBound(), ends);
    for (Value end : ends) bounds.push_back({end, -1});
    return bounds;
  }
  Operation* op = part.getDefiningOp();
  if (op && (most ? isa<arith::MinSIOp>(op) : isa<arith::MaxSIOp>(op)))
    for (Value operand : op->getOperands()) bounds.push_back({operand, 0});
  return bounds;
}

}  // namespace

Range differenceRange(Value a, Value b, RangeOf rangeOf) {
  const Range everything = fullRange(64);
  LinearForm sum;
  if (!collect(sum, a, 1, rangeOf) || !collect(sum, b, -1, rangeOf)) return everything;
  Range range = rangeOfSum(sum, rangeOf);
  // With one part replaced by what bounds it, others may cancel.
  for (auto [part, factor] : sum.symbols) {
    if (std::abs(factor) != 1) continue;
    for (bool most : {false, true})
      for (auto [bound, beside] : boundsOf(part, most)) {
        LinearForm other = sum;
        other.add(part, -factor);
        if (__builtin_add_overflow(other.constant, factor * beside, &other.constant)) continue;
        if (!collect(other, bound, factor, rangeOf)) continue;
        const Range at = rangeOfSum(other, rangeOf);
        if (most == (factor > 0))
          range.max = std::min(range.max, at.max);
        else
          range.min = std::max(range.min, at.min);
      }
  }
  return range.min <= range.max ? range : everything;
}

}  // namespace tile::ir
