// specialize.cpp - warp specialisation: a producer that copies tiles by TMA, running ahead, and consumers that compute.
// Before: the value level of tile_smem.td.
// After:  tile.specialize (tile_roles.td), with every load_shared and share of the kernel turned into buffers: nothing
//         is left for stage.
//
// The pass applies if every tile that the kernel loads into shared memory is a box that the copy engine takes
// (tma_box.h), if the indices and trip counts of these loads can be computed without tiles and ahead of the kernel's
// writes (role_slice.h), and if the rings fit. Otherwise a remark says why not, and stage does what it does on other
// targets.
//
// A loop with `tile.specialize = 1` also gets a producer for other tiles: those gathered through pointers, and boxes of
// views that are not aligned. All threads of the producer's warpgroup then compute the addresses of their own pieces
// and copy these (cp.async); a stage may have fields of either kind. Without being asked, the pass does this where the
// tiles alive at once leave no registers for a second program of the multiprocessor: then nothing else could run while
// warps of the program copy.
#include "compiler/gpu/roles/specialize.h"

#include <limits>

#include "compiler/dialect/warps.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/roles/multicast.h"
#include "compiler/gpu/roles/role_memory.h"
#include "llvm/ADT/SetOperations.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// About what a loop with several products needs beside the registers of its tiles.
constexpr int kTightRegisters = 40;
constexpr int kLeanProducer = 32;     ///< a producer with fewer registers may spill
constexpr int kTurnerRegisters = 56;  ///< two fragments being read, their destinations, cursors of three rings

class Specializer {
 public:
  Specializer(func::FuncOp func, const Target& target, const CompileOptions& options)
      : func_(func), target_(target), options_(options) {}

  void run() {
    if (!target_.hasTma || !options_.useTma) return;
    turned_ = foldTurns(func_);
    if (!isCandidate(Facts(func_))) return unfoldTurns(turned_);
    const LaneNumbers numbers = numbersByLanes(func_);
    if (specialize()) return keepNumbers(numbers);
    dropNumbers(numbers);
    unfoldTurns(turned_);
  }

 private:
  bool specialize() {
    const int numWarps = warpsOf(func_);
    if (rolePlans(numWarps, target_).empty()) {
      remark(func_) << "at most 3 warpgroups of consumers can have registers enough, the kernel has " << numWarps
                    << " warps";
      return false;
    }
    PaddedBoxes padded(func_, Facts(func_), turned_);
    Facts facts(func_);
    const int tiles = estimateRegisters(func_, numWarps, /*atLeast=*/true).registers + RegisterEstimate::kOther;
    isAlone_ = int64_t{2} * 32 * numWarps * tiles > target_.registersPerSm;
    if (reliesOnPrograms(numWarps)) {
      remark(func_) << "loops of one stage copy nothing ahead: programs overlap with each other, and more of them fit "
                    << "without roles";
      return false;
    }
    if (!sortCopies(facts) || !hasProducer(RingGroups(func_, byThreads_, turned_))) return false;
    // Rows that the kernel may write while the producer runs ahead stay loads of the consumers.
    const llvm::DenseSet<Operation*> rows = fetchRows(func_, facts);
    const RingGroups withRows(func_, byThreads_, turned_);
    if (withRows.refused() || RoleSlice(func_, withRows.groups()).obstacle().at) unfetch(rows);
    const std::vector<BulkStore> stores = findBulkStores(func_, numWarps, facts);
    std::optional<RoleDecisions> plan = decide(stores, numWarps);
    for (auto* fetch : {&fetchTiles, &fetchReads}) {
      if (!plan) break;
      const llvm::DenseSet<Operation*> tiles = fetch(func_, facts);
      std::optional<RoleDecisions> other = tiles.empty() ? std::nullopt : decide(stores, numWarps);
      const bool isWorth = other && isWorthIts(tiles, *plan, *other);
      if (!isWorth) unfetch(tiles);
      if (!tiles.empty()) plan = isWorth ? std::move(other) : decide(stores, numWarps);
    }
    if (!plan) {
      tellObstacle(stores, numWarps);
      return false;
    }
    if (!padded.empty() && hasAloneRing(plan->memory)) {
      remark(func_) << "tiles with padding leave a loop room for one stage";
      return false;
    }
    padded.keep();
    deepenForFew(*plan);
    markShared(func_, plan->groups.groups(), plan->slice, facts);
    if (!options_.fewPrograms)  // they are all there at the same time
      plan->bands = bandsOf(func_, plan->groups.groups(), plan->slice, plan->roles.programs);
    if (plan->storesAsComputed)
      func_.walk([](StoreOp store) {
        if (isResult(store)) store->setAttr(kAsComputedAttr, UnitAttr::get(store.getContext()));
      });
    tellWishes(plan->memory);
    const RegisterEstimate registers = estimateRegisters(func_, numWarps);
    tellRegisters(registers, plan->roles);
    rewriteWithRoles(func_, *plan);
    func_.walk([&](SpecializeOp roles) {
      if (registers.needed() > plan->roles.consumerRegs) roles->setAttr(kTightAttr, UnitAttr::get(func_.getContext()));
    });
    if (isCrowded(*plan, registers)) func_->setAttr(kCrowdedAttr, UnitAttr::get(func_.getContext()));
    return true;
  }

