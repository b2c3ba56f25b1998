// fp8.h - conversions between 8-bit floats (held as i8) and f32 in plain integer arithmetic, for machines without them.
#pragma once
#include "llvm/IR/IRBuilder.h"

namespace tile::ir {

enum class Fp8 { e4m3, e5m2 };

/// An f64 as an f32 that rounds to the same 8-bit float: not the nearest one, which may be a tie that the f64 is none of,
/// but the one toward zero, with its last bit set where digits are missing. Others become f32 as they do.
llvm::Value* toF32ForFp8(llvm::IRBuilderBase& b, llvm::Value* x);
/// Exact. e4m3 is the "FN" variant: no infinities, 0x7f and 0xff are NaN.
llvm::Value* fp8ToF32(llvm::IRBuilderBase& b, llvm::Value* bits, Fp8 kind);
/// Round to nearest even; values beyond the largest finite one saturate to it, NaN stays NaN (as cvt.satfinite does).
llvm::Value* f32ToFp8(llvm::IRBuilderBase& b, llvm::Value* x, Fp8 kind);

}  // namespace tile::ir
