// take_slices.cpp - slices of one tile that other threads have are read from one copy of it.
// Before: layouts; extracts of single lines along an axis (the points of a short transform), each through a buffer of
//         its own, into which every thread writes under a condition what it has of the line, maybe nothing.
// After:  takes, which share what they read (place_buffers.cpp), side by side where that is not many registers: what is
//         computed from them may then meet at one barrier.
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/layout_links.h"
#include "compiler/gpu/moves.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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
  for (auto& [tile, extracts] : slices) {
    if (extracts.size() < 2) continue;
    int64_t registers = 0;
    for (ExtractOp extract : extracts) registers += registersOf(extract.getType());
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

class TakeSlicesPass : public PassWrapper<TakeSlicesPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TakeSlicesPass)
  StringRef getArgument() const override { return "tile-take-slices"; }
  StringRef getDescription() const override { return "slices of one tile that other threads have share a copy of it"; }
  void getDependentDialects(DialectRegistry& registry) const override {
    registry.insert<TileDialect, arith::ArithDialect>();
  }
  void runOnOperation() override {
    getOperation().walk([](Block* block) { takeSlices(*block); });
  }
};

}  // namespace

std::unique_ptr<Pass> createTakeSlicesPass() { return std::make_unique<TakeSlicesPass>(); }

}  // namespace tile::ir
