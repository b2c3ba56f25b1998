// specialize_stores.cpp - finds stores of accumulators that can be bulk copies from staging buffers, and the buffers
// that they share. A bulk copy is asynchronous, and not ordered with the threads' own accesses: nothing in the kernel
// may read what it writes, signal to other programs that it is written, or write it again.
#include <algorithm>
#include <map>

#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/products.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/roles/specialize.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// The asynchronous product that a stored tile is made from.
struct ProductBehind {
  MmaOp product;
  bool transposed = false;  ///< the tile is the transpose of what warpgroups compute (turned products', too)
  explicit operator bool() const { return product != nullptr; }
};

/// The asynchronous product of the same shape that the tile is computed from by elementwise work, so that the tile has
/// the layout of its accumulator. Null: none.
ProductBehind productBehind(Value value, llvm::DenseSet<Value>& seen) {
  if (!isa<RankedTensorType>(value.getType()) || !seen.insert(value).second) return {};
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  auto from = [&](Value other) {
    auto type = dyn_cast<RankedTensorType>(other.getType());
    return type && type.getShape() == shape ? productBehind(other, seen) : ProductBehind();
  };
  auto fromAny = [&](auto&& values) {
    for (Value other : values)
      if (ProductBehind product = from(other)) return product;
    return ProductBehind();
  };
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp());
    if (!loop || arg == loop.getInductionVar()) return {};
    return from(loop.getBody()->getTerminator()->getOperand(arg.getArgNumber() - 1));
  }
  Operation* op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  // If threads read fragments of the first operand themselves, accumulators have their rows in another order, and
  // enough neighbours in a thread for ordinary stores.
  if (auto mma = dyn_cast<MmaOp>(op))
    return isAsyncProduct(op) && !fragmentOperand(mma) ? ProductBehind{mma, isTransposed(mma)} : ProductBehind();
  if (auto trans = dyn_cast<TransOp>(op)) {
    ProductBehind behind = shape.size() == 2 ? productBehind(trans.getSource(), seen) : ProductBehind();
    behind.transposed = !behind.transposed;
    return behind;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) return from(loop.getBody()->getTerminator()->getOperand(index));
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return fromAny(llvm::map_range(branch->getRegions(),
                                   [&](Region& region) { return region.front().getTerminator()->getOperand(index); }));
  if (!OpTrait::hasElementwiseMappableTraits(op)) return {};
  return fromAny(op->getOperands());
}

bool contains(Operation* loop, Value value) { return loop->isAncestor(value.getParentRegion()->getParentOp()); }

/// By how much `index` grows in each iteration of `loop`; 0: it does not, or that is not known.
int64_t strideOf(Value index, scf::ForOp loop, int64_t step) {
  if (index == loop.getInductionVar()) return step;
  Operation* op = index.getDefiningOp();
  if (!op || !contains(loop, index)) return 0;
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastOp, AssumeOp>(op))
    return strideOf(op->getOperand(0), loop, step);
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    // One part of the sum must not depend on the loop.
    if (!contains(loop, op->getOperand(1))) return strideOf(op->getOperand(0), loop, step);
    if (contains(loop, op->getOperand(0))) return 0;
    const int64_t grows = strideOf(op->getOperand(1), loop, step);
    return isa<arith::SubIOp>(op) ? -grows : grows;
  }
  if (auto mul = dyn_cast<arith::MulIOp>(op)) {
    APInt factor;
    if (matchPattern(mul.getRhs(), m_ConstantInt(&factor)))
      return strideOf(mul.getLhs(), loop, step) * factor.getSExtValue();
  }
  return 0;
}

/// Whether the iterations of every loop around the store write different boxes.
bool movesInLoops(Operation* store, ValueRange indices, ArrayRef<int64_t> shape) {
  for (Operation* parent = store->getParentOp(); parent; parent = parent->getParentOp()) {
    if (isa<scf::WhileOp>(parent)) return false;
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop) continue;
    APInt step;
    if (!matchPattern(loop.getStep(), m_ConstantInt(&step))) return false;
    bool moves = false;
    for (auto [dim, index] : llvm::enumerate(indices)) {
      int64_t fromLast = static_cast<int64_t>(indices.size() - dim);  // 1: the last dim
      int64_t extent = fromLast <= static_cast<int64_t>(shape.size()) ? shape[shape.size() - fromLast] : 1;
      moves |= std::abs(strideOf(index, loop, step.getSExtValue())) >= extent;
    }
    if (!moves) return false;
  }
  return true;
}