  /// Rings, buffers and registers for the kernel; nullopt if no plan for roles fits. Staging buffers for stored tiles,
  /// which are used once in a program, are given up where they would leave no room for roles, or only one stage for a
  /// loop; if that is not enough, results leave as they are computed.
  std::optional<RoleDecisions> decide(const std::vector<BulkStore>& stores, int numWarps) {
    std::optional<RoleDecisions> plan = decideAmongHosts(stores, numWarps);
    if (stores.empty() || (plan && !hasAloneRing(plan->memory))) return plan;
    auto isBetter = [&](const std::optional<RoleDecisions>& other) {
      return other && (!plan || other->memory.stagesInLoops() > plan->memory.stagesInLoops());
    };
    std::optional<RoleDecisions> other = decideAmongHosts({}, numWarps);
    if (isBetter(other)) plan = std::move(other);  // decisions move and are not copied: slices point into their groups
    if (!plan || !hasAloneRing(plan->memory)) return plan;
    storesAsComputed_ = true;
    other = decideAmongHosts({}, numWarps);
    storesAsComputed_ = false;
    return isBetter(other) ? std::move(other) : std::move(plan);
  }

  /// Whether some loop has a ring of one stage only, so that its copies do not overlap with its products.
  static bool hasAloneRing(const MemoryPlan& memory) {
    return llvm::any_of(memory.rings,
                        [](const RingPlan& ring) { return ring.inLoop && ring.stages == 1 && ring.wished != 1; });
  }

  /// Launches of few programs have the shared memory of a whole multiprocessor for each of them: rings get the stages
  /// that a second program would take the room of. (H200: products of 16 to 128 rows with weights of 8192 x 4096 are
  /// 1.0 to 1.6 times as fast.)
  void deepenForFew(RoleDecisions& plan) const {
    if (plan.roles.programs == 1) return;
    MemoryPlan whole = plan.memory;
    whole.limit = bytesOfRings(1);
    llvm::DenseSet<Operation*> alternating;
    const bool isDeeper = chooseMemory(func_, whole, findAlternating(func_), alternating) &&
                          whole.stagesInLoops() > plan.memory.stagesInLoops();
    if (!chooseByGrid(func_, options_, false, isDeeper)) return;
    plan.memory = std::move(whole), plan.alternating = std::move(alternating);
  }

  static bool asksForOneStage(const MemoryPlan& memory) {
    return llvm::any_of(memory.rings, [](const RingPlan& ring) { return ring.inLoop && ring.wished == 1; });
  }

