// place_operands.cpp - decides how each product is computed and where its operands live.
// Before: tile.dot on register tiles.
// After:  tile.mma with an engine and a warp grid. Every operand is in shared memory (load_shared, gather_shared,
//         share: the value level of tile_smem.td) or, if it is a first operand made from accumulators of the same
//         warps, in registers.
//
//   1. Warp grids and engines are chosen (warp_grid.h).
//   2. fp8 operands of engines of single warps are widened to f16, which holds them exactly: one engine less to
//      support, and the same result.
//   3. Each operand is followed through transposes. A load or gather that nothing converts is fetched straight into
//      shared memory; anything else is computed in registers and shared. Operands with one source share one buffer, as
//      large as the largest user needs.
//   4. The products are rewritten. Other users of a fetched tile read it back from shared memory.
#include <numeric>

#include "compiler/dialect/products.h"
#include "compiler/dialect/tiles.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/products/operand_source.h"
#include "compiler/gpu/products/turn_products.h"
#include "compiler/gpu/products/warp_grid.h"
#include "compiler/gpu/rings/register_plan.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// A tile some operand reads, with the dim that shall be contiguous in shared memory.
using SourceKey = std::pair<Value, int>;

struct Source {
  int64_t extent[2] = {0, 0};
  bool fetched = false, isBulk = false;
  bool forWarpgroups = false;  ///< must be swizzled
  int64_t panel = 0;           ///< of a second operand whose columns warpgroups share (SmemType)
  Value smem;                  ///< set by rewriting
};

constexpr int64_t kPanel = 64, kNarrowest = 16;  ///< elements of 16 bits in a panel of 128 and of 32 bytes

/// One operand of one product.
struct Operand {
  bool inRegisters = false;
  bool transposed = false;
  SourceKey source;
};

struct Product {
  DotOp dot;
  Engine engine;
  WarpGrids::Grid grid;
  Operand a, b;
};

class Placer {
 public:
  Placer(func::FuncOp func, const Target& target, int numWarps) : func_(func), target_(target), numWarps_(numWarps) {}

  void run() {
    std::optional<WarpGrids> grids;
    {
      const OperandSources sources(func_, target_);
      grids.emplace(func_, numWarps_, [&](DotOp dot) { return enginesOf(dot, sources); });
    }
    func_.walk([&](DotOp dot) {
      if (engineRow(grids->engineOf(dot)).operandBits != 8) widen(dot);
    });
    const OperandSources from(func_, target_);
    func_.walk([&](DotOp dot) {
      Product product{dot, grids->engineOf(dot), grids->gridOf(dot), {}, {}};
      ArrayRef<int64_t> shape = dot.getResult().getType().getShape();
      int64_t k = dot.getA().getType().getDimSize(1);
      Cover cover = coverOf(product.engine, shape[0], shape[1], k, product.grid.m, product.grid.n);
      if (grids->isTransposed(dot)) {
        cover = coverOf(product.engine, shape[1], shape[0], k, product.grid.n, product.grid.m);
        std::swap(cover.m, cover.n);
      }
      // The threads of warpgroups read one operand as it lies: b where they compute the transposed product, else a;
      // bytes only where the other one lies along k.
      const bool aAlong = from.liesAlongK(dot.getA(), 1), bAlong = from.liesAlongK(dot.getB(), 0);
      const bool isTransposed = grids->isTransposed(dot), turnsB = engineRow(product.engine).operandBits == 32;
      const bool aAsItLies = !aAlong && !isTransposed && (bAlong || turnsB);
      const bool bAsItLies = !bAlong && isTransposed && aAlong;
      // A transposed product reads b into registers, and a from shared memory.
      if (grids->keepsA(dot) && !grids->isTransposed(dot) && !from.canFetch(dot.getA()))
        product.a.inRegisters = true;
      else
        product.a = place(dot.getA(), {cover.m, cover.k}, /*kDim=*/1, product.engine, aAsItLies, from);
      product.b = place(dot.getB(), {cover.k, cover.n}, /*kDim=*/0, product.engine, bAsItLies, from);
      const bool isAlongK = product.b.source.second == (product.b.transposed ? 1 : 0);
      if (isWgmma(product.engine) && !isTransposed && product.grid.n > 1 && cover.n > kPanel && !isAlongK)
        narrow(sources_[product.b.source], cover.n / product.grid.n);
      products_.push_back(product);
    });
    for (Product& product : products_) rewrite(product);
    for (bool changed = true; changed;) {
      changed = false;
      for (Operation*& op : dead_)
        if (op && op->use_empty()) op->erase(), op = nullptr, changed = true;
    }
  }

