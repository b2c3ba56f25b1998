// remainder.h - x - y trunc(x / y) of floats, exactly, for machines without a libm.
#pragma once
#include "llvm/IR/IRBuilder.h"

namespace tile::ir {

/// fmod of C for f16, bf16, f32, f64 and vectors of them: exact whatever the quotient, with the sign of x. A call of a
/// function of the module, for whoever optimises it to inline: its loop is the only one among the elementwise
/// functions.
llvm::Value* emitRemainder(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y);

}  // namespace tile::ir
