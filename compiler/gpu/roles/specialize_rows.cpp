// specialize_rows.cpp - rows that consumers read beside staged tiles (statistics, factors) come by bulk copies, too. A
// plain load would cost the latency of memory in every iteration, because the producer cannot run ahead with it.
// Before: %r = tile.load of N elements.
// After:  load_shared of 1 x N, read back right in front of its first user (earlier, it would only occupy registers).
// Larger tiles beside staged ones (what products are added to, masks) come the same way where there is room, and so do
// tiles of loops that only read (statistics of rows in front of a product).
#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/roles/specialize.h"

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

/// A product of warpgroups reads the staged tile, or what the block's threads make of it for one of theirs.
bool isForProducts(LoadSharedOp staged) {
  if (llvm::any_of(readersOf(staged.getResult()), isAsyncProduct)) return true;
  return llvm::any_of(staged->getBlock()->getOps<MmaOp>(), [](MmaOp product) { return isAsyncProduct(product); });
}

/// Computed from the program's place and the loops' counters alone: the producer does the same at no cost.
bool isKnownAhead(Value index, llvm::DenseSet<Value>& seen) {
  if (!seen.insert(index).second) return true;  // looked at: anything else ends the search
  if (auto arg = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp());
    return loop ? arg == loop.getInductionVar() : isa<func::FuncOp>(arg.getOwner()->getParentOp());
  }
  Operation* op = index.getDefiningOp();
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return !isa<RankedTensorType>(operand.getType()) && isKnownAhead(operand, seen);
         });
}
bool isKnownAhead(Value index) {
  llvm::DenseSet<Value> seen;
  return isKnownAhead(index, seen);
}

/// The number of a group of columns: the loop's counter, where tiles lie at multiples of it, or a quotient (t / 128).
/// Not every index that isKnownAhead: a ring for rows that are read beside accumulators alone could take a stage from
/// those of tiles.
bool isOfGroup(Value index) {
  Operation* op = index.getDefiningOp();
  return isKnownAhead(index) && (!op || isa<arith::DivSIOp, arith::DivUIOp, arith::ShRSIOp, arith::ShRUIOp>(op));
}

/// Beside a staged tile, every index says where such a tile lies, what the producer computes anyway, or the group of
/// columns that the tile is in, which costs it nothing.
bool goesWithTiles(LoadOp load) {
  llvm::DenseSet<Value> known;
  for (auto tile : load->getBlock()->getOps<LoadSharedOp>())
    if (isForProducts(tile)) known.insert(tile.getIndices().begin(), tile.getIndices().end());
  return !known.empty() && llvm::all_of(load.getIndices(), [&](Value index) {
    return known.contains(index) || matchPattern(index, m_Constant()) || isOfGroup(index);
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

Operation* fetch(LoadOp load, SmemType type) {
  OpBuilder builder(load);
  Location loc = load.getLoc();
  SmallVector<Operation*> shapes;
  Operation* user = firstUser(load.getResult(), *load->getBlock(), shapes);
  if (!user) return nullptr;
  auto shared = LoadSharedOp::create(builder, loc, type, load.getView(), load.getIndices(),
                                     ArrayRef<int64_t>(type.getShape()), load.getCache());
  builder.setInsertionPoint(user);
  auto row = RankedTensorType::get(type.getShape(), type.getElementType());
  Value read = SmemLoadOp::create(builder, loc, row, shared);
  if (read.getType() != load.getResult().getType())
    read = ReshapeOp::create(builder, loc, load.getResult().getType(), read);
  llvm::sort(shapes, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  for (Operation* op : shapes)
    if (op->isBeforeInBlock(user)) op->moveBefore(user);
  load.getResult().replaceAllUsesWith(read);
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

bool isBesideStaged(Block& body) { return llvm::any_of(body.getOps<LoadSharedOp>(), isForProducts); }

llvm::DenseSet<Operation*> fetchTilesOf(func::FuncOp func, const Facts& facts,
                                        llvm::function_ref<bool(Block&)> isLoop) {
  SmallVector<std::pair<LoadOp, SmemType>> tiles;
  func.walk([&](LoadOp load) {
    const bool isAhead = llvm::all_of(load.getIndices(), [](Value index) { return isKnownAhead(index); });
    if (!isa<scf::ForOp>(load->getParentOp()) || !isAhead) return;
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
    Operation* reader = *copy->getUsers().begin();
    // A row became a tile of two dims on its way.
    Operation* tile = reader;
    if (auto reshape = dyn_cast<ReshapeOp>(*reader->getUsers().begin());
        reshape && reader->hasOneUse() && reshape.getResult().getType().getRank() == 1)
      tile = reshape;
    OpBuilder builder(copy);
    auto load = LoadOp::create(builder, copy.getLoc(), tile->getResult(0).getType(), copy.getView(), copy.getIndices(),
                               /*pad=*/FloatAttr(), copy.getCache());
    tile->getResult(0).replaceAllUsesWith(load.getResult());
    tile->erase();
    if (tile != reader) reader->erase();
    copy->erase();
  }
}

}  // namespace tile::ir
