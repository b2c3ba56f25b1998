// specialize_rows.cpp - rows that consumers read beside staged tiles (statistics, factors) come by bulk copies, too.
// A plain load would be in the way of every iteration: the producer cannot run ahead with it, and its latency is the
// memory's. Before: %r = tile.load of N elements.  After: load_shared of 1 x N, read back right in front of its first
// user: in registers it would be in the way. Larger tiles beside staged ones (what products are added to, masks) come
// the same way where there is room, and those of loops that only read (statistics of rows in front of a product). What
// only the regions of one `if` use is read there: until then it would be in registers.
#include "compiler/gpu/memory_roots.h"
#include "compiler/gpu/specialize.h"
#include "compiler/gpu/tma_box.h"
#include "llvm/ADT/MapVector.h"

namespace tile::ir {
using namespace mlir;

namespace {

bool changesShape(Operation* op) { return isa<ReshapeOp, BroadcastOp>(op); }

/// The row as a tile of shared memory; null where it cannot be copied in bulk.
SmemType rowType(LoadOp load, const Facts& facts) {
  auto tile = dyn_cast<RankedTensorType>(load.getResult().getType());
  if (!tile || tile.getRank() != 1 || load.getCache() == CacheHint::volatile_) return {};
  if (load.getPad() && !load.getPad()->isZero()) return {};
  auto type = SmemType::get(load.getContext(), {1, tile.getDimSize(0)}, tile.getElementType(), 1, 1);
  return isBulkLoad(load, type, facts) ? type : SmemType();
}

/// Every index is a constant or says where a staged tile of the same block lies: what the producer computes anyway.
bool goesWithTiles(LoadOp load) {
  llvm::DenseSet<Value> known;
  for (auto tile : load->getBlock()->getOps<LoadSharedOp>())
    if (llvm::any_of(readersOf(tile.getResult()), isAsyncProduct))
      known.insert(tile.getIndices().begin(), tile.getIndices().end());
  return !known.empty() && llvm::all_of(load.getIndices(), [&](Value index) {
    return known.contains(index) || matchPattern(index, m_Constant());
  });
}

/// Appends the ops that only change the row's shape, in program order; returns the first other user's statement.
Operation* firstUser(Value row, Block& block, SmallVector<Operation*>& shapes) {
  Operation* first = nullptr;
  for (Operation* user : row.getUsers()) {
    Operation* at = block.findAncestorOpInBlock(*user);
    if (changesShape(user) && user->getBlock() == &block) {
      shapes.push_back(user);
      at = firstUser(user->getResult(0), block, shapes);
    }
    if (at && (!first || at->isBeforeInBlock(first))) first = at;
  }
  return first;
}

/// Computed from the program's place and the loops' counters alone: the producer does the same at no cost.
bool isKnownAhead(Value index) {
  if (auto arg = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp());
    return loop ? arg == loop.getInductionVar() : isa<func::FuncOp>(arg.getOwner()->getParentOp());
  }
  Operation* op = index.getDefiningOp();
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) && llvm::all_of(op->getOperands(), [](Value operand) {
           return !isa<RankedTensorType>(operand.getType()) && isKnownAhead(operand);
         });
}

/// The tile as one of shared memory; null where it cannot be copied in bulk, or would be there already.
SmemType tileType(LoadOp load, const Facts& facts) {
  auto tile = dyn_cast<RankedTensorType>(load.getResult().getType());
  const ViewType view = load.getView().getType();
  if (!tile || tile.getRank() != 2 || view.getRank() < 2 || load.getCache() == CacheHint::volatile_) return {};
  if (load.getPad() && !load.getPad()->isZero()) return {};
  const int64_t minor = facts.unitStrideDim(load.getView()) - (view.getRank() - 2);
  if (minor < 0) return {};
  auto type = SmemType::get(load.getContext(), tile.getShape(), tile.getElementType(), static_cast<unsigned>(minor), 1);
  return isBulkLoad(load, type, facts) ? type : SmemType();
}

/// Where one `if` of `load`'s block alone uses it: the first statements that do in its regions. None elsewhere: what
/// several statements read they would read several times.
SmallVector<Operation*> firstInRegions(LoadOp load) {
  llvm::MapVector<Block*, Operation*> firsts;
  for (Operation* user : load.getResult().getUsers()) {
    Operation* statement = load->getBlock()->findAncestorOpInBlock(*user);
    auto branch = dyn_cast<scf::IfOp>(statement);
    if (!branch || statement == user || (!firsts.empty() && firsts.front().first->getParentOp() != branch)) return {};
    Block* block = branch.getThenRegion().isAncestor(user->getParentRegion()) ? branch.thenBlock() : branch.elseBlock();
    Operation*& first = firsts[block];
    Operation* at = block->findAncestorOpInBlock(*user);
    if (!first || at->isBeforeInBlock(first)) first = at;
  }
  SmallVector<Operation*> places;
  for (auto [block, first] : firsts) places.push_back(first);
  return places;
}

