// nest.h - evaluation of fused tile expressions inside a loop nest over a box.
//
// A Nest is a set of loop dims (a box of static sizes) and the values evaluated in it. Neighbouring dims along which
// every buffer touched is contiguous are merged, so that small or odd inner dims still give long vectors. The last dim
// left is the one computed in vectors; subexpressions that do not change along it are evaluated once per row.
#pragma once
#include <map>
#include <set>

#include "compiler/host/emitter.h"

namespace tile::ir::host {

/// Which element of a value a loop iteration touches: dim d is at index[loop[d]] + offset[d] (loop -1: offset only).
struct Access {
  llvm::SmallVector<int, 4> loop;
  llvm::SmallVector<int64_t, 4> offset;
  static Access identity(size_t rank);
  bool operator==(const Access&) const = default;
  std::strong_ordering operator<=>(const Access& o) const {
    auto c = std::lexicographical_compare_three_way(loop.begin(), loop.end(), o.loop.begin(), o.loop.end());
    return c != 0
               ? c
               : std::lexicographical_compare_three_way(offset.begin(), offset.end(), o.offset.begin(), o.offset.end());
  }
};

class Nest {
 public:
  Nest(Emitter& e, llvm::ArrayRef<int64_t> shape) : e_(e), shape_(shape) {}

  /// Declares what will be touched; all of it before loops are opened.
  void uses(mlir::Value tile, Access access);
  void uses(mlir::Value tile) { uses(tile, Access::identity(shape_.size())); }
  void uses(const Ref& ref);
  /// Tiles of the plan that are made in the loops of `op` are computed and stored here, not read.
  void makeTilesOf(mlir::Operation* op) { making_ = op; }
  /// For an op that is itself placed: its operands, as making the result reads them.
  void usesOperands(mlir::Operation* op);
  /// Keeps dim d a loop of its own (the axis of a reduction).
  void keepApart(int d) { apart_.push_back(d); }
  void keepAllApart() {
    for (size_t d = 0; d < shape_.size(); ++d) keepApart(static_cast<int>(d));
  }
  /// Decides the merged dims. Their sizes, outermost first; at least one.
  const llvm::SmallVector<int64_t, 4>& dims();
  llvm::ArrayRef<int64_t> sizes() const { return sizes_; }
  /// Whether the vectors of a row lie together in `ref`: its elements along the last merged dim are neighbours.
  bool isContiguous(const Ref& ref) const;
  /// Elements of `ref` from one index of a merged dim to the next.
  int64_t stride(const Ref& ref, int dim) const;
  int dimOf(int shapeDim);  ///< merged dim that covers a dim of the box; -1 for dims of size 1

  /// Runs all loops: `body(width)` per vector or scalar. Rows' invariants are hoisted.
  mlir::LogicalResult run(unsigned width, llvm::function_ref<mlir::LogicalResult(unsigned)> body);
  /// Runs the loops of all merged dims but the last (and but `also`), then `row` once per iteration.
  mlir::LogicalResult outer(llvm::function_ref<mlir::LogicalResult()> row, int also = -1);
  /// One row of the last dim: vectors, then what is left over.
  mlir::LogicalResult row(unsigned width, llvm::function_ref<mlir::LogicalResult(unsigned)> body);

  void setIndex(int dim, llvm::Value* index) { index_[dim] = index; }
  /// Forgets values computed so far: they do not dominate what comes next.
  void enter() { computed_.clear(); }
  void enterRow() {
    computed_.clear();
    invariant_.clear();
    lasting_.clear();
  }
  /// Computes now what does not change along the last dim.
  void hoistAll();
  /// Computes now, and keeps while a loop over `dim` runs, vectors that do not change along it: a few of them. Dropped
  /// with forget() or the next row.
  void hoistAcross(int dim, unsigned width);
  void forget() { lasting_.clear(); }

