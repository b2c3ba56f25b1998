// specialize_padded.cpp - tiles that products read with padding (heads of 72 elements as 80) come by bulk copies, too:
// as larger boxes of views that end where the tile does, since what is copied from behind a view's end is zeros.
// Before: %t = load_shared %v[.., %i, 0] box [64, 72] -> smem<64x80>
// After:  %w = make_view (%v with at most 72 columns); %t = load_shared %w[.., %i, 0] box [64, 80] -> smem<64x80>
#include <map>

#include "compiler/gpu/access/launch_views.h"
#include "compiler/gpu/roles/specialize.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Where the tile ends along each dim of the view; kAnywhere: the box need not be larger there.
constexpr int64_t kAnywhere = -1;
using Ends = SmallVector<int64_t, 5>;

/// Empty: the tile has no padding, or does not end at the same place in every program.
Ends endsOf(LoadSharedOp load) {
  const ArrayRef<int64_t> box = load.getBox(), shape = load.getResult().getType().getShape();
  const int64_t rank = load.getView().getType().getRank();
  if (box.size() != 2 || rank < 2 || box == shape) return {};
  Ends ends(static_cast<size_t>(rank), kAnywhere);
  for (size_t d : {0, 1}) {
    const size_t dim = static_cast<size_t>(rank) - 2 + d;
    if (box[d] == shape[d]) continue;
    const auto begin = getConstantIntValue(load.getIndices()[dim]);
    if (!begin || *begin < 0) return {};
    ends[dim] = *begin + box[d];
  }
  return ends;
}

/// The same view, with at most so many elements along its dims. Null: the launch cannot describe it.
MakeViewOp narrowed(Value view, const Ends& ends, const Facts& facts) {
  OpBuilder b(view.getContext());
  b.setInsertionPointAfterValue(view);
  const Location loc = view.getLoc();
  const Type number = b.getI64Type();
  auto constant = [&](int64_t n) -> Value { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(n)); };
  auto type = cast<ViewType>(view.getType());
  const int unit = facts.unitStrideDim(view);
  SmallVector<Value, 5> dims, strides;
  for (auto [d, end] : llvm::enumerate(ends)) {
    const auto at = static_cast<uint32_t>(d);
    dims.push_back(b.createOrFold<ViewDimOp>(loc, number, view, at));
    strides.push_back(static_cast<int>(d) == unit ? constant(1)
                                                  : b.createOrFold<ViewStrideOp>(loc, number, view, at));
    if (end != kAnywhere) dims.back() = arith::MinSIOp::create(b, loc, dims.back(), constant(end));
  }
  const Type pointer = PtrType::get(view.getContext(), type.getElementType());
  auto made = MakeViewOp::create(b, loc, type, b.createOrFold<ViewPtrOp>(loc, pointer, view), dims, strides);
  if (launchView(made)) {
    made->setAttr(kOfLaunchAttr, b.getUnitAttr());
  } else if (!view.getDefiningOp()) {
    made->erase();
    return {};
  }
  return made;
}

/// Whether a loop copies rows in three panels of 32 bytes or more, each a request of its own: threads copy them faster
/// (H200: a decode step over keys and values of 96 bytes takes 1.3 times as long by bulk copies).
bool copiesNarrowPanels(func::FuncOp func) {
  constexpr int64_t kNarrow = 32, kMost = 2;
  auto isNarrow = [](LoadSharedOp load) {
    const SmemType type = load.getResult().getType();
    const int64_t bytes = type.getShape()[static_cast<size_t>(type.getMinor())] * type.elementBytes();
    return load->getParentOfType<LoopLikeOpInterface>() && type.slot().swizzle == kNarrow && bytes > kMost * kNarrow;
  };
  return func
      .walk([&](LoadSharedOp load) { return isNarrow(load) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

}  // namespace

PaddedBoxes::PaddedBoxes(func::FuncOp func, const Facts& facts, const llvm::DenseSet<Operation*>& turned) {
  if (copiesNarrowPanels(func)) return;
  std::map<std::pair<void*, Ends>, MakeViewOp> views;  // one tensor map for all boxes of a view
  SmallVector<LoadSharedOp> loads;
  func.walk([&](LoadSharedOp load) {
    if (!turned.contains(load)) loads.push_back(load);
  });
  for (LoadSharedOp load : loads) {
    const Ends ends = endsOf(load);
    if (ends.empty()) continue;
    auto [it, isNew] = views.try_emplace({load.getView().getAsOpaquePointer(), ends});
    MakeViewOp& view = it->second;
    if (isNew) view = narrowed(load.getView(), ends, facts);
    if (!view) continue;
    before_.push_back({load, load.getView(), SmallVector<int64_t, 2>(load.getBox())});
    load.getViewMutable().assign(view);
    load.setBox(load.getResult().getType().getShape());
  }
}

PaddedBoxes::~PaddedBoxes() {
  for (auto& [load, view, box] : before_) {
    load.getViewMutable().assign(view);
    load.setBox(box);
  }
}

}  // namespace tile::ir
