// rotation.h - moving the second product of a chain an iteration later (rotate.cpp): which ops move, and the new loop.
#pragma once
#include "compiler/dialect/dialect.h"
#include "compiler/gpu/forms/async_products.h"
#include "llvm/ADT/SetVector.h"

namespace tile::ir {

/// Whether the op may run earlier or later than it stands, as long as nothing writes what it reads.
bool isMovable(mlir::Operation* op);

/// A loop, divided into early, delayed and other ops.
class RotationPlan {
 public:
  explicit RotationPlan(mlir::scf::ForOp loop) : loop_(loop), body_(*loop.getBody()) {}

  /// Analyses the loop. False: there is nothing to overlap, and the other members must not be used.
  bool find();
  /// Whether the form without a prologue is possible: values that delayed ops take from the previous iteration may be
  /// undefined in the first one, and each accumulator has one use.
  bool canBranch() const;
  /// Registers of a thread that are fixed while products of two iterations run: accumulators, and first operands of
  /// delayed products.
  int64_t registersInFlight(int64_t threads) const;

  mlir::scf::ForOp loop() const { return loop_; }
  bool isEarly(mlir::Operation* op) const { return early_.contains(op); }
  bool isDelayed(mlir::Operation* op) const { return delayed_.contains(op); }
  /// Values of the other ops of their iteration that delayed ops use.
  mlir::ArrayRef<mlir::Value> crossing() const { return crossing_.getArrayRef(); }
  /// Whether the argument's next value comes from a delayed op.
  bool isLate(mlir::BlockArgument arg) const { return arg != loop_.getInductionVar() && makesLate(yielded(arg)); }
  mlir::Value yielded(mlir::BlockArgument arg) const { return loop_.getYieldedValues()[arg.getArgNumber() - 1]; }
  /// What the delayed products that make the late argument accumulate on; null if something else makes it.
  mlir::Value accumulated(mlir::BlockArgument arg) const;

 private:
  bool inBody(mlir::Operation* op) const { return op && op->getBlock() == &body_; }
  mlir::Operation* defInBody(mlir::Value value) const {
    mlir::Operation* op = value.getDefiningOp();
    return inBody(op) ? op : nullptr;
  }
  bool makesLate(mlir::Value value) const {
    mlir::Operation* def = defInBody(value);
    return def && delayed_.contains(def);
  }
  bool bodyAllows();
  void findFollowers();
  bool isFollower(mlir::Value value) const;
  void findDelayed();
  bool usersAreDelayed(mlir::Operation* op);
  bool closeDelayed();
  void dropProduct(MmaOp product);
  bool findCrossing();
  bool collect(mlir::Value value, llvm::SetVector<mlir::Operation*>& slice);
  bool findEarly();

  mutable mlir::scf::ForOp loop_;
  mlir::Block& body_;
  llvm::DenseSet<mlir::Operation*> followers_;
  llvm::SetVector<mlir::Operation*> delayed_, early_;
  llvm::SetVector<mlir::Value> crossing_;
};

/// Replaces the loop. `runs`: it is known to have an iteration. `second`: emits the lower bound of the second
/// iteration; null for the form without a prologue.
void rewriteRotated(const RotationPlan& plan, bool runs,
                    llvm::function_ref<mlir::Value(mlir::OpBuilder&)> second);

}  // namespace tile::ir
