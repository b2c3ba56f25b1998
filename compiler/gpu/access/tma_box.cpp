// tma_box.cpp - the hardware's rules for tensor maps and bulk tensor copies, as questions about a view and a box.
#include "compiler/gpu/access/tma_box.h"

#include "compiler/abi_params.h"
#include "compiler/gpu/access/launch_views.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kMaxBoxDim = 256;    ///< elements of one copy along any dim
constexpr int64_t kAddressBytes = 16;  ///< alignment of the base address and of every stride

/// Collects the first reason against.
struct Refusal {
  std::string* why;
  std::nullopt_t operator()(const llvm::Twine& text) const {
    if (why) *why = text.str();
    return std::nullopt;
  }
};

/// Rows of one copy: all of them, or the largest divisor that keeps copies at multiples of the swizzle pattern.
int64_t rowsPerCopy(int64_t rows) {
  if (rows <= kMaxBoxDim) return rows;
  for (int64_t part = kMaxBoxDim; part >= 8; part -= 8)
    if (rows % part == 0) return part;
  return 0;
}

/// Extents along dims of rows (from the last) of a part of `count` rows that is a box of its own; nothing where none
/// is.
std::optional<std::vector<int64_t>> partOf(ArrayRef<int64_t> extents, int64_t count) {
  std::vector<int64_t> part;
  for (int64_t extent : extents) {
    const int64_t here = std::min(extent, count);
    if (count % here != 0 || extent % here != 0 || here > kMaxBoxDim) return std::nullopt;
    part.push_back(here);
    count /= here;
  }
  return count == 1 ? std::optional(part) : std::nullopt;
}

/// What a tensor map describes: an argument of the kernel, or a view made in the kernel.
struct Origin {
  BlockArgument arg;        ///< null: made in the kernel
  SmallVector<int8_t, 5> dims;  ///< which of its dims each dim of the view is
  std::optional<LaunchView> launch;  ///< made in the kernel, of arguments alone
  bool isOfLaunch() const { return arg || launch; }
};

BlockArgument argumentOf(Value value) {
  auto arg = dyn_cast<BlockArgument>(value);
  return arg && isa_and_nonnull<func::FuncOp>(arg.getOwner()->getParentOp()) ? arg : BlockArgument();
}

bool hasNoBulkCopies(BlockArgument arg) {
  return cast<func::FuncOp>(arg.getOwner()->getParentOp()).getArgAttr(arg.getArgNumber(), "tile.no_bulk_copies") !=
         nullptr;
}

/// The argument whose address, dims and strides, each dim once, a view is made of.
std::optional<Origin> reorderedArgument(MakeViewOp made) {
  auto start = made.getPtr().getDefiningOp<ViewPtrOp>();
  Origin origin{start ? argumentOf(start.getView()) : BlockArgument(), {}, {}};
  if (!origin.arg || cast<ViewType>(origin.arg.getType()).getRank() != made.getType().getRank()) return std::nullopt;
  for (auto [dim, stride] : llvm::zip(made.getDims(), made.getStrides())) {
    auto size = dim.getDefiningOp<ViewDimOp>();
    auto step = stride.getDefiningOp<ViewStrideOp>();
    if (!size || !step || size.getView() != origin.arg || step.getView() != origin.arg) return std::nullopt;
    const auto d = static_cast<int8_t>(size.getDim());
    if (size.getDim() != step.getDim() || llvm::is_contained(origin.dims, d)) return std::nullopt;
    origin.dims.push_back(d);
  }
  return origin;
}

std::optional<Origin> originOf(Value view) {
  auto made = view.getDefiningOp<MakeViewOp>();
  if (made)
    if (auto origin = reorderedArgument(made)) return origin;
  Origin origin{argumentOf(view), {}, {}};
  if (!made && !origin.arg) return std::nullopt;
  if (made && made->hasAttr(kOfLaunchAttr)) origin.launch = launchView(made);
  for (int8_t d = 0; d < cast<ViewType>(view.getType()).getRank(); ++d) origin.dims.push_back(d);
  return origin;
}

