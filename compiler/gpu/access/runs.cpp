// runs.cpp - see runs.h.
#include "compiler/gpu/access/runs.h"

#include "compiler/dialect/dialect.h"
#include "compiler/gpu/access/fields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// The vector l if the offsets are cumsum(l) - l, l is never negative and no sum of it wraps; otherwise null.
Value lengthsOf(Value offsets, const Facts& facts) {
  auto difference = offsets.getDefiningOp<arith::SubIOp>();
  auto scan = difference ? difference.getLhs().getDefiningOp<ScanOp>() : nullptr;
  if (!scan || scan.getNumResults() != 1 || scan.getReverse()) return {};
  const Value lengths = scan.getOperand(0);
  auto type = dyn_cast<RankedTensorType>(lengths.getType());
  if (difference.getRhs() != lengths || !type || type.getRank() != 1) return {};
  Block& combiner = scan->getRegion(0).front();
  auto sum = dyn_cast<arith::AddIOp>(combiner.front());
  if (!sum || combiner.getTerminator()->getOperand(0) != sum.getResult() || sum.getLhs() == sum.getRhs() ||
      !isa<BlockArgument>(sum.getLhs()) || !isa<BlockArgument>(sum.getRhs()))
    return {};
  const Range range = facts.rangeOf(lengths);
  return range.isNonNegative() && range.max <= INT32_MAX / type.getNumElements() ? lengths : Value();
}

/// A constant below the length of every element that the mask lets through; -1 if the mask says nothing about lengths.
int64_t longerThan(Value mask, Value lengths) {
  if (!mask) return -1;
  if (auto both = mask.getDefiningOp<arith::AndIOp>())
    return std::max(longerThan(both.getLhs(), lengths), longerThan(both.getRhs(), lengths));
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  APInt constant;
  if (!compare || compare.getLhs() != lengths || !matchPattern(compare.getRhs(), m_ConstantInt(&constant))) return -1;
  switch (compare.getPredicate()) {
    case arith::CmpIPredicate::sgt:
    case arith::CmpIPredicate::ugt:
      return constant.getSExtValue();
    case arith::CmpIPredicate::sge:
    case arith::CmpIPredicate::uge:
    case arith::CmpIPredicate::eq:
      return constant.getSExtValue() - 1;
    default:
      return -1;
  }
}

}  // namespace

bool areInOwnRuns(Operation* access, Operation* other, const Facts& facts) {
  auto x = dyn_cast<ScatterOp>(access), y = dyn_cast<ScatterOp>(other);
  if (!x || !y || !x.getOffsets() || x.getOffsets() != y.getOffsets()) return false;
  const auto [start, by] = withoutConstantPart(x.getPtr());
  const auto [otherStart, otherBy] = withoutConstantPart(y.getPtr());
  if (!(start == otherStart)) return false;
  const Value lengths = lengthsOf(x.getOffsets(), facts);
  if (!lengths) return false;
  const int64_t first = std::min(by, otherBy);
  return by - first <= longerThan(x.getMask(), lengths) && otherBy - first <= longerThan(y.getMask(), lengths);
}

}  // namespace tile::ir
