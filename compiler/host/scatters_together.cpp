// scatters_together.cpp - finds scatters that stand side by side and are stored in one loop. What several of them store
// is computed from is then read once, and memory is read and written while they compute: alone, each would go over tiles
// that the ones before it left in the caches.
#include "compiler/analysis/facts.h"
#include "compiler/analysis/memory_roots.h"
#include "compiler/host/plan.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

/// Streams of stores that are written at a time; more would take turns in the sets of the first cache.
constexpr size_t kMost = 4;

bool isOfRuns(ScatterOp op, const Facts& facts) {
  constexpr int64_t kShort = 16;
  if (!isTile(op.getValue()) || isTile(op.getPtr()) || op.getCache() == CacheHint::volatile_) return false;
  const int64_t row = shapeOf(op.getValue()).back();
  return row >= kShort && facts.of(op.getOffsets()).contiguity.back() == row;
}

}  // namespace

bool areApart(ScatterOp a, ScatterOp b) { return rootOf(a.getPtr()).isApartFrom(rootOf(b.getPtr())); }

void Plan::findScattersTogether(func::FuncOp kernel, const Facts& facts) {
  auto notOne = [](int64_t n) { return n != 1; };
  auto mayJoin = [&](ArrayRef<ScatterOp> group, ScatterOp op) {
    ScatterOp first = group[0];
    const auto shape = shapeOf(op.getValue());
    if (group.size() == kMost || !isOfRuns(op, facts) || shape != shapeOf(first.getValue())) return false;
    // Where two may meet, their loop finds out: easy of one row each.
    return llvm::count_if(shape, notOne) == 1 || llvm::all_of(group, [&](ScatterOp one) { return areApart(one, op); });
  };
  kernel.walk([&](Block* block) {
    SmallVector<ScatterOp, kMost> group;
    auto close = [&] {
      if (group.size() > 1)
        for (ScatterOp op : group) together_[op] = group;
      group.clear();
    };
    for (Operation& at : *block) {
      auto op = dyn_cast<ScatterOp>(at);
      if (op && !group.empty() && mayJoin(group, op)) {
        group.push_back(op);
        continue;
      }
      close();
      if (op && isOfRuns(op, facts)) group.push_back(op);
    }
    close();
  });
}

}  // namespace tile::ir::host
