// list_steps.cpp - in loops that skip most of their steps, finds the steps that remain 32 at a time.
// Before: a loop with products, all of whose work stands in a branch on what is read from memory for each step
//         (`continue_if(~present)`, block masks); where the branch is not taken nothing changes. Every step waits for
//         its reads, and nothing can be copied ahead of a branch that is not decided.
// After:  an outer loop over groups of 32 steps, in which every lane evaluates the condition of one step (tile.ballot),
//         and an inner loop over the steps to be done, without a branch: its copies run ahead like those of any loop.
//         for g: bits = ballot(lane: condition of step 32 g + lane); for each bit that is set: the work
// The condition is evaluated before the work of earlier steps of the group, so nothing in the loop may write what it
// reads. It is evaluated for existing steps only: lanes behind the last step repeat that one.
#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/products.h"
#include "compiler/gpu/dot_passes.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kLanes = 32;
constexpr int64_t kFewSteps = 8;  ///< loops that are known to have fewer stay as they are

bool isRead(Operation* op) { return isa<LoadOp, GatherOp>(op) && !isVolatile(op); }

class StepLister {
 public:
  explicit StepLister(scf::ForOp loop) : loop_(loop) {}

  bool matches() {
    if (loop_.getUnsignedCmp() || !loop_.getInductionVar().getType().isInteger()) return false;
    if (auto trips = loop_.getStaticTripCount(); trips && trips->getSExtValue() < kFewSteps) return false;
    for (Operation& op : loop_.getBody()->without_terminator()) {
      if (auto branch = dyn_cast<scf::IfOp>(op)) {
        if (branch_) return false;
        branch_ = branch;
      } else if (op.getNumRegions() || !(isMemoryEffectFree(&op) || isRead(&op))) {
        return false;
      }
    }
    return branch_ && hasProduct(branch_) && changesNothingElse() && isAskedByLanes() && !isWrittenInside();
  }

