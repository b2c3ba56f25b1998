// function_table.h - which function an op is, for the classes that know them all (math_functions.cpp, and _f64).
#pragma once
#include "compiler/dialect/dialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tile::ir {

/// Null for an op that is none of them. `M` has the members called here, Trig and Arc.
template <class M>
llvm::Value* emitFunction(M& m, mlir::Operation* op, llvm::ArrayRef<llvm::Value*> a) {
  namespace math = mlir::math;
  llvm::TypeSwitch<mlir::Operation*, llvm::Value*> of(op);  // by name: a chain would want `template` at every link
  of.Case<math::Exp2Op>([&](auto) { return m.exp2(a[0]); });
  of.Case<math::ExpOp>([&](auto) { return m.exp(a[0]); });
  of.Case<math::ExpM1Op>([&](auto) { return m.expm1(a[0]); });
  of.Case<math::LogOp>([&](auto) { return m.log(a[0], 0); });
  of.Case<math::Log2Op>([&](auto) { return m.log(a[0], 2); });
  of.Case<math::Log10Op>([&](auto) { return m.log(a[0], 10); });
  of.Case<math::TanhOp>([&](auto) { return m.tanh(a[0]); });
  of.Case<math::ErfOp>([&](auto) { return m.erf(a[0]); });
  of.Case<math::ErfcOp>([&](auto) { return m.erfc(a[0]); });
  of.Case<math::CbrtOp>([&](auto) { return m.cbrt(a[0]); });
  of.Case<math::SinOp>([&](auto) { return m.trig(a[0], M::Trig::sin); });
  of.Case<math::CosOp>([&](auto) { return m.trig(a[0], M::Trig::cos); });
  of.Case<math::TanOp>([&](auto) { return m.trig(a[0], M::Trig::tan); });
  of.Case<math::SinhOp>([&](auto) { return m.sinh(a[0]); });
  of.Case<math::CoshOp>([&](auto) { return m.cosh(a[0]); });
  of.Case<math::AsinhOp>([&](auto) { return m.asinh(a[0]); });
  of.Case<math::AcoshOp>([&](auto) { return m.acosh(a[0]); });
  of.Case<math::AtanhOp>([&](auto) { return m.atanh(a[0]); });
  of.Case<math::AsinOp>([&](auto) { return m.arc(a[0], M::Arc::sine); });
  of.Case<math::AcosOp>([&](auto) { return m.arc(a[0], M::Arc::cosine); });
  of.Case<math::AtanOp>([&](auto) { return m.atan(a[0]); });
  of.Case<math::Atan2Op>([&](auto) { return m.atan2(a[0], a[1]); });
  of.Case<math::PowFOp>([&](auto) { return m.pow(a[0], a[1]); });
  of.Case<LgammaOp>([&](auto) { return m.lgamma(a[0]); });
  of.Case<TgammaOp>([&](auto) { return m.tgamma(a[0]); });
  of.Case<ErfinvOp>([&](auto) { return m.erfinv(a[0]); });
  of.Case<ErfcinvOp>([&](auto) { return m.erfcinv(a[0]); });
  of.Case<GeluOp>([&](auto) { return m.gelu(a[0]); });
  of.Case<NormcdfOp>([&](auto) { return m.normcdf(a[0]); });
  of.Case<NormcdfinvOp>([&](auto) { return m.normcdfinv(a[0]); });
  return of.Default([](mlir::Operation*) -> llvm::Value* { return nullptr; });
}

}  // namespace tile::ir
