// turn_products.cpp - transposes products whose second operand is widened on its way (isWidened), such as quantised
// weights. Warpgroups can take the first operand of a product from registers, but not the second one: as b^T a^T the
// weights need not pass through shared memory, and warps need not wait for each other there.
// Before: for (acc = zeros MxN) acc = dot(a, b, acc).
// After:  for (acc = zeros NxM) acc = dot(b^T, a^T, acc); acc^T behind the loop.
// Transposes of register tiles cost nothing (they are the same registers under another layout), and place_operands
// looks through those of fetched tiles.
#include "compiler/gpu/products/turn_products.h"

#include "compiler/dialect/warps.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

bool isWidened(Value tile, int64_t others) {
  constexpr int64_t kPacked = 8;          ///< numbers in a loaded element at most
  constexpr int64_t kWarpgroupRows = 64;  ///< of the first operand: of fewer, single warps multiply
  const auto type = cast<RankedTensorType>(tile.getType());
  const bool areFew = others < kWarpgroupRows;
  auto isNarrower = [&](RankedTensorType made) {
    const int64_t own = made.getElementTypeBitWidth(), whole = type.getElementTypeBitWidth();
    const bool arePacked = areFew && made.getElementType().isInteger();
    return own < whole || (arePacked && own * made.getNumElements() < whole * type.getNumElements());
  };
  bool narrower = false;
  llvm::DenseSet<Value> seen{tile};
  SmallVector<Value> todo{tile};
  while (!todo.empty()) {
    Value value = todo.pop_back_val();
    auto made = dyn_cast<RankedTensorType>(value.getType());
    if (!made) continue;
    Operation* op = value.getDefiningOp();
    if (!op) return false;
    if (isa<LoadOp>(op)) {
      narrower |= isNarrower(made) && made.getNumElements() * kPacked >= type.getNumElements();
      continue;
    }
    if (areFew && isa<GatherOp>(op) && made.getNumElements() * kPacked < type.getNumElements()) continue;
    if (!isElementwise(op) &&
        !isa<arith::ConstantOp, BroadcastOp, ReshapeOp, TransOp, SplatOp, CatOp, TakeOp, IotaOp>(op))
      return false;
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second) todo.push_back(operand);
  }
  return narrower;
}

bool isMadeOfLoads(Value tile) {
  const int64_t size = cast<RankedTensorType>(tile.getType()).getNumElements();
  Operation* last = tile.getDefiningOp();
  auto loop = last ? last->getParentOfType<scf::ForOp>() : scf::ForOp();
  if (!loop || !isElementwise(last) || !tile.hasOneUse()) return false;
  bool whole = false;
  llvm::DenseSet<Value> seen{tile};
  SmallVector<Value> todo{tile};
  while (!todo.empty()) {
    Value value = todo.pop_back_val();
    auto made = dyn_cast<RankedTensorType>(value.getType());
    if (!made) continue;
    Operation* op = value.getDefiningOp();
    if (op && isa<arith::ConstantOp>(op)) continue;
    if (!loop.getBodyRegion().isAncestor(value.getParentRegion())) {
      // Repeated elements are repeated in the loop, wherever that stands.
      if (isa_and_nonnull<BroadcastOp, ReshapeOp, SplatOp>(op))
        todo.push_back(op->getOperand(0));
      else if (made.getNumElements() >= size)
        return false;
      continue;
    }
    if (!op) return false;
    if (isa<LoadOp>(op)) {
      whole |= made.getNumElements() == size;
      continue;
    }
    if (!isElementwise(op) && !isa<BroadcastOp, ReshapeOp, SplatOp, IotaOp>(op)) return false;
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second) todo.push_back(operand);
  }
  return whole;
}

namespace {

Value transposed(OpBuilder& builder, Location loc, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  auto turned = RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType());
  DenseElementsAttr constant;
  if (matchPattern(tile, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(turned, constant.getSplatValue<Attribute>()));
  return TransOp::create(builder, loc, turned, tile, ArrayRef<int32_t>{1, 0});
}

class TurnProductsPass : public PassWrapper<TurnProductsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TurnProductsPass)
  explicit TurnProductsPass(TargetOf target) : target_(std::move(target)) {}
  StringRef getArgument() const override { return "tile-turn-products"; }
  StringRef getDescription() const override { return "transpose products whose second operand is widened"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<arith::ArithDialect>(); }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    const int warps = warpsOf(func);
    if (!warps || warps % 4 != 0) return;
    SmallVector<DotOp> dots;
    func.walk([&](DotOp dot) {
      if (gains(dot, warps)) dots.push_back(dot);
    });
    for (DotOp dot : dots) turn(dot);
  }

 private:
  /// The loop argument the product accumulates on and that it alone makes; null: none.
  static BlockArgument accumulatorOf(DotOp dot) {
    auto arg = dyn_cast<BlockArgument>(dot.getAcc());
    auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
    if (!arg || !loop || arg.getOwner() != loop.getBody() || !arg.hasOneUse() || !dot.getResult().hasOneUse())
      return {};
    OpOperand& use = *dot.getResult().use_begin();
    const bool comesRound = use.getOwner() == loop.getBody()->getTerminator() &&
                            use.getOperandNumber() + loop.getNumInductionVars() == arg.getArgNumber();
    return comesRound ? arg : BlockArgument();
  }

  /// A tile copied to shared memory as it is, or its transpose.
  static bool isFetched(Value tile) {
    while (auto trans = tile.getDefiningOp<TransOp>()) tile = trans.getSource();
    if (auto reshape = tile.getDefiningOp<ReshapeOp>()) tile = reshape.getSource();  // a box of several dims
    return tile.getDefiningOp<LoadOp>() || tile.getDefiningOp<GatherOp>();
  }

  bool gains(DotOp dot, int64_t warps) const {
    auto engine = chooseWarpgroupEngine(dot.getA().getType().getElementType(),
                                        dot.getResult().getType().getElementType(), dot.getPrecision(), target_());
    if (!engine || engineRow(*engine).operandBits != 16 || !accumulatorOf(dot)) return false;
    auto shape = dot.getResult().getType().getShape();
    // Whole instructions both ways: columns become rows of warps.
    return shape[0] % 8 == 0 && shape[1] % (16 * warps) == 0 && isFetched(dot.getA()) &&
           isWidened(dot.getB(), shape[0]);
  }

  void turn(DotOp dot) {
    BlockArgument acc = accumulatorOf(dot);
    auto loop = cast<scf::ForOp>(dot->getParentOp());
    Location loc = dot.getLoc();
    const unsigned number = acc.getArgNumber() - loop.getNumInductionVars();
    OpBuilder before(loop), here(dot);
    OpOperand& init = loop.getInitArgsMutable()[number];
    init.set(transposed(before, loc, init.get()));
    acc.setType(init.get().getType());
    Value a = transposed(here, loc, dot.getA()), b = transposed(here, loc, dot.getB());
    auto turned = DotOp::create(here, loc, acc.getType(), b, a, acc, dot.getPrecision());
    loop.getBody()->getTerminator()->setOperand(number, turned);
    dot.erase();
    OpResult result = cast<OpResult>(loop.getResult(number));
    result.setType(acc.getType());
    OpBuilder after(loop->getContext());
    after.setInsertionPointAfter(loop);
    Value back = transposed(after, loc, result);
    result.replaceAllUsesExcept(back, back.getDefiningOp());
  }

  TargetOf target_;
};

}  // namespace

std::unique_ptr<Pass> createTurnProductsPass(TargetOf target) {
  return std::make_unique<TurnProductsPass>(std::move(target));
}

}  // namespace tile::ir
