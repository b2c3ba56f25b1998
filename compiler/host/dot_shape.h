// dot_shape.h - how a dot is computed on the host: sizes, the type of its products, and which operands are packed
// first.
#pragma once
#include "compiler/dialect/dialect.h"
#include "compiler/host/plan.h"

namespace tile::ir::host {

struct DotShape {
  int64_t m = 0, n = 0, k = 0;
  mlir::Type compute;  ///< f32, f64 or i32: operands are widened to it
  int64_t computeBytes = 4;
  /// The micro-kernel reads A one scalar at a time, any strides will do; it reads B in vectors along n.
  bool packA = false, packB = false;

  // On the matrix unit operands stay narrow: rows of A, B in words of `group` neighbours along k.
  mlir::Type operand;    ///< bf16 or i8; null: vectors multiply
  int64_t group = 1;       ///< elements in 32 bits
  int64_t step = 0;        ///< of k at a time, a divisor of k
  bool rowsOfB = false;    ///< B is evaluated in rows before it is put into words
  bool computesB = false;  ///< B is evaluated word by word

  bool onMatrixUnit() const { return static_cast<bool>(operand); }
  int64_t operandBytes() const { return 4 / group; }

  static DotShape of(DotOp dot, const Plan& plan) {
    DotShape s;
    s.m = shapeOf(dot.getA())[0];
    s.k = shapeOf(dot.getA())[1];
    s.n = shapeOf(dot.getB())[1];
    s.compute = elementOf(dot.getAcc());
    s.computeBytes = s.compute.getIntOrFloatBitWidth() / 8;
    bool widens = elementOf(dot.getA()) != s.compute;
    const Ref* b = plan.place(dot.getB());
    s.packA = widens || !plan.place(dot.getA());
    s.packB = widens || !b || (b->strides[1] != 1 && s.n > 1);
    s.useMatrixUnit(dot, plan);
    return s;
  }

 private:
  /// Where the machine has one and the product is worth it (matrix_unit.cpp).
  void useMatrixUnit(DotOp dot, const Plan& plan);
};

}  // namespace tile::ir::host
