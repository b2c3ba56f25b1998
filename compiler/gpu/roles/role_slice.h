// role_slice.h - the slice of a kernel that a producer executes: the copies to shared memory, the control flow around
// them, the scalars that both need, and the tiles of offsets and masks of gathers, if a thread can compute its own
// elements of them. In program order, this is a program that can run ahead of the rest.
#pragma once
#include <string>

#include "compiler/gpu/rings/ring_groups.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"

namespace tile::ir {

/// Values that say how often an op's regions run.
llvm::SmallVector<mlir::Value> controlOf(mlir::Operation* op);

class RoleSlice {
 public:
  struct Obstacle {
    mlir::Operation* at = nullptr;  ///< null: none
    std::string why;
  };
  using EmitGroup = llvm::function_ref<void(mlir::OpBuilder&, const LoadGroup&, const mlir::IRMapping&)>;

  /// Keeps pointers to elements of `groups`.
  RoleSlice(mlir::func::FuncOp func, const std::vector<LoadGroup>& groups);

  /// Why the slice cannot run ahead of the kernel, or cannot be computed without tiles; `at` is null if it can.
  const Obstacle& obstacle() const { return obstacle_; }
  /// Whether some branch or loop around the copies depends on program ids or on memory, so that programs differ in
  /// their work.
  bool isUneven() const { return uneven_; }
  /// Whether the slice has ballots: then a whole warp has to execute it.
  bool asksLanes() const {
    return llvm::any_of(kept_, [](mlir::Operation* op) { return mlir::isa<BallotOp>(op); });
  }

  /// 32-bit registers of a thread, for each row that it copies, for tiles of addresses that are computed outside a loop
  /// and used inside.
  int registersPerRow() const;

  /// Emits the slice; `emitGroup` emits the copies of a group. Values that the caller has mapped (program ids) are
  /// taken from `map`.
  void emit(mlir::OpBuilder& builder, mlir::IRMapping& map, EmitGroup emitGroup) const;

 private:
  using Indices = llvm::SmallSetVector<unsigned, 4>;
  void need(mlir::Value value);
  void keep(mlir::Operation* op);
  void keepAround(mlir::Operation* op);
  void needCarried(mlir::scf::ForOp loop, unsigned index);
  void needBefore(mlir::scf::WhileOp loop, unsigned index);
  void needAfter(mlir::scf::WhileOp loop, unsigned index);
  void checkOrder();
  void findUneven();
  void refuse(mlir::Operation* at, const std::string& why) {
    if (!obstacle_.at) obstacle_ = {at, why};
  }

  void emitBlock(mlir::OpBuilder& builder, mlir::Block& block, mlir::IRMapping& map, EmitGroup emitGroup) const;
  void emitFor(mlir::OpBuilder& builder, mlir::scf::ForOp op, mlir::IRMapping& map, EmitGroup emitGroup) const;
  void emitIf(mlir::OpBuilder& builder, mlir::scf::IfOp op, mlir::IRMapping& map, EmitGroup emitGroup) const;
  void emitWhile(mlir::OpBuilder& builder, mlir::scf::WhileOp op, mlir::IRMapping& map, EmitGroup emitGroup) const;
  llvm::SmallVector<unsigned> sorted(const llvm::DenseMap<mlir::Operation*, Indices>& of, mlir::Operation* op) const;

  mlir::func::FuncOp func_;
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<const LoadGroup*>>
      groupsAt_;                           ///< by the op they stand in front of
  llvm::DenseSet<mlir::Operation*> kept_;  ///< ops of the slice; of scf.for, scf.if and scf.while only parts
  llvm::DenseMap<mlir::Operation*, Indices> carried_, ifResults_, before_, after_;  ///< which values are needed
  llvm::SmallVector<mlir::Operation*> reads_;                                       ///< reads of global memory in the slice
  bool uneven_ = false;
  Obstacle obstacle_;
};

}  // namespace tile::ir
