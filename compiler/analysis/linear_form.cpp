// linear_form.cpp - building linear forms from arith ops and the tile ops that only move elements.
#include "compiler/analysis/linear_form.h"

#include "compiler/analysis/no_wrap.h"
#include "compiler/dialect/dialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kLargestFactor = int64_t{1} << 20;  ///< keeps sums of products of 32-bit numbers far inside 64 bits

ArrayRef<int64_t> shapeOf(Value value) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  return tile ? tile.getShape() : ArrayRef<int64_t>();
}

bool isReasonable(const LinearForm& form) {
  auto small = [](int64_t f) { return -kLargestFactor <= f && f <= kLargestFactor; };
  return small(form.iv) && form.constant >= -(int64_t{1} << 40) && form.constant <= int64_t{1} << 40 &&
         form.rest.min >= -(int64_t{1} << 40) && form.rest.max <= int64_t{1} << 40 && form.symbols.size() <= 8 &&
         llvm::all_of(form.symbols, [&](auto& s) { return small(s.second); }) &&
         llvm::all_of(form.dims, small);
}

/// Factors of the dims of `to`, when the reshape only adds or drops dims of size 1.
std::optional<SmallVector<int64_t, 2>> reshaped(ArrayRef<int64_t> factors, ArrayRef<int64_t> from,
                                                ArrayRef<int64_t> to) {
  SmallVector<int64_t, 2> out;
  size_t at = 0;
  auto skipOnes = [&] {
    while (at < from.size() && from[at] == 1) ++at;
  };
  for (int64_t size : to) {
    if (size == 1) {
      out.push_back(0);
      continue;
    }
    skipOnes();
    if (at == from.size() || from[at] != size) return std::nullopt;
    out.push_back(factors[at++]);
  }
  skipOnes();
  if (at != from.size()) return std::nullopt;
  return out;
}

}  // namespace

bool LinearForm::isConstant() const {
  return iv == 0 && rest == Range{0, 0} && symbols.empty() && llvm::all_of(dims, [](int64_t f) { return f == 0; });
}

void LinearForm::add(Value symbol, int64_t factor) {
  auto* same = llvm::find_if(symbols, [&](auto& known) { return known.first == symbol; });
  if (same == symbols.end())
    symbols.push_back({symbol, factor});
  else if ((same->second += factor) == 0)
    symbols.erase(same);
}

LinearForm LinearForm::scaled(int64_t factor) const {
  LinearForm form = *this;
  form.constant *= factor;
  form.iv *= factor;
  for (auto& symbol : form.symbols) symbol.second *= factor;
  for (int64_t& dim : form.dims) dim *= factor;
  form.rest = {rest.min * factor, rest.max * factor};
  if (factor < 0) std::swap(form.rest.min, form.rest.max);
  if (factor == 0) form.symbols.clear();
  return form;
}

LinearForm LinearForm::plus(const LinearForm& other) const {
  LinearForm form = *this;
  form.constant += other.constant;
  form.iv += other.iv;
  form.rest = {form.rest.min + other.rest.min, form.rest.max + other.rest.max};
  for (auto [symbol, factor] : other.symbols) form.add(symbol, factor);
  if (form.dims.empty()) form.dims.assign(other.dims.size(), 0);
  for (auto [i, factor] : llvm::enumerate(other.dims)) form.dims[i] += factor;
  return form;
}

Range LinearForm::coordinateRange(ArrayRef<int64_t> shape) const {
  Range range = rest;
  for (auto [factor, size] : llvm::zip(dims, shape)) (factor > 0 ? range.max : range.min) += factor * (size - 1);
  return range;
}

/// A tile whose numbers are no further apart than those that count along one of its dims.
std::optional<LinearForm> LinearForms::asRest(Value value) const {
  const ArrayRef<int64_t> shape = shapeOf(value);
  const Range range = facts_.rangeOf(value);
  if (shape.empty() || range == fullRange(64) || range.max - range.min >= *llvm::max_element(shape))
    return std::nullopt;
  LinearForm form;
  form.dims.assign(shape.size(), 0);
  form.rest = range;
  return isReasonable(form) ? std::optional(form) : std::nullopt;
}

std::optional<LinearForm> LinearForms::of(Value value, SmallVectorImpl<FittingForm>& fitting) {
  made_.clear();
  return part(value, fitting);
}

std::optional<LinearForm> LinearForms::part(Value value, SmallVectorImpl<FittingForm>& fitting) {
  if (auto it = made_.find(value); it != made_.end()) return it->second;
  const auto form = make(value, fitting);
  made_[value] = form;
  return form;
}

