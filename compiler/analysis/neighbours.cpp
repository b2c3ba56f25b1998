// neighbours.cpp - see neighbours.h.
#include "compiler/analysis/neighbours.h"

#include <optional>

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kDeep = 32;  // operations from the offsets
using Step = std::optional<int64_t>;

std::optional<int64_t> constantOf(Value value) {
  for (Operation* op = value.getDefiningOp(); isa_and_nonnull<SplatOp, BroadcastOp, ReshapeOp>(op);
       op = value.getDefiningOp())
    value = op->getOperand(0);
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) return constant.getSExtValue();
  return std::nullopt;
}

/// What most elements of an integer tile have more than their neighbours along a dim: x + 3 * i of a tile that holds i
/// has 3, i / n has 0 and i % n has 1, whatever n is. A scalar has 0. Nullopt: not known, or a number that only the
/// launch tells. Every value is looked at once along a dim: sums of sums would be walked 2^depth times.
class Steps {
 public:
  Step of(Value value, int64_t dim, int depth = 0) {
    const std::pair key(value, dim);
    if (auto it = known_.find(key); it != known_.end()) return it->second;
    const Step step = made(value, dim, depth);
    known_[key] = step;
    return step;
  }

 private:
  Step made(Value value, int64_t dim, int depth);

  llvm::DenseMap<std::pair<Value, int64_t>, Step> known_;
};

Step Steps::made(Value value, int64_t dim, int depth) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getDimSize(dim) == 1 || matchPattern(value, m_Constant())) {
    DenseElementsAttr elements;
    const bool varies = type && matchPattern(value, m_Constant(&elements)) && !elements.isSplat();
    return varies ? Step() : 0;
  }
  Operation* op = depth < kDeep ? value.getDefiningOp() : nullptr;
  if (!op) return std::nullopt;
  auto along = [&](Value operand) { return of(operand, dim, depth + 1); };
  auto combined = [&](auto combine) -> Step {
    const Step a = along(op->getOperand(0)), b = along(op->getOperand(1));
    int64_t result;
    return a && b && !combine(*a, *b, &result) ? Step(result) : std::nullopt;
  };
  auto scaled = [&](Value x, Value by) -> Step {
    const Step step = along(x);
    const auto factor = constantOf(by);
    int64_t result;
    if (step && factor && !llvm::MulOverflow(*step, *factor, result)) return result;
    return std::nullopt;
  };
  return llvm::TypeSwitch<Operation*, Step>(op)
      .Case<IotaOp>([](IotaOp) { return 1; })
      .Case<SplatOp>([](SplatOp) { return 0; })
      .Case<BroadcastOp, AssumeOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(
          [&](Operation* o) { return along(o->getOperand(0)); })
      .Case<ReshapeOp>([&](ReshapeOp o) -> Step {
        const auto from = sourceDim(tileType(o.getSource()).getShape(), type.getShape(), dim);
        return from ? of(o.getSource(), *from, depth + 1) : std::nullopt;
      })
      .Case<TransOp>([&](TransOp o) { return of(o.getSource(), o.getPermutation()[dim], depth + 1); })
      .Case<arith::AddIOp>([&](Operation*) {
        return combined([](int64_t a, int64_t b, int64_t* sum) { return llvm::AddOverflow(a, b, *sum) != 0; });
      })
      .Case<arith::SubIOp>([&](Operation*) {
        return combined([](int64_t a, int64_t b, int64_t* rest) { return llvm::SubOverflow(a, b, *rest) != 0; });
      })
      .Case<arith::MulIOp>([&](arith::MulIOp o) -> Step {
        if (along(o.getLhs()) == 0 && along(o.getRhs()) == 0) return 0;
        const Step step = scaled(o.getLhs(), o.getRhs());
        return step ? step : scaled(o.getRhs(), o.getLhs());
      })
      .Case<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>([&](Operation* o) -> Step {
        const Step step = along(o->getOperand(0));
        const auto by = constantOf(o->getOperand(1));
        if (!step || along(o->getOperand(1)) != 0) return std::nullopt;
        return by && *by ? *step / *by : 0;  // a divisor that is not known will be larger than a step
      })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](Operation* o) -> Step {
        return along(o->getOperand(1)) == 0 ? along(o->getOperand(0)) : std::nullopt;
      })
      .Default([&](Operation* o) -> Step {
        if (o->getNumOperands() == 0 || isa<LoadOp, GatherOp>(o)) return std::nullopt;
        // What loops and branches begin with, or are told by, may have other dims.
        return llvm::all_of(o->getOperands(), [&](Value v) {
          auto tile = dyn_cast<RankedTensorType>(v.getType());
          return (!tile || tile.getRank() == type.getRank()) && along(v) == 0;
        }) ? Step(0) : std::nullopt;
      });
}

}  // namespace

std::optional<int64_t> stepAlong(Value offsets, int64_t dim) { return Steps().of(offsets, dim); }

int nearestDim(Value offsets, int elementBytes) {
  constexpr int64_t kLine = 128;  // bytes
  auto type = dyn_cast<RankedTensorType>(offsets.getType());
  Steps steps;
  int nearest = -1;
  int64_t least = kLine / elementBytes;
  for (int dim = type ? static_cast<int>(type.getRank()) - 1 : -1; dim >= 0; --dim) {
    const Step step = steps.of(offsets, dim);
    if (!step || *step == 0 || type.getDimSize(dim) == 1 || std::abs(*step) >= least) continue;
    least = std::abs(*step), nearest = dim;
  }
  return nearest;
}

}  // namespace tile::ir
