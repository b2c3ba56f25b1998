// fetch_ahead.cpp - starts loads of loops one or more iterations before they are needed.
// Before: the value level of place_operands; loads and gathers inside loops that are no operands themselves.
// After:  1. What an operand is computed from by elementwise work, reductions and tables alone (weights with scales,
//            rows with norms or scaled by their own largest number, 8-bit floats to be widened, 4-bit numbers that are
//            looked up) is copied to shared memory, where copies run ahead, and read back from there.
//         2. Such loads that cannot be copied stay loads into registers, one iteration early (load_ahead.h); of
//            gathers, those of words that several elements share. The same goes for boxes that a loop of products
//            updates in place, moving by whole boxes (`y += a b`, block by block), and for small tiles gathered beside
//            operands (factors of rows and groups, zero points).
//         3. In a loop without products whose `tile.stages` asks for copies in flight, all loads are copied.
//         4. Where such a loop gathers at addresses that it loads, or under flags that it loads (a filter reads one
//            column before it reads the rows that pass), these addresses or flags are loaded an iteration early: one
//            latency instead of two. So are places that it, or a branch in it, stores to, and what branches ask.
//         5. Where such a loop writes in every iteration, which the assembler moves no load across, its loads come as
//            many iterations early as a few registers can hold: otherwise a state that is stepped through time would
//            wait for the row of every step. Boxes that it updates in place come as early, if it moves by whole boxes,
//            up or down.
//         6. Small boxes, and rows by pointers, of loops in which threads exchange elements come an iteration early.
// If all copies of the kernel can be bulk copies, and loops repeat some, only those are made: a single other copy would
// cost the kernel its roles.
#include "compiler/analysis/facts.h"
#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/products.h"
#include "compiler/dialect/tiles.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/overlap/load_ahead.h"
#include "compiler/gpu/products/unroll_loops.h"
#include "compiler/gpu/rings/register_plan.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of a thread that boxes that are updated may hold: they would from the start of the iteration anyway.
constexpr int64_t kMostUpdateRegisters = 32;
/// Registers of a thread for one tile of factors beside operands, where it is no vector.
constexpr int64_t kMostOfFactors = 4;

class Fetcher {
 public:
  Fetcher(func::FuncOp func, const Target& target) : func_(func), target_(target), facts_(func) {
    warps_ = warpsOf(func, kUsualWarps);
    if (target.hasTma) copies_ = bulkCopies();
    // Nobody would compute while a program without roles waits for what it gathers.
    isAlone_ = copies_ == BulkCopies::once && 2 * target.lanes * warps_ *
                       estimateRegisters(func, static_cast<int>(warps_)).needed() > target.registersPerSm;
  }

