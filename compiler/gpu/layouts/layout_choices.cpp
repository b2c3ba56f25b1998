// layout_choices.cpp - spreads layouts from tile to tile.
#include "compiler/gpu/layouts/layout_choices.h"

#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/across.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

std::optional<Layout> LayoutChoices::of(Value tile) const {
  auto it = chosen_.find(tile);
  if (it == chosen_.end()) return std::nullopt;
  return it->second;
}

bool LayoutChoices::hold(Value tile, const Layout& layout) {
  return isTile(tile) && !cheap_.isCheap(tile) && chosen_.try_emplace(tile, layout).second;
}

void LayoutChoices::choose(Value tile, const Layout& layout) {
  if (hold(tile, layout)) pending_.push_back(tile);
}

void LayoutChoices::spread() {
  while (!pending_.empty()) {
    Value tile = pending_.pop_back_val();
    if (Operation* def = tile.getDefiningOp())
      relate(def);
    else
      relate(tile.getParentBlock()->getParentOp());
    for (Operation* user : tile.getUsers()) {
      relate(user);
      if (user->hasTrait<OpTrait::IsTerminator>()) relate(user->getParentOp());
    }
  }
}

void LayoutChoices::relateGroup(ArrayRef<Value> group) {
  for (Value tile : group) {
    auto layout = of(tile);
    if (!layout) continue;
    for (Value other : group) choose(other, *layout);
    return;
  }
}

// Spreads what is chosen around one op as far as it is free.
void LayoutChoices::relate(Operation* op) {
  for (auto& group : carriedGroups(op)) relateGroup(group);
  SmallVector<Value> group = sameLayout(op);
  if (auto scan = dyn_cast<ScanOp>(op))
    llvm::erase_if(group, [&](Value tile) {
      const auto layout = of(tile);
      return layout && !scansWell(*layout, static_cast<int>(scan.getAxis()));
    });
  relateGroup(group);
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    auto source = of(reduce.getSources()[0]);
    if (source && readsTable(reduce, *source, access_.defaultLayout(reduce.getResult(0).getType()))) return;
  }
  visitLinks(op, [&](Value from, Value to, MapLayout map) {
    auto layout = of(from);
    if (!layout || of(to)) return;
    if (auto mapped = map(*layout)) choose(to, *mapped);
  });
}

}  // namespace tile::ir