 private:
  EngineChoice enginesOf(DotOp dot, const OperandSources& from) const {
    Type element = dot.getA().getType().getElementType(), acc = dot.getResult().getType().getElementType();
    EngineChoice choice;
    // Single warps multiply f8 only where they can, and as it is copied, neighbours along k; other f8 they widen.
    const bool asItIs =
        !isF8(element) || (from.isCopiedAlongK(dot.getA(), 1) && from.isCopiedAlongK(dot.getB(), 0));
    if (asItIs) choice.warps = chooseEngine(element, acc, dot.getPrecision(), target_);
    if (isF8(element) && choice.warps == Engine::fma)
      choice.warps = chooseEngine(Float16Type::get(dot.getContext()), acc, dot.getPrecision(), target_);
    choice.warpgroups = chooseWarpgroupEngine(element, acc, dot.getPrecision(), target_);
    // Warpgroups take elements of other than 16 bits from shared memory only where they are neighbours along k. The
    // threads can read one operand into registers as it lies, which then comes first (dialect/products.h). Others turn
    // on their way: between two rings where the kernel gets roles (specialize_turns.cpp), else through registers.
    if (choice.warpgroups && engineRow(*choice.warpgroups).operandBits != 16) {
      const bool a = from.liesAlongK(dot.getA(), 1), b = from.liesAlongK(dot.getB(), 0);
      choice.transposed = a && !b;
      choice.bothAlongK = a && b;
    }
    choice.widensA = isWidened(dot.getA(), dot.getResult().getType().getDimSize(1)) || isMadeOfLoads(dot.getA());
    // Columns start at a whole panel of the second operand where its elements are neighbours along n, anywhere else.
    const bool turns = choice.warpgroups && engineRow(*choice.warpgroups).operandBits != 16;
    if (choice.warpgroups && (turns || from.kIsMinor(dot.getB(), 0)))
      choice.columnUnit = choice.narrowUnit = engineRow(*choice.warpgroups).n;
    else if (!loadOfRows(dot.getB()))  // the panels of others follow from their boxes (operand_source.h)
      choice.narrowUnit = kNarrowest;
    return choice;
  }

  /// Panels of which the columns of every warpgroup are whole ones.
  static void narrow(Source& source, int64_t columns) {
    const int64_t panel = std::gcd(columns, source.panel ? source.panel : kPanel);
    if (panel < kPanel) source.panel = panel;
  }

  void widen(DotOp dot) {
    if (!isF8(dot.getA().getType())) return;
    OpBuilder builder(dot);
    auto widened = [&](Value v) -> Value {
      auto to = cast<RankedTensorType>(v.getType()).clone(builder.getF16Type());
      return arith::ExtFOp::create(builder, dot.getLoc(), to, v);
    };
    Value a = widened(dot.getA()), b = widened(dot.getB());
    dot.getAMutable().assign(a);
    dot.getBMutable().assign(b);
  }

  /// `extent` and `kDim` are in the operand's dims; the source may be its transpose.
  Operand place(Value value, std::array<int64_t, 2> extent, int kDim, Engine engine, bool asItLies,
                const OperandSources& from) {
    Operand operand;
    while (auto trans = value.getDefiningOp<TransOp>()) {
      value = trans.getSource();
      operand.transposed = !operand.transposed;
      if (!llvm::is_contained(dead_, trans.getOperation())) dead_.push_back(trans);
    }
    if (operand.transposed) std::swap(extent[0], extent[1]), kDim = 1 - kDim;
    int minor = from.fastDim(value);
    bool fetch = from.canFetch(value);
    // There is no transposing fragment load of bytes for single warps, and warpgroups turn 16-bit elements only: other
    // operands turn on their way through registers, if they come from there or cannot be read as they lie.
    const int bits = engineRow(engine).operandBits;
    const bool turns = isWgmma(engine) ? bits != 16 && !(asItLies && fetch) : bits == 8;
    if (turns && minor != kDim) fetch = false, minor = kDim;
    operand.source = {value, minor};
    Source& source = sources_[operand.source];
    source.forWarpgroups |= isWgmma(engine);
    for (int d = 0; d < 2; ++d) source.extent[d] = std::max(source.extent[d], extent[d]);
    source.fetched = fetch;
    source.isBulk = fetch && from.isBulk(value, minor);
    return operand;
  }

  Value smemOf(const Operand& operand) {
    Source& source = sources_[operand.source];
    // Boxes whose columns are several dims come whole or not at all.
    if (LoadOp box = loadOfRows(operand.source.first); box && source.fetched) {
      auto to = cast<ShapedType>(operand.source.first.getType()).getShape();
      source.fetched = cast<ShapedType>(box.getType()).getShape().back() == to.back() ||
                       smemType(operand.source.first, source, operand.source.second).getShape() == to;
    }
    if (!source.smem)
      source.smem = source.fetched ? fetch(operand.source.first, source, operand.source.second)
                                   : share(operand.source.first, source, operand.source.second);
    return source.smem;
  }

