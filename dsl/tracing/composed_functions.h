// composed_functions.h - element by element functions that the math dialect lacks, built of those it has. Columns of
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

}  // namespace tile::detail
