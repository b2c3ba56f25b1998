// narrowed_gather.h - a gather of what neighbours along a dim share, once.
#pragma once
#include <optional>

#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// A gather that reads every place once, and its tile with every element repeated, which is that of the other gather.
struct NarrowedGather {
  GatherOp gather;
  mlir::Value repeated;
};

/// How many neighbours along a dim of a matrix read the same place, and do so together or not at all.
int64_t sharedAlong(GatherOp gather, int64_t dim, const Facts& facts);

/// Made beside `gather`, which stays. `alike`: a divisor of what neighbours share along the dim. Nullopt: the offsets
/// are not computed in a way that gives every `alike`-th of them alone; what was made on the way is without use.
std::optional<NarrowedGather> narrowedGather(GatherOp gather, int64_t dim, int64_t alike, const Facts& facts);

}  // namespace tile::ir
