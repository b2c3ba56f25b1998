// remainders.cpp - remainders and quotients of places by one number: x % n, x / n, floor_mod(x, n), floor_div(x, n).
//
// A thread's registers hold places a constant apart. It divides the first one; each next remainder is the one before
// plus that constant's own remainder, less n where that reaches n: two or three instructions instead of a division.
// That is right as long as places are not negative, do not wrap, and n is positive; threads of which that is not true
// divide every place.
//
// Places next to each other that n, a multiple of 16, say, does not part need no division at all: they have one
// quotient, and remainders next to each other.
#include <algorithm>

#include "compiler/gpu/lowering/alike.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kFewest = 4;  ///< registers that are worth a division of the step and a branch

/// What a step along each dim adds to the tile's elements; nullopt: not the same everywhere, or not known.
std::optional<SmallVector<int64_t>> stepsOf(Value tile, int depth = 0) {
  constexpr int kDeepest = 16;
  constexpr int64_t kLargest = int64_t{1} << 20;
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  Operation* op = tile.getDefiningOp();
  DenseElementsAttr constant;
  if (!type || !op || depth > kDeepest) return std::nullopt;
  SmallVector<int64_t> none(type.getRank(), 0);
  if (isa<SplatOp>(op) || (matchPattern(tile, m_Constant(&constant)) && constant.isSplat())) return none;
  if (isa<IotaOp>(op)) return SmallVector<int64_t>{1};
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    auto steps = stepsOf(broadcast.getSource(), depth + 1);
    for (int64_t dim = 0; steps && dim < type.getRank(); ++dim)
      if (broadcast.getSource().getType().getDimSize(dim) != type.getDimSize(dim)) (*steps)[dim] = 0;
    return steps;
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {  // a vector along one of the dims
    auto steps = stepsOf(reshape.getSource(), depth + 1);
    if (!steps || steps->size() != 1) return std::nullopt;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.getDimSize(dim) == type.getNumElements()) {
        none[dim] = (*steps)[0];
        return none;
      }
    return std::nullopt;
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) return std::nullopt;
  auto left = stepsOf(op->getOperand(0), depth + 1);
  const auto right = left ? stepsOf(op->getOperand(1), depth + 1) : std::nullopt;
  if (!right) return std::nullopt;
  APInt factor;
  const bool isProduct = isa<arith::MulIOp>(op);
  if (isProduct && (*left != none || *right != none) &&
      (!matchPattern(op->getOperand(1), m_ConstantInt(&factor)) || factor.getSignificantBits() > 20))
    return std::nullopt;
  for (auto [mine, its] : llvm::zip(*left, *right)) {
    if (isProduct)
      mine *= mine != 0 ? factor.getSExtValue() : 0;
    else
      mine += isa<arith::AddIOp>(op) ? its : -its;
    if (std::abs(mine) > kLargest) return std::nullopt;
  }
  return left;
}

/// The remainder of which the sum is the floor_mod: r + ((r ^ n) < 0 && r != 0 ? n : 0).
arith::RemSIOp remainderOfFloorMod(Operation* op) {
  auto sum = dyn_cast<arith::AddIOp>(op);
  auto rest = sum ? sum.getLhs().getDefiningOp<arith::RemSIOp>() : arith::RemSIOp();
  auto lacking = sum ? sum.getRhs().getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  if (!rest || !lacking || lacking.getTrueValue() != rest.getRhs() || !matchPattern(lacking.getFalseValue(), m_Zero()))
    return {};
  auto lacks = lacking.getCondition().getDefiningOp<arith::AndIOp>();
  if (!lacks) return {};
  auto isOther = [&](Value value) {
    auto compare = value.getDefiningOp<arith::CmpIOp>();
    auto signs = compare ? compare.getLhs().getDefiningOp<arith::XOrIOp>() : arith::XOrIOp();
    return signs && compare.getPredicate() == arith::CmpIPredicate::slt && matchPattern(compare.getRhs(), m_Zero()) &&
           signs.getLhs() == rest.getResult() && signs.getRhs() == rest.getRhs();
  };
  auto isSome = [&](Value value) {
    auto compare = value.getDefiningOp<arith::CmpIOp>();
    return compare && compare.getPredicate() == arith::CmpIPredicate::ne && compare.getLhs() == rest.getResult() &&
           matchPattern(compare.getRhs(), m_Zero());
  };
  const Value a = lacks.getLhs(), b = lacks.getRhs();
  return (isOther(a) && isSome(b)) || (isOther(b) && isSome(a)) ? rest : arith::RemSIOp();
}

bool isRemainder(Operation* op) { return isa<arith::RemSIOp, arith::RemUIOp, arith::AddIOp>(op); }
bool isUnsigned(Operation* op) { return isa<arith::RemUIOp, arith::DivUIOp>(op); }