  /// `width` neighbours along the last dim (a scalar for 1). Null after an error was emitted.
  llvm::Value* eval(mlir::Value tile, const Access& access, unsigned width);
  llvm::Value* eval(mlir::Value tile, unsigned width) { return eval(tile, Access::identity(shape_.size()), width); }
  /// The op's own results, computed (not read back). Null as above, else `computed` has one value per result.
  bool define(mlir::Operation* op, unsigned width, llvm::SmallVectorImpl<llvm::Value*>& computed);
  llvm::Value* address(const Ref& ref, mlir::Type element);
  /// How much an integer tile (or, in elements, a pointer tile) grows per element along the last dim, where that is one
  /// number known now: 1 for consecutive offsets, 0 for a value that does not change. Additions are taken not to wrap.
  std::optional<int64_t> step(mlir::Value tile, const Access& access);
  std::optional<int64_t> step(mlir::Value tile) { return step(tile, Access::identity(shape_.size())); }
  /// The same where edges may stop it (clamped coordinates): it grows by no more per element.
  std::optional<int64_t> mostStep(mlir::Value tile);
  /// Whether an integer or pointer tile is arithmetic on numbers of elements and of the launch, nothing of it read.
  bool isComputed(mlir::Value tile) const;
  llvm::Value* index(int dim) const { return index_[dim]; }
  /// The widest register element that evaluating the tile takes, in bytes.
  int64_t widestElement(mlir::Value tile) const;
  /// The value of an integer that is the same everywhere and known now, like the stride of a dim of stride 1.
  std::optional<int64_t> uniform(mlir::Value v);
  /// Row-major element number inside the box.
  llvm::Value* linearIndex();

 private:
  struct Key {
    void* tile;
    unsigned width;
    Access access;
    auto operator<=>(const Key&) const = default;
  };
  static Key key(mlir::Value tile, unsigned width, const Access& a) { return {tile.getAsOpaquePointer(), width, a}; }
  llvm::SmallVector<int64_t, 4> loopStrides(const Ref& ref, const Access& a) const;
  void leaves(mlir::Value tile, const Access& a, llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit);
  void keepRowsOfGathers(mlir::Value tile, const Access& a, std::set<Key>& seen);
  std::optional<int64_t> stepOf(mlir::Value tile, const Access& access);
  using Steps = std::optional<std::pair<int64_t, int64_t>>;  ///< the least and the most
  Steps steps(mlir::Value tile, const Access& access);
  Steps stepsOf(mlir::Value tile, const Access& access);
  bool isInvariant(mlir::Value tile, const Access& a);
  void hoist(mlir::Value tile, const Access& a, std::set<Key>& seen);
  llvm::Value* elementNumber(const Ref& ref, const Access& a);
  llvm::Value* evalLeaf(const Ref& ref, mlir::Type element, const Access& a, llvm::Value* base, unsigned width);
  bool evalOp(mlir::Operation* op, const Access& a, unsigned width, llvm::SmallVectorImpl<llvm::Value*>& results);
  /// The gather's elements, read here (pointer_access.cpp).
  llvm::Value* evalGather(GatherOp gather, const Access& a, unsigned width);
  llvm::Value* evalIota(IotaOp iota, const Access& a, unsigned width);
  Access through(mlir::Operation* op, const Access& a) const;
  bool isMadeHere(mlir::Value tile) const { return making_ && e_.plan.madeIn(tile) == making_; }

  Emitter& e_;
  mlir::Operation* making_ = nullptr;
  llvm::SmallVector<int64_t, 4> shape_;
  llvm::SmallVector<llvm::SmallVector<int64_t, 4>> touched_;
  llvm::SmallVector<std::pair<mlir::Value, Access>> roots_;
  llvm::SmallVector<int, 2> apart_;
  llvm::SmallVector<int64_t, 4> sizes_;  // merged dims
  llvm::SmallVector<int, 4> lead_;       // per merged dim: the box dim that steps by one element of it
  llvm::SmallVector<int, 4> group_;      // per box dim: its merged dim, or -1
  llvm::SmallVector<llvm::Value*, 4> index_;
  std::map<Key, llvm::Value*> computed_, invariant_, lasting_;
  std::map<Key, bool> isInvariant_;  // what is known of values with several uses is not found out again
  std::map<Key, std::optional<int64_t>> step_;
  std::map<Key, Steps> steps_;
};

}  // namespace tile::ir::host
