// fields.cpp - see fields.h.
#include "compiler/gpu/access/fields.h"

#include <numeric>

#include "compiler/analysis/definitions.h"
#include "compiler/analysis/no_wrap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

int64_t RecordStart::alignment(const Facts& facts, int bytes) const {
  const int64_t aligned = facts.alignOf(ptr) / bytes;
  return offset ? std::gcd(aligned, facts.divisibility(offset)) : aligned;
}

std::pair<RecordStart, int64_t> withoutConstantPart(Value ptr) {
  constexpr int64_t kMost = 1 << 20;
  int64_t by = 0;
  APInt constant;
  auto takeConstant = [&](Value value, int sign = 1) {
    if (!matchPattern(value, m_ConstantInt(&constant)) || std::abs(by + sign * constant.getSExtValue()) > kMost)
      return false;
    by += sign * constant.getSExtValue();
    return true;
  };
  auto add = ptr.getDefiningOp<PtrAddOp>();
  for (; add && takeConstant(add.getOffset()); add = ptr.getDefiningOp<PtrAddOp>()) ptr = add.getPtr();
  if (!add) return {{ptr, {}}, by};
  // The place of a program and the number of a field in one sum, which must not wrap before it is widened.
  Value offset = add.getOffset();
  auto takeFrom = [&](auto sum, int sign) {
    return sum && (offset.getType().isInteger(64) || neverWraps(sum)) && takeConstant(sum.getRhs(), sign);
  };
  while (takeFrom(offset.getDefiningOp<arith::AddIOp>(), 1) || takeFrom(offset.getDefiningOp<arith::SubIOp>(), -1))
    offset = offset.getDefiningOp()->getOperand(0);
  return {{add.getPtr(), offset}, by};
}

bool readAlike(GatherOp gather, GatherOp other) {
  return gather.getOffsets() == other.getOffsets() && gather.getMask() == other.getMask() &&
         gather.getOther() == other.getOther() && gather.getCache() == other.getCache() &&
         gather.getType() == other.getType();
}

WindowReaders readersOfWindow(GatherOp gather) {
  WindowReaders readers;
  if (!gather.getOffsets()) return readers;
  const auto [root, by] = withoutConstantPart(gather.getPtr());
  int64_t low = by, high = by;
  for (Operation* user : gather.getOffsets().getUsers()) {
    auto other = dyn_cast<GatherOp>(user);
    if (!other || other->getBlock() != gather->getBlock() || other.getOffsets() != gather.getOffsets() ||
        other.getType() != gather.getType() || other.getCache() != gather.getCache())
      continue;
    const auto [ptr, distance] = withoutConstantPart(other.getPtr());
    const int64_t first = std::min(low, distance), last = std::max(high, distance);
    if (ptr != root || last - first > kFarthestInWindow) continue;
    low = first, high = last;
    ++readers.count;
  }
  readers.spread = high - low;
  return readers;
}

bool areOtherFields(Operation* access, Operation* other, bool repeated, const Facts& facts) {
  using Place = std::pair<Value, Value>;  // pointer, offsets
  auto placeOf = [](Operation* op) {
    return llvm::TypeSwitch<Operation*, Place>(op)
        .Case<GatherOp, ScatterOp, AtomicRmwOp, AtomicCasOp>([](auto o) { return Place(o.getPtr(), o.getOffsets()); })
        .Default(Place());
  };
  const auto [ptr, offsets] = placeOf(access);
  const auto [otherPtr, otherOffsets] = placeOf(other);
  if (!ptr || !otherPtr) return false;
  const auto [start, by] = withoutConstantPart(ptr);
  const auto [otherStart, otherBy] = withoutConstantPart(otherPtr);
  if (start.ptr != otherStart.ptr) return false;
  if (repeated && !argumentOfKernel(start.ptr)) return false;
  int64_t unit = 0;
  auto alsoIn = [&](Value part) {
    if (part) unit = std::gcd(unit, facts.divisibility(part));
  };
  alsoIn(offsets), alsoIn(otherOffsets);
  if (repeated || start.offset != otherStart.offset) alsoIn(start.offset), alsoIn(otherStart.offset);
  return unit ? (by - otherBy) % unit != 0 : by != otherBy;
}

}  // namespace tile::ir
