// diagonals.cpp - see diagonals.h.
#include "compiler/analysis/diagonals.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kDeep = 16;  // operations from the tile
/// No place grows faster along a tile; products of two such numbers, and sums of them, fit 64 bits.
constexpr int64_t kLargest = int64_t{1} << 30;
using Steps = SmallVector<int64_t>;

bool isSame(Value tile) {
  DenseElementsAttr elements;
  return tile.getDefiningOp<SplatOp>() || (matchPattern(tile, m_Constant(&elements)) && elements.isSplat());
}

/// Numbers one above the other along a dim, which are as far apart when they are widened, with a sign or without.
bool isCounting(Value tile, bool isSigned) {
  Operation* op = tile.getDefiningOp();
  while (isa_and_nonnull<ReshapeOp, BroadcastOp, ConvertOp>(op)) op = op->getOperand(0).getDefiningOp();
  auto iota = dyn_cast_or_null<IotaOp>(op);
  if (!iota) return false;
  const unsigned bits = getElementTypeOrSelf(iota.getType()).getIntOrFloatBitWidth();
  const auto first = static_cast<int64_t>(iota.getStart()), past = first + tileType(iota.getResult()).getDimSize(0);
  return bits < 64 && (isSigned ? past <= int64_t{1} << (bits - 1) : first >= 0);  // -1 and 0, 2^31 - 1 and 2^31
}

/// A change of layout leaves anything in what lies past the end of a tile.
bool isMovedPadding(Operation* op) {
  auto convert = dyn_cast_or_null<ConvertOp>(op);
  const auto layout = convert ? layoutOf(convert.getType()) : std::nullopt;
  return layout && layout->isPadded();
}

/// Whether elements for which the sum of `diagonals` is the same are the same where they grow by `steps`. (Where that
/// sum is the same everywhere, only those that do not grow are.)
bool isDecidedBy(Diagonals diagonals, const Steps& steps) {
  if (steps.size() != 2) return false;
  if (diagonals == Diagonals{0, 0}) return steps[0] == 0 && steps[1] == 0;
  return steps[0] * diagonals[1] == steps[1] * diagonals[0];
}

/// How far elements of tiles of integers are from their neighbours. Each tile is looked at once: sums of sums have
/// 2^depth parts.
class Neighbours {
 public:
  /// Along each dim, everywhere, modulo the type's size.
  std::optional<Steps> stepsOf(Value tile, int depth = 0) {
    if (!isTile(tile) || depth > kDeep) return std::nullopt;
    if (auto it = known_.find(tile); it != known_.end()) return it->second;
    auto steps = find(tile, depth);
    if (steps && llvm::any_of(*steps, [](int64_t step) { return std::abs(step) > kLargest; })) steps = std::nullopt;
    return known_[tile] = steps;
  }
  /// Whether the sum that `diagonals` stands for decides an element. Anything that does not follow ends the search.
  bool follows(Value tile, Diagonals diagonals, int depth = 0) {
    if (!isTile(tile) || depth > kDeep) return false;
    if (isSame(tile) || !seen_.insert(tile).second) return true;
    if (const auto steps = stepsOf(tile); steps && isDecidedBy(diagonals, *steps)) return true;
    Operation* op = tile.getDefiningOp();
    return op && (isElementwise(op) || isa<ConvertOp>(op)) && !isMovedPadding(op) && isMemoryEffectFree(op) &&
           llvm::all_of(op->getOperands(), [&](Value v) { return !isTile(v) || follows(v, diagonals, depth + 1); });
  }

