// tma_box.cpp - the hardware's rules for tensor maps and bulk tensor copies, as questions about a view and a box.
#include "compiler/gpu/access/tma_box.h"

#include <numeric>

#include "compiler/abi_params.h"
#include "compiler/gpu/access/launch_views.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

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
  // Of a multiple of a number that is no smaller than the divisor; 0 is none where the dividend is positive.
  if (auto quotient = value.getDefiningOp<arith::DivSIOp>()) {
    const auto by = getConstantIntValue(quotient.getRhs());
    return by && *by > 0 && facts.divisibility(quotient.getLhs()) >= *by &&
           isPositive(quotient.getLhs(), made, facts, relied);
  }
  Operation* op = value.getDefiningOp();
  return isa_and_nonnull<arith::AddIOp, arith::MulIOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value v) { return isPositive(v, made, facts, relied); });
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

namespace {

/// One box of a view, as bulk copies of parts of it, or why there is none.
class BoxFinder {
 public:
  BoxFinder(Value view, SmemType type, const Facts& facts, bool isStore, std::string* why)
      : view_(view),
        type_(type),
        facts_(facts),
        isStore_(isStore),
        refuse_{why},
        rank_(static_cast<int>(cast<ViewType>(view.getType()).getRank())),
        unit_(facts.unitStrideDim(view)),
        minor_(unit_ - (rank_ - 2)),
        elementBytes_(type.elementBytes()),
        tile_(type.slot()) {}

  /// `extents`: of a box of more than two dims, else none. `parts`: the number of copies is a multiple of it.
  std::optional<TmaBox> find(ArrayRef<int64_t> extents, int64_t parts) {
    if (!describes() || !isAligned() || !fitsBuffer() || !sortExtents(extents) || !divideRows(parts))
      return std::nullopt;
    TmaBox box{type_, {}, {}, {}, positive_, {}, {}, {columnExtents_.begin(), columnExtents_.end()}, {}};
    if (!origin_->isOfLaunch()) box.made = view_;
    if (rowExtents_.size() > 1) box.rowExtents.assign(rowExtents_.begin(), rowExtents_.end());
    if (origin_->arg) box.map.param = origin_->arg.getArgNumber();
    if (origin_->launch) box.map.param = origin_->launch->param, box.map.made = origin_->launch->made;
    box.map.dtype = *dtype_;
    box.map.rank = static_cast<uint8_t>(rank_);
    box.map.swizzle = static_cast<uint8_t>(tile_.swizzle);
    box.map.written = isStore_;
    // Panels of one row of pixels each follow one another as the copy engine would write them: all at once.
    const bool atOnce = !columnExtents_.empty() && columnExtents_.front() == perRow_ && perCopy_ == tile_.rows &&
                        parts == 1 && llvm::all_of(columnExtents_, [](int64_t extent) { return extent <= kMaxBoxDim; });
    addDims(box, atOnce);
    if (tile_.cols % perRow_ != 0) {
      // Rows of a swizzled copy lie `swizzle` bytes apart however few of them it has.
      box.narrow = box.map;
      box.narrow->box[0] = static_cast<uint16_t>(tile_.cols % perRow_);
    }
    return addCopies(box, atOnce) ? std::optional(box) : std::nullopt;
  }

 private:
  bool refuse(const llvm::Twine& text) const {
    (void)refuse_(text);
    return false;
  }

  /// Whether a tensor map can describe the view.
  bool describes() {
    origin_ = originOf(view_);
    if (!origin_) return refuse("the view is neither an argument of the kernel nor made by it");
    if (isStore_ && !origin_->isOfLaunch())
      return refuse("the view is not an argument of the kernel, nor made of some");
    if (origin_->arg && hasNoBulkCopies(origin_->arg))
      return refuse("no tensor map describes the view: a dim repeats, runs backwards or is too large");
    if (rank_ > 5 || (isStore_ && rank_ < 2))
      return refuse("the view has " + llvm::Twine(rank_) + " dims, not " + (isStore_ ? "2" : "1") + " to 5");
    dtype_ = dtypeOf(type_.getElementType());
    if (!dtype_ || *dtype_ == DType::i1) return refuse("there are no tensor maps of this element type");
    if (unit_ < 0) return refuse("no dim of the view is known to have stride 1");
    if (minor_ < 0) return refuse("dim " + llvm::Twine(unit_) + " of the view has stride 1, but is no dim of the box");
    if (isStore_ && minor_ != 1)
      return refuse("dim " + llvm::Twine(unit_) + " of the view has stride 1; bulk stores write along the last dim");
    if (minor_ != type_.getMinor())
      return refuse("the buffer's contiguous dim is " + llvm::Twine(type_.getMinor()) + ", the view's is " +
                    llvm::Twine(minor_));
    return true;
  }

