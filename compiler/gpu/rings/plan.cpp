// plan.cpp - distributes shared memory and registers. Shared memory is given out in this order: one stage of
// everything; two stages of every ring, so that copies overlap with products and with the end of the previous program;
// staging buffers for whole tiles; up to four stages; then what is left. If loops are short of stages, stored tiles
// leave through the stage of a tile of their program that is no longer needed, if there is one: the next program's copy
// then waits for the store.
#include "compiler/gpu/rings/plan.h"

#include <algorithm>

#include "compiler/dialect/products.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/rings/lifetimes.h"
#include "compiler/gpu/rings/ring_groups.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/Twine.h"

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
    const int wished = ring.wished ? ring.wished : 3;
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

// ---- registers

/// Registers of each thread, if a multiprocessor runs this many.
static int registersEach(int threads, const Target& target) {
  return std::min<int>(static_cast<int>(target.registersPerSm) / threads, target.maxRegsPerThread) / 8 * 8;
}

int registersOnEntry(const RolePlan& plan, const Target& target) {
  return registersEach((plan.warpgroups + 1) * 128 * plan.programs, target);
}

std::vector<RolePlan> rolePlans(int numWarps, const Target& target, int addressRegisters) {
  // All threads enter with the same number: their share of the multiprocessor's registers, in steps of 8. Consumers
  // take what the producer gives up; if they asked for more, setmaxnreg would wait for ever. With one consumer
  // warpgroup the tensor cores are idle whenever it does something else, so several programs share the multiprocessor;
  // two do with two warpgroups each, where their tiles are small.
  static constexpr RolePlan kPlans[] = {{1, 4, 32, 96},  {1, 3, 32, 128}, {1, 2, 40, 216}, {1, 2, 24, 232},
                                        {1, 1, 56, 240}, {2, 2, 32, 104}, {2, 1, 40, 232}, {2, 1, 24, 240}, {3, 1, 32, 160}};
  // Producers whose threads copy need registers for addresses; the leanest one that has them leaves most for consumers.
  static constexpr RolePlan kCopyingPlans[] = {{1, 3, 56, 104}, {1, 2, 56, 200},  {1, 2, 80, 176},  {1, 2, 104, 152},
                                               {1, 1, 56, 240}, {1, 1, 104, 240}, {1, 1, 168, 240}, {2, 2, 64, 88},
                                               {2, 1, 56, 224}, {2, 1, 88, 208},  {2, 1, 120, 192}, {2, 1, 152, 176},
                                               {3, 1, 56, 152}, {3, 1, 80, 144},  {3, 1, 104, 136}};
  std::vector<RolePlan> plans;
  for (RolePlan plan : addressRegisters ? ArrayRef<RolePlan>(kCopyingPlans) : ArrayRef<RolePlan>(kPlans)) {
    if (plan.warpgroups * 4 != numWarps || plan.producerRegs < addressRegisters) continue;
    if (llvm::any_of(plans, [&](const RolePlan& p) { return addressRegisters && p.programs == plan.programs; }))
      continue;
    const int warpgroups = plan.warpgroups + 1, entered = registersOnEntry(plan, target);
    if (plan.producerRegs + plan.warpgroups * plan.consumerRegs <= entered * warpgroups) plans.push_back(plan);
  }
  return plans;
}

int64_t sharedBytesEach(const Target& target, int programs) {
  // The system reserves 1 KB for each program; a multiprocessor has that much more than a single program may ask for.
  constexpr int64_t kSystem = 1024;
  return (static_cast<int64_t>(target.maxSharedBytes) + kSystem) / programs - kSystem;
}

namespace {

int64_t tileBytesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) return 0;
  Type element = tensor.getElementType();
  if (!element.isIntOrFloat()) return tensor.getNumElements() * 8;
  return tensor.getNumElements() * std::max(1u, element.getIntOrFloatBitWidth() / 8);
}

/// Whether loads and stores of the tile go through shared memory: in the layout of accumulators, threads access whole
/// sectors of 32-bit elements, but only half a sector of narrower ones.
bool isNarrow(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() >= 2 && tensor.getElementType().isIntOrFloat() &&
         tensor.getElementType().getIntOrFloatBitWidth() < 32;
}

/// Whether it takes no registers of its own: recomputed where it is used, or the same in all lanes.
bool isFree(Value value) {
  return isa_and_nonnull<arith::ConstantOp, SplatOp, IotaOp, BroadcastOp>(value.getDefiningOp());
}

