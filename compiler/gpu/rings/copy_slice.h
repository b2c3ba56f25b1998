// copy_slice.h - the slice of a loop body that computes the addresses of its copies to shared memory, so that these can
// run some iterations ahead of the rest: index arithmetic, carried offsets, conditions around the copies, and reads of
// indices from global memory (block tables).
#pragma once
#include <string>

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"

namespace tile::ir {

/// Emits the copies by threads that a load_shared or gather_shared stands for, into the buffer `target`, under
/// `enable`. `map` has the operands.
void emitThreadCopy(mlir::OpBuilder& builder, mlir::Operation* copy, const mlir::IRMapping& map, mlir::Value target,
                    mlir::Value enable);

class CopySlice {
 public:
  /// `copies` are load_shared and gather_shared ops of the loop's body, directly in it or under scf.if; `apart` those
  /// of them that read nothing an earlier iteration writes, although the loop writes to the same argument.
  CopySlice(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Operation*> copies,
            llvm::ArrayRef<mlir::Operation*> apart = {});

  /// Why the slice may not run ahead, as the end of "copies are not pipelined: ..."; empty if it may.
  const std::string& obstacle() const { return obstacle_; }
  /// The carried values that the slice depends on, as indices of the loop's iter_args.
  llvm::ArrayRef<unsigned> carried() const { return carried_.getArrayRef(); }
  /// Whether the slice reads global memory or branches, so that it must run only for iterations that exist.
  bool needsGuard() const { return needsGuard_; }

  /// Emits the slice for the iteration with induction value `iv` and carried values `state`; each copy becomes what
  /// `emitCopy` makes of it. Updates `state` to the next iteration's.
  void emit(mlir::OpBuilder& builder, mlir::Value iv, llvm::SmallVectorImpl<mlir::Value>& state,
            llvm::function_ref<void(mlir::OpBuilder&, mlir::Operation* copy, const mlir::IRMapping&)> emitCopy) const;

 private:
  using EmitCopy = llvm::function_ref<void(mlir::OpBuilder&, mlir::Operation*, const mlir::IRMapping&)>;
  void need(mlir::Value value);
  void needOp(mlir::Operation* op);
  void needEnclosing(mlir::Operation* op);
  void checkWrites();
  void emitBlock(mlir::OpBuilder& builder, mlir::Block& block, mlir::IRMapping& map, EmitCopy emitCopy) const;
  void emitIf(mlir::OpBuilder& builder, mlir::scf::IfOp op, mlir::IRMapping& map, EmitCopy emitCopy) const;
  void refuse(const std::string& why) {
    if (obstacle_.empty()) obstacle_ = why;
  }

  mlir::scf::ForOp loop_;
  llvm::SetVector<mlir::Operation*> copies_;
  llvm::DenseSet<mlir::Operation*> ops_;  ///< ops of the slice; of an scf.if only a part
  llvm::DenseMap<mlir::Operation*, llvm::SmallSetVector<unsigned, 4>>
      ifResults_;  ///< results of an scf.if that are needed
  llvm::SmallSetVector<unsigned, 4> carried_;
  llvm::SmallVector<mlir::Value> readRoots_;  ///< pointers and views read ahead of time
  bool needsGuard_ = false;
  std::string obstacle_;
};

}  // namespace tile::ir
