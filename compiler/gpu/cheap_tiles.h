// cheap_tiles.h - tiles that are computed again wherever they are wanted, instead of moved from one layout to another:
// iota, splats, constants and a little arithmetic on them.
#pragma once
#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

class CheapTiles {
 public:
  /// `remakesAll`: every tile that an operation makes is computed again (the threads of a producer convert nothing).
  explicit CheapTiles(bool remakesAll) : remakesAll_(remakesAll) {}

  bool isCheap(mlir::Value tile);

 private:
  int cost(mlir::Value tile);

  bool remakesAll_;
  llvm::DenseMap<mlir::Value, int> cost_;  ///< instructions for an element
};

}  // namespace tile::ir
