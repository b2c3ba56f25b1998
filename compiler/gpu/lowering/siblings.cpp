// siblings.cpp - words side by side (the fields of a record) as one access: gathers, scatters, and relaxed additions
// without results.
//
// Gathers at the same offsets, or of scalars, from pointers that are constants apart read one aligned vector each
// thread, where offsets and pointer are known to be multiples of it and words of both its halves are wanted: the first
// of them reads for all. (A word nobody wants lies in the same 16 bytes as one that is there to be read, so it can be
// read, too: x, y and z of a record of four are one access.) Nothing may be written between them. So with scatters and
// additions to memory, of which every word is wanted and the last writes for all: nothing may be read between them.
#include <numeric>

#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/access/fields.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/tile_access.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// By its distance in elements from the common pointer.
using Siblings = std::map<int64_t, GatherOp>;

/// The first place of the aligned vector of `count` that `by` lies in.
int64_t beginOf(int64_t by, int64_t count) { return by - ((by % count) + count) % count; }

/// The fields of the aligned vector of `count` that `by` lies in, in order; empty: not all of them are there.
template <class Op>
SmallVector<Op> vectorOf(const std::map<int64_t, Op>& siblings, int64_t by, int64_t count) {
  const int64_t begin = beginOf(by, count);
  SmallVector<Op> fields;
  for (int64_t i = 0; i < count; ++i) {
    auto it = siblings.find(begin + i);
    if (it == siblings.end()) return {};
    fields.push_back(it->second);
  }
  return fields;
}

/// So with those of its fields that are read, if both halves have some: by their places in the vector.
SmallVector<std::pair<int64_t, GatherOp>> readOf(const Siblings& siblings, int64_t by, int64_t count) {
  const int64_t begin = beginOf(by, count);
  SmallVector<std::pair<int64_t, GatherOp>> fields;
  for (auto it = siblings.lower_bound(begin); it != siblings.end() && it->first < begin + count; ++it)
    fields.emplace_back(it->first - begin, it->second);
  if (fields.front().first >= count / 2 || fields.back().first < count / 2) fields.clear();
  return fields;
}

Siblings siblingsOf(GatherOp first, const RecordStart& root, int64_t by) {
  Siblings all{{by, first}};
  for (Operation* op = first->getNextNode(); op && !changesWhatIsRead(op, first); op = op->getNextNode()) {
    auto gather = dyn_cast<GatherOp>(op);
    if (!gather || !readAlike(gather, first)) continue;
    const auto [ptr, distance] = withoutConstantPart(gather.getPtr());
    if (ptr == root) all.try_emplace(distance, gather);
  }
  return all;
}

bool isRelaxedAdd(Operation* op) {
  auto add = dyn_cast<AtomicRmwOp>(op);
  return add && onlyAdds(add) && add.getOrder() == MemOrder::relaxed;
}

