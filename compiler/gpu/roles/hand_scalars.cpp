// hand_scalars.cpp - lets the producer, which runs ahead, compute the scalars that consumers need before they can
// begin, and hands them over through shared memory.
// Before: consumers and producer each divide the position in the grid into program ids, these into tiles and heads, and
//         find out the bounds of loops: a chain of some hundred instructions in front of the first product of every
//         program, while the tensor cores stand still.
// After:  tile.hand_over in the producer, tile.take_over at the start of the consumers' work loop. What is one or two
//         instructions away from a value taken over is still computed by the consumers. The old chain stays as the
//         operands of take_over, so that analyses know the values' ranges; it is not executed.
//
// This is not done where registers are short and no loop or branch waits for the values: what ends in addresses can be
// computed beside products, and a value taken over is alive from the start.
#include "compiler/dialect/warps.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/rings/memory_plan.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

// Cycles until a dependent instruction can start, roughly.
constexpr int kSimple = 6, kWide = 12, kDivision = 90, kWideDivision = 250, kFunction = 40, kRead = 500;
constexpr int kWorthHanding = 20;  ///< a wait that is over already, and a read of shared memory, for all together

bool isScalar(Type type) {
  return (type.isInteger() && type.getIntOrFloatBitWidth() <= 64) || type.isF32() || type.isF64();
}

int latencyOf(Operation* op) {
  const bool isWide = llvm::any_of(op->getOperandTypes(), [](Type type) {
    return type.isIntOrFloat() && type.getIntOrFloatBitWidth() > 32;
  });
  if (isa<LoadOp>(op)) return kRead;
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
          arith::CeilDivUIOp>(op)) {
    if (matchPattern(op->getOperand(1), m_Constant())) return 4 * (isWide ? kWide : kSimple);
    return isWide ? kWideDivision : kDivision;
  }
  if (op->getDialect() && op->getDialect()->getNamespace() == "math") return kFunction;
  return isWide ? kWide : kSimple;
}

class Handing {
 public:
  Handing(SpecializeOp roles, WorkLoopOp producer, WorkLoopOp consumer, int numWarps)
      : roles_(roles), from_(producer.getBody().front()), to_(consumer.getBody().front()), numWarps_(numWarps) {}

  bool run() {
    findCandidates();
    chooseHanded();
    if (handed_.empty() || (roles_->hasAttr(kTightAttr) && !steers())) return false;
    SmallVector<Type> types;
    for (Value value : handed_) types.push_back(value.getType());
    OpBuilder outside(roles_);
    const int64_t bytes = llvm::alignTo(4 * HandOverOp::wordsOf(types), 16);
    Value ring = RingAllocOp::create(outside, roles_.getLoc(), RingType::get(roles_.getContext(), kHandedStages),
                                     numWarps_, /*perWarp=*/true, static_cast<uint32_t>(bytes), RingAllocOp::kBulkFill,
                                     /*turned=*/false, IntegerAttr());
    handOver(ring);
    takeOver(ring);
    return true;
  }

 private:
  // ---- what could be handed

  bool isConstant(Value value) const { return value.getDefiningOp<arith::ConstantOp>() != nullptr; }
  /// The same for all programs, and at hand in both roles. Constants stand in each.
  bool isInvariant(Value value) const {
    return isConstant(value) || !roles_->isAncestor(value.getParentRegion()->getParentOp());
  }
  bool isKnown(Value value) const {
    return isInvariant(value) || candidates_.contains(value.getDefiningOp()) || isId(value);
  }
  bool isId(Value value) const {
    auto arg = dyn_cast<BlockArgument>(value);
    return arg && arg.getOwner() == &to_;
  }

  /// Scalar work at the top of a program that depends on ids and arguments alone. Reads of memory are the producer's
  /// as well: it has been made sure that they may run ahead.
  void findCandidates() {
    for (auto [mine, its] : llvm::zip(to_.getArguments(), from_.getArguments())) made_.map(mine, its);
    for (Operation& op : to_) {
      if (isa<arith::ConstantOp>(op)) continue;
      const bool isPlain =
          isElementwise(&op) || isa<arith::IndexCastOp, AssumeOp, NumProgramsOp, ViewDimOp, ViewStrideOp>(op);
      if (op.getNumRegions() || op.getNumResults() != 1 || !(isPlain || isa<LoadOp>(op))) continue;
      if (!isScalar(op.getResult(0).getType()) && !op.getResult(0).getType().isIndex()) continue;
      if (!llvm::all_of(op.getOperands(), [&](Value v) { return isKnown(v); })) continue;
      Operation* same = twinOf(&op);
      if (same) made_.map(op.getResult(0), same->getResult(0));
      if (isa<LoadOp>(op) && !same) continue;
      candidates_.insert(&op);
      if (isa<LoadOp>(op) || llvm::any_of(op.getOperands(), [&](Value v) { return isId(v) || ofPlace_.contains(v); }))
        ofPlace_.insert(op.getResult(0));
    }
  }

