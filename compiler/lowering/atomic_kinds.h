// atomic_kinds.h - the dialect's atomic orders and operations as LLVM names them, shared by every back end.
#pragma once
#include "compiler/dialect/dialect.h"
#include "llvm/IR/Instructions.h"

namespace tile::ir {

llvm::AtomicOrdering llvmOrdering(MemOrder order);
/// Float max and min ignore NaN, as arith.maxnumf does.
llvm::AtomicRMWInst::BinOp llvmBinOp(RmwKind kind, bool isFloat);

}  // namespace tile::ir
