// shared_places.cpp - see shared_places.h. Both sides are counted in instructions of a warp for every element.
#include "compiler/gpu/layouts/shared_places.h"

#include <algorithm>

#include "compiler/analysis/neighbours.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/moves.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr double kDivision = 10;  ///< by a number of the launch
constexpr double kLine = 4;       ///< a line more of one access: what an SM issues meanwhile
constexpr int kLineBytes = 128, kWidest = 16;

/// What places (and masks) are computed from, in the gather's own block.
llvm::SetVector<Operation*> placesOf(GatherOp gather) {
  constexpr size_t kMost = 256;
  llvm::SetVector<Operation*> ops;
  SmallVector<Value> pending{gather.getOffsets(), gather.getMask()};
  while (!pending.empty() && ops.size() < kMost) {
    Value value = pending.pop_back_val();
    Operation* op = value ? value.getDefiningOp() : nullptr;
    if (op && op->getBlock() == gather->getBlock() && isMemoryEffectFree(op) && ops.insert(op))
      pending.append(op->operand_begin(), op->operand_end());
  }
  return ops;
}

/// Elements next to each other of which the facts tell the quotient or remainder from the first.
int64_t runOf(Operation* op, const Facts& facts) {
  if (!isa<arith::DivSIOp, arith::FloorDivSIOp, arith::RemSIOp, arith::DivUIOp, arith::RemUIOp>(op) ||
      !isa<RankedTensorType>(op->getResult(0).getType()) || matchPattern(op->getOperand(1), m_Constant()))
    return 1;
  // Of equals the quotients are equal, of whatever sign.
  if (!facts.rangeOf(op->getOperand(0)).isNonNegative()) return facts.of(op->getOperand(0)).constancy[0];
  const AxisFacts known = facts.of(op->getResult(0));
  return isa<arith::RemSIOp, arith::RemUIOp>(op) ? std::max(known.constancy[0], known.contiguity[0])
                                                 : known.constancy[0];
}

}  // namespace

int64_t runOfPlaces(Operation* op, const Facts& facts) {
  auto gather = dyn_cast<GatherOp>(op);
  auto type = gather ? dyn_cast<RankedTensorType>(gather.getResult().getType()) : RankedTensorType();
  if (!type || type.getRank() != 1 || !gather.getOffsets()) return 1;
  const llvm::SetVector<Operation*> own = placesOf(gather);
  SmallVector<int64_t> runs;
  for (Operation* division : own)
    if (const int64_t run = runOf(division, facts); run > 1) runs.push_back(run);
  if (runs.empty()) return 1;
  // Each gather has to pay for its lines; the divisions are all gathers' together.
  double gathers = 0;
  gather->getParentOfType<FunctionOpInterface>()->walk([&](GatherOp other) {
    if (other.getType() != type || !other.getOffsets()) return;
    auto isShared = [&](Operation* from) { return own.contains(from) && runOf(from, facts) > 1; };
    if (other == gather || llvm::any_of(placesOf(other), isShared)) ++gathers;
  });
  const int bytes = elementBytes(type);
  const auto apart = stepAlong(gather.getOffsets(), 0, facts);
  const int64_t step = apart && apart->isKnown ? std::max<int64_t>(1, std::abs(apart->elements)) : 1;
  auto lines = [&](int64_t run) {
    return double(std::min<int64_t>(32, llvm::divideCeil(32 * run * step * bytes, kLineBytes)));
  };
  int64_t best = 1;
  double most = 0;
  for (int64_t run = 2; run <= kWidest / bytes; run *= 2) {
    double saved = 0;
    for (int64_t each : runs) saved += kDivision * (1 - 1.0 / double(std::min(each, run)));
    saved -= gathers * kLine * (lines(run) - lines(1));
    if (saved > most) best = run, most = saved;
  }
  return best;
}

}  // namespace tile::ir
