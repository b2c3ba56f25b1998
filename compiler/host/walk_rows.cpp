// walk_rows.cpp - makes programs that follow each other neighbours in memory. A thread runs them with the first number
// of the grid fastest; where that one counts rows of what is read and written, and the second one columns, each program
// would begin on other pages than the one before: the two change places.
// Before: program (x, y) of a grid of (X, Y)
// After:  program (n / Y, n % Y), with n = x + y X
//
// Kernels with products keep their order: it says which operand stays in the caches. So do kernels with atomics,
// volatile reads and messages: programs may wait for earlier ones, and show the order.
#include "compiler/analysis/memory_roots.h"
#include "compiler/host/host.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
namespace {
using namespace mlir;

/// Which of the grid's first two numbers a place is made from: in steps known now (columns), or not (rows).
struct Numbers {
  bool columns[2] = {}, rows[2] = {};
  bool isKnown = true;
  void add(const Numbers& other, bool asRows = false) {
    for (int axis : {0, 1}) {
      rows[axis] |= other.rows[axis] || (asRows && other.columns[axis]);
      columns[axis] |= !asRows && other.columns[axis];
    }
    isKnown &= other.isKnown;
  }
};

class Places {
 public:
  const Numbers& of(Value v) {
    if (auto it = known_.find(v); it != known_.end()) return it->second;
    const Numbers found = find(v);
    return known_[v] = found;
  }

 private:
  Numbers find(Value v) {
    Numbers all;
    Operation* op = v.getDefiningOp();
    if (!op) return all;
    if (auto id = dyn_cast<ProgramIdOp>(op)) {
      if (id.getAxis() < 2) all.columns[id.getAxis()] = true;
      return all;
    }
    const bool isProduct = isa<arith::MulIOp>(op);
    for (Value operand : op->getOperands())
      all.add(of(operand), isProduct && llvm::none_of(op->getOperands(), isConstant));
    const bool keeps =
        isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp,
            arith::IndexCastOp, arith::MaxSIOp, arith::MinSIOp, PtrAddOp, SplatOp, BroadcastOp, ReshapeOp, AssumeOp>(
            op);
    const bool hasNumber = all.columns[0] || all.columns[1] || all.rows[0] || all.rows[1];
    all.isKnown &= keeps || !hasNumber;
    return all;
  }
  static bool isConstant(Value v) {
    Operation* op = v.getDefiningOp();
    if (isa_and_nonnull<SplatOp, BroadcastOp, ReshapeOp>(op)) return isConstant(op->getOperand(0));
    return isa_and_nonnull<arith::ConstantOp>(op);
  }
  DenseMap<Value, Numbers> known_;
};

bool isUnitAlongLast(Value view) {
  auto arg = dyn_cast<BlockArgument>(view);
  auto kernel = arg ? dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp()) : func::FuncOp();
  auto unit = kernel ? kernel.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), "tile.unit_stride") : IntegerAttr();
  return unit && unit.getInt() + 1 == cast<ViewType>(view.getType()).getRank();
}

/// Whether every access of the kernel goes down rows with the first number, and along them with the second, if it goes
/// anywhere.
bool walksColumns(func::FuncOp kernel) {
  Places places;
  bool downRows = false, alongRows = false;
  const bool stopped = kernel
                           .walk([&](Operation* op) {
                             if (isa<DotOp, AtomicRmwOp, AtomicCasOp, AccumulateOp, PrintOp, AssertOp>(op))
                               return WalkResult::interrupt();
                             if (isa<LoadOp, GatherOp>(op) && isVolatile(op)) return WalkResult::interrupt();
                             Numbers place;
                             auto box = [&](Value view, OperandRange indices) {
                               place.isKnown = isUnitAlongLast(view);
                               for (auto [d, index] : llvm::enumerate(indices))
                                 place.add(places.of(index), d + 1 < indices.size());
                             };
                             auto pointers = [&](Value ptr, Value offsets) {
                               place.add(places.of(ptr));
                               if (offsets) place.add(places.of(offsets));
                             };
                             if (auto load = dyn_cast<LoadOp>(op)) box(load.getView(), load.getIndices());
                             if (auto store = dyn_cast<StoreOp>(op)) box(store.getView(), store.getIndices());
                             if (auto gather = dyn_cast<GatherOp>(op)) pointers(gather.getPtr(), gather.getOffsets());
                             if (auto scatter = dyn_cast<ScatterOp>(op))
                               pointers(scatter.getPtr(), scatter.getOffsets());
                             if (!place.isKnown || place.columns[0] || place.rows[1]) return WalkResult::interrupt();
                             downRows |= place.rows[0], alongRows |= place.columns[1];
                             return WalkResult::advance();
                           })
                           .wasInterrupted();
  return !stopped && downRows && alongRows;
}

class WalkRowsPass : public PassWrapper<WalkRowsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WalkRowsPass)
  StringRef getArgument() const override { return "tile-walk-rows"; }
  StringRef getDescription() const override { return "run programs that are neighbours in memory one after the other"; }

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!walksColumns(kernel)) return;
    SmallVector<ProgramIdOp> numbers;
    kernel.walk([&](ProgramIdOp id) {
      if (id.getAxis() < 2) numbers.push_back(id);
    });
    OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
    const Location loc = kernel.getLoc();
    const Type i64 = b.getI64Type();
    auto wide = [&](Value v) -> Value { return arith::ExtUIOp::create(b, loc, i64, v); };
    Value x = wide(ProgramIdOp::create(b, loc, 0)), y = wide(ProgramIdOp::create(b, loc, 1));
    Value columns = wide(NumProgramsOp::create(b, loc, 0)), rows = wide(NumProgramsOp::create(b, loc, 1));
    Value n = arith::AddIOp::create(b, loc, x, arith::MulIOp::create(b, loc, y, columns));
    Value now[] = {arith::TruncIOp::create(b, loc, b.getI32Type(), arith::DivUIOp::create(b, loc, n, rows)),
                   arith::TruncIOp::create(b, loc, b.getI32Type(), arith::RemUIOp::create(b, loc, n, rows))};
    for (ProgramIdOp id : numbers) {
      id.getResult().replaceAllUsesWith(now[id.getAxis()]);
      id.erase();
    }
  }
};

}  // namespace

std::unique_ptr<Pass> createWalkRowsPass() { return std::make_unique<WalkRowsPass>(); }

}  // namespace tile::ir
