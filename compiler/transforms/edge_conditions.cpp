// edge_conditions.cpp - see the header.
#include "compiler/transforms/edge_conditions.h"

#include "compiler/dialect/dialect.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kDeepest = 32;
constexpr int64_t kMostFactor = 1 << 20;

bool is32(Value value) { return getElementTypeOrSelf(value.getType()).isInteger(32); }

}  // namespace

void Edges::Span::add(const Span& other, int64_t sign) {
  for (const auto& [key, factor] : other.scalars)
    if ((scalars[key] += sign * factor) == 0) scalars.erase(key);
  low += sign > 0 ? other.low : -other.high;
  high += sign > 0 ? other.high : -other.low;
}

bool Edges::Span::isSmall() const {
  constexpr size_t kMostScalars = 64;
  constexpr int64_t kMostNumber = int64_t{1} << 48;
  return scalars.size() <= kMostScalars && low >= -kMostNumber && high <= kMostNumber &&
         llvm::all_of(scalars, [](const auto& part) { return std::abs(part.second) <= kMostFactor; });
}

Value Edges::unclamped(Operation* op) {
  if (!isa_and_nonnull<arith::MaxSIOp, arith::MinSIOp>(op) || !isa<RankedTensorType>(op->getResult(0).getType()))
    return {};
  for (unsigned i : {0u, 1u}) {
    auto x = spanOf(op->getOperand(i)), bound = spanOf(op->getOperand(1 - i));
    if (!x || !bound || bound->low != bound->high || x->low == x->high) continue;
    const bool isMax = isa<arith::MaxSIOp>(op);
    if (!need(*x, *bound, isMax) || !needFits(*x) || !needFits(*bound)) return {};
    return op->getOperand(i);
  }
  return {};
}

std::optional<std::pair<Value, int64_t>> Edges::unwrapped(Operation* op) {
  constexpr int64_t kMostTimes = 4;
  auto rem = dyn_cast_or_null<arith::RemSIOp>(op);
  if (!rem || !isa<RankedTensorType>(rem.getType())) return std::nullopt;
  auto a = spanOf(rem.getLhs()), by = spanOf(rem.getRhs());
  if (!a || !by || a->low == a->high || by->low != 0 || by->high != 0 || by->scalars.size() != 1) return std::nullopt;
  const auto [key, once] = *by->scalars.begin();
  auto found = a->scalars.find(key);
  const int64_t times = found == a->scalars.end() ? 0 : found->second;
  if (once != 1 || times < 0 || times > kMostTimes) return std::nullopt;
  Span place = *a;
  for (int64_t i = 0; i < times; ++i) place.add(*by, -1);
  if (!need(place, Span(), /*above=*/true) || !need(place, *by, /*above=*/false, 1) || !needFits(*a))
    return std::nullopt;
  return std::pair(scalars_[key], times);
}

Value Edges::unturned(Operation* op) {
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
  if (!compare || !isa<RankedTensorType>(select.getType()) || !isa<RankedTensorType>(compare.getType())) return {};
  auto x = spanOf(compare.getLhs()), edge = spanOf(compare.getRhs());
  if (!x || !edge || edge->low != edge->high || x->low == x->high || x->scalars.empty()) return {};
  const bool isFirst = edge->scalars.empty();
  bool truth = false;
  int64_t more = 0;
  switch (compare.getPredicate()) {
    case arith::CmpIPredicate::slt:
      truth = !isFirst, more = !isFirst;
      break;
    case arith::CmpIPredicate::sle:
      truth = !isFirst, more = isFirst;
      break;
    case arith::CmpIPredicate::sgt:
      truth = isFirst, more = isFirst;
      break;
    case arith::CmpIPredicate::sge:
      truth = isFirst, more = !isFirst;
      break;
    case arith::CmpIPredicate::eq:
      more = 1;
      break;
    case arith::CmpIPredicate::ne:
      truth = true, more = 1;
      break;
    default:
      return {};
  }
  Value inner = truth ? select.getTrueValue() : select.getFalseValue();
  auto chosen = spanOf(inner);
  if (!chosen || chosen->high - chosen->low != x->high - x->low) return {};
  Span apart = *chosen;
  apart.add(*x, -1);
  if (!apart.scalars.empty() || !need(*x, *edge, isFirst, more) || !needFits(*x) || !needFits(*edge) ||
      !needFits(*chosen))
    return {};
  return inner;
}

