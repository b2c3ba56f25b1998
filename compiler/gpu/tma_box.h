// tma_box.h - which boxes of views the tensor memory accelerator can copy, and as which copies. One answer for the pass
// that decides (with the reason when it cannot, for a remark), the lowering that emits the copies, and the tensor maps.
//
// A box becomes one copy per panel of `swizzle` bytes along its contiguous dim and per 256 rows; all copies of a box
// use one tensor map. Where an element lands is layout::SharedTile's address function, so readers need not know who
// copied.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "runtime/abi.h"

namespace tile::ir {

/// One copy: a part of the box at (row, col) of the box, to or from `byte` of the tile in shared memory. Rows run along
/// the dim that is not contiguous.
struct TmaCopy {
  int64_t row = 0, col = 0, byte = 0;
};

struct TmaBox {
  SmemType type;      ///< the box in shared memory, one stage; its `minor` is the dim with unit stride
  TensorMapInfo map;  ///< `param` is the argument's number, `dims` are its dims; of a view made in the kernel its own
  mlir::Value made;   ///< the view, when it is made in the kernel: so is its tensor map. Null: an argument
  llvm::SmallVector<unsigned> positive;  ///< arguments that are strides of such a view: the copies rely on > 0
  std::array<int8_t, 5> dims{};  ///< of the view, in the order of the map: others than the argument's where a view has
                                 ///< its dims in another order
  std::vector<int64_t> rowExtents = {};  ///< of the box along the dims that are its rows, from the last; empty: one dim
  std::vector<int64_t> columnExtents = {};  ///< the same of its columns
  std::vector<TmaCopy> copies;
  int64_t bytes() const;  ///< what all copies of a load count on the barrier
};

/// On tma_load and tma_store: the extents of the box along the last dims of the view, where those are more than two.
/// All but the last are the rows of the tile, in row-major order; of a load all but the last SmemType::columnDims.
inline constexpr llvm::StringLiteral kBoxAttr = "tile.box";

/// On tma_load of f32: elements arrive rounded to tf32. Only products that read no more of them see the tile; the
/// tensor cores would cut the lower bits off, and what moves through shared memory is the quieter without them.
inline constexpr llvm::StringLiteral kTf32Attr = "tile.tf32";

/// Rows of the copies of a store: each warpgroup stores its own 64-row slices of the accumulator.
inline constexpr int64_t kTmaStoreRows = 64;

/// Whether a box begins at a multiple of 16 bytes along the contiguous dim, as the hardware wants it (on an H200 the
/// copy is an illegal instruction otherwise).
bool beginsAtUnits(mlir::Value view, mlir::ValueRange indices, const Facts& facts, std::string* why = nullptr);
/// Whether the box that `load` reads (a LoadOp or LoadSharedOp) can be read in bulk into a buffer of the type: where it
/// begins, tmaBox, and of a view made in the kernel, whether its tensor map serves more than one copy.
bool isBulkLoad(mlir::Operation* load, SmemType type, const Facts& facts, std::string* why = nullptr,
                llvm::ArrayRef<int64_t> box = {});

/// A view with a tensor map of its own (tma_describe), if it has one: no argument, nor one with its dims in another
/// order.
bool isMadeInKernel(mlir::Value view);

/// The box of `shape` (the last two dims of the view) as bulk copies; nullopt when they cannot be, and then `why` says
/// what is missing ("... is not known to be a multiple of 16 bytes"). `isStore`: registers -> staging -> view, the
/// contiguous dim is the last.
std::optional<TmaBox> tmaBox(mlir::Value view, llvm::ArrayRef<int64_t> shape, mlir::Type element, const Facts& facts,
                             bool isStore, std::string* why = nullptr);
/// The same for a buffer that exists already; also fails when `type.minor` is not the contiguous dim. `box`: extents
/// along the last dims of the view, when those are more than two (kBoxAttr). Of a store the last is that of the whole
/// tile, of which the buffer may have some columns. `parts`: the number of copies is a multiple of it, for programs
/// that make equal shares of them.
std::optional<TmaBox> tmaBox(mlir::Value view, SmemType type, const Facts& facts, bool isStore,
                             std::string* why = nullptr, llvm::ArrayRef<int64_t> box = {}, int64_t parts = 1);
std::optional<TmaBox> tmaBox(LoadSharedOp load, const Facts& facts, std::string* why = nullptr,
                             int64_t parts = 1);

/// The register layouts a bulk store takes its tile in: accumulators of all warpgroups, `columnGroups` of them side by
/// side and the others one behind another along the rows; or those of a transposed product, all warpgroups side by
/// side.
layout::Layout tmaStoreLayout(llvm::ArrayRef<int64_t> shape, int numWarps, int columnGroups = 1,
                              bool transposed = false);
/// The columnGroups of a layout, as far as the staging buffer allows: warpgroups side by side need panels of their own.
std::optional<int> tmaStoreColumnGroups(const layout::Layout& layout, const layout::SharedTile& staging, int numWarps);

}  // namespace tile::ir
