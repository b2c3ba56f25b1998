// siblings.cpp - words side by side (the fields of a record) as one access: gathers, and relaxed additions without
// results.
//
// Gathers at the same offsets from pointers that are constants apart read one aligned vector each thread, where offsets
// and pointer are known to be multiples of it and every word of it is wanted: the first of them reads for all. Nothing
// may be written between them. So with additions to memory, of which the last adds for all: nothing may be read between
// them.
#include <numeric>

#include "compiler/analysis/no_wrap.h"
#include "compiler/gpu/access_width.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/tile_access.h"
#include "compiler/gpu/memory_roots.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Where a pointer starts but for a constant number of elements: another pointer, and a scalar added to it (or none).
struct Root {
  Value ptr, offset;
  bool operator==(const Root&) const = default;
  /// Elements that the start is a multiple of, in memory.
  int64_t alignment(const Facts& facts, int bytes) const {
    const int64_t aligned = facts.alignOf(ptr) / bytes;
    return offset ? std::gcd(aligned, facts.divisibility(offset)) : aligned;
  }
};

std::pair<Root, int64_t> withoutConstantPart(Value ptr) {
  constexpr int64_t kMost = 1 << 20;
  int64_t by = 0;
  APInt constant;
  auto takeConstant = [&](Value value) {
    if (!matchPattern(value, m_ConstantInt(&constant)) || std::abs(by + constant.getSExtValue()) > kMost) return false;
    by += constant.getSExtValue();
    return true;
  };
  auto add = ptr.getDefiningOp<PtrAddOp>();
  for (; add && takeConstant(add.getOffset()); add = ptr.getDefiningOp<PtrAddOp>()) ptr = add.getPtr();
  if (!add) return {{ptr, {}}, by};
  // The place of a program and the number of a field in one sum, which must not wrap before it is widened.
  Value offset = add.getOffset();
  while (auto sum = offset.getDefiningOp<arith::AddIOp>()) {
    if (!(offset.getType().isInteger(64) || neverWraps(sum)) || !takeConstant(sum.getRhs())) break;
    offset = sum.getLhs();
  }
  return {{add.getPtr(), offset}, by};
}

/// What is read behind it is not what would be read in front of it, or may not be.
bool ends(Operation* op) {
  return writesGlobal(op) || isAcquire(op) || isa<BarrierOp>(op) ||
         (op->getNumRegions() && !isa<ReduceOp, ScanOp>(op));
}

/// By its distance in elements from the common pointer.
using Siblings = std::map<int64_t, GatherOp>;

/// The fields of the aligned vector of `count` that `by` lies in, in order; empty: not all of them are there.
template <class Op>
SmallVector<Op> vectorOf(const std::map<int64_t, Op>& siblings, int64_t by, int64_t count) {
  const int64_t begin = by - ((by % count) + count) % count;
  SmallVector<Op> fields;
  for (int64_t i = 0; i < count; ++i) {
    auto it = siblings.find(begin + i);
    if (it == siblings.end()) return {};
    fields.push_back(it->second);
  }
  return fields;
}

Siblings siblingsOf(GatherOp first, const Root& root, int64_t by) {
  Siblings all{{by, first}};
  for (Operation* op = first->getNextNode(); op && !ends(op); op = op->getNextNode()) {
    auto gather = dyn_cast<GatherOp>(op);
    if (!gather || gather.getOffsets() != first.getOffsets() || gather.getMask() != first.getMask() ||
        gather.getOther() != first.getOther() || gather.getCache() != first.getCache() ||
        gather.getType() != first.getType())
      continue;
    const auto [ptr, distance] = withoutConstantPart(gather.getPtr());
    if (ptr == root) all.try_emplace(distance, gather);
  }
  return all;
}

bool isRelaxedAdd(Operation* op) {
  auto add = dyn_cast<AtomicRmwOp>(op);
  return add && onlyAdds(add) && add.getOrder() == MemOrder::relaxed;
}

std::map<int64_t, AtomicRmwOp> siblingsOf(AtomicRmwOp first, const Root& root, int64_t by) {
  std::map<int64_t, AtomicRmwOp> all{{by, first}};
  for (Operation* op = first->getNextNode(); op; op = op->getNextNode()) {
    if (!isRelaxedAdd(op)) {
      if (isa<LoadOp, GatherOp>(op) || ends(op)) break;
      continue;
    }
    auto add = cast<AtomicRmwOp>(op);
    if (add.getOffsets() != first.getOffsets() || add.getMask() != first.getMask() ||
        add.getScope() != first.getScope() || add.getValue().getType() != first.getValue().getType())
      continue;
    const auto [ptr, distance] = withoutConstantPart(add.getPtr());
    if (ptr == root) all.try_emplace(distance, add);
  }
  return all;
}

