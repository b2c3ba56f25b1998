// numbers.h - how element values live in registers and in memory on the host, and every elementwise op on them.
//
//   element       in memory   in registers
//   i1            i8 (0/1)    i1
//   iN, index     iN, i64     iN, i64
//   f16, bf16     16 bits     float holding a value of the narrow type: each op computes in f32 and rounds once
//   f8            8 bits      i8 (storage only: converted by arith.extf / arith.truncf)
//   f32, f64      float, double
//   !tile.ptr     8 bytes     ptr
// Integers wrap; shifts past the width give zeros (or copies of the sign); a quotient or remainder by zero is some
// number, never a trap; floats turn into integers saturated, NaN into 0. Subnormals are kept. Each function takes
// scalars or vectors of any length alike.
#pragma once
#include <memory>

#include "compiler/lowering/elementwise.h"
#include "compiler/targets/target.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Types.h"

namespace tile::ir::host {

class Numbers {
 public:
  using Values = llvm::SmallVector<llvm::Value*, 2>;

  Numbers(llvm::IRBuilder<>& builder, const Target& target);

  /// Scalar LLVM type of an element in a register / in memory; null for a type the host does not know.
  llvm::Type* inRegister(mlir::Type element) const;
  llvm::Type* inMemory(mlir::Type element) const;
  static int64_t bytes(mlir::Type element);

  /// `width` neighbouring elements; width 1 gives a scalar.
  llvm::Value* load(mlir::Type element, llvm::Value* address, unsigned width, bool isVolatile = false);
  void store(mlir::Type element, llvm::Value* value, llvm::Value* address, bool isVolatile = false);
  llvm::Value* fromMemory(mlir::Type element, llvm::Value* bits);
  llvm::Value* toMemory(mlir::Type element, llvm::Value* value);

  llvm::Constant* constant(mlir::Attribute value);
  llvm::Value* splat(llvm::Value* scalar, unsigned width);

  /// One elementwise op; empty when the host has no lowering for it (the caller reports).
  Values apply(mlir::Operation* op, llvm::ArrayRef<llvm::Value*> args);

  /// The same number in a type that holds every value of `from` (f8 and f16 to f32, i8 to i32 with sign).
  llvm::Value* widen(mlir::Type from, mlir::Type to, llvm::Value* value);

  /// A wide float (or double) as `element` would hold it, still in the register form of `element`.
  llvm::Value* roundTo(mlir::Type element, llvm::Value* wide);

 private:
  llvm::Type* like(llvm::Value* v, llvm::Type* element) const { return withElement(v->getType(), element); }
  llvm::Value* bits(llvm::Value* v, uint64_t constant) { return llvm::ConstantInt::get(v->getType(), constant); }
  llvm::Value* floatToHalfBits(llvm::Value* x);
  llvm::Value* halfBitsToFloat(llvm::Value* h);
  llvm::Value* roundToBf16(llvm::Value* x);
  llvm::Value* doubleToFloatOdd(llvm::Value* x);
  Values cast(mlir::Operation* op, llvm::Value* x, bool& handled);
  Values wholeProduct(llvm::Value* x, llvm::Value* y, bool isSigned);
  llvm::Value* shift(mlir::Operation* op, llvm::ArrayRef<llvm::Value*> args);

  llvm::IRBuilder<>& b_;
  bool hasF16c_;
  std::shared_ptr<const MathHooks> math_;
};

}  // namespace tile::ir::host
