// plan.h - where every tile of a kernel lives on the host: recomputed inside its consumers' loops, or in the arena.
//
// A tile is *fused* when evaluating it again is cheap or one op's loops are all that needs it (iota, splat, broadcast,
// elementwise: values with several uses stay in registers there; gathers of runs); it is *placed* in an arena buffer
// when it is loaded otherwise, computed by a dot, a reduction, a scan, carried by control flow, or too dear to compute
// twice; a reshape or transpose of a placed tile is another Ref into the same buffer. Loop-carried tiles and the values
// that replace them share one buffer where the old value is dead by then.
#pragma once
#include <string>
#include <vector>

#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/targets/host.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace tile::ir::host {

/// Element (i0, i1, ..) of a tile is element `offset + sum(i_d * strides[d])` of the buffer.
struct Ref {
  int buffer = -1;  ///< -1: none, elements that are numbered alone
  int64_t offset = 0;
  llvm::SmallVector<int64_t, 4> strides;
};

struct Buffer {
  int64_t bytes = 0;
  int64_t offset = 0;       ///< in the arena
  int first = 0, last = 0;  ///< op numbers between which the content matters, both included
  std::string what;
  mlir::Location where;
};

llvm::SmallVector<int64_t, 4> rowMajorStrides(llvm::ArrayRef<int64_t> shape);
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value v) {
  return llvm::cast<mlir::RankedTensorType>(v.getType()).getShape();
}
inline mlir::Type elementOf(mlir::Value v) { return mlir::getElementTypeOrSelf(v.getType()); }
/// True for a tile.reshape or tile.trans that only adds, drops or moves dims of size 1: its elements keep their dims.
bool movesOnlyUnitDims(mlir::Operation* op);
/// For each non-unit dim of `from`, in order, the matching dim of `to`. Only when movesOnlyUnitDims.
llvm::SmallVector<std::pair<int, int>, 4> matchDims(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// Expressions of this cost (see Plan::cost) fill a vector pipeline by themselves: one vector at a time will do.
inline bool isLong(int cost) { return cost > 30; }
/// Vectors to compute at a time: of short expressions many, their loop would cost as much as they do.
inline int vectorsAtATime(int cost) { return isLong(cost) ? 1 : cost > 8 ? 2 : 4; }

/// Whether two stores or scatters are known to write different memory.
bool areApart(mlir::Operation* a, mlir::Operation* b);

/// Tables that a histogram counts in, one value after the other in turns: equal values that follow each other would
/// wait for each other's count. Of few values adding up the tables would take longer.
int64_t histogramTables(HistogramOp op);

class Plan {
 public:
  Plan(mlir::func::FuncOp kernel, const HostFeatures& machine);
  const HostFeatures& machine() const { return machine_; }

  /// Null for a fused tile.
  const Ref* place(mlir::Value tile) const {
    auto it = refs_.find(tile);
    return it == refs_.end() ? nullptr : &it->second;
  }
  /// Whether the tile has a buffer of its own, to be written where its op stands.
  bool owns(mlir::Value tile) const { return owned_.contains(tile); }
  /// Whether anything but the op that makes the tile writes to its buffer.
  bool sharesBuffer(mlir::Value tile) const { return members_[root(refs_.lookup(tile).buffer)].size() > 1; }
  /// The op whose loops make the placed tile too; null where the tile is made where its own op stands.
  mlir::Operation* madeIn(mlir::Value tile) const { return madeIn_.lookup(tile); }
  /// Such tiles of an op, in the order of their ops.
  llvm::SmallVector<mlir::Value, 2> tilesMadeIn(mlir::Operation* loops) const;
  /// Whether nobody but that op reads it: it needs no memory.
  bool isPassing(mlir::Value tile) const { return passing_.contains(tile); }
  /// The stores, or scatters, that run in one loop with this one, in their order, itself among them; none: it is alone.
  llvm::ArrayRef<mlir::Operation*> storedTogether(mlir::Operation* store) const {
    auto it = together_.find(store);
    return it == together_.end() ? llvm::ArrayRef<mlir::Operation*>() : it->second;
  }
  /// Whether a box of a view that the kernel stores to may be read where it lies: by the loops of stores alone, before
  /// anything else is stored there.
  bool isReadLate(LoadOp box) const { return readLate_.contains(box); }
  /// The stores of those loops, where they overwrite the box: element by element, if they are one loop. They have its
  /// indices. None: nothing is overwritten.
  llvm::ArrayRef<mlir::Operation*> updatesOf(LoadOp box) const { return storedTogether(readLate_.lookup(box)); }
  /// Whether the op widens integers of 8 or 16 bits that grow along a dim and may begin again there: 127, -128.
  bool beginsAgain(mlir::Operation* op) const { return beginAgain_.contains(op); }
  /// The second op, behind the one that makes it, whose loops go over a tile that is read in place; null: fewer do.
  mlir::Operation* secondPass(mlir::Value tile);
  static constexpr int kLongest = 300;  ///< ops in one loop body; more would only lengthen compile time
  /// Ops that evaluating one element costs; what is read from a buffer costs 1.
  int cost(mlir::Value tile) const { return costs_.lookup(tile); }
  /// The same for making a placed tile.
  int costOfMaking(mlir::Operation* op) const;
  /// The same for the other tiles that are made in the loops of an op.
  int costOfMadeIn(mlir::Operation* loops) const;

  /// Arena space only needed while `op` runs; `slot` tells several apart.
  const Ref* scratch(mlir::Operation* op, int slot) const {
    auto it = scratch_.find({op, slot});
    return it == scratch_.end() ? nullptr : &it->second;
  }

  /// Buffers merged by sharing have one root.
  int root(int buffer) const;
  const std::vector<Buffer>& buffers() const { return buffers_; }
  int64_t arenaBytes() const { return arenaBytes_; }

 private:
  struct Read {
    mlir::Operation* op;
    unsigned operand;
    bool pointwise;  ///< the reader touches element i only to make element i
  };

  void number(mlir::func::FuncOp kernel);
  void findStoresTogether(mlir::func::FuncOp kernel, const Facts& facts);
  void findSoleReaders(mlir::func::FuncOp kernel, const Facts& facts);
  void findBeginningsAgain(mlir::func::FuncOp kernel, const Facts& facts);
  void findRuns(mlir::func::FuncOp kernel, const Facts& facts);
  void decide(mlir::Operation* op);
  /// Whether evaluating the tile reads memory of the user's, through a gather that has no buffer.
  bool readsMemory(mlir::Value tile) const {
    return !refs_.contains(tile) && tile.getDefiningOp() && readsMemory_.contains(tile.getDefiningOp());
  }
  bool isCarried(mlir::Value v) const;
  bool isReordered(mlir::Value v) const;
  void addValue(mlir::Value v, llvm::StringRef what);
  void addScratch(mlir::Operation* op, int slot, llvm::ArrayRef<int64_t> shape, int64_t elementBytes,
                  llvm::StringRef what);
  void requestScratch(mlir::Operation* op);

  using Visited = llvm::DenseSet<std::pair<mlir::Value, int>>;
  void collectReads(mlir::Value v, bool pointwise, Visited& visited, llvm::SmallVectorImpl<Read>& out) const;
  llvm::ArrayRef<Read> readsOf(mlir::Value v);
  bool isReadAfter(mlir::Value v, mlir::Operation* point);
  bool clobbers(mlir::Value written, mlir::Value other);
  bool tie(mlir::Value a, mlir::Value b);
  void merge(mlir::Value a, mlir::Value b);
  void tieControlFlow(mlir::func::FuncOp kernel);

  void visitLeaves(mlir::Value tile, bool same, llvm::function_ref<void(mlir::Value, bool)> visit) const;
  void visitLeaves(mlir::Value tile, bool same, Visited& visited,
                   llvm::function_ref<void(mlir::Value, bool)> visit) const;
  mlir::Operation* firstReduction(mlir::Value made);
  mlir::Operation* lastReduction(mlir::Value made);
  bool isComputableAt(mlir::Operation* point, mlir::Operation* def) const;
  mlir::Operation* nextMaker(mlir::Value made);
  void makeInLoops(mlir::func::FuncOp kernel);

  void computeLifetimes();
  void assignOffsets();

  HostFeatures machine_;
  llvm::DenseMap<mlir::Operation*, std::pair<int, int>> numbers_;  // first and last op number inside
  llvm::DenseMap<mlir::Value, Ref> refs_;
  llvm::DenseMap<mlir::Value, int> costs_;
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<mlir::Operation*, 4>> together_;
  llvm::DenseMap<mlir::Operation*, mlir::Operation*> readLate_;  ///< see isReadLate; the store that overwrites it
  llvm::DenseSet<mlir::Operation*> readOnce_;                    ///< see findSoleReaders
  llvm::DenseSet<mlir::Operation*> beginAgain_;                  ///< see beginsAgain
  llvm::DenseSet<mlir::Operation*> runs_;         ///< offsets of which rows are runs, and nothing but offsets
  llvm::DenseSet<mlir::Operation*> readsMemory_;  ///< ops whose operands are such tiles, and the gathers themselves
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Read, 4>> reads_;
  llvm::DenseMap<mlir::Value, mlir::Operation*> madeIn_;
  llvm::DenseSet<mlir::Value> passing_;
  llvm::DenseMap<std::pair<mlir::Operation*, int>, Ref> scratch_;
  std::vector<mlir::Value> owners_;  // tiles with a buffer of their own (not aliases), in program order
  llvm::DenseSet<mlir::Value> owned_;
  std::vector<Buffer> buffers_;
  mutable std::vector<int> parent_;  // union-find over buffers
  std::vector<llvm::SmallVector<mlir::Value, 2>> members_;
  int64_t arenaBytes_ = 0;
};

}  // namespace tile::ir::host
