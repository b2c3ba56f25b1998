// launch_views.h - views made in the kernel of nothing but its arguments: the launcher computes their numbers and
// passes their tensor maps, as it does for views that are arguments. A program's own matrix may be a part of
// such a view (common_views.h); others (of a group found in memory) cost the producer a map that it writes
// (tma_describe).
#pragma once
#include <optional>

#include "compiler/dialect/dialect.h"
#include "runtime/abi.h"

namespace tile::ir {

/// On a make_view: its tensor maps come from the launch.
inline constexpr llvm::StringLiteral kOfLaunchAttr = "tile.of_launch";

/// On a make_view: numbers of arguments which have to be above 0 for its boxes to be what they stand for.
inline constexpr llvm::StringLiteral kPositiveArgumentsAttr = "tile.positive_arguments";

/// Whether a scalar is the same in all programs, and a sum of products of arguments: the launcher can compute it.
bool isOfLaunch(mlir::Value scalar);

/// What the launcher has to know of a view; nullopt: it is made of more than arguments.
struct LaunchView {
  unsigned param = 0;         ///< argument that its pointer begins in
  std::vector<SlotSum> made;  ///< as in TensorMapInfo
};
std::optional<LaunchView> launchView(MakeViewOp view);

/// Marks the views of the kernel whose maps the launch passes: as many as leave room for those of other arguments.
void markLaunchViews(mlir::func::FuncOp kernel);

}  // namespace tile::ir