  std::optional<RoleDecisions> decideAmongHosts(const std::vector<BulkStore>& stores, int numWarps) {
    RingGroups groups(func_, byThreads_, turned_);
    const int numRings = groups.numRings();
    std::optional<RoleDecisions> plan = decide(std::move(groups), stores, numWarps);
    // A tile that only a branch reads is usually acquired in the branch. If a loop is short of stages, a tile stored
    // behind the branch may leave through its stage (its "host"); the stage is then acquired on every path.
    if (!plan || hasAloneRing(plan->memory)) {
      const llvm::DenseSet<Operation*> hosts = findHosts(stores);
      std::optional<RoleDecisions> other =
          hosts.empty() ? std::nullopt : decide(RingGroups(func_, byThreads_, turned_, hosts), stores, numWarps);
      if (other && (!plan || other->memory.stagesInLoops() > plan->memory.stagesInLoops())) plan = std::move(other);
    }
    // One warpgroup on the multiprocessor leaves tensor cores idle while it works on results. A second program may have
    // room if operands that each of them reads once take turns.
    if (plan && isLone(*plan)) {
      std::optional<RoleDecisions> other =
          decide(RingGroups(func_, byThreads_, turned_, {}, Turns::outside_loops), stores, numWarps);
      if (other && !isLone(*other)) plan = std::move(other);
    }
    // Loops one behind the other need their rings one at a time.
    RingGroups shared(func_, byThreads_, turned_, {}, Turns::none, Alike::fills);
    if (shared.numRings() < numRings) {
      std::optional<RoleDecisions> other = decide(std::move(shared), stores, numWarps);
      if (other && (!plan || hasMoreRoom(*other, *plan))) plan = std::move(other);
    }
    // One warpgroup on the multiprocessor that spills waits for its own local memory, with nobody to compute meanwhile:
    // programs without roles have a few registers more, and a scheduler with several of them. (Not where a loop is to
    // have one stage: without roles nothing would be copied ahead there.)
    if (plan && isLone(*plan) && !isAsked_ && !asksForOneStage(plan->memory)) {
      spilling_ = estimateRegisters(func_, numWarps);
      if (spilling_->registers > plan->roles.consumerRegs) return std::nullopt;
      spilling_.reset();
    }
    if (plan) return plan;
    plan = decide(RingGroups(func_, byThreads_, turned_, {}, Turns::all), stores, numWarps);
    // With one consumer warpgroup on the multiprocessor, tensor cores are idle during all code outside of products:
    // several programs without roles are better.
    if (plan && isLone(*plan)) return std::nullopt;
    return plan;
  }

  /// Whether the registers of its programs may not suffice: there are more programs than two of a warpgroup each.
  static bool isCrowded(const RoleDecisions& plan, const RegisterEstimate& registers) {
    return plan.roles.warpgroups == 1 && plan.roles.programs > 2 && registers.needed() > plan.roles.consumerRegs;
  }

  /// Whether one plan has more programs than the other, or as many with more stages where a loop has the fewest.
  static bool hasMoreRoom(const RoleDecisions& one, const RoleDecisions& other) {
    auto roomOf = [](const RoleDecisions& plan) {
      int fewest = std::numeric_limits<int>::max();
      for (const RingPlan& ring : plan.memory.rings)
        if (ring.inLoop) fewest = std::min(fewest, ring.usefulStages());
      return std::pair(plan.roles.programs, fewest);
    };
    return roomOf(one) > roomOf(other);
  }

  /// Whether a multiprocessor holds one warpgroup of consumers.
  static bool isLone(const RoleDecisions& plan) { return plan.roles.warpgroups * plan.roles.programs < 2; }

  /// Whether rings for `tiles` cost nothing that the plan without them has: no program and no stage. (A second buffer
  /// of a shared tile saves a barrier, consumers that load wait for memory.)
  static bool isWorthIts(const llvm::DenseSet<Operation*>& tiles, const RoleDecisions& without,
                         const RoleDecisions& with) {
    auto stagesOfOthers = [&](const RoleDecisions& plan) {
      int stages = 0;
      for (auto [index, ring] : llvm::enumerate(plan.memory.rings)) {
        const int number = static_cast<int>(index);
        const bool isOfTiles = llvm::any_of(plan.groups.groups(), [&](const LoadGroup& group) {
          return group.ring == number &&
                 llvm::all_of(group.loads, [&](Operation* load) { return tiles.contains(load); });
        });
        stages += isOfTiles || !ring.inLoop ? 0 : ring.usefulStages();
      }
      return stages;
    };
    return with.roles.programs >= without.roles.programs && stagesOfOthers(with) >= stagesOfOthers(without);
  }

