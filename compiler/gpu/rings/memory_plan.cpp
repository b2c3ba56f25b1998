// memory_plan.cpp - distributes shared memory, in this order: one stage of everything; two stages of every ring, so
// that copies overlap with products and with the end of the previous program; staging buffers for whole tiles; up to
// four stages; then what is left. If loops are short of stages, stored tiles leave through the stage of a tile of their
// program that is no longer needed, if there is one: the next program's copy then waits for the store.
#include "compiler/gpu/rings/memory_plan.h"

#include <algorithm>

#include "compiler/dialect/warps.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/rings/lifetimes.h"
#include "compiler/gpu/rings/ring_groups.h"
#include "compiler/lowering/elementwise.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kBarrierBytes = 16;  ///< full and empty
constexpr int64_t kQueueBytes = 64;    ///< the queue of work items
constexpr int64_t kHandedBytes = kHandedStages * (kBarrierBytes + kMostHandedBytes);

}  // namespace

int64_t MemoryPlan::bytes() const {
  int64_t total = kQueueBytes + kHandedBytes;
  for (const RingPlan& ring : rings) total += (ring.bytesPerStage + kBarrierBytes) * ring.stages;
  for (const StagingPlan& staging : stagings) total += staging.bytes();
  for (const FixedBytes& item : fixed) total += item.bytes;
  return total;
}

bool MemoryPlan::fits(int loopStages, int otherStages, size_t staging) {
  for (RingPlan& ring : rings) {
    int most = ring.wished ? ring.wished : 4;
    ring.stages = ring.inLoop ? std::min(loopStages, most) : otherStages;
  }
  for (StagingPlan& plan : stagings) plan.chosen = plan.columns[std::min(staging, plan.columns.size() - 1)];
  return bytes() <= limit;
}

bool MemoryPlan::choose() {
  for (StagingPlan& plan : stagings) plan.isHosted = false;
  const bool fitsPlain = distribute();
  if (fitsPlain && isComfortable()) return true;
  MemoryPlan hosted = *this;
  for (StagingPlan& plan : hosted.stagings) plan.isHosted = plan.host >= 0;
  if (!hosted.distribute() || (fitsPlain && hosted.stagesInLoops() <= stagesInLoops())) return fitsPlain;
  for (StagingPlan& plan : hosted.stagings)
    if (plan.isHosted) plan.chosen = plan.columns.front();
  *this = std::move(hosted);
  return true;
}

int MemoryPlan::stagesInLoops() const {
  int stages = 0;
  for (const RingPlan& ring : rings) stages += ring.inLoop ? ring.stages : 0;
  return stages;
}

bool MemoryPlan::distribute() {
  size_t widths = 1;
  for (const StagingPlan& plan : stagings) widths = std::max(widths, plan.columns.size());
  auto found = [&] {
    // A narrower staging buffer costs a few instructions for each tile, a missing stage costs in every iteration.
    int most = 4;
    for (const RingPlan& ring : rings) most = std::max(most, ring.wished);
    for (int others : {2, 1})
      for (int stages = most; stages >= 2; --stages)
        for (size_t width = 0; width < widths; ++width)
          if (fits(stages, others, width)) return true;
    for (size_t width = 0; width < widths; ++width)
      if (fits(1, 1, width)) return true;
    return false;
  }();
  if (!found) return false;

  // What is left is given out stage by stage, first to loops with one stage, which would wait for every copy.
  auto grow = [&](llvm::function_ref<int(const RingPlan&)> mostOf) {
    for (bool grown = true; grown;) {
      grown = false;
      for (RingPlan& ring : rings) {
        if (ring.stages >= mostOf(ring)) continue;
        ++ring.stages;
        if (bytes() <= limit)
          grown = true;
        else
          --ring.stages;
      }
    }
  };
  grow([](const RingPlan& ring) { return !ring.inLoop ? 1 : ring.wished ? std::min(ring.wished, 2) : 2; });
  grow([](const RingPlan& ring) { return ring.wished ? ring.wished : ring.inLoop ? kMostStages : 2; });
  growBeside();
  return true;
}

