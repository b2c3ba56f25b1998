// common_sources.cpp - converts what tiles are made of instead of the tiles.
// Before: layouts; several conversions to one layout whose tiles are made of one tile by a little arithmetic (a factor,
//         its mask and half of that: shifts of each column), or of tiles that were widened to 64 bits.
// After:  one conversion of the tile that they have in common, or of the narrow one, with the arithmetic behind it.
//         Threads exchange less and keep one vector of many registers where they kept several; and products of widened
//         integers are seen as what they are.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kMostOps = 3;  ///< that are done again under the other layout for one conversion

unsigned bitsOf(Value tile) {
  Type element = getElementTypeOrSelf(tile.getType());
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
}

/// Has every layout without moving anything: constants and splats of scalars.
bool isUniform(Value value) { return matchPattern(value, m_Constant()) || value.getDefiningOp<SplatOp>(); }

/// A tile that the converted one is made of by cheap operations, the last of them first.
struct Origin {
  Value tile;
  SmallVector<Operation*> ops;
};

/// All of them, the converted tile itself first.
SmallVector<Origin> originsOf(ConvertOp convert) {
  SmallVector<Origin> origins{{convert.getSource(), {}}};
  while (static_cast<int>(origins.back().ops.size()) < kMostOps) {
    Operation* op = origins.back().tile.getDefiningOp();
    if (!op || op->getBlock() != convert->getBlock() || op->getNumResults() != 1 || !isElementwise(op) ||
        elementwiseCost(op) > 1 || !isMemoryEffectFree(op))
      break;
    Value source;
    bool isChain = true;
    for (Value operand : op->getOperands()) {
      if (isUniform(operand)) continue;
      isChain &= isTile(operand) && (!source || source == operand);
      source = operand;
    }
    if (!isChain || !source) break;
    Operation* maker = source.getDefiningOp();
    if (!maker || maker->getBlock() != convert->getBlock()) break;
    Origin next{source, origins.back().ops};
    next.ops.push_back(op);
    origins.push_back(std::move(next));
  }
  return origins;
}

Attribute layoutAttrOf(ConvertOp convert) { return cast<RankedTensorType>(convert.getType()).getEncoding(); }

bool isExchange(ConvertOp convert) {
  const Move move = planMove(convert);
  return move.kind == Move::exchange || move.kind == Move::linear;
}

class CommonSources {
 public:
  explicit CommonSources(func::FuncOp func) : func_(func) {}

  void run() {
    llvm::MapVector<std::pair<Block*, Attribute>, SmallVector<ConvertOp>> byLayout;
    func_.walk([&](ConvertOp convert) {
      if (isExchange(convert)) byLayout[{convert->getBlock(), layoutAttrOf(convert)}].push_back(convert);
    });
    for (auto& [key, converts] : byLayout) {
      while (replaceShared(converts)) {
      }
      for (ConvertOp convert : converts) narrow(convert);
    }
  }

 private:
  /// The origin that most of the conversions have, the nearest of equals; they become one.
  bool replaceShared(SmallVector<ConvertOp>& converts) {
    llvm::MapVector<Value, SmallVector<std::pair<ConvertOp, Origin>>> users;
    for (ConvertOp convert : converts)
      for (Origin& origin : originsOf(convert))
        // No more bytes than before: an exchange of narrow tiles is not made one of wide ones.
        if (bitsOf(origin.tile) <= bitsOf(convert.getSource()))
          users[origin.tile].emplace_back(convert, std::move(origin));
    auto distance = [](const auto& list) {
      size_t ops = 0;
      for (auto& [convert, origin] : list) ops += origin.ops.size();
      return ops;
    };
    SmallVector<std::pair<ConvertOp, Origin>>* best = nullptr;
    for (auto& [tile, list] : users) {
      if (list.size() < 2) continue;
      if (!best || list.size() > best->size() || (list.size() == best->size() && distance(list) < distance(*best)))
        best = &list;
    }
    if (!best) return false;
    const Value shared = convertedBehind(best->front().second.tile, best->front().first);
    for (auto& [convert, origin] : *best) {
      llvm::erase(converts, convert);
      replace(convert, origin, shared);
    }
    converts.push_back(cast<ConvertOp>(shared.getDefiningOp()));
    return true;
  }

  /// Widens to 64 bits behind the exchange: half of the bytes, and one operation. A few numbers of each thread
  /// (places of rows) are exchanged at little cost, and loops would widen them again and again.
  void narrow(ConvertOp convert) {
    constexpr int kFewRegisters = 8;
    const auto layout = layoutOf(cast<RankedTensorType>(convert.getType()));
    if (!layout || layout->numRegs() <= kFewRegisters) return;
    auto* op = convert.getSource().getDefiningOp();
    if (!isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(op) || op->getBlock() != convert->getBlock()) return;
    if (bitsOf(op->getResult(0)) != 64 || bitsOf(op->getOperand(0)) == 1) return;
    Origin origin{op->getOperand(0), {op}};
    if (!origin.tile.getDefiningOp() || origin.tile.getParentBlock() != convert->getBlock()) return;
    replace(convert, origin, convertedBehind(origin.tile, convert));
  }

  Value convertedBehind(Value tile, ConvertOp like) {
    OpBuilder builder(func_.getContext());
    builder.setInsertionPointAfterValue(tile);
    auto source = cast<RankedTensorType>(tile.getType());
    auto type = RankedTensorType::get(source.getShape(), source.getElementType(), layoutAttrOf(like));
    return ConvertOp::create(builder, like.getLoc(), type, tile);
  }

  /// The operations once more, of the converted origin, where the conversion was.
  static void replace(ConvertOp convert, const Origin& origin, Value converted) {
    OpBuilder builder(convert);
    IRMapping map;
    map.map(origin.tile, converted);
    const Attribute layout = layoutAttrOf(convert);
    auto under = [&](Operation* op) {
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      auto wanted = RankedTensorType::get(type.getShape(), type.getElementType(), layout);
      Operation* made = builder.clone(*op, map);
      made->getResult(0).setType(wanted);
      if (auto constant = dyn_cast<arith::ConstantOp>(made))
        constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).reshape(wanted));
      map.map(op->getResult(0), made->getResult(0));
    };
    for (Operation* op : llvm::reverse(origin.ops)) {
      for (Value operand : op->getOperands())
        if (isTile(operand) && !map.contains(operand)) under(operand.getDefiningOp());
      under(op);
    }
    convert.replaceAllUsesWith(map.lookup(convert.getSource()));
    SmallVector<Operation*> unused{convert};
    llvm::append_range(unused, origin.ops);
    for (Operation* op : unused)
      if (op->use_empty()) op->erase();
  }

  func::FuncOp func_;
};

class CommonSourcesPass : public PassWrapper<CommonSourcesPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CommonSourcesPass)
  StringRef getArgument() const final { return "tile-common-sources"; }
  StringRef getDescription() const final { return "convert what tiles are made of instead of the tiles"; }
  void runOnOperation() final { CommonSources(getOperation()).run(); }
};

}  // namespace

std::unique_ptr<Pass> createCommonSourcesPass() { return std::make_unique<CommonSourcesPass>(); }

}  // namespace tile::ir
