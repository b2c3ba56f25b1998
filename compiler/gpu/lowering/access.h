// access.h - one vectorised memory access of one thread, in global or shared memory, with an optional predicate.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// `count` consecutive elements at `ptr`, aligned to their total size (at most 16 bytes). With a predicate, a thread
/// for which it is false touches no memory and gets `fallback` (one value per element). i1 elements are bytes in
/// memory. `mayMerge`: two of them with nothing written between may become one.
Regs loadVector(Emitter& e, llvm::Value* ptr, llvm::Type* element, int count, llvm::Value* predicate = nullptr,
                llvm::ArrayRef<llvm::Value*> fallback = {}, CacheHint cache = CacheHint::none, bool mayMerge = false);
void storeVector(Emitter& e, llvm::Value* ptr, llvm::ArrayRef<llvm::Value*> values, llvm::Value* predicate = nullptr,
                 CacheHint cache = CacheHint::none);

/// Emits `body(true)` where `fast` holds and `body(false)` elsewhere; the results are joined.
Regs branch(Emitter& e, llvm::Value* fast, llvm::function_ref<Regs(bool)> body);

/// The operand `.L2::cache_hint` wants, for what such data is to the L2 cache: given up first or last. Null without a
/// hint.
llvm::Value* l2Policy(Emitter& e, CacheHint cache);

/// Bytes of an element in memory.
int memoryBytes(llvm::Type* element);

}  // namespace tile::ir