  /// Whether address, strides and, of what is written, the end of rows are where the copy engine takes them.
  bool isAligned() {
    if (facts_.alignOf(view_) % kAddressBytes != 0)
      return refuse("the view's address is not known to be a multiple of " + llvm::Twine(kAddressBytes) + " bytes");
    for (int d = 0; d < rank_; ++d)
      if (d != unit_ && facts_.strideDivisibility(view_, d) * elementBytes_ % kAddressBytes != 0)
        return refuse("stride " + llvm::Twine(d) + " of the view is not known to be a multiple of " +
                      llvm::Twine(kAddressBytes) + " bytes");
    if (!origin_->arg) {
      auto made = view_.getDefiningOp<MakeViewOp>();
      for (auto [d, stride] : llvm::enumerate(made.getStrides()))
        if (static_cast<int>(d) != unit_ && !isPositive(stride, made, facts_, positive_))
          return refuse("stride " + llvm::Twine(d) +
                        " of the view is not known to be positive (assume(stride > 0) says so)");
    }
    // Bulk stores write whole units of 16 bytes: one that straddles the view's edge would write past it (seen on an
    // H200).
    if (isStore_ && facts_.dimDivisibility(view_, unit_) * elementBytes_ % 16 != 0)
      return refuse("dim " + llvm::Twine(unit_) + " of the view is not known to be a multiple of 16 bytes");
    return true;
  }

  /// Whether rows lie in the buffer as a copy writes, or reads, them.
  bool fitsBuffer() {
    const int64_t rows = tile_.rows, rowBytes = tile_.rowBytes();
    if (rank_ == 1 && rows != 1) return refuse("the view has one dim, the box " + llvm::Twine(rows) + " rows");
    if (rowBytes % 16 != 0)
      return refuse("rows of " + llvm::Twine(rowBytes) + " bytes are not a multiple of 16 bytes");
    if (!tile_.swizzle && (tile_.pitch != rowBytes || type_.slotBytes() % layout::kBulkAlignment != 0))
      return refuse("a box of " + llvm::Twine(rows) + " rows of " + llvm::Twine(rowBytes) +
                    " bytes has gaps in shared memory");
    perRow_ = (tile_.swizzle ? tile_.swizzle : rowBytes) / elementBytes_;
    if (perRow_ > kMaxBoxDim) return refuse("rows of " + llvm::Twine(perRow_) + " elements are longer than a copy");
    if (isStore_ && rows % 8 != 0)
      return refuse(llvm::Twine(rows) + " rows are not a multiple of the 8 rows of a swizzle pattern");
    return true;
  }

  /// Which dims of the box are rows of the buffer, and which are columns beside the contiguous one.
  bool sortExtents(ArrayRef<int64_t> extents) {
    rowExtents_ = {tile_.rows};
    if (extents.empty()) return true;
    if (minor_ != 1) return refuse("the last dim of a box of more than two dims is not the contiguous one");
    const int64_t across = isStore_ ? 1 : type_.columnDims(extents);
    rowExtents_.assign(extents.rbegin() + across, extents.rend());
    if (across > 1) columnExtents_.assign(extents.rbegin(), extents.rbegin() + across);
    if (across > 1 && extents.back() % perRow_ != 0)
      return refuse("copies of " + llvm::Twine(perRow_) + " columns are no parts of the " +
                    llvm::Twine(extents.back()) + " of the box along its last dim");
    int64_t product = 1;
    for (int64_t extent : rowExtents_) product *= extent;
    if (product != tile_.rows || static_cast<int>(extents.size()) > rank_)
      return refuse("a box of " + llvm::Twine(product) + " rows in " + llvm::Twine(extents.size()) +
                    " dims does not fit a buffer of " + llvm::Twine(tile_.rows) + " rows, a view of " +
                    llvm::Twine(rank_) + " dims");
    return true;
  }

  /// How many rows a copy has, and which box they are.
  bool divideRows(int64_t parts) {
    const int64_t rows = tile_.rows;
    if (parts > 1 && tile_.cols % perRow_ != 0) return refuse("copies of the last panel are smaller than the others");
    perCopy_ = isStore_ && rows % kTmaStoreRows == 0 ? kTmaStoreRows : rowsPerCopy(rows);
    if (!isStore_ && partOf(rowExtents_, rows)) perCopy_ = rows;
    if (perCopy_ && tile_.panels() * (rows / perCopy_) % parts != 0) {
      const int64_t ofPanel = parts / std::gcd(parts, tile_.panels());
      perCopy_ = rows % (8 * ofPanel) == 0 ? rowsPerCopy(rows / ofPanel) : 0;
    }
    if (perCopy_ == 0)
      return refuse(llvm::Twine(rows) + " rows do not split into copies of at most " + llvm::Twine(kMaxBoxDim));
    const auto part = partOf(rowExtents_, perCopy_);
    if (!part) return refuse("parts of " + llvm::Twine(perCopy_) + " rows are no boxes of the view");
    part_ = *part;
    if (tile_.panels() > 1 && rows % 8 != 0)
      return refuse(llvm::Twine(rows) + " rows are not a multiple of the 8 rows of a swizzle pattern");
    return true;
  }

