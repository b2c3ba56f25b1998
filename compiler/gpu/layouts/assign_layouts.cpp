// assign_layouts.cpp - writes the layouts of the plan (layout_plan.h) into the types. A use that wants another layout
// than its tile has gets a tile.convert right behind the definition, once per layout; cheap tiles are computed again
// instead.
#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/tiles.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/layouts/layout_plan.h"
#include "compiler/gpu/layouts/tiles_under_layouts.h"
#include "compiler/gpu/products/warp_grid.h"
#include "compiler/layout/relations.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

constexpr int kProducerWarps = 4;  ///< the threads of one warpgroup (tile_roles.td)

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
    for (Operation* op : ops)
      if (isa<LoadOp, GatherOp>(op)) tiles_.recordWidth(op);
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

  // ---- uses

  void use(OpOperand& operand, const Layout& layout) {
    if (isTile(operand.get())) operand.set(tiles_.under(operand.get(), layout));
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
      if (!reduce && !llvm::is_contained(group, result)) {
        setLayout(result, plan_.layoutOf(result));
        continue;
      }
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
      // What a counting loop hands on from one argument to another has the layout of the argument that it is.
      const bool counts = isa<scf::ForOp>(op);
      for (Value tile : counts ? ArrayRef<Value>(group).take_front(2) : ArrayRef<Value>(group))
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
  TilesUnderLayouts tiles_{plan_};
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
