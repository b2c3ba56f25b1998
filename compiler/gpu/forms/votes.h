// votes.h - loops and branches that a reduction of a tile decides ("while any element is active"), by all warps
// together or by each for itself (part_ways.cpp).
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// On a vote (tile.reduce) and the loop or branch that it decides (scf.while, scf.if): the vote is over the elements of
/// the thread's own warp. Nothing inside may wait for other warps.
inline constexpr const char* kPartsAttr = "tile.parts_ways";

/// The vote that decides a loop or branch.
struct Vote {
  ReduceOp reduce;
  mlir::Value elements;    ///< the elements that are voted on, in the shape that the kernel gave them
  bool leftWhere = false;  ///< this value of an element asks for no further iteration (or not to take the branch)
};
/// The vote of an scf.while or scf.if. Nullopt: something else decides, or the result has other uses.
std::optional<Vote> voteOf(mlir::Operation* loopOrBranch);

/// The operand that `value` is the negation of; null: it is none.
mlir::Value negated(mlir::Value value);

/// Lets the loop or branch be decided by all warps together again.
void meetAgain(mlir::Operation* loopOrBranch);

}  // namespace tile::ir
