// specialize_rows.cpp - rows that consumers read beside staged tiles (statistics, factors) come by bulk copies, too.
// A plain load would be in the way of every iteration: the producer cannot run ahead with it, and its latency is the
// memory's. Before: %r = tile.load of N elements.  After: load_shared of 1 x N, read back right in front of its first
// user: in registers it would be in the way.
#include "compiler/gpu/specialize.h"
#include "compiler/gpu/tma_box.h"

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
  return tmaBox(load.getView(), type, facts, /*isStore=*/false) ? type : SmemType();
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

void fetch(LoadOp load, SmemType type) {
  OpBuilder builder(load);
  Location loc = load.getLoc();
  SmallVector<Operation*> shapes;
  Operation* user = firstUser(load.getResult(), *load->getBlock(), shapes);
  if (!user) return;
  auto shared =
      LoadSharedOp::create(builder, loc, type, load.getView(), load.getIndices(), ArrayRef<int64_t>(type.getShape()),
                           load.getCache());
  builder.setInsertionPoint(user);
  auto row = RankedTensorType::get(type.getShape(), type.getElementType());
  Value read = SmemLoadOp::create(builder, loc, row, shared);
  read = ReshapeOp::create(builder, loc, load.getResult().getType(), read);
  llvm::sort(shapes, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  for (Operation* op : shapes)
    if (op->isBeforeInBlock(user)) op->moveBefore(user);
  load.getResult().replaceAllUsesWith(read);
  load.erase();
}

}  // namespace

void fetchRows(func::FuncOp func, const Facts& facts) {
  SmallVector<std::pair<LoadOp, SmemType>> rows;
  func.walk([&](LoadOp load) {
    if (!isa<scf::ForOp>(load->getParentOp()) || !goesWithTiles(load)) return;
    if (SmemType type = rowType(load, facts)) rows.push_back({load, type});
  });
  for (auto [load, type] : rows) fetch(load, type);
}

}  // namespace tile::ir
