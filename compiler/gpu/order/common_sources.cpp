// common_sources.cpp - converts what tiles are made of instead of the tiles.
// Before: layouts; several conversions to one layout whose tiles are made of one tile by a little arithmetic (a factor,
//         its mask and half of that: shifts of each column), or of tiles that were widened to 64 bits.
// After:  one conversion of the tile that they have in common, or of the narrow one, with the arithmetic behind it.
//         Threads exchange less and keep one vector of many registers where they kept several; and products of widened
//         integers are seen as what they are.
// Before: a tile that is exchanged to be combined with others (what a product's result is added to), and exchanged back
//         with them (it is stored as it was loaded).
// After:  the one tile that it meets is exchanged, and the arithmetic done under the other layout.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
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

bool isExchangeFrom(Value tile, Attribute layout) {
  auto convert = tile.getDefiningOp<ConvertOp>();
  return convert && convert->hasOneUse() && isExchange(convert) &&
         cast<RankedTensorType>(convert.getSource().getType()).getEncoding() == layout;
}

/// What a converted tile is made of, some of it by exchanges from the layout that it is converted to.
struct Return {
  SmallVector<Operation*> ops;  ///< the last one first
  SmallVector<ConvertOp> there;
  llvm::SetVector<Value> met;  ///< tiles that the exchanged ones are combined with
};

/// Whether the tile is such an exchange, or made of one by operations in the block that nobody else needs.
bool returns(Value tile, ConvertOp convert, Return& found) {
  constexpr size_t kMost = 16;
  Operation* op = tile.getDefiningOp();
  if (!op || op->getBlock() != convert->getBlock() || !op->hasOneUse()) return false;
  if (isExchangeFrom(tile, layoutAttrOf(convert))) return found.there.push_back(cast<ConvertOp>(op)), true;
  if (op->getNumResults() != 1 || !isElementwise(op) || !isMemoryEffectFree(op) || found.ops.size() == kMost)
    return false;
  const size_t first = found.ops.size();
  found.ops.push_back(op);
  SmallVector<Value> others;
  bool any = false;
  for (Value operand : op->getOperands()) {
    if (!isTile(operand) || isUniform(operand)) continue;
    if (returns(operand, convert, found))
      any = true;
    else
      others.push_back(operand);
  }
  if (any)
    found.met.insert(others.begin(), others.end());
  else
    found.ops.truncate(first);
  return any;
}

class CommonSources {
 public:
  explicit CommonSources(func::FuncOp func) : func_(func) {}

  void run() {
    SmallVector<ConvertOp> exchanges;
    func_.walk([&](ConvertOp convert) {
      if (isExchange(convert)) exchanges.push_back(convert);
    });
    // Those that go stand in front of the one that is looked at.
    for (ConvertOp convert : exchanges) exchangeOnce(convert);
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

  /// Widens to 64 bits behind the exchange: half of the bytes, and one operation, or few (a key of a sort is moved to
  /// the upper word, which costs nothing). A few numbers of each thread (places of rows) are exchanged at little cost,
  /// and loops would widen them again and again.
  void narrow(ConvertOp convert) {
    constexpr int kFewRegisters = 8;
    const auto layout = layoutOf(cast<RankedTensorType>(convert.getType()));
    if (!layout || layout->numRegs() <= kFewRegisters || bitsOf(convert.getSource()) != 64) return;
    const auto from = layoutOf(cast<RankedTensorType>(convert.getSource().getType()));
    for (const Origin& origin : originsOf(convert)) {
      if (origin.ops.size() > 1 && (!from || layout->numRegs() > from->numRegs())) return;  // work done again
      if (origin.ops.empty() || !isa<arith::ExtSIOp, arith::ExtUIOp>(origin.ops.back())) continue;
      if (bitsOf(origin.tile) > 1) replace(convert, origin, convertedBehind(origin.tile, convert));
      return;
    }
  }

  /// No more bytes than before, and no more work.
  static void exchangeOnce(ConvertOp convert) {
    Return found;
    if (!returns(convert.getSource(), convert, found) || found.ops.empty() || found.met.size() != 1) return;
    const auto from = layoutOf(cast<RankedTensorType>(convert.getSource().getType()));
    const auto to = layoutOf(cast<RankedTensorType>(convert.getType()));
    if (bitsOf(found.met[0]) > bitsOf(convert.getSource()) || !from || !to || to->numRegs() > from->numRegs()) return;
    OpBuilder builder(convert);
    auto met = cast<RankedTensorType>(found.met[0].getType());
    auto type = RankedTensorType::get(met.getShape(), met.getElementType(), layoutAttrOf(convert));
    IRMapping map;
    map.map(found.met[0], ConvertOp::create(builder, convert.getLoc(), type, found.met[0]).getResult());
    for (ConvertOp there : found.there) map.map(there.getResult(), there.getSource());
    again(convert, found.ops, map);
    for (ConvertOp there : found.there) there.erase();
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
    IRMapping map;
    map.map(origin.tile, converted);
    again(convert, origin.ops, map);
  }

  /// The operations, the last of them first, under the layout of the conversion and where that was.
  static void again(ConvertOp convert, ArrayRef<Operation*> ops, IRMapping& map) {
    OpBuilder builder(convert);
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
    for (Operation* op : llvm::reverse(ops)) {
      for (Value operand : op->getOperands())
        if (isTile(operand) && !map.contains(operand)) under(operand.getDefiningOp());
      under(op);
    }
    convert.replaceAllUsesWith(map.lookup(convert.getSource()));
    SmallVector<Operation*> unused{convert};
    llvm::append_range(unused, ops);
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
