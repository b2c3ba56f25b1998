// carried_conditions.h - conditions that a loop carries beside the values they are made of: with `x`, `active = x !=
// 1`, written once in front of the loop and once at its end. Whoever knows one knows the other, in every iteration.
#pragma once
#include <optional>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {

class CarriedConditions {
 public:
  using IsStill = llvm::function_ref<bool(mlir::Value value, mlir::Value was)>;
  explicit CarriedConditions(mlir::scf::WhileOp loop) : loop_(loop) {}

  /// `value`, a condition in terms of what an iteration begins with, is what the loop carries as `condition`, an
  /// argument of its first block: it is made of the other arguments as the next one is of what they become, and so was
  /// the first. `isStill`: the iteration leaves an argument as it is, in a value; the same in all calls.
  bool areSame(mlir::Value value, mlir::BlockArgument condition, IsStill isStill);

 private:
  using Pair = std::pair<mlir::Value, mlir::Value>;
  bool isMadeAs(mlir::Value value, mlir::Value next, unsigned condition, IsStill isStill);
  bool beginsAs(mlir::Value first, mlir::Value next, unsigned condition);
  bool findBeginsAs(mlir::Value first, mlir::Value next, unsigned condition);
  std::optional<bool> firstOf(mlir::Value next);
  bool isCarriedOn(mlir::Value next, llvm::function_ref<bool(unsigned)> test);

  mlir::scf::WhileOp loop_;
  llvm::DenseMap<Pair, bool> made_, begins_;
};

}  // namespace tile::ir
