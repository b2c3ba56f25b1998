// carried_conditions.cpp - see the header.
#include "compiler/gpu/order/carried_conditions.h"

#include "compiler/dialect/dialect.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Of all elements.
std::optional<APInt> constantOf(Value value) {
  APInt whole;
  return matchPattern(value, m_ConstantInt(&whole)) ? std::optional(whole) : std::nullopt;
}
bool areSameConstants(Value a, Value b) {
  Attribute x, y;
  return a.getType() == b.getType() && matchPattern(a, m_Constant(&x)) && matchPattern(b, m_Constant(&y)) && x == y;
}

bool isFunctionOfOperands(Operation* op) {
  return op->getNumRegions() == 0 &&
         (isElementwise(op) || isa<BroadcastOp, ReshapeOp, TransOp, SplatOp, IotaOp, arith::ConstantOp>(op));
}

/// a is b, with b and a.
arith::CmpIPredicate turned(arith::CmpIPredicate is) {
  using Is = arith::CmpIPredicate;
  switch (is) {
    case Is::slt:
      return Is::sgt;
    case Is::sle:
      return Is::sge;
    case Is::sgt:
      return Is::slt;
    case Is::sge:
      return Is::sle;
    case Is::ult:
      return Is::ugt;
    case Is::ule:
      return Is::uge;
    case Is::ugt:
      return Is::ult;
    case Is::uge:
      return Is::ule;
    default:
      return is;  // of equality
  }
}

/// Both make the same of the same operands: `test` wants to hold of these, in pairs. Comparisons may be turned round,
/// as they are where one side has become a constant.
bool areAlike(Operation* a, Operation* b, llvm::function_ref<bool(Value, Value)> test) {
  if (!a || !b || a->getName() != b->getName() || a->getNumOperands() != b->getNumOperands() ||
      a->getResultTypes() != b->getResultTypes() || !isFunctionOfOperands(a))
    return false;
  if (auto x = dyn_cast<arith::CmpIOp>(a)) {
    auto y = cast<arith::CmpIOp>(b);
    if (x.getLhs().getType() != y.getLhs().getType()) return false;
    return (x.getPredicate() == y.getPredicate() && test(x.getLhs(), y.getLhs()) && test(x.getRhs(), y.getRhs())) ||
           (x.getPredicate() == turned(y.getPredicate()) && test(x.getLhs(), y.getRhs()) &&
            test(x.getRhs(), y.getLhs()));
  }
  return a->getAttrDictionary() == b->getAttrDictionary() &&
         llvm::all_of(llvm::zip(a->getOperands(), b->getOperands()),
                      [&](auto pair) { return test(std::get<0>(pair), std::get<1>(pair)); });
}

}  // namespace

bool CarriedConditions::areSame(Value value, BlockArgument condition, IsStill isStill) {
  if (condition.getOwner() != loop_.getBeforeBody() || !getElementTypeOrSelf(condition).isInteger(1)) return false;
  const unsigned i = condition.getArgNumber();
  Value next = loop_.getYieldOp().getResults()[i];
  return beginsAs(loop_.getInits()[i], next, i) && isMadeAs(value, next, i, isStill);
}

/// What an argument becomes, of which `test` holds.
bool CarriedConditions::isCarriedOn(Value next, llvm::function_ref<bool(unsigned)> test) {
  for (auto [i, carried] : llvm::enumerate(loop_.getYieldOp().getResults()))
    if (carried == next && test(static_cast<unsigned>(i))) return true;
  return false;
}

bool CarriedConditions::isMadeAs(Value value, Value next, unsigned condition, IsStill isStill) {
  auto [found, isNew] = made_.try_emplace(Pair(value, next), false);  // nor is it made of itself
  if (!isNew) return found->second;
  auto isLeft = [&](unsigned i) { return i != condition && isStill(value, loop_.getBeforeArguments()[i]); };
  const bool is = isCarriedOn(next, isLeft) ||
                  (loop_.isDefinedOutsideOfLoop(next)
                       ? value == next || areSameConstants(value, next)
                       : areAlike(value.getDefiningOp(), next.getDefiningOp(),
                                  [&](Value a, Value b) { return isMadeAs(a, b, condition, isStill); }));
  return made_[Pair(value, next)] = is;
}

bool CarriedConditions::beginsAs(Value first, Value next, unsigned condition) {
  auto isFirst = [&](unsigned i) {
    return i != condition && (first == loop_.getInits()[i] || areSameConstants(first, loop_.getInits()[i]));
  };
  if (isCarriedOn(next, isFirst)) return true;
  if (loop_.isDefinedOutsideOfLoop(next)) return first == next || areSameConstants(first, next);
  auto [found, isNew] = begins_.try_emplace(Pair(first, next), false);
  if (!isNew) return found->second;
  const bool is = findBeginsAs(first, next, condition);
  return begins_[Pair(first, next)] = is;
}
bool CarriedConditions::findBeginsAs(Value first, Value next, unsigned condition) {
  Operation* op = next.getDefiningOp();
  if (areAlike(first.getDefiningOp(), op, [&](Value a, Value b) { return beginsAs(a, b, condition); })) return true;
  // Parts that are true (false) of the constants that the loop begins with are no longer there.
  const auto known = firstOf(next);
  if (auto constant = constantOf(first); known && constant && getElementTypeOrSelf(first).isInteger(1))
    return constant->isOne() == *known;
  if (!isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op)) return false;
  for (unsigned i : {0u, 1u})
    if (firstOf(op->getOperand(i)) == isa<arith::AndIOp>(op) && beginsAs(first, op->getOperand(1 - i), condition))
      return true;
  return false;
}

/// What comparisons, and parts of them together, are of the constants that the loop begins with.
std::optional<bool> CarriedConditions::firstOf(Value next) {
  Operation* op = next.getDefiningOp();
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op)) {
    const auto a = firstOf(op->getOperand(0)), b = firstOf(op->getOperand(1));
    if (!a || !b) return std::nullopt;
    return isa<arith::AndIOp>(op) ? *a && *b : *a || *b;
  }
  auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
  if (!compare) return std::nullopt;
  auto of = [&](Value side) {
    std::optional<APInt> number = constantOf(side);
    isCarriedOn(side, [&](unsigned i) { return (number = constantOf(loop_.getInits()[i])).has_value(); });
    return number;
  };
  const auto left = of(compare.getLhs()), right = of(compare.getRhs());
  if (!left || !right) return std::nullopt;
  return arith::applyCmpPredicate(compare.getPredicate(), *left, *right);
}

}  // namespace tile::ir
