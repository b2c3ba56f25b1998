// copy_layout.h - how many bytes one thread copies at a time into shared memory, from what is known about addresses.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"

namespace tile::ir {

/// Bytes of a chunk: a power of two up to 16; neighbours in global memory, aligned there and in the buffer. Less than
/// 4, or less than an element's worth of contiguity, means the copy goes through registers.
int copyBytes(AsyncCopyOp op, const Facts& facts);
/// Why that is less than 4, the least that goes without registers: for a remark.
std::string narrowReason(AsyncCopyOp op, const Facts& facts);
int copyBytes(AsyncGatherOp op, const Facts& facts);

/// A gather_shared whose places do not lie side by side, or are not aligned: its elements go through registers.
bool copiedThroughRegisters(mlir::Operation* copy, const Facts& facts);

/// The register layout in which async_gather wants its offsets and mask: a chunk's elements side by side in one thread.
layout::Layout asyncGatherLayout(AsyncGatherOp op, const Facts& facts, int numWarps);

}  // namespace tile::ir