std::optional<LinearForm> LinearForms::make(Value value, SmallVectorImpl<FittingForm>& fitting) {
  auto element = dyn_cast<IntegerType>(getElementTypeOrSelf(value.getType()));
  const bool isIndex = value.getType().isIndex();
  if (!isIndex && (!element || element.getWidth() < 32)) return std::nullopt;
  const ArrayRef<int64_t> shape = shapeOf(value);
  LinearForm form;
  form.dims.assign(shape.size(), 0);
  if (auto constant = getConstantIntValue(value)) {
    form.constant = *constant;
    return isReasonable(form) ? std::optional(form) : std::nullopt;
  }
  if (value == loop_.getInductionVar()) {
    form.iv = 1;
    return form;
  }
  if (shape.empty() && loop_.isDefinedOutsideOfLoop(value)) {
    form.symbols.push_back({value, 1});
    return form;
  }
  Operation* op = value.getDefiningOp();
  if (!op) return std::nullopt;

  auto operand = [&](unsigned i) { return part(op->getOperand(i), fitting); };
  // The result of arithmetic at this width; a promise not to wrap makes it exact.
  auto computed = [&](std::optional<LinearForm> made, bool promised) -> std::optional<LinearForm> {
    if (!made || !isReasonable(*made)) return std::nullopt;
    if (!promised && !made->isConstant())
      fitting.push_back({*made, {shape.begin(), shape.end()}, isIndex ? 64 : element.getWidth()});
    return made;
  };
  auto product = [](const std::optional<LinearForm>& a,
                    const std::optional<LinearForm>& b) -> std::optional<LinearForm> {
    if (!a || !b) return std::nullopt;
    if (b->isConstant() && std::abs(b->constant) <= kLargestFactor) return a->scaled(b->constant);
    if (a->isConstant() && std::abs(a->constant) <= kLargestFactor) return b->scaled(a->constant);
    return std::nullopt;
  };
  return llvm::TypeSwitch<Operation*, std::optional<LinearForm>>(op)
      .Case<arith::AddIOp>([&](auto o) -> std::optional<LinearForm> {
        auto a = operand(0), b = operand(1);
        return a && b ? computed(a->plus(*b), neverWraps(o)) : std::nullopt;
      })
      .Case<arith::SubIOp>([&](auto o) -> std::optional<LinearForm> {
        auto a = operand(0), b = operand(1);
        return a && b ? computed(a->plus(b->scaled(-1)), neverWraps(o)) : std::nullopt;
      })
      .Case<arith::MulIOp>([&](auto o) { return computed(product(operand(0), operand(1)), neverWraps(o)); })
      .Case<arith::ShLIOp>([&](auto o) -> std::optional<LinearForm> {
        auto amount = getConstantIntValue(o.getRhs());
        auto a = operand(0);
        if (!a || !amount || *amount < 0 || *amount > 20) return std::nullopt;
        return computed(a->scaled(int64_t{1} << *amount), neverWraps(o));
      })
      .Case<arith::ExtSIOp, AssumeOp>([&](auto) { return operand(0); })
      .Case<arith::IndexCastOp>([&](auto) { return computed(operand(0), false); })
      .Case<arith::TruncIOp>([&](auto o) { return computed(operand(0), neverWraps(o)); })
      .Case<IotaOp>([&](IotaOp iota) {
        form.constant = static_cast<int64_t>(iota.getStart());
        form.dims[0] = 1;
        return isReasonable(form) ? std::optional(form) : std::nullopt;
      })
      .Case<SplatOp>([&](auto) -> std::optional<LinearForm> {
        auto a = operand(0);
        if (a) a->dims.assign(shape.size(), 0);
        return a;
      })
      .Case<BroadcastOp>([&](BroadcastOp broadcast) -> std::optional<LinearForm> {
        auto a = operand(0);
        if (!a) return a;
        for (auto [i, size] : llvm::enumerate(shapeOf(broadcast.getSource())))
          if (size == 1) a->dims[i] = 0;
        return a;
      })
      .Case<ReshapeOp>([&](ReshapeOp reshape) -> std::optional<LinearForm> {
        auto a = operand(0);
        if (!a) return a;
        auto dims = reshaped(a->dims, shapeOf(reshape.getSource()), shape);
        if (!dims) return std::nullopt;
        a->dims = *dims;
        return a;
      })
      .Case<TransOp>([&](TransOp trans) -> std::optional<LinearForm> {
        auto a = operand(0);
        if (!a) return a;
        LinearForm turned = *a;
        for (auto [i, from] : llvm::enumerate(trans.getPermutation())) turned.dims[i] = a->dims[from];
        return turned;
      })
      .Default([&](Operation*) { return asRest(value); });
}

}  // namespace tile::ir