  /// The same for given groups of loads.
  std::optional<RoleDecisions> decide(RingGroups groups, const std::vector<BulkStore>& stores, int numWarps) {
    if (groups.refused()) return std::nullopt;
    RoleSlice slice(func_, groups.groups());
    if (slice.obstacle().at) return std::nullopt;
    std::vector<RolePlan> plans = rolePlans(numWarps, target_, addressRegisters(slice));
    if (plans.empty()) return std::nullopt;
    std::vector<int> rawRings;
    const MemoryPlan wanted =
        planMemory(func_, groups, stores, {target_.maxSharedBytes, options_.defaultStages, storesAsComputed_}, rawRings);
    MemoryPlan memory = wanted;
    const RegisterEstimate registers = estimateRegisters(func_, numWarps);
    // While one program computes between products, others multiply: more of them are worth a tighter fit.
    const bool isCrowdable = options_.crowdedRoles && plans.front().warpgroups == 1 && worksOnResults();
    const bool isAsked = keepAskedPrograms(plans, memory);
    RolePlan roles = plans.back();
    const std::vector<ShareOp> shares = findAlternating(func_);
    llvm::DenseSet<Operation*> alternating;
    bool fits = false;
    for (const RolePlan& plan : plans) {
      memory = wanted;
      memory.limit = bytesOfRings(plan.programs);
      fits = chooseMemory(func_, memory, shares, alternating);
      // The next plan would be a warpgroup alone: two programs need no room for what the estimate overlooks.
      const bool isLast = plan.warpgroups == 1 && plan.programs == 2;
      const int needed = isLast || isCrowdable ? registers.registers + RegisterEstimate::kOther : registers.needed();
      // Nor for a third stage: while one program waits for copies, the other computes. (A ring of one stage stops
      // both.)
      const bool hasStages = memory.isComfortable(isLast ? 1 : 0);
      const bool isCramped = !hasStages || needed > plan.consumerRegs ||
                             registersOfProducts(func_) > registersOnEntry(plan, target_);
      const bool isLean = plan.programs > 1 && plan.producerRegs < kLeanProducer;
      if (!fits || (!isAsked && (isLean || (plan.programs > 1 && isCramped)))) continue;
      roles = plan;
      if (isAsked && registers.registers + RegisterEstimate::kOther > plan.consumerRegs) continue;
      // A producer with few registers spills if the next program is hard to compute; it gives registers to consumers
      // only if they need them.
      if (plan.programs > 1 || registers.registers + kTightRegisters < plan.consumerRegs) break;
    }
    if (!fits || (options_.reservedSharedBytes && hasAloneRing(memory))) return std::nullopt;
    std::vector<LoadGroup> turnedGroups;
    for (const LoadGroup& group : groups.groups())
      if (!group.turned.empty()) turnedGroups.push_back(group);
    std::optional<RoleSlice> turner;
    if (!turnedGroups.empty()) turner.emplace(func_, turnedGroups);
    RoleDecisions plan{std::move(groups), std::move(slice), std::move(turnedGroups), std::move(turner),      stores,
                       std::move(memory), roles,            std::move(alternating),  byThreads_, std::move(rawRings)};
    plan.storesAsComputed = storesAsComputed_;
    return plan;
  }

  /// Shared memory of each of `programs` on a multiprocessor, without what conversions turned out to need.
  int64_t bytesOfRings(int programs) const {
    return sharedBytesEach(target_, programs) - options_.reservedSharedBytes;
  }

  /// If the kernel asks for a number of programs per multiprocessor, and they have room, keeps only plans with that
  /// number.
  bool keepAskedPrograms(std::vector<RolePlan>& plans, MemoryPlan memory) const {
    const int asked = askedPrograms(func_, (plans.front().warpgroups + 1) * 128, target_);
    if (!asked) return false;
    std::vector<RolePlan> kept = plans;
    llvm::erase_if(kept, [&](const RolePlan& plan) { return plan.programs != asked; });
    memory.limit = bytesOfRings(asked);
    if (kept.empty() || !memory.choose()) return false;
    plans = std::move(kept);
    return true;
  }

