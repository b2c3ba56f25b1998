// boxes.h - what a load or store of a box says about it.
#pragma once
#include "llvm/ADT/StringRef.h"

namespace tile::ir {

/// Unit attribute of loads and stores: the box is inside of its view, in every program that gets there. Whoever gives
/// an operation other places leaves it out.
inline constexpr llvm::StringLiteral kInsideAttr = "tile.inside";

}  // namespace tile::ir
