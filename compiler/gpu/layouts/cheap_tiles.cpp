// cheap_tiles.cpp - what a tile costs to compute again, instruction by instruction.
#include "compiler/gpu/layouts/cheap_tiles.h"

#include <algorithm>

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kCheapOps = 12;     ///< index arithmetic worth repeating instead of moving its result
constexpr int kFewElements = 16;  ///< a tile this many times smaller is moved for next to nothing
constexpr int kNever = 1 << 20;

/// Takes half of a pair of registers, or makes a pair: no instruction.
bool isHalfOfPair(Operation* op) {
  auto bits = [](Value tile) { return getElementTypeOrSelf(tile.getType()).getIntOrFloatBitWidth(); };
  if (isa<arith::TruncIOp, arith::ExtUIOp>(op)) return bits(op->getOperand(0)) + bits(op->getResult(0)) == 32 + 64;
  APInt by;
  return isa<arith::ShRUIOp>(op) && bits(op->getResult(0)) == 64 &&
         matchPattern(op->getOperand(1), m_ConstantInt(&by)) && by == 32;
}

}  // namespace

bool CheapTiles::isCheap(Value tile) { return cost(tile) <= kCheapOps; }

int CheapTiles::cost(Value tile) {
  if (!isTile(tile)) return 0;
  Operation* op = tile.getDefiningOp();
  if (!op) return kNever;
  if (auto it = cost_.find(tile); it != cost_.end()) return it->second;
  if (remakesAll_) return 0;
  int total = kNever;
  if (isa<IotaOp, SplatOp, arith::ConstantOp>(op)) {
    total = isa<IotaOp>(op) ? 1 : 0;
  } else if (isElementwise(op) || isa<AssumeOp, BroadcastOp, ReshapeOp, TransOp>(op)) {
    const bool simple = elementwiseCost(op) <= kCheapOps && !isa<arith::DivFOp, arith::RemFOp>(op);
    total = isElementwise(op) && !isHalfOfPair(op) ? 1 : 0;
    for (Value operand : op->getOperands()) total = std::min(kNever, total + cost(operand));
    // Masks and offsets that repeat a few values (rows that were gathered, say): those values are moved instead.
    if (isa<BroadcastOp>(op) && getElementTypeOrSelf(tile.getType()).isInteger()) {
      const RankedTensorType small = tileType(op->getOperand(0)), large = tileType(tile);
      if (small.getNumElements() * kFewElements <= large.getNumElements()) total = std::min(total, 1);
    }
    if (!simple || total > kCheapOps) total = kNever;
  }
  return cost_[tile] = total;
}

}  // namespace tile::ir
