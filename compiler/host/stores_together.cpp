// stores_together.cpp - finds stores that stand side by side and run in one loop. What several of them store is
// computed from is then read once, and memory is read and written while they compute: alone, each would go over tiles
// that the ones before it left in the caches.
#include "compiler/analysis/facts.h"
#include "compiler/analysis/memory_roots.h"
#include "compiler/host/plan.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

/// Streams of stores that are written at a time; more would take turns in the sets of the first cache.
constexpr size_t kMost = 4;
constexpr int64_t kShort = 16, kLong = 32;  // rows that take vectors; that are loops of their own

bool isOfRuns(ScatterOp op, const Facts& facts) {
  if (!isTile(op.getValue()) || isTile(op.getPtr()) || op.getCache() == CacheHint::volatile_) return false;
  const int64_t row = shapeOf(op.getValue()).back();
  return row >= kShort && facts.of(op.getOffsets()).contiguity.back() == row;
}

bool isOfLongRows(StoreOp op) {
  return isTile(op.getValue()) && op.getCache() != CacheHint::volatile_ && shapeOf(op.getValue()).back() >= kLong;
}

/// Whether two boxes of one view lie apart along a dim, by indices that are constants.
bool haveApartIndices(StoreOp a, StoreOp b) {
  const auto shape = shapeOf(a.getValue());
  const size_t leading = a.getIndices().size() - shape.size();
  for (auto [d, indices] : llvm::enumerate(llvm::zip(a.getIndices(), b.getIndices()))) {
    const auto x = getConstantIntValue(std::get<0>(indices)), y = getConstantIntValue(std::get<1>(indices));
    if (x && y && std::abs(*x - *y) >= (d < leading ? 1 : shape[d - leading])) return true;
  }
  return false;
}

Value tileOf(Operation* op) {
  auto box = dyn_cast<StoreOp>(op);
  return box ? box.getValue() : cast<ScatterOp>(op).getValue();
}

}  // namespace

bool areApart(Operation* a, Operation* b) {
  if (rootOf(addressOf(a)).isApartFrom(rootOf(addressOf(b)))) return true;
  auto x = dyn_cast<StoreOp>(a), y = dyn_cast<StoreOp>(b);
  return x && y && x.getView() == y.getView() && haveApartIndices(x, y);
}

void Plan::findStoresTogether(func::FuncOp kernel, const Facts& facts) {
  auto notOne = [](int64_t n) { return n != 1; };
  auto isCandidate = [&](Operation* op) {
    if (auto box = dyn_cast<StoreOp>(op)) return isOfLongRows(box);
    auto scatter = dyn_cast<ScatterOp>(op);
    return scatter && isOfRuns(scatter, facts);
  };
  auto mayJoin = [&](ArrayRef<Operation*> group, Operation* op) {
    if (group.size() == kMost || !isCandidate(op) || op->getName() != group[0]->getName()) return false;
    const auto shape = shapeOf(tileOf(op));
    if (shape != shapeOf(tileOf(group[0]))) return false;
    // Where two scatters may meet, their loop finds out: easy of one row each.
    return (isa<ScatterOp>(op) && llvm::count_if(shape, notOne) == 1) ||
           llvm::all_of(group, [&](Operation* one) { return areApart(one, op); });
  };
  kernel.walk([&](Block* block) {
    SmallVector<Operation*, kMost> group;
    auto close = [&] {
      if (group.size() > 1)
        for (Operation* op : group) together_[op] = group;
      group.clear();
    };
    for (Operation& op : *block) {
      if (!group.empty() && mayJoin(group, &op)) {
        group.push_back(&op);
        continue;
      }
      close();
      if (isCandidate(&op)) group.push_back(&op);
    }
    close();
  });
}

}  // namespace tile::ir::host
