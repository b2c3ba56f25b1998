// access_conflicts.h - accesses to shared and global memory, and whether two of them need a barrier in between.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/analysis/memory_roots.h"

namespace tile::ir {

/// What an op does to memory.
struct MemoryAccess {
  bool isShared = false;
  bool isWrite = false;
  int64_t begin = 0, end = 0;         ///< shared: bytes
  mlir::Operation* buffer = nullptr;  ///< shared: the allocation, or the op whose scratch it is
  bool isStaged = false;              ///< shared: ordered already against accesses of the same buffer
  bool isPadding = false;             ///< shared: only bytes that no other write to the buffer touches
  MemoryRoot root;                    ///< global
  mlir::Operation* op = nullptr;      ///< global: for the in-place rule; shared: the product that reads
  bool isAtomic = false;
  bool carried = false;             ///< made in an earlier iteration
  mlir::Operation* loop = nullptr;  ///< global: the outermost loop of which it was an earlier iteration
  bool isRunning = false;           ///< a read of an asynchronous product: no barrier ends it, only tile.mma_wait
  /// Of a buffer of two stages that alternate from iteration to iteration of the loop `turns`: the stage of this
  /// iteration, the other one, or unknown.
  enum class Turn { same, other, unknown } turn = Turn::unknown;
  mlir::Operation* turns = nullptr;

  bool operator==(const MemoryAccess& o) const = default;
};

/// Whether `now` must not begin before all threads have finished `before` (read after write, write after read, write
/// after write by different threads). `facts` is called where ranges of indices are needed.
bool needsBarrier(const MemoryAccess& before, const MemoryAccess& now, llvm::function_ref<const Facts&()> facts);

}  // namespace tile::ir
