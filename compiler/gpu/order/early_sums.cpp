// early_sums.cpp - moves elementwise work that frees registers in front of products.
// Before: layouts; tiles are added up where the kernel wrote it (`h + (k1 + 2 k2 + 2 k3 + k4)` at the end), behind
//         products that only the last of them depends on. The assembler moves nothing across asynchronous products, so
//         all of them are held in registers during these products.
// After:  elementwise work that ends the lives of more registers than its result takes stands right behind the first
//         product that follows its operands: during that product one tile is held instead of several.
#include "compiler/gpu/forms/blocks.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of a thread that have to become free: less would not be worth another order.
constexpr int64_t kLeastSummed = 8;

bool isMovable(Operation* op) {
  return isElementwise(op) && !op->getNumRegions() && isMemoryEffectFree(op) && op->getNumResults() == 1 &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

/// The op with what only it is computed from, as far as that stands behind `place`, and the tiles that these read.
struct Sum {
  SmallVector<Operation*> ops;  ///< last first
  llvm::SetVector<Value> tiles;
  bool fits = true;  ///< nothing else they need stands behind `place`

  Sum(Operation* root, Operation* place) : ops{root} {
    for (size_t i = 0; i < ops.size(); ++i)
      for (Value operand : ops[i]->getOperands()) {
        Operation* from = operand.getDefiningOp();
        const bool isBehind = from && from->getBlock() == place->getBlock() && place->isBeforeInBlock(from);
        if (isBehind && isMovable(from) && from->hasOneUse())
          ops.push_back(from);
        else if (isBehind || from == place)
          fits = false;
        else if (isa<RankedTensorType>(operand.getType()))
          tiles.insert(operand);
      }
  }

  /// Registers that the sum's place at `place` frees from there on.
  int64_t saved(Operation* place) const {
    int64_t registers = -registersOf(ops.front()->getResult(0).getType());
    for (Value tile : tiles) {
      Operation* from = tile.getDefiningOp();
      if (!from || from->getBlock() != place->getBlock() || from->hasTrait<OpTrait::ConstantLike>()) continue;
      const bool ends = llvm::all_of(tile.getUsers(), [&](Operation* user) {
        return llvm::is_contained(ops, user) ||
               (user->getBlock() == place->getBlock() && user->isBeforeInBlock(place));
      });
      if (ends) registers += registersOf(tile.getType());
    }
    return registers;
  }
};

void sumEarly(Block& block) {
  SmallVector<MmaOp> products(block.getOps<MmaOp>());
  if (products.size() < 2) return;
  SmallVector<Operation*> candidates;
  for (Operation& op : block)
    if (isMovable(&op)) candidates.push_back(&op);
  for (Operation* op : candidates)
    for (MmaOp product : products) {  // the first that it can follow
      if (!product->isBeforeInBlock(op)) break;
      const bool crosses = llvm::any_of(products, [&](MmaOp other) {
        return product->isBeforeInBlock(other) && other->isBeforeInBlock(op);
      });
      if (!crosses) break;
      const Sum sum(op, product);
      if (!sum.fits || sum.saved(product) < kLeastSummed) continue;
      for (Operation* moved : sum.ops) moved->moveAfter(product);
      break;
    }
}

class EarlySumsPass : public PassWrapper<EarlySumsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EarlySumsPass)
  StringRef getArgument() const override { return "tile-early-sums"; }
  StringRef getDescription() const override { return "move elementwise work that frees registers up, over products"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    for (Block* block : blocksOf(getOperation())) sumEarly(*block);
  }
};

}  // namespace

std::unique_ptr<Pass> createEarlySumsPass() { return std::make_unique<EarlySumsPass>(); }

}  // namespace tile::ir
