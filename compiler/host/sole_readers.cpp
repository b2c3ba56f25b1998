// sole_readers.cpp - finds tiles that are needed by the loops of one op alone, each element once. They are evaluated
// there and kept in registers, however many uses they have on the way (random numbers, losses, polynomials): in memory
// they would be written, and read again for every use. So are elements that lie side by side behind pointers, where
// nothing in between may write what they are read from. Boxes of views that the kernel stores to are read where they
// lie by the same rule.
#include "compiler/analysis/facts.h"
#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/dialect.h"
#include "compiler/host/lanes.h"
#include "compiler/host/plan.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

/// An op with loops of its own, and which of its operands they run for where each has loops of its own.
using Reader = std::pair<Operation*, unsigned>;

/// Ops whose result has an element for each element of their operands, at the same place.
bool keepsElements(Operation* op) {
  if (isa<ReshapeOp, TransOp>(op)) return movesOnlyUnitDims(op);
  return isElementwise(op) || isa<PtrAddOp, AssumeOp, GatherOp>(op);
}

std::optional<int64_t> constantIn(Value v) {
  auto constant = v.getDefiningOp<arith::ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : nullptr;
  return splat ? std::optional(splat.getSplatValue<APInt>().getSExtValue()) : std::nullopt;
}

/// How much integer tiles grow from element to element of a row, where their ops alone say so. Each is asked once: sums
/// of sums would take twice as long with every further one.
class RowSteps {
 public:
  std::optional<int64_t> of(Value tile) {
    if (auto it = known_.find(tile); it != known_.end()) return it->second;
    std::optional<int64_t> found = find(tile);
    if (found && std::abs(*found) > kFar) found = std::nullopt;
    return known_[tile] = found;
  }

 private:
  static constexpr int64_t kFar = 1 << 20;  // nobody reads elements so far apart in vectors, and no sum overflows
  std::optional<int64_t> find(Value tile) {
    if (!isTile(tile) || shapeOf(tile).back() == 1 || constantIn(tile)) return 0;
    Operation* op = tile.getDefiningOp();
    if (isa_and_nonnull<IotaOp>(op)) return 1;
    if (isa_and_nonnull<SplatOp>(op)) return 0;
    if (isa_and_nonnull<BroadcastOp, ReshapeOp>(op)) {
      const int64_t row = shapeOf(op->getOperand(0)).back();
      if (row == 1 && isa<BroadcastOp>(op)) return 0;
      return row == shapeOf(tile).back() ? of(op->getOperand(0)) : std::nullopt;
    }
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) return std::nullopt;
    const auto a = of(op->getOperand(0)), b = of(op->getOperand(1));
    if (!a || !b) return std::nullopt;
    if (isa<arith::AddIOp>(op)) return *a + *b;
    if (isa<arith::SubIOp>(op)) return *a - *b;
    if (*a == 0 && *b == 0) return 0;
    const auto factor = constantIn(op->getOperand(*a == 0 ? 0 : 1));
    return factor && std::abs(*factor) <= kFar && (*a == 0 || *b == 0) ? std::optional((*a + *b) * *factor)
                                                                       : std::nullopt;
  }
  DenseMap<Value, std::optional<int64_t>> known_;
};

/// Whether each row of a gather is one run of memory, or every second to fourth element of one, long enough to be read
/// in vectors.
bool isOfRuns(GatherOp gather, const Facts& facts, RowSteps& steps) {
  constexpr int64_t kShort = 16;
  if (!isTile(gather.getResult()) || isVolatile(gather) || isTile(gather.getPtr())) return false;
  const int64_t row = shapeOf(gather.getResult()).back();
  if (row < kShort) return false;
  if (facts.of(gather.getOffsets()).contiguity.back() == row) return true;
  const auto step = steps.of(gather.getOffsets());
  return step && *step > 1 && *step <= kWidestStep;
}

/// Whether a scatter overwrites what the gather has read, and nothing else, element by element.
bool isUpdateOf(GatherOp gather, Operation* op) {
  auto scatter = dyn_cast<ScatterOp>(op);
  auto notOne = [](int64_t n) { return n != 1; };
  return scatter && scatter.getPtr() == gather.getPtr() && scatter.getOffsets() == gather.getOffsets() &&
         llvm::count_if(shapeOf(gather.getResult()), notOne) == 1;
}