bool areExclusive(Operation* a, Operation* b) {
  for (Operation* parent = a->getParentOp(); parent; parent = parent->getParentOp())
    if (isa<scf::IfOp>(parent) && parent->isAncestor(b))
      for (Region& region : parent->getRegions())
        if (region.isAncestor(a->getParentRegion())) return !region.isAncestor(b->getParentRegion());
  return false;
}

/// Whether `later` may run after `earlier` in one program: in a loop around both, or further down.
bool mayFollow(Operation* later, Operation* earlier) {
  bool met = false, follows = false;
  for (Operation* op = earlier; op && op->getBlock(); op = op->getParentOp()) {
    if (isa<LoopLikeOpInterface>(op) && op->isProperAncestor(later)) return true;
    Operation* other = met ? nullptr : op->getBlock()->findAncestorOpInBlock(*later);
    if (!other) continue;
    met = true;
    follows = op != other && op->isBeforeInBlock(other);  // the same: two sides of a branch
  }
  return follows;
}

/// The stored tile as one of two dims: `stored`, or what it was reshaped from to divide rows into several dims. Null:
/// none.
Value rowsOf(Value stored) {
  auto type = dyn_cast<RankedTensorType>(stored.getType());
  if (!type || type.getRank() == 2) return type ? stored : Value();
  auto reshape = stored.getDefiningOp<ReshapeOp>();
  auto source = reshape ? cast<RankedTensorType>(reshape.getSource().getType()) : RankedTensorType();
  const bool dividesRows = source && source.getRank() == 2 && source.getShape().back() == type.getShape().back();
  return dividesRows ? reshape.getSource() : Value();
}

/// Tensor maps that a launch has left for stores: every box that is loaded may need one.
size_t mapsForStores(func::FuncOp func) {
  llvm::DenseSet<std::pair<Value, Type>> loaded;
  func.walk([&](Operation* op) {
    if (isa<LoadOp, LoadSharedOp>(op) && !op->getResult(0).getType().isIntOrFloat())
      loaded.insert({addressOf(op), op->getResult(0).getType()});
  });
  return kMaxTensorMaps - std::min<size_t>(kMaxTensorMaps, loaded.size());
}

/// What the kernel does to global memory, by what memory it is.
struct GlobalAccesses {
  llvm::DenseSet<std::pair<Value, unsigned>> read;
  llvm::MapVector<std::pair<Value, unsigned>, SmallVector<Operation*>> writers;
  SmallVector<Operation*> releases;
  bool hasUnknownRead = false;

  explicit GlobalAccesses(func::FuncOp func) {
    func.walk([&](Operation* op) {
      Value address = addressOf(op);
      if (!address) return;
      const MemoryRoot root = rootOf(address);
      if (isRelease(op)) releases.push_back(op);
      if (writesGlobal(op)) writers[root.key()].push_back(op);
      if (isa<LoadOp, GatherOp, LoadSharedOp, GatherSharedOp, AtomicRmwOp, AtomicCasOp>(op)) {
        read.insert(root.key());
        hasUnknownRead |= !root;
      }
    });
  }
  bool mayBeReleasedBehind(Operation* write) const {
    return llvm::any_of(releases, [&](Operation* release) { return mayFollow(release, write); });
  }
};

/// Whether several writes to one argument may end in any order: they are additions, or a program executes only one of
/// them.
bool mayEndInAnyOrder(ArrayRef<Operation*> writers) {
  if (llvm::all_of(writers, [](Operation* op) { return isa<AccumulateOp>(op); })) return true;
  for (size_t i = 0; i < writers.size(); ++i)
    for (size_t j = i + 1; j < writers.size(); ++j)
      if (!areExclusive(writers[i], writers[j])) return false;
  return true;
}

