// copied_loop.cpp - the ring of a loop whose copies to shared memory run ahead; stage.cpp describes it.
#include "compiler/gpu/overlap/copied_loop.h"

#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/forms/async_products.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/overlap/load_ahead.h"
#include "compiler/gpu/rings/ring_groups.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// The tile a copy or share puts into the buffer.
SmallVector<int64_t, 2> boxOf(Operation* op) {
  if (auto share = dyn_cast<ShareOp>(op))
    return SmallVector<int64_t, 2>(cast<ShapedType>(share.getSource().getType()).getShape());
  return copiedShape(op);
}
/// Whether padding along the dim (0: rows) of what is in shared memory reaches a result: products sum over it. Padding
/// of their rows and columns only makes more padding.
bool reachesResults(Value smem, int dim) {
  return llvm::any_of(smem.getUsers(), [&](Operation* user) {
    if (isa<SmemTransOp>(user)) return reachesResults(user->getResult(0), 1 - dim);
    auto product = dyn_cast<MmaOp>(user);
    return !product || (product.getA() == smem && dim == 1) || (product.getB() == smem && dim == 0);
  });
}

Value intConstant(OpBuilder& b, Location loc, Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

/// Signed 64-bit copy of a loop bound: sums of bounds and steps cannot overflow it.
Value wide(OpBuilder& b, Location loc, Value v) {
  if (v.getType().isIndex()) return arith::IndexCastOp::create(b, loc, b.getI64Type(), v);
  return v.getType().isInteger(64) ? v : Value(arith::ExtSIOp::create(b, loc, b.getI64Type(), v));
}

/// The loop's one asynchronous product, if it is of the ring's tiles and waits for nothing else of its iteration;
/// else null.
MmaOp leadingProduct(const CopiedLoop& ring) {
  scf::ForOp loop = ring.loop;
  int products = 0;
  loop.getBody()->walk([&](MmaOp product) { products += isAsyncProduct(product); });
  if (products != 1) return {};
  auto isEarly = [&](Value operand) {
    if (auto trans = operand.getDefiningOp<SmemTransOp>()) operand = trans.getSource();
    return !loop.getRegion().isAncestor(operand.getParentRegion()) || isa<BlockArgument>(operand) ||
           matchPattern(operand, m_Constant()) || llvm::is_contained(ring.copies, operand.getDefiningOp());
  };
  for (Operation& op : *loop.getBody()) {
    if (isAsyncProduct(&op)) {
      auto product = cast<MmaOp>(op);
      const bool readsRing = llvm::any_of(
          ring.copies, [&](Operation* copy) { return llvm::is_contained(readersOf(copy->getResult(0)), &op); });
      return readsRing && llvm::all_of(op.getOperands(), isEarly) ? product : MmaOp();
    }
    if (!isSharedCopy(&op) && !isMemoryEffectFree(&op) && !isa<LoadOp, GatherOp>(op)) return {};
  }
  return {};
}

/// The next iteration alone reads the result; a product may be running until then.
bool isReadNext(Operation* op) {
  return llvm::all_of(op->getUsers(), [](Operation* user) { return isa<scf::YieldOp>(user); });
}

class Pipeliner {
 public:
  explicit Pipeliner(CopiedLoop& ring)
      : ring_(ring),
        loop_(ring.loop),
        multiplies_(loop_.getBody()->walk([](MmaOp) { return WalkResult::interrupt(); }).wasInterrupted()),
        loc_(loop_.getLoc()),
        b_(loop_),
        i32_(b_.getI32Type()) {}

  scf::ForOp run() {
    makeBuffers();
    beginCopies();
    makeLoop();
    Block* body = made_.getBody();
    OpBuilder in = OpBuilder::atBlockBegin(body);
    SmallVector<Value> handed = copyAhead(in);
    const SmallVector<Value> slots = slotsAt(in, made_.getRegionIterArg(readSlot()));

    for (size_t i = 0; i <= carried(); ++i) loop_.getBody()->getArgument(i).replaceAllUsesWith(body->getArgument(i));
    body->getOperations().splice(body->end(), loop_.getBody()->getOperations());
    for (auto [copy, slot] : llvm::zip(ring_.copies, slots)) {
      copy->getResult(0).replaceAllUsesWith(slot);
      copy->erase();
    }
    for (Operation* op : llvm::reverse(behindLeading_)) op->moveAfter(leading_);
    if (leading_)
      for (Value buffer : buffers_) buffer.getDefiningOp()->setAttr(kRotatesAttr, b_.getUnitAttr());
    Operation* yield = body->getTerminator();
    SmallVector<Value> yielded(yield->getOperands());
    yielded.append(handed);
    yield->setOperands(yielded);

    AsyncWaitOp::create(b_, loc_, 0);
    BarrierOp::create(b_, loc_);
    for (size_t i = 0; i < carried(); ++i) loop_.getResult(i).replaceAllUsesWith(made_.getResult(i));
    loop_.erase();
    readFirst(slots);
    return made_;
  }

 private:
  /// What the loop carries is followed by the state of the iteration being copied and the two slots.
  size_t carried() { return made_.getNumRegionIterArgs() - state_.size() - 2; }
  size_t readSlot() { return carried() + state_.size(); }

  void makeBuffers() {
    bool padded = false;
    for (Operation* copy : ring_.copies) {
      buffers_.push_back(
          SmemAllocOp::create(b_, copy->getLoc(), copiedType(copy).withStages(ring_.stages), IntegerAttr()));
      if (!needsZeros(copy)) continue;
      SmemZeroOp::create(b_, copy->getLoc(), buffers_.back(), DenseI64ArrayAttr());
      padded = true;
    }
    if (padded) BarrierOp::create(b_, loc_);
  }

  SmallVector<Value> slotsAt(OpBuilder& builder, Value index) {
    SmallVector<Value> slots;
    for (Value buffer : buffers_)
      slots.push_back(SmemSlotOp::create(builder, loc_, cast<SmemType>(buffer.getType()).slotType(), buffer, index));
    return slots;
  }

  /// Whether there is an iteration of the induction variable `wideIv`.
  Value exists(OpBuilder& builder, Value wideIv) {
    return arith::CmpIOp::create(builder, loc_, arith::CmpIPredicate::slt, wideIv, upper_);
  }

  /// In front of the loop, the copies of all iterations but one that stages have room for.
  void beginCopies() {
    upper_ = wide(b_, loc_, loop_.getUpperBound()), step_ = wide(b_, loc_, loop_.getStep());
    for (unsigned index : ring_.slice->carried()) state_.push_back(loop_.getInitArgs()[index]);
    Value iv = loop_.getLowerBound(), wideIv = wide(b_, loc_, iv);
    for (int i = 0; i + 1 < ring_.stages; ++i) {
      const SmallVector<Value> slots = slotsAt(b_, intConstant(b_, loc_, i32_, i));
      issue(b_, iv, state_, exists(b_, wideIv), slots);
      iv = arith::AddIOp::create(b_, loc_, iv, loop_.getStep(), arith::IntegerOverflowFlags::nsw);
      wideIv = arith::AddIOp::create(b_, loc_, wideIv, step_);
    }
  }

  void makeLoop() {
    const int ahead = ring_.stages - 1;
    SmallVector<Value> inits(loop_.getInitArgs());
    inits.append(state_.begin(), state_.end());
    inits.push_back(intConstant(b_, loc_, i32_, 0));
    inits.push_back(intConstant(b_, loc_, i32_, ahead));
    distance_ = intConstant(b_, loc_, b_.getI64Type(), ahead);
    distance_ = arith::MulIOp::create(b_, loc_, step_, distance_);
    narrowDistance_ =
        arith::MulIOp::create(b_, loc_, loop_.getStep(), intConstant(b_, loc_, loop_.getStep().getType(), ahead));
    if (!multiplies_ && loop_.getUpperBound().getType().isInteger(32)) copiedEnd_ = endOfCopies();
    made_ = scf::ForOp::create(b_, loc_, loop_.getLowerBound(), loop_.getUpperBound(), loop_.getStep(), inits);
    made_->setDiscardableAttrs(loop_->getDiscardableAttrDictionary());
    made_->setAttr("tile.stages", b_.getI32IntegerAttr(ring_.stages));
    Block* body = made_.getBody();
    if (!body->empty()) body->back().erase();
  }

  /// What a counter of 32 bits is compared with instead of a sum in 64 bits: the end, so many iterations earlier. No
  /// counter is below the least number.
  Value endOfCopies() {
    Value end = arith::SubIOp::create(b_, loc_, upper_, distance_);
    end = arith::MaxSIOp::create(b_, loc_, end, intConstant(b_, loc_, b_.getI64Type(), INT32_MIN));
    return arith::TruncIOp::create(b_, loc_, i32_, end);
  }

  /// Whether there is an iteration as far ahead of this one as copies run.
  Value existsAhead(OpBuilder& in) {
    Value iv = made_.getInductionVar();
    if (copiedEnd_) return arith::CmpIOp::create(in, loc_, arith::CmpIPredicate::slt, iv, copiedEnd_);
    return exists(in, arith::AddIOp::create(in, loc_, wide(in, loc_, iv), distance_));
  }

  /// At the start of the body: waits for this iteration's copies, and starts those of a later one. Returns what is
  /// handed to the next iteration besides the loop's own.
  SmallVector<Value> copyAhead(OpBuilder& in) {
    const size_t first = carried();
    Block* body = made_.getBody();
    AsyncWaitOp::create(in, loc_, ring_.stages - 2);
    BarrierOp::create(in, loc_);
    SmallVector<Value> next;
    for (size_t i = 0; i < state_.size(); ++i) next.push_back(made_.getRegionIterArg(first + i));
    leading_ = leadingProduct(ring_);
    Operation* barrier = &body->back();
    // Moves behind it with the copies. A product that its own iteration reads has ended in front of the barrier above.
    if (leading_ && isReadNext(leading_)) BarrierOp::create(in, loc_);
    // An iteration that exists does not wrap; one that does not is disabled, and its address is not used.
    Value ahead =
        arith::AddIOp::create(in, loc_, made_.getInductionVar(), narrowDistance_, arith::IntegerOverflowFlags::nsw);
    firstOfCopies_ = ahead.getDefiningOp();
    Value read = made_.getRegionIterArg(readSlot()), write = made_.getRegionIterArg(readSlot() + 1);
    const SmallVector<Value> slots = slotsAt(in, write);
    issue(in, ahead, next, existsAhead(in), slots);
    for (Operation* op = barrier->getNextNode(); op && leading_; op = op->getNextNode()) behindLeading_.push_back(op);
    next.push_back(wrapped(in, read));
    next.push_back(multiplies_ ? wrapped(in, write) : read);  // what this iteration reads is free behind it
    return next;
  }

  /// In loops without products, few registers of this iteration's slots are read in front of the copies: their latency
  /// runs while addresses are computed. (ptxas does not move such reads, as copies write shared memory.)
  void readFirst(ArrayRef<Value> slots) {
    auto func = made_->getParentOfType<func::FuncOp>();
    const int warps = warpsOf(func);
    if (!warps) return;
    const Facts facts(func);
    SmallVector<Operation*> reads;
    int64_t registers = 0;
    for (Operation& op : *made_.getBody()) {
      if (isa<MmaOp, LoopLikeOpInterface>(op)) return;
      auto read = dyn_cast<SmemLoadOp>(op);
      if (!read || !llvm::is_contained(slots, read.getSource())) continue;
      reads.push_back(read);
      registers += registersHeld(read, warps, facts);
    }
    if (registers > kMostEarlyRegisters) return;
    for (Operation* read : reads) read->getOperand(0).getDefiningOp()->moveBefore(firstOfCopies_);
    for (Operation* read : reads) read->moveBefore(firstOfCopies_);
  }

  Value wrapped(OpBuilder& in, Value slot) {
    Value more = arith::AddIOp::create(in, loc_, slot, intConstant(in, loc_, i32_, 1));
    Value last =
        arith::CmpIOp::create(in, loc_, arith::CmpIPredicate::eq, more, intConstant(in, loc_, i32_, ring_.stages));
    return arith::SelectOp::create(in, loc_, last, intConstant(in, loc_, i32_, 0), more);
  }

  /// Starts the copies of one iteration into the given slots, if `enable`, as one group.
  void issue(OpBuilder& b, Value iv, SmallVectorImpl<Value>& state, Value enable, ArrayRef<Value> slots) {
    auto slotOf = [&](Operation* copy) { return slots[llvm::find(ring_.copies, copy) - ring_.copies.begin()]; };
    if (!ring_.slice->needsGuard()) {
      ring_.slice->emit(b, iv, state, [&](OpBuilder& inner, Operation* copy, const IRMapping& map) {
        emitThreadCopy(inner, copy, map, slotOf(copy), enable);
      });
    } else {
      SmallVector<Value> next(state.begin(), state.end());
      auto guard = scf::IfOp::create(b, loc_, TypeRange(ValueRange(state)), enable, /*withElseRegion=*/!state.empty());
      Block* then = &guard.getThenRegion().front();
      if (!then->empty()) then->back().erase();
      OpBuilder inside = OpBuilder::atBlockEnd(then);
      ring_.slice->emit(inside, iv, next, [&](OpBuilder& inner, Operation* copy, const IRMapping& map) {
        emitThreadCopy(inner, copy, map, slotOf(copy), Value());
      });
      scf::YieldOp::create(inside, loc_, next);
      if (!state.empty()) {
        Block* otherwise = &guard.getElseRegion().front();
        if (!otherwise->empty()) otherwise->back().erase();
        OpBuilder outside = OpBuilder::atBlockEnd(otherwise);
        scf::YieldOp::create(outside, loc_, state);
      }
      state.assign(guard.getResults().begin(), guard.getResults().end());
    }
    AsyncCommitOp::create(b, loc_);
  }

  CopiedLoop& ring_;
  scf::ForOp loop_, made_;
  /// Beside products a few instructions less are no gain, and another order costs some kernels a program (128 registers
  /// became 148): their counters stay as they are.
  bool multiplies_;
  Location loc_;
  OpBuilder b_;  ///< in front of both loops
  Type i32_;
  SmallVector<Value> buffers_, state_;
  Value upper_, step_, distance_, narrowDistance_;
  Value copiedEnd_;  ///< null: the counter has other than 32 bits
  MmaOp leading_;
  SmallVector<Operation*> behindLeading_;  ///< of the copies
  Operation* firstOfCopies_ = nullptr;     ///< what stands behind the barrier
};

}  // namespace

SmallVector<int64_t> boxAmongZeros(Operation* op) {
  SmallVector<int64_t> box(boxOf(op));
  const ArrayRef<int64_t> whole = copiedType(op).getShape();
  if (whole.size() != 2 || box.size() != 2) return {};
  for (int dim : {0, 1})
    if (!reachesResults(op->getResult(0), dim)) box[dim] = whole[dim];
  return box;
}

bool needsZeros(Operation* op) {
  const SmallVector<int64_t> box = boxAmongZeros(op);
  return box.empty() ? ArrayRef<int64_t>(boxOf(op)) != copiedType(op).getShape()
                     : ArrayRef<int64_t>(box) != copiedType(op).getShape();
}

scf::ForOp pipelineCopies(CopiedLoop& ring) { return Pipeliner(ring).run(); }

}  // namespace tile::ir
