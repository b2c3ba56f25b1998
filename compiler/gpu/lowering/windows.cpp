// windows.cpp - the neighbours in a stencil that is read through pointers: gathers at the same offsets, a few elements
// apart, of which every thread wants the same window several times.
// Before: u[i - 1], u[i] and u[i + 1] for four neighbours i of a thread, under masks: one vector (that of u[i]) and
//         eight single elements, whose lanes lie four apart.
// After:  the window of six is read once: one vector and two elements; every gather takes its four of them.
// Where every element of a thread is wanted the aligned vectors that the window covers are read whole; elsewhere
// (a branch) the elements one by one, each if any of the gathers wants it: no more memory than that is touched. So are
// all elements where no access has more than one.
#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/access/fields.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/tile_access.h"
#include "compiler/lowering/elementwise.h"

namespace tile::ir {
using namespace mlir;

namespace {

struct Window {
  SmallVector<std::pair<int64_t, GatherOp>> gathers;  ///< by distance in elements from the common start
  int64_t low = 0, high = 0;                          ///< the smallest and largest distance
  int vector = 1;                                     ///< elements of an access, aligned at distance 0
  int run = 1;  ///< neighbours that a thread has in a row at distance 0, one or several accesses
};

/// Neighbours that one window serves, at most: what a thread has beyond that has windows of its own.
constexpr int64_t kLongestRun = 32;

int64_t floorTo(int64_t x, int64_t unit) { return x - ((x % unit) + unit) % unit; }

/// Whether a gather in front of which `value` is needed has it.
bool isThere(Value value, Operation* first) {
  Operation* op = value ? value.getDefiningOp() : nullptr;
  return !op || op->getBlock() != first->getBlock() || op->isBeforeInBlock(first);
}

/// The gather and those behind it that read beside it before anything they read is written.
Window windowOf(Emitter& e, GatherOp first) {
  Window window;
  const auto [root, by] = withoutConstantPart(first.getPtr());
  window.low = window.high = by;
  for (Operation* op = first; op && !changesWhatIsRead(op, first); op = op->getNextNode()) {
    auto gather = dyn_cast<GatherOp>(op);
    if (!gather || gather.getOffsets() != first.getOffsets() || gather.getCache() != first.getCache() ||
        gather.getType() != first.getType() || e.definedAhead.contains(gather) || !isThere(gather.getMask(), first) ||
        !isThere(gather.getOther(), first))
      continue;
    const auto [ptr, distance] = withoutConstantPart(gather.getPtr());
    const int64_t low = std::min(window.low, distance), high = std::max(window.high, distance);
    if (ptr != root || high - low > kFarthestInWindow) continue;
    window.gathers.emplace_back(distance, gather);
    window.low = low, window.high = high;
  }
  const int bytes = memoryBytes(e.elementType(first.getResult()));
  const layout::Layout& layout = e.layoutOf(first.getResult());
  AccessWidth width = widthUnder(offsetWidth(e.facts(), root.ptr, first.getOffsets(), {}, bytes), layout);
  window.run = window.vector = width.aligned;
  if (root.offset) window.vector = std::gcd<int64_t>(window.vector, e.facts().divisibility(root.offset));
  if (width.dim < 0) return window;
  const int64_t inARow = e.facts().of(first.getOffsets()).contiguity[width.dim];
  width.aligned = width.masked = static_cast<int>(std::min<int64_t>(inARow & -inARow, kLongestRun));
  window.run = std::max(window.run, widthUnder(width, layout).aligned);
  return window;
}

/// Fewer accesses than each gather for itself? And nothing in between that none of them wants.
bool pays(const Window& window) {
  SmallVector<int64_t> places;
  for (auto [distance, gather] : window.gathers) places.push_back(distance);
  llvm::sort(places);
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i] - places[i - 1] > window.vector) return false;
  int64_t apart = 0, together = 0;
  for (auto [distance, gather] : window.gathers)
    apart += distance % window.vector == 0 ? window.run / window.vector : window.run;
  const int64_t end = window.high + window.run;
  for (int64_t at = floorTo(window.low, window.vector); at < end; at += window.vector)
    together += at >= window.low && at + window.vector <= end
                    ? 1
                    : std::min(at + window.vector, end) - std::max(at, window.low);
  return window.vector > 1 ? together < apart : savesEnough(together, apart);
}

/// Whether nobody sees what a masked gather gives where the mask is off: all that is made of it, element by element, is
/// scattered under the same mask.
bool isOnlyWrittenUnder(Value mask, Value value) {
  constexpr size_t kMost = 256;
  llvm::SetVector<Value> pending;
  pending.insert(value);
  for (size_t i = 0; i < pending.size(); ++i) {
    if (i == kMost) return false;
    for (Operation* user : pending[i].getUsers()) {
      if (auto scatter = dyn_cast<ScatterOp>(user)) {
        if (scatter.getValue() != pending[i] || scatter.getMask() != mask || scatter.getOffsets() == pending[i])
          return false;
        continue;
      }
      const bool stays = isElementwise(user) && isMemoryEffectFree(user) && user->getNumResults() == 1 &&
                         user->getBlock() == mask.getParentBlock();
      auto type = stays ? dyn_cast<RankedTensorType>(user->getResult(0).getType()) : RankedTensorType();
      if (!type || type.getShape() != cast<RankedTensorType>(mask.getType()).getShape()) return false;
      pending.insert(user->getResult(0));
    }
  }
  return true;
}

}  // namespace

