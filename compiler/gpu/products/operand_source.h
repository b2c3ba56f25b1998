// operand_source.h - where operands of products come from: what can be copied to shared memory as it is, and along
// which dim neighbours in global memory lie.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/targets/target.h"

namespace tile::ir {

/// The load of a box of more than two dims, the first of which become the rows of `v` and the others, often one, its
/// columns; null: `v` is none.
LoadOp loadOfRows(mlir::Value v);
/// The buffer of such a load: rows of several dims lie in panels that no row of pixels ends inside.
SmemType inPanels(SmemType type, LoadOp ofRows);

/// Answers for one kernel as it is now.
class OperandSources {
 public:
  OperandSources(mlir::func::FuncOp func, const Target& target) : facts_(func), target_(target) {}

  /// Whether the tile is a load or gather that can be copied to shared memory as it is. Of boxes of more than two dims
  /// only bulk copies make a good copy.
  bool canFetch(mlir::Value v) const;
  /// The same for what is perhaps another name of its dims.
  bool isCopied(mlir::Value v) const;
  /// Whether it is a load that bulk copies can make by a tensor map of the launch, with neighbours along `minor`.
  bool isBulk(mlir::Value v, int minor) const;
  /// Dim of the tile whose elements are neighbours in global memory; 1 when nothing is known.
  int fastDim(mlir::Value v) const;
  /// Whether neighbours lie along k, the operand's `kDim`, in shared memory, unless it turns on its way.
  bool kIsMinor(mlir::Value v, int kDim) const;
  bool isCopiedAlongK(mlir::Value v, int kDim) const { return isCopied(v) && kIsMinor(v, kDim); }
  bool liesAlongK(mlir::Value v, int kDim) const { return !isCopied(v) || kIsMinor(v, kDim); }

 private:
  Facts facts_;
  const Target& target_;
};

}  // namespace tile::ir
