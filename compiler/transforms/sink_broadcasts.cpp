// sink_broadcasts.cpp - does elementwise work before values are repeated, not on every copy.
// Before: op(splat a, splat b), op(broadcast x, splat b), op(broadcast x, broadcast y) over the whole tile.
// After:  splat(op(a, b)), broadcast(op(x, splat b)), broadcast(op(x, y)): scalars are computed as scalars, rows as
//         rows. Nothing moves when one operand really is a whole tile.
//
// Sums of integers and conjunctions (or disjunctions) of masks are reordered for this: in (row + column) + row the rows
// are added first, so that addresses and masks of a tile are computed for its rows and for its columns.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tile::ir {
#define GEN_PASS_DEF_SINKBROADCASTS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

/// The type of `like`'s elements under `shape`; no shape: the element itself.
Type typeWith(Type like, std::optional<ArrayRef<int64_t>> shape) {
  Type element = getElementTypeOrSelf(like);
  return shape ? Type(RankedTensorType::get(*shape, element)) : element;
}

struct SinkBroadcast : RewritePattern {
  explicit SinkBroadcast(MLIRContext* context) : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation* op, PatternRewriter& rewriter) const override {
    if (op->getNumResults() != 1 || op->getNumRegions() != 0 || op->getNumOperands() == 0 || !isPure(op) ||
        !op->hasTrait<OpTrait::Elementwise>())
      return failure();
    auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!result || result.getEncoding()) return failure();

    // The shape to compute in: of the broadcasts' sources, which must agree; none when all operands are splats.
    std::optional<ArrayRef<int64_t>> shape;
    bool repeats = false;
    for (Value operand : op->getOperands()) {
      if (!isa<RankedTensorType>(operand.getType()) || operand.getDefiningOp<SplatOp>()) {
        repeats |= isa<RankedTensorType>(operand.getType());
        continue;
      }
      if (auto broadcast = operand.getDefiningOp<BroadcastOp>()) {
        auto source = cast<RankedTensorType>(broadcast.getSource().getType()).getShape();
        if (shape && *shape != source) return failure();
        shape = source;
        repeats = true;
        continue;
      }
      if (!constantSplat(operand)) return failure();
    }
    if (!repeats) return failure();

    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) operands.push_back(shrunk(rewriter, op->getLoc(), operand, shape));
    OperationState state(op->getLoc(), op->getName(), operands, typeWith(result, shape), op->getAttrs());
    Value small = rewriter.create(state)->getResult(0);
    if (shape)
      rewriter.replaceOpWithNewOp<BroadcastOp>(op, result, small);
    else
      rewriter.replaceOpWithNewOp<SplatOp>(op, result, small);
    return success();
  }

 private:
  static DenseElementsAttr constantSplat(Value v) {
    DenseElementsAttr attr;
    return matchPattern(v, m_Constant(&attr)) && attr.isSplat() ? attr : DenseElementsAttr();
  }

  static Value shrunk(PatternRewriter& rewriter, Location loc, Value operand, std::optional<ArrayRef<int64_t>> shape) {
    if (!isa<RankedTensorType>(operand.getType())) return operand;
    if (auto splat = operand.getDefiningOp<SplatOp>())
      return shape ? SplatOp::create(rewriter, loc, typeWith(operand.getType(), shape), splat.getValue()).getResult()
                   : splat.getValue();
    if (auto broadcast = operand.getDefiningOp<BroadcastOp>()) return broadcast.getSource();
    DenseElementsAttr attr = constantSplat(operand);
    if (shape)
      return arith::ConstantOp::create(rewriter, loc,
                                       attr.resizeSplat(cast<ShapedType>(typeWith(operand.getType(), shape))));
    return arith::ConstantOp::create(rewriter, loc, cast<TypedAttr>(attr.getSplatValue<Attribute>()));
  }
};

/// Sums, and masks: operations of integers that may be grouped as one likes.
bool isUngrouped(Operation* op) {
  auto type = op ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : RankedTensorType();
  if (!type || type.getEncoding()) return false;
  return isa<arith::AddIOp>(op) || (isa<arith::AndIOp, arith::OrIOp>(op) && type.getElementType().isInteger(1));
}

/// What the operation and others of its kind, whose results are for it alone, combine.
void operandsOf(Operation* op, SmallVectorImpl<Value>& all) {
  for (Value operand : op->getOperands()) {
    Operation* inner = operand.getDefiningOp();
    const bool isPart =
        inner && inner->getName() == op->getName() && inner->getBlock() == op->getBlock() && inner->hasOneUse();
    if (isPart)
      operandsOf(inner, all);
    else
      all.push_back(operand);
  }
}

/// Combines what is repeated from one shape before anything else; whether there was any.
bool groupBroadcasts(Operation* op) {
  if (!isUngrouped(op)) return false;
  if (op->hasOneUse())
    if (Operation* user = *op->getUsers().begin();
        user->getName() == op->getName() && user->getBlock() == op->getBlock())
      return false;  // part of that
  SmallVector<Value> operands;
  operandsOf(op, operands);
  // Of every shape in the order of the first of it: sources, or whole tiles.
  llvm::MapVector<ArrayRef<int64_t>, SmallVector<Value>> sources;
  SmallVector<Value> whole;
  bool found = false;
  for (Value operand : operands) {
    auto broadcast = operand.getDefiningOp<BroadcastOp>();
    if (!broadcast) {
      whole.push_back(operand);
      continue;
    }
    auto& alike = sources[cast<RankedTensorType>(broadcast.getSource().getType()).getShape()];
    alike.push_back(broadcast.getSource());
    found |= alike.size() > 1;
  }
  if (!found || operands.size() < 3) return false;
  OpBuilder b(op);
  auto combined = [&](ArrayRef<Value> values) {
    Value all = values[0];
    for (Value value : values.drop_front()) {
      OperationState state(op->getLoc(), op->getName(), {all, value}, all.getType());
      all = b.create(state)->getResult(0);
    }
    return all;
  };
  for (auto& [shape, alike] : sources)
    whole.push_back(BroadcastOp::create(b, op->getLoc(), op->getResult(0).getType(), combined(alike)));
  op->getResult(0).replaceAllUsesWith(combined(whole));
  return true;
}

struct SinkBroadcasts : impl::SinkBroadcastsBase<SinkBroadcasts> {
  void runOnOperation() override {
    sink();
    SmallVector<Operation*> all;
    getOperation().walk([&](Operation* op) {
      if (op->getNumResults() == 1) all.push_back(op);
    });
    bool grouped = false;
    for (Operation* op : all) grouped |= groupBroadcasts(op);
    if (grouped) sink();
  }

  void sink() {
    RewritePatternSet patterns(&getContext());
    patterns.add<SinkBroadcast>(&getContext());
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal(true);
    (void)applyPatternsGreedily(getOperation(), std::move(patterns), config);
  }
};

}  // namespace
}  // namespace tile::ir
