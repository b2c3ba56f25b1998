// joined_reductions.h - two reductions of one shape along one axis as one with the operands of both.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Stands where `first` stood, and combines what each of the two combined; their results are replaced and they erased.
/// What `later` is computed from must stand in front of `first` already.
ReduceOp joinReductions(ReduceOp first, ReduceOp later);

}  // namespace tile::ir
