// global_access.cpp - tiles that are read from or written to global memory.
#include "compiler/gpu/access/global_access.h"

#include <numeric>
#include <set>

#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

std::optional<GlobalAccess> accessOf(Operation* op, const Facts& facts) {
  auto box = [&](Value view, ValueRange indices, Value tile) -> std::optional<GlobalAccess> {
    if (!isTile(tile)) return std::nullopt;
    return GlobalAccess{
        boxWidth(facts, view, indices, cast<RankedTensorType>(tile.getType()).getShape(), elementBytes(tile.getType())),
        tile};
  };
  auto offsets = [&](Value ptr, Value at, Value mask, Value tile) -> std::optional<GlobalAccess> {
    if (!isTile(tile) || !at) return std::nullopt;
    return GlobalAccess{offsetWidth(facts, ptr, at, mask, elementBytes(tile.getType())), tile};
  };
  return llvm::TypeSwitch<Operation*, std::optional<GlobalAccess>>(op)
      .Case<LoadOp>([&](LoadOp o) -> std::optional<GlobalAccess> {
        auto type = dyn_cast<RankedTensorType>(o.getResult().getType());
        if (!type) return std::nullopt;
        return GlobalAccess{loadWidth(facts, o, type.getShape(), elementBytes(type)), o.getResult()};
      })
      .Case<StoreOp, AccumulateOp>([&](auto o) { return box(o.getView(), o.getIndices(), o.getValue()); })
      .Case<GatherOp>([&](GatherOp o) { return offsets(o.getPtr(), o.getOffsets(), o.getMask(), o.getResult()); })
      .Case<ScatterOp>([&](ScatterOp o) { return offsets(o.getPtr(), o.getOffsets(), o.getMask(), o.getValue()); })
      .Case<AtomicRmwOp>([&](AtomicRmwOp o) {
        return offsets(o.getPtr(), o.getOffsets(), o.getMask(), onlyAdds(o) ? o.getValue() : o.getResult());
      })
      .Case<AtomicCasOp>([&](AtomicCasOp o) { return offsets(o.getPtr(), o.getOffsets(), o.getMask(), o.getResult()); })
      .Default([](Operation*) { return std::nullopt; });
}

bool addsToMemory(Operation* op) {
  auto add = dyn_cast<AtomicRmwOp>(op);
  return add && onlyAdds(add);
}

/// Whether one of the ops that a tile of at least so many elements is computed from, element by element, is such.
static bool isMadeBy(Value tile, int64_t elements, llvm::function_ref<bool(Operation*)> isSuch) {
  SmallVector<Value> pending{tile};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getNumElements() < elements || !seen.insert(value).second) continue;
    Operation* from = value.getDefiningOp();
    if (!from) {  // loaded an iteration early
      auto arg = dyn_cast<BlockArgument>(value);
      auto loop = arg ? dyn_cast_or_null<scf::ForOp>(arg.getOwner()->getParentOp()) : scf::ForOp();
      if (loop && arg.getArgNumber() > 0) pending.push_back(loop.getTiedLoopYieldedValue(arg)->get());
      continue;
    }
    if (isSuch(from)) return true;
    if (isElementwise(from) || isa<AssumeOp, ReshapeOp, TransOp>(from))
      pending.append(from->operand_begin(), from->operand_end());
  }
  return false;
}

/// The same of a gather's places.
static bool isPlacedBy(Operation* op, const GlobalAccess& access, llvm::function_ref<bool(Operation*)> isSuch) {
  auto gather = dyn_cast<GatherOp>(op);
  if (!gather || access.width.dim >= 0) return false;
  return isMadeBy(gather.getOffsets(), cast<RankedTensorType>(access.tile.getType()).getNumElements(), isSuch);
}

/// Copies have brought what is read from shared memory before layouts are chosen.
static bool readsMemory(Operation* op) { return isa<LoadOp, GatherOp, SmemLoadOp>(op); }

bool isLookup(Operation* op, const GlobalAccess& access) { return isPlacedBy(op, access, readsMemory); }

bool isLookupOfCopies(Operation* op, const GlobalAccess& access) {
  return isPlacedBy(op, access, [](Operation* from) { return isa<SmemLoadOp>(from); });
}

bool isReadHereAndThere(Value tile, const Facts& facts) {
  bool any = false;
  const bool inRows = isMadeBy(tile, tileType(tile).getNumElements(), [&](Operation* op) {
    const auto access = accessOf(op, facts);
    any |= access && access->width.dim < 0;
    return access && access->width.dim >= 0;
  });
  return any && !inRows;
}