int64_t registersOf(Value value, int64_t threads) {
  return isFree(value) ? 0 : (tileBytesOf(value.getType()) + 4 * threads - 1) / (4 * threads);
}

/// The end of the chain of elementwise ops, each the only user of the one before, that begins with the value.
Value endOfChain(Value value) {
  Operation* op = value.getDefiningOp();
  while (op && isElementwise(op) && value.hasOneUse()) {
    Operation* user = *value.getUsers().begin();
    if (!isElementwise(user) || user->getBlock() != op->getBlock() || user->getNumResults() != 1) break;
    op = user, value = user->getResult(0);
  }
  return value;
}

/// Registers of a thread that the op needs while it runs, besides its results.
int64_t registersInside(Operation* op, int64_t threads) {
  if (auto product = dyn_cast<MmaOp>(op); product && fragmentOperand(product)) {
    constexpr int kRegisters = 4;  // 64 rows of one k step
    const WarpgroupProduct p = warpgroupProduct(product);
    return 2 * kFragmentSteps * kRegisters * p.cover.m / (64 * p.teamsM);
  }
  // Elements that arrive, and addresses of accesses not issued yet: 64 bits for each 16 bytes.
  if (isa<LoadOp, GatherOp>(op)) return registersOf(op->getResult(0), threads) * 3 / 2;
  return 0;
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
  for (Value source : scan.getSources()) bytes += tileBytesOf(source.getType()) / type.getDimSize(axis) * warps;
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
      if (isNarrow(value.getType()) && !isStaged(op)) bytes = tileBytesOf(value.getType());
    } else if (isa<LoadOp, GatherOp>(op)) {
      if (isNarrow(op->getResult(0).getType())) bytes = tileBytesOf(op->getResult(0).getType());
    } else if (auto trans = dyn_cast<TransOp>(op); trans && isAccumulated(trans.getSource())) {
      bytes = 0;  // the transpose of such a result is the same registers
    } else if (int64_t table = tableOfRunsOfRows(op, warps)) {
      bytes = table;
    } else if (isa<TransOp, ScanOp, TakeOp, CatOp, ExtractOp>(op)) {
      bytes = tileBytesOf(op->getOperand(0).getType());
    } else if (isa<HistogramOp>(op)) {
      bytes = tileBytesOf(op->getResult(0).getType());
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

/// Whether the tile is used only to compute addresses: of copies to shared memory, which a producer makes, or of
/// scatters (with `asksApart` also of gathers), for which threads compute one element after the other.
static bool servesOnlyCopies(Value value, bool asksApart, llvm::DenseMap<Value, bool>& known) {
  if (auto it = known.find(value); it != known.end()) return it->second;
  const bool serves = !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation* user) {
    if (isSharedCopy(user)) return true;
    if (auto scatter = dyn_cast<ScatterOp>(user)) return scatter.getValue() != value;
    if (auto gather = dyn_cast<GatherOp>(user); gather && asksApart) return gather.getOther() != value;
    return user->getNumRegions() == 0 && user->getNumResults() == 1 && isMemoryEffectFree(user) &&
           servesOnlyCopies(user->getResult(0), asksApart, known);
  });
  return known[value] = serves;
}

namespace {

/// Computes the registers of tiles that are alive at every op of a function, in one walk.
class LiveTiles {
 public:
  LiveTiles(func::FuncOp func, int64_t threads, bool atLeast) : func_(func), threads_(threads), atLeast_(atLeast) {
    visit(func.getBody().front(), 0);
  }
  const RegisterEstimate& worst() const { return worst_; }

 private:
  int64_t kept(Value value) {
    if (!isa<RankedTensorType>(value.getType()) || servesOnlyCopies(value, atLeast_, ofCopies_)) return 0;
    if ((atLeast_ || !isInLoop(value)) && passesThrough(value)) return 0;
    const int64_t registers = registersOf(value, threads_) / sharedBy(value);
    return atLeast_ ? std::min(registers, registersOf(endOfChain(value), threads_)) : registers;
  }

  /// In loops, work of several iterations overlaps, and values wait for each other.
  static bool isInLoop(Value value) {
    Operation* op = value.getDefiningOp();
    return op && op->getParentOfType<LoopLikeOpInterface>();
  }