std::map<int64_t, AtomicRmwOp> siblingsOf(AtomicRmwOp first, const RecordStart& root, int64_t by) {
  std::map<int64_t, AtomicRmwOp> all{{by, first}};
  for (Operation* op = first->getNextNode(); op; op = op->getNextNode()) {
    if (!isRelaxedAdd(op)) {
      if (isa<LoadOp, GatherOp>(op) || changesWhatIsRead(op, {})) break;
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

/// Whether a scatter may as well stand behind the op.
bool mayFollow(ScatterOp scatter, Operation* op) {
  if (isMemoryEffectFree(op)) return true;
  return isa<LoadOp, GatherOp, StoreOp, ScatterOp>(op) && rootOf(addressOf(op)).isApartFrom(rootOf(scatter.getPtr()));
}

std::map<int64_t, ScatterOp> siblingsOf(ScatterOp first, const RecordStart& root, int64_t by) {
  std::map<int64_t, ScatterOp> all{{by, first}};
  for (Operation* op = first->getNextNode(); op; op = op->getNextNode()) {
    auto scatter = dyn_cast<ScatterOp>(op);
    const auto [ptr, distance] = scatter ? withoutConstantPart(scatter.getPtr()) : std::pair<RecordStart, int64_t>();
    if (scatter && ptr == root && scatter.getOffsets() == first.getOffsets() && scatter.getMask() == first.getMask() &&
        scatter.getCache() == first.getCache() && scatter.getValue().getType() == first.getValue().getType()) {
      if (!all.try_emplace(distance, scatter).second) break;  // the same field again
    } else if (!mayFollow(first, op)) {
      break;
    }
  }
  return all;
}

/// What each thread writes of a record at once: write(address, words, predicate).
template <class Op>
void writeFields(Emitter& e, ArrayRef<Op> fields,
                 llvm::function_ref<void(llvm::Value*, ArrayRef<llvm::Value*>, llvm::Value*)> write) {
  Op first = fields.front();
  const layout::Layout& layout = e.layoutOf(first.getValue());
  const int bytes = memoryBytes(e.elementType(first.getValue()));
  auto access = offsetAccess(e, layout, first.getPtr(), first.getOffsets(), first.getMask(), bytes);
  llvm::Value* own = e.isFirstReplica(layout);
  for (const auto& run : access->runs(1, /*unique=*/true)) {
    SmallVector<llvm::Value*> values;
    for (Op field : fields) values.push_back(e.regs(field.getValue())[run[0]]);
    write(access->address(run[0]), values, e.andAll({own, access->predicate(run[0])}));
  }
}

/// Leaves the writing of what makes up the widest aligned vector of at most `most` words to the last of its fields;
/// false: there are none.
template <class Op>
bool leaveToLast(Emitter& e, Op op, int64_t most, llvm::DenseMap<Operation*, SmallVector<Op>>& together) {
  const int bytes = memoryBytes(e.elementType(op.getValue()));
  auto access = offsetAccess(e, e.layoutOf(op.getValue()), op.getPtr(), op.getOffsets(), op.getMask(), bytes);
  if (access->width.aligned > 1) return false;
  const auto [root, by] = withoutConstantPart(op.getPtr());
  const int64_t unit = std::gcd(e.facts().divisibility(op.getOffsets()), root.alignment(e.facts(), bytes));
  std::map<int64_t, Op> siblings;
  for (int64_t count = most; count > 1; count /= 2) {
    if (unit % count != 0) continue;
    if (siblings.empty()) siblings = siblingsOf(op, root, by);
    const SmallVector<Op> fields = vectorOf(siblings, by, count);
    if (fields.empty()) continue;
    Op last = op;
    for (Op field : fields)
      if (last->isBeforeInBlock(field)) last = field;
    for (Op field : fields)
      if (field != last) e.definedAhead.insert(field);
    together.try_emplace(last, fields);
    return true;
  }
  return false;
}

}  // namespace

bool changesWhatIsRead(Operation* op, GatherOp reader) {
  if (reader && isa<StoreOp, ScatterOp>(op) && rootOf(addressOf(op)).isApartFrom(rootOf(reader.getPtr()))) return false;
  return writesGlobal(op) || isAcquire(op) || isa<BarrierOp>(op) || (op->getNumRegions() && !isa<ReduceOp, ScanOp>(op));
}

bool emitSiblingAdds(Emitter& e, AtomicRmwOp op) {
  if (auto it = e.addedTogether.find(op); it != e.addedTogether.end()) {
    writeFields<AtomicRmwOp>(e, it->second,
                             [&](llvm::Value* ptr, ArrayRef<llvm::Value*> values, llvm::Value* predicate) {
                               addVector(e, ptr, values, predicate, op.getScope());
                             });
    return true;
  }
  auto type = dyn_cast<RankedTensorType>(op.getValue().getType());
  if (!type || op.getOrder() != MemOrder::relaxed) return false;
  return leaveToLast(e, op, widestAdd(type.getElementType(), e.target), e.addedTogether);
}

bool emitSiblingScatters(Emitter& e, ScatterOp op) {
  if (auto it = e.scatteredTogether.find(op); it != e.scatteredTogether.end()) {
    writeFields<ScatterOp>(e, it->second, [&](llvm::Value* ptr, ArrayRef<llvm::Value*> values, llvm::Value* predicate) {
      storeVector(e, ptr, values, predicate, op.getCache());
    });
    return true;
  }
  if (!isa<RankedTensorType>(op.getValue().getType()) || !op.getOffsets()) return false;
  return leaveToLast(e, op, 16 / memoryBytes(e.elementType(op.getValue())), e.scatteredTogether);
}

bool emitSiblingGathers(Emitter& e, GatherOp op) {
  const bool isTile = isa<RankedTensorType>(op.getType());
  if (isTile != bool(op.getOffsets()) || isVolatile(op)) return false;
  const layout::Layout& layout = e.layoutOf(op.getResult());
  llvm::Type* element = e.elementType(op.getResult());
  const int bytes = memoryBytes(element);
  auto access = offsetAccess(e, layout, op.getPtr(), op.getOffsets(), op.getMask(), bytes);
  const bool shares =
      llvm::any_of(llvm::enumerate(access->firstAlike), [](auto reg) { return reg.value() != reg.index(); });
  if (shares || access->width.aligned > 1) return false;
  const auto [root, by] = withoutConstantPart(op.getPtr());
  int64_t unit = root.alignment(e.facts(), bytes);
  if (isTile) unit = std::gcd(unit, e.facts().divisibility(op.getOffsets()));
  Siblings siblings;
  for (int64_t count = 16 / bytes; count > 1; count /= 2) {
    if (unit % count != 0) continue;
    if (siblings.empty()) siblings = siblingsOf(op, root, by);
    const auto fields = readOf(siblings, by, count);
    if (fields.empty()) continue;
    const int64_t begin = beginOf(by, count);
    Regs fallback{llvm::Constant::getNullValue(element)};
    if (op.getOther()) fallback = Regs(e.regs(op.getOther()));
    SmallVector<Regs> results(count, Regs(layout.numRegs(), llvm::PoisonValue::get(element)));
    for (const auto& run : access->runs(1, /*unique=*/false)) {
      const int reg = run[0];
      Regs other(count, fallback[fallback.size() == 1 ? 0 : reg]);
      llvm::Value* address = access->address(reg);
      if (begin != by) address = e.b.CreatePtrAdd(address, e.i64((begin - by) * bytes));
      Regs loaded =
          loadVector(e, address, element, static_cast<int>(count), access->predicate(reg), other, op.getCache());
      for (int64_t i = 0; i < count; ++i) results[i][reg] = loaded[i];
    }
    for (auto [at, field] : fields) {
      e.define(field.getResult(), std::move(results[at]));
      if (field != op) e.definedAhead.insert(field);
    }
    return true;
  }
  return false;
}

}  // namespace tile::ir
