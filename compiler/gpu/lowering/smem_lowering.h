// smem_lowering.h - lowering of tile_smem.td: buffers in shared memory, asynchronous copies, products.
#pragma once
#include "compiler/gpu/lowering/emitter.h"
#include "compiler/layout/fragments.h"

namespace tile::ir {

/// Ops this file's functions lower; emitSmemOp dispatches.
bool isSmemOp(mlir::Operation* op);
llvm::LogicalResult emitSmemOp(Emitter& e, mlir::Operation* op);

/// Asynchronous copies and commits that stand right in front of a product are emitted by it, behind its first fragment
/// loads: copies write shared memory, so the assembler would not move those loads (and what waits for them) over the
/// copies.
llvm::SmallVector<mlir::Operation*> carriedBy(MmaOp op);
bool isCarried(mlir::Operation* asyncOp);
llvm::LogicalResult emitAsyncOp(Emitter& e, mlir::Operation* op);

// async_copy.cpp
llvm::LogicalResult emitAsyncCopy(Emitter& e, AsyncCopyOp op);
llvm::LogicalResult emitAsyncGather(Emitter& e, AsyncGatherOp op);
// dot.cpp, fma.cpp, wgmma.cpp
llvm::LogicalResult emitMma(Emitter& e, MmaOp op);
llvm::LogicalResult emitBatchMma(Emitter& e, BatchMmaOp op);
llvm::LogicalResult emitFma(Emitter& e, MmaOp op);
llvm::LogicalResult emitWgmma(Emitter& e, MmaOp op);
llvm::LogicalResult emitMmaWait(Emitter& e, MmaWaitOp op);

/// Orders this thread's earlier ordinary accesses to shared memory before what wgmma and bulk copies do there later
/// (after a barrier, for other threads).
void fenceAsyncProxy(Emitter& e);

/// store_tile.cpp. Writes to the buffer at `base` the elements whose coordinate along `minor` (the dim the buffer's
/// rows have their neighbours along) is in [first, first + tile.cols): by stmatrix where target and layout allow, else
/// the widest stores. Elements outside the layout's shape are not written.
void storeTile(Emitter& e, llvm::ArrayRef<llvm::Value*> values, const layout::Layout& layout, llvm::Value* base,
               const layout::SharedTile& tile, int minor, int64_t first = 0);
/// The part of storeTile that uses stmatrix; false, and nothing emitted, where that is not possible. `everyWarp`: each
/// has bytes of its own.
bool storeByMatrices(Emitter& e, llvm::ArrayRef<llvm::Value*> values, const layout::Layout& layout, llvm::Value* base,
                     const layout::SharedTile& tile, int minor, int64_t first = 0, bool everyWarp = false);
/// Reads the whole tile back by ldmatrix; nullopt where layout or buffer do not allow that.
std::optional<Regs> loadByMatrices(Emitter& e, llvm::Type* element, const layout::Layout& layout, llvm::Value* base,
                                   const layout::SharedTile& tile, int minor);
/// Length of the register runs that sit side by side in a buffer, at most 16 bytes, none of them across the tile's
/// edge.
int vectorLength(const layout::Layout& layout, const layout::SharedTile& tile, int minor);

/// Where a thread looks in a tile in shared memory: its own row and byte column, to which constants are added.
/// Constants that keep clear of the thread's bits cost one XOR (shared by all accesses with the same low bits, and
/// invariant in loops) and an immediate; others the full address function.
class SmemAddress {
 public:
  /// `rowMask`, `byteMask`: bits that may be set in row and byte of any thread; -1 when not known.
  SmemAddress(Emitter& e, const layout::SharedTile& tile, llvm::Value* row, int64_t rowMask, llvm::Value* byte,
              int64_t byteMask);
  /// The same from a plan's sums of lane and warp terms.
  SmemAddress(Emitter& e, const layout::SharedTile& tile, const layout::ThreadSum& row, const layout::ThreadSum& byte);
  /// The thread's element under a register layout of the tile, `rowDim` running along the tile's rows.
  SmemAddress(Emitter& e, const layout::SharedTile& tile, const layout::Layout& layout, int rowDim);

  /// Pointer into the buffer that starts at `base`.
  llvm::Value* at(llvm::Value* base, int64_t rowConstant, int64_t byteConstant) const;

 private:
  llvm::Value* offsetOf(llvm::Value* row, llvm::Value* byte) const;

  Emitter& e_;
  layout::SharedTile tile_;
  llvm::Value *row_, *byte_, *offset_;
  int64_t rowMask_, byteMask_;
};

/// i32 value of a sum of lane and warp terms.
llvm::Value* emitThreadSum(Emitter& e, const layout::ThreadSum& sum);

/// Runs `body` where `condition` (null: always) holds; nothing defined inside may be used after.
void emitIf(Emitter& e, llvm::Value* condition, llvm::function_ref<void()> body);

}  // namespace tile::ir
