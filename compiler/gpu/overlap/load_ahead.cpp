// load_ahead.cpp - loads an iteration early, and the pass that finds the loads that no other pass takes care of: small
// boxes, and rows by pointers, that products' loops read beside their operands (what a product is subtracted from,
// factors of rows), and what recurrences read, whose operands stay on the chip.
// Before: kernels without roles, in front of stage; copies of operands will run ahead.
// After:  such loops carry the boxes of the next iteration in registers, or of as many iterations as the operands'
//         copies run ahead, if registers hold them all. Otherwise the latency of these loads would be that of the loop
//         (H200, a recurrent layer of 64 or 128 columns: 1.4 to 1.6 times as fast, with async_plan.cpp's part in it).
#include "compiler/gpu/overlap/load_ahead.h"

#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/tiles.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/rings/copy_slice.h"
#include "compiler/gpu/rings/ring_groups.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// The load under `map`. A gather reads nothing unless `exists`, the iteration it is for.
Value loadFor(OpBuilder& b, Operation* op, IRMapping map, Value exists) {
  auto gather = dyn_cast<GatherOp>(op);
  if (!gather) return b.clone(*op, map)->getResult(0);
  Location loc = op->getLoc();
  auto at = [&](Value v) { return v ? map.lookupOrDefault(v) : Value(); };
  Value mask = exists;
  if (auto tile = tileTypeOrNone(op->getResult(0)))
    mask = SplatOp::create(b, loc, RankedTensorType::get(tile.getShape(), b.getI1Type()), mask);
  if (gather.getMask()) mask = arith::AndIOp::create(b, loc, mask, at(gather.getMask()));
  return GatherOp::create(b, loc, op->getResult(0).getType(), at(gather.getPtr()), at(gather.getOffsets()), mask,
                          at(gather.getOther()), gather.getCache());
}

}  // namespace

int64_t registersHeld(Operation* op, int64_t warps, const Facts& facts) {
  auto type = tileTypeOrNone(op->getResult(0));
  const int64_t bits = type ? type.getNumElements() * type.getElementTypeBitWidth() : 32;
  return std::max<int64_t>(2, bits / (32 * 32 * warps * elementsAlike(op, facts)));
}

int64_t registersOfResults(scf::ForOp loop, int64_t warps, const Facts& facts) {
  int64_t results = 0;
  loop.walk([&](MmaOp product) { results += registersHeld(product, warps, facts); });
  return results;
}

namespace {

bool canRunEarly(const CopySlice& slice, ArrayRef<Operation*> loads, scf::ForOp loop) {
  // Of iterations that do not exist, boxes are loaded, too: their bounds hold where the view stays. A view that is made
  // in the loop may lie behind everything there is. Tiles that move on would be held twice.
  if (llvm::any_of(loads, [&](Operation* op) {
        auto load = dyn_cast<LoadOp>(op);
        return load && !loop.isDefinedOutsideOfLoop(load.getView());
      }))
    return false;
  return slice.obstacle().empty() && !slice.needsGuard() &&
         llvm::none_of(slice.carried(), [&](unsigned i) { return tileTypeOrNone(loop.getRegionIterArg(i)); });
}

}  // namespace

bool isKnownEarly(Operation* load, scf::ForOp loop, ArrayRef<Operation*> updates) {
  return canRunEarly(CopySlice(loop, {load}, updates), load, loop);
}

bool walks(Operation* load, scf::ForOp loop) { return !CopySlice(loop, {load}).carried().empty(); }

