// raise_boxes.cpp - matrices that loops of products gather through a base and masks of rows and columns are boxes of
// views, which bulk copies can load.
// Before: gather p offsets rows * stride + columns, mask (first + rows < M) & (at + columns < K), in a loop that
//         advances `p` or `at`
// After:  a view made in front of the loop (p, dims [M, K], strides [stride, 1]) and a load of it at [first, at]
//
// gathered_box.h finds the view. Only where bulk copies can then load all operands that the loop gathers: others are as
// well off as they are. In such a kernel other matrices become boxes as well, where the launch knows their views: those
// gathered outside of loops (operands, tiles added to results), and what is stored. Whether there are roles in the end,
// without which boxes are no better, shows later (pipeline.cpp takes them back).
//
// Of few programs rows of words that several rows of an operand share are boxes, too (rowsOnce).
//
// Views that the kernel makes itself, of a matrix of which every program has its own, become parts of a view of all of
// them (common_views.h) where bulk copies can then copy their boxes: its tensor map comes from the launch, and nobody
// has to write one for each program.
#include "compiler/analysis/facts.h"
#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/access/launch_views.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/products/common_views.h"
#include "compiler/gpu/products/gathered_box.h"
#include "compiler/lowering/elementwise.h"
#include "compiler/transforms/narrowed_gather.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