/// The store as a bulk copy, with the widths that its staging buffer may have; it has no buffer so far. Nullopt, or no
/// width: it cannot be one.
std::optional<BulkStore> bulkStoreOf(Operation* op, int numWarps, const Facts& facts) {
  auto stored = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  Value tile = rowsOf(op->getOperand(0));
  if (!tile) return std::nullopt;
  auto type = cast<RankedTensorType>(tile.getType());
  if (unsigned bits = type.getElementType().getIntOrFloatBitWidth(); bits != 16 && bits != 32) return std::nullopt;
  ValueRange indices = isa<StoreOp>(op) ? cast<StoreOp>(op).getIndices() : cast<AccumulateOp>(op).getIndices();
  if (!isa<AccumulateOp>(op) && !movesInLoops(op, indices, stored.getShape())) return std::nullopt;
  if (!beginsAtUnits(addressOf(op), indices, facts)) return std::nullopt;
  llvm::DenseSet<Value> seen;
  auto [product, transposed] = productBehind(tile, seen);
  if (!product) return std::nullopt;
  const WarpgroupProduct computed = warpgroupProduct(product);
  const int along = transposed ? 1 : 0;
  if (type.getDimSize(along) % (kTmaStoreRows * computed.teamsM) != 0) return std::nullopt;
  if (transposed && computed.teamsN > 1) return std::nullopt;
  // What is transposed behind its product leaves in one round of 64 rows and more: in several, as parts of weights'
  // sums do, it was slower than plain stores (H200: 0.98).
  const bool isPlain = transposed && !isTransposed(product);
  if (isPlain && (type.getDimSize(1) != kTmaStoreRows * computed.teamsM || type.getDimSize(0) % kTmaStoreRows != 0))
    return std::nullopt;

  BulkStore store{op, tile, {}, -1, transposed ? computed.teamsM : computed.teamsN};
  const int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  const bool sideBySide = store.columnGroups > 1 || transposed;
  // A tile that leaves in parts waits for each part: in loops it must leave as a whole.
  const bool onlyWhole = sideBySide && op->getParentOfType<LoopLikeOpInterface>();
  auto offer = [&](int64_t width) {
    auto staging = SmemType::get(op->getContext(), {rows, width}, type.getElementType(), 1, 1);
    // Warpgroups side by side need panels of their own.
    if (sideBySide && !tmaStoreColumnGroups(tmaStoreLayout(type.getShape(), numWarps, store.columnGroups, transposed),
                                            staging.slot(), numWarps))
      return;
    if (columns % width == 0 && !llvm::is_contained(store.columns, width) &&
        tmaBox(addressOf(op), staging, facts, true, nullptr,
               stored.getRank() > 2 ? stored.getShape() : ArrayRef<int64_t>()))
      store.columns.push_back(width);
  };
  if (transposed) {
    // A part is a round of all warpgroups; of two, one is filled while the other is copied out.
    for (const int64_t parts : {2, 1})
      if (const int64_t width = parts * kTmaStoreRows * store.columnGroups; width == columns || !onlyWhole)
        offer(width);
    return store;
  }
  offer(columns);
  for (int64_t width = columns / 64 * 64; width > 0 && !onlyWhole; width -= 64) offer(width);
  for (int64_t width = columns / 8 * 8; width >= 16 && !onlyWhole; width -= 8) offer(width);
  return store;
}

}  // namespace

std::vector<BulkStore> findBulkStores(func::FuncOp func, int numWarps, const Facts& facts) {
  const GlobalAccesses accesses(func);
  if (accesses.hasUnknownRead) return {};
  std::vector<BulkStore> stores;
  const size_t mostMaps = mapsForStores(func);
  llvm::DenseSet<std::pair<Value, Type>> mapped;
  std::map<std::pair<std::vector<int64_t>, const void*>, int> stagings;  // by widths and type
  for (auto& [root, writers] : accesses.writers) {
    if (!root.first || accesses.read.contains(root) || !mayEndInAnyOrder(writers)) continue;
    for (Operation* op : writers) {
      if (!isa<StoreOp, AccumulateOp>(op) || accesses.mayBeReleasedBehind(op)) continue;
      std::optional<BulkStore> store = bulkStoreOf(op, numWarps, facts);
      if (!store || store->columns.empty()) continue;
      const std::pair<Value, Type> box(addressOf(op), op->getOperand(0).getType());
      if (mapped.size() == mostMaps && !mapped.contains(box)) continue;
      mapped.insert(box);
      const std::vector<int64_t> widths(store->columns.begin(), store->columns.end());
      store->staging = stagings
                           .try_emplace({widths, store->tile.getType().getAsOpaquePointer()},
                                        static_cast<int>(stagings.size()))
                           .first->second;
      stores.push_back(std::move(*store));
    }
  }
  return stores;
}

}  // namespace tile::ir
