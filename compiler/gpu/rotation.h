// rotation.h - a loop whose second product of a chain moves an iteration later (rotate.cpp): what moves, and the new
// loop.
#pragma once
#include "compiler/dialect/dialect.h"
#include "compiler/gpu/async_products.h"
#include "llvm/ADT/SetVector.h"

namespace tile::ir {

/// Ops that may run earlier or later than they stand, as long as nobody writes what they read.
bool isMovable(mlir::Operation* op);

/// One loop, taken apart into early, delayed and other ops.
class RotationPlan {
 public:
  explicit RotationPlan(mlir::scf::ForOp loop) : loop_(loop), body_(*loop.getBody()) {}

  /// Whether there is something to overlap; what follows holds if there is.
  bool find();
  /// Whether what delayed ops take from the iteration before can be nothing at first, and each accumulator has one use.
  bool canBranch() const;
  /// Registers of a thread that stay where they are while the products of two iterations run: accumulators, and first
  /// operands of the delayed ones.
  int64_t registersInFlight(int64_t threads) const;

  mlir::scf::ForOp loop() const { return loop_; }
  bool isEarly(mlir::Operation* op) const { return early_.contains(op); }
  bool isDelayed(mlir::Operation* op) const { return delayed_.contains(op); }
  /// What delayed ops take from the rest of their iteration.
  mlir::ArrayRef<mlir::Value> crossing() const { return crossing_.getArrayRef(); }
  /// The iteration's argument is what a delayed op yields.
  bool isLate(mlir::BlockArgument arg) const { return arg != loop_.getInductionVar() && makesLate(yielded(arg)); }
  mlir::Value yielded(mlir::BlockArgument arg) const { return loop_.getYieldedValues()[arg.getArgNumber() - 1]; }
  /// What the late argument's delayed products add to; null when something else makes it.
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

/// Replaces the loop. `runs`: known to have an iteration. `second`: makes the lower bound of the second iteration; null
/// for the form without a prologue.
void rewriteRotated(const RotationPlan& plan, bool runs,
                    llvm::function_ref<mlir::Value(mlir::OpBuilder&)> second);

}  // namespace tile::ir