class RaiseBoxesPass : public PassWrapper<RaiseBoxesPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RaiseBoxesPass)
  StringRef getArgument() const override { return "tile-raise-boxes"; }
  StringRef getDescription() const override { return "make boxes of views of matrices that loops of products gather"; }

  explicit RaiseBoxesPass(OptionsOf options) : options_(std::move(options)) {}
  RaiseBoxesPass(const RaiseBoxesPass&) = default;

  void runOnOperation() override {
    common_.clear();
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (!loop.getBody()->getOps<DotOp>().empty()) loops.push_back(loop);
    });
    bool isRaised = false;
    for (scf::ForOp loop : loops) isRaised |= raise(loop);
    const bool isCommon = readCommonViews(loops);
    if (isRaised || isCommon) {
      raiseBeside();
      getOperation()->setAttr(kRaisedBoxesAttr, UnitAttr::get(&getContext()));
    }
    markLaunchViews(getOperation());
  }

 private:
  static bool isMatrix(GatherOp gather) {
    auto type = dyn_cast<RankedTensorType>(gather.getType());
    return type && type.getRank() == 2 && type.getDimSize(0) > 1 && type.getDimSize(1) > 1;
  }

  /// Element by element of a product of the loop.
  static bool isOfProduct(Value tile, int depth = 0) {
    Operation* op = tile.getDefiningOp();
    if (isa_and_nonnull<DotOp>(op)) return true;
    return op && depth < 8 && isElementwise(op) &&
           llvm::any_of(op->getOperands(), [&](Value v) { return isOfProduct(v, depth + 1); });
  }
  /// Whether products multiply the tile, or what is computed of it and of others that are loaded.
  static bool isOperand(Value tile) {
    llvm::SetVector<Value> reached;
    reached.insert(tile);
    for (size_t i = 0; i < reached.size(); ++i)
      for (OpOperand& use : reached[i].getUses()) {
        Operation* op = use.getOwner();
        if (isa<DotOp>(op)) {
          if (use.getOperandNumber() < 2) return true;
        } else if (op->getNumResults() == 1 && (isa<TransOp>(op) || isElementwise(op)) &&
                   !isOfProduct(op->getResult(0))) {
          reached.insert(op->getResult(0));
        }
      }
    return false;
  }

  /// Bulk copies can load the box.
  static bool isBulk(LoadOp load, const Facts& facts) {
    auto type = cast<RankedTensorType>(load.getType());
    return beginsAtUnits(load.getView(), load.getIndices(), facts) &&
           tmaBox(load.getView(), type.getShape(), type.getElementType(), facts, /*isStore=*/false);
  }

  /// Bulk copies can write it.
  static bool isBulk(StoreOp store, const Facts& facts) {
    auto type = cast<RankedTensorType>(store.getValue().getType());
    store.getView().getDefiningOp()->setAttr(kOfLaunchAttr, UnitAttr::get(store.getContext()));
    // Other rows leave by bulk copies only if their product is turned, which is not decided here.
    const bool wholeSlices = type.getNumElements() / type.getShape().back() % kTmaStoreRows == 0;
    return wholeSlices && beginsAtUnits(store.getView(), store.getIndices(), facts) &&
           tmaBox(store.getView(), type.getShape(), type.getElementType(), facts, /*isStore=*/true);
  }

  // ---- views of matrices of one program

  /// A box of the same matrix in a view that all programs share; null: bulk copies cannot copy it.
  template <class Access>
  Access commonBox(Access access, llvm::function_ref<Access(OpBuilder&, Value, ValueRange)> make) {
    auto view = access.getView().template getDefiningOp<MakeViewOp>();
    if (!view || !isMadeInKernel(view)) return {};
    const auto known = common_.find(view);
    const auto common = known != common_.end() ? known->second : makeCommonView(view, Facts(getOperation()));
    common_[view] = common;
    if (!common) return {};
    SmallVector<Value> indices(common->places);
    indices.append(access.getIndices().begin(), access.getIndices().end());
    OpBuilder b(access);
    Access box = make(b, common->view, indices);
    if (isBulk(box, Facts(getOperation()))) return box;
    box->erase();
    return {};
  }
  bool readCommon(LoadOp load) {
    auto type = dyn_cast<RankedTensorType>(load.getType());
    if (!type || type.getRank() != 2 || load.getPad()) return false;
    LoadOp box = commonBox<LoadOp>(load, [&](OpBuilder& b, Value view, ValueRange indices) {
      return LoadOp::create(b, load.getLoc(), type, view, indices, /*pad=*/FloatAttr(), load.getCache());
    });
    if (!box) return false;
    load.replaceAllUsesWith(box.getResult());
    load->erase();
    return true;
  }
  bool writeCommon(StoreOp store) {
    auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
    if (!type || type.getRank() != 2) return false;
    StoreOp box = commonBox<StoreOp>(store, [&](OpBuilder& b, Value view, ValueRange indices) {
      return StoreOp::create(b, store.getLoc(), store.getValue(), view, indices, store.getCache());
    });
    if (!box) return false;
    store->erase();
    return true;
  }
  /// Whether boxes that loops of products read have become such; then others of the kernel have, too.
  bool readCommonViews(ArrayRef<scf::ForOp> loops) {
    SmallVector<LoadOp> ofLoops, others;
    SmallVector<StoreOp> stores;
    getOperation().walk([&](Operation* op) {
      if (auto load = dyn_cast<LoadOp>(op)) {
        auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
        (loop && llvm::is_contained(loops, loop) ? ofLoops : others).push_back(load);
      } else if (auto store = dyn_cast<StoreOp>(op); store && !op->getParentOfType<LoopLikeOpInterface>()) {
        stores.push_back(store);  // in loops consumers would wait for the copy of the iteration before
      }
    });
    bool any = false;
    for (LoadOp load : ofLoops) any |= readCommon(load);
    if (any) {
      for (LoadOp load : others) readCommon(load);
      for (StoreOp store : stores) writeCommon(store);
    }
    for (const auto& [view, common] : common_)
      if (common && common->view.use_empty()) common->view.getDefiningOp()->erase();
    return any;
  }

  /// Matrices outside of loops (operands, and tiles added to results: producers can load both), and tiles that are
  /// stored anywhere.
  void raiseBeside() {
    SmallVector<Operation*> accesses;
    getOperation().walk([&](Operation* op) {
      auto gather = dyn_cast<GatherOp>(op);
      const bool isFirst = gather && !op->getParentOfType<LoopLikeOpInterface>();
      if ((isFirst && isMatrix(gather)) || isa<ScatterOp>(op)) accesses.push_back(op);
    });
    for (Operation* op : accesses) {
      auto gather = dyn_cast<GatherOp>(op);
      const Facts facts(getOperation());
      Operation* box = gather ? boxOfGather(gather, {}, facts).getOperation()
                              : boxOfScatter(cast<ScatterOp>(op), facts).getOperation();
      if (!box) continue;
      const Facts now(getOperation());
      auto store = dyn_cast<StoreOp>(box);
      if (store ? !isBulk(store, now) : !isBulk(cast<LoadOp>(box), now)) {
        box->erase();
        continue;
      }
      if (gather) op->replaceAllUsesWith(box);
      op->erase();
    }
  }

  /// Reads every matrix of the loop's products as a box, if bulk copies can load all of them.
  bool raise(scf::ForOp loop) {
    struct Box {
      GatherOp gather;
      std::optional<NarrowedGather> narrowed;  ///< rows of words, each once
      LoadOp load;
    };
    SmallVector<Box> boxes;
    loop.walk([&](GatherOp gather) {
      if (isMatrix(gather)) boxes.push_back({gather, {}, {}});
    });
    if (boxes.empty()) return false;
    {
      const Facts facts(getOperation());
      for (Box& box : boxes)
        if (box.gather->getParentOp() == loop) box.narrowed = rowsOnce(box.gather, facts);
    }
    {
      const Facts facts(getOperation());
      for (Box& box : boxes)
        if (box.gather->getParentOp() == loop)
          box.load = boxOfGather(box.narrowed ? box.narrowed->gather : box.gather, loop, facts);
    }
    const Facts facts(getOperation());
    const bool fine = llvm::all_of(boxes, [&](const Box& box) {
      return !isOperand(GatherOp(box.gather).getResult()) || (box.load && isBulk(box.load, facts));
    });
    bool isRaised = false;
    for (Box& box : boxes) {
      if (box.load && fine && isBulk(box.load, facts)) {
        GatherOp read = box.narrowed ? box.narrowed->gather : box.gather;
        if (box.narrowed) replace(box.gather, box.narrowed->repeated);
        replace(read, box.load.getResult());
        isRaised = true;
        continue;
      }
      if (box.load) box.load->erase();
      if (box.narrowed) eraseUnused(box.narrowed->repeated.getDefiningOp());
    }
    return isRaised;
  }
  static void replace(GatherOp gather, Value by) {
    gather.getResult().replaceAllUsesWith(by);
    gather->erase();
  }
  static void eraseUnused(Operation* op) {
    llvm::SetVector<Operation*> unused;
    unused.insert(op);
    while (!unused.empty()) {
      Operation* last = unused.pop_back_val();
      if (!isOpTriviallyDead(last)) continue;
      for (Value operand : last->getOperands())
        if (Operation* def = operand.getDefiningOp()) unused.insert(def);
      last->erase();
    }
  }

  /// Rows of words that several of the operand's share (eight numbers of 4 bits along k), each read once. For few
  /// programs, which wait for what they have on the way (H200: 20 of 24 products with 16 to 128 rows and four warps
  /// were as fast or faster, by up to 1.4). Of many the threads that multiply read the words in the places where they
  /// need them, and hide that from each other: five of nine products of 4 bits were slower with roles, three faster.
  std::optional<NarrowedGather> rowsOnce(GatherOp gather, const Facts& facts) {
    if (!gather.getOffsets() || gather.getOther() || isVolatile(gather) || !isOperand(gather.getResult())) return {};
    if (facts.of(gather.getOffsets()).contiguity[1] <= 1) return {};
    const int64_t alike = sharedAlong(gather, 0, facts);
    if (alike <= 1 || !chooseByGrid(getOperation(), options_(), false, true)) return {};
    return narrowedGather(gather, 0, alike, facts);
  }

  OptionsOf options_;
  llvm::MapVector<Operation*, std::optional<CommonView>> common_;  ///< of views that were asked for
};

}  // namespace

std::unique_ptr<Pass> createRaiseBoxesPass(OptionsOf options) {
  return std::make_unique<RaiseBoxesPass>(std::move(options));
}

}  // namespace tile::ir
