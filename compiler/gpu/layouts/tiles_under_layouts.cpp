// tiles_under_layouts.cpp - see tiles_under_layouts.h.
#include "compiler/gpu/layouts/tiles_under_layouts.h"

#include <algorithm>
#include <functional>

#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/lowering/elementwise.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

constexpr int kMostReloads = 4;       ///< accesses of a thread that loads a small tile once more
constexpr int kMostRegs = 8;          ///< its registers
constexpr int64_t kMostSectors = 64;  ///< that a warp reads for it where elements are no neighbours
constexpr int kMostReloaded = 1024;   ///< elements of such a tile

DenseElementsAttr withType(DenseElementsAttr elements, RankedTensorType type) {
  if (elements.isSplat()) return DenseElementsAttr::get(type, elements.getSplatValue<Attribute>());
  return DenseElementsAttr::getFromRawBuffer(type, elements.getRawData());
}

}  // namespace

void setLayout(Value tile, const Layout& layout) { tile.setType(withLayout(tileType(tile), layout)); }

OpBuilder behind(Value tile) {
  OpBuilder builder(tile.getContext());
  builder.setInsertionPointAfterValue(tile);
  auto at = builder.getInsertionPoint();
  if (isa_and_nonnull<scf::ForOp>(tile.getDefiningOp()))
    while (isa<AsyncWaitOp, BarrierOp>(*at)) ++at;
  builder.setInsertionPoint(builder.getInsertionBlock(), at);
  return builder;
}

void TilesUnderLayouts::recordWidth(Operation* load) {
  if (const auto access = accessOf(load, plan_.facts())) widths_[load] = access->width;
}

Value TilesUnderLayouts::under(Value tile, const Layout& layout) {
  if (plan_.isCheap(tile)) return cheapUnder(tile, layout);
  if (*ir::layoutOf(tile.getType()) == layout) return tile;
  if (auto trans = tile.getDefiningOp<TransOp>()) return transposedUnder(trans, layout);
  const std::pair<Value, Attribute> key(tile, LayoutAttr::get(tile.getContext(), layout));
  Value converted = converted_.lookup(key);  // no reference: operands may come to the map meanwhile
  if (!converted) {
    OpBuilder builder = behind(tile);
    converted = loadedUnder(builder, tile, layout);
    if (!converted) converted = readUnder(tile, layout);
    if (!converted && (isReadAgain(tile, layout) || isMadeOfInvariants(tile, layout)))
      converted = cheapUnder(tile, layout);
    if (!converted) {
      auto type = withLayout(tileType(tile), layout);
      converted = ConvertOp::create(builder, tile.getLoc(), type, tile);
    }
    converted_[key] = converted;
  }
  return converted;
}

/// The source of the transpose is brought under the layout that makes the transpose free.
Value TilesUnderLayouts::transposedUnder(TransOp trans, const Layout& layout) {
  Value& transposed = converted_[{trans.getResult(), LayoutAttr::get(trans.getContext(), layout)}];
  if (transposed) return transposed;
  OpBuilder builder(trans);
  builder.setInsertionPointAfter(trans);
  Value source = under(trans.getSource(), operandLayout(trans, trans.getSource(), layout));
  auto made = TransOp::create(builder, trans.getLoc(), withLayout(tileType(trans.getResult()), layout), source,
                              trans.getPermutation());
  // `under` may have rehashed the map.
  return converted_[{trans.getResult(), LayoutAttr::get(trans.getContext(), layout)}] = made;
}

/// Sectors of memory that a warp touches for a box whose elements are all apart in memory; 0 for other boxes.
int64_t TilesUnderLayouts::sectorsOfWarp(LoadOp load, const Layout& layout) const {
  const int unit = plan_.facts().unitStrideDim(load.getView());
  const int dim = unit - (static_cast<int>(load.getIndices().size()) - layout.rank());
  if (unit >= 0 && dim >= 0 && layout.shape()[dim] > 1) return 0;
  int64_t sectors = layout.numRegs();
  for (const layout::Digit& digit : layout.lanes())
    if (digit.dim != layout::kReplicated) sectors *= digit.count;
  return sectors;
}

/// Instructions of a thread that loads a tile under a layout.
int TilesUnderLayouts::accessesUnder(Operation* load, const Layout& layout) const {
  const AccessWidth width = widthUnder(widths_.lookup(load), layout);
  return layout.numRegs() / std::min(width.aligned, width.masked);
}

