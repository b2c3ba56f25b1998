// neighbours.h - how far apart neighbouring elements of a tile of offsets mostly lie, for the choice of the dim along
// which a warp's lanes read. Nothing may depend on it but speed: places where rows, images or groups end are ignored.
#pragma once
#include <cstdint>
#include <optional>

#include "compiler/analysis/facts.h"

namespace tile::ir {

/// How far apart neighbours are: `elements`, or a multiple of that, which the launch tells.
struct Apart {
  int64_t elements = 0;
  bool isKnown = true;
};

/// The dim along which neighbours lie nearest to each other, several in a line of memory. Where no dim is known to be
/// so, and those of the last one have a sector each (a stride of the launch that is a multiple of 16), another one along
/// which they may be. Else -1.
int nearestDim(mlir::Value offsets, int elementBytes, const Facts& facts);
/// How far apart most neighbours along a dim are; nullopt: not known.
std::optional<Apart> stepAlong(mlir::Value offsets, int64_t dim, const Facts& facts);

}  // namespace tile::ir