Value Edges::scalarOf(Value tile) {
  auto span = spanOf(tile);
  const bool isOne =
      span && span->low == 0 && span->high == 0 && span->scalars.size() == 1 && span->scalars.begin()->second == 1;
  return isOne ? scalars_[span->scalars.begin()->first] : Value();
}

bool Edges::takesTrue(arith::CmpIOp compare) {
  auto a = spanOf(compare.getLhs()), b = spanOf(compare.getRhs());
  if (!a || !b || (a->low == a->high && b->low == b->high)) return false;
  int64_t more = 0;
  bool above = false;
  switch (compare.getPredicate()) {
    case arith::CmpIPredicate::slt:
      more = 1;
      break;
    case arith::CmpIPredicate::sle:
      break;
    case arith::CmpIPredicate::sgt:
      more = 1, above = true;
      break;
    case arith::CmpIPredicate::sge:
      above = true;
      break;
    default:
      return false;
  }
  return need(*a, *b, above, more) && needFits(*a) && needFits(*b);
}

bool Edges::takesInside(Value view, ValueRange indices, ArrayRef<int64_t> shape) {
  OpBuilder b(first_);
  const size_t lead = indices.size() - shape.size();
  for (auto [d, index] : llvm::enumerate(indices)) {
    const auto place = spanOf(index);
    if (!place || !isThere(view)) return false;
    Value dim = dimOf(b, view, static_cast<int64_t>(d));
    Span end;  // the last place of the dim
    end.scalars[numberOf(dim)] = 1, end.low = end.high = -1;
    Span last = *place;
    last.high += (d < lead ? 1 : shape[d - lead]) - 1, last.isExact = false;
    if (!need(*place, Span(), /*above=*/true) || !need(last, end, /*above=*/false) || !needFits(last)) return false;
  }
  return true;
}

Value Edges::condition(OpBuilder& b, Location loc) const {
  Value all;
  const Type wide = b.getI64Type();
  auto number = [&](int64_t n) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(n)).getResult(); };
  for (const auto& [scalars, constant] : needs_) {
    Value sum = number(constant);
    for (const auto& [key, factor] : scalars) {
      Value scalar = scalars_[key];
      if (scalar.getType() != wide) scalar = b.createOrFold<arith::ExtSIOp>(loc, wide, scalar);
      if (factor != 1) scalar = b.createOrFold<arith::MulIOp>(loc, scalar, number(factor));
      sum = b.createOrFold<arith::AddIOp>(loc, sum, scalar);
    }
    Value holds = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, sum, number(0));
    all = all ? b.createOrFold<arith::AndIOp>(loc, all, holds) : holds;
  }
  return all;
}

size_t Edges::numberOf(Value scalar) {
  scalars_.insert(scalar);
  return static_cast<size_t>(llvm::find(scalars_, scalar) - scalars_.begin());
}

std::optional<Edges::Span> Edges::spanOf(Value value, int depth) {
  if (auto it = known_.find(value); it != known_.end()) return it->second;
  const std::optional<Span> span = findSpan(value, depth);
  known_.insert({value, span});
  return span;
}