 private:
  std::optional<Steps> find(Value tile, int depth) {
    Steps steps(tileType(tile).getRank(), 0);
    if (isSame(tile)) return steps;
    Operation* op = tile.getDefiningOp();
    auto of = [&](unsigned i) { return stepsOf(op->getOperand(i), depth + 1); };
    if (isa_and_nonnull<IotaOp>(op)) {
      steps[0] = tileType(tile).getDimSize(0) > 1;
      return steps;
    }
    if (isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(op) && isCounting(op->getOperand(0), isa<arith::ExtSIOp>(op)))
      return of(0);
    if (isMovedPadding(op)) return std::nullopt;
    if (isa_and_nonnull<BroadcastOp, ConvertOp>(op)) return of(0);  // a dim of one has no neighbours, and step 0
    if (auto reshape = dyn_cast_or_null<ReshapeOp>(op)) {
      const auto from = of(0);
      if (!from) return std::nullopt;
      const auto small = tileType(reshape.getSource()).getShape(), shape = tileType(tile).getShape();
      for (size_t dim = 0; dim < steps.size(); ++dim) {
        if (shape[dim] == 1) continue;
        const auto source = sourceDim(small, shape, static_cast<int64_t>(dim));
        if (!source) return std::nullopt;
        steps[dim] = (*from)[*source];
      }
      return steps;
    }
    if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
      const auto a = of(0), b = a ? of(1) : std::nullopt;
      if (!b) return std::nullopt;
      for (size_t dim = 0; dim < steps.size(); ++dim)
        steps[dim] = (*a)[dim] + (isa<arith::AddIOp>(op) ? (*b)[dim] : -(*b)[dim]);
      return steps;
    }
    if (isa_and_nonnull<arith::MulIOp>(op))
      for (unsigned by : {0u, 1u})
        if (const auto factor = getConstantIntValue(op->getOperand(by)); factor) {
          if (std::abs(*factor) > kLargest) return std::nullopt;
          auto made = of(1 - by);
          if (made)
            for (int64_t& step : *made) step *= *factor;
          return made;
        }
    return std::nullopt;
  }

  llvm::DenseMap<Value, std::optional<Steps>> known_;
  llvm::DenseSet<Value> seen_;
};

/// What the mask is the conjunction of.
void addConditions(Value mask, SmallVectorImpl<Value>& all) {
  while (auto convert = mask.getDefiningOp<ConvertOp>()) mask = convert.getSource();
  if (auto both = mask.getDefiningOp<arith::AndIOp>()) {
    addConditions(both.getLhs(), all);
    addConditions(both.getRhs(), all);
  } else {
    all.push_back(mask);
  }
}

/// The comparison says that the place is no negative number.
bool asksForWhole(arith::CmpIOp compare) {
  const auto bound = [&]() -> std::optional<int64_t> {
    DenseIntElementsAttr elements;
    if (matchPattern(compare.getRhs(), m_Constant(&elements)) && elements.isSplat())
      return elements.getSplatValue<APInt>().getSExtValue();
    auto splat = compare.getRhs().getDefiningOp<SplatOp>();
    return splat ? getConstantIntValue(splat.getValue()) : std::nullopt;
  }();
  return bound && ((compare.getPredicate() == arith::CmpIPredicate::sge && *bound >= 0) ||
                   (compare.getPredicate() == arith::CmpIPredicate::sgt && *bound >= -1));
}

}  // namespace

std::optional<Diagonals> diagonalsOf(Value tile) {
  if (!isTile(tile) || tileType(tile).getRank() != 2) return std::nullopt;
  while (auto wide = tile.getDefiningOp<arith::ExtSIOp>()) tile = wide.getIn();
  const auto steps = Neighbours().stepsOf(tile);
  if (!steps) return std::nullopt;
  return Diagonals{(*steps)[0], (*steps)[1]};
}

SmallVector<Value> conditionsOf(Value mask) {
  SmallVector<Value> all;
  addConditions(mask, all);
  return all;
}

bool isAlongDiagonals(Value tile, Diagonals diagonals) {
  return Neighbours().follows(tile, diagonals);
}

// Between two of a few elements places grow steadily, unless they wrap; two that are no negative numbers, or that their
// range keeps from the ends, have no such end between them.
bool wantsBetween(Value mask, Diagonals diagonals, const Facts& facts) {
  using Predicate = arith::CmpIPredicate;
  constexpr int64_t kNoWrap = int64_t{1} << 30;
  const SmallVector<Value> conditions = conditionsOf(mask);
  Neighbours neighbours;
  llvm::DenseSet<Value> whole;
  for (Value condition : conditions)
    if (auto compare = condition.getDefiningOp<arith::CmpIOp>(); compare && asksForWhole(compare))
      whole.insert(compare.getLhs());
  return llvm::all_of(conditions, [&](Value condition) {
    if (isSame(condition)) return true;
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    if (!compare || !isTile(compare.getLhs()) || !isSame(compare.getRhs())) return false;
    if (!llvm::is_contained({Predicate::slt, Predicate::sle, Predicate::sgt, Predicate::sge}, compare.getPredicate()))
      return false;
    const Value place = compare.getLhs();
    const auto steps = neighbours.stepsOf(place);
    if (!steps || !isDecidedBy(diagonals, *steps)) return false;
    const Range range = facts.rangeOf(place);
    return whole.contains(place) || (range.min > -kNoWrap && range.max < kNoWrap);
  });
}

}  // namespace tile::ir
