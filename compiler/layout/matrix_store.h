// matrix_store.h - storing 16-bit tiles in mma or wgmma accumulator layout with stmatrix, and reading tiles in such
// layouts with ldmatrix: which registers go together and which address each lane gives. The counterpart of fragments.h.
// Pure C++.
//
// stmatrix takes matrices of 8x8 elements as a warp holds them in accumulators (lane l: row l / 4, columns 2 * (l % 4),
// + 1), and writes their rows, 16 bytes each, where eight lanes point to; transposed, it writes their columns.
#pragma once
#include <optional>
#include <vector>

#include "compiler/layout/fragments.h"
#include "compiler/layout/layout.h"

namespace tile::layout {

struct MatrixStore {
  struct Instruction {
    std::vector<int> registers;  ///< per matrix, the first of the two neighbouring registers it is in: 2 or 4 matrices
    int64_t row = 0, byte = 0;   ///< constants to add to the thread's share
  };
  bool transposed = false;
  ThreadSum row, byte;  ///< where a lane points: row of the shared tile and byte of its row
  std::vector<Instruction> instructions;
};

/// Stores the part of the tile whose coordinate along the minor dim is in [first, first + tile.cols) to the start of
/// `tile`, whose rows run along the other dim. nullopt: the layout is not made of whole 8x8 matrices, has replicas or
/// padding, the part cuts through a warp's share, or rows are not multiples of 16 bytes. `everyWarp`: each has bytes of
/// its own, so that replicas are stored as often as there are.
std::optional<MatrixStore> planMatrixStore(const Layout& layout, const SharedTile& tile, int minorDim,
                                           int64_t first = 0, bool everyWarp = false);

/// The same for reading the whole tile back with ldmatrix, which several warps may do.
std::optional<MatrixStore> planMatrixLoad(const Layout& layout, const SharedTile& tile, int minorDim);

}  // namespace tile::layout