std::optional<Edges::Span> Edges::findSpan(Value value, int depth) {
  Span span;
  APInt number;
  DenseIntElementsAttr same;
  if (!is32(value) || depth > kDeepest) return std::nullopt;
  if (matchPattern(value, m_ConstantInt(&number))) {
    span.low = span.high = number.getSExtValue();
    return span;
  }
  if (!isa<RankedTensorType>(value.getType())) {
    // What is added to a scalar is a number by itself: places that differ by it need one condition.
    auto add = value.getDefiningOp<arith::AddIOp>();
    if (add && matchPattern(add.getRhs(), m_ConstantInt(&number)) && isThere(add.getLhs())) {
      span.scalars[numberOf(add.getLhs())] = 1;
      span.low = span.high = number.getSExtValue(), span.isExact = false;
      return span;
    }
    if (!isThere(value)) return std::nullopt;
    span.scalars[numberOf(value)] = 1;
    return span;
  }
  if (matchPattern(value, m_Constant(&same)) && same.isSplat()) {
    span.low = span.high = same.getSplatValue<APInt>().getSExtValue();
    return span;
  }
  Operation* op = value.getDefiningOp();
  if (auto iota = dyn_cast_or_null<IotaOp>(op)) {
    span.low = static_cast<int64_t>(iota.getStart());
    span.high = span.low + cast<RankedTensorType>(value.getType()).getNumElements() - 1;
    return span;
  }
  if (isa_and_nonnull<SplatOp, BroadcastOp, ReshapeOp, TransOp>(op)) return spanOf(op->getOperand(0), depth + 1);
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    auto a = spanOf(op->getOperand(0), depth + 1), b = spanOf(op->getOperand(1), depth + 1);
    if (!a || !b) return std::nullopt;
    a->add(*b, isa<arith::AddIOp>(op) ? 1 : -1);
    a->isExact = false;
    return a->isSmall() ? a : std::nullopt;
  }
  if (isa_and_nonnull<arith::MulIOp>(op) && matchPattern(op->getOperand(1), m_Constant(&same)) && same.isSplat()) {
    auto a = spanOf(op->getOperand(0), depth + 1);
    const int64_t factor = same.getSplatValue<APInt>().getSExtValue();
    if (!a || factor <= 0 || factor > kMostFactor) return std::nullopt;
    bool overflows = llvm::MulOverflow(a->low, factor, a->low);
    overflows |= llvm::MulOverflow(a->high, factor, a->high);
    for (auto& [key, part] : a->scalars) overflows |= llvm::MulOverflow(part, factor, part) != 0;
    a->isExact = false;
    return !overflows && a->isSmall() ? a : std::nullopt;
  }
  // A clamp or remainder inside of another: what it is in the middle.
  if (auto x = unclamped(op)) return spanOf(x, depth + 1);
  if (auto x = unturned(op)) return spanOf(x, depth + 1);
  if (auto wrap = unwrapped(op)) {
    auto a = spanOf(op->getOperand(0), depth + 1), by = spanOf(op->getOperand(1), depth + 1);
    for (int64_t i = 0; i < wrap->second; ++i) a->add(*by, -1);
    return a;
  }
  return std::nullopt;
}

Value Edges::dimOf(OpBuilder& b, Value view, int64_t d) {
  Value& dim = dims_[{view, d}];
  auto made = view.getDefiningOp<MakeViewOp>();
  if (!dim && made) dim = made.getDims()[static_cast<size_t>(d)];
  if (!dim) dim = ViewDimOp::create(b, view.getLoc(), b.getI64Type(), view, static_cast<uint32_t>(d));
  return dim;
}

bool Edges::isThere(Value scalar) const {
  Operation* op = scalar.getDefiningOp();
  return !op || op->getBlock() != first_->getBlock() || op->isBeforeInBlock(first_);
}

bool Edges::need(Span a, const Span& b, bool above, int64_t more) {
  a.add(b, -1);
  Scalars scalars;
  for (const auto& [key, factor] : a.scalars) scalars.emplace_back(key, above ? -factor : factor);
  const int64_t constant = (above ? -a.low : a.high) + more;
  if (scalars.empty()) return constant <= 0;
  auto [known, isNew] = needs_.try_emplace(scalars, constant);
  if (!isNew) known->second = std::max(known->second, constant);
  return true;
}

bool Edges::needFits(const Span& span) {
  if (span.isExact) return true;
  Span least, most;
  least.low = least.high = std::numeric_limits<int32_t>::min();
  most.low = most.high = std::numeric_limits<int32_t>::max();
  return need(span, least, /*above=*/true) && need(span, most, /*above=*/false);
}

}  // namespace tile::ir
