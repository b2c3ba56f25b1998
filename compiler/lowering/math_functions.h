// math_functions.h - transcendental functions as straight-line LLVM IR (no calls, no branches), for scalars and
// vectors. f32 results are within 2 ulp (pow, tan, atan, atan2, expm1, log1p and what is made of log1p: 4 ulp, lgamma,
// tgamma, normcdf, normcdfinv: 5, erfc: 6, erfinv: 3, erfcinv: 4) including subnormals, infinities and NaN where the
// machine keeps subnormals. sin, cos and tan reduce their argument in f64, unless it is known to be small: accurate for
// |x| < 2^40. lgamma below -2, where it has zeros: 5 ulp of lgamma(-x). Bessel functions are those of f64, rounded:
// within 1 ulp up to 8, from there on of the height of the wave.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// The attribute of a sine, cosine or tangent of f32 whose argument lies within kNearAngle of 0: reduced in f32.
constexpr llvm::StringLiteral kNear = "tile.near";
constexpr double kNearAngle = 0x1p15;

/// Instructions of a machine that f32 functions are made of where an error of 2 ulp, or a subnormal that becomes 0, is
/// lost in what follows.
class QuickParts {
 public:
  virtual ~QuickParts() = default;
  virtual llvm::Value* exp2(llvm::IRBuilderBase& b, llvm::Value* x) const = 0;
  virtual llvm::Value* log2(llvm::IRBuilderBase& b, llvm::Value* x) const = 0;  ///< of subnormals, too
  virtual llvm::Value* reciprocal(llvm::IRBuilderBase& b, llvm::Value* x) const = 0;
  virtual llvm::Value* quotient(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y) const = 0;
  virtual llvm::Value* sqrt(llvm::IRBuilderBase& b, llvm::Value* x) const = 0;
};

/// Instructions of a machine that split off and apply powers of two, for f32.
class PowersOfTwo {
 public:
  virtual ~PowersOfTwo() = default;
  /// x minus the nearest whole number (halves to even); 0 for infinities.
  virtual llvm::Value* remainder(llvm::IRBuilderBase& b, llvm::Value* x) const = 0;
  /// x * 2^n for a whole number n of any size, rounded once.
  virtual llvm::Value* scale(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* n) const = 0;
};

class RoughReciprocals;  // of f64

/// Emits a math dialect op on f32 or f64 operands. f32 exp, exp2, expm1, log, log2, log10, log1p, erf, erfc, cbrt, pow,
/// trigonometric and hyperbolic functions and their inverses are polynomials of our own (all but exp, exp2, log, log2,
/// log10, sin and cos with `quick` parts if given; exponentials with instructions for powers of two if given, to the
/// same bits); everything else, and f64, becomes LLVM's intrinsic where `hasLibm` says that a libm call can be linked;
/// without it f64 has what math_functions_f64.h has, `rough` reciprocals in it. Null: this function does not
/// exist on such a machine.
llvm::Value* emitTranscendental(llvm::IRBuilderBase& b, mlir::Operation* op, llvm::ArrayRef<llvm::Value*> args,
                                bool hasLibm, const QuickParts* quick = nullptr,
                                const PowersOfTwo* powers = nullptr, const RoughReciprocals* rough = nullptr);

}  // namespace tile::ir
