// role_memory.cpp - rings, stagings and shared tiles of a kernel with roles, with their sizes and wishes.
#include "compiler/gpu/roles/role_memory.h"

#include "compiler/dialect/products.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/forms/async_products.h"
#include "compiler/gpu/forms/moves.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kRawStages = 2;

std::string nameOf(ArrayRef<Operation*> buffers) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "ring of ";
  for (auto [i, loaded] : llvm::enumerate(buffers)) {
    auto type = cast<SmemType>(loaded->getResult(0).getType());
    out << (i ? " + " : "") << type.getShape()[0] << "x" << type.getShape()[1] << "x" << type.getElementType();
  }
  return text;
}

/// What a tile in shared memory must be for the store to leave through it.
SmemType hostType(const BulkStore& store) {
  auto tile = cast<RankedTensorType>(store.tile.getType());
  return SmemType::get(tile.getContext(), tile.getShape(), tile.getElementType(), 1, 1);
}

/// The ring whose stage a stored tile may leave through: of one tile of the same type, loaded by the same statements,
/// all of whose readers are products in front of the store that take it as their first operand, each warpgroup its
/// own rows, the ones it also stores. -1: none.
int hostOf(const BulkStore& store, const RingGroups& groups) {
  auto tile = cast<RankedTensorType>(store.tile.getType());
  const SmemType whole = hostType(store);
  if (store.columnGroups != 1 || store.columns.front() != tile.getDimSize(1)) return -1;
  const int warps = warpsOf(store.op->getParentOfType<func::FuncOp>());
  for (const LoadGroup& group : groups.groups()) {
    if (group.loads.size() != 1 || group.block() != store.op->getBlock()) continue;
    if (!group.last->isBeforeInBlock(store.op)) continue;
    if (llvm::count_if(groups.groups(), [&](const LoadGroup& other) { return other.ring == group.ring; }) != 1)
      continue;
    auto load = dyn_cast<LoadSharedOp>(group.loads.front());
    if (!load || group.byThreads || load.getResult().getType() != whole) continue;
    auto takesOwnRows = [&](Operation* reader) {
      auto mma = dyn_cast<MmaOp>(reader);
      return mma && isAsyncProduct(mma) && mma.getA() == load.getResult() && !fragmentOperand(mma) &&
             static_cast<int>(mma.getWarpsM()) == warps;
    };
    if (llvm::all_of(readersOf(load.getResult()), takesOwnRows)) return group.ring;
  }
  return -1;
}

}  // namespace

llvm::DenseSet<Operation*> findHosts(const std::vector<BulkStore>& stores) {
  llvm::DenseSet<Operation*> hosts;
  for (const BulkStore& store : stores)
    for (Operation& op : *store.op->getBlock()) {
      if (&op == store.op) break;
      if (auto load = dyn_cast<LoadSharedOp>(op); load && load.getResult().getType() == hostType(store))
        hosts.insert(load);
    }
  return hosts;
}

/// Whether threads read large tiles from global memory in the loop: what shared memory takes, their cache lacks (H200,
/// a 3-D convolution whose 27 taps read the same patches: 5 % slower with 6 stages than with 4).
static bool readsLargeTiles(scf::ForOp loop) {
  constexpr int64_t kLargeBytes = 8192;
  auto isLarge = [](Operation* op) {
    if (!isa<LoadOp, GatherOp>(op)) return false;
    auto tile = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    return tile && tileBytes(tile) >= kLargeBytes;
  };
  auto visit = [&](Operation* op) { return isLarge(op) ? WalkResult::interrupt() : WalkResult::advance(); };
  return loop->walk(visit).wasInterrupted();
}

/// Whether the loop is served by stages that products read on top of the `wish` asked for, which are copies under way.
/// They are all that keeps tensor cores busy where products alone read the group's tiles and are all that the loop
/// does (H200, tiles of 128 x 128 x 64, bf16, 4096: a loop that asks for 3 stages takes 0.227 ms with 3, 0.196 with 4
/// and 0.185 with 5). Loops of one product that do other work, too, gain up to 6 %. Chains of products lose as often as
/// they gain, and who asks for two stages, or for many, knows why.
static bool readsMoreStages(const LoadGroup& group, scf::ForOp loop, int wish) {
  constexpr int kFewest = 3, kMost = 4;
  if (!loop) return false;
  if (group.onlyProducts && onlyMultiplies(*loop.getBody())) return true;
  return kFewest <= wish && wish <= kMost && llvm::hasSingleElement(loop.getOps<MmaOp>()) && !readsLargeTiles(loop);
}

bool isResult(Operation* op) { return isa<StoreOp>(op) && !op->getParentOfType<LoopLikeOpInterface>(); }

