// ring_groups.h - which loads into shared memory share the stages of a ring.
//
// A load may move down to the first statement of its block that reads it: there the producer reserves a stage and the
// consumers acquire it, so that both do so in program order on every path. Loads with the same first reader and the
// same last reader form a group: one stage, one barrier. Single rows join the group of a tile that is acquired before
// them: a barrier of their own would cost more than the copy. A stage is released behind the last statement that reads
// it.
//
// Groups share a ring if their buffers have the same types and one consumer never holds stages of both at a time: loops
// that a pass made from one loop, loops one after the other and, where room is short, groups of one block and loops
// whose tiles have other types.
#pragma once
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Loads and gathers into shared memory that become the fields of one stage.
struct LoadGroup {
  llvm::SmallVector<mlir::Operation*> loads;
  mlir::Operation* first = nullptr;  ///< statement in front of which the stage is acquired
  mlir::Operation* last = nullptr;   ///< statement of the same block behind which it is released
  bool onlyProducts = true;          ///< readers are asynchronous products alone: warpgroups release
  bool inBulk = false;               ///< some are bulk copies
  bool byThreads = false;            ///< some are copied by the producer's threads
  llvm::SmallVector<mlir::Operation*> turned;  ///< those copied into a ring of their own first, and turned from there
  int ring = -1;                     ///< index of the ring
  mlir::Block* block() const { return first->getBlock(); }
  int64_t turnedBytes() const;
};

/// Which groups of one block, one behind the other, share a ring: less of them is under way, but they need less room.
enum class Turns { none, outside_loops, all };
/// What groups of different loops that share a ring have in common: the types of their buffers, or only how they are
/// filled. (Of such a ring all loops have as many stages, as large as the largest: the producer is less far ahead of
/// the end of a loop than with rings of their own.)
enum class Alike { types, fills };

class RingGroups {
 public:
  /// `byThreads`: which of the kernel's copies are no bulk copies. `turned`: which are turned behind them. `staying`:
  /// copies that are acquired in their own block, also where only a branch reads them.
  RingGroups(mlir::func::FuncOp func, const llvm::DenseSet<mlir::Operation*>& byThreads,
             const llvm::DenseSet<mlir::Operation*>& turned, const llvm::DenseSet<mlir::Operation*>& staying = {},
             Turns turns = Turns::none, Alike alike = Alike::types);

  /// Null, or a load that cannot be in a ring and why.
  mlir::Operation* refused() const { return refused_; }
  const std::string& why() const { return why_; }

  std::vector<LoadGroup>& groups() { return groups_; }  ///< in program order
  const std::vector<LoadGroup>& groups() const { return groups_; }
  int numRings() const { return numRings_; }
  /// Of each buffer of a ring's stage the copy that needs the most room; groups have their copies in the same order.
  llvm::SmallVector<mlir::Operation*> buffersOf(int ring) const;
  Turns turns() const { return turns_; }

 private:
  void findGroups(mlir::func::FuncOp func, const llvm::DenseSet<mlir::Operation*>& byThreads,
                  const llvm::DenseSet<mlir::Operation*>& turned, const llvm::DenseSet<mlir::Operation*>& staying);
  void joinRows();
  void shareRings(Alike alike);

  std::vector<LoadGroup> groups_;
  int numRings_ = 0;
  Turns turns_ = Turns::none;
  mlir::Operation* refused_ = nullptr;
  std::string why_;
};

/// A copy to shared memory as a value: load_shared or gather_shared.
bool isSharedCopy(mlir::Operation* op);
/// What such a copy gives.
inline SmemType copiedType(mlir::Operation* copy) { return mlir::cast<SmemType>(copy->getResult(0).getType()); }
/// The tile of two dims it copies, without padding.
llvm::SmallVector<int64_t, 2> copiedShape(mlir::Operation* copy);
/// Ops that read a tile in shared memory, through transposes.
llvm::SmallVector<mlir::Operation*> readersOf(mlir::Value smem);
/// Whether the statements of a block (of a loop) do nothing with tiles but multiply; what computes places is no matter.
bool onlyMultiplies(mlir::Block& block);
/// A product whose result is ready later: it runs on a warpgroup's asynchronous engine.
bool isAsyncProduct(mlir::Operation* op);

}  // namespace tile::ir