void addFields(Emitter& e, ArrayRef<AtomicRmwOp> fields) {
  AtomicRmwOp first = fields.front();
  const layout::Layout& layout = e.layoutOf(first.getValue());
  const int bytes = memoryBytes(e.elementType(first.getValue()));
  auto access = offsetAccess(e, layout, first.getPtr(), first.getOffsets(), first.getMask(), bytes);
  llvm::Value* own = e.isFirstReplica(layout);
  for (const auto& run : access->runs(1, /*unique=*/true)) {
    SmallVector<llvm::Value*> values;
    for (AtomicRmwOp field : fields) values.push_back(e.regs(field.getValue())[run[0]]);
    addVector(e, access->address(run[0]), values, e.andAll({own, access->predicate(run[0])}), first.getScope());
  }
}

}  // namespace

bool emitSiblingAdds(Emitter& e, AtomicRmwOp op) {
  if (auto it = e.addedTogether.find(op); it != e.addedTogether.end()) {
    addFields(e, it->second);
    return true;
  }
  auto type = dyn_cast<RankedTensorType>(op.getValue().getType());
  if (!type || op.getOrder() != MemOrder::relaxed) return false;
  const int bytes = memoryBytes(e.elementType(op.getValue()));
  auto access = offsetAccess(e, e.layoutOf(op.getValue()), op.getPtr(), op.getOffsets(), op.getMask(), bytes);
  if (access->width.aligned > 1) return false;
  const auto [root, by] = withoutConstantPart(op.getPtr());
  const int64_t unit = std::gcd(e.facts().divisibility(op.getOffsets()), root.alignment(e.facts(), bytes));
  std::map<int64_t, AtomicRmwOp> siblings;
  for (int64_t count = widestAdd(type.getElementType(), e.target); count > 1; count /= 2) {
    if (unit % count != 0) continue;
    if (siblings.empty()) siblings = siblingsOf(op, root, by);
    const SmallVector<AtomicRmwOp> fields = vectorOf(siblings, by, count);
    if (fields.empty()) continue;
    AtomicRmwOp last = op;
    for (AtomicRmwOp field : fields)
      if (last->isBeforeInBlock(field)) last = field;
    for (AtomicRmwOp field : fields)
      if (field != last) e.definedAhead.insert(field);
    e.addedTogether.try_emplace(last, fields);
    return true;
  }
  return false;
}

bool emitSiblingGathers(Emitter& e, GatherOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type || !op.getOffsets() || isVolatile(op)) return false;
  const layout::Layout& layout = e.layoutOf(op.getResult());
  llvm::Type* element = e.elementType(op.getResult());
  const int bytes = memoryBytes(element);
  auto access = offsetAccess(e, layout, op.getPtr(), op.getOffsets(), op.getMask(), bytes);
  const bool shares = llvm::any_of(access->same, [](int64_t group) { return group > 1; });
  if (shares || access->width.aligned > 1) return false;
  const auto [root, by] = withoutConstantPart(op.getPtr());
  const int64_t unit = std::gcd(e.facts().divisibility(op.getOffsets()), root.alignment(e.facts(), bytes));
  Siblings siblings;
  for (int64_t count = 16 / bytes; count > 1; count /= 2) {
    if (unit % count != 0) continue;
    if (siblings.empty()) siblings = siblingsOf(op, root, by);
    SmallVector<GatherOp> fields = vectorOf(siblings, by, count);
    if (fields.empty()) continue;
    const int64_t begin = by - ((by % count) + count) % count;
    Regs fallback{llvm::Constant::getNullValue(element)};
    if (op.getOther()) fallback = Regs(e.regs(op.getOther()));
    SmallVector<Regs> results(count, Regs(layout.numRegs(), llvm::PoisonValue::get(element)));
    for (const auto& run : access->runs(1, /*unique=*/false)) {
      const int reg = run[0];
      Regs other(count, fallback[fallback.size() == 1 ? 0 : reg]);
      llvm::Value* address = access->address(reg);
      if (begin != by) address = e.b.CreatePtrAdd(address, e.i64((begin - by) * bytes));
      Regs loaded = loadVector(e, address, element, static_cast<int>(count), access->predicate(reg), other,
                               op.getCache());
      for (int64_t i = 0; i < count; ++i) results[i][reg] = loaded[i];
    }
    for (auto [field, result] : llvm::zip(fields, results)) {
      e.define(field.getResult(), std::move(result));
      if (field != op) e.definedAhead.insert(field);
    }
    return true;
  }
  return false;
}

}  // namespace tile::ir
