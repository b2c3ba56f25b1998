// bands.cpp - see bands.h.
#include "compiler/gpu/roles/bands.h"

#include <cmath>

#include "compiler/analysis/definitions.h"
#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/forms/shared_memory.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kMultiprocessors = 128;  ///< about as many as GPUs with roles have
constexpr int kNarrowest = 4, kWidest = 64;

/// Whether programs may learn from memory, or tell others by it, which of them run first.
bool showsOrder(func::FuncOp func) {
  return func
      .walk([](Operation* op) {
        auto update = dyn_cast<AtomicRmwOp>(op);
        const bool shows = isa<AtomicCasOp, InlineAsmOp>(op) || (update && !update.getResult().use_empty()) ||
                           (isa<LoadOp, GatherOp>(op) && isVolatile(op)) || isAcquire(op) || isRelease(op);
        return shows ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

struct Axes {
  bool x = false, y = false;
};
/// Which program ids the copy's place depends on; nullopt: also on memory.
std::optional<Axes> axesOf(LoadSharedOp copy) {
  SmallVector<Value> place(copy.getIndices());
  place.push_back(copy.getView());
  Axes axes;
  for (Operation* op : definitionsBehind(place)) {
    if (auto id = dyn_cast<ProgramIdOp>(op)) {
      axes.x |= id.getAxis() == 0;
      axes.y |= id.getAxis() == 1;
    } else if (op->getNumRegions() || !isMemoryEffectFree(op)) {
      return std::nullopt;
    }
  }
  return axes;
}

}  // namespace

int bandOf(func::FuncOp func, const std::vector<LoadGroup>& groups, const RoleSlice& slice, int programs) {
  auto cluster = func->getAttrOfType<IntegerAttr>(kClusterAttr);
  if ((cluster && cluster.getInt() > 1) || slice.isUneven() || showsOrder(func)) return 0;
  int64_t ofX = 0, ofY = 0;  // bytes of an iteration
  for (const LoadGroup& group : groups)
    for (Operation* op : group.loads) {
      auto copy = dyn_cast<LoadSharedOp>(op);
      if (!op->getParentOfType<LoopLikeOpInterface>()) continue;
      const std::optional<Axes> axes = copy ? axesOf(copy) : std::nullopt;
      if (!axes) return 0;
      const SmemType type = copiedType(op);
      const int64_t bytes = type.getShape()[0] * type.getShape()[1] * type.elementBytes();
      if (axes->x && !axes->y) ofX += bytes;
      if (axes->y && !axes->x) ofY += bytes;
    }
  if (!ofX || !ofY) return 0;
  // Of w x h programs at a time w ofX + h ofY bytes are read: the least where both are the same.
  const double width = std::sqrt(double{kMultiprocessors} * programs * static_cast<double>(ofY) / static_cast<double>(ofX));
  return std::clamp(static_cast<int>(std::lround(width)), kNarrowest, kWidest);
}

}  // namespace tile::ir
