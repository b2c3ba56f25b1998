// outer_dims.cpp - see outer_dims.h.
#include "compiler/gpu/products/outer_dims.h"

#include "compiler/gpu/access/launch_views.h"

namespace tile::ir {
using namespace mlir;

std::optional<OuterDim> outerDim(Value symbol, int64_t factor, bool countsRows, NotNegative& notNegative) {
  if (factor <= 0) return std::nullopt;
  OuterDim dim{{}, {}, factor, countsRows};
  SmallVector<Value> pending{symbol};
  while (!pending.empty()) {
    Value v = numberBehind(pending.pop_back_val());
    auto product = v.getDefiningOp<arith::MulIOp>();
    if (isOfLaunch(v))
      dim.factors.push_back(v);
    else if (product)
      pending.append({product.getLhs(), product.getRhs()});
    else
      dim.counts.push_back(v);
  }
  if (dim.counts.size() != 1) {  // of several numbers: their product is the count
    Value all = numberBehind(symbol);
    if (!all.getType().isInteger(32)) return std::nullopt;
    dim.counts = {all}, dim.factors.clear();
  }
  return notNegative.isCount(dim.counts[0]) ? std::optional(dim) : std::nullopt;
}

bool addOuterDim(SmallVectorImpl<OuterDim>& dims, const OuterDim& dim, size_t most) {
  for (OuterDim& other : dims)
    if (other.factor == dim.factor && other.factors == dim.factors && other.countsRows == dim.countsRows) {
      other.counts.append(dim.counts);
      return true;
    }
  if (dims.size() == most) return false;
  dims.push_back(dim);
  return true;
}

Value outerStride(OpBuilder& b, Location loc, const OuterDim& dim, Value rowStride) {
  LinearForm each;
  each.constant = dim.factor;
  Value far = emitSum(b, loc, each, /*narrow=*/false);
  for (Value factor : dim.factors) {
    LinearForm one;
    one.add(factor, 1);
    far = arith::MulIOp::create(b, loc, far, emitSum(b, loc, one, /*narrow=*/false));
  }
  return dim.countsRows ? arith::MulIOp::create(b, loc, far, rowStride).getResult() : far;
}

Value outerPlace(OpBuilder& b, Location loc, const OuterDim& dim) {
  LinearForm place;
  for (Value count : dim.counts) place.add(count, 1);
  return emitSum(b, loc, place, llvm::all_of(dim.counts, [](Value v) { return v.getType().isInteger(32); }));
}

Value emitSum(OpBuilder& b, Location loc, const LinearForm& form, bool narrow) {
  const Type type = narrow ? b.getI32Type() : b.getI64Type();
  Value sum;
  auto number = [&](int64_t n) -> Value { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, n)); };
  for (auto [symbol, factor] : form.symbols) {
    Value v = symbol;
    if (v.getType() != type) v = arith::ExtSIOp::create(b, loc, type, v);
    if (factor != 1) v = arith::MulIOp::create(b, loc, v, number(factor));
    sum = sum ? arith::AddIOp::create(b, loc, sum, v).getResult() : v;
  }
  if (!sum) return number(form.constant);
  return form.constant ? arith::AddIOp::create(b, loc, sum, number(form.constant)).getResult() : sum;
}

}  // namespace tile::ir
