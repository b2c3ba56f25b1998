// neighbours.cpp - see neighbours.h.
#include "compiler/analysis/neighbours.h"

#include <numeric>
#include <optional>
#include <utility>

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
using Step = std::optional<Apart>;

bool isNone(const Step& step) { return step && step->isKnown && step->elements == 0; }

/// Not farther than anything is in memory: sums and opposites of such numbers fit.
Step within(int64_t elements, bool isKnown) {
  constexpr int64_t kMost = int64_t{1} << 48;
  return elements <= kMost && elements >= -kMost ? Step(Apart{elements, isKnown}) : std::nullopt;
}

Step sumOf(const Step& a, const Step& b, int sign) {
  if (!a || !b) return std::nullopt;
  if (!a->isKnown || !b->isKnown) return Apart{std::gcd(a->elements, b->elements), false};
  return within(a->elements + sign * b->elements, true);
}

std::optional<int64_t> constantOf(Value value) {
  for (Operation* op = value.getDefiningOp(); isa_and_nonnull<SplatOp, BroadcastOp, ReshapeOp>(op);
       op = value.getDefiningOp())
    value = op->getOperand(0);
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) return constant.getSExtValue();
  return std::nullopt;
}

/// What most elements of an integer tile have more than their neighbours along a dim: x + 3 * i of a tile that holds i
/// has 3, i / n has 0 and i % n has 1, whatever n is, and i * n a multiple of what is known to divide n. A scalar
/// has 0. Nullopt: not known. Every value is looked at once along a dim: sums of sums would be walked 2^depth times.
class Steps {
 public:
  explicit Steps(const Facts& facts) : facts_(facts) {}
  Step of(Value value, int64_t dim, int depth = 0) {
    const std::pair key(value, dim);
    if (auto it = known_.find(key); it != known_.end()) return it->second;
    const Step step = made(value, dim, depth);
    known_[key] = step;
    return step;
  }

 private:
  Step made(Value value, int64_t dim, int depth);
  Step scaled(const Step& step, Value by) const;

  const Facts& facts_;
  llvm::DenseMap<std::pair<Value, int64_t>, Step> known_;
};

/// `by` is the same for all elements.
Step Steps::scaled(const Step& step, Value by) const {
  if (!step) return step;
  const auto constant = constantOf(by);
  int64_t result;
  if (llvm::MulOverflow(step->elements, constant.value_or(facts_.divisibility(by)), result)) return std::nullopt;
  return within(result, step->isKnown && (constant || step->elements == 0));
}

Step Steps::made(Value value, int64_t dim, int depth) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getDimSize(dim) == 1 || matchPattern(value, m_Constant())) {
    DenseElementsAttr elements;
    const bool varies = type && matchPattern(value, m_Constant(&elements)) && !elements.isSplat();
    return varies ? Step() : Apart{};
  }
  Operation* op = depth < kDeep ? value.getDefiningOp() : nullptr;
  if (!op) return std::nullopt;
  auto along = [&](Value operand) { return of(operand, dim, depth + 1); };
  return llvm::TypeSwitch<Operation*, Step>(op)
      .Case<IotaOp>([](IotaOp) { return Apart{1}; })
      .Case<SplatOp>([](SplatOp) { return Apart{}; })
      .Case<BroadcastOp, AssumeOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(
          [&](Operation* o) { return along(o->getOperand(0)); })
      .Case<ReshapeOp>([&](ReshapeOp o) -> Step {
        const auto from = sourceDim(tileType(o.getSource()).getShape(), type.getShape(), dim);
        return from ? of(o.getSource(), *from, depth + 1) : std::nullopt;
      })
      .Case<TransOp>([&](TransOp o) { return of(o.getSource(), o.getPermutation()[dim], depth + 1); })
      .Case<arith::AddIOp>([&](Operation* o) { return sumOf(along(o->getOperand(0)), along(o->getOperand(1)), 1); })
      .Case<arith::SubIOp>([&](Operation* o) { return sumOf(along(o->getOperand(0)), along(o->getOperand(1)), -1); })
      .Case<arith::MulIOp>([&](arith::MulIOp o) -> Step {
        const Step left = along(o.getLhs()), right = along(o.getRhs());
        if (isNone(right)) return scaled(left, o.getRhs());
        return isNone(left) ? scaled(right, o.getLhs()) : std::nullopt;
      })
      .Case<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>([&](Operation* o) -> Step {
        const Step step = along(o->getOperand(0));
        const auto by = constantOf(o->getOperand(1));
        if (!step || !step->isKnown || !isNone(along(o->getOperand(1)))) return std::nullopt;
        return Apart{by && *by ? step->elements / *by : 0};  // a divisor that is not known will be larger than a step
      })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](Operation* o) -> Step {
        const Step step = along(o->getOperand(0));
        if (!step || !isNone(along(o->getOperand(1)))) return std::nullopt;
        return step->isKnown ? step : Apart{1, false};  // what is left of multiples is any number
      })
      .Default([&](Operation* o) -> Step {
        if (o->getNumOperands() == 0 || isa<LoadOp, GatherOp>(o)) return std::nullopt;
        // What loops and branches begin with, or are told by, may have other dims.
        return llvm::all_of(o->getOperands(), [&](Value v) {
          auto tile = dyn_cast<RankedTensorType>(v.getType());
          return (!tile || tile.getRank() == type.getRank()) && isNone(along(v));
        }) ? Step(Apart{}) : std::nullopt;
      });
}

}  // namespace

std::optional<Apart> stepAlong(Value offsets, int64_t dim, const Facts& facts) { return Steps(facts).of(offsets, dim); }

int nearestDim(Value offsets, int elementBytes, const Facts& facts) {
  constexpr int64_t kLine = 128, kSector = 32;  // bytes
  auto type = dyn_cast<RankedTensorType>(offsets.getType());
  Steps steps(facts);
  int nearest = -1, mayBeNear = -1;
  int64_t least = kLine / elementBytes, leastMultiple = kSector / elementBytes;
  bool isLastFar = false;  // every element of the dim that lanes read along otherwise has a sector for itself
  for (int dim = type ? static_cast<int>(type.getRank()) - 1 : -1, last = -1; dim >= 0; --dim) {
    if (type.getDimSize(dim) == 1) continue;
    const Step step = steps.of(offsets, dim);
    const int64_t apart = step ? std::abs(step->elements) : 0;
    if (std::exchange(last, dim) < 0) isLastFar = apart >= leastMultiple;
    if (apart == 0) continue;
    if (step->isKnown && apart < least) least = apart, nearest = dim;
    if (!step->isKnown && apart < leastMultiple) leastMultiple = apart, mayBeNear = dim;
  }
  return nearest < 0 && isLastFar ? mayBeNear : nearest;
}

}  // namespace tile::ir
