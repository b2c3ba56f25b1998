// stage_reads.h - who reads the stages of a ring, and with what: threads by ordinary loads (the generic proxy), or
// warpgroups by descriptors (the async proxy).
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// The op has threads load from the ring's stages. Products of tensor cores have what they read when they begin, and
/// have begun when the stage is given back (not so multiply-adds, which wait for what they read one by one); stores to
/// a stage are fenced for the bulk store behind them.
bool readsByThreads(mlir::Operation* op, mlir::Value ring);
/// Threads load from the ring's stages somewhere, and bulk copies fill them.
bool isReadByThreads(RingReleaseOp release);
/// Whether a wgmma reads the buffer (through slots and transposes): ordinary stores into it are fenced.
bool isReadByWgmma(mlir::Value smem);

}  // namespace tile::ir