/// Loads a small loaded tile once more, under the wanted layout: a few loads of the same cache lines instead of an
/// exchange through shared memory with two barriers. Null: not a load, or too many loads.
Value TilesUnderLayouts::loadedUnder(OpBuilder& builder, Value tile, const Layout& layout) {
  auto type = tileType(tile);
  auto reshape = tile.getDefiningOp<ReshapeOp>();
  auto load = (reshape ? reshape.getSource() : tile).getDefiningOp<LoadOp>();
  if (!load || isVolatile(load) || layout.numRegs() > kMostRegs || type.getNumElements() > kMostReloaded ||
      load->getBlock() != builder.getInsertionBlock())
    return {};
  const Layout from = *ir::layoutOf(type);
  const Move move = planConvert(from, layout, elementBytes(type.getElementType()));
  if (move.kind != Move::exchange || (move.piece && layout.numRegs() > kMostReloads)) return {};
  auto loadedType = tileType(load.getResult());
  auto wanted = layout.reshaped({loadedType.getShape().begin(), loadedType.getShape().end()});
  if (!wanted || wanted->reshaped({type.getShape().begin(), type.getShape().end()}) != layout) return {};
  if (sectorsOfWarp(load, *wanted) > kMostSectors || accessesUnder(load, *wanted) > kMostReloads) return {};
  OpBuilder at(load);
  at.setInsertionPointAfter(load);
  auto again = cast<LoadOp>(at.clone(*load));
  setLayout(again.getResult(), *wanted);
  if (!reshape) return again.getResult();
  Value shaped = ReshapeOp::create(builder, tile.getLoc(), withLayout(type, layout), again.getResult());
  return shaped;
}

/// Reads a tile that comes from shared memory from there once more, under the wanted layout. Null: it comes from
/// elsewhere, or a conversion needs no exchange through shared memory.
Value TilesUnderLayouts::readUnder(Value tile, const Layout& layout) {
  if (!isa_and_nonnull<SmemLoadOp, ReshapeOp, TransOp>(tile.getDefiningOp())) return {};
  const Move move = planConvert(*ir::layoutOf(tile.getType()), layout, elementBytes(tile.getType()));
  return move.kind == Move::exchange ? readAgain(tile, layout) : Value();
}

Value TilesUnderLayouts::readAgain(Value tile, const Layout& layout) {
  Operation* op = tile.getDefiningOp();
  if (!isa_and_nonnull<SmemLoadOp, ReshapeOp, TransOp>(op)) return {};
  IRMapping map;
  if (!isa<SmemLoadOp>(op)) {
    Value source = op->getOperand(0);
    const Layout from = operandLayout(op, source, layout);
    const auto back = isa<ReshapeOp>(op) ? from.reshaped(shapeOf(tile)) : std::optional(layout);
    Value read = back == layout ? readAgain(source, from) : Value();
    if (!read) return {};
    map.map(source, read);
  } else if (layout.isPadded()) {
    return {};
  }
  OpBuilder at(op);
  at.setInsertionPointAfter(op);
  Operation* again = at.clone(*op, map);
  setLayout(again->getResult(0), layout);
  return again->getResult(0);
}

/// Whether the tile is a short vector made of a load (row numbers of a gather, offsets of additions) that should be
/// loaded and computed once more under the wanted layout: a conversion would make warps wait for each other.
bool TilesUnderLayouts::isReadAgain(Value tile, const Layout& layout) {
  auto type = tileType(tile);
  if (!tile.getDefiningOp() || plan_.numWarps() == 1) return false;
  if (layout.numRegs() > kMostRegs || type.getNumElements() > kMostReloaded) return false;
  const Move move = planConvert(*ir::layoutOf(type), layout, elementBytes(type.getElementType()));
  if (move.kind == Move::rename || move.kind == Move::swap || move.piece) return false;
  int loads = 0, ops = 0;
  return isMadeOfLoads(tile, layout, loads, ops) && loads > 0;
}