/// Everything in the block that divides the same by the same, and the floor_mods of it.
SmallVector<Operation*> divisionsLike(Operation* op) {
  SmallVector<Operation*> all;
  for (Operation* user : op->getOperand(0).getUsers()) {
    if (!isa<arith::RemSIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::RemUIOp, arith::DivUIOp>(user)) continue;
    if (user->getBlock() != op->getBlock() || user->getOperands() != op->getOperands() ||
        isUnsigned(user) != isUnsigned(op) || user->isBeforeInBlock(op))
      continue;
    all.push_back(user);
    for (Operation* sum : user->getUsers())
      if (sum->getBlock() == op->getBlock() && remainderOfFloorMod(sum) == user) all.push_back(sum);
  }
  return all;
}

/// Registers in the order of their places, and the constants that those are apart.
struct Places {
  SmallVector<int> regs;
  SmallVector<int64_t> steps;  ///< from the register before
};

std::optional<Places> placesOf(const layout::Layout& layout, ArrayRef<int64_t> factors) {
  SmallVector<std::pair<int64_t, int>> sorted;
  for (int reg = 0; reg < layout.numRegs(); ++reg) {
    if (layout.isRegPadding(reg)) return std::nullopt;
    const layout::Coord coord = layout.regCoord(reg);
    int64_t place = 0;
    for (auto [factor, at] : llvm::zip(factors, coord)) place += factor * at;
    sorted.emplace_back(place, reg);
  }
  llvm::sort(sorted);
  Places places;
  for (auto [i, entry] : llvm::enumerate(sorted)) {
    places.regs.push_back(entry.second);
    places.steps.push_back(i ? entry.first - sorted[i - 1].first : 0);
  }
  SmallVector<int64_t> different(places.steps);
  llvm::sort(different);
  different.erase(llvm::unique(different), different.end());
  llvm::erase(different, 0);
  if (different.empty() || layout.numRegs() < kFewest * static_cast<int>(different.size()) ||
      sorted.back().first - sorted.front().first > INT32_MAX)
    return std::nullopt;
  return places;
}

/// In front of loops divisions cost nothing to speak of, and registers may be short there.
bool isPreparation(Operation* op) {
  if (op->getParentOfType<LoopLikeOpInterface>()) return false;
  return op->getParentOfType<func::FuncOp>()
      .walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// The loop around it does not change what it divides by: a factor replaces every division (known_divisors.h), which
/// is as short as the chain and has no branch.
bool isKnownAhead(Operation* op) {
  Value by = op->getOperand(1);
  while (isa_and_nonnull<SplatOp, BroadcastOp, ReshapeOp>(by.getDefiningOp())) by = by.getDefiningOp()->getOperand(0);
  auto loop = op->getParentOfType<LoopLikeOpInterface>();
  return loop && getElementTypeOrSelf(by.getType()).isInteger(32) && loop.isDefinedOutsideOfLoop(by);
}

/// The first register of each run of elements of which the facts tell all from the first: the same quotient, or
/// remainders that grow by one. Empty: there are no runs.
SmallVector<size_t> firstOfRuns(Emitter& e, Operation* op) {
  const layout::Layout& layout = e.layoutOf(op->getResult(0));
  // Facts take dividends for positive where only the launch knows; here that has to be sure.
  if (layout.numRegs() < 2 || (!isUnsigned(op) && !e.facts().rangeOf(op->getOperand(0)).isNonNegative())) return {};
  const AxisFacts facts = e.facts().of(op->getResult(0));
  SmallVector<int64_t> groups(facts.constancy.begin(), facts.constancy.end());
  if (isRemainder(op)) {
    const auto longest = llvm::max_element(facts.contiguity);
    groups[longest - facts.contiguity.begin()] = std::max(groups[longest - facts.contiguity.begin()], *longest);
  }
  SmallVector<size_t> first = firstOfEqual(groups, layout);
  for (auto [reg, one] : llvm::enumerate(first))
    if (one != reg) return first;
  return {};
}

bool emitRuns(Emitter& e, Operation* op) {
  const SmallVector<size_t> first = firstOfRuns(e, op);
  if (first.empty()) return false;
  const layout::Layout& layout = e.layoutOf(op->getResult(0));
  const AxisFacts facts = e.facts().of(op->getResult(0));
  Regs values;
  for (auto [reg, one] : llvm::enumerate(first)) {
    if (one == reg) {
      values.push_back(layout.isRegPadding(static_cast<int>(reg))
                           ? llvm::PoisonValue::get(e.elementType(op->getResult(0)))
                           : e.elementwise(op, {e.regs(op->getOperand(0))[reg], e.regs(op->getOperand(1))[reg]}));
      continue;
    }
    int64_t behind = 0;
    for (auto [dim, at] : llvm::enumerate(layout.regCoord(static_cast<int>(reg))))
      if (facts.contiguity[dim] > 1) behind += at - layout.regCoord(static_cast<int>(one))[dim];
    llvm::Value* start = values[one];
    values.push_back(behind ? e.b.CreateNUWAdd(start, llvm::ConstantInt::get(start->getType(), behind)) : start);
  }
  e.define(op->getResult(0), std::move(values));
  return true;
}

/// As the program says it, place by place.
llvm::Value* divided(Emitter& e, Operation* op, llvm::Value* x, llvm::Value* n) {
  llvm::IRBuilder<>& b = e.b;
  if (!isa<arith::AddIOp>(op)) return e.elementwise(op, {x, n});
  llvm::Value *rest = b.CreateSRem(x, n), *zero = llvm::ConstantInt::get(x->getType(), 0);
  llvm::Value* lacks = b.CreateAnd(b.CreateICmpSLT(b.CreateXor(rest, n), zero), b.CreateICmpNE(rest, zero));
  return b.CreateAdd(rest, b.CreateSelect(lacks, n, zero));
}

}  // namespace