void MemoryPlan::growBeside() {
  // Operands of a product are of use together: a stage more of all rings, or of none.
  for (;;) {
    SmallVector<RingPlan*> grown;
    for (RingPlan& ring : rings)
      if (ring.wished > 1 && ring.stages < std::min(ring.wished + ring.beside, kMostStages)) grown.push_back(&ring);
    for (RingPlan* ring : grown) ++ring->stages;
    if (!grown.empty() && bytes() <= limit) continue;
    for (RingPlan* ring : grown) --ring->stages;
    return;
  }
}

bool MemoryPlan::isComfortable(int fewer) const {
  return llvm::all_of(rings, [&](const RingPlan& ring) {
    if (!ring.inLoop) return fewer > 0 || ring.stages >= 2;
    const int wished = ring.wished ? ring.wished : kEnoughStages;
    return ring.stages >= std::max(std::min(wished, 2), wished - fewer);
  });
}

void MemoryPlan::explain(mlir::Diagnostic& diagnostic) const {
  for (const RingPlan& ring : rings)
    diagnostic.attachNote(ring.loc) << ring.bytesPerStage * ring.stages << " bytes: " << ring.what << ", "
                                    << ring.stages << (ring.stages == 1 ? " stage" : " stages");
  for (const StagingPlan& staging : stagings)
    diagnostic.attachNote(staging.loc) << staging.bytes() << " bytes: " << staging.what;
  for (const FixedBytes& item : fixed)
    if (item.bytes) diagnostic.attachNote(item.loc) << item.bytes << " bytes: " << item.what;
}

int64_t sharedBytesEach(const Target& target, int programs) {
  // The system reserves 1 KB for each program; a multiprocessor has that much more than a single program may ask for.
  constexpr int64_t kSystem = 1024;
  return (static_cast<int64_t>(target.maxSharedBytes) + kSystem) / programs - kSystem;
}

namespace {

/// Whether loads and stores of the tile go through shared memory: in the layout of accumulators, threads access whole
/// sectors of 32-bit elements, but only half a sector of narrower ones.
bool isNarrow(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() >= 2 && tensor.getElementType().isIntOrFloat() &&
         tensor.getElementType().getIntOrFloatBitWidth() < 32;
}

/// Whether it is the result of an asynchronous product, or of elementwise work on one, also through loops and branches.
bool isAccumulated(Value value) {
  SmallVector<Value> pending{value};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value at = pending.pop_back_val();
    if (!seen.insert(at).second) continue;
    if (auto arg = dyn_cast<BlockArgument>(at)) {
      auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp());
      if (loop && arg != loop.getInductionVar()) pending.push_back(loop.getTiedLoopYieldedValue(arg)->get());
      continue;
    }
    Operation* op = at.getDefiningOp();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      pending.push_back(loop.getYieldedValues()[cast<OpResult>(at).getResultNumber()]);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      const unsigned number = cast<OpResult>(at).getResultNumber();
      pending.push_back(branch.elseYield().getOperand(number));
      pending.push_back(branch.thenYield().getOperand(number));
    } else if (auto product = dyn_cast<MmaOp>(op)) {
      if (isWgmma(product.getEngine())) return true;
    } else if (isElementwise(op)) {
      for (Value operand : op->getOperands())
        if (operand.getType() == at.getType() || isa<arith::TruncFOp>(op)) pending.push_back(operand);
    }
  }
  return false;
}

/// Bytes that warps exchange for a scan across rows, of which threads hold runs (LayoutPlan::placeRunsOfRows): a total
/// for each column and warp. 0: another scan, or another op.
int64_t tableOfRunsOfRows(Operation* op, int warps) {
  auto scan = dyn_cast<ScanOp>(op);
  if (!scan || warps == 0) return 0;
  const auto type = cast<RankedTensorType>(scan.getSources()[0].getType());
  const int axis = static_cast<int>(scan.getAxis());
  const layout::Shape shape(type.getShape().begin(), type.getShape().end());
  if (axis + 1 == type.getRank() || scanLayout(shape, axis, warps, Target().lanes).isPadded()) return 0;
  int64_t bytes = 0;
  for (Value source : scan.getSources()) bytes += tileBytes(source.getType()) / type.getDimSize(axis) * warps;
  return bytes;
}

}  // namespace