/// Whether the gather may read as late as in the loops of `reader`, an op behind it in its block, which stores
/// `together` in the same loops.
bool mayReadIn(GatherOp gather, Operation* reader, ArrayRef<Operation*> together) {
  const MemoryRoot root = rootOf(gather.getPtr());
  auto disturbs = [&](Operation* op) {
    if (isa<PrintOp, AssertOp, AssumeTrueOp>(op) || isMemoryEffectFree(op)) return false;
    if (isa<LoadOp, GatherOp>(op)) return isVolatile(op);
    if (op->getNumRegions() > 0 && op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return false;  // what is inside counts
    const bool isPlain = writesGlobal(op) && !isAcquire(op) && !isRelease(op);
    return !isPlain || !rootOf(addressOf(op)).isApartFrom(root);
  };
  for (Operation* op = gather->getNextNode(); op != reader; op = op->getNextNode())
    if (op->walk([&](Operation* inner) {
            return disturbs(inner) ? WalkResult::interrupt() : WalkResult::advance();
          }).wasInterrupted())
      return false;
  if (together.empty()) return isUpdateOf(gather, reader) || !disturbs(reader);
  size_t updates = 0;
  for (Operation* op : together) {
    updates += isUpdateOf(gather, op);
    if (!isUpdateOf(gather, op) && disturbs(op)) return false;
  }
  // Scatters that turn out to meet are stored one after the other, each with what it reads.
  return updates == 0 || llvm::all_of(together, [&](Operation* a) {
           return llvm::all_of(together, [&](Operation* b) { return a == b || areApart(a, b); });
         });
}

/// Whether the box of a view that the kernel stores to may be read as late as in the loops of `stores`, which are
/// behind it in its block: nothing in between stores to the view, and what these store there is the same box, read
/// element by element. `updates`: whether they do.
bool mayReadIn(LoadOp box, ArrayRef<Operation*> stores, bool& updates) {
  auto isSame = [&](Operation* op) { return llvm::equal(cast<StoreOp>(op).getIndices(), box.getIndices()); };
  if (!isa<BlockArgument>(box.getView()) || isVolatile(box) || !llvm::all_of(stores, llvm::IsaPred<StoreOp>))
    return false;
  updates = false;
  for (Operation* user : box.getView().getUsers()) {
    if (isa<LoadOp, ViewDimOp, ViewStrideOp>(user)) continue;
    auto store = dyn_cast<StoreOp>(user);
    if (!store) return false;
    if (llvm::is_contained(stores, user)) {
      updates = true;
      if (store.getValue().getType() != box.getResult().getType()) return false;
      continue;
    }
    Operation* at = box->getBlock()->findAncestorOpInBlock(*user);
    if (at && box->isBeforeInBlock(at) && at->isBeforeInBlock(stores[0])) return false;
  }
  return !updates || llvm::all_of(stores, isSame);
}

}  // namespace

void Plan::findSoleReaders(func::FuncOp kernel, const Facts& facts) {
  llvm::DenseMap<Operation*, Reader> soleReader;
  RowSteps steps;
  auto readerAt = [&](OpOperand& use) -> Reader {
    Operation* user = use.getOwner();
    if (isa<DotOp, CatOp>(user)) return {user, use.getOperandNumber()};
    if (const auto together = storedTogether(user); !together.empty()) return {together[0], 0};
    if (isa<StoreOp, ReduceOp, ScanOp, ScatterOp, HistogramOp>(user)) return {user, 0};
    if (!keepsElements(user) || !llvm::all_of(user->getResults(), isTile)) return {};
    auto it = soleReader.find(user);
    return it != soleReader.end() ? it->second : Reader{user, 0};
  };
  kernel->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation* op) {
    auto box = dyn_cast<LoadOp>(op);
    if ((!keepsElements(op) && !box) || op->use_empty() || !llvm::all_of(op->getResults(), isTile)) return;
    Reader sole{};
    for (OpOperand& use : op->getUses()) {
      const Reader reader = readerAt(use);
      if (!reader.first || (sole.first && sole != reader) || use.getOwner()->getBlock() != op->getBlock()) return;
      sole = reader;
    }
    if (box) {
      const auto together = storedTogether(sole.first);
      bool updates = false;
      if (mayReadIn(box, together.empty() ? ArrayRef(sole.first) : together, updates))
        readLate_[op] = updates ? sole.first : nullptr;
      return;
    }
    if (auto gather = dyn_cast<GatherOp>(op))
      if (isa<DotOp, CatOp>(sole.first) || !isOfRuns(gather, facts, steps) ||
          !mayReadIn(gather, sole.first, storedTogether(sole.first)))
        return;
    soleReader[op] = sole;
    readOnce_.insert(op);
  });
}

}  // namespace tile::ir::host
