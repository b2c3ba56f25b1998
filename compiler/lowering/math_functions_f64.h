// math_functions_f64.h - transcendental functions of f64 for GPUs and for vectors of hosts, as straight-line LLVM IR
// for scalars and vectors. rsqrt: within 1 ulp, exp, exp2, log, log2, log10, sin, cos, asin, acos, sinh, cosh, cbrt,
// erf 2, tan, atan, atan2, tanh, expm1, log1p, asinh, acosh and atanh 4, lgamma, tgamma and erfinv 5, erfc, erfcinv
// and normcdf 6, normcdfinv, j0, j1, y0 and y1 7 (from 8 on of the height of the wave), pow 8, subnormals, infinities
// and NaN included. sin, cos and tan reduce their argument in three parts of pi / 2: accurate for |x| < 2^30. lgamma
// below -2, where it has zeros: 5 ulp of lgamma(-x).
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// A machine's instructions for the first 19 bits of reciprocals in f64. x and its reciprocal are normal numbers; of
/// others a reciprocal is 0 or infinite.
class RoughReciprocals {
 public:
  virtual ~RoughReciprocals() = default;
  virtual llvm::Value* reciprocal(llvm::IRBuilderBase& b, llvm::Value* x) const = 0;
  virtual llvm::Value* rsqrt(llvm::IRBuilderBase& b, llvm::Value* x) const = 0;
};

/// Null: a function that is not here. Quotients inside functions, and 1 / sqrt(x), are made of `rough` if given.
llvm::Value* emitF64(llvm::IRBuilderBase& b, mlir::Operation* op, llvm::ArrayRef<llvm::Value*> args,
                     const RoughReciprocals* rough = nullptr);

/// `power`, which is |x|^y for finite positive |x|, as C defines x^y for every other argument. Any float type.
llvm::Value* powAsInC(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, llvm::Value* power);

}  // namespace tile::ir