/// The same number, perhaps of fewer bits.
Value numberBehind(Value value) {
  while (Operation* op = value.getDefiningOp()) {
    if (!isa<arith::ExtSIOp, arith::IndexCastOp, AssumeOp>(op)) break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether a stride of a view made in the kernel is above 0, or the view has no elements; where that is so of a
/// launch's argument, the launch has to look (`relied`).
bool isPositive(Value stride, MakeViewOp made, const Facts& facts, SmallVectorImpl<unsigned>& relied) {
  if (facts.rangeOf(stride).min > 0) return true;
  const Value value = numberBehind(stride);
  if (llvm::any_of(made.getDims(), [&](Value dim) { return numberBehind(dim) == value; })) return true;
  if (BlockArgument arg = argumentOf(value)) {
    if (!llvm::is_contained(relied, arg.getArgNumber())) relied.push_back(arg.getArgNumber());
    return true;
  }
  if (auto of = value.getDefiningOp<ViewStrideOp>()) {
    const BlockArgument arg = argumentOf(of.getView());
    return arg && !hasNoBulkCopies(arg);
  }
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    return isPositive(product.getLhs(), made, facts, relied) && isPositive(product.getRhs(), made, facts, relied);
  return false;
}

/// There is a loop that reads from the view, which is not made in it.
bool isMadeAhead(Operation* made) {
  return llvm::any_of(made->getUsers(), [&](Operation* user) {
    auto loop = user->getParentOfType<LoopLikeOpInterface>();
    return isa<LoadOp, LoadSharedOp>(user) && loop && !loop->isAncestor(made);
  });
}

}  // namespace

bool isMadeInKernel(Value view) {
  const auto origin = originOf(view);
  return origin && !origin->isOfLaunch();
}

int64_t TmaBox::bytes() const { return type.getShape()[0] * type.getShape()[1] * type.elementBytes(); }

bool beginsAtUnits(Value view, ValueRange indices, const Facts& facts, std::string* why) {
  const int unit = facts.unitStrideDim(view);
  const int64_t bytes = cast<ViewType>(view.getType()).getElementType().getIntOrFloatBitWidth() / 8;
  if (unit < 0 || facts.divisibility(indices[unit]) * bytes % kAddressBytes == 0) return true;
  Refusal{why}("where the box begins along dim " + llvm::Twine(unit) +
               " of the view is not known to be a multiple of " + llvm::Twine(kAddressBytes) + " bytes");
  return false;
}

/// The box of a load, which has its view and indices.
template <class Load>
static std::optional<TmaBox> boxOfLoad(Load load, SmemType type, const Facts& facts, std::string* why,
                                       ArrayRef<int64_t> box, int64_t parts) {
  if (!beginsAtUnits(load.getView(), load.getIndices(), facts, why)) return std::nullopt;
  auto found = tmaBox(load.getView(), type, facts, /*isStore=*/false, why, box, parts);
  // Its tensor map would have to be written, and seen by the copy engine, in front of each copy.
  if (found && found->made && !isMadeAhead(found->made.getDefiningOp()))
    return Refusal{why}("the view is made in the kernel, and not in front of a loop that copies from it");
  return found;
}

bool isBulkLoad(Operation* load, SmemType type, const Facts& facts, std::string* why, ArrayRef<int64_t> box) {
  if (auto plain = dyn_cast<LoadOp>(load)) return boxOfLoad(plain, type, facts, why, box, 1).has_value();
  return boxOfLoad(cast<LoadSharedOp>(load), type, facts, why, box, 1).has_value();
}

std::optional<TmaBox> tmaBox(LoadSharedOp load, const Facts& facts, std::string* why, int64_t parts) {
  const ArrayRef<int64_t> box = load.getBox();
  return boxOfLoad(load, load.getResult().getType(), facts, why, box.size() > 2 ? box : ArrayRef<int64_t>(), parts);
}

std::optional<TmaBox> tmaBox(Value view, SmemType type, const Facts& facts, bool isStore, std::string* why,
                             ArrayRef<int64_t> extents, int64_t parts) {
  Refusal refuse{why};
  const auto origin = originOf(view);
  if (!origin) return refuse("the view is neither an argument of the kernel nor made by it");
  if (isStore && !origin->isOfLaunch()) return refuse("the view is not an argument of the kernel, nor made of some");
  if (origin->arg && hasNoBulkCopies(origin->arg))
    return refuse("no tensor map describes the view: a dim repeats, runs backwards or is too large");
  auto viewType = cast<ViewType>(view.getType());
  const int rank = static_cast<int>(viewType.getRank());
  if (rank > 5 || (isStore && rank < 2))
    return refuse("the view has " + llvm::Twine(rank) + " dims, not " + (isStore ? "2" : "1") + " to 5");
  auto dtype = dtypeOf(type.getElementType());
  if (!dtype || *dtype == DType::i1) return refuse("there are no tensor maps of this element type");

  const int unit = facts.unitStrideDim(view), minor = unit - (rank - 2);
  if (unit < 0) return refuse("no dim of the view is known to have stride 1");
  if (minor < 0) return refuse("dim " + llvm::Twine(unit) + " of the view has stride 1, but is no dim of the box");
  if (isStore && minor != 1)
    return refuse("dim " + llvm::Twine(unit) + " of the view has stride 1; bulk stores write along the last dim");
  if (minor != type.getMinor())
    return refuse("the buffer's contiguous dim is " + llvm::Twine(type.getMinor()) + ", the view's is " +
                  llvm::Twine(minor));
  const int64_t eb = type.elementBytes();
  if (facts.alignOf(view) % kAddressBytes != 0)
    return refuse("the view's address is not known to be a multiple of " + llvm::Twine(kAddressBytes) + " bytes");
  for (int d = 0; d < rank; ++d)
    if (d != unit && facts.strideDivisibility(view, d) * eb % kAddressBytes != 0)
      return refuse("stride " + llvm::Twine(d) + " of the view is not known to be a multiple of " +
                    llvm::Twine(kAddressBytes) + " bytes");
  SmallVector<unsigned> positive;
  if (!origin->arg) {
    auto made = view.getDefiningOp<MakeViewOp>();
    for (auto [d, stride] : llvm::enumerate(made.getStrides()))
      if (static_cast<int>(d) != unit && !isPositive(stride, made, facts, positive))
        return refuse("stride " + llvm::Twine(d) + " of the view is not known to be positive (see assume)");
  }

  // Bulk stores write whole units of 16 bytes: one that straddles the view's edge would write past it (seen on an
  // H200).
  if (isStore && facts.dimDivisibility(view, unit) * eb % 16 != 0)
    return refuse("dim " + llvm::Twine(unit) + " of the view is not known to be a multiple of 16 bytes");

  const layout::SharedTile tile = type.slot();
  const int64_t rows = tile.rows, rowBytes = tile.rowBytes();
  if (rank == 1 && rows != 1) return refuse("the view has one dim, the box " + llvm::Twine(rows) + " rows");
  if (rowBytes % 16 != 0) return refuse("rows of " + llvm::Twine(rowBytes) + " bytes are not a multiple of 16 bytes");
  if (!tile.swizzle && (tile.pitch != rowBytes || type.slotBytes() % layout::kBulkAlignment != 0))
    return refuse("a box of " + llvm::Twine(rows) + " rows of " + llvm::Twine(rowBytes) +
                  " bytes has gaps in shared memory");
  const int64_t perRow = (tile.swizzle ? tile.swizzle : rowBytes) / eb;
  if (perRow > kMaxBoxDim) return refuse("rows of " + llvm::Twine(perRow) + " elements are longer than a copy");
  if (isStore && rows % kTmaStoreRows != 0)
    return refuse(llvm::Twine(rows) + " rows are not a multiple of the " + llvm::Twine(kTmaStoreRows) +
                  " rows a warpgroup stores");
  SmallVector<int64_t> rowExtents{rows}, columnExtents;
  if (!extents.empty()) {
    if (minor != 1) return refuse("the last dim of a box of more than two dims is not the contiguous one");
    const int64_t across = isStore ? 1 : type.columnDims(extents);
    rowExtents.assign(extents.rbegin() + across, extents.rend());
    if (across > 1) columnExtents.assign(extents.rbegin(), extents.rbegin() + across);
    if (across > 1 && extents.back() % perRow != 0)
      return refuse("copies of " + llvm::Twine(perRow) + " columns are no parts of the " + llvm::Twine(extents.back()) +
                    " of the box along its last dim");
    int64_t product = 1;
    for (int64_t extent : rowExtents) product *= extent;
    if (product != rows || static_cast<int>(extents.size()) > rank)
      return refuse("a box of " + llvm::Twine(product) + " rows in " + llvm::Twine(extents.size()) +
                    " dims does not fit a buffer of " + llvm::Twine(rows) + " rows, a view of " + llvm::Twine(rank) +
                    " dims");
  }
  int64_t perCopy = isStore ? kTmaStoreRows : rowsPerCopy(rows);
  if (!isStore && partOf(rowExtents, rows)) perCopy = rows;
  if (perCopy && tile.panels() * (rows / perCopy) % parts != 0)
    perCopy = rows % (8 * parts) == 0 ? rowsPerCopy(rows / parts) : 0;
  const auto part = perCopy ? partOf(rowExtents, perCopy) : std::nullopt;
  if (perCopy != 0 && !part)
    return refuse("parts of " + llvm::Twine(perCopy) + " rows are no boxes of the view");
  if (perCopy == 0)
    return refuse(llvm::Twine(rows) + " rows do not split into copies of at most " + llvm::Twine(kMaxBoxDim));
  if (tile.panels() > 1 && rows % 8 != 0)
    return refuse(llvm::Twine(rows) + " rows are not a multiple of the 8 rows of a swizzle pattern");

  TmaBox box{type, {}, {}, positive, {}, {}, {columnExtents.begin(), columnExtents.end()}, {}};
  if (!origin->isOfLaunch()) box.made = view;
  if (rowExtents.size() > 1) box.rowExtents.assign(rowExtents.begin(), rowExtents.end());
  if (origin->arg) box.map.param = origin->arg.getArgNumber();
  if (origin->launch) box.map.param = origin->launch->param, box.map.made = origin->launch->made;
  box.map.dtype = *dtype;
  box.map.rank = static_cast<uint8_t>(rank);
  box.map.swizzle = static_cast<uint8_t>(tile.swizzle);
  box.map.written = isStore;
  // Contiguous dim, the box's rows from the last dim, the other dims of its columns, then the rest.
  size_t at = 0;
  auto add = [&](int dim, int64_t extent) {
    box.dims[at] = static_cast<int8_t>(dim);
    box.map.dims[at] = origin->dims[dim];
    box.map.box[at++] = static_cast<uint16_t>(extent);
  };
  add(unit, perRow);
  const int firstRow = rank - 1 - std::max(1, static_cast<int>(columnExtents.size()));
  const int behindRows = firstRow - static_cast<int>(part->size());
  if (rank > 1) add(columnExtents.empty() ? rank - 2 + (1 - minor) : firstRow, part->front());
  for (int d = firstRow - 1; d > behindRows; --d) add(d, (*part)[static_cast<size_t>(firstRow - d)]);
  // Panels of one row of pixels each follow one another as the copy engine would write them: all at once.
  const bool atOnce = !columnExtents.empty() && columnExtents.front() == perRow && perCopy == rows && parts == 1 &&
                      llvm::all_of(columnExtents, [](int64_t extent) { return extent <= kMaxBoxDim; });
  for (int d = rank - 2; d > firstRow; --d) add(d, atOnce ? columnExtents[static_cast<size_t>(rank - 1 - d)] : 1);
  for (int d = behindRows; d >= 0; --d) add(d, 1);
  for (int64_t col = 0; col < (atOnce ? perRow : tile.cols); col += perRow)
    for (int64_t row = 0; row < rows; row += perCopy) {
      const int64_t inPanel = row * (tile.swizzle ? tile.swizzle : tile.pitch);
      box.copies.push_back({row, col, col / perRow * rows * tile.swizzle + inPanel});
      if (box.copies.back().byte % layout::kBulkAlignment != 0)
        return refuse("parts of the box would not start at multiples of " + llvm::Twine(layout::kBulkAlignment) +
                      " bytes in shared memory");
    }
  return box;
}

std::optional<TmaBox> tmaBox(Value view, ArrayRef<int64_t> shape, Type element, const Facts& facts, bool isStore,
                             std::string* why) {
  auto viewType = dyn_cast<ViewType>(view.getType());
  if (!viewType || viewType.getRank() < 2) {
    if (why) *why = "the view has fewer than 2 dims";
    return std::nullopt;
  }
  // An unknown or unsuitable unit stride is refused below; any minor dim serves to say so.
  const int64_t minor = facts.unitStrideDim(view) - (viewType.getRank() - 2);
  auto type = SmemType::get(element.getContext(), shape, element, minor == 0 ? 0 : 1, 1);
  return tmaBox(view, type, facts, isStore, why);
}

layout::Layout tmaStoreLayout(ArrayRef<int64_t> shape, int numWarps, int columnGroups, bool transposed) {
  layout::Shape tile(shape.begin(), shape.end());
  if (transposed) return layout::wgmmaAccumulator({tile[1], tile[0]}, columnGroups, 1, /*unitN=*/8).transposed({1, 0});
  if (columnGroups == 1) return layout::mmaAccumulator(tile, numWarps, 1);
  return layout::wgmmaAccumulator(tile, numWarps / 4 / columnGroups, columnGroups, /*unitN=*/8);
}

std::optional<int> tmaStoreColumnGroups(const layout::Layout& layout, const layout::SharedTile& staging, int numWarps) {
  if (layout == tmaStoreLayout(layout.shape(), numWarps)) return 1;
  const int groups = numWarps / 4;
  // Of transposed products a warpgroup has the columns that its rows were.
  if (layout.shape()[1] == kTmaStoreRows * groups && staging.cols == layout.shape()[1] &&
      (groups == 1 || (staging.swizzle && staging.rowBytes() / groups % staging.swizzle == 0)) &&
      layout == tmaStoreLayout(layout.shape(), numWarps, groups, /*transposed=*/true))
    return groups;
  for (int across = 2; across <= groups; ++across) {
    if (groups % across != 0 || layout.shape()[1] % staging.cols != 0 || !staging.swizzle) continue;
    if (staging.cols % across != 0 || staging.rowBytes() / across % staging.swizzle != 0) continue;
    if (layout == tmaStoreLayout(layout.shape(), numWarps, across)) return across;
  }
  return std::nullopt;
}

}  // namespace tile::ir
