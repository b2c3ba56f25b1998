// access_width.cpp - vector widths from facts.
#include "compiler/gpu/access/access_width.h"

#include <cstdlib>
#include <numeric>
#include <optional>

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

int64_t powerOfTwoPart(int64_t n) { return n <= 0 ? kZeroDivisibility : n & -n; }
int widest(int elementBytes) { return std::max(1, 16 / elementBytes); }

}  // namespace

AccessWidth boxWidth(const Facts& facts, Value view, ValueRange indices, llvm::ArrayRef<int64_t> shape,
                     int elementBytes, bool fromUnits) {
  AccessWidth width;
  int rank = static_cast<int>(indices.size()), lead = rank - static_cast<int>(shape.size());
  int unit = facts.unitStrideDim(view);
  if (unit < lead) return width;
  width.dim = unit - lead;
  int64_t vector =
      std::gcd<int64_t>(widest(elementBytes), powerOfTwoPart(std::max<int64_t>(1, facts.alignOf(view) / elementBytes)));
  if (!fromUnits) vector = std::gcd(vector, powerOfTwoPart(facts.divisibility(indices[unit])));
  for (int d = 0; d < rank; ++d) {
    if (d == unit) continue;
    int64_t step = powerOfTwoPart(facts.strideDivisibility(view, d));
    // A dim of one row moves only with its index.
    if (d < lead || shape[d - lead] == 1)
      step = std::min(kZeroDivisibility, step * powerOfTwoPart(facts.divisibility(indices[d])));
    vector = std::gcd(vector, powerOfTwoPart(step));
  }
  width.aligned = static_cast<int>(vector);
  width.masked = static_cast<int>(std::gcd(vector, powerOfTwoPart(facts.dimDivisibility(view, unit))));
  return width;
}

AccessWidth offsetWidth(const Facts& facts, Value ptr, Value offsets, Value mask, int elementBytes) {
  AccessWidth width;
  auto type = offsets ? dyn_cast<RankedTensorType>(offsets.getType()) : RankedTensorType();
  if (!type) return width;
  AxisFacts offsetFacts = facts.of(offsets), maskFacts;
  if (mask) maskFacts = facts.of(mask);
  int64_t aligned = powerOfTwoPart(std::max<int64_t>(1, facts.alignOf(ptr) / elementBytes));
  for (int d = static_cast<int>(type.getRank()) - 1; d >= 0; --d) {
    int64_t vector = std::gcd<int64_t>(widest(elementBytes), aligned);
    vector = std::gcd(vector, powerOfTwoPart(offsetFacts.contiguity[d]));
    vector = std::gcd(vector, powerOfTwoPart(offsetFacts.divisibility[d]));
    // Neighbours without alignment still coalesce: a contiguous dim beats one that is not.
    bool better =
        width.dim < 0 ? offsetFacts.contiguity[d] > 1 : offsetFacts.contiguity[d] > offsetFacts.contiguity[width.dim];
    if (!better) continue;
    width.dim = d;
    width.aligned = static_cast<int>(vector);
    width.masked = mask ? static_cast<int>(std::gcd(vector, powerOfTwoPart(maskFacts.constancy[d]))) : width.aligned;
  }
  return width;
}

AccessWidth widthUnder(const AccessWidth& width, const layout::Layout& layout) {
  AccessWidth result = width;
  if (width.dim < 0 || layout.rank() == 0) return {};
  int64_t vector = std::gcd<int64_t>(width.aligned, powerOfTwoPart(layout.runLength(width.dim)));
  // Padding of the layout must start between accesses.
  if (layout.isPadded(width.dim)) vector = std::gcd(vector, powerOfTwoPart(layout.shape()[width.dim]));
  result.aligned = static_cast<int>(vector);
  result.masked = std::gcd(result.aligned, width.masked);
  return result;
}

/// A constant, or a product of two.
static std::optional<int64_t> constantOf(Value value) {
  APInt x, y;
  if (matchPattern(value, m_ConstantInt(&x))) return x.getSExtValue();
  auto product = value.getDefiningOp<arith::MulIOp>();
  if (!product || !matchPattern(product.getLhs(), m_ConstantInt(&x)) ||
      !matchPattern(product.getRhs(), m_ConstantInt(&y)))
    return std::nullopt;
  return x.getSExtValue() * y.getSExtValue();
}

std::pair<Value, int64_t> withoutConstants(Value index, int64_t most) {
  int64_t by = 0;
  while (auto add = index.getDefiningOp<arith::AddIOp>()) {
    const auto left = constantOf(add.getLhs()), right = constantOf(add.getRhs());
    if (!left && !right) break;
    const int64_t all = by + right.value_or(left.value_or(0));
    if (std::abs(all) > most) break;
    by = all;
    index = right ? add.getLhs() : add.getRhs();
  }
  return {index, by};
}

std::pair<Value, int64_t> withoutConstant(Value index) {
  constexpr int64_t kNear = 1 << 20;
  return index.getType().isInteger(32) ? withoutConstants(index, kNear) : std::pair{index, int64_t{0}};
}