int64_t estimateScratch(func::FuncOp func, llvm::function_ref<bool(Operation*)> isStaged) {
  const int warps = warpsOf(func);
  int64_t most = 0;
  func.walk([&](Operation* op) {
    int64_t bytes = 0;
    if (isa<StoreOp, AccumulateOp, ScatterOp>(op)) {
      Value value = isa<ScatterOp>(op) ? cast<ScatterOp>(op).getValue() : op->getOperand(0);
      if (isNarrow(value.getType()) && !isStaged(op)) bytes = tileBytes(value.getType());
    } else if (isa<LoadOp, GatherOp>(op)) {
      if (isNarrow(op->getResult(0).getType())) bytes = tileBytes(op->getResult(0).getType());
    } else if (auto trans = dyn_cast<TransOp>(op); trans && isAccumulated(trans.getSource())) {
      bytes = 0;  // the transpose of such a result is the same registers
    } else if (int64_t table = tableOfRunsOfRows(op, warps)) {
      bytes = table;
    } else if (isa<TransOp, ScanOp, TakeOp, CatOp, ExtractOp>(op)) {
      bytes = tileBytes(op->getOperand(0).getType());
    } else if (isa<PutOp>(op) || (isa<HistogramOp>(op) && !isStaged(op))) {  // else it counts in a buffer
      bytes = tileBytes(op->getResult(0).getType());
    }
    most = std::max(most, bytes);
  });
  return most + kScratchReserve;
}

namespace {

/// The lifetime of a shared tile, in program order: from its share to the end of the last statement of its block that
/// reads it.
struct SharedLife {
  ShareOp share;
  int64_t bytes = 0, alignment = 1, begin = 0, end = 0, offset = -1;
};

}  // namespace

std::vector<FixedBytes> estimateShares(func::FuncOp func, ArrayRef<ShareOp> alternating) {
  const ProgramOrder order(func);
  std::vector<SharedLife> lives;
  std::vector<FixedBytes> fixed;
  // Two buffers for each; loops that are not nested share them.
  std::vector<std::pair<Type, SmallVector<Operation*>>> pairs;
  func.walk([&](ShareOp share) {
    const int64_t bytes = share.getResult().getType().slotBytes();
    if (llvm::is_contained(alternating, share)) {
      Operation* loop = share->getParentOp();
      auto it = llvm::find_if(pairs, [&](auto& pair) {
        return pair.first == share.getResult().getType() && llvm::none_of(pair.second, [&](Operation* other) {
                 return loop->isAncestor(other) || other->isAncestor(loop);
               });
      });
      if (it != pairs.end()) return it->second.push_back(loop);
      pairs.push_back({share.getResult().getType(), {loop}});
      return fixed.push_back({share.getLoc(), "two buffers of a tile computed in registers, shared", 2 * bytes});
    }
    SharedLife life{share, bytes, 1, order.begin(share), order.end(share)};
    for (Operation* reader : readersOf(share.getResult())) {
      Operation* statement = share->getBlock()->findAncestorOpInBlock(*reader);
      life.end = std::max(life.end, order.end(statement ? statement : func.getOperation()));
    }
    lives.push_back(life);
  });
  std::stable_sort(lives.begin(), lives.end(), [](auto& a, auto& b) { return a.bytes > b.bytes; });
  int64_t total = 0;
  for (SharedLife& life : lives) {
    life.offset = firstFit(life, lives);
    const int64_t more = life.offset + life.bytes - total;
    if (more <= 0) continue;
    total += more;
    fixed.push_back({life.share.getLoc(), "a tile computed in registers, shared", more});
  }
  return fixed;
}

}  // namespace tile::ir