bool emitRemainders(Emitter& e, Operation* op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!isa<arith::RemSIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::RemUIOp, arith::DivUIOp>(op) || !type ||
      !(type.getElementType().isInteger(32) || type.getElementType().isInteger(64)))
    return false;
  if (emitRuns(e, op)) return true;
  const layout::Layout& layout = e.layoutOf(op->getResult(0));
  llvm::ArrayRef<llvm::Value*> dividends = e.regs(op->getOperand(0)), divisors = e.regs(op->getOperand(1));
  llvm::Value* n = divisors[0];
  if (layout.numRegs() < kFewest || isa<llvm::Constant>(n) || !llvm::all_equal(divisors) || isPreparation(op) ||
      isKnownAhead(op))
    return false;
  auto factors = stepsOf(op->getOperand(0));
  auto places = factors ? placesOf(layout, *factors) : std::nullopt;
  if (!places) return false;
  const SmallVector<Operation*> all = divisionsLike(op);
  const bool quotients = llvm::any_of(all, [](Operation* o) { return !isRemainder(o); });

  llvm::IRBuilder<>& b = e.b;
  auto number = [&](int64_t value) { return llvm::ConstantInt::get(n->getType(), static_cast<uint64_t>(value)); };
  std::map<int64_t, std::pair<llvm::Value*, llvm::Value*>> steps;  // by constant: remainder, quotient
  for (int64_t step : places->steps)
    if (step && !steps.contains(step))
      steps[step] = {b.CreateURem(number(step), n), quotients ? b.CreateUDiv(number(step), n) : nullptr};
  llvm::Value *first = dividends[places->regs.front()], *last = dividends[places->regs.back()];
  llvm::Value* fits = b.CreateAnd(b.CreateICmpSGT(n, number(0)), isUnsigned(op) ? b.CreateICmpUGE(last, first)
                                                                               : b.CreateICmpSGE(last, first));
  if (!isUnsigned(op)) fits = b.CreateAnd(fits, b.CreateICmpSGE(first, number(0)));

  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto* chain = llvm::BasicBlock::Create(b.getContext(), "remainders", function);
  auto* each = llvm::BasicBlock::Create(b.getContext(), "remainders.each", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "remainders.end", function);
  b.CreateCondBr(fits, chain, each);

  b.SetInsertPoint(chain);
  const size_t count = dividends.size();
  Regs rests(count), wholes(count);
  llvm::Value *rest = b.CreateURem(first, n), *whole = quotients ? b.CreateUDiv(first, n) : nullptr;
  for (auto [reg, step] : llvm::zip(places->regs, places->steps)) {
    if (step) {
      auto [more, times] = steps[step];
      llvm::Value *sum = b.CreateAdd(rest, more), *less = b.CreateSub(sum, n);
      if (quotients)
        whole = b.CreateAdd(b.CreateAdd(whole, times), b.CreateZExt(b.CreateICmpUGE(sum, n), n->getType()));
      rest = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, sum, less);  // below zero is large
    }
    rests[reg] = rest, wholes[reg] = whole;
  }
  b.CreateBr(after);
  auto* fromChain = b.GetInsertBlock();

  b.SetInsertPoint(each);
  SmallVector<Regs> slow(all.size());
  for (auto [o, list] : llvm::zip(all, slow))
    for (llvm::Value* x : dividends) list.push_back(divided(e, o, x, n));
  b.CreateBr(after);
  auto* fromEach = b.GetInsertBlock();

  b.SetInsertPoint(after);
  for (auto [o, list] : llvm::zip(all, slow)) {
    Regs values;
    for (size_t reg = 0; reg < count; ++reg) {
      llvm::PHINode* phi = b.CreatePHI(n->getType(), 2);
      phi->addIncoming(isRemainder(o) ? rests[reg] : wholes[reg], fromChain);
      phi->addIncoming(list[reg], fromEach);
      values.push_back(phi);
    }
    e.define(o->getResult(0), std::move(values));
    if (o != op) e.definedAhead.insert(o);
  }
  return true;
}

}  // namespace tile::ir
