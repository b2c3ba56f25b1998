// assign_layouts.cpp - writes the layouts of the plan (layout_plan.h) into the types. A use that wants another layout
// than its tile has gets a tile.convert right behind the definition, once per layout; cheap tiles are computed again
// instead.
#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/tiles.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/layouts/layout_plan.h"
#include "compiler/gpu/products/warp_grid.h"
#include "compiler/layout/relations.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

constexpr int kMostReloads = 4;       ///< accesses of a thread that loads a small tile once more
constexpr int kMostRegs = 8;          ///< its registers
constexpr int64_t kMostSectors = 64;  ///< that a warp reads for it where elements are no neighbours
constexpr int kMostReloaded = 1024;   ///< elements of such a tile
constexpr int kProducerWarps = 4;     ///< the threads of one warpgroup (tile_roles.td)

void setLayout(Value tile, const Layout& layout) { tile.setType(withLayout(tileType(tile), layout)); }

DenseElementsAttr withType(DenseElementsAttr elements, RankedTensorType type) {
  if (elements.isSplat()) return DenseElementsAttr::get(type, elements.getSplatValue<Attribute>());
  return DenseElementsAttr::getFromRawBuffer(type, elements.getRawData());
}

class Assigner {
 public:
  Assigner(const LayoutScope& scope, const Target& target) : scope_(scope), func_(scope.func), plan_(scope, target) {}

  void run() {
    SmallVector<Operation*> ops;  // before clones and conversions join them
    auto collect = [&](Operation* op) {
      if (op == func_) return WalkResult::advance();
      if (scope_.without && op->getParentRegion() == scope_.without) return WalkResult::skip();
      if (!isInCombiner(op)) ops.push_back(op);
      return WalkResult::advance();
    };
    if (scope_.only)
      scope_.only->walk<WalkOrder::PreOrder>(collect);
    else
      func_.walk<WalkOrder::PreOrder>(collect);
    for (Operation* op : ops)  // nothing is known of the clones that operands become
      if (isa<LoadOp, GatherOp>(op))
        if (const auto access = accessOf(op, plan_.facts())) widths_[op] = access->width;
    for (Operation* op : ops)
      if (!isOnlyCheap(op)) rewrite(op);
    // Cheap tiles were cloned under the layouts in which they are used; the originals go.
    for (Operation* op : llvm::reverse(ops))
      if (isOnlyCheap(op) && op->use_empty()) op->erase();
  }

 private:
  static bool isInCombiner(Operation* op) { return isa<ReduceOp, ScanOp>(op->getParentOp()); }

  bool isOnlyCheap(Operation* op) {
    return op->getNumResults() > 0 &&
           llvm::all_of(op->getResults(), [&](Value v) { return isTile(v) && plan_.isCheap(v); });
  }

  /// Right behind the definition of the tile. For results of a pipelined loop, behind the wait for its last copies, so
  /// that conversions may use the memory of its stages.
  static OpBuilder behind(Value tile) {
    OpBuilder builder(tile.getContext());
    builder.setInsertionPointAfterValue(tile);
    auto at = builder.getInsertionPoint();
    if (isa_and_nonnull<scf::ForOp>(tile.getDefiningOp()))
      while (isa<AsyncWaitOp, BarrierOp>(*at)) ++at;
    builder.setInsertionPoint(builder.getInsertionBlock(), at);
    return builder;
  }

  // ---- uses

