// specialize.h - the parts of the specialize pass: which stores become bulk copies, and the rewriting itself.
#pragma once
#include <optional>

#include "compiler/analysis/facts.h"
#include "compiler/gpu/rings/memory_plan.h"
#include "compiler/gpu/rings/register_plan.h"
#include "compiler/gpu/roles/bands.h"
#include "compiler/gpu/roles/role_slice.h"

namespace tile::ir {

/// A store or accumulate of accumulators that the consumers' warpgroups copy out in bulk.
struct BulkStore {
  mlir::Operation* op;
  mlir::Value tile;  ///< what is stored, of two dims; the op may store it as a box of more
  llvm::SmallVector<int64_t> columns;  ///< of the staging buffer: the choices, all of them first
  int staging = -1;                    ///< index of the buffer it shares with stores of the same tile type
  int columnGroups = 1;                ///< warpgroups side by side; with one each has rows of its own
};
/// Those of the kernel that can be, with their staging buffers.
std::vector<BulkStore> findBulkStores(mlir::func::FuncOp func, int numWarps, const Facts& facts);

/// Turns loads of rows beside staged tiles into tiles of shared memory; returns the copies made (specialize_rows.cpp).
llvm::DenseSet<mlir::Operation*> fetchRows(mlir::func::FuncOp func, const Facts& facts);
/// The same of tiles that no product reads.
llvm::DenseSet<mlir::Operation*> fetchTiles(mlir::func::FuncOp func, const Facts& facts);
/// The same of tiles in loops that only read.
llvm::DenseSet<mlir::Operation*> fetchReads(mlir::func::FuncOp func, const Facts& facts);
/// Makes such copies loads again.
void unfetch(const llvm::DenseSet<mlir::Operation*>& copies);

/// Makes larger boxes of tiles with padding, which bulk copies fill with zeros, and puts back what was there unless they
/// are kept (specialize_padded.cpp).
class PaddedBoxes {
 public:
  /// Tiles that are turned behind their copies stay as they are.
  PaddedBoxes(mlir::func::FuncOp func, const Facts& facts, const llvm::DenseSet<mlir::Operation*>& turned);
  ~PaddedBoxes();
  PaddedBoxes(const PaddedBoxes&) = delete;
  PaddedBoxes& operator=(const PaddedBoxes&) = delete;
  bool empty() const { return before_.empty(); }
  void keep() { before_.clear(); }

 private:
  struct Load {
    LoadSharedOp load;
    mlir::Value view;
    llvm::SmallVector<int64_t, 2> box;
  };
  std::vector<Load> before_;
};

/// Makes one load_shared of what is loaded, read and shared again only to lie the other way round; returns these loads.
/// specialize_turns.cpp
llvm::DenseSet<mlir::Operation*> foldTurns(mlir::func::FuncOp func);
/// Puts back what foldTurns took.
void unfoldTurns(const llvm::DenseSet<mlir::Operation*>& turned);
/// The type of a turned tile as it is copied.
SmemType rawType(SmemType turned);

/// Numbers that copies depend on, found by the lanes of a warp, and what found them before (lane_numbers.cpp).
struct LaneNumber {
  BallotOp found;      ///< by the lanes
  mlir::Value number;  ///< what that says: its result, or the truth of it
  ItemOp before;
};
using LaneNumbers = std::vector<LaneNumber>;
LaneNumbers numbersByLanes(mlir::func::FuncOp func);
/// Erases one or the other.
void keepNumbers(const LaneNumbers& numbers);
void dropNumbers(const LaneNumbers& numbers);

/// Everything decided about one kernel.
struct RoleDecisions {
  RingGroups groups;
  RoleSlice slice;
  std::vector<LoadGroup> turnedGroups;  ///< those with turned tiles
  std::optional<RoleSlice> turner;      ///< of these groups
  std::vector<BulkStore> stores;
  MemoryPlan memory;
  RolePlan roles;
  llvm::DenseSet<mlir::Operation*> alternating;  ///< shares with two buffers that take turns
  llvm::DenseSet<mlir::Operation*> byThreads;    ///< copies that the producer's threads make
  std::vector<int> rawRings;                     ///< by ring: index in `memory` of the one it is turned from; -1: none
  Bands bands = {};                              ///< of the grid
  bool storesAsComputed = false;                 ///< kAsComputedAttr
};
/// Rewrites the kernel; nothing can fail any more.
void rewriteWithRoles(mlir::func::FuncOp func, RoleDecisions& plan);

}  // namespace tile::ir
