// mma_table.h - the engines (kinds of instructions) that compute products, as data: shape, width of operands,
// requirements, register layouts. To add an instruction: a case of the Engine enum, a row in mma_table.cpp, its
// emission in lowering/dot.cpp (mma.sync) or lowering/wgmma.cpp.
#pragma once
#include <cstdint>
#include <optional>

#include "compiler/dialect/products.h"
#include "compiler/layout/layout.h"
#include "compiler/targets/target.h"

namespace tile::ir {

struct EngineRow {
  Engine engine;
  const char* name;
  int m, n, k;  ///< one instruction of one warp (f64: the block of two m16n8k8; wgmma: a warp's rows, the step of
                ///< n; fma: the block that 32 lanes cover with 1 x 4 elements each, 4 k)
  int operandBits;      ///< width of an operand element; 0: any
  bool isMma;           ///< mma.sync or wgmma fragments; false: plain multiply-adds
  int minSm;
  bool isWgmma = false; ///< asynchronous, by warpgroups (target.hasWgmma): the result is ready behind tile.mma_wait
};

const EngineRow& engineRow(Engine engine);

/// PTX names of the element types of a and b, products of f8.
std::pair<std::string, std::string> f8Names(mlir::Type a, mlir::Type b);

inline bool isWgmma(Engine engine) { return engineRow(engine).isWgmma; }

/// The engine of single warps for operands of `element` accumulating in `acc`: the first row that fits the target.
/// Always finds one: fma takes everything.
Engine chooseEngine(mlir::Type element, mlir::Type acc, Precision precision, const Target& target);

/// The engine of warpgroups, where the target has one for these types.
std::optional<Engine> chooseWarpgroupEngine(mlir::Type element, mlir::Type acc, Precision precision,
                                            const Target& target);

/// Extents the warps cover for a product of M x N x K: multiples of the instruction's shape times the warp grid.
struct Cover {
  int64_t m, n, k;
};
Cover coverOf(Engine engine, int64_t m, int64_t n, int64_t k, int warpsM, int warpsN);

/// How the 32 lanes of a warp divide a product that is computed by multiply-adds: `rows` rows of `columns` lanes each;
/// a lane has four columns in each of `deep` consecutive rows. Narrow products have more rows of fewer lanes, so
/// that no two lanes compute the same. `deep` is 4 where that computes no rows in vain: one 16-byte read of either
/// operand then serves four rows or columns.
struct FmaLanes {
  int rows, columns, deep;

  /// Size of the block of neighbouring rows and columns that a warp has.
  int height() const { return rows * deep; }
  int width() const { return 4 * columns; }
  /// The `rep`-th row of the first lane of the first warp.
  int64_t rowOf(int rep, int warpsM) const { return int64_t{rep / deep} * height() * warpsM + rep % deep; }
};
FmaLanes fmaLanes(int64_t m, int64_t n, int warpsM, int warpsN);

/// Distances between the four columns of a lane, and between the first columns of lanes. Lanes that read the second
/// operand along k read neighbouring columns at once: they lie in different groups of banks. Along n a lane reads its
/// four columns as one vector.
struct FmaColumns {
  int apart, ofLanes;
};
FmaColumns fmaColumns(const FmaLanes& lanes, bool alongK);

/// Register layouts of an mma's accumulator and, when it is a register tile, of its first operand.
layout::Layout accumulatorLayout(MmaOp op);
layout::Layout operandALayout(MmaOp op);

/// Register layouts of products of single warps: matrices are assigned to warps round robin; if there are fewer
/// matrices than warps, several warps share the columns of one.
struct BatchLayouts {
  layout::Layout a, b, acc;
};
BatchLayouts batchLayouts(BatchMmaOp op, int numWarps);

/// A product by warpgroups as the instructions compute it: of m x n, with blocks of 64 rows divided among `teamsM`
/// warpgroups, and columns among `teamsN`. In transposed products (dialect/products.h) its rows are the tile's columns.
struct WarpgroupProduct {
  int64_t m, n;
  int teamsM, teamsN;
  Cover cover;
};
WarpgroupProduct warpgroupProduct(MmaOp op);
/// Products whose first operand threads read from shared memory are issued in groups of this many k steps; the
/// fragments of two groups are in registers at a time.
inline constexpr int kFragmentSteps = 2;
/// The layout in which the threads read the fragment operand (m x k): fragmentOperand(op) is not null.
layout::Layout fragmentLayout(MmaOp op);

}  // namespace tile::ir