  // The tile under a layout: itself, a conversion, or a clone of its computation.
  Value under(Value tile, const Layout& layout) {
    if (plan_.isCheap(tile)) return cheapUnder(tile, layout);
    if (*ir::layoutOf(tile.getType()) == layout) return tile;
    if (auto trans = tile.getDefiningOp<TransOp>()) return transposedUnder(trans, layout);
    const std::pair<Value, Attribute> key(tile, LayoutAttr::get(func_.getContext(), layout));
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

  // The source of the transpose is brought under the layout that makes the transpose free.
  Value transposedUnder(TransOp trans, const Layout& layout) {
    Value& transposed = converted_[{trans.getResult(), LayoutAttr::get(func_.getContext(), layout)}];
    if (transposed) return transposed;
    OpBuilder builder(trans);
    builder.setInsertionPointAfter(trans);
    Value source = under(trans.getSource(), operandLayout(trans, trans.getSource(), layout));
    auto made = TransOp::create(builder, trans.getLoc(), withLayout(tileType(trans.getResult()), layout), source,
                                trans.getPermutation());
    // `under` may have rehashed the map.
    return converted_[{trans.getResult(), LayoutAttr::get(func_.getContext(), layout)}] = made;
  }

  // Sectors of memory that a warp touches for a box whose elements are all apart in memory; 0 for other boxes.
  int64_t sectorsOfWarp(LoadOp load, const Layout& layout) const {
    const int unit = plan_.facts().unitStrideDim(load.getView());
    const int dim = unit - (static_cast<int>(load.getIndices().size()) - layout.rank());
    if (unit >= 0 && dim >= 0 && layout.shape()[dim] > 1) return 0;
    int64_t sectors = layout.numRegs();
    for (const layout::Digit& digit : layout.lanes())
      if (digit.dim != layout::kReplicated) sectors *= digit.count;
    return sectors;
  }

  // Instructions of a thread that loads a tile under a layout.
  int accessesUnder(Operation* load, const Layout& layout) const {
    const AccessWidth width = widthUnder(widths_.lookup(load), layout);
    return layout.numRegs() / std::min(width.aligned, width.masked);
  }

  // Loads a small loaded tile once more, under the wanted layout: a few loads of the same cache lines instead of an
  // exchange through shared memory with two barriers. Null: not a load, or too many loads.
  Value loadedUnder(OpBuilder& builder, Value tile, const Layout& layout) {
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

  // Reads a tile that comes from shared memory from there once more, under the wanted layout. Null: it comes from
  // elsewhere, or a conversion needs no exchange through shared memory.
  Value readUnder(Value tile, const Layout& layout) {
    if (!isa_and_nonnull<SmemLoadOp, ReshapeOp, TransOp>(tile.getDefiningOp())) return {};
    const Move move = planConvert(*ir::layoutOf(tile.getType()), layout, elementBytes(tile.getType()));
    return move.kind == Move::exchange ? readAgain(tile, layout) : Value();
  }

  Value readAgain(Value tile, const Layout& layout) {
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

  // Whether the tile is a short vector made of a load (row numbers of a gather, offsets of additions) that should be
  // loaded and computed once more under the wanted layout: a conversion would make warps wait for each other.
  bool isReadAgain(Value tile, const Layout& layout) {
    auto type = tileType(tile);
    if (!tile.getDefiningOp() || plan_.numWarps() == 1) return false;
    if (layout.numRegs() > kMostRegs || type.getNumElements() > kMostReloaded) return false;
    const Move move = planConvert(*ir::layoutOf(type), layout, elementBytes(type.getElementType()));
    if (move.kind == Move::rename || move.kind == Move::swap || move.piece) return false;
    int loads = 0, ops = 0;
    return isMadeOfLoads(tile, layout, loads, ops) && loads > 0;
  }

  // Whether the tile is a small one that a loop computes from tiles in front of it (row numbers that advance, which
  // sequences have not ended) and that should be computed once more under the wanted layout: then the conversion
  // applies to the tiles in front of the loop, once.
  bool isMadeOfInvariants(Value tile, const Layout& layout) {
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

  bool isMadeOfLoads(Value tile, const Layout& layout, int& loads, int& ops) {
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

  Value cheapUnder(Value tile, const Layout& layout) {
    Operation* op = tile.getDefiningOp();
    unsigned number = cast<OpResult>(tile).getResultNumber();
    Operation*& clone = clones_[{op, LayoutAttr::get(func_.getContext(), layout)}];
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
      clones_[{op, LayoutAttr::get(func_.getContext(), layout)}] = made;  // recursion may have rehashed the map
      return made->getResult(number);
    }
    return clone->getResult(number);
  }

  // The layout that a cheap op needs of its operand for a result under `layout`.
  Layout operandLayout(Operation* op, Value operand, const Layout& layout) {
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

  void use(OpOperand& operand, const Layout& layout) {
    if (isTile(operand.get())) operand.set(under(operand.get(), layout));
  }
  // The operand keeps its tile's own layout; cheap tiles get the default.
  void useAsIs(OpOperand& operand) {
    if (isTile(operand.get())) use(operand, ownLayout(operand.get()));
  }
  Layout ownLayout(Value tile) {
    return plan_.isCheap(tile) ? plan_.defaultLayout(tile.getType()) : *ir::layoutOf(tile.getType());
  }

  // ---- definitions

  // The op makes its result under `made`; its users get it under the chosen layout.
  void define(Value result, const Layout& made) {
    Layout chosen = plan_.layoutOf(result);
    setLayout(result, made);
    if (chosen == made) return;
    OpBuilder builder = behind(result);
    auto convert = ConvertOp::create(builder, result.getLoc(), withLayout(tileType(result), chosen), result);
    result.replaceAllUsesExcept(convert.getResult(), convert);
  }

  void rewrite(Operation* op) {
    if (isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op)) return enterRegions(op);
    if (op->hasTrait<OpTrait::IsTerminator>()) return yield(op);
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      Layout layout = plan_.layoutOf(broadcast.getResult());
      use(broadcast.getSourceMutable(), sourceLayout(broadcast, layout));
      return setLayout(broadcast.getResult(), layout);
    }
    if (auto store = dyn_cast<StoreOp>(op)) {
      if (isTile(store.getValue())) use(store.getValueMutable(), valueLayout(store, store.getValue()));
      return;
    }
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      if (isTile(accumulate.getValue()))
        use(accumulate.getValueMutable(), valueLayout(accumulate, accumulate.getValue()));
      return;
    }
    if (auto store = dyn_cast<TmaStoreOp>(op)) return use(store.getValueMutable(), bulkLayout(store));
    if (auto scatter = dyn_cast<ScatterOp>(op)) {
      if (!isTile(scatter.getValue())) return;
      Layout layout = scatterLayout(scatter, scatter.getValue(), scatter.getOffsets());
      for (OpOperand& operand : op->getOpOperands()) use(operand, layout);
      return;
    }
    if (auto add = dyn_cast<AtomicRmwOp>(op); add && onlyAdds(add)) {
      Layout layout = scatterLayout(add, add.getValue(), add.getOffsets());
      for (OpOperand& operand : op->getOpOperands()) use(operand, layout);
      return setLayout(add.getResult(), layout);
    }
    if (auto item = dyn_cast<ItemOp>(op)) {
      // One element, held by every thread.
      return use(item.getSourceMutable(), plan_.defaultLayout(item.getSource().getType()));
    }
    if (auto mma = dyn_cast<MmaOp>(op)) {
      Layout layout = accumulatorLayout(mma);
      if (isTile(mma.getA())) use(mma.getAMutable(), operandALayout(mma));
      use(mma.getAccMutable(), layout);
      return define(mma.getResult(), layout);
    }
    if (auto mma = dyn_cast<BatchMmaOp>(op)) {
      const BatchLayouts layouts = batchLayouts(mma, plan_.numWarps());
      use(mma.getAMutable(), layouts.a);
      use(mma.getBMutable(), layouts.b);
      use(mma.getAccMutable(), layouts.acc);
      return define(mma.getResult(), layouts.acc);
    }
    if (auto extract = dyn_cast<ExtractOp>(op)) return cut(extract);
    SmallVector<Value> group = sameLayout(op);
    if (group.empty()) {
      for (OpOperand& operand : op->getOpOperands()) useAsIs(operand);
      for (Value result : op->getResults())
        if (isTile(result)) setLayout(result, plan_.layoutOf(result));
      return;
    }
    Layout layout = plan_.groupLayout(op);
    for (OpOperand& operand : op->getOpOperands()) {
      if (!isTile(operand.get())) continue;
      if (llvm::is_contained(group, operand.get()))
        use(operand, layout);
      else
        useAsIs(operand);
    }
    for (Value result : op->getResults()) {
      if (!isTile(result)) continue;
      auto reduce = dyn_cast<ReduceOp>(op);
      define(result, reduce ? plan_.reducedLayout(reduce, result, layout) : layout);
    }
  }

  // Boxes that are cut out of a tile are renamed registers if the tile is first brought under a layout whose cuts do
  // not go through lanes: one exchange serves all boxes.
  void cut(ExtractOp extract) {
    const layout::Coord offset(extract.getOffsets().begin(), extract.getOffsets().end());
    auto shape = extract.getResult().getType().getShape();
    const layout::Shape box(shape.begin(), shape.end());
    const Layout own = ownLayout(extract.getSource()), wanted = plan_.layoutOf(extract.getResult());
    std::optional<Layout> from;
    if (!layout::shiftedRegisterMap(own, wanted, offset)) from = layoutToExtractFrom(own, offset, box);
    if (!from) {
      useAsIs(extract.getSourceMutable());
      return setLayout(extract.getResult(), wanted);
    }
    use(extract.getSourceMutable(), *from);
    define(extract.getResult(), *extractedLayout(own, offset, box));
  }

  Layout bulkLayout(TmaStoreOp store) {
    Value value = store.getValue();
    if (!plan_.isCheap(value)) {
      const Layout own = *ir::layoutOf(value.getType());
      if (tmaStoreColumnGroups(own, store.getStaging().getType().slot(), plan_.numWarps())) return own;
    }
    return tmaStoreLayout(store.getValue().getType().getShape(), plan_.numWarps());
  }

  Layout valueLayout(Operation* store, Value value) {
    if (plan_.isCheap(value)) return plan_.storeLayout(store, plan_.defaultLayout(value.getType()));
    return plan_.storeLayout(store, *ir::layoutOf(value.getType()));
  }

  // The layout of a scatter is that of its value, or of its offsets if the value is cheap and they are not.
  Layout scatterLayout(Operation* op, Value value, Value offsets) {
    const bool byOffsets = plan_.isCheap(value) && offsets && isTile(offsets) && !plan_.isCheap(offsets);
    return valueLayout(op, byOffsets ? offsets : value);
  }

  // Arguments and results of a region op take the layout of the value they carry; what enters is converted to it.
  void enterRegions(Operation* op) {
    for (auto& group : carriedGroups(op)) {
      Layout layout = plan_.layoutOf(group[0]);
      for (Value tile : group)
        if (tile.getDefiningOp() == op || isa<BlockArgument>(tile)) {
          auto arg = dyn_cast<BlockArgument>(tile);
          if (!arg || arg.getOwner()->getParentOp() == op) setLayout(tile, layout);
        }
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (auto [operand, arg] : llvm::zip(loop.getInitArgsMutable(), loop.getRegionIterArgs()))
        if (isTile(arg)) use(operand, *ir::layoutOf(arg.getType()));
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      for (auto [operand, arg] : llvm::zip(loop.getInitsMutable(), loop.getBeforeArguments()))
        if (isTile(arg)) use(operand, *ir::layoutOf(arg.getType()));
    }
  }

  void yield(Operation* op) {
    Operation* parent = op->getParentOp();
    ValueRange targets;
    unsigned first = 0;
    if (isa<scf::YieldOp>(op)) {
      if (auto loop = dyn_cast<scf::WhileOp>(parent))
        targets = loop.getBeforeArguments();
      else
        targets = parent->getResults();
    } else if (isa<scf::ConditionOp>(op)) {
      targets = parent->getResults();
      first = 1;
    } else {
      for (OpOperand& operand : op->getOpOperands()) useAsIs(operand);
      return;
    }
    for (auto [i, target] : llvm::enumerate(targets))
      if (isTile(target)) use(op->getOpOperand(first + static_cast<unsigned>(i)), *ir::layoutOf(target.getType()));
  }

  LayoutScope scope_;
  func::FuncOp func_;
  LayoutPlan plan_;
  llvm::DenseMap<Operation*, AccessWidth> widths_;
  llvm::DenseMap<std::pair<Value, Attribute>, Value> converted_;
  llvm::DenseMap<std::pair<Operation*, Attribute>, Operation*> clones_;
};

// The op whose place in the user's program an error names: for ops that have none (constants), a user that has one.
Operation* placed(Operation* op) {
  for (Operation* user : op->getUsers())
    if (isa<UnknownLoc>(op->getLoc()) && !isa<UnknownLoc>(user->getLoc())) return user;
  return op;
}

// Refuses tiles far beyond the register file: they would only spill, after minutes in the assembler.
LogicalResult checkSizes(func::FuncOp func, const Target& target, int warps) {
  const int64_t registerBytes = int64_t{target.maxRegsPerThread} * 4, limit = 4 * registerBytes;
  WalkResult result = func.walk([&](Operation* op) {
    for (Value value : op->getResults()) {
      auto layout = ir::layoutOf(value.getType());
      if (!layout) continue;
      int64_t bytes = int64_t{layout->numRegs()} * elementBytes(value.getType());
      if (bytes <= limit) continue;
      auto type = tileType(value);
      placed(op)->emitError() << "each of " << warps * target.lanes << " threads would hold " << bytes
                              << " bytes of a tile of " << type.getNumElements() * elementBytes(type)
                              << " bytes; the registers of a thread are " << registerBytes
                              << " bytes: use a smaller tile or more warps";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

class AssignLayoutsPass : public PassWrapper<AssignLayoutsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AssignLayoutsPass)
  AssignLayoutsPass(TargetOf target, OptionsOf options) : target_(std::move(target)), options_(std::move(options)) {}
  AssignLayoutsPass(const AssignLayoutsPass& other) = default;
  StringRef getArgument() const override { return "tile-assign-layouts"; }
  StringRef getDescription() const override { return "give every tile a layout and convert where layouts meet"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal()) return;
    const Target& target = target_();
    int warps = options_().numWarps;
    if (!warps) warps = warpsOf(func);
    if (!warps) {
      const int ofMany = defaultWarps(func, target);
      warps = chooseByGrid(func, options_(), ofMany, warpsOfFew(func, ofMany, target));
    }
    if (warps < 1 || warps * target.lanes > target.maxThreads) {
      func.emitError() << "a program of " << target.name << " has 1 to " << target.maxThreads / target.lanes
                       << " warps, found " << warps;
      return signalPassFailure();
    }
    setWarps(func, warps);
    // The tiles of a producer that gathers are laid out over its own warps.
    Region* producer = nullptr;
    func.walk([&](Operation* op) {
      auto roles = isa<AsyncGatherOp>(op) ? op->getParentOfType<SpecializeOp>() : SpecializeOp();
      if (roles && roles.getProducer().isAncestor(op->getParentRegion())) producer = &roles.getProducer();
    });
    Assigner(LayoutScope{func, nullptr, producer, warps}, target).run();
    if (producer) Assigner(LayoutScope{func, producer, nullptr, kProducerWarps}, target).run();
    if (failed(checkSizes(func, target, warps))) signalPassFailure();
  }

 private:
  TargetOf target_;
  OptionsOf options_;
};

}  // namespace

std::unique_ptr<Pass> createAssignLayoutsPass(TargetOf target, OptionsOf options) {
  return std::make_unique<AssignLayoutsPass>(std::move(target), std::move(options));
}

}  // namespace tile::ir
