// role_memory.h - what a kernel with roles keeps in shared memory: rings of the producer, buffers that stored tiles
// leave through, tiles that its consumers share.
#pragma once
#include "compiler/gpu/roles/specialize.h"

namespace tile::ir {

/// What a kernel may have, and gets where it does not say.
struct MemoryWishes {
  int64_t sharedBytes;  ///< of a multiprocessor
  int stages;           ///< of a ring in a loop
  bool storesAsComputed = false;  ///< results leave without shared memory (kAsComputedAttr)
};
/// A store outside of loops.
bool isResult(mlir::Operation* op);
/// Everything the kernel would like to have. `rawRings`: by ring, the index of the one its tiles are turned from, or
/// -1.
MemoryPlan planMemory(mlir::func::FuncOp func, const RingGroups& groups, const std::vector<BulkStore>& stores,
                      const MemoryWishes& wishes, std::vector<int>& rawRings);

/// Loaded tiles of the type of a tile that is stored behind them in their block: it may leave through theirs.
llvm::DenseSet<mlir::Operation*> findHosts(const std::vector<BulkStore>& stores);

/// Tiles that every iteration shares for asynchronous products alone. With two buffers that take turns nobody waits
/// until all others have read the one of the iteration before.
std::vector<ShareOp> findAlternating(mlir::func::FuncOp func);

/// Chooses stages and columns, and two buffers for the shares that can alternate unless that costs loops a stage.
/// False: one stage of everything does not fit.
bool chooseMemory(mlir::func::FuncOp func, MemoryPlan& memory, llvm::ArrayRef<ShareOp> shares,
                  llvm::DenseSet<mlir::Operation*>& alternating);

}  // namespace tile::ir