  /// The producer's op that computes the same.
  Operation* twinOf(Operation* op) const {
    SmallVector<Value> operands;
    for (Value v : op->getOperands()) {
      if (!isInvariant(v) && !made_.contains(v)) return nullptr;
      operands.push_back(made_.lookupOrDefault(v));
    }
    auto isSame = [](auto both) {
      auto [a, b] = both;
      Attribute ofA, ofB;
      return a == b || (matchPattern(a, m_Constant(&ofA)) && matchPattern(b, m_Constant(&ofB)) && ofA == ofB);
    };
    for (Operation& other : from_)
      if (other.getName() == op->getName() && other.getAttrDictionary() == op->getAttrDictionary() &&
          other.getNumOperands() == operands.size() && llvm::all_of(llvm::zip(other.getOperands(), operands), isSame) &&
          llvm::equal(other.getResultTypes(), op->getResultTypes()))
        return &other;
    return nullptr;
  }

  // ---- what is handed

  /// Cycles from the start of the program to the value, with what is handed at hand.
  int latency(Value value, llvm::DenseMap<Value, int>& known) const {
    if (isInvariant(value) || handed_.contains(value)) return 0;
    if (isId(value)) return kDivision;
    if (!ofPlace_.contains(value)) return 0;  // moved out of the loop
    if (auto it = known.find(value); it != known.end()) return it->second;
    Operation* op = value.getDefiningOp();
    int longest = 0;
    for (Value operand : op->getOperands()) longest = std::max(longest, latency(operand, known));
    return known[value] = longest + latencyOf(op);
  }

