// totals_of_scans.cpp - lets scans tell what they come to.
// Before: %s = scan(%x) along an axis, %t = reduce(%x) along it with the same combiner (running sums of long rows,
//         whose carry is the sum of a block; places of chosen elements and how many there are)
// After:  %t = total(%s): what the scan carries behind its last element
//
// Needs layouts. The reduction's shuffles, its table and its barrier go. Lines must be whole in threads: padding behind
// them would be combined, too.
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/gpu_passes.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

bool areTotals(ReduceOp reduce, ScanOp scan) {
  const int axis = static_cast<int>(scan.getAxis());
  if (reduce.getAxis() != scan.getAxis() || reduce.getSources() != scan.getSources()) return false;
  const auto own = layoutOf(scan.getSources()[0].getType());
  if (!own || own->isPadded(axis)) return false;
  return OperationEquivalence::isRegionEquivalentTo(&reduce.getCombiner(), &scan.getCombiner(),
                                                    OperationEquivalence::IgnoreLocations) &&
         llvm::all_of(reduce.getResults(),
                      [&](Value result) { return layoutOf(result.getType()) == std::optional(own->sliced(axis)); });
}

void takeTotals(ScanOp scan) {
  for (Operation* user : llvm::make_early_inc_range(scan.getSources()[0].getUsers())) {
    auto reduce = dyn_cast<ReduceOp>(user);
    if (!reduce || reduce->getBlock() != scan->getBlock() || !areTotals(reduce, scan)) continue;
    if (reduce->isBeforeInBlock(scan)) scan->moveBefore(reduce);  // what both are computed of is there
    OpBuilder builder(reduce);
    for (auto [scanned, result] : llvm::zip(scan.getResults(), reduce.getResults()))
      result.replaceAllUsesWith(TotalOp::create(builder, reduce.getLoc(), result.getType(), scanned));
    reduce.erase();
  }
}

class TotalsOfScansPass : public PassWrapper<TotalsOfScansPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TotalsOfScansPass)
  StringRef getArgument() const override { return "tile-totals-of-scans"; }
  StringRef getDescription() const override { return "let scans tell what they come to"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    SmallVector<ScanOp> scans;
    getOperation().walk([&](ScanOp scan) { scans.push_back(scan); });
    llvm::for_each(scans, takeTotals);
  }
};

}  // namespace

std::unique_ptr<Pass> createTotalsOfScansPass() { return std::make_unique<TotalsOfScansPass>(); }

}  // namespace tile::ir
