// known_values.cpp - evaluates what defines a tile, by the folds of its operations.
#include "compiler/analysis/known_values.h"

#include "compiler/lowering/elementwise.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kMostElements = 1 << 16;
constexpr int kMostSteps = 64;  ///< operations looked at

/// Row-major index of the source's element for every element of the result.
template <class Map>
DenseElementsAttr rearranged(DenseElementsAttr source, RankedTensorType type, Map sourceIndex) {
  if (source.isSplat()) return DenseElementsAttr::get(type, source.getSplatValue<Attribute>());
  SmallVector<APInt> from(source.getValues<APInt>()), to;
  to.reserve(type.getNumElements());
  SmallVector<int64_t> at(type.getRank(), 0);
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t rest = i;
    for (int64_t d = type.getRank(); d-- > 0; rest /= type.getDimSize(d)) at[d] = rest % type.getDimSize(d);
    to.push_back(from[sourceIndex(at)]);
  }
  return DenseElementsAttr::get(type, to);
}

class Evaluation {
 public:
  DenseElementsAttr of(Value tile) {
    auto type = dyn_cast<RankedTensorType>(tile.getType());
    Operation* op = tile.getDefiningOp();
    if (!type || !op || !type.getElementType().isInteger() || type.getNumElements() > kMostElements) return {};
    if (auto it = done_.find(tile); it != done_.end()) return it->second;
    if (++steps_ > kMostSteps) return {};
    return done_[tile] = compute(op, type);
  }

 private:
  DenseElementsAttr compute(Operation* op, RankedTensorType type) {
    DenseElementsAttr constant;
    if (matchPattern(op, m_Constant(&constant))) return constant;
    if (auto iota = dyn_cast<IotaOp>(op)) {
      const unsigned bits = type.getElementTypeBitWidth();
      SmallVector<APInt> values;
      for (int64_t i = 0; i < type.getNumElements(); ++i)
        values.push_back(APInt(bits, static_cast<uint64_t>(i + static_cast<int64_t>(iota.getStart())), false, true));
      return DenseElementsAttr::get(type, values);
    }
    if (auto splat = dyn_cast<SplatOp>(op)) {
      APInt value;
      if (!matchPattern(splat.getValue(), m_ConstantInt(&value))) return {};
      return DenseElementsAttr::get(type, value);
    }
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(of(operand));
      if (!operands.back()) return {};
    }
    if (isa<AssumeOp>(op)) return cast<DenseElementsAttr>(operands[0]);
    if (isa<BroadcastOp, ReshapeOp, TransOp>(op)) return moved(op, cast<DenseElementsAttr>(operands[0]), type);
    if (!isElementwise(op) || op->getNumRegions() || op->getNumResults() != 1) return {};
    SmallVector<OpFoldResult> results;
    if (failed(op->fold(operands, results)) || results.size() != 1) return {};
    auto folded = dyn_cast_or_null<DenseElementsAttr>(dyn_cast<Attribute>(results[0]));
    return folded && folded.getType() == type ? folded : DenseElementsAttr();
  }

  static DenseElementsAttr moved(Operation* op, DenseElementsAttr source, RankedTensorType type) {
    auto from = cast<RankedTensorType>(op->getOperand(0).getType());
    auto inSource = [&](ArrayRef<int64_t> at) {
      int64_t index = 0;
      for (int64_t d = 0; d < from.getRank(); ++d)
        index = index * from.getDimSize(d) + (from.getDimSize(d) == 1 ? 0 : at[d]);
      return index;
    };
    if (isa<BroadcastOp>(op)) return rearranged(source, type, inSource);
    if (auto trans = dyn_cast<TransOp>(op))
      return rearranged(source, type, [&](ArrayRef<int64_t> at) {
        SmallVector<int64_t> back(at.size());
        for (auto [i, dim] : llvm::enumerate(trans.getPermutation())) back[dim] = at[i];
        return inSource(back);
      });
    return source.reshape(type);
  }

  llvm::DenseMap<Value, DenseElementsAttr> done_;
  int steps_ = 0;
};

/// Writes down the graph that Evaluation walks: each operation once, by what it is, and its operands by their numbers.
class Description {
 public:
  explicit Description(MemoKey& key) : key_(key) {}

  bool of(Value tile) {
    Operation* op = tile.getDefiningOp();
    if (!op || !getElementTypeOrSelf(tile.getType()).isInteger()) return false;
    if (auto it = numbers_.find(op); it != numbers_.end()) return key_.add(it->second), true;
    if (numbers_.size() > 2 * kMostSteps || op->getNumRegions() || op->getNumResults() != 1) return false;
    const int64_t number = static_cast<int64_t>(numbers_.size());
    numbers_[op] = number;
    // A number that is not yet taken says that an operation follows.
    key_.add(number).add(op->getName().getTypeID()).add(op->getAttrDictionary()).add(tile.getType());
    return llvm::all_of(op->getOperands(), [&](Value operand) { return of(operand); });
  }

 private:
  MemoKey& key_;
  llvm::DenseMap<Operation*, int64_t> numbers_;
};

}  // namespace

bool describeValues(Value tile, MemoKey& key) { return Description(key).of(tile); }

std::optional<std::vector<int64_t>> knownValues(Value tile) {
  DenseElementsAttr values = Evaluation().of(tile);
  if (!values) return std::nullopt;
  std::vector<int64_t> out;
  out.reserve(values.getNumElements());
  for (const APInt& value : values.getValues<APInt>()) out.push_back(value.getSExtValue());
  return out;
}

}  // namespace tile::ir
