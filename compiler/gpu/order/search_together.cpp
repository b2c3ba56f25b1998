// search_together.cpp - searches in a row take their steps together.
// Before: layouts; a program looks for two places one after the other (both ends of its part of two lists that are
//         merged, of a range of keys). Each is a loop whose every step waits for what it reads to know where to read
//         next: twice the latency of memory, step after step.
// After:  one loop takes a step of each, with the reads of both on their way at the same time. A search that has found
//         its place keeps it: what it would read is masked, and what a step would make of it is not taken.
//
// Joined are `while` loops over scalars, and `for` loops with the same bounds, scalars or tiles of a few registers. They
// only read, and nothing in between writes; the second needs nothing that the first finds.
#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/forms/blocks.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kMostStatements = 48;    ///< of a step: longer ones wait for more than what they read
constexpr unsigned kMostCarried = 16;  ///< values of all searches that are joined
constexpr int64_t kMostRegisters = 24;  ///< of tiles that they carry and read

/// Whether the op may be done once too often: it works on elements, or reads under a mask.
bool isStep(Operation& op) {
  if (auto gather = dyn_cast<GatherOp>(op)) return !isVolatile(gather);
  return isPure(&op) && !op.getNumRegions() &&
         (isElementwise(&op) || isa<SplatOp, BroadcastOp, IotaOp, PtrAddOp, AssumeOp, arith::ConstantOp>(op));
}
bool areSteps(Block& body) {
  auto steps = body.without_terminator();
  return std::distance(steps.begin(), steps.end()) <= kMostStatements && llvm::all_of(steps, isStep);
}

/// Whether where the body reads depends on what its loop carries: then a step waits for the one before.
bool readsWhereFound(Block& body, ValueRange carried) {
  llvm::DenseSet<Value> found(carried.begin(), carried.end());
  for (Operation& op : body.without_terminator()) {
    if (llvm::none_of(op.getOperands(), [&](Value operand) { return found.contains(operand); })) continue;
    if (isa<GatherOp>(op)) return true;
    found.insert(op.result_begin(), op.result_end());
  }
  return false;
}

bool isNumber(Type type) { return type.isIntOrIndexOrFloat(); }

bool isSearch(scf::WhileOp loop) {
  Block& asks = *loop.getBeforeBody();
  return llvm::all_of(loop->getOperandTypes(), isNumber) && llvm::all_of(loop->getResultTypes(), isNumber) &&
         areSteps(asks) && asks.getOps<GatherOp>().empty() && areSteps(*loop.getAfterBody()) &&
         readsWhereFound(*loop.getAfterBody(), loop.getAfterArguments());
}

bool isSearch(scf::ForOp loop) {
  return loop->getDiscardableAttrDictionary().empty() && areSteps(*loop.getBody()) &&
         readsWhereFound(*loop.getBody(), loop.getRegionIterArgs());
}

int64_t registersHeld(scf::ForOp loop) {
  int64_t registers = 0;
  auto count = [&](Type type) { registers += isa<RankedTensorType>(type) ? registersOf(type) : 1; };
  llvm::for_each(loop.getResultTypes(), count);
  for (GatherOp gather : loop.getBody()->getOps<GatherOp>()) count(gather.getType());
  return registers;
}

/// What is read as early as it can be: ops that need what was read come behind all reads that do not.
void readFirst(Block& body) {
  llvm::DenseMap<Operation*, int> turns;
  SmallVector<std::pair<int, Operation*>> order;
  for (Operation& op : body.without_terminator()) {
    int turn = 0;  // even: computes, odd: reads
    for (Value operand : op.getOperands())
      if (Operation* made = operand.getDefiningOp(); made && made->getBlock() == &body)
        turn = std::max(turn, turns.lookup(made));
    turn += turn % 2;
    if (isa<GatherOp>(op)) ++turn;
    turns[&op] = turn;
    order.emplace_back(turn, &op);
  }
  llvm::stable_sort(order, llvm::less_first());
  for (auto [turn, op] : order) op->moveBefore(body.getTerminator());
}

/// One loop of both, in front of `first`.
class JoinedWhile {
 public:
  JoinedWhile(scf::WhileOp first, scf::WhileOp second) : searches_{first, second} {}

  scf::WhileOp run() {
    scf::WhileOp first = searches_[0];
    OpBuilder builder(first);
    SmallVector<Value> inits;
    SmallVector<Type> types;
    for (scf::WhileOp search : searches_) {
      llvm::append_range(inits, search.getInits());
      llvm::append_range(types, search.getResultTypes());
    }
    for (Value init : inits) types.push_back(init.getType());
    types.append(2, builder.getI1Type());
    auto joined = scf::WhileOp::create(
        builder, first.getLoc(), types, inits, [&](OpBuilder& b, Location loc, ValueRange args) { ask(b, loc, args); },
        [&](OpBuilder& b, Location loc, ValueRange args) { step(b, loc, args); });
    readFirst(*joined.getAfterBody());
    size_t at = 0;
    for (scf::WhileOp search : searches_) {
      search.replaceAllUsesWith(joined.getResults().slice(at, search.getNumResults()));
      at += search.getNumResults();
    }
    for (scf::WhileOp search : searches_) search.erase();
    return joined;
  }