  /// The contiguous dim, the box's rows from the last dim, the other dims of its columns, then the rest.
  void addDims(TmaBox& box, bool atOnce) const {
    size_t at = 0;
    auto add = [&](int dim, int64_t extent) {
      box.dims[at] = static_cast<int8_t>(dim);
      box.map.dims[at] = origin_->dims[dim];
      box.map.box[at++] = static_cast<uint16_t>(extent);
    };
    add(unit_, perRow_);
    const int firstRow = rank_ - 1 - std::max(1, static_cast<int>(columnExtents_.size()));
    const int behindRows = firstRow - static_cast<int>(part_.size());
    if (rank_ > 1) add(columnExtents_.empty() ? rank_ - 2 + (1 - minor_) : firstRow, part_.front());
    for (int d = firstRow - 1; d > behindRows; --d) add(d, part_[static_cast<size_t>(firstRow - d)]);
    for (int d = rank_ - 2; d > firstRow; --d) add(d, atOnce ? columnExtents_[static_cast<size_t>(rank_ - 1 - d)] : 1);
    for (int d = behindRows; d >= 0; --d) add(d, 1);
  }

  bool addCopies(TmaBox& box, bool atOnce) const {
    for (int64_t col = 0; col < (atOnce ? perRow_ : tile_.cols); col += perRow_)
      for (int64_t row = 0; row < tile_.rows; row += perCopy_) {
        const int64_t inPanel = row * (tile_.swizzle ? tile_.swizzle : tile_.pitch);
        box.copies.push_back(
            {row, col, col / perRow_ * tile_.rows * tile_.swizzle + inPanel, col + perRow_ > tile_.cols});
        if (box.copies.back().byte % layout::kBulkAlignment != 0)
          return refuse("parts of the box would not start at multiples of " + llvm::Twine(layout::kBulkAlignment) +
                        " bytes in shared memory");
      }
    return true;
  }

  Value view_;
  SmemType type_;
  const Facts& facts_;
  const bool isStore_;
  const Refusal refuse_;
  const int rank_, unit_, minor_;  ///< dims of the view, the one of stride 1, and which of the last two that is
  const int64_t elementBytes_;
  const layout::SharedTile tile_;
  std::optional<Origin> origin_;
  std::optional<DType> dtype_;
  SmallVector<unsigned> positive_;  ///< arguments that the launch has to find above 0
  int64_t perRow_ = 0;              ///< elements that a copy has of a row
  SmallVector<int64_t> rowExtents_, columnExtents_;  ///< from the last dim
  int64_t perCopy_ = 0;                              ///< rows of a copy
  std::vector<int64_t> part_;                        ///< their extents, from the last dim
};

}  // namespace

std::optional<TmaBox> tmaBox(Value view, SmemType type, const Facts& facts, bool isStore, std::string* why,
                             ArrayRef<int64_t> extents, int64_t parts) {
  return BoxFinder(view, type, facts, isStore, why).find(extents, parts);
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

bool isTransposedStore(const layout::Layout& layout, int numWarps) {
  const int groups = numWarps / 4;
  return layout.shape()[1] % (kTmaStoreRows * groups) == 0 &&
         layout == tmaStoreLayout(layout.shape(), numWarps, groups, /*transposed=*/true);
}

std::optional<int> tmaStoreColumnGroups(const layout::Layout& layout, const layout::SharedTile& staging, int numWarps) {
  if (layout == tmaStoreLayout(layout.shape(), numWarps)) return 1;
  const int groups = numWarps / 4;
  if (isTransposedStore(layout, numWarps)) {
    // A warpgroup has the columns that its rows were, 64 in each round of all warpgroups, and so panels of its own.
    if (staging.cols % (kTmaStoreRows * groups) != 0) return std::nullopt;
    const int64_t own = staging.rowBytes() / (staging.cols / kTmaStoreRows);
    const bool apart = staging.cols == kTmaStoreRows || (staging.swizzle && own % staging.swizzle == 0);
    return apart ? std::optional(groups) : std::nullopt;
  }
  for (int across = 2; across <= groups; ++across) {
    if (groups % across != 0 || layout.shape()[1] % staging.cols != 0 || !staging.swizzle) continue;
    if (staging.cols % across != 0 || staging.rowBytes() / across % staging.swizzle != 0) continue;
    if (layout == tmaStoreLayout(layout.shape(), numWarps, across)) return across;
  }
  return std::nullopt;
}

}  // namespace tile::ir