bool emitWindow(Emitter& e, GatherOp first) {
  if (!isa<RankedTensorType>(first.getType()) || !first.getOffsets() || isVolatile(first)) return false;
  const Window window = windowOf(e, first);
  const layout::Layout& layout = e.layoutOf(first.getResult());
  if (window.gathers.size() < 2 || window.run == 1 || layout.isPadded() || !pays(window)) return false;
  // A mask that shows in what is made of a gather is kept for every element. Several are looked at only where some
  // element is not wanted; that is a way of its own, whose loads others cannot overlap: it must save many.
  llvm::DenseSet<Value> shown;
  for (auto [distance, gather] : window.gathers)
    if (gather.getMask() && !isOnlyWrittenUnder(gather.getMask(), gather.getResult())) shown.insert(gather.getMask());
  const bool choosesInside = shown.size() > 1;
  if (choosesInside && window.run == window.vector) return false;
  llvm::Type* element = e.elementType(first.getResult());
  const int bytes = memoryBytes(element);
  const int64_t by = withoutConstantPart(first.getPtr()).second;

  auto accessOf = [&](GatherOp gather) {
    return offsetAccess(e, layout, first.getPtr(), gather.getOffsets(), gather.getMask(), bytes);
  };
  SmallVector<std::unique_ptr<Access>> masks;
  SmallVector<llvm::Value*> inside;
  llvm::DenseSet<Value> seen;
  for (auto [distance, gather] : window.gathers) {
    masks.push_back(accessOf(gather));
    const auto alike = llvm::enumerate(masks.back()->firstAlike);
    if (masks.back()->isSpotted || llvm::any_of(alike, [](auto reg) { return reg.value() != reg.index(); }))
      return false;
    if (gather.getMask() && seen.insert(gather.getMask()).second) inside.push_back(masks.back()->allInside());
  }
  const auto runs = masks[0]->runs(window.run, /*unique=*/false);
  if (runs.empty() || static_cast<int>(runs[0].size()) != window.run) return false;
  const int64_t count = window.high - window.low + window.run;

  // What a gather has of all the windows; with `masked` elements only where its mask is on.
  auto taken = [&](size_t g, const Regs& all, bool masked) {
    auto [distance, gather] = window.gathers[g];
    Regs fallback{llvm::Constant::getNullValue(element)}, result(layout.numRegs(), llvm::PoisonValue::get(element));
    if (gather.getOther()) fallback = Regs(e.regs(gather.getOther()));
    for (const auto& [r, run] : llvm::enumerate(runs))
      for (auto [i, reg] : llvm::enumerate(run)) {
        llvm::Value* value = all[r * count + (distance - window.low) + i];
        llvm::Value* own = masked ? masks[g]->predicate(reg) : nullptr;
        result[reg] = own ? e.b.CreateSelect(own, value, fallback[fallback.size() == 1 ? 0 : reg]) : value;
      }
    return result;
  };

  // All of the windows, one behind the other; or, where masks are looked at here, all that the gathers have.
  auto load = [&](bool whole) {
    const auto access = accessOf(first);
    Regs all;
    for (const auto& run : runs) {
      auto address = [&](int64_t at) { return e.b.CreatePtrAdd(access->address(run[0]), e.i64((at - by) * bytes)); };
      for (int64_t at = window.low; at < window.low + count;) {
        const bool isVector = whole && at % window.vector == 0 && at + window.vector <= window.low + count;
        llvm::Value* wanted = nullptr;
        for (size_t g = 0; !whole && g < masks.size(); ++g) {
          const int64_t i = at - window.gathers[g].first;
          if (i < 0 || i >= window.run) continue;
          llvm::Value* own = masks[g]->predicate(run[i]);
          if (!own) own = e.b.getTrue();
          wanted = wanted ? e.b.CreateOr(wanted, own) : own;
        }
        Regs loaded =
            loadVector(e, address(at), element, isVector ? window.vector : 1, wanted,
                       Regs(isVector ? window.vector : 1, llvm::Constant::getNullValue(element)), first.getCache());
        all.append(loaded.begin(), loaded.end());
        at += isVector ? window.vector : 1;
      }
    }
    if (!choosesInside) return all;
    Regs results;
    for (auto [g, field] : llvm::enumerate(window.gathers)) {
      GatherOp gather = field.second;
      results.append(taken(g, all, !whole && shown.contains(gather.getMask())));
    }
    return results;
  };
  llvm::Value* fast = e.andAll(inside);
  const Regs all = !fast ? load(true) : window.vector == 1 ? load(false) : branch(e, fast, load);

  for (auto [g, field] : llvm::enumerate(window.gathers)) {
    GatherOp gather = field.second;
    const auto own = all.begin() + static_cast<long>(g) * layout.numRegs();
    e.define(gather.getResult(), choosesInside ? Regs(own, own + layout.numRegs())
                                               : taken(g, all, shown.contains(gather.getMask())));
    if (gather != first) e.definedAhead.insert(gather);
  }
  return true;
}

}  // namespace tile::ir