 private:
  /// Whether either search goes on. Handed to the step: what each makes of its state, the states, which goes on.
  void ask(OpBuilder& b, Location loc, ValueRange args) {
    SmallVector<Value> handed, goesOn;
    size_t at = 0;
    for (scf::WhileOp search : searches_) {
      IRMapping map;
      map.map(search.getBeforeArguments(), args.slice(at, search.getInits().size()));
      at += search.getInits().size();
      for (Operation& op : search.getBeforeBody()->without_terminator()) b.clone(op, map);
      for (Value arg : search.getConditionOp().getArgs()) handed.push_back(map.lookupOrDefault(arg));
      goesOn.push_back(map.lookupOrDefault(search.getConditionOp().getCondition()));
    }
    llvm::append_range(handed, args);
    llvm::append_range(handed, goesOn);
    scf::ConditionOp::create(b, loc, arith::OrIOp::create(b, loc, goesOn[0], goesOn[1]), handed);
  }

  void step(OpBuilder& b, Location loc, ValueRange args) {
    SmallVector<Value> next;
    const size_t states = searches_[0].getInits().size() + searches_[1].getInits().size();
    ValueRange state = args.drop_back(2).take_back(states), goesOn = args.take_back(2);
    size_t at = 0;
    for (auto [i, search] : llvm::enumerate(searches_)) {
      IRMapping map;
      map.map(search.getAfterArguments(), args.slice(at, search.getNumResults()));
      at += search.getNumResults();
      for (Operation& op : search.getAfterBody()->without_terminator()) {
        Operation* made = b.clone(op, map);
        auto gather = dyn_cast<GatherOp>(made);
        if (!gather) continue;
        OpBuilder front(gather);
        const Value own = gather.getMask();
        gather.getMaskMutable().assign(own ? arith::AndIOp::create(front, loc, own, goesOn[i]).getResult() : goesOn[i]);
      }
      for (Value found : search.getYieldOp().getOperands()) {
        next.push_back(arith::SelectOp::create(b, loc, goesOn[i], map.lookupOrDefault(found), state.front()));
        state = state.drop_front();
      }
    }
    scf::YieldOp::create(b, loc, next);
  }

  std::array<scf::WhileOp, 2> searches_;
};

bool canJoin(scf::WhileOp first, scf::WhileOp second) {
  return first.getInits().size() + second.getInits().size() <= kMostCarried;
}
bool canJoin(scf::ForOp first, scf::ForOp second) {
  auto isSame = [](Value a, Value b) {
    const auto x = getConstantIntValue(a), y = getConstantIntValue(b);
    return a == b || (x && x == y && a.getType() == b.getType());
  };
  return isSame(first.getLowerBound(), second.getLowerBound()) && isSame(first.getUpperBound(), second.getUpperBound()) &&
         isSame(first.getStep(), second.getStep()) && first.getUnsignedCmp() == second.getUnsignedCmp() &&
         registersHeld(first) + registersHeld(second) <= kMostRegisters;
}

scf::WhileOp join(scf::WhileOp first, scf::WhileOp second) { return JoinedWhile(first, second).run(); }
scf::ForOp join(scf::ForOp first, scf::ForOp second) {
  IRRewriter rewriter(first.getContext());
  second->moveAfter(first);
  const bool isUnsigned = first.getUnsignedCmp();
  scf::ForOp joined = fuseIndependentSiblingForLoops(first, second, rewriter);
  joined.setUnsignedCmp(isUnsigned);
  readFirst(*joined.getBody());
  return joined;
}

/// What is read behind it is not what would be read in front of it, or may not be.
bool mayChangeReads(Operation* op) {
  return op
      ->walk([](Operation* inner) {
        const bool stays = isMemoryEffectFree(inner) || inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                           (isa<LoadOp, GatherOp>(inner) && !isVolatile(inner));
        return stays ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

template <class Loop>
void joinSearches(Block& block) {
  for (Operation* op = block.empty() ? nullptr : &block.front(); op; op = op->getNextNode()) {
    auto first = dyn_cast<Loop>(op);
    if (!first || !isSearch(first)) continue;
    for (Operation* next = first->getNextNode(); next && !mayChangeReads(next);) {
      auto second = dyn_cast<Loop>(next);
      next = next->getNextNode();
      if (!second || !isSearch(second) || !canJoin(first, second)) continue;
      const auto parts = partsBehind(second, first, /*withReads=*/true);
      if (!parts) continue;
      for (Operation* part : *parts) part->moveBefore(first);
      first = join(first, second);
      next = first->getNextNode();
    }
    op = first;
  }
}

class SearchTogetherPass : public PassWrapper<SearchTogetherPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SearchTogetherPass)
  StringRef getArgument() const override { return "tile-search-together"; }
  StringRef getDescription() const override { return "take the steps of several searches together"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    for (Block* block : blocksOf(getOperation())) joinSearches<scf::WhileOp>(*block), joinSearches<scf::ForOp>(*block);
  }
};

}  // namespace

std::unique_ptr<Pass> createSearchTogetherPass() { return std::make_unique<SearchTogetherPass>(); }

}  // namespace tile::ir