scf::ForOp loadAhead(scf::ForOp loop, ArrayRef<Operation*> loads, ArrayRef<Operation*> updates, int64_t distance) {
  if (loads.empty()) return {};
  CopySlice slice(loop, loads, updates);
  if (!canRunEarly(slice, loads, loop)) return {};
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  // What the loop moves on and addresses depend on (a pointer that walks): the slice has its own, further on.
  SmallVector<Value> state;
  for (unsigned index : slice.carried()) state.push_back(loop.getInitArgs()[index]);
  const bool asks = llvm::any_of(loads, [](Operation* op) { return isa<GatherOp>(op); });
  auto emit = [&](OpBuilder& builder, Value iv, Value before, Value end) {
    SmallVector<Value> values(loads.size());
    Value exists;
    if (asks) exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, before, end);
    slice.emit(builder, iv, state, [&](OpBuilder& inner, Operation* copy, const IRMapping& map) {
      values[llvm::find(loads, copy) - loads.begin()] = loadFor(inner, copy, map, exists);
    });
    return values;
  };
  // An iteration that exists does not wrap; gathers of one that does not read nothing.
  const bool asksOnly = llvm::all_of(loads, [](Operation* op) { return isa<GatherOp>(op); });
  auto further = [&](OpBuilder& builder, Value iv) -> Value {
    for (int64_t step = 0; step < distance; ++step)
      iv = arith::AddIOp::create(builder, loc, iv, loop.getStep(),
                                 asksOnly ? arith::IntegerOverflowFlags::nsw : arith::IntegerOverflowFlags::none);
    return iv;
  };
  // Carried: what this iteration uses, then what the next one will, and so on; then where the slice is.
  const size_t first = loop.getInitArgs().size();
  SmallVector<Value> inits(loop.getInitArgs());
  // Compared with a counter that exists: one further on might not fit.
  Value at = loop.getLowerBound(), last = loop.getUpperBound();
  for (int64_t ahead = 0; ahead < distance; ++ahead) {
    inits.append(emit(b, at, loop.getLowerBound(), last));
    if (ahead + 1 < distance) at = arith::AddIOp::create(b, loc, at, loop.getStep());
    if (asks) last = arith::SubIOp::create(b, loc, last, loop.getStep());
  }
  const size_t places = inits.size();
  inits.append(state);
  auto made = scf::ForOp::create(b, loc, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits);
  made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block* body = made.getBody();
  if (!body->empty()) body->back().erase();
  OpBuilder in = OpBuilder::atBlockBegin(body);
  Value ahead = further(in, made.getInductionVar());
  // The slice reads the old body's values: it is copied before they move.
  const auto walking = made.getRegionIterArgs().drop_front(places);
  state.assign(walking.begin(), walking.end());
  SmallVector<Value> next = emit(in, ahead, made.getInductionVar(), last);
  for (size_t i = 0; i <= first; ++i) loop.getBody()->getArgument(i).replaceAllUsesWith(body->getArgument(i));
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  for (auto [i, load] : llvm::enumerate(loads)) {
    load->getResult(0).replaceAllUsesWith(made.getRegionIterArg(first + i));
    load->erase();
  }
  Operation* yield = body->getTerminator();
  SmallVector<Value> yielded(yield->getOperands());
  const auto carried = made.getRegionIterArgs().slice(first + loads.size(), (distance - 1) * loads.size());
  yielded.append(carried.begin(), carried.end());
  yielded.append(next.begin(), next.end());
  yielded.append(state);
  yield->setOperands(yielded);
  for (size_t i = 0; i < first; ++i) loop.getResult(i).replaceAllUsesWith(made.getResult(i));
  loop.erase();
  if (distance > 1) {
    auto held = made->getAttrOfType<IntegerAttr>(kHeldAttr);
    made->setAttr(kHeldAttr, b.getI64IntegerAttr(std::max(distance, held ? held.getInt() : 1)));
  }
  return made;
}

