// bands.h - in which order programs that take one position of the grid after another take them.
//
// Positions along x follow each other. Of a matrix product whose rows are the grid's x and whose columns are its y,
// programs that run at the same time would then have all rows and few columns between them, and read the whole first
// operand again for every few columns. In bands of x, as wide as the programs at a time are high, they read the least.
// Operands that the second-level cache holds anyway are read in the order of the grid: bands cost 2 to 6 % there.
// (Programs that number their own positions in groups have one dim of the grid, and nothing changes for them.)
#pragma once
#include "compiler/gpu/roles/role_slice.h"

namespace tile::ir {

struct Bands {
  /// Copies that are made in each iteration of loops.
  struct Copies {
    llvm::SmallVector<mlir::scf::ForOp, 2> loops;
    int64_t ofX = 0, ofY = 0;  ///< bytes that depend on x and not on y, and the other way round
  };
  int width = 0;  ///< positions along x that are side by side; 0: the order of the grid is kept
  llvm::SmallVector<Copies> copies;
};

/// The order of the grid is kept where other programs could see it (they wait for each other, or draw numbers), where
/// positions take different times, so that who wrote the kernel may have put the long ones first, in clusters, and
/// where bands save nothing: copies of loops must depend on x and not y, and others on y and not x. `programs`: on a
/// multiprocessor.
Bands bandsOf(mlir::func::FuncOp func, const std::vector<LoadGroup>& groups, const RoleSlice& slice, int programs);

/// The width for a launch (i32): so many that the grid is one band where the cache holds the operands. Null: no bands.
mlir::Value widthOfLaunch(mlir::OpBuilder& builder, mlir::Location loc, const Bands& bands);

}  // namespace tile::ir
