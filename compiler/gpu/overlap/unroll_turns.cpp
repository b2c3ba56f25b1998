// unroll_turns.cpp - several bodies of loops whose tiles take turns.
// Before: behind stage; a loop carries the rows it has passed (`older = old, old = now`): each of them moves on by a
//         name, all registers of it, in every iteration.
// After:  as many bodies as there are names, in which everything stays where it is, and a loop behind them for what
//         remains.
//
// Only where much moves beside the work of an iteration, and little is loaded: a loop that waits for memory is faster
// with more warps than with fewer moves, and several bodies take registers. Of few programs more_in_flight makes
// several bodies anyway; loops that hold loads are unroll_held's.
#include "compiler/dialect/products.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/overlap/load_ahead.h"
#include "compiler/gpu/products/unroll_loops.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// An estimate, before layouts are known, of a thread's registers for a tile. Scalars: none.
int64_t registersOf(Type type, int64_t warps) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile || !tile.getElementType().isIntOrFloat()) return 0;
  return std::max<int64_t>(1, tile.getNumElements() * tile.getElementTypeBitWidth() / (32 * 32 * warps));
}

/// The tiles that take turns in a loop.
struct Turns {
  int64_t names = 1;      ///< of the most that do, with the one that the iteration makes if it needs a place of its own
  int64_t registers = 0;  ///< of a thread, that an iteration moves on
};

/// Whether the tile is still read where the iteration has made `next`.
bool isReadBehind(BlockArgument tile, Value next) {
  Operation* made = next.getDefiningOp();
  if (!made || made->getBlock() != tile.getOwner()) return false;
  return llvm::any_of(tile.getUsers(), [&](Operation* user) {
    Operation* here = tile.getOwner()->findAncestorOpInBlock(*user);
    return made->isBeforeInBlock(here) && !isa<scf::YieldOp>(here);
  });
}

Turns turnsOf(scf::ForOp loop, int64_t warps) {
  Turns turns;
  const auto args = loop.getRegionIterArgs();
  // What the argument is in the next iteration, if that is another argument now.
  auto before = [&](unsigned i) -> std::optional<unsigned> {
    auto arg = dyn_cast<BlockArgument>(loop.getYieldedValues()[i]);
    if (!arg || arg.getOwner() != loop.getBody() || arg == loop.getInductionVar() || arg == args[i])
      return std::nullopt;
    return arg.getArgNumber() - 1;
  };
  llvm::DenseSet<unsigned> moved;
  for (unsigned i = 0; i < args.size(); ++i) {
    if (!registersOf(args[i].getType(), warps) || !before(i)) continue;
    int64_t names = 1;
    unsigned from = i;
    for (auto next = before(i); next && names <= static_cast<int64_t>(args.size()); next = before(from)) {
      moved.insert(i), moved.insert(from = *next);
      if (from == i) break;
      ++names;
    }
    turns.names = std::max(turns.names, names + isReadBehind(args[i], loop.getYieldedValues()[from]));
  }
  for (unsigned i : moved) turns.registers += registersOf(args[i].getType(), warps);
  return turns;
}

class UnrollTurnsPass : public PassWrapper<UnrollTurnsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(UnrollTurnsPass)
  explicit UnrollTurnsPass(OptionsOf options) : options_(std::move(options)) {}
  UnrollTurnsPass(const UnrollTurnsPass& other) = default;
  StringRef getArgument() const override { return "tile-unroll-turns"; }
  StringRef getDescription() const override { return "unroll loops whose tiles take turns"; }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    const int warps = warpsOf(func);
    if (!warps || func.walk([](SpecializeOp) { return WalkResult::interrupt(); }).wasInterrupted()) return;
    SmallVector<scf::ForOp> loops;
    func.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (const int64_t bodies = bodiesOf(loop, warps); bodies > 1 && chooseByGrid(func, options_(), true, false))
        unrollBy(loop, bodies);
  }

 private:
  /// As many as tiles take turns, where that saves much; 1: it does not.
  static int64_t bodiesOf(scf::ForOp loop, int64_t warps) {
    constexpr int64_t kFewest = 8, kShare = 16, kMost = 4;
    constexpr int64_t kMostOperations = 512;  // of all bodies together
    const Turns turns = turnsOf(loop, warps);
    if (turns.registers < kFewest || turns.names > kMost || loop->hasAttr(kUnrollAttr) ||
        loop->hasAttr("tile.stages") || loop->hasAttr(kHeldAttr) || hasProduct(loop))
      return 1;
    int64_t operations = 0, work = 0, loaded = 0;
    bool isInnermost = true;
    loop.getBody()->walk([&](Operation* op) {
      isInnermost &= !isa<LoopLikeOpInterface>(op);
      int64_t registers = 0;
      for (Type type : op->getResultTypes()) registers += registersOf(type, warps);
      ++operations, work += registers, loaded += isa<LoadOp, GatherOp>(op) ? registers : 0;
    });
    const bool saves = turns.registers * kShare >= work && 2 * loaded <= turns.registers;
    return isInnermost && saves && operations * turns.names <= kMostOperations ? turns.names : 1;
  }

  OptionsOf options_;
};

}  // namespace

std::unique_ptr<Pass> createUnrollTurnsPass(OptionsOf options) {
  return std::make_unique<UnrollTurnsPass>(std::move(options));
}

}  // namespace tile::ir
