// sibling_gathers.cpp - gathers of words side by side (the fields of a record) as one access.
//
// Gathers at the same offsets from pointers that are constants apart read one aligned vector each thread, where offsets
// and pointer are known to be multiples of it and every word of it is wanted: the first of them reads for all. Nothing may
// be written between them.
#include <numeric>

#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/tile_access.h"
#include "compiler/gpu/memory_roots.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// A pointer as another one plus a constant number of elements.
std::pair<Value, int64_t> withoutConstantPart(Value ptr) {
  constexpr int64_t kMost = 1 << 20;
  int64_t by = 0;
  while (auto add = ptr.getDefiningOp<PtrAddOp>()) {
    APInt constant;
    if (!matchPattern(add.getOffset(), m_ConstantInt(&constant)) || std::abs(constant.getSExtValue()) > kMost) break;
    by += constant.getSExtValue();
    ptr = add.getPtr();
  }
  return {ptr, by};
}

/// What is read behind it is not what would be read in front of it, or may not be.
bool ends(Operation* op) {
  return writesGlobal(op) || isAcquire(op) || isa<BarrierOp>(op) ||
         (op->getNumRegions() && !isa<ReduceOp, ScanOp>(op));
}

/// By its distance in elements from the common pointer.
using Siblings = std::map<int64_t, GatherOp>;

Siblings siblingsOf(GatherOp first, Value root, int64_t by) {
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

}  // namespace

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
  const int64_t unit = std::gcd(e.facts().divisibility(op.getOffsets()), e.facts().alignOf(root) / bytes);
  Siblings siblings;
  for (int64_t count = 16 / bytes; count > 1; count /= 2) {
    if (unit % count != 0) continue;
    if (siblings.empty()) siblings = siblingsOf(op, root, by);
    const int64_t begin = by - ((by % count) + count) % count;
    SmallVector<GatherOp> fields;
    for (int64_t i = 0; i < count; ++i)
      if (auto it = siblings.find(begin + i); it != siblings.end()) fields.push_back(it->second);
    if (static_cast<int64_t>(fields.size()) != count) continue;
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