/// Whether the tile is a small one that a loop computes from tiles in front of it (row numbers that advance, which
/// sequences have not ended) and that should be computed once more under the wanted layout: then the conversion
/// applies to the tiles in front of the loop, once.
bool TilesUnderLayouts::isMadeOfInvariants(Value tile, const Layout& layout) {
  constexpr int kMostOps = 4;
  auto type = tileType(tile);
  Operation* last = tile.getDefiningOp();
  auto loop = last ? last->getParentOfType<LoopLikeOpInterface>() : LoopLikeOpInterface();
  if (!loop || layout.numRegs() > kMostReloads || type.getNumElements() > kMostReloaded) return false;
  const Move move = planConvert(*ir::layoutOf(type), layout, elementBytes(type.getElementType()));
  if (move.kind == Move::rename || move.kind == Move::swap) return false;
  int ops = 0;
  std::function<bool(Value, const Layout&)> made = [&](Value value, const Layout& under) {
    if (!isTile(value) || plan_.isCheap(value) || loop.isDefinedOutsideOfLoop(value)) return true;
    Operation* op = value.getDefiningOp();
    if (!op || op->getParentOp() != loop || op->getNumResults() != 1) return false;
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      auto from = under.reshaped(shapeOf(reshape.getSource()));
      return from && from->reshaped(shapeOf(value)) == under && made(reshape.getSource(), *from);
    }
    return isElementwise(op) && ++ops <= kMostOps &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return made(operand, under); });
  };
  return made(tile, layout);
}

bool TilesUnderLayouts::isMadeOfLoads(Value tile, const Layout& layout, int& loads, int& ops) {
  constexpr int kMostLoads = 1, kMostOps = 8;
  if (!isTile(tile) || plan_.isCheap(tile)) return true;
  Operation* op = tile.getDefiningOp();
  if (!op || op->getNumResults() != 1 || ++ops > kMostOps) return false;
  if (auto load = dyn_cast<LoadOp>(op))
    return !isVolatile(load) && ++loads <= kMostLoads && sectorsOfWarp(load, layout) <= kMostSectors &&
           accessesUnder(load, layout) <= kMostReloads;
  if (auto gather = dyn_cast<GatherOp>(op)) {
    if (isVolatile(gather) || ++loads > kMostLoads || accessesUnder(gather, layout) > kMostReloads) return false;
  } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    auto from = layout.reshaped(shapeOf(reshape.getSource()));
    return from && from->reshaped(shapeOf(tile)) == layout && isMadeOfLoads(reshape.getSource(), *from, loads, ops);
  } else if (!isElementwise(op)) {
    return false;
  }
  return llvm::all_of(op->getOperands(), [&](Value v) { return isMadeOfLoads(v, layout, loads, ops); });
}

Value TilesUnderLayouts::cheapUnder(Value tile, const Layout& layout) {
  Operation* op = tile.getDefiningOp();
  unsigned number = cast<OpResult>(tile).getResultNumber();
  Operation*& clone = clones_[{op, LayoutAttr::get(tile.getContext(), layout)}];
  if (!clone) {
    IRMapping map;
    for (Value operand : op->getOperands())
      if (isTile(operand)) map.map(operand, under(operand, operandLayout(op, operand, layout)));
    OpBuilder builder(op);
    Operation* made = builder.clone(*op, map);
    for (Value result : made->getResults()) setLayout(result, layout);
    if (auto constant = dyn_cast<arith::ConstantOp>(made))
      constant.setValueAttr(
          withType(cast<DenseElementsAttr>(constant.getValue()), cast<RankedTensorType>(constant.getType())));
    clones_[{op, LayoutAttr::get(tile.getContext(), layout)}] = made;  // recursion may have rehashed the map
    return made->getResult(number);
  }
  return clone->getResult(number);
}

/// The layout that a cheap op needs of its operand for a result under `layout`.
Layout TilesUnderLayouts::operandLayout(Operation* op, Value operand, const Layout& layout) {
  auto type = tileType(operand);
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) return sourceLayout(broadcast, layout);
  if (auto trans = dyn_cast<TransOp>(op)) {
    std::vector<int> back(trans.getPermutation().size());
    for (auto [i, dim] : llvm::enumerate(trans.getPermutation())) back[dim] = static_cast<int>(i);
    return layout.transposed(back);
  }
  if (isa<ReshapeOp>(op)) {
    auto moved = layout.reshaped({type.getShape().begin(), type.getShape().end()});
    return moved ? *moved : plan_.defaultLayout(type);
  }
  return layout;
}

}  // namespace tile::ir