  /// Remarks why there is no plan.
  void tellObstacle(const std::vector<BulkStore>& stores, int numWarps) {
    if (spilling_) {
      remark(spilling_->at) << "a multiprocessor would hold one warpgroup of consumers, and tiles alive here need "
                            << "about " << spilling_->registers << " registers of each of its threads";
      return;
    }
    RingGroups groups(func_, byThreads_, turned_);
    RoleSlice slice(func_, groups.groups());
    if (rolePlans(numWarps, target_, addressRegisters(slice)).empty()) {
      remark(func_) << "addresses of what a producer copies need about " << addressRegisters(slice)
                    << " registers of each of its threads";
      return;
    }
    std::vector<int> rawRings;
    MemoryPlan memory = planMemory(func_, groups, stores, {target_.maxSharedBytes, options_.defaultStages}, rawRings);
    memory.limit = target_.maxSharedBytes;
    (void)memory.choose();
    InFlightDiagnostic diagnostic = remark(func_);
    diagnostic << "one stage of every ring needs " << memory.bytes() << " bytes of shared memory, " << target_.name
               << " has " << target_.maxSharedBytes;
    memory.explain(*diagnostic.getUnderlyingDiagnostic());
  }

  InFlightDiagnostic remark(Operation* at) { return at->emitRemark() << "no producer warps: "; }

  /// Whether the product has so few rows that its loop is bound by memory: a producer then keeps copies in flight
  /// across iterations and programs.
  static bool isOfFewRows(Operation* op) {
    constexpr int64_t kFewRows = 16;  // of one instruction
    auto product = dyn_cast<MmaOp>(op);
    return product && product.getResult().getType().getDimSize(0) <= kFewRows;
  }

  /// Whether the loop is known to end after a few iterations, how many shows at run time (`range(0, i % 4)`): rings
  /// would take the room of programs, and be filled once.
  static bool isShort(scf::ForOp loop, const Facts& facts) {
    constexpr int64_t kFew = 3;
    if (loop.getStaticTripCount()) return false;
    const int64_t step = facts.rangeOf(loop.getStep()).min;
    const int64_t low = facts.rangeOf(loop.getLowerBound()).min, high = facts.rangeOf(loop.getUpperBound()).max;
    return step > 0 && low >= INT32_MIN && high <= INT32_MAX && high - low <= kFew * step;
  }

  /// Whether some loop feeds asynchronous products from shared memory, and no loop forbids roles.
  bool isCandidate(const Facts& facts) {
    bool feeds = false, refused = false;
    func_.walk([&](Operation* copy) {
      if (!isSharedCopy(copy)) return;
      for (auto at = copy->getParentOfType<scf::ForOp>(); at; at = at->getParentOfType<scf::ForOp>())
        if (auto hint = at->getAttrOfType<IntegerAttr>("tile.specialize"))
          (hint.getInt() == 0 ? refused : isAsked_) = true;
      auto loop = copy->getParentOfType<scf::ForOp>();
      const bool inLoop = copy->getParentOfType<LoopLikeOpInterface>() && (isAsked_ || !loop || !isShort(loop, facts));
      // Products of single warps as well, where asked for.
      auto isFed = [&](Operation* op) {
        return isAsyncProduct(op) || isOfFewRows(op) || (isAsked_ && isa<MmaOp>(op));
      };
      feeds |= inLoop && llvm::any_of(readersOf(copy->getResult(0)), [&](Operation* reader) {
                 // Or what a product of the same loop is computed from.
                 return isFed(reader) ||
                        (isa<SmemLoadOp>(reader) && llvm::any_of(reader->getBlock()->getOps<MmaOp>(), isFed));
               });
    });
    return feeds && !refused;
  }

