// lowering.h - one function per op: writes its LLVM IR and defines its results. Called from Emitter::emitOp's switch.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

// scalar.cpp
llvm::LogicalResult emitGridOp(Emitter& e, mlir::Operation* op);
/// i32: the program's id along an axis of the grid; in a work loop, of the position being worked on.
llvm::Value* programId(Emitter& e, int axis);
llvm::LogicalResult emitPointerOp(Emitter& e, mlir::Operation* op);
/// A constant tile whose elements differ.
llvm::LogicalResult emitConstantTable(Emitter& e, mlir::arith::ConstantOp op, mlir::DenseElementsAttr elements);
// elementwise_op.cpp
llvm::LogicalResult emitElementwiseOp(Emitter& e, mlir::Operation* op);
// memory.cpp
llvm::LogicalResult emitLoad(Emitter& e, LoadOp op);
llvm::LogicalResult emitStore(Emitter& e, StoreOp op);
llvm::LogicalResult emitAccumulate(Emitter& e, AccumulateOp op);
llvm::LogicalResult emitGather(Emitter& e, GatherOp op);
/// Called behind a load: if it is the last one that a loop makes for its next iteration, puts a barrier of the warp
/// there, so that ptxas does not move these loads to the end of the iteration.
void keepEarly(Emitter& e, mlir::Operation* load);
llvm::LogicalResult emitScatter(Emitter& e, ScatterOp op);
/// Adds a tile to memory by relaxed atomics, in runs of neighbours (onlyAdds in access_width.h).
void emitAddedTile(Emitter& e, AtomicRmwOp op);
// siblings.cpp
/// If later gathers read words next to those of this one, reads them together and defines the results of all. False:
/// none do.
bool emitSiblingGathers(Emitter& e, GatherOp op);
/// A gather and others that read beside it, elements of one window each thread (windows.cpp); false: there are none.
bool emitWindow(Emitter& e, GatherOp op);
/// Whether what `reader` (null: any) reads behind the op is not what it would read in front of it, or may not be.
/// Stores through another argument change nothing.
bool changesWhatIsRead(mlir::Operation* op, GatherOp reader);
/// The same for additions to memory; the last of them adds for all.
bool emitSiblingAdds(Emitter& e, AtomicRmwOp op);
/// The same for scatters.
bool emitSiblingScatters(Emitter& e, ScatterOp op);
// atomic.cpp
/// Adds to consecutive elements in global memory, each atomically and relaxed; aligned like storeVector.
void addVector(Emitter& e, llvm::Value* ptr, llvm::ArrayRef<llvm::Value*> values, llvm::Value* predicate,
               MemScope scope = MemScope::gpu);
llvm::LogicalResult emitAtomicRmw(Emitter& e, AtomicRmwOp op);
/// Of inline assembly: the letter of a register that holds the type.
llvm::StringRef constraintOf(llvm::Type* type);
/// What the instruction that adds such numbers to memory ends with.
std::string suffixOfAdd(llvm::Type* type);
llvm::LogicalResult emitAtomicCas(Emitter& e, AtomicCasOp op);
// reduce.cpp, scan.cpp
llvm::LogicalResult emitReduce(Emitter& e, ReduceOp op);
llvm::LogicalResult emitScan(Emitter& e, ScanOp op);
// ballot.cpp
llvm::LogicalResult emitBallot(Emitter& e, BallotOp op);
// coordinates.cpp
/// A comparison of which both sides are coordinates of their elements plus numbers (masks above and below diagonals):
/// few instructions for a thread's registers. False: it is none.
bool emitCoordinateCompare(Emitter& e, mlir::arith::CmpIOp op);
// remainders.cpp
/// Remainders and quotients by one number of indices that, in each thread, are constants apart: one division instead of
/// one for each register. False: they are not.
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
llvm::LogicalResult emitPut(Emitter& e, PutOp op);
llvm::LogicalResult emitConvert(Emitter& e, ConvertOp op);
// histogram.cpp
llvm::LogicalResult emitHistogram(Emitter& e, HistogramOp op);
llvm::LogicalResult emitSmemCount(Emitter& e, SmemCountOp op);
// debug.cpp
llvm::LogicalResult emitPrint(Emitter& e, PrintOp op);
llvm::LogicalResult emitAssert(Emitter& e, AssertOp op);

}  // namespace tile::ir