  void rewrite() {
    OpBuilder b(loop_);
    const Location loc = loop_.getLoc();
    const Type stepType = loop_.getInductionVar().getType();
    auto number = [&](Type type, int64_t n) -> Value {
      return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, n));
    };
    auto resized = [&](OpBuilder& at, Value v, Type type) -> Value {
      const unsigned from = v.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
      if (from == to) return v;
      if (from < to) return arith::ExtSIOp::create(at, loc, type, v);
      return arith::TruncIOp::create(at, loc, type, v);
    };
    const Type wide = b.getI64Type(), word = b.getI32Type();
    const Value zero = number(word, 0), one = number(word, 1);
    const Value lower = loop_.getLowerBound(), step = loop_.getStep();

    // Steps are counted with 64 bits: their number may be more than the bounds' own type holds.
    Value steps = arith::SubIOp::create(b, loc, resized(b, loop_.getUpperBound(), wide), resized(b, lower, wide));
    if (!matchPattern(step, m_One())) steps = arith::CeilDivSIOp::create(b, loc, steps, resized(b, step, wide));
    Value groups = arith::AddIOp::create(b, loc, steps, number(wide, kLanes - 1));
    groups = arith::ShRSIOp::create(b, loc, groups, number(wide, 5));
    groups = arith::MaxSIOp::create(b, loc, groups, number(wide, 0));
    const Value lanes = number(wide, kLanes);

    auto outer = scf::ForOp::create(b, loc, zero, resized(b, groups, word), one, loop_.getInitArgs());
    OpBuilder at = inside(outer);
    Value begin = arith::MulIOp::create(at, loc, resized(at, outer.getInductionVar(), wide), lanes);
    Value left = arith::SubIOp::create(at, loc, steps, begin);
    left = resized(at, arith::MinSIOp::create(at, loc, left, lanes), word);
    Value first = arith::MulIOp::create(at, loc, resized(at, begin, stepType), step);
    first = arith::AddIOp::create(at, loc, lower, first);
    auto stepOf = [&](OpBuilder& in, Value place) -> Value {
      Value further = arith::MulIOp::create(in, loc, resized(in, place, stepType), step);
      return arith::AddIOp::create(in, loc, first, further);
    };

    auto ballot = BallotOp::create(at, loc, word, RmwKindAttr());
    Block& asked = ballot.getSteps().emplaceBlock();
    Value lane = asked.addArgument(word, loc);
    OpBuilder ask = OpBuilder::atBlockEnd(&asked);
    Value last = arith::SubIOp::create(ask, loc, left, one);
    Value exists = arith::CmpIOp::create(ask, loc, arith::CmpIPredicate::slt, lane, left);
    IRMapping map;
    map.map(loop_.getInductionVar(), stepOf(ask, arith::MinSIOp::create(ask, loc, lane, last)));
    for (Operation& op : *loop_.getBody())
      if (condition_.contains(&op)) ask.clone(op, map);
    Value present = map.lookupOrDefault(branch_.getCondition());
    YieldOp::create(ask, loc, ValueRange{arith::AndIOp::create(ask, loc, exists, present).getResult()});

    SmallVector<Value> inits{ballot.getBits()};
    llvm::append_range(inits, outer.getRegionIterArgs());
    Value count = math::CtPopOp::create(at, loc, ballot.getBits());
    auto inner = scf::ForOp::create(at, loc, zero, count, one, inits);
    inner->setDiscardableAttrs(loop_->getDiscardableAttrDictionary());
    scf::YieldOp::create(at, loc, inner.getResults().drop_front());
    work(inner, stepOf);
    loop_.replaceAllUsesWith(outer.getResults());
    loop_.erase();
  }

 private:
  /// The block of a loop just made, empty.
  static OpBuilder inside(scf::ForOp loop) {
    if (!loop.getBody()->empty()) loop.getBody()->clear();
    return OpBuilder::atBlockEnd(loop.getBody());
  }

  /// Where the branch is not taken, what the loop carries stays as it is.
  bool changesNothingElse() {
    if (Block* other = branch_.elseBlock(); other && !llvm::hasSingleElement(*other)) return false;
    for (auto [carried, next] : llvm::zip(loop_.getRegionIterArgs(), loop_.getYieldedValues())) {
      if (next == carried) continue;
      auto result = dyn_cast<OpResult>(next);
      if (!result || result.getOwner() != branch_) return false;
      if (branch_.elseYield().getOperand(result.getResultNumber()) != carried) return false;
    }
    return true;
  }

  /// Collects what the condition is computed from: numbers and reads of single elements, at places that the step says.
  bool isAskedByLanes() {
    SmallVector<Value> pending{branch_.getCondition()};
    bool ofStep = false, reads = false;
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      if (value == loop_.getInductionVar()) ofStep = true;
      if (value == loop_.getInductionVar() || loop_.isDefinedOutsideOfLoop(value)) continue;
      Operation* op = value.getDefiningOp();
      if (!op || op->getNumRegions() || isa<RankedTensorType>(value.getType())) return false;
      if (!condition_.insert(op)) continue;
      reads |= isRead(op);
      if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>)) return false;
      llvm::append_range(pending, op->getOperands());
    }
    return ofStep && reads;
  }

  /// Something in the loop may change what the condition reads, or make what others wrote visible.
  bool isWrittenInside() {
    return loop_
        .walk([&](Operation* op) {
          if (isMemoryEffectFree(op) || isRead(op)) return WalkResult::advance();
          if (op->getNumRegions() && op->hasTrait<OpTrait::HasRecursiveMemoryEffects>()) return WalkResult::advance();
          if (!writesGlobal(op) || isAcquire(op)) return WalkResult::interrupt();
          for (Operation* read : condition_)
            if (isRead(read) && !rootOf(addressOf(op)).isApartFrom(rootOf(addressOf(read))))
              return WalkResult::interrupt();
          return WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// The branch's work for each bit that is set, lowest first.
  void work(scf::ForOp inner, llvm::function_ref<Value(OpBuilder&, Value)> stepOf) {
    OpBuilder at = inside(inner);
    const Location loc = loop_.getLoc();
    const Value bits = inner.getRegionIterArg(0);
    IRMapping map;
    map.map(loop_.getInductionVar(), stepOf(at, math::CountTrailingZerosOp::create(at, loc, bits)));
    map.map(loop_.getRegionIterArgs(), inner.getRegionIterArgs().drop_front());
    for (Operation& op : loop_.getBody()->without_terminator())
      if (&op != branch_) at.clone(op, map);  // what nobody wants of it goes again
    for (Operation& op : branch_.thenBlock()->without_terminator()) at.clone(op, map);
    for (auto [result, value] : llvm::zip(branch_.getResults(), branch_.thenYield().getOperands()))
      map.map(result, map.lookupOrDefault(value));
    Value one = arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(1));
    Value lower = arith::SubIOp::create(at, loc, bits, one);
    SmallVector<Value> next{arith::AndIOp::create(at, loc, bits, lower)};
    for (Value value : loop_.getYieldedValues()) next.push_back(map.lookupOrDefault(value));
    scf::YieldOp::create(at, loc, next);
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(*inner.getBody())))
      if (isOpTriviallyDead(&op)) op.erase();
  }

  scf::ForOp loop_;
  scf::IfOp branch_;
  llvm::SetVector<Operation*> condition_;  ///< ops of the loop's body
};

class ListStepsPass : public PassWrapper<ListStepsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ListStepsPass)
  StringRef getArgument() const override { return "tile-list-steps"; }
  StringRef getDescription() const override {
    return "loops with products that pass over steps by what memory says find those that remain 32 at a time";
  }
  void getDependentDialects(DialectRegistry& registry) const override {
    registry.insert<TileDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
  }
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (StepLister lister(loop); lister.matches()) lister.rewrite();
  }
};

}  // namespace

std::unique_ptr<Pass> createListStepsPass() { return std::make_unique<ListStepsPass>(); }

}  // namespace tile::ir