bool isPlaceInSpace(Operation* op, const GlobalAccess& access) {
  return isPlacedBy(op, access, [](Operation* from) { return isa<arith::FPToSIOp, arith::FPToUIOp>(from); });
}

bool updatesFew(Operation* op) {
  return llvm::TypeSwitch<Operation*, bool>(op)
      .Case<AtomicRmwOp, AtomicCasOp>([](auto update) {
        const Value mask = update.getMask();
        auto type = mask ? dyn_cast<RankedTensorType>(mask.getType()) : RankedTensorType();
        return type && update.getResult().use_empty() && isMadeBy(mask, type.getNumElements(), readsMemory);
      })
      .Default(false);
}

bool takesAnyLayout(Operation* op, const GlobalAccess& access, const Facts& facts) {
  if (isLookup(op, access)) return true;
  if (access.width.dim >= 0) return false;
  if (isa<AtomicRmwOp, AtomicCasOp>(op)) return true;
  auto gather = dyn_cast<GatherOp>(op);
  return gather && llvm::any_of(facts.of(gather.getOffsets()).constancy, [](int64_t alike) { return alike > 1; });
}

/// How many neighbours along a dim of a gather read one word, in aligned groups.
static int64_t alikeAlong(GatherOp gather, int64_t dim, const Facts& facts) {
  if (!gather.getOffsets() || gather.getOther() || isVolatile(gather)) return 1;
  const auto type = cast<RankedTensorType>(gather.getResult().getType());
  const int64_t alike = std::gcd(facts.of(gather.getOffsets()).constancy[dim], type.getDimSize(dim));
  return gather.getMask() ? std::gcd(alike, facts.of(gather.getMask()).constancy[dim]) : alike;
}

int64_t rowsAlike(Operation* op, const Facts& facts) {
  auto gather = dyn_cast<GatherOp>(op);
  auto type = gather ? dyn_cast<RankedTensorType>(gather.getResult().getType()) : RankedTensorType();
  return type && type.getRank() == 2 ? alikeAlong(gather, 0, facts) : 1;
}

int64_t columnsAlike(Operation* op, const Facts& facts) {
  constexpr int64_t kMost = 16;
  auto gather = dyn_cast<GatherOp>(op);
  auto type = gather ? dyn_cast<RankedTensorType>(gather.getResult().getType()) : RankedTensorType();
  return type && type.getRank() > 0 ? std::gcd(kMost, alikeAlong(gather, type.getRank() - 1, facts)) : 1;
}

int64_t elementsAlike(Operation* op, const Facts& facts) { return rowsAlike(op, facts) * columnsAlike(op, facts); }

bool isWidenedInPlace(Value tile) {
  const Type type = tile.getType();
  bool isNarrow = false;
  SmallVector<Value> pending{tile};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation* op = value.getDefiningOp();
    if (!isTile(value) || !seen.insert(value).second) continue;
    if (!op || cast<ShapedType>(value.getType()).getShape() != cast<ShapedType>(type).getShape()) return false;
    if (isa<SmemLoadOp, LoadOp>(op))
      isNarrow |= elementBytes(value.getType()) < elementBytes(type);
    else if (isElementwise(op))
      pending.append(op->operand_begin(), op->operand_end());
    else if (!isa<arith::ConstantOp, BroadcastOp, SplatOp>(op))
      return false;
  }
  return isNarrow;
}

double sectorUse(const Layout& layout, int dim, int bytes, std::optional<int> vector) {
  std::set<std::pair<layout::Coord, int64_t>> sectors, wanted;
  const int run = vector.value_or(layout.runLength(dim));
  for (int lane = 0; lane < layout.numLanes(); ++lane) {
    layout::Coord coord = layout.threadCoord(lane, 0);
    int64_t start = coord[dim];
    coord[dim] = 0;
    for (int64_t i = start; i < start + run; ++i) {
      wanted.insert({coord, i});
      sectors.insert({coord, i * bytes / 32});
    }
  }
  return double(wanted.size()) * bytes / (32.0 * double(sectors.size()));
}

bool wholeLines(const Layout& layout, int dim, int bytes) {
  const int run = layout.runLength(dim);
  int64_t extent = run;
  for (const layout::Digit& digit : layout.lanes())
    if (digit.dim == dim && digit.stride == extent) extent *= digit.count;
  return extent * bytes >= 128;
}

}  // namespace tile::ir