  /// Whether the next elementwise ops consume the value, so that only one element of it need exist at a time.
  static bool passesThrough(Value value) {
    Operation* op = value.getDefiningOp();
    if (!op || !isElementwise(op) || !value.hasOneUse()) return false;
    Operation* user = *value.getUsers().begin();
    if (user->getBlock() != op->getBlock()) return false;
    for (Operation* at = op->getNextNode(); at; at = at->getNextNode()) {
      if (!isElementwise(at) && !isa<arith::ConstantOp, SplatOp, IotaOp, BroadcastOp>(at)) return false;
      if (at == user) return true;
    }
    return false;
  }

  /// How many rows share an element of the tile: words that are gathered for several rows, in this iteration or the
  /// previous one.
  int64_t sharedBy(Value value) {
    if (auto arg = dyn_cast<BlockArgument>(value))
      if (auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp()); loop && arg != loop.getInductionVar())
        value = loop.getTiedLoopInit(arg)->get();
    auto gather = value.getDefiningOp<GatherOp>();
    if (!gather) return 1;
    if (!facts_) facts_.emplace(func_);
    return rowsAlike(gather, *facts_);
  }

  /// `outside`: registers of tiles outside the block that are alive while it runs.
  void visit(Block& block, int64_t outside) {
    llvm::DenseMap<Operation*, size_t> places;
    for (Operation& op : block) places.try_emplace(&op, places.size());
    std::vector<int64_t> changes(places.size() + 1);
    auto live = [&](Value value, size_t begin) {
      const int64_t registers = kept(value);
      if (registers == 0) return;
      size_t end = begin;
      for (Operation* user : value.getUsers())
        if (Operation* statement = block.findAncestorOpInBlock(*user)) end = std::max(end, places.at(statement));
      changes[begin] += registers;
      changes[end + 1] -= registers;
    };
    for (Value argument : block.getArguments()) live(argument, 0);
    for (Operation& op : block)
      for (Value result : op.getResults()) live(result, places.at(&op));

    int64_t inBlock = 0;
    for (Operation& op : block) {
      inBlock += changes[places.at(&op)];
      // An op's results may take the registers of operands that end here: they count from the next op on.
      int64_t alive = outside + inBlock;
      for (Value result : op.getResults()) alive -= kept(result);
      if (op.getNumRegions() == 0) {
        alive += registersInside(&op, threads_) / (isa<GatherOp>(op) ? sharedBy(op.getResult(0)) : 1);
        if (alive > worst_.registers) worst_ = {static_cast<int>(alive), &op};
        continue;
      }
      // Operands of a statement with regions are alive as arguments of its regions, or count inside.
      llvm::SmallDenseSet<Value, 8> read(op.getOperands().begin(), op.getOperands().end());
      for (Value operand : read)
        if (operand.getParentBlock() == &block) alive -= kept(operand);
      for (Region& region : op.getRegions())
        for (Block& inner : region) visit(inner, alive);
    }
  }

  func::FuncOp func_;
  int64_t threads_;
  bool atLeast_;
  std::optional<Facts> facts_;  ///< computed if there are gathers
  llvm::DenseMap<Value, bool> ofCopies_;
  RegisterEstimate worst_;
};

}  // namespace

RegisterEstimate estimateRegisters(func::FuncOp func, int numWarps, bool atLeast) {
  return LiveTiles(func, int64_t{numWarps} * 32, atLeast).worst();
}

int registersOfProducts(func::FuncOp func) {
  constexpr int kBeside = 32;  // the first operand and addresses; ptxas 13.0.88 asks for 26 to 30
  int most = 0;
  func.walk([&](MmaOp product) {
    if (product.getEngine() < Engine::wgmma_f16) return;
    const WarpgroupProduct p = warpgroupProduct(product);
    const int64_t columns = std::min<int64_t>(256, p.cover.n / p.teamsN);
    most = std::max(most, static_cast<int>(columns / 2) + kBeside);  // 64 rows of 32 bits over 128 threads
  });
  return most;
}

int askedPrograms(func::FuncOp func, int threads, const Target& target) {
  auto asked = func->getAttrOfType<IntegerAttr>("tile.programs");
  if (!asked) return 0;
  const int needed = registersOfProducts(func);
  int programs = static_cast<int>(asked.getInt());
  while (programs > 1 && registersEach(threads * programs, target) < needed) --programs;
  return programs;
}

}  // namespace tile::ir
