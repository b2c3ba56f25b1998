// stage_reads.h - how the stages of a ring are read: by threads with ordinary loads (the generic proxy), or by
// warpgroups with descriptors (the async proxy).
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Whether threads load from the ring's stages in this op, with loads that may still be in flight when the stage is
/// released: products of single warps are among them, which the assembler puts behind the release where it likes.
/// Stores to a stage are fenced for the bulk store behind them.
bool readsByThreads(mlir::Operation* op, mlir::Value ring);
/// Whether threads load from the stages of the ring somewhere, and bulk copies fill them.
bool isReadByThreads(RingReleaseOp release);
/// Whether a wgmma reads the buffer (through slots and transposes): ordinary stores into it are fenced.
bool isReadByWgmma(mlir::Value smem);

}  // namespace tile::ir