  /// Bulk copies request each panel of a row, and rows in panels of 32 bytes are limited by requests. Wider ones, of
  /// which the last is filled in part, make fewer: of 40 elements of 16 bits one instead of three, of 72 two and of 80
  /// three instead of five (H200, cycles for each row of a box: 80 elements 8.2, in two panels 4.8; 112 elements 11.5
  /// and 6.3; not so of panels of 64 bytes: 96 elements 5.4 and 5.4). Room that nothing fills may be a third of the
  /// row, and of rows with padding, whose last request is the slowest, three fifths. `piece`: elements of 32 bytes.
  /// 0: as many as divide the row.
  static int64_t panelOf(int64_t columns, int64_t piece, bool isPadded) {
    const int64_t pieces = columns / piece;
    if (pieces < 3 || pieces % 2 == 0) return 0;
    for (int64_t width : {4, 2}) {
      const int64_t unused = llvm::alignTo(pieces, width) - pieces;
      if (isPadded ? 5 * unused <= 3 * pieces : 3 * unused <= pieces) return width * piece;
    }
    return 0;
  }

  SmemType smemType(Value value, const Source& source, int minor) {
    Type element = cast<ShapedType>(value.getType()).getElementType();
    int64_t extent[2] = {source.extent[0], source.extent[1]}, panel = source.panel;
    // Whole 32-byte pieces of rows, whole groups of 8 rows.
    if (source.forWarpgroups) {
      const int64_t piece = 256 / element.getIntOrFloatBitWidth();
      const bool isPadded = cast<ShapedType>(value.getType()).getDimSize(minor) % piece != 0;
      const bool isBox = source.fetched && (loadOfRows(value) || value.getDefiningOp<LoadOp>());
      const bool mayPad = isPadded ? isBox : source.isBulk;
      extent[minor] = (extent[minor] + piece - 1) / piece * piece;
      if (mayPad && !panel) panel = panelOf(extent[minor], piece, isPadded);
      extent[1 - minor] = (extent[1 - minor] + 7) / 8 * 8;
    }
    return SmemType::get(func_.getContext(), extent, element, minor, 1).withPanel(panel);
  }

  Value share(Value value, const Source& source, int minor) {
    OpBuilder builder(func_.getContext());
    builder.setInsertionPointAfterValue(value);
    return ShareOp::create(builder, value.getLoc(), smemType(value, source, minor), value);
  }

  Value fetch(Value value, const Source& source, int minor) {
    Operation* op = value.getDefiningOp();
    LoadOp ofRows = loadOfRows(value);
    OpBuilder builder(ofRows ? ofRows.getOperation() : op);
    SmemType type = smemType(value, source, minor);
    if (ofRows) type = inPanels(type, ofRows);
    Value smem;
    if (LoadOp load = ofRows ? ofRows : dyn_cast<LoadOp>(op))
      smem = LoadSharedOp::create(builder, load.getLoc(), type, load.getView(), load.getIndices(),
                                  cast<ShapedType>(load.getType()).getShape(), load.getCache());
    else
      smem = GatherSharedOp::create(builder, op->getLoc(), type, cast<GatherOp>(op).getPtr(),
                                    cast<GatherOp>(op).getOffsets(), cast<GatherOp>(op).getMask(),
                                    cast<GatherOp>(op).getCache());
    // Users that are not products of ours keep a register tile; products are rewritten one by one, their transposes
    // die. What they need it for may stand far down: until then it would be in the way.
    if (Operation* reader = firstReader(op, value)) {
      builder.setInsertionPoint(reader);
      Value registers = SmemLoadOp::create(builder, op->getLoc(), value.getType(), smem);
      value.replaceUsesWithIf(registers, [&](OpOperand& use) { return !isOurs(use.getOwner()); });
    }
    dead_.push_back(op);
    if (ofRows) dead_.push_back(ofRows);
    return smem;
  }

  /// The first statement beside `op` that reads the tile elsewhere than in products; null: none does.
  static Operation* firstReader(Operation* op, Value value) {
    Operation* first = nullptr;
    for (Operation* user : value.getUsers()) {
      if (isOurs(user)) continue;
      Operation* at = op->getBlock()->findAncestorOpInBlock(*user);
      if (!first || at->isBeforeInBlock(first)) first = at;
    }
    return first;
  }

  /// A product, or a transpose read by products alone.
  static bool isOurs(Operation* op) {
    if (isa<DotOp>(op)) return true;
    return isa<TransOp>(op) && llvm::all_of(op->getUsers(), isOurs);
  }

