// lanes.h - vectors whose lanes do not lie side by side in memory: elements at equal distances, elements at addresses
// of their own, and vectors whose lanes are dealt out in turns.
#pragma once
#include "compiler/host/emitter.h"

namespace tile::ir::host {

/// Elements up to this far apart are read as neighbouring vectors, from which the wanted lanes are picked.
constexpr int64_t kWidestStep = 4;

/// Memory bits of `width` elements, `step` (2 to kWidestStep) apart from `address` on. What lies between them is read
/// too, nothing before the first one or behind the last.
llvm::Value* loadApart(Emitter& e, mlir::Type element, llvm::Value* address, int64_t step, unsigned width);

/// Whether loads from addresses of their own are an instruction (AVX-512): else every lane is a load and an insertion.
bool hasGather(Emitter& e);

/// Memory bits at `addresses` (a vector of pointers). Lanes whose mask (null: none) is false touch no memory and are
/// those of `other`, which may be null where there is no mask.
llvm::Value* loadLanes(Emitter& e, mlir::Type element, llvm::Value* addresses, llvm::Value* mask, llvm::Value* other);

/// Stores memory bits to `addresses`, the first lane first; lanes whose mask (null: none) is false touch no memory.
void storeLanes(Emitter& e, mlir::Type element, llvm::Value* bits, llvm::Value* addresses, llvm::Value* mask);

/// 0, step, 2 step, ..
llvm::Value* laneOffsets(Emitter& e, int64_t step, unsigned width);

/// i1: each lane is `step` more than the one before it.
llvm::Value* growBy(Emitter& e, llvm::Value* lanes, int64_t step);

/// Lanes of a register whose elements a permutation moves: words, or pairs of them. Narrower ones become words.
inline unsigned permutedLanes(mlir::Type element) { return Numbers::bytes(element) <= 4 ? 16 : 8; }

/// Whether elements of vectors of `width` lanes are permuted by an instruction (AVX-512).
bool isPermutable(Emitter& e, mlir::Type element, unsigned width);

/// Memory bits of the elements `places` (less than the number of lanes) behind `address`, where isPermutable. Memory is
/// read from there to the last of them.
llvm::Value* loadWindow(Emitter& e, mlir::Type element, llvm::Value* address, llvm::Value* places);

/// Vectors worth interleaving.
constexpr int64_t kMostColumns = 4;

/// Lane i of vectors[k] becomes lane i * n + k of the result, n being the number of vectors.
llvm::Value* interleave(llvm::IRBuilder<>& b, llvm::ArrayRef<llvm::Value*> vectors);

}  // namespace tile::ir::host
