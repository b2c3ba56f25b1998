// avx512.h - instructions of AVX-512 that LLVM has no operation of its own for, on vectors of any width.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace tile::ir::host {

/// `fn` on registers of 4 to `widest` lanes that together hold `args`: scalars, or vectors of one length, a power of
/// two.
llvm::Value* byRegisters(llvm::IRBuilderBase& b, llvm::ArrayRef<llvm::Value*> args, unsigned widest,
                         llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>, unsigned)> fn);

/// A bit for every lane; registers of 4 lanes have a mask of 8 as well.
llvm::Constant* allLanes(llvm::IRBuilderBase& b, unsigned lanes);

/// The larger or smaller of two floats or doubles, in one instruction: a NaN loses against a number (a signalling one,
/// which no operation makes, does not). Without it that takes a comparison and a choice more. `widest` lanes of floats
/// are a register.
llvm::Value* largerOrSmaller(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool larger, unsigned widest);

}  // namespace tile::ir::host
