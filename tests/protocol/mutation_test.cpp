// mutation_test.cpp - the protocol tests can fail: kernels with roles, each with one thing wrong, must be noticed.
#include <gtest/gtest.h>

#include "tests/protocol/compiled.h"
#include "tests/protocol/differences.h"
#include "tests/protocol/kernels.h"

namespace tile::ir::protocol {
namespace {

using mlir::OpBuilder;
using mlir::Operation;

/// Breaks the op; false when there is nothing to break.
using Break = bool (*)(Operation*);
struct Mutation {
  const char* name;
  Break apply;
};

template <class Op>
Op as(Operation* op) {
  return mlir::dyn_cast<Op>(op);
}

bool dropRelease(Operation* op) {
  if (!as<RingReleaseOp>(op)) return false;
  op->erase();
  return true;
}
bool repeatRelease(Operation* op) {
  if (!as<RingReleaseOp>(op)) return false;
  OpBuilder builder(op);
  builder.clone(*op);
  return true;
}
bool releaseAlways(Operation* op) {
  auto release = as<RingReleaseOp>(op);
  if (!release || !release.getEnable()) return false;
  release.getEnableMutable().clear();
  return true;
}
/// In front of the product before it.
bool releaseEarly(Operation* op) {
  if (!as<RingReleaseOp>(op)) return false;
  for (Operation* at = op->getPrevNode(); at; at = at->getPrevNode()) {
    if (!as<MmaOp>(at)) continue;
    op->moveBefore(at);
    return true;
  }
  return false;
}
bool dropAcquire(Operation* op) {
  if (!as<RingAcquireOp>(op)) return false;
  OpBuilder builder(op);
  op->getResult(0).replaceAllUsesWith(
      mlir::arith::ConstantOp::create(builder, op->getLoc(), builder.getI32IntegerAttr(0)));
  op->erase();
  return true;
}
bool dropReserve(Operation* op) {
  if (!as<RingReserveOp>(op)) return false;
  OpBuilder builder(op);
  op->getResult(0).replaceAllUsesWith(
      mlir::arith::ConstantOp::create(builder, op->getLoc(), builder.getI32IntegerAttr(0)));
  op->erase();
  return true;
}
bool announceMore(Operation* op) {
  auto reserve = as<RingReserveOp>(op);
  if (reserve) reserve.setBytes(reserve.getBytes() + 16);
  return static_cast<bool>(reserve);
}
bool dropCopy(Operation* op) {
  if (!as<TmaLoadOp>(op)) return false;
  op->erase();
  return true;
}
bool dropCommit(Operation* op) {
  if (!as<RingCommitOp>(op)) return false;
  op->erase();
  return true;
}
bool repeatCommit(Operation* op) {
  if (!as<RingCommitOp>(op)) return false;
  OpBuilder builder(op);
  builder.clone(*op);
  return true;
}
/// In front of the copy before it.
bool commitEarly(Operation* op) {
  if (!as<RingCommitOp>(op) || !as<AsyncGatherOp>(op->getPrevNode())) return false;
  op->moveBefore(op->getPrevNode());
  return true;
}
bool dropHandOver(Operation* op) {
  if (!as<HandOverOp>(op)) return false;
  op->erase();
  return true;
}
bool dropTakeOver(Operation* op) {
  auto taken = as<TakeOverOp>(op);
  if (!taken) return false;
  op->replaceAllUsesWith(llvm::SmallVector<mlir::Value>(taken.getValues()));
  op->erase();
  return true;
}
bool handOverTwice(Operation* op) {
  if (!as<HandOverOp>(op)) return false;
  OpBuilder builder(op);
  builder.clone(*op);
  return true;
}
bool dropTurn(Operation* op) {
  if (!as<SmemTurnOp>(op)) return false;
  op->erase();
  return true;
}
/// The turner skips every other iteration.
bool turnHalf(Operation* op) {
  auto loop = as<mlir::scf::ForOp>(op);
  if (!loop || !loop->getParentOfType<SpecializeOp>().getTurner().isAncestor(loop->getParentRegion())) return false;
  OpBuilder builder(op);
  loop.getStepMutable().assign(mlir::arith::AddIOp::create(builder, op->getLoc(), loop.getStep(), loop.getStep()));
  return true;
}
bool dropGather(Operation* op) {
  if (!as<AsyncGatherOp>(op)) return false;
  op->erase();
  return true;
}
bool fillsOfOneKind(Operation* op) {
  auto ring = as<RingAllocOp>(op);
  if (!ring || !ring.isFilledByThreads()) return false;
  ring.setFills(ring.isFilledInBulk() ? RingAllocOp::kThreadFills : RingAllocOp::kBulkFill);
  return true;
}
/// Reserves of two rings change places.
bool swapReserves(Operation* op) {
  auto first = as<RingReserveOp>(op);
  if (!first) return false;
  for (Operation* at = op->getNextNode(); at; at = at->getNextNode()) {
    auto second = as<RingReserveOp>(at);
    if (!second || second.getRing() == first.getRing()) continue;
    mlir::Value ring = first.getRing();
    first.getRingMutable().assign(second.getRing());
    second.getRingMutable().assign(ring);
    return true;
  }
  return false;
}
/// A copy goes to the other tile of the stage, or to that of another ring.
bool swapCopies(Operation* op) {
  auto first = as<TmaLoadOp>(op);
  if (!first) return false;
  for (Operation* at = op->getNextNode(); at; at = at->getNextNode()) {
    auto second = as<TmaLoadOp>(at);
    if (!second || second.getTarget().getType() != first.getTarget().getType()) continue;
    mlir::Value view = first.getView();
    llvm::SmallVector<mlir::Value> indices(first.getIndices());
    first.getViewMutable().assign(second.getView());
    first.getIndicesMutable().assign(llvm::SmallVector<mlir::Value>(second.getIndices()));
    second.getViewMutable().assign(view);
    second.getIndicesMutable().assign(indices);
    return true;
  }
  return false;
}
bool waitLess(Operation* op) {
  auto wait = as<MmaWaitOp>(op);
  if (!wait) return false;
  wait.setPending(wait.getPending() + 1);
  return true;
}
bool oneArrivalMore(Operation* op) {
  auto ring = as<RingAllocOp>(op);
  if (ring) ring.setArrivals(ring.getArrivals() + 1);
  return static_cast<bool>(ring);
}
bool oneArrivalLess(Operation* op) {
  auto ring = as<RingAllocOp>(op);
  if (!ring || ring.getArrivals() == 1) return false;
  ring.setArrivals(ring.getArrivals() - 1);
  return true;
}
/// The producer skips every other iteration.
bool doubleStep(Operation* op) {
  auto loop = as<mlir::scf::ForOp>(op);
  if (!loop || !loop->getParentOfType<SpecializeOp>().getProducer().isAncestor(loop->getParentRegion())) return false;
  OpBuilder builder(op);
  loop.getStepMutable().assign(mlir::arith::AddIOp::create(builder, op->getLoc(), loop.getStep(), loop.getStep()));
  return true;
}

constexpr Mutation kMutations[] = {
    {"a release is missing", dropRelease},
    {"a release happens twice", repeatRelease},
    {"a release without its condition", releaseAlways},
    {"a release before the product", releaseEarly},
    {"an acquire is missing", dropAcquire},
    {"a reserve is missing", dropReserve},
    {"a reserve announces too much", announceMore},
    {"a copy is missing", dropCopy},
    {"a commit is missing", dropCommit},
    {"a commit happens twice", repeatCommit},
    {"a commit before its copy", commitEarly},
    {"a gather is missing", dropGather},
    {"a hand_over is missing", dropHandOver},
    {"a hand_over happens twice", handOverTwice},
    {"a take_over is missing", dropTakeOver},
    {"a turn is missing", dropTurn},
    {"the turner skips iterations", turnHalf},
    {"fills of the other kind", fillsOfOneKind},
    {"reserves of two rings swapped", swapReserves},
    {"two copies swapped", swapCopies},
    {"a wait for one product less", waitLess},
    {"one arrival more", oneArrivalMore},
    {"one arrival less", oneArrivalLess},
    {"the producer skips iterations", doubleStep},
};

/// The n-th op of the function in program order, all regions included.
Operation* opAt(mlir::func::FuncOp func, size_t n) {
  Operation* found = nullptr;
  func.walk<mlir::WalkOrder::PreOrder>([&](Operation* op) {
    if (n-- != 0) return mlir::WalkResult::advance();
    found = op;
    return mlir::WalkResult::interrupt();
  });
  return found;
}

bool isNoticed(mlir::func::FuncOp func, const TestKernel& kernel, const std::vector<std::vector<Reads>>& laws) {
  for (int seed = 0; seed < 40; ++seed) {
    for (size_t i = 0; i < laws.size(); ++i) {
      MachineOptions options;
      options.seed = static_cast<uint64_t>(seed) * 104729 + 3;
      options.programs = 1 + seed % 2;
      if (!differences(func, kernel.inputs[i], laws[i], options).empty()) return true;
    }
  }
  return false;
}

TEST(RoleMutations, EveryOneIsNoticed) {
  int made = 0;
  std::map<std::string, int> kinds;
  for (const TestKernel& kernel : writtenKernels()) {
    SCOPED_TRACE(kernel.name);
    Compiled compiled = compile(kernel.text);
    ASSERT_TRUE(compiled.hasRoles());
    std::vector<std::vector<Reads>> laws;
    for (const Inputs& inputs : kernel.inputs) laws.push_back(lawOf(functionOf(*compiled.plain), inputs));
    for (const Mutation& mutation : kMutations) {
      for (size_t n = 0; opAt(functionOf(*compiled.waited), n); ++n) {
        mlir::OwningOpRef<mlir::ModuleOp> module = compiled.waited->clone();
        mlir::func::FuncOp func = functionOf(*module);
        Operation* op = opAt(func, n);
        if (!op->getParentOfType<SpecializeOp>() && !mlir::isa<RingAllocOp>(op)) continue;
        std::string before = op->getName().getStringRef().str();
        if (!mutation.apply(op)) continue;
        ++made, ++kinds[mutation.name];
        EXPECT_TRUE(isNoticed(func, kernel, laws)) << mutation.name << ", at op " << n << " (" << before << ")";
      }
    }
  }
  EXPECT_GT(made, 200);
  EXPECT_EQ(kinds.size(), std::size(kMutations));
}

}  // namespace
}  // namespace tile::ir::protocol
