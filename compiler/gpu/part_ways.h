// part_ways.h - loops and branches that every warp decides for itself.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// On a vote (tile.reduce) and the loop or branch that asks it (scf.while, scf.if): threads learn what their own warp's
/// elements say. Nothing in there may wait for other warps.
inline constexpr const char* kPartsAttr = "tile.parts_ways";

/// The vote that decides a loop or branch, with the scalar made of it.
struct Vote {
  ReduceOp reduce;
  mlir::Value elements;    ///< what is voted on, as the kernel shaped it
  bool leftWhere = false;  ///< elements of this value want no further iteration (want the branch not taken)
};
/// Of an scf.while or scf.if; nullopt: it is decided by something else, or others use the answer.
std::optional<Vote> voteOf(mlir::Operation* loopOrBranch);

/// Loop or branch waits for all warps again.
void meetAgain(mlir::Operation* loopOrBranch);

}  // namespace tile::ir