Operation* fetch(LoadOp load, SmemType type) {
  OpBuilder builder(load);
  Location loc = load.getLoc();
  SmallVector<Operation*> shapes;
  Operation* user = firstUser(load.getResult(), *load->getBlock(), shapes);
  if (!user) return nullptr;
  auto shared =
      LoadSharedOp::create(builder, loc, type, load.getView(), load.getIndices(), ArrayRef<int64_t>(type.getShape()),
                           load.getCache());
  auto row = RankedTensorType::get(type.getShape(), type.getElementType());
  auto readAt = [&](Operation* place) {
    builder.setInsertionPoint(place);
    Value read = SmemLoadOp::create(builder, loc, row, shared);
    if (read.getType() == load.getResult().getType()) return read;
    return Value(ReshapeOp::create(builder, loc, load.getResult().getType(), read));
  };
  if (SmallVector<Operation*> places = firstInRegions(load); !places.empty()) {
    for (Operation* place : places) {
      Value read = readAt(place);
      load.getResult().replaceUsesWithIf(
          read, [&](OpOperand& use) { return place->getBlock()->findAncestorOpInBlock(*use.getOwner()); });
    }
  } else {
    Value read = readAt(user);
    llvm::sort(shapes, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
    for (Operation* op : shapes)
      if (op->isBeforeInBlock(user)) op->moveBefore(user);
    load.getResult().replaceAllUsesWith(read);
  }
  load.erase();
  return shared;
}

}  // namespace

llvm::DenseSet<Operation*> fetchRows(func::FuncOp func, const Facts& facts) {
  SmallVector<std::pair<LoadOp, SmemType>> rows;
  func.walk([&](LoadOp load) {
    if (!isa<scf::ForOp>(load->getParentOp()) || !goesWithTiles(load)) return;
    if (SmemType type = rowType(load, facts)) rows.push_back({load, type});
  });
  llvm::DenseSet<Operation*> fetched;
  for (auto [load, type] : rows)
    if (Operation* copy = fetch(load, type)) fetched.insert(copy);
  return fetched;
}

namespace {

/// A loop without products, loops inside, or writes of memory.
bool onlyReads(Block& body) {
  return !body.walk([](Operation* op) {
                if (isa<scf::ForOp, scf::WhileOp, MmaOp, DotOp, ShareOp>(op) || writesGlobal(op))
                  return WalkResult::interrupt();
                return WalkResult::advance();
              })
              .wasInterrupted();
}

bool isBesideStaged(Block& body) {
  return llvm::any_of(body.getOps<LoadSharedOp>(), [](LoadSharedOp staged) {
    return llvm::any_of(readersOf(staged.getResult()), isAsyncProduct);
  });
}

llvm::DenseSet<Operation*> fetchTilesOf(func::FuncOp func, const Facts& facts,
                                        llvm::function_ref<bool(Block&)> isLoop) {
  SmallVector<std::pair<LoadOp, SmemType>> tiles;
  func.walk([&](LoadOp load) {
    if (!isa<scf::ForOp>(load->getParentOp()) || !llvm::all_of(load.getIndices(), isKnownAhead)) return;
    if (!isLoop(*load->getBlock())) return;
    if (SmemType type = tileType(load, facts)) tiles.push_back({load, type});
  });
  llvm::DenseSet<Operation*> fetched;
  for (auto [load, type] : tiles)
    if (Operation* copy = fetch(load, type)) fetched.insert(copy);
  return fetched;
}

}  // namespace

llvm::DenseSet<Operation*> fetchTiles(func::FuncOp func, const Facts& facts) {
  return fetchTilesOf(func, facts, isBesideStaged);
}

llvm::DenseSet<Operation*> fetchReads(func::FuncOp func, const Facts& facts) {
  return fetchTilesOf(func, facts, onlyReads);
}

void unfetch(const llvm::DenseSet<Operation*>& copies) {
  for (Operation* op : copies) {
    auto copy = cast<LoadSharedOp>(op);
    Value load;
    for (Operation* reader : llvm::make_early_inc_range(copy->getUsers())) {
      // A row became a tile of two dims on its way.
      Operation* tile = reader;
      if (auto reshape = dyn_cast<ReshapeOp>(*reader->getUsers().begin());
          reshape && reader->hasOneUse() && reshape.getResult().getType().getRank() == 1)
        tile = reshape;
      OpBuilder builder(copy);
      if (!load)
        load = LoadOp::create(builder, copy.getLoc(), tile->getResult(0).getType(), copy.getView(), copy.getIndices(),
                              /*pad=*/FloatAttr(), copy.getCache());
      tile->getResult(0).replaceAllUsesWith(load);
      tile->erase();
      if (tile != reader) reader->erase();
    }
    copy->erase();
  }
}

}  // namespace tile::ir
