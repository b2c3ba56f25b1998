// register_plan.cpp - see register_plan.h.
#include "compiler/gpu/rings/register_plan.h"

#include <algorithm>

#include "compiler/dialect/products.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/rings/ring_groups.h"
#include "compiler/lowering/elementwise.h"

namespace tile::ir {
using namespace mlir;

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
  static constexpr RolePlan kPlans[] = {{1, 4, 32, 96},  {1, 3, 32, 128}, {1, 2, 40, 216},
                                        {1, 2, 24, 232}, {1, 1, 56, 240}, {2, 2, 32, 104},
                                        {2, 1, 40, 232}, {2, 1, 24, 240}, {3, 1, 32, 160}};
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

namespace {

/// Whether it takes no registers of its own: recomputed where it is used, or the same in all lanes.
bool isFree(Value value) {
  return isa_and_nonnull<arith::ConstantOp, SplatOp, IotaOp, BroadcastOp>(value.getDefiningOp());
}

int64_t registersOf(Value value, int64_t threads) {
  if (isFree(value) || !isa<RankedTensorType>(value.getType())) return 0;
  return (tileBytes(value.getType()) + 4 * threads - 1) / (4 * threads);
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

/// Whether the tile is used only to compute addresses: of copies to shared memory, which a producer makes, or of
/// scatters (with `asksApart` also of gathers), for which threads compute one element after the other.
bool servesOnlyCopies(Value value, bool asksApart, llvm::DenseMap<Value, bool>& known) {
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