  void run() {
    SmallVector<scf::ForOp> loops;
    func_.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      llvm::SetVector<Operation*> loads = hasProduct(loop) ? loadsOfOperands(loop) : loadsOfStagedLoop(loop);
      bulk_ = copies_ != BulkCopies::none && !(isAlone_ && areOfManyPlaces(loads.getArrayRef()));
      int64_t bytes = 0;
      for (Operation* op : loads) bytes += tileBytes(op->getResult(0).getType());
      isAsked_ = !hasProduct(loop) && loadsOfAddresses(loop).empty() && 2 * bytes <= target_.maxSharedBytes;
      // A gather is worth its room in shared memory only where nothing else has to be waited for.
      gathers_ = llvm::all_of(loads, [&](Operation* op) { return !isa<GatherOp>(op) || canFetch(cast<GatherOp>(op)); });
      llvm::SetVector<Operation*> early;
      for (Operation* load : loads)
        if (!fetch(load)) early.insert(load);
      if (!hasProduct(loop)) early = comeEarly(loop, loadsOfAddresses(loop));
      SmallVector<Operation*> updates;
      if (hasProduct(loop)) updates = loadsOfUpdates(loop);
      if (!hasProduct(loop) && early.empty()) {
        if (loadFarAhead(loop)) continue;
        updates = loadsOfUpdates(loop);
        early = smallLoadsBesideMeetings(loop, updates);
        if (early.empty()) continue;
      }
      loadEarly(loop, early.getArrayRef(), updates,
                hasProduct(loop) ? factorsBeside(loop, loads) : SmallVector<Operation*>());
    }
  }

 private:
  /// Whether all copies of the kernel can be bulk copies, and whether loops repeat any: others (the query's rows) give
  /// the kernel no roles.
  enum class BulkCopies { none, once, repeated };
  BulkCopies bulkCopies() {
    BulkCopies found = BulkCopies::none;
    bool others = false;
    func_.walk([&](Operation* op) {
      others |= isa<GatherSharedOp>(op);
      auto copy = dyn_cast<LoadSharedOp>(op);
      if (!copy) return;
      const bool isRepeated = copy->getParentOfType<LoopLikeOpInterface>() != nullptr;
      found = std::max(found, isRepeated ? BulkCopies::repeated : BulkCopies::once);
      others |= !tmaBox(copy, facts_);
    });
    return others ? BulkCopies::none : found;
  }

  /// Whether the matrices among the loads are all gathered, of many places each.
  bool areOfManyPlaces(ArrayRef<Operation*> loads) const {
    auto isMatrix = [](Operation* op) { return tileTypeOrNone(op->getResult(0)).getRank() == 2; };
    return llvm::any_of(loads, isMatrix) && llvm::all_of(loads, [&](Operation* op) {
             auto gather = dyn_cast<GatherOp>(op);
             return !isMatrix(op) || (gather && gather.getOffsets() && isOfManyPlaces(gather));
           });
  }

  /// Whether the places of a gather are computed from several loaded numbers (pages of a cache), not from one for all of
  /// it: that is a box, with few addresses in the registers of a second program.
  bool isOfManyPlaces(GatherOp gather) const {
    SmallVector<Value> pending{gather.getOffsets()};
    llvm::DenseSet<Value> seen;
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      Operation* op = value.getDefiningOp();
      const RankedTensorType type = tileTypeOrNone(value);
      if (!op || !type || !seen.insert(value).second) continue;
      if (auto from = dyn_cast<GatherOp>(op)) {
        if (!from.getOffsets()) continue;
        const AxisFacts places = facts_.of(from.getOffsets());
        for (auto [size, alike] : llvm::zip(type.getShape(), places.constancy))
          if (alike < size) return true;
      } else if (!isa<LoadOp>(op) && !op->getNumRegions()) {
        pending.append(op->operand_begin(), op->operand_end());
      }
    }
    return false;
  }

  /// Loads of the loop's own body that operands computed in it, or in its branches, are made from. An operand with
  /// anything else in it (a product, a value from the iteration before) does not wait for its loads alone: there is
  /// other work meanwhile.
  llvm::SetVector<Operation*> loadsOfOperands(scf::ForOp loop) {
    llvm::SetVector<Operation*> all;
    auto add = [&](Value operand) {
      llvm::SetVector<Operation*> loads;
      llvm::DenseSet<Value> seen;
      if (tileTypeOrNone(operand) && madeOfLoads(loop, operand, loads, seen)) all.insert(loads.begin(), loads.end());
    };
    loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation* op) {
      if (isa<LoopLikeOpInterface>(op)) return WalkResult::skip();
      if (auto share = dyn_cast<ShareOp>(op)) add(share.getSource());
      if (auto product = dyn_cast<MmaOp>(op)) add(product.getA());  // kept in registers
      if (auto product = dyn_cast<BatchMmaOp>(op)) add(product.getA()), add(product.getB());
      return WalkResult::advance();
    });
    return all;
  }

  /// Where 8-bit floats are converted in software, that is the work to overlap, and it needs the registers.
  bool isWidenedQuickly(Operation* load) const {
    return target_.sm >= 89 ||
           !isa<Float8E4M3FNType, Float8E5M2Type>(getElementTypeOrSelf(load->getResult(0).getType()));
  }

  bool madeOfLoads(scf::ForOp loop, Value value, llvm::SetVector<Operation*>& loads, llvm::DenseSet<Value>& seen) {
    if (!loop.getRegion().isAncestor(value.getParentRegion()) || !tileTypeOrNone(value)) return true;
    if (!seen.insert(value).second) return true;  // looked at: one that is made of something else ends the search
    Operation* op = value.getDefiningOp();
    if (!op || op->getParentOfType<LoopLikeOpInterface>() != loop) return false;
    if (isa<LoadOp, GatherOp>(op))
      return op->getBlock() == loop.getBody() && isWidenedQuickly(op) && (loads.insert(op), true);
    if (!isElementwise(op) &&
        !isa<arith::ConstantOp, BroadcastOp, ReshapeOp, TransOp, SplatOp, CatOp, ExtractOp, TakeOp, IotaOp, ReduceOp,
             ScanOp>(op))
      return false;
    return llvm::all_of(op->getOperands(), [&](Value v) { return madeOfLoads(loop, v, loads, seen); });
  }

  llvm::SetVector<Operation*> loadsOfStagedLoop(scf::ForOp loop) {
    llvm::SetVector<Operation*> loads;
    auto stages = loop->getAttrOfType<IntegerAttr>("tile.stages");
    const bool hasInner =
        loop.getBody()->walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
    if (!stages || stages.getInt() < 2 || hasInner) return loads;
    for (Operation& op : *loop.getBody())
      if (isa<LoadOp, GatherOp>(op) && tileTypeOrNone(op.getResult(0))) loads.insert(&op);
    return loads;
  }

  /// Loads of the loop's own body that say where it, or a branch in it, reads or writes elsewhere, or whether it does.
  static llvm::SetVector<Operation*> loadsOfAddresses(scf::ForOp loop) {
    llvm::SetVector<Operation*> all;
    loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation* op) {
      if (isa<LoopLikeOpInterface>(op)) return WalkResult::skip();
      if (!isa<LoadOp, StoreOp, GatherOp, ScatterOp, AtomicRmwOp>(op)) return WalkResult::advance();
      SmallVector<Value> pending;
      if (auto load = dyn_cast<LoadOp>(op)) pending.append(load.getIndices().begin(), load.getIndices().end());
      if (auto store = dyn_cast<StoreOp>(op)) pending.append(store.getIndices().begin(), store.getIndices().end());
      if (auto gather = dyn_cast<GatherOp>(op))
        pending.append({gather.getPtr(), gather.getOffsets(), gather.getMask()});
      if (auto scatter = dyn_cast<ScatterOp>(op)) pending.append({scatter.getPtr(), scatter.getOffsets()});
      if (auto add = dyn_cast<AtomicRmwOp>(op)) pending.append({add.getPtr(), add.getOffsets()});
      for (Operation* around = op->getParentOp(); around != loop; around = around->getParentOp())
        if (auto branch = dyn_cast<scf::IfOp>(around)) pending.push_back(branch.getCondition());
      llvm::DenseSet<Value> seen;
      while (!pending.empty()) {
        Value value = pending.pop_back_val();
        Operation* from = value ? value.getDefiningOp() : nullptr;
        if (!from || !loop->isProperAncestor(from) || !seen.insert(value).second) continue;
        if (isa<LoadOp, GatherOp>(from)) {
          if (from->getBlock() == loop.getBody()) all.insert(from);
        } else if (isMemoryEffectFree(from) && !from->getNumRegions()) {
          pending.append(from->operand_begin(), from->operand_end());
        }
      }
      return WalkResult::advance();
    });
    return all;
  }

  /// Those that can come early: one that cannot (it needs another load of the loop, or the loop writes there) would keep
  /// the others from it.
  static llvm::SetVector<Operation*> comeEarly(scf::ForOp loop, llvm::SetVector<Operation*> loads) {
    loads.remove_if([&](Operation* load) { return !isKnownEarly(load, loop); });
    return loads;
  }

  /// How far an index moves on from one iteration to the next: counted up, or down from where it begins (`n - 1 - i`).
  static std::optional<int64_t> advance(scf::ForOp loop, Value index, int depth = 0) {
    if (loop.isDefinedOutsideOfLoop(index)) return 0;
    APInt step;
    if (index == loop.getInductionVar())
      return matchPattern(loop.getStep(), m_ConstantInt(&step)) ? std::optional(step.getSExtValue()) : std::nullopt;
    Operation* op = index.getDefiningOp();
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) return std::nullopt;
    constexpr int kDeepest = 10;  // sums of sums have 2^depth ways to the counter
    if (depth == kDeepest) return std::nullopt;
    const auto left = advance(loop, op->getOperand(0), depth + 1);
    const auto right = left ? advance(loop, op->getOperand(1), depth + 1) : std::nullopt;
    if (!right) return std::nullopt;
    return isa<arith::AddIOp>(op) ? *left + *right : *left - *right;
  }

  /// Loads of boxes that the loop writes to, each where it read it, and steps over: what it reads next nobody has
  /// written. `byRows`: it goes from row to row, so that a thread keeps its columns and waits for no other's.
  static SmallVector<Operation*> loadsOfUpdates(scf::ForOp loop, bool byRows = false) {
    SmallVector<Operation*> all;
    auto isUpdate = [&](LoadOp load, StoreOp store) {
      if (store.getView() != load.getView() || store.getIndices() != load.getIndices() ||
          store.getValue().getType() != load.getType())
        return false;
      const auto indices = load.getIndices();
      const ArrayRef<int64_t> shape = cast<RankedTensorType>(load.getType()).getShape();
      const size_t lead = indices.size() - shape.size();
      bool steps = false;
      for (auto [d, index] : llvm::enumerate(indices)) {
        const auto moves = advance(loop, index);
        if (!moves) return false;
        const int64_t size = d < lead ? 1 : shape[d - lead];
        if (byRows && *moves && size > 1) return false;
        steps |= std::abs(*moves) >= size;
      }
      return steps && loop.isDefinedOutsideOfLoop(load.getView());
    };
    for (auto load : loop.getBody()->getOps<LoadOp>()) {
      const MemoryRoot root = rootOf(load.getView());
      if (!root || !tileTypeOrNone(load.getResult()) || isVolatile(load)) continue;
      bool updates = false, others = false;
      loop.walk([&](Operation* op) {
        if (!writesGlobal(op)) return;
        auto store = dyn_cast<StoreOp>(op);
        if (store && store->getBlock() == loop.getBody() && isUpdate(load, store))
          updates = true;
        else
          others |= !rootOf(addressOf(op)).isApartFrom(root);
      });
      if (updates && !others) all.push_back(load);
    }
    return all;
  }

  /// A vector, or so few elements of each row that they are as few registers (factors of groups).
  bool isSmall(GatherOp gather) const {
    const RankedTensorType type = tileTypeOrNone(gather.getResult());
    return llvm::count_if(type.getShape(), [](int64_t size) { return size > 1; }) <= 1 ||
           type.getNumElements() * type.getElementTypeBitWidth() <= kMostOfFactors * 32 * 32 * warps_;
  }
  /// Small tiles that the loop gathers beside its operands, where products leave registers: vectors of floats (factors
  /// of rows), and what operands are made of (zero points of groups).
  SmallVector<Operation*> factorsBeside(scf::ForOp loop, const llvm::SetVector<Operation*>& loads) const {
    SmallVector<Operation*> all;
    if (!target_.hasWgmma) return all;
    for (auto gather : loop.getBody()->getOps<GatherOp>()) {
      const RankedTensorType type = tileTypeOrNone(gather.getResult());
      if (!type) continue;
      const bool isOfRows = type.getRank() <= 1 && isa<FloatType>(type.getElementType());
      const bool isFactor = isOfRows || (loads.contains(gather) && isSmall(gather));
      if (isFactor && isKnownEarly(gather, loop)) all.push_back(gather);
    }
    return all;
  }

  // ---- through shared memory

  /// Tiles of offsets of one dim are better off in registers, but where a loop without products asks for stages and
  /// they are copied in words.
  bool canFetch(GatherOp gather) const {
    RankedTensorType type = tileTypeOrNone(gather.getResult());
    if (bulk_ || !gather.getOffsets() || isVolatile(gather) || type.getRank() < 1 || type.getRank() > 2) return false;
    const int bytes = elementBytes(type);
    const AccessWidth width = offsetWidth(facts_, gather.getPtr(), gather.getOffsets(), gather.getMask(), bytes);
    const bool isInWords = std::min(width.aligned, width.masked) * bytes >= 4;
    // What is no copy of words passes registers on its way: what several elements share would once for each of them.
    // Words that several share are few where they are held.
    if (type.getRank() == 2 && !gather.getOther() && type.getElementTypeBitWidth() <= 32) {
      const bool isOwn = elementsAlike(gather, facts_) == 1;
      return type.getElementTypeBitWidth() <= 16 ? isInWords || isOwn : isInWords && isOwn;
    }
    return isAsked_ && type.getElementTypeBitWidth() >= 8 && isInWords;
  }

  /// Replaces the load by a copy to shared memory and a read of it; false where that is not possible.
  bool fetch(Operation* op) {
    Value value = op->getResult(0);
    SmallVector<int64_t> shape(tileTypeOrNone(value).getShape());
    if (shape.size() == 1) shape.insert(shape.begin(), 1);
    Type element = tileTypeOrNone(value).getElementType();
    // One element is a load of every thread: a copy has an address, a bound and a read more.
    const bool isOne = tileTypeOrNone(value).getNumElements() == 1 && !bulk_;
    if (shape.size() != 2 || isOne || element.getIntOrFloatBitWidth() < 8) return false;
    OpBuilder b(op);
    Value smem;
    if (auto load = dyn_cast<LoadOp>(op)) {
      const int64_t rank = load.getView().getType().getRank();
      // Rows of vectors (factors of columns) come beside the operands they are for, by bulk copies only.
      if ((rank < 2 && !bulk_) || isVolatile(load) || (load.getPad() && !load.getPad()->isZero())) return false;
      const int64_t minor = rank < 2 ? 1 : facts_.unitStrideDim(load.getView()) - (rank - 2);
      auto type = SmemType::get(op->getContext(), shape, element, minor == 0 ? 0 : 1, 1);
      if (bulk_ && !isBulkLoad(load, type, facts_)) return false;
      smem = LoadSharedOp::create(b, op->getLoc(), type, load.getView(), load.getIndices(), shape, load.getCache());
    } else {
      auto gather = cast<GatherOp>(op);
      if (!gathers_ || !canFetch(gather)) return false;
      AxisFacts axis = facts_.of(gather.getOffsets());
      const int minor = axis.contiguity.size() == 2 && axis.contiguity[0] > axis.contiguity[1] ? 0 : 1;
      auto type = SmemType::get(op->getContext(), shape, element, minor, 1);
      auto asRow = [&](Value tile) -> Value {
        if (!tile || tileTypeOrNone(tile).getRank() == 2) return tile;
        return ReshapeOp::create(b, op->getLoc(), tileTypeOrNone(tile).clone(shape), tile);
      };
      smem = GatherSharedOp::create(b, op->getLoc(), type, gather.getPtr(), asRow(gather.getOffsets()),
                                    asRow(gather.getMask()), gather.getCache());
    }
    Value tile = SmemLoadOp::create(b, op->getLoc(), RankedTensorType::get(shape, element), smem);
    if (tile.getType() != value.getType()) tile = ReshapeOp::create(b, op->getLoc(), value.getType(), tile);
    if (auto gather = dyn_cast<GatherOp>(op); gather && gather.getMask() && gather.getOther())
      tile = arith::SelectOp::create(b, op->getLoc(), gather.getMask(), tile, gather.getOther());
    value.replaceAllUsesWith(tile);
    op->erase();
    return true;
  }

  // ---- in registers

  /// Iterations that what loops that write read comes early at most, and of how many there are.
  static constexpr int64_t kMostAhead = 8, kLeastTrips = 4;
  /// Registers of a thread that all loads of a loop come to which come early although nothing else would need it.
  static constexpr int64_t kMostSmall = 8;
  /// Registers of a thread that such a loop may hold besides what it computes with, as it is and unrolled.
  static constexpr int64_t kMostState = 128, kMostUnrolledState = 64;

  /// What a loop that writes reads, all of it, several iterations early; false where some cannot come, or are too many.
  bool loadFarAhead(scf::ForOp loop) {
    bool writes = false;
    int64_t registers = 0;
    SmallVector<Operation*> loads;
    const SmallVector<Operation*> updates = loadsOfUpdates(loop, /*byRows=*/true);
    for (Operation& op : *loop.getBody()) {
      // Where lanes or warps wait for each other an iteration is long, and unrolled it would take many registers.
      if (op.getNumRegions() || isa<TakeOp>(op)) return false;
      writes |= writesGlobal(&op);
      if (!isa<LoadOp, GatherOp>(op)) continue;
      if (!tileTypeOrNone(op.getResult(0)) || isVolatile(&op) || !isKnownEarly(&op, loop, updates)) return false;
      // Tiles of fewer elements than there are threads are held by several.
      const RankedTensorType type = tileTypeOrNone(op.getResult(0));
      const int64_t threads = 32 * warps_;
      if (type.getNumElements() < threads && llvm::is_contained(updates, &op)) return false;  // they would meet
      registers += type.getNumElements() < threads
                       ? 2
                       : llvm::divideCeil(type.getNumElements() * type.getElementTypeBitWidth(), 32 * threads);
      loads.push_back(&op);
    }
    if (!writes || loads.empty()) return false;
    int64_t state = 0;  // registers of what the loop carries: where they are many, unrolling would cost programs
    for (Value init : loop.getInitArgs())
      if (RankedTensorType type = tileTypeOrNone(init))
        state += llvm::divideCeil(type.getNumElements() * type.getElementTypeBitWidth(), 32 * 32 * warps_);
    // What carries nothing is as often many programs' work as that of many steps.
    if (state == 0 || state + registers > kMostState) return false;
    int64_t distance = std::min(kMostAhead, kMostEarlyRegisters / registers);
    distance = std::min(distance, std::max<int64_t>(1, (kMostUnrolledState - state) / registers));
    if (std::optional<APInt> trips = loop.getStaticTripCount())
      distance = std::min<int64_t>(distance, trips->getZExtValue() / kLeastTrips);
    if (auto asked = loop->getAttrOfType<IntegerAttr>(kUnrollAttr))  // whoever asks for a number gets that
      distance = std::min(distance, asked.getInt());
    if (distance < 1) return false;
    loop = loadAhead(loop, loads, updates, distance);
    if (loop && distance > 1) {  // now: for these loops two are enough
      loop->removeAttr(kHeldAttr);
      unrollBy(loop, distance);
    }
    return true;
  }

  /// The loop only adds the result to what it carries: threads can combine that behind the loop.
  static bool isAccumulated(ReduceOp reduce, scf::ForOp loop) {
    return llvm::all_of(reduce.getResults(), [&](Value result) {
      if (!result.hasOneUse()) return false;
      Operation* user = *result.getUsers().begin();
      const bool addsToCarried =
          llvm::any_of(user->getOperands(), [&](Value v) { return llvm::is_contained(loop.getRegionIterArgs(), v); });
      return addsToCarried && user->hasOneUse() && (*user->getUsers().begin())->hasTrait<OpTrait::IsTerminator>();
    });
  }

  /// A row that moves with the loop: at places that stay, from a pointer that the loop moves on.
  static bool isRow(GatherOp gather, scf::ForOp loop) {
    auto stays = [&](Value v) { return !v || loop.isDefinedOutsideOfLoop(v); };
    return tileTypeOrNone(gather.getResult()) && stays(gather.getOffsets()) && stays(gather.getMask()) &&
           stays(gather.getOther()) && !stays(gather.getPtr());
  }

  /// Small boxes, and rows by pointers, of a loop in which threads combine what they have (a row of a query, then sums
  /// over rows that stay; running sums down columns, in place): the assembler moves no load across a barrier, and every
  /// iteration would begin with the latency of memory.
  llvm::SetVector<Operation*> smallLoadsBesideMeetings(scf::ForOp loop, ArrayRef<Operation*> updates) const {
    llvm::SetVector<Operation*> all;
    bool meets = false;
    int64_t registers = 0;
    for (Operation& op : *loop.getBody()) {
      if (isa<ReduceOp, ScanOp>(op))
        meets |= isa<ScanOp>(op) || !isAccumulated(cast<ReduceOp>(op), loop);
      else if ((op.getNumRegions() && !isa<scf::IfOp>(op)) || (isa<GatherOp>(op) && !isRow(cast<GatherOp>(op), loop)))
        return {};
      if (!isa<LoadOp, GatherOp>(op)) continue;
      if (!isKnownEarly(&op, loop, updates) || isVolatile(&op)) return {};
      registers += registersHeld(&op, warps_, facts_);
      all.insert(&op);
    }
    if (!meets || registers > kMostSmall) all.clear();
    return all;
  }

  /// Loads for the next iteration at the top of this one.
  void loadEarly(scf::ForOp loop, ArrayRef<Operation*> candidates, ArrayRef<Operation*> updates,
                 ArrayRef<Operation*> factors) {
    SmallVector<Operation*> loads;
    int64_t registers = 0, held = 0;
    for (Operation* op : candidates) {
      if (!isa<LoadOp, GatherOp>(op) || isVolatile(op)) continue;
      // Beside products, of gathers, only words that several elements share: few addresses, few registers.
      if (isa<GatherOp>(op) && hasProduct(loop) && elementsAlike(op, facts_) == 1) continue;
      registers += registersHeld(op, warps_, facts_);
      if (registers <= kMostEarlyRegisters) loads.push_back(op);
    }
    const int64_t results = registersOfResults(loop, warps_, facts_);
    // While a load too large to come early is waited for, factors are free: not worth pointers that run ahead.
    const bool waits = llvm::any_of(loop.getBody()->getOperations(), [&](Operation& op) {
      return isa<LoadOp, GatherOp>(op) && tileTypeOrNone(op.getResult(0)) && !llvm::is_contained(loads, &op) &&
             !llvm::is_contained(updates, &op) && registersHeld(&op, warps_, facts_) > kMostEarlyRegisters;
    });
    for (Operation* op : factors) {
      if (waits && walks(op, loop)) continue;
      registers += registersHeld(op, warps_, facts_);
      const bool fits = registers <= kMostEarlyRegisters && results + registers <= kMostBesideProducts;
      if (fits && !isVolatile(op) && !llvm::is_contained(loads, op)) loads.push_back(op);
    }
    for (Operation* op : updates) {
      held += registersHeld(op, warps_, facts_);
      const bool fits = held <= kMostUpdateRegisters && results + held <= kMostBesideProducts;
      if (fits && !llvm::is_contained(loads, op)) loads.push_back(op);
    }
    loadAhead(loop, loads, updates);
  }

  func::FuncOp func_;
  const Target& target_;
  Facts facts_;
  int64_t warps_;
  bool isAsked_ = false;  ///< the loop at hand has no product, looks nothing up, and two stages fit
  bool gathers_ = false;  ///< those of the loop at hand can all be fetched
  BulkCopies copies_ = BulkCopies::none;
  bool isAlone_;       ///< without roles: a multiprocessor holds one program
  bool bulk_ = false;  ///< every copy of the kernel can be a bulk copy, and those of the loop at hand are to be
};

class FetchAheadPass : public PassWrapper<FetchAheadPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FetchAheadPass)
  explicit FetchAheadPass(TargetOf target) : target_(std::move(target)) {}
  StringRef getArgument() const override { return "tile-fetch-ahead"; }
  StringRef getDescription() const override { return "start loads of loops iterations before they are needed"; }
  void runOnOperation() override { Fetcher(getOperation(), target_()).run(); }

 private:
  TargetOf target_;
};

}  // namespace

std::unique_ptr<Pass> createFetchAheadPass(TargetOf target) {
  return std::make_unique<FetchAheadPass>(std::move(target));
}

}  // namespace tile::ir
