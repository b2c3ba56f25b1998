// tma_box.h - which boxes of views the tensor memory accelerator can copy, and with which copies. The same answer
// serves the pass that decides (with the reason if it cannot, for a remark), the lowering that emits the copies, and
// the tensor maps.
//
// A box needs one copy for each panel of `swizzle` bytes along its contiguous dim and each 256 rows; all copies of a
// box use one tensor map. Elements land where layout::SharedTile says, so readers need not know how they were copied.
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
  bool isNarrow = false;  ///< of a last panel that the row does not fill: by TmaBox::narrow
};

struct TmaBox {
  SmemType type;      ///< the box in shared memory, one stage; its `minor` is the dim with unit stride
  TensorMapInfo map;  ///< `param`: the argument's number; `dims` are dims of it, or of a view made in the kernel
  std::optional<TensorMapInfo> narrow;  ///< the same with rows of the last panel, where that is not filled
  mlir::Value made;   ///< the view, if its tensor map is made in the kernel; null: it comes from the launch
  llvm::SmallVector<unsigned> positive;  ///< arguments that are strides of such a view: copies rely on their being > 0
  std::array<int8_t, 5> dims{};  ///< of the view, in the order of the map: others than the argument's where a view has
                                 ///< its dims in another order
  std::vector<int64_t> rowExtents = {};  ///< of the box along the dims that are its rows, from the last; empty: one dim
  std::vector<int64_t> columnExtents = {};  ///< the same of its columns
  std::vector<TmaCopy> copies;
  int64_t bytes() const;  ///< what all copies of a load count on the barrier
};

/// On tma_load and tma_store: the extents of the box along the last dims of the view, if they are more than two. All
/// but the last dim are rows of the tile, in row-major order; of a load all but the last SmemType::columnDims.
inline constexpr llvm::StringLiteral kBoxAttr = "tile.box";

/// On tma_load of f32: elements arrive rounded to tf32. Only tf32 products read the tile. The tensor cores themselves
/// would truncate, and zeros in the lower bits save power.
inline constexpr llvm::StringLiteral kTf32Attr = "tile.tf32";

/// Rows of each copy of a store: every warpgroup stores its own slices of 64 rows. (Of tiles with other rows,
/// transposed products', a copy has all rows, of the columns that a warpgroup has.)
inline constexpr int64_t kTmaStoreRows = 64;

/// Whether a box begins at a multiple of 16 bytes along the contiguous dim, which the hardware requires (on an H200 the
/// copy is an illegal instruction otherwise).
bool beginsAtUnits(mlir::Value view, mlir::ValueRange indices, const Facts& facts, std::string* why = nullptr);
/// Whether bulk copies can load the box that `load` (a LoadOp or LoadSharedOp) reads into a buffer of the type: it
/// begins at 16 bytes, tmaBox has copies for it, and the tensor map of a view made in the kernel would serve more than
/// one copy.
bool isBulkLoad(mlir::Operation* load, SmemType type, const Facts& facts, std::string* why = nullptr,
                llvm::ArrayRef<int64_t> box = {});

/// Whether the view is made in the kernel and so needs a tensor map of its own (tma_describe). Arguments, also with
/// their dims in another order, do not, nor views made of arguments alone (launch_views.h).
bool isMadeInKernel(mlir::Value view);

/// Bulk copies for the box of `shape` (the last two dims of the view). Nullopt: there are none, and `why` says what is
/// missing ("... is not known to be a multiple of 16 bytes"). `isStore`: registers -> staging -> view, whose contiguous
/// dim is the last one.
std::optional<TmaBox> tmaBox(mlir::Value view, llvm::ArrayRef<int64_t> shape, mlir::Type element, const Facts& facts,
                             bool isStore, std::string* why = nullptr);
/// The same for a given type of buffer; also fails if `type.minor` is not the contiguous dim. `box`: extents along the
/// last dims of the view, if they are more than two (kBoxAttr); of a store the last extent is that of the whole tile,
/// of which the buffer may have some columns. `parts`: the number of copies must be a multiple of it, so that programs
/// of a cluster can make equal shares.
std::optional<TmaBox> tmaBox(mlir::Value view, SmemType type, const Facts& facts, bool isStore,
                             std::string* why = nullptr, llvm::ArrayRef<int64_t> box = {}, int64_t parts = 1);
std::optional<TmaBox> tmaBox(LoadSharedOp load, const Facts& facts, std::string* why = nullptr,
                             int64_t parts = 1);

/// The register layout in which a bulk store takes its tile: accumulators of all warpgroups, `columnGroups` of them
/// side by side and the rest along the rows; or those of a transposed product, with all warpgroups side by side.
layout::Layout tmaStoreLayout(llvm::ArrayRef<int64_t> shape, int numWarps, int columnGroups = 1,
                              bool transposed = false);
/// Whether it is such a layout of a transposed product.
bool isTransposedStore(const layout::Layout& layout, int numWarps);
/// The columnGroups of such a layout. Nullopt: it is none, or the staging buffer does not allow it (warpgroups side by
/// side need panels of their own).
std::optional<int> tmaStoreColumnGroups(const layout::Layout& layout, const layout::SharedTile& staging, int numWarps);

}  // namespace tile::ir
