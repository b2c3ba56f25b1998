// bands.h - in which order programs that take one position of the grid after another take them.
//
// Positions along x follow each other. Of a matrix product whose rows are the grid's x and whose columns are its y,
// programs that run at the same time would then have all rows and few columns between them, and read the whole first
// operand again for every few columns. In bands of x, as wide as the programs at a time are high, they read the least.
// (Programs that number their own positions in groups have one dim of the grid, and nothing changes for them.)
#pragma once
#include "compiler/gpu/rings/plan.h"
#include "compiler/gpu/roles/role_slice.h"

namespace tile::ir {

/// Positions of the grid along x that are side by side in a band; 0: the order of the grid is kept. It is where other
/// programs could see it (they wait for each other, or draw numbers), where positions take different times, so that who
/// wrote the kernel may have put the long ones first, in clusters, and where bands save nothing: copies of loops must
/// depend on x and not y, and others on y and not x. `programs`: on a multiprocessor.
int bandOf(mlir::func::FuncOp func, const std::vector<LoadGroup>& groups, const RoleSlice& slice, int programs);

}  // namespace tile::ir