namespace {

/// The view's indices where a load's box would start without the constant in the index of dim `unit`.
SmallVector<Value> alignedIndices(LoadOp load, int unit) {
  SmallVector<Value> indices(load.getIndices());
  indices[unit] = withoutConstant(indices[unit]).first;
  return indices;
}

/// Another load of the block reads a box from the same rows that is less than two vectors away, and one of both starts
/// between vectors.
bool hasNeighbour(LoadOp load, int unit, int vector) {
  const SmallVector<Value> aligned = alignedIndices(load, unit);
  const int64_t by = withoutConstant(load.getIndices()[unit]).second;
  return llvm::any_of(load.getView().getUsers(), [&](Operation* user) {
    auto other = dyn_cast<LoadOp>(user);
    if (!other || other == load || other->getBlock() != load->getBlock() || other.getType() != load.getType())
      return false;
    const int64_t otherBy = withoutConstant(other.getIndices()[unit]).second;
    return alignedIndices(other, unit) == aligned && otherBy != by && std::abs(otherBy - by) < 2 * vector &&
           (by % vector != 0 || otherBy % vector != 0);
  });
}

/// Elements of one or two bytes, read one by one, cost more than words cut and joined.
std::optional<AccessWidth> turnedWidth(const Facts& facts, LoadOp load, int unit, llvm::ArrayRef<int64_t> shape,
                                       int elementBytes) {
  constexpr int kWord = 4, kAccess = 16;
  if (unit < 0 || elementBytes > 2 || load.getCache() == CacheHint::volatile_) return std::nullopt;
  if (getElementTypeOrSelf(load.getType()).isInteger(1) || !load.getIndices()[unit].getType().isInteger(32))
    return std::nullopt;
  const AccessWidth own = boxWidth(facts, load.getView(), load.getIndices(), shape, elementBytes);
  const AccessWidth wide = boxWidth(facts, load.getView(), load.getIndices(), shape, elementBytes, /*fromUnits=*/true);
  const bool pays = own.dim >= 0 && own.aligned * elementBytes < kWord && wide.aligned * elementBytes == kAccess &&
                    wide.masked == wide.aligned && shape[wide.dim] % wide.aligned == 0;
  return pays ? std::optional(wide) : std::nullopt;
}

}  // namespace

AccessWidth loadWidth(const Facts& facts, LoadOp load, llvm::ArrayRef<int64_t> shape, int elementBytes) {
  const AccessWidth own = boxWidth(facts, load.getView(), load.getIndices(), shape, elementBytes);
  const int unit = facts.unitStrideDim(load.getView());
  if (own.dim < 0) return own;
  const AccessWidth width = boxWidth(facts, load.getView(), alignedIndices(load, unit), shape, elementBytes);
  const bool isWider = width.aligned > own.aligned && width.masked == width.aligned;
  if (isWider && hasNeighbour(load, unit, width.aligned)) return width;
  return turnedWidth(facts, load, unit, shape, elementBytes).value_or(own);
}

std::optional<int> vectorOfTurnedBox(const Facts& facts, LoadOp load, const layout::Layout& layout, int elementBytes) {
  const int unit = facts.unitStrideDim(load.getView());
  const auto width = turnedWidth(facts, load, unit, layout.shape(), elementBytes);
  if (!width || layout.isPadded(width->dim) || widthUnder(*width, layout).aligned != width->aligned)
    return std::nullopt;
  return width->aligned;
}

std::optional<int> vectorOfShiftedBox(const Facts& facts, LoadOp load, const layout::Layout& layout, int elementBytes) {
  const int unit = facts.unitStrideDim(load.getView());
  const int dim = unit - (static_cast<int>(load.getIndices().size()) - layout.rank());
  if (unit < 0 || dim < 0 || load.getCache() == CacheHint::volatile_) return std::nullopt;
  const auto [base, by] = withoutConstant(load.getIndices()[unit]);
  auto widthAt = [&](ValueRange indices) {
    return widthUnder(boxWidth(facts, load.getView(), indices, layout.shape(), elementBytes), layout);
  };
  const AccessWidth width = widthAt(alignedIndices(load, unit));
  const int vector = width.aligned;
  // Whole accesses are inside or outside; places are compared in 32 bits, near the box.
  if (width.masked < vector || !base.getType().isInteger(32) || layout.isPadded(dim) ||
      std::abs(by) + vector > layout.shape()[dim])
    return std::nullopt;
  // Two accesses instead of one for each piece pay by themselves where pieces are a quarter, else where other boxes
  // read the same ones.
  const bool pays = by % vector != 0 && vector > 2 * widthAt(load.getIndices()).aligned;
  return pays || hasNeighbour(load, unit, vector) ? std::optional(vector) : std::nullopt;
}

bool onlyAdds(AtomicRmwOp op) {
  Type element = getElementTypeOrSelf(op.getValue().getType());
  return op.getKind() == RmwKind::add && op.getOffsets() && op.getResult().use_empty() &&
         (element.isF32() || element.isF16() || element.isBF16() || element.isInteger(32)) &&
         !isa<RankedTensorType>(op.getPtr().getType());
}

int widestAdd(Type element, const Target& target) {
  if (element.isInteger() || element.isF64()) return 1;
  return std::max(1, target.atomicBytes / static_cast<int>(element.getIntOrFloatBitWidth() / 8));
}

}  // namespace tile::ir
