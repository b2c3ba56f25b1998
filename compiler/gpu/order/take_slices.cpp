// take_slices.cpp - slices of a tile that other threads hold are read from one copy of the tile in shared memory.
// Before: layouts; extracts of single lines along an axis (the points of a short transform), each through a buffer of
//         its own, into which every thread writes, under a condition, what it has of the line.
// After:  takes, which share one copy of what they read (place_buffers.cpp). They stand side by side where that costs
//         few registers: what is computed from them may then share one barrier.
// A few lines of a large tile stay apart: the copy would be far more than what is read of it.
// Boxes of one tile that overlap (the windows of a stencil or filter) read one copy of the whole tile as well, instead
// of a copy each. And of a tile that a loop looks elements up in but does not change (a table), one copy is made in
// front of the loop, so that the lookups need no barrier.
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/forms/layout_links.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// The dim along which the box is one line of the tile, whole along all others.
std::optional<int64_t> axisOfLine(ExtractOp extract) {
  const ArrayRef<int64_t> all = extract.getSource().getType().getShape(),
                          cut = extract.getResult().getType().getShape();
  std::optional<int64_t> axis;
  for (int64_t d = 0, rank = static_cast<int64_t>(all.size()); d < rank; ++d) {
    if (all[d] == cut[d]) continue;
    if (axis || cut[d] != 1) return std::nullopt;
    axis = d;
  }
  return axis;
}

void takeSlices(Block& block) {
  llvm::MapVector<Value, SmallVector<ExtractOp>> slices;
  for (auto extract : block.getOps<ExtractOp>())
    if (!isa<PtrType>(extract.getType().getElementType()) && axisOfLine(extract) &&
        planMove(extract).kind == Move::linear)
      slices[extract.getSource()].push_back(extract);
  constexpr int64_t kMostEarly = 32;  // registers of a thread for slices that are there before they are needed
  constexpr int64_t kMostUnread = 4;  // elements of the copy for each that is read
  for (auto& [tile, extracts] : slices) {
    if (extracts.size() < 2) continue;
    int64_t registers = 0, elements = 0;
    for (ExtractOp extract : extracts) {
      registers += registersOf(extract.getType());
      elements += extract.getType().getNumElements();
    }
    if (elements * kMostUnread < tileType(tile).getNumElements()) continue;
    OpBuilder b(extracts[0]);
    for (ExtractOp extract : extracts) {
      if (registers > kMostEarly) b.setInsertionPoint(extract);
      const int64_t axis = *axisOfLine(extract);
      const RankedTensorType type = tileType(extract.getResult());
      const auto places = RankedTensorType::get(type.getShape(), b.getI32Type(), type.getEncoding());
      const Value at = arith::ConstantOp::create(
          b, extract.getLoc(), DenseElementsAttr::get(places, b.getI32IntegerAttr(extract.getOffsets()[axis])));
      extract.replaceAllUsesWith(
          TakeOp::create(b, extract.getLoc(), type, tile, at, static_cast<uint32_t>(axis)).getResult());
    }
    for (ExtractOp extract : extracts) extract.erase();
  }
}

/// Boxes that overlap: what they put apart would be more than the tile.
void shareBoxes(Block& block) {
  llvm::MapVector<Value, SmallVector<ExtractOp>> boxes;
  for (auto extract : block.getOps<ExtractOp>())
    if (!isa<PtrType>(extract.getType().getElementType()) && planMove(extract).kind == Move::linear)
      boxes[extract.getSource()].push_back(extract);
  for (auto& [tile, extracts] : boxes) {
    const RankedTensorType whole = tileType(tile);
    int64_t elements = 0;
    for (ExtractOp extract : extracts) elements += extract.getType().getNumElements();
    if (tileBytes(whole) > kMostSharedTake || elements <= whole.getNumElements()) continue;
    for (ExtractOp extract : extracts) extract->setAttr(kPutsWholeAttr, UnitAttr::get(extract.getContext()));
  }
}