  /// Whether a product of a loop waits for work on results: it multiplies what is computed of another one's (attention),
  /// or adds to what the iteration has changed (states that decay). Tensor cores are idle meanwhile.
  bool worksOnResults() {
    auto isHere = [](Operation* op, MmaOp product) { return op && op->getBlock() == product->getBlock(); };
    auto isChained = [&](MmaOp product) {
      llvm::SetVector<Value> reached;
      reached.insert(product.getA()), reached.insert(product.getB());
      for (size_t i = 0; i < reached.size(); ++i) {
        Operation* op = reached[i].getDefiningOp();
        if (!isHere(op, product)) continue;
        if (isa<MmaOp>(op)) return true;
        reached.insert(op->operand_begin(), op->operand_end());
      }
      return false;
    };
    auto addsToChanged = [&](MmaOp product) {
      Operation* sum = product.getAcc().getDefiningOp();
      return isHere(sum, product) && !isa<MmaOp, arith::ConstantOp>(sum);
    };
    return func_
        .walk([&](MmaOp product) {
          const bool isInLoop = isa<LoopLikeOpInterface>(product->getParentOp());
          const bool waits = isInLoop && (addsToChanged(product) || isChained(product));
          return waits ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Whether the kernel asks for nothing to be copied ahead, and roles would leave room for fewer programs: with several
  /// warpgroups of consumers for one or two. (Of one warpgroup there would be four, and their producers do look ahead,
  /// to the next program's tiles.)
  bool reliesOnPrograms(int numWarps) {
    constexpr int kWarpgroup = 4;
    if (isAsked_ || isAlone_ || numWarps <= kWarpgroup) return false;
    bool isRepeated = false, asksForMore = false;
    func_.walk([&](Operation* copy) {
      auto loop = copy->getParentOfType<scf::ForOp>();
      if (!loop || !isSharedCopy(copy)) return;
      isRepeated = true;
      auto hint = loop->getAttrOfType<IntegerAttr>("tile.stages");
      asksForMore |= !hint || hint.getInt() != 1;
    });
    return isRepeated && !asksForMore;
  }

  /// Whether the copies can go through rings, and a producer can make them. Remarks why not.
  bool hasProducer(const RingGroups& groups) {
    if (groups.refused()) {
      remark(groups.refused()) << groups.why();
      return false;
    }
    RoleSlice slice(func_, groups.groups());
    if (slice.obstacle().at) remark(slice.obstacle().at) << slice.obstacle().why;
    return !slice.obstacle().at;
  }

  /// Whether bulk copies can load the tile (if it is transposed behind them, as it lies in memory).
  bool isBox(LoadSharedOp load, const Facts& facts, std::string* why) const {
    if (!turned_.contains(load)) return tmaBox(load, facts, why).has_value();
    return isBulkLoad(load, rawType(copiedType(load)), facts, why);
  }

  /// Lets consumers load and share a tile outside of loops that is no box: it is needed once, and nothing runs ahead of
  /// it.
  static void leaveToConsumers(Operation* copy) {
    OpBuilder b(copy);
    const SmemType type = copiedType(copy);
    auto tile = RankedTensorType::get(type.getShape(), type.getElementType());
    Value read;
    if (auto gather = dyn_cast<GatherSharedOp>(copy))
      read = GatherOp::create(b, copy->getLoc(), tile, gather.getPtr(), gather.getOffsets(), gather.getMask(),
                              /*other=*/Value(), CacheHint::none);
    else
      read = LoadOp::create(b, copy->getLoc(), tile, cast<LoadSharedOp>(copy).getView(),
                            cast<LoadSharedOp>(copy).getIndices(), /*pad=*/FloatAttr(), CacheHint::none);
    auto share = ShareOp::create(b, copy->getLoc(), type, read);
    copy->replaceAllUsesWith(share);
    copy->erase();
  }

  /// Decides which copies are made by threads of the producer. False, with a remark, if some can be made neither by
  /// them nor in bulk.
  bool sortCopies(const Facts& facts) {
    bool fine = true;
    byThreads_.clear();
    llvm::SmallSetVector<Operation*, 4> once;
    func_.walk([&](Operation* op) {
      if (!fine || !isSharedCopy(op)) return;
      SmemType type = copiedType(op);
      auto load = dyn_cast<LoadSharedOp>(op);
      const SmallVector<int64_t, 2> box = copiedShape(op);
      std::string why = "a tile gathered through pointers is not a box of a view";
      if (ArrayRef<int64_t>(box) != type.getShape()) {
        fine = false;
        remark(op) << "products read a tile of " << box[0] << "x" << box[1] << " as " << type.getShape()[0] << "x"
                   << type.getShape()[1];
      } else if (!load || !isBox(load, facts, &why)) {
        const bool isTile = !load || (load.getBox().size() == 2 && load.getView().getType().getRank() >= 2);
        if (!isAsked_ && isTile && !op->getParentOfType<LoopLikeOpInterface>()) return void(once.insert(op));
        byThreads_.insert(op);
        if (isAsked_ || (isAlone_ && isTile)) return;
        fine = false;
        remark(op) << why << (load ? "" : ": a loop that asks for `specialize` gets a producer that gathers");
      }
    });
    if (!fine) return false;
    // Tiles that consumers share are transposed by them, and all tiles are if the producer's warps, which could
    // transpose them, copy.
    llvm::DenseSet<Operation*> unfolded = turned_;
    if (byThreads_.empty()) llvm::set_intersect(unfolded, once);
    if (!unfolded.empty()) {
      unfoldTurns(unfolded);
      llvm::set_subtract(turned_, unfolded);
      return sortCopies(facts);
    }
    for (Operation* op : once) leaveToConsumers(op);
    return true;
  }

  /// Registers that a thread of the producer needs to copy its part of all tiles, or to transpose tiles. 0: a single
  /// thread does everything.
  int addressRegisters(const RoleSlice& slice) const {
    if (byThreads_.empty()) return turned_.empty() ? 0 : kTurnerRegisters;
    constexpr int64_t kChunk = 16, kThreads = 128;
    constexpr int kOther = 56;  ///< cursors, loop counters, bounds, intermediate values of addresses
    int64_t chunks = 0, rows = 1;
    for (Operation* copy : byThreads_) {
      SmemType type = copiedType(copy);
      const int64_t width = type.getShape()[type.getMinor()], height = type.getShape()[1 - type.getMinor()];
      const int64_t perRow = std::max<int64_t>(1, width * type.elementBytes() / kChunk);
      chunks += std::max<int64_t>(1, height * perRow / kThreads);
      rows = std::max(rows, height / std::max<int64_t>(1, kThreads / perRow));
    }
    return static_cast<int>(kOther + 2 * std::min<int64_t>(chunks, 16) + rows * slice.registersPerRow());
  }

  void tellWishes(const MemoryPlan& memory) {
    for (const RingPlan& ring : memory.rings)
      if (ring.stages < ring.wished)
        emitRemark(ring.loc) << "pipelined with " << ring.stages << " stages: " << ring.wished << " of "
                             << ring.bytesPerStage << " bytes do not fit the " << memory.limit
                             << " bytes of shared memory";
  }

  void tellRegisters(const RegisterEstimate& estimate, const RolePlan& roles) {
    if (estimate.registers + RegisterEstimate::kOther > roles.consumerRegs)
      estimate.at->emitRemark() << "tiles alive here need about " << estimate.registers
                                << " registers of each thread, which has " << roles.consumerRegs
                                << ": expect spills, or use smaller tiles or more warps";
  }

  func::FuncOp func_;
  const Target& target_;
  const CompileOptions& options_;
  bool isAsked_ = false;  ///< some loop around copies has the hint
  bool storesAsComputed_ = false;  ///< of the plan that is being made
  std::optional<RegisterEstimate> spilling_;  ///< a plan was refused: its one warpgroup on the multiprocessor spills
  bool isAlone_ = false;  ///< a multiprocessor would hold one program only, with or without roles
  llvm::DenseSet<Operation*> byThreads_, turned_;
};

class SpecializePass : public PassWrapper<SpecializePass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SpecializePass)
  SpecializePass(TargetOf target, OptionsOf options) : target_(std::move(target)), options_(std::move(options)) {}
  StringRef getArgument() const override { return "tile-specialize"; }
  StringRef getDescription() const override {
    return "divide a kernel into a producer that copies and consumers that compute";
  }
  void runOnOperation() override { Specializer(getOperation(), target_(), options_()).run(); }

 private:
  TargetOf target_;
  OptionsOf options_;
};

}  // namespace

std::unique_ptr<Pass> createSpecializePass(TargetOf target, OptionsOf options) {
  return std::make_unique<SpecializePass>(std::move(target), std::move(options));
}

}  // namespace tile::ir
