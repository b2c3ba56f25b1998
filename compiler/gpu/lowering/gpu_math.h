// gpu_math.h - the GPU's own spelling of functions: one MUFU instruction with its argument or result scaled.
#pragma once
#include "compiler/lowering/elementwise.h"

namespace tile::ir {

/// With fastMath: f32 exp2, exp, log2, log, log10, sqrt, rsqrt and division take the approximate instructions (2 ulp,
/// flush subnormals), and tan, tanh, erf and pow are made of them. Without: the shared polynomials and IEEE division.
/// No libm: f64 functions are those of math_functions_f64.h, whose quotients begin with approximate instructions.
class GpuMath : public MathHooks {
 public:
  explicit GpuMath(bool fastMath);
  llvm::Value* special(llvm::IRBuilderBase& b, mlir::Operation* op, llvm::ArrayRef<llvm::Value*> args) const override;

 private:
  bool fastMath_;
};

}  // namespace tile::ir