/// A line of a copied table is read again under another layout, where it would be converted.
void takeAgain(TakeOp take, SmallVectorImpl<TakeOp>& takes) {
  auto place = take.getIndices().getDefiningOp<SplatOp>();
  if (!place) return;
  for (Operation* user : llvm::make_early_inc_range(take->getUsers())) {
    auto convert = dyn_cast<ConvertOp>(user);
    if (!convert) continue;
    OpBuilder b(take);
    const RankedTensorType type = tileType(convert.getResult());
    const auto places = RankedTensorType::get(type.getShape(), b.getI32Type(), type.getEncoding());
    const Value at = SplatOp::create(b, place.getLoc(), places, place.getValue());
    takes.push_back(TakeOp::create(b, take.getLoc(), type, take.getSource(), at, take.getAxis()));
    convert.replaceAllUsesWith(takes.back().getResult());
    convert.erase();
  }
}

/// Takes in loops of what is made in front of them.
void copyInFront(func::FuncOp func) {
  constexpr int64_t kMostBytes = 32 << 10, kLargest = kMostSharedTake - kMostSharedTake / 33;  // without gaps
  llvm::MapVector<std::pair<Operation*, Value>, SmallVector<TakeOp>> lookups;
  func.walk([&](TakeOp take) {
    const auto scratch = scratchOf(take);
    Operation* outermost = nullptr;
    for (auto loop = take->getParentOfType<LoopLikeOpInterface>();
         loop && isa<scf::ForOp, scf::WhileOp>(loop) && loop.isDefinedOutsideOfLoop(take.getSource());
         loop = loop->getParentOfType<LoopLikeOpInterface>())
      outermost = loop;
    if (outermost && scratch && scratch->bytes <= kLargest) lookups[{outermost, take.getSource()}].push_back(take);
  });
  int64_t bytes = 0;
  for (auto& [key, takes] : lookups) {
    auto [loop, source] = key;
    bytes += scratchOf(takes[0])->bytes;
    if (bytes > kMostBytes) return;
    OpBuilder b(loop);
    const RankedTensorType tile = tileType(source);
    SmallVector<int64_t> shape(tile.getShape());
    const auto axis = static_cast<int>(takes[0].getAxis());
    shape[axis] = 1;
    const auto layout = LayoutAttr::get(b.getContext(), layoutOf(tile)->sliced(axis));
    const auto places = RankedTensorType::get(shape, b.getI32Type(), layout);
    const auto line = RankedTensorType::get(shape, tile.getElementType(), layout);
    const Value first =
        arith::ConstantOp::create(b, loop->getLoc(), DenseElementsAttr::get(places, b.getI32IntegerAttr(0)));
    auto copy = TakeOp::create(b, takes[0].getLoc(), line, source, first, takes[0].getAxis());
    copy->setAttr(kMakesCopyAttr, b.getUnitAttr());
    for (TakeOp take : SmallVector<TakeOp>(takes)) takeAgain(take, takes);
    for (TakeOp take : takes) take->setAttr(kReadsCopyAttr, b.getUnitAttr());
  }
}

class TakeSlicesPass : public PassWrapper<TakeSlicesPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TakeSlicesPass)
  StringRef getArgument() const override { return "tile-take-slices"; }
  StringRef getDescription() const override { return "read slices of a tile that other threads hold from one copy"; }
  void getDependentDialects(DialectRegistry& registry) const override {
    registry.insert<TileDialect, arith::ArithDialect>();
  }
  void runOnOperation() override {
    getOperation().walk([](Block* block) {
      takeSlices(*block);
      shareBoxes(*block);
    });
    copyInFront(getOperation());
  }
};

}  // namespace

std::unique_ptr<Pass> createTakeSlicesPass() { return std::make_unique<TakeSlicesPass>(); }

}  // namespace tile::ir
