// composed_functions.h - element by element functions that the dialects lack, built of those they have. Columns of
// elementwise.def name them. f16 and bf16 are computed in f32 and rounded once.
#pragma once
#include "mlir/IR/Builders.h"

namespace tile::detail {

using Args = llvm::ArrayRef<mlir::Value>;

struct Exp10 {  ///< as accurate as pow
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct SinPi {  ///< one rounding more than sin; the argument is reduced exactly, however large
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct CosPi {
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct Hypot {  ///< the squares neither overflow nor vanish; an infinite side wins against a NaN
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct Remainder {  ///< every step is exact
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct PositiveDifference {
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct Logb {
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct NextAfter {  ///< in the type itself: neighbours of f16 are those of f16
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct SignBit {
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct FloorMod {
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct RotateLeft {
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};
struct RotateRight {
  static mlir::Value make(mlir::OpBuilder&, mlir::Location, Args);
};

}  // namespace tile::detail
