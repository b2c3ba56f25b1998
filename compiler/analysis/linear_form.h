// linear_form.h - integers of a loop body as exact linear functions: of the induction variable, of scalars the loop
// does not change, and (for tiles) of the element's coordinates. Other tiles of small numbers (`rows / 8` of heads that
// share a tile) are known as a range.
#pragma once
#include <optional>

#include "compiler/analysis/facts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {

/// constant + iv * induction variable + sum of factor * symbol + sum of dims[d] * coordinate d + a number of `rest`.
struct LinearForm {
  int64_t constant = 0, iv = 0;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>, 4> symbols;  ///< distinct integer scalars defined outside the loop
  llvm::SmallVector<int64_t, 2> dims;                             ///< one per dim of the tile; none for a scalar
  Range rest{0, 0};                                               ///< of an element's own number, not known otherwise

  bool isConstant() const;
  /// Adds factor * symbol; symbols whose factors cancel disappear.
  void add(mlir::Value symbol, int64_t factor);
  LinearForm scaled(int64_t factor) const;
  LinearForm plus(const LinearForm& other) const;
  /// Smallest and largest contribution of the coordinates, and of `rest`, to an element of a tile of this shape.
  Range coordinateRange(llvm::ArrayRef<int64_t> shape) const;
};

/// An intermediate result of a width in bits: the linear functions are what the program computes as long as it fits.
struct FittingForm {
  LinearForm form;
  llvm::SmallVector<int64_t, 2> shape;
  unsigned bits;
};

/// Linear forms of values in one loop.
class LinearForms {
 public:
  LinearForms(mlir::scf::ForOp loop, const Facts& facts) : loop_(loop), facts_(facts) {}

  /// nullopt: not linear, or with factors out of reason. Appends the intermediate results that must fit to `fitting`.
  std::optional<LinearForm> of(mlir::Value value, llvm::SmallVectorImpl<FittingForm>& fitting);

 private:
  std::optional<LinearForm> part(mlir::Value value, llvm::SmallVectorImpl<FittingForm>& fitting);
  std::optional<LinearForm> make(mlir::Value value, llvm::SmallVectorImpl<FittingForm>& fitting);
  std::optional<LinearForm> asRest(mlir::Value value) const;

  mlir::scf::ForOp loop_;
  const Facts& facts_;
  /// Parts of the value that is asked for, each made once: sums of sums would be walked 2^depth times.
  llvm::DenseMap<mlir::Value, std::optional<LinearForm>> made_;
};

}  // namespace tile::ir