MemoryPlan planMemory(func::FuncOp func, const RingGroups& groups, const std::vector<BulkStore>& stores,
                      const MemoryWishes& wishes, std::vector<int>& rawRings) {
  MemoryPlan plan;
  plan.limit = wishes.sharedBytes;
  for (int index = 0; index < groups.numRings(); ++index) {
    const SmallVector<Operation*> buffers = groups.buffersOf(index);
    RingPlan ring{.loc = buffers.front()->getLoc(), .what = nameOf(buffers), .bytesPerStage = 0};
    for (Operation* buffer : buffers) ring.bytesPerStage += copiedType(buffer).slotBytes();
    constexpr int kReadAtATime = 2;  // by the products of this iteration and of the one before
    int beside = kReadAtATime, numGroups = 0;
    for (const LoadGroup& group : groups.groups()) {
      if (group.ring != index) continue;
      // As good as in a loop: refilled within a program.
      if (++numGroups > 1 && groups.turns() == Turns::all) ring.inLoop = true;
      auto loop = group.loads.front()->getParentOfType<scf::ForOp>();
      ring.inLoop |= group.loads.front()->getParentOfType<LoopLikeOpInterface>() != nullptr;
      int wish = wishes.stages;
      if (auto hint = loop ? loop->getAttrOfType<IntegerAttr>("tile.stages") : IntegerAttr())
        wish = static_cast<int>(hint.getInt());
      if (loop) ring.wished = std::max(ring.wished, wish);
      if (!readsMoreStages(group, loop, wish)) beside = 0;
    }
    ring.beside = beside;
    plan.rings.push_back(std::move(ring));
  }
  // Two stages of tiles as they are copied: one lands while the one before is turned.
  rawRings.assign(static_cast<size_t>(groups.numRings()), -1);
  for (const LoadGroup& group : groups.groups()) {
    int& raw = rawRings[static_cast<size_t>(group.ring)];
    if (group.turned.empty() || raw >= 0) continue;
    raw = static_cast<int>(plan.rings.size());
    RingPlan ring = plan.rings[static_cast<size_t>(group.ring)];
    ring.what = "tiles to be turned for the " + ring.what;
    ring.bytesPerStage = group.turnedBytes();
    if (ring.inLoop) ring.wished = kRawStages;
    ring.beside = 0;
    plan.rings.push_back(std::move(ring));
  }
  for (const BulkStore& store : stores) {
    if (static_cast<size_t>(store.staging) < plan.stagings.size()) continue;
    auto tile = cast<RankedTensorType>(store.tile.getType());
    StagingPlan staging{store.op->getLoc(), "staging of a stored tile", 0, {}, 0};
    staging.rowBytes = tile.getDimSize(0) * (tile.getElementType().getIntOrFloatBitWidth() / 8);
    staging.columns.assign(store.columns.begin(), store.columns.end());
    const bool isOnly = llvm::count_if(stores, [&](const BulkStore& s) { return s.staging == store.staging; }) == 1;
    if (isOnly) staging.host = hostOf(store, groups);
    staging.isStoredInLoop = llvm::any_of(stores, [&](const BulkStore& s) {
      return s.staging == store.staging && isa<StoreOp>(s.op) && s.op->getParentOfType<LoopLikeOpInterface>();
    });
    plan.stagings.push_back(std::move(staging));
  }
  auto isStaged = [&](Operation* op) {
    if (wishes.storesAsComputed && isResult(op)) return true;
    return llvm::any_of(stores, [&](const BulkStore& s) { return s.op == op; });
  };
  auto copiesFromMade = [](const LoadGroup& group) {
    return !group.byThreads && llvm::any_of(group.loads, [](Operation* op) {
      auto load = dyn_cast<LoadSharedOp>(op);
      return load && isMadeInKernel(load.getView());
    });
  };
  const int64_t describing = llvm::any_of(groups.groups(), copiesFromMade) ? kTensorMapBytes : 0;
  plan.fixed.push_back({func.getLoc(), "scratch", estimateScratch(func, isStaged) + describing});
  llvm::append_range(plan.fixed, estimateShares(func, {}));
  return plan;
}

/// A product of the iteration is waited for in front of the store anyway.
static bool isMadeOfProduct(ShareOp share) {
  SmallVector<Operation*> pending{share};
  llvm::DenseSet<Operation*> seen;
  while (!pending.empty()) {
    Operation* op = pending.pop_back_val();
    if (isa<MmaOp>(op)) return true;
    for (Value operand : op->getOperands())
      if (Operation* made = operand.getDefiningOp(); made && made->getBlock() == share->getBlock())
        if (seen.insert(made).second) pending.push_back(made);
  }
  return false;
}

std::vector<ShareOp> findAlternating(func::FuncOp func) {
  std::vector<ShareOp> found;
  func.walk([&](ShareOp share) {
    auto loop = dyn_cast<scf::ForOp>(share->getParentOp());
    APInt step;
    if (loop && matchPattern(loop.getStep(), m_ConstantInt(&step)) && step.isStrictlyPositive() &&
        (step == 1 || !isMadeOfProduct(share)) &&
        share.getSource().getType().getShape() == share.getResult().getType().getShape() &&
        llvm::all_of(readersOf(share.getResult()), isAsyncProduct))
      found.push_back(share);
  });
  return found;
}

bool chooseMemory(func::FuncOp func, MemoryPlan& memory, ArrayRef<ShareOp> shares,
                  llvm::DenseSet<Operation*>& alternating) {
  alternating.clear();
  MemoryPlan more = memory;
  more.fixed.erase(more.fixed.begin() + 1, more.fixed.end());  // all but the scratch
  llvm::append_range(more.fixed, estimateShares(func, shares));
  if (!memory.choose()) return false;
  auto sameLoops = [&] {
    return llvm::all_of(llvm::zip(memory.rings, more.rings), [](auto both) {
      auto& [one, other] = both;
      return !one.inLoop || other.stages >= one.usefulStages();
    });
  };
  // A second buffer saves a barrier, which is less than waits for parts of a tile. (What is added to memory leaves while
  // the next products run: attention's gradients of queries.)
  auto sameStagings = [&] {
    return llvm::all_of(llvm::zip(memory.stagings, more.stagings), [](auto both) {
      auto& [one, other] = both;
      return !one.isStoredInLoop || other.isHosted || other.chosen >= one.chosen;
    });
  };
  if (shares.empty() || !more.choose() || !sameLoops() || !sameStagings()) return true;
  memory = std::move(more);
  for (ShareOp share : shares) alternating.insert(share);
  return true;
}

}  // namespace tile::ir
