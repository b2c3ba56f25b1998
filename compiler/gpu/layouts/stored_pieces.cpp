// stored_pieces.cpp - layouts are followed from a loaded tile to the stores of what is computed of it.
#include "compiler/gpu/layouts/stored_pieces.h"

#include <algorithm>

#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/forms/layout_links.h"
#include "compiler/gpu/forms/moves.h"
#include "llvm/ADT/MapVector.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

bool isWrite(Operation* op) { return isa<StoreOp, ScatterOp, AccumulateOp>(op) || addsToMemory(op); }

/// Whether the kernel reads so many more tiles than it writes that pieces are best for the loads (filters, stencils: a
/// census of 24 neighbours took 8 % longer with smaller ones). Tables are looked up anyhow.
bool readsMoreThanItWrites(Value loaded, const Facts& facts) {
  constexpr int kTimes = 2;
  int64_t read = 0, written = 0;
  loaded.getParentRegion()->getParentOfType<FunctionOpInterface>()->walk([&](Operation* op) {
    if (!isa<LoadOp, GatherOp>(op) && !isWrite(op)) return;
    const auto access = accessOf(op, facts);
    if (access && access->width.dim >= 0) (isWrite(op) ? written : read) += tileBytes(access->tile.getType());
  });
  return read > kTimes * written;
}

/// Whether the store is carried out as often as the load at least.
bool isAsOften(Operation* store, Value loaded) {
  Operation* around = loaded.getDefiningOp() ? loaded.getDefiningOp()->getParentOfType<LoopLikeOpInterface>() : nullptr;
  return !around || around->isProperAncestor(store);
}

}  // namespace

double shareOfSectorsStored(Value loaded, const Layout& layout, const Facts& facts) {
  constexpr size_t kMost = 64;  // tiles that are looked at
  constexpr int kWidest = 16;   // bytes
  constexpr double kHalf = .5;  // of rows at any addresses: larger pieces of loads are as good
  double least = 1, leastSingle = 1;
  llvm::MapVector<Value, Layout> reached;
  auto carried = [&](Operation* op, Value tile, const Layout& own) {
    for (const auto& group : carriedGroups(op))
      if (llvm::is_contained(group, tile))
        for (Value other : group) reached.insert({other, own});
  };
  reached.insert({loaded, layout});
  for (size_t i = 0; i < reached.size() && i < kMost; ++i) {
    const auto [tile, own] = reached.begin()[i];
    for (Operation* user : tile.getUsers()) {
      carried(user->hasTrait<OpTrait::IsTerminator>() ? user->getParentOp() : user, tile, own);
      if (isWrite(user)) {
        const auto access = accessOf(user, facts);
        if (!access || access->tile != tile || access->width.dim < 0) continue;
        const int dim = access->width.dim, bytes = elementBytes(tile.getType());
        if (!isAsOften(user, loaded)) continue;
        const int run = std::min(own.runLength(dim), std::max(1, kWidest / bytes));
        least = std::min(least, sectorUse(own, dim, bytes, run));
        const double single = sectorUse(own, dim, bytes, widthUnder(access->width, own).aligned);
        if (single < kHalf) leastSingle = std::min(leastSingle, single);
      } else if (user->getNumResults() > 0 && llvm::is_contained(sameLayout(user), tile)) {
        for (Value result : user->getResults())
          if (isTile(result) && shapeOf(result) == own.shape()) reached.insert({result, own});
      } else if (isa<ReshapeOp, CatOp, TransOp, BroadcastOp>(user)) {
        visitLinks(user, [&, from = tile, at = own](Value source, Value result, MapLayout map) {
          if (source != from || result.getDefiningOp() != user) return;
          if (auto mapped = map(at)) reached.insert({result, *mapped});
        });
      }
    }
  }
  if (least < 1 && readsMoreThanItWrites(loaded, facts)) least = 1;
  return std::min(least, leastSingle);
}

}  // namespace tile::ir
