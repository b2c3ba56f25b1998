// role_slice.h - the part of a kernel that says what is copied where and when: the copies to shared memory, the control
// flow around them, the scalars both need, and the tiles of offsets and masks of gathers as far as a thread computes
// its elements of them by itself. In program order it is the program of a producer that runs ahead of the rest.
#pragma once
#include <string>

#include "compiler/gpu/ring_groups.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"

namespace tile::ir {

class RoleSlice {
 public:
  struct Obstacle {
    mlir::Operation* at = nullptr;  ///< null: none
    std::string why;
  };
  using EmitGroup = llvm::function_ref<void(mlir::OpBuilder&, const LoadGroup&, const mlir::IRMapping&)>;

  /// Points into `groups`' elements.
  RoleSlice(mlir::func::FuncOp func, const std::vector<LoadGroup>& groups);

  /// Why the slice cannot run ahead of the kernel, or cannot be computed without tiles.
  const Obstacle& obstacle() const { return obstacle_; }
  /// Some branch or loop around the copies depends on the program's ids or on memory: programs differ in their work.
  bool isUneven() const { return uneven_; }
  /// Lanes are asked together: the slice is a whole warp's.
  bool asksLanes() const {
    return llvm::any_of(kept_, [](mlir::Operation* op) { return mlir::isa<BallotOp>(op); });
  }

  /// Registers of a thread for tiles of addresses that stand outside a loop and serve inside, of 32 bits for each
  /// row the thread copies.
  int registersPerRow() const;

  /// Emits the slice of the function's body. Values the caller has mapped (program ids) are taken from `map`.
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
  llvm::DenseSet<mlir::Operation*> kept_;  ///< scf.for, scf.if and scf.while in part, others whole
  llvm::DenseMap<mlir::Operation*, Indices> carried_, ifResults_, before_, after_;  ///< what control flow has to carry
  llvm::SmallVector<mlir::Operation*> reads_;                                       ///< of global memory, by the slice
  bool uneven_ = false;
  Obstacle obstacle_;
};

}  // namespace tile::ir