  void rewrite(Product& product) {
    DotOp dot = product.dot;
    auto operand = [&](const Operand& placed, Value inRegisters) -> Value {
      if (placed.inRegisters) return inRegisters;
      Value smem = smemOf(placed);
      if (!placed.transposed) return smem;
      OpBuilder builder(func_.getContext());
      builder.setInsertionPointAfterValue(smem);
      return SmemTransOp::create(builder, dot.getLoc(), cast<SmemType>(smem.getType()).transposed(), smem);
    };
    Value a = operand(product.a, dot.getA()), b = operand(product.b, dot.getB());
    OpBuilder builder(dot);
    auto mma = MmaOp::create(builder, dot.getLoc(), dot.getResult().getType(), product.engine, a, b, dot.getAcc(),
                             static_cast<uint32_t>(dot.getA().getType().getDimSize(1)),
                             static_cast<uint32_t>(product.grid.m), static_cast<uint32_t>(product.grid.n));
    dot.getResult().replaceAllUsesWith(mma.getResult());
    renew(dot.getResult(), mma.getResult());
    dot.erase();
  }

  /// Operands that are results of products, f32 ones of f32 ones: their source is the new operation now.
  void renew(Value old, Value now) {
    for (Product& product : products_)
      for (Operand* operand : {&product.a, &product.b}) {
        if (operand->source.first != old) continue;
        SourceKey key{now, operand->source.second};
        // Several operands may share it; the entry moves once.
        if (auto it = sources_.find(operand->source); it != sources_.end()) {
          Source kept = it->second;
          sources_.erase(it);
          sources_.insert({key, kept});
        }
        operand->source = key;
      }
  }

  func::FuncOp func_;
  const Target& target_;
  int numWarps_;
  llvm::MapVector<SourceKey, Source> sources_;
  SmallVector<Product> products_;
  SmallVector<Operation*> dead_;
};

class PlaceOperandsPass : public PassWrapper<PlaceOperandsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlaceOperandsPass)
  PlaceOperandsPass(TargetOf target, OptionsOf options) : target_(std::move(target)), options_(std::move(options)) {}
  StringRef getArgument() const override { return "tile-place-operands"; }
  StringRef getDescription() const override {
    return "products to engines, their operands to shared memory or registers";
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    multiplyByWarps(func);
    bool hasDots = func.walk([](DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (!hasDots) return markAllAnalysesPreserved();
    int warps = options_().numWarps;
    if (!warps) warps = warpsOf(func);
    if (!warps) {
      const int ofMany = chooseWarps(func);
      const int ofFew = planWarpsOfFew(func, ofMany);
      warps = chooseByGrid(func, options_(), productsFitOneWarp(func) ? 1 : ofMany, ofFew);
    }
    setWarps(func, warps);
    Placer(func, target_(), warps).run();
  }

  /// Where threads of four warps would hold more than two programs of a multiprocessor have registers for, as a trial
  /// shows, there are eight. Products of no loop are a chain in which everything waits for the one before: a second
  /// program beside it is worth more, and what it spills shows soon enough (warpsToTry in pipeline.cpp).
  int chooseWarps(func::FuncOp func) const {
    const int warps = planWarps(func);
    if (warps > 4) return warps;
    int64_t rows = 0, elements = 0;
    func.walk([&](DotOp dot) {
      ArrayRef<int64_t> shape = dot.getResult().getType().getShape();
      rows = std::max(rows, std::max(shape[0], shape[1])), elements = std::max(elements, shape[0] * shape[1]);
    });
    if (!hasProductInLoop(func) || rows < 128 || elements < 128 * 32) return warps;
    OwningOpRef<func::FuncOp> trial = cast<func::FuncOp>(func->clone());
    setWarps(*trial, warps);
    Placer(*trial, target_(), warps).run();
    const RegisterEstimate registers = estimateRegisters(*trial, warps);
    constexpr int kOfTwoPrograms = 216;
    return registers.registers + RegisterEstimate::kOther > kOfTwoPrograms ? 2 * warps : warps;
  }

  /// Products of single warps have all they need in registers.
  void multiplyByWarps(func::FuncOp func) {
    SmallVector<BatchDotOp> dots;
    func.walk([&](BatchDotOp dot) { dots.push_back(dot); });
    for (BatchDotOp dot : dots) {
      OpBuilder builder(dot);
      const Engine engine = chooseEngine(getElementTypeOrSelf(dot.getA().getType()),
                                         getElementTypeOrSelf(dot.getAcc().getType()), dot.getPrecision(), target_());
      dot.replaceAllUsesWith(BatchMmaOp::create(builder, dot.getLoc(), dot.getResult().getType(), engine, dot.getA(),
                                                dot.getB(), dot.getAcc())
                                 .getResult());
      dot.erase();
    }
  }

 private:
  TargetOf target_;
  OptionsOf options_;
};

}  // namespace

std::unique_ptr<Pass> createPlaceOperandsPass(TargetOf target, OptionsOf options) {
  return std::make_unique<PlaceOperandsPass>(std::move(target), std::move(options));
}

}  // namespace tile::ir
