// copy_layout.h - how many bytes one thread copies at a time into shared memory, from what is known about addresses.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"

namespace tile::ir {

/// The bytes that one cp.async copies: a power of two up to 16, contiguous and aligned in global memory and in the
/// buffer. Less than 4, or than an element, means that the copy goes through registers.
int copyBytes(AsyncCopyOp op, const Facts& facts);
/// Why that is less than 4, for a remark.
std::string narrowReason(AsyncCopyOp op, const Facts& facts);
int copyBytes(AsyncGatherOp op, const Facts& facts);

/// Whether the elements of a gather_shared go through registers, because they are not neighbours or not aligned.
bool copiedThroughRegisters(mlir::Operation* copy, const Facts& facts);

/// The register layout in which async_gather wants its offsets and mask: a chunk's elements side by side in one thread.
layout::Layout asyncGatherLayout(AsyncGatherOp op, const Facts& facts, int numWarps);

}  // namespace tile::ir
