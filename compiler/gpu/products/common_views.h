// common_views.h - views of a matrix of which every program has its own, `make_view(p + (b * T + h) * K, {T, K}, ...)`,
// become parts of one view of more dims, which is the same for all programs.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// The matrix as a part of a view that the launch can describe (launch_views.h).
struct CommonView {
  mlir::Value view;
  llvm::SmallVector<mlir::Value> places;  ///< of the matrix, along the dims in front of its own
};

/// Beside a view of which more than its address is the same in all programs; nullopt: it is none, or has no room for
/// more dims.
std::optional<CommonView> makeCommonView(MakeViewOp view, const Facts& facts);

}  // namespace tile::ir