namespace {

class LoadAheadPass : public PassWrapper<LoadAheadPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LoadAheadPass)
  StringRef getArgument() const override { return "tile-load-ahead"; }
  StringRef getDescription() const override { return "load small boxes beside operands an iteration early"; }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    // Producers bring such boxes, or run ahead so far that consumers wait for nothing else.
    if (func.walk([](SpecializeOp) { return WalkResult::interrupt(); }).wasInterrupted()) return;
    const int warps = warpsOf(func);
    if (!warps) return;
    SmallVector<scf::ForOp> loops;
    func.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) runOn(loop, warps);
  }

 private:
  /// Registers of all results of products and of what is loaded, in loops that do not ask for copies in flight.
  static constexpr int64_t kMostUnasked = 64;
  /// Registers of what an iteration of a recurrence loads early: nothing of it is copied.
  static constexpr int64_t kMostOfRecurrence = 64;
  /// Registers of what an iteration loads early, words and all, that is short.
  static constexpr int64_t kMostOfShort = 8;

  /// The stages that copies of operands will have: two at least, unless the kernel asks for one.
  static int64_t stagesOf(scf::ForOp loop) {
    auto stages = loop->getAttrOfType<IntegerAttr>("tile.stages");
    return stages ? stages.getInt() : 2;
  }

  /// A loop of products all of whose operands' copies will run ahead.
  static bool isStaged(scf::ForOp loop) {
    const auto ops = [&](auto is) { return llvm::any_of(loop.getBody()->getOperations(), is); };
    return stagesOf(loop) > 1 && ops([](Operation& op) { return isa<MmaOp>(op); }) &&
           ops([](Operation& op) { return isSharedCopy(&op); }) &&
           !ops([](Operation& op) { return isa<LoopLikeOpInterface>(op); });
  }

  /// A loop of products of what the iteration before computed, whose other operands stay on the chip (a recurrence): it
  /// copies nothing, and all it loads has to wait for is the iteration's own work.
  static bool isRecurrence(scf::ForOp loop) {
    bool hasProduct = false, isCarried = false;
    for (Operation& op : *loop.getBody()) {
      if (isSharedCopy(&op) || isa<LoopLikeOpInterface>(op)) return false;
      auto product = dyn_cast<MmaOp>(op);
      if (!product) continue;
      hasProduct = true;
      isCarried |= isMadeOfCarried(product.getA(), loop) || isMadeOfCarried(product.getB(), loop);
    }
    return hasProduct && isCarried && stagesOf(loop) > 1;
  }

  /// Of a tile as large as itself, that is: rows of it (the sums and largest numbers of attention) do not keep the next
  /// iteration's loads waiting. Not of what was only loaded an iteration early.
  static bool isMadeOfCarried(Value operand, scf::ForOp loop) {
    auto elements = [](Value tile) {
      auto shared = dyn_cast<SmemType>(tile.getType());
      return shared ? shared.getShape()[0] * shared.getShape()[1] : tileTypeOrNone(tile).getNumElements();
    };
    SmallVector<Value> pending{operand};
    llvm::DenseSet<Value> seen;
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      if (!seen.insert(value).second || loop.isDefinedOutsideOfLoop(value)) continue;
      if (auto arg = dyn_cast<BlockArgument>(value)) {
        if (arg.getOwner() != loop.getBody() || !tileTypeOrNone(arg) || elements(arg) < elements(operand)) continue;
        if (!isa_and_nonnull<LoadOp, GatherOp>(loop.getTiedLoopYieldedValue(arg)->get().getDefiningOp())) return true;
      } else if (Operation* op = value.getDefiningOp(); !isa<LoadOp, GatherOp>(op)) {
        pending.append(op->operand_begin(), op->operand_end());
      }
    }
    return false;
  }

  /// Rows at places that stay, from a pointer that the loop moves on: few registers for addresses.
  static bool areRows(GatherOp gather, scf::ForOp loop) {
    return gather.getOffsets() && loop.isDefinedOutsideOfLoop(gather.getOffsets()) &&
           (!gather.getOther() || loop.isDefinedOutsideOfLoop(gather.getOther()));
  }

  /// How early loads come whose results take `registers` of a thread: as many iterations as the copies of operands,
  /// while no more than `most` are held for it; `held` is what an iteration holds with them.
  static int64_t iterationsEarly(scf::ForOp loop, int64_t registers, int64_t held, int64_t most = kMostEarlyRegisters) {
    const int64_t early = most / std::max<int64_t>(1, registers);
    int64_t distance = std::max<int64_t>(1, std::min(stagesOf(loop) - 1, early));
    while (distance > 1 && held + (distance - 1) * registers > kMostBesideProducts) --distance;
    return distance;
  }

  static bool canBeEarly(Operation* load, scf::ForOp loop) {
    if (auto gather = dyn_cast<GatherOp>(load); gather && !areRows(gather, loop)) return false;
    return !isVolatile(load) && isKnownEarly(load, loop);
  }

  static bool isForNextOnly(Operation* load) {
    return llvm::all_of(load->getUsers(), [](Operation* user) { return user->hasTrait<OpTrait::IsTerminator>(); });
  }

  /// Words that fetch_ahead loads an iteration early, where the kernel asks for copies in flight.
  static SmallVector<Operation*> wordsForNext(scf::ForOp loop, const Facts& facts) {
    SmallVector<Operation*> words;
    if (!loop->hasAttr("tile.stages")) return words;
    for (auto gather : loop.getBody()->getOps<GatherOp>())
      if (isForNextOnly(gather) && !isVolatile(gather) && elementsAlike(gather, facts) > 1 &&
          isKnownEarly(gather, loop))
        words.push_back(gather);
    return words;
  }

  static void runOn(scf::ForOp loop, int64_t warps) {
    const bool isRecurring = isRecurrence(loop);
    if (!isStaged(loop) && !isRecurring) return;
    const Facts facts(loop->getParentOfType<func::FuncOp>());
    SmallVector<Operation*> loads;
    int64_t held = registersOfResults(loop, warps, facts), registers = 0;
    const bool isAsked = loop->hasAttr("tile.stages");
    const int64_t most = isAsked || isRecurring ? kMostBesideProducts : kMostUnasked;
    const int64_t mostEarly = isRecurring ? kMostOfRecurrence : kMostEarlyRegisters;
    bool waits = false;  // for tiles that come as late as they are written
    for (Operation& op : *loop.getBody()) {
      if (!isa<LoadOp, GatherOp>(op)) continue;
      Operation* load = &op;
      // What only the next iteration uses is early already.
      if (!tileTypeOrNone(load->getResult(0)) || isForNextOnly(load)) continue;
      const int64_t own = registersHeld(load, warps, facts);
      if (!canBeEarly(load, loop) || registers + own > mostEarly || held + own > most) {
        waits = true;
        continue;
      }
      registers += own, held += own;
      loads.push_back(load);
    }
    // Latencies of loads run side by side: while one stays, the others are free. Only who asks for stages knows better.
    if (waits && !isAsked) return;
    if (waits)  // nor are pointers of their own worth registers then (a scan's output lost a third program to them)
      llvm::erase_if(loads, [&](Operation* load) {
        if (!walks(load, loop)) return false;
        const int64_t own = registersHeld(load, warps, facts);
        return registers -= own, held -= own, true;
      });
    const SmallVector<Operation*> words = wordsForNext(loop, facts);
    if (words.empty()) {
      loadAhead(loop, loads, {}, iterationsEarly(loop, registers, held));
      return;
    }
    // Of short iterations, words come as early as copies, too. Long ones hide one latency, and bodies of theirs would
    // be much code (unpacking a tile of 128 x 64, three took a tenth longer than one).
    int64_t all = registers;
    for (Operation* word : words) all += registersHeld(word, warps, facts);
    held += all - registers;
    const bool isShort = all <= kMostOfShort;
    const int64_t distance =
        isShort ? iterationsEarly(loop, all, held, 2 * kMostEarlyRegisters) : iterationsEarly(loop, registers, held);
    if (scf::ForOp made = loadAhead(loop, loads, {}, distance)) loop = made;
    if (isShort && distance >= kFewestHeld) {
      if (scf::ForOp made = loadAhead(loop, words, {}, distance - 1))
        made->setAttr(kHeldAttr, Builder(made.getContext()).getI64IntegerAttr(distance));
    } else {
      loop->removeAttr(kHeldAttr);
    }
  }
};

}  // namespace

std::unique_ptr<Pass> createLoadAheadPass() { return std::make_unique<LoadAheadPass>(); }

}  // namespace tile::ir
