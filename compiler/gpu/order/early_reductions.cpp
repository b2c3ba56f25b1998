// early_reductions.cpp - moves reductions in front of barriers.
// Before: layouts; a tile is reduced where the kernel wrote it (the largest magnitude of what was converted and stored
//         long before), and all of it is held in registers until then. The assembler moves nothing across a barrier,
//         and starts loads late where registers are short.
// After:  in blocks without products, a reduction to a few registers, with the elementwise work that only it needs,
//         stands in front of the first barrier behind which nobody else reads the tile.
#include "compiler/gpu/forms/blocks.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of a thread: that a result takes at most, that have to become free.
constexpr int64_t kMostOfResult = 2, kLeastSaved = 8;

bool isMeetingOfWarps(Operation* op) {
  const auto scratch = scratchOf(op);
  return isa<BarrierOp>(op) || (scratch && !scratch->warpLocal());
}

/// The reduction, with what only it is computed from, last first, and what these read.
struct Chain {
  SmallVector<Operation*> ops;
  llvm::SetVector<Value> inputs;

  explicit Chain(ReduceOp reduce) : ops{reduce} {
    for (size_t i = 0; i < ops.size(); ++i)
      for (Value operand : ops[i]->getOperands()) {
        Operation* from = operand.getDefiningOp();
        const bool isOwn = from && from->getBlock() == reduce->getBlock() && from->hasOneUse() &&
                           isMemoryEffectFree(from) && !from->getNumRegions() &&
                           (isElementwise(from) || (isa<ReshapeOp>(from) && !scratchOf(from)));
        if (isOwn)
          ops.push_back(from);
        else
          inputs.insert(operand);
      }
  }
};

/// Nobody but the chain reads the tile from `place` on.
bool endsBefore(Value tile, Operation* place, const Chain& chain) {
  return llvm::all_of(tile.getUsers(), [&](Operation* user) {
    if (llvm::is_contained(chain.ops, user)) return true;
    Operation* above = place->getBlock()->findAncestorOpInBlock(*user);
    return above && above->isBeforeInBlock(place);
  });
}

void moveUp(ReduceOp reduce) {
  int64_t result = 0;
  for (Value value : reduce.getResults()) result += registersOf(value.getType());
  if (result > kMostOfResult) return;
  const Chain chain(reduce);
  Operation* place = nullptr;
  for (Operation* op = reduce->getPrevNode(); op; op = op->getPrevNode()) {
    const bool makesInput = llvm::any_of(op->getResults(), [&](Value made) { return chain.inputs.contains(made); });
    if (makesInput) break;
    if (isMeetingOfWarps(op) && !llvm::is_contained(chain.ops, op)) place = op;
  }
  if (!place) return;
  int64_t saved = -result;
  for (Value tile : chain.inputs)
    if (isa<RankedTensorType>(tile.getType()) && !matchPattern(tile, m_Constant()) && endsBefore(tile, place, chain))
      saved += registersOf(tile.getType());
  if (saved < kLeastSaved) return;
  for (Operation* op : llvm::reverse(chain.ops))
    if (!op->isBeforeInBlock(place)) op->moveBefore(place);
}

class EarlyReductionsPass : public PassWrapper<EarlyReductionsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EarlyReductionsPass)
  StringRef getArgument() const override { return "tile-early-reductions"; }
  StringRef getDescription() const override { return "move reductions in front of barriers"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    for (Block* block : blocksOf(getOperation())) {
      // What stands beside products was put there.
      if (!block->getOps<MmaOp>().empty() || !block->getOps<BatchMmaOp>().empty()) continue;
      for (ReduceOp reduce : llvm::to_vector(block->getOps<ReduceOp>())) moveUp(reduce);
    }
  }
};

}  // namespace

std::unique_ptr<Pass> createEarlyReductionsPass() { return std::make_unique<EarlyReductionsPass>(); }

}  // namespace tile::ir
