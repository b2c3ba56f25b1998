// lowering.h - one function per op: writes its LLVM IR and defines its results. Called from Emitter::emitOp's switch.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

// scalar.cpp
llvm::LogicalResult emitGridOp(Emitter& e, mlir::Operation* op);
/// i32: the program's id along an axis of the grid; in a work loop that of the position in hand.
llvm::Value* programId(Emitter& e, int axis);
llvm::LogicalResult emitPointerOp(Emitter& e, mlir::Operation* op);
/// A constant tile with different elements.
llvm::LogicalResult emitConstantTable(Emitter& e, mlir::arith::ConstantOp op, mlir::DenseElementsAttr elements);
// memory.cpp
llvm::LogicalResult emitLoad(Emitter& e, LoadOp op);
llvm::LogicalResult emitStore(Emitter& e, StoreOp op);
llvm::LogicalResult emitAccumulate(Emitter& e, AccumulateOp op);
llvm::LogicalResult emitGather(Emitter& e, GatherOp op);
/// Behind the last of loads that a loop makes for its next iteration: they stay where they are.
void keepEarly(Emitter& e, mlir::Operation* load);
llvm::LogicalResult emitScatter(Emitter& e, ScatterOp op);
/// Adds a tile to memory, relaxed, in runs of neighbours (onlyAdds in access_width.h).
void emitAddedTile(Emitter& e, AtomicRmwOp op);
// siblings.cpp
/// Reads words beside the gather's that later gathers want with it, and defines those, too; false: there are none.
bool emitSiblingGathers(Emitter& e, GatherOp op);
/// Adds to memory with the additions to words beside its own, the last of them for all; false: there are none.
bool emitSiblingAdds(Emitter& e, AtomicRmwOp op);
/// So with scatters.
bool emitSiblingScatters(Emitter& e, ScatterOp op);
// atomic.cpp
/// Adds to consecutive elements in global memory, each atomically and relaxed; aligned like storeVector.
void addVector(Emitter& e, llvm::Value* ptr, llvm::ArrayRef<llvm::Value*> values, llvm::Value* predicate,
               MemScope scope = MemScope::gpu);
llvm::LogicalResult emitAtomicRmw(Emitter& e, AtomicRmwOp op);
llvm::LogicalResult emitAtomicCas(Emitter& e, AtomicCasOp op);
// reduce.cpp, scan.cpp
llvm::LogicalResult emitReduce(Emitter& e, ReduceOp op);
llvm::LogicalResult emitScan(Emitter& e, ScanOp op);
llvm::LogicalResult emitBallot(Emitter& e, BallotOp op);
// coordinates.cpp
/// Where both sides are coordinates of their elements (masks above and below diagonals); false: they are not.
bool emitCoordinateCompare(Emitter& e, mlir::arith::CmpIOp op);
// remainders.cpp
/// Remainders and quotients of a thread's places, which are constants apart, by one number; false: not like that.
bool emitRemainders(Emitter& e, mlir::Operation* op);
// shape.cpp
llvm::LogicalResult emitIota(Emitter& e, IotaOp op);
llvm::LogicalResult emitSplat(Emitter& e, SplatOp op);
llvm::LogicalResult emitBroadcast(Emitter& e, BroadcastOp op);
llvm::LogicalResult emitReshape(Emitter& e, ReshapeOp op);
llvm::LogicalResult emitTrans(Emitter& e, TransOp op);
llvm::LogicalResult emitCat(Emitter& e, CatOp op);
llvm::LogicalResult emitExtract(Emitter& e, ExtractOp op);
llvm::LogicalResult emitTake(Emitter& e, TakeOp op);
llvm::LogicalResult emitHistogram(Emitter& e, HistogramOp op);
// convert.cpp
llvm::LogicalResult emitConvert(Emitter& e, ConvertOp op);
// debug.cpp
llvm::LogicalResult emitPrint(Emitter& e, PrintOp op);
llvm::LogicalResult emitAssert(Emitter& e, AssertOp op);

}  // namespace tile::ir
