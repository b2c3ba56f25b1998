// cheap_tiles.h - tiles that are computed again under every layout in which they are used, instead of being converted:
// iota, splats, constants and a little arithmetic on them.
#pragma once
#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

class CheapTiles {
 public:
  /// `remakesAll`: all results count as cheap (threads of a producer cannot convert).
  explicit CheapTiles(bool remakesAll) : remakesAll_(remakesAll) {}

  bool isCheap(mlir::Value tile);

 private:
  int cost(mlir::Value tile);

  bool remakesAll_;
  llvm::DenseMap<mlir::Value, int> cost_;  ///< instructions per element
};

}  // namespace tile::ir
