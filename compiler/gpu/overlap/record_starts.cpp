// record_starts.cpp - copies to shared memory whose boxes never begin in front of the view along a dim say so
// (tile.from_zero), and one bound is enough there. Ranges prove it for the iterations of the loop, `last - i` from the
// last block to the first. Later passes copy the index for iterations ahead: behind the last one it is negative, but
// the copy is disabled.
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

class RecordStartsPass : public PassWrapper<RecordStartsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RecordStartsPass)
  StringRef getArgument() const override { return "tile-record-starts"; }
  StringRef getDescription() const override { return "record which indices of copies are never negative"; }
  void runOnOperation() override {
    const Facts facts(getOperation());
    getOperation().walk([&](LoadSharedOp copy) {
      SmallVector<bool> fromZero;
      for (Value index : copy.getIndices()) fromZero.push_back(facts.rangeOf(index).isNonNegative());
      if (llvm::is_contained(fromZero, true))
        copy->setAttr(kFromZeroAttr, DenseBoolArrayAttr::get(copy->getContext(), fromZero));
    });
  }
};

}  // namespace

std::unique_ptr<Pass> createRecordStartsPass() { return std::make_unique<RecordStartsPass>(); }

}  // namespace tile::ir
