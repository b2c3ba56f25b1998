// operand_source.cpp - see operand_source.h.
#include "compiler/gpu/products/operand_source.h"

#include <algorithm>

#include "compiler/analysis/neighbours.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

bool isZero(Value v) { return !v || matchPattern(v, m_Zero()) || matchPattern(v, m_AnyZeroFloat()); }

/// Dim of a tile along which threads hold neighbours in global memory, of what it is computed from; -1: not known.
/// What was `seen` before did not say.
int runsAlong(Value v, const Facts& facts, llvm::DenseSet<Value>& seen) {
  Operation* op = v.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(v.getType());
  if (!op || !type || !seen.insert(v).second) return -1;
  if (auto load = dyn_cast<LoadOp>(op)) {
    const int64_t dim = facts.unitStrideDim(load.getView()) - (load.getView().getType().getRank() - type.getRank());
    return dim >= 0 && type.getDimSize(dim) > 1 ? static_cast<int>(dim) : -1;
  }
  if (auto fetched = dyn_cast<SmemLoadOp>(op))  // for another product
    return type.getRank() == 2 ? static_cast<int>(fetched.getSource().getType().getMinor()) : -1;
  if (auto gather = dyn_cast<GatherOp>(op)) {
    if (!gather.getOffsets()) return -1;
    const auto runs = facts.of(gather.getOffsets()).contiguity;
    const auto* longest = std::max_element(runs.begin(), runs.end());
    if (*longest == 1) return nearestDim(gather.getOffsets(), elementBytes(gather.getType()), facts);
    return static_cast<int>(longest - runs.begin());
  }
  if (auto trans = dyn_cast<TransOp>(op)) {
    const int from = runsAlong(trans.getSource(), facts, seen);
    for (auto [to, dim] : llvm::enumerate(trans.getPermutation()))
      if (dim == from) return static_cast<int>(to);
    return -1;
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    const int from = runsAlong(reshape.getSource(), facts, seen);
    auto source = cast<RankedTensorType>(reshape.getSource().getType());
    if (from < 0) return -1;
    const int64_t apart = distanceAlong(source.getShape(), from);  // in the dim that holds it, alone or with others
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      const int64_t least = distanceAlong(type.getShape(), dim);
      if (least <= apart && apart < least * type.getDimSize(dim)) return static_cast<int>(dim);
    }
    return -1;
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) return runsAlong(broadcast.getSource(), facts, seen);
  if (!isElementwise(op)) return -1;
  for (Value operand : op->getOperands())
    if (int dim = runsAlong(operand, facts, seen); dim >= 0) return dim;
  return -1;
}

}  // namespace

LoadOp loadOfRows(Value v) {
  auto reshape = v.getDefiningOp<ReshapeOp>();
  auto load = reshape ? reshape.getSource().getDefiningOp<LoadOp>() : LoadOp();
  if (!load || !load->hasOneUse()) return {};
  auto from = cast<ShapedType>(load.getType()).getShape(), to = cast<ShapedType>(v.getType()).getShape();
  if (from.size() < 3 || to.size() != 2) return {};
  auto type = SmemType::get(v.getContext(), to, load.getView().getType().getElementType(), 1, 1);
  return from.back() == to.back() || type.columnDims(from) > 1 ? load : LoadOp();
}

SmemType inPanels(SmemType type, LoadOp ofRows) {
  auto box = cast<ShapedType>(ofRows.getType()).getShape();
  if (type.columnDims(box) == 1) return type;
  for (int64_t bytes : {128, 64, 32})
    if (box.back() * type.elementBytes() % bytes == 0) return type.withPanel(bytes / type.elementBytes());
  return type;
}

bool OperandSources::isBulk(Value v, int minor) const {
  auto load = v.getDefiningOp<LoadOp>();
  auto tile = cast<ShapedType>(v.getType());
  return load && target_.hasTma && tile.getRank() == 2 && !isMadeInKernel(load.getView()) &&
         isBulkLoad(load, SmemType::get(v.getContext(), tile.getShape(), tile.getElementType(), minor, 1), facts_);
}

bool OperandSources::canFetch(Value v) const {
  Operation* op = v.getDefiningOp();
  LoadOp load = dyn_cast_or_null<LoadOp>(op), ofRows = loadOfRows(v);
  if (ofRows) {
    auto box = cast<ShapedType>(ofRows.getType()).getShape(), rows = cast<ShapedType>(v.getType()).getShape();
    auto type = SmemType::get(v.getContext(), rows, ofRows.getView().getType().getElementType(), 1, 1);
    type = inPanels(type, ofRows);
    if (!target_.hasTma || !isBulkLoad(ofRows, type, facts_, nullptr, box)) return false;
    load = ofRows;
  }
  if (load)
    return cast<ShapedType>(v.getType()).getRank() == 2 && load.getCache() != CacheHint::volatile_ &&
           (!load.getPad() || load.getPad()->isZero());
  if (auto gather = dyn_cast_or_null<GatherOp>(op))
    return gather.getOffsets() && gather.getCache() != CacheHint::volatile_ && isZero(gather.getOther());
  return false;
}

bool OperandSources::isCopied(Value v) const {
  while (auto trans = v.getDefiningOp<TransOp>()) v = trans.getSource();
  return canFetch(v);
}

int OperandSources::fastDim(Value v) const {
  const bool either = cast<RankedTensorType>(v.getType()).getElementTypeBitWidth() == 16;  // may lie either way
  if (auto load = v.getDefiningOp<LoadOp>()) {
    int lead = static_cast<int>(load.getView().getType().getRank()) - 2;
    return facts_.unitStrideDim(load.getView()) == lead ? 0 : 1;
  }
  if (auto gather = v.getDefiningOp<GatherOp>()) {
    AxisFacts axis = facts_.of(gather.getOffsets());
    // Places read from a table under a mask: most iterations will do without it (peel_masks).
    if (gather.getMask() && axis.contiguity[0] == 1 && axis.contiguity[1] == 1)
      axis = Facts(gather->getParentOfType<func::FuncOp>(), /*anyMask=*/true).of(gather.getOffsets());
    if (either && axis.contiguity[0] == axis.contiguity[1])
      return nearestDim(gather.getOffsets(), elementBytes(gather.getType()), facts_) == 0 ? 0 : 1;
    return axis.contiguity[0] > axis.contiguity[1] ? 0 : 1;
  }
  // What is computed from a load lies in the threads as the load reads best.
  llvm::DenseSet<Value> seen;
  return either && runsAlong(v, facts_, seen) == 0 ? 0 : 1;
}

bool OperandSources::kIsMinor(Value v, int kDim) const {
  for (; auto trans = v.getDefiningOp<TransOp>(); kDim = 1 - kDim) v = trans.getSource();
  return fastDim(v) == kDim;
}

}  // namespace tile::ir