  bool isWanted(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation* user) { return !candidates_.contains(user); });
  }

  void chooseHanded() {
    int64_t words = 0;
    auto consider = [&](Value value) {
      llvm::DenseMap<Value, int> known;
      if (!isScalar(value.getType()) || !isWanted(value) || latency(value, known) < kWorthHanding) return;
      words += HandOverOp::wordsOf(value.getType());
      if (4 * words <= kMostHandedBytes) handed_.insert(value);
    };
    for (BlockArgument id : to_.getArguments()) consider(id);
    for (Operation* op : candidates_) consider(op->getResult(0));
  }

  /// Loops and branches of the consumers wait for what depends on the place.
  bool steers() const {
    auto decides = [](Value value) {
      return llvm::any_of(value.getUsers(),
                          [](Operation* user) { return isa<scf::ForOp, scf::IfOp, scf::WhileOp>(user); });
    };
    return llvm::any_of(to_.getArguments(), decides) || llvm::any_of(ofPlace_, decides);
  }

  // ---- the two ends

  static bool usesRings(Operation* op) {
    auto uses = [](Operation* inner) {
      return isa<RingReserveOp, RingCommitOp, TmaLoadOp, AsyncCopyOp, AsyncGatherOp>(inner) ? WalkResult::interrupt()
                                                                                            : WalkResult::advance();
    };
    return op->walk(uses).wasInterrupted();
  }

  /// Behind the copies that every program begins with: their way is the longer one. In front of the first loop of them.
  void handOver(Value ring) {
    Operation* place = nullptr;
    for (Operation& op : from_)
      if (op.getNumRegions() && usesRings(&op)) {
        place = &op;
        break;
      }
    OpBuilder builder(roles_.getContext());
    place ? builder.setInsertionPoint(place) : builder.setInsertionPointToEnd(&from_);
    SmallVector<Value> values;
    for (Value value : handed_) values.push_back(inProducer(value, builder, place));
    HandOverOp::create(builder, roles_.getLoc(), ring, values);
  }

  Value inProducer(Value value, OpBuilder& builder, Operation* place) {
    if (isConstant(value)) return builder.clone(*value.getDefiningOp())->getResult(0);
    if (isInvariant(value)) return value;
    if (Value made = made_.lookupOrNull(value)) {
      Operation* op = made.getDefiningOp();
      if (!op || !place || op->isBeforeInBlock(place)) return made;
    }
    Operation* op = value.getDefiningOp();
    IRMapping map;
    for (Value operand : op->getOperands()) map.map(operand, inProducer(operand, builder, place));
    Value copy = builder.clone(*op, map)->getResult(0);
    made_.map(value, copy);
    return copy;
  }

  void takeOver(Value ring) {
    // What the operands need goes to the front, in its order.
    llvm::SmallSetVector<Operation*, 32> behind;
    for (Value value : handed_) collect(value, behind);
    Operation* last = nullptr;
    for (Operation* op : candidates_) {
      if (!behind.contains(op)) continue;
      if (last)
        op->moveAfter(last);
      else if (op != &to_.front())
        op->moveBefore(&to_.front());
      last = op;
    }
    OpBuilder builder = OpBuilder::atBlockBegin(&to_);
    if (last) builder.setInsertionPointAfter(last);
    auto taken = TakeOverOp::create(builder, roles_.getLoc(), TypeRange(ValueRange(handed_.getArrayRef())), ring,
                                    handed_.getArrayRef());
    IRMapping own;
    for (auto [value, result] : llvm::zip(handed_, taken.getResults())) own.map(value, result);
    auto isShadow = [&](Operation* op) { return op == taken || candidates_.contains(op); };
    auto redirect = [&](Value value) {
      SmallVector<OpOperand*> uses;
      for (OpOperand& use : value.getUses())
        if (!isShadow(use.getOwner())) uses.push_back(&use);
      if (uses.empty()) return;
      Value made = inConsumer(value, builder, own);
      for (OpOperand* use : uses) use->set(made);
    };
    const SmallVector<Operation*> all(candidates_.begin(), candidates_.end());
    for (BlockArgument id : to_.getArguments()) redirect(id);
    for (Operation* op : all) redirect(op->getResult(0));
    for (Operation* op : llvm::reverse(all))
      if (op->use_empty()) op->erase();
  }

  void collect(Value value, llvm::SmallSetVector<Operation*, 32>& behind) const {
    Operation* op = value.getDefiningOp();
    if (isInvariant(value) || isId(value) || !behind.insert(op)) return;
    for (Value operand : op->getOperands()) collect(operand, behind);
  }

  /// Made anew behind take_over from what that gives.
  Value inConsumer(Value value, OpBuilder& builder, IRMapping& own) {
    if (isInvariant(value) || isId(value)) return own.lookupOrDefault(value);
    if (Value made = own.lookupOrNull(value)) return made;
    Operation* op = value.getDefiningOp();
    for (Value operand : op->getOperands()) inConsumer(operand, builder, own);
    return builder.clone(*op, own)->getResult(0);
  }

  SpecializeOp roles_;
  Block &from_, &to_;
  int numWarps_;
  IRMapping made_;                                   ///< from the consumers' values to the producer's
  llvm::SmallSetVector<Operation*, 32> candidates_;  ///< in program order
  llvm::DenseSet<Value> ofPlace_;                    ///< of these, what differs between programs
  llvm::SmallSetVector<Value, 16> handed_;
};

class HandScalarsPass : public PassWrapper<HandScalarsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HandScalarsPass)
  StringRef getArgument() const override { return "tile-hand-scalars"; }
  StringRef getDescription() const override { return "compute scalars that consumers wait for in the producer"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    const int warps = warpsOf(getOperation());
    SmallVector<SpecializeOp> all;
    getOperation().walk([&](SpecializeOp roles) { all.push_back(roles); });
    bool changed = false;
    for (SpecializeOp roles : all) {
      auto loopOf = [](Region& role) {
        auto loops = role.front().getOps<WorkLoopOp>();
        return loops.empty() ? WorkLoopOp() : *loops.begin();
      };
      WorkLoopOp producer = loopOf(roles.getProducer()), consumer = loopOf(roles.getConsumer());
      if (warps && producer && consumer)
        changed |= Handing(roles, producer, consumer, warps).run();
    }
    if (!changed) markAllAnalysesPreserved();
  }
};

}  // namespace

std::unique_ptr<Pass> createHandScalarsPass() { return std::make_unique<HandScalarsPass>(); }

}  // namespace tile::ir
