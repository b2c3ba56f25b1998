// common_views.cpp - see common_views.h. A pointer is its root and a sum of scalars: what the launch knows of it moves
// the root, and each other term is a count times what the launch knows, a dim of its own (outer_dims.h).
#include "compiler/gpu/products/common_views.h"

#include "compiler/gpu/access/launch_views.h"
#include "compiler/gpu/products/outer_dims.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr size_t kMostDims = 5;  ///< of tensor maps

struct Start {
  Value root;           ///< an argument of the kernel
  LinearForm ofLaunch;  ///< elements behind it
  SmallVector<OuterDim, 3> outer;
};

std::optional<Start> startOf(Value pointer, size_t mostOuter, NotNegative& notNegative) {
  Start start;
  LinearForm all;
  for (auto add = pointer.getDefiningOp<PtrAddOp>(); add; add = pointer.getDefiningOp<PtrAddOp>()) {
    addSum(all, add.getOffset(), 1);
    pointer = add.getPtr();
  }
  start.root = pointer;
  auto ofView = pointer.getDefiningOp<ViewPtrOp>();
  auto arg = dyn_cast<BlockArgument>(ofView ? ofView.getView() : pointer);
  if (!arg || !isa<func::FuncOp>(arg.getOwner()->getParentOp())) return std::nullopt;
  start.ofLaunch.constant = all.constant;
  for (auto [symbol, factor] : all.symbols) {
    if (isOfLaunch(symbol)) {
      start.ofLaunch.add(symbol, factor);
      continue;
    }
    const auto dim = outerDim(symbol, factor, /*countsRows=*/false, notNegative);
    if (!dim || !addOuterDim(start.outer, *dim, mostOuter)) return std::nullopt;
  }
  return start;
}

}  // namespace

std::optional<CommonView> makeCommonView(MakeViewOp view, const Facts& facts) {
  const auto rank = static_cast<size_t>(view.getType().getRank());
  auto areOfLaunch = [](ValueRange numbers) { return llvm::all_of(numbers, isOfLaunch); };
  if (rank >= kMostDims || !areOfLaunch(view.getDims()) || !areOfLaunch(view.getStrides())) return std::nullopt;
  NotNegative notNegative(facts);
  notNegative.rely(true);
  const auto start = startOf(view.getPtr(), kMostDims - rank, notNegative);
  if (!start || start->outer.empty()) return std::nullopt;

  OpBuilder b(view);
  const Location loc = view.getLoc();
  Value pointer = start->root;
  if (!start->ofLaunch.isConstant() || start->ofLaunch.constant)
    pointer = PtrAddOp::create(b, loc, pointer, emitSum(b, loc, start->ofLaunch, /*narrow=*/false));
  CommonView common;
  SmallVector<Value> dims, strides;
  for (const OuterDim& outer : start->outer) {
    dims.push_back(arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(kAnySize)));
    strides.push_back(outerStride(b, loc, outer));
    common.places.push_back(outerPlace(b, loc, outer));
  }
  dims.append(view.getDims().begin(), view.getDims().end());
  strides.append(view.getStrides().begin(), view.getStrides().end());
  auto type = ViewType::get(static_cast<int64_t>(dims.size()), view.getType().getElementType());
  auto made = MakeViewOp::create(b, loc, type, pointer, dims, strides);
  if (!launchView(made)) {
    made->erase();
    return std::nullopt;
  }
  if (ArrayRef<int32_t> relied = notNegative.relied(); !relied.empty())
    made->setAttr(kPositiveArgumentsAttr, b.getDenseI32ArrayAttr(relied));
  common.view = made;
  return common;
}

}  // namespace tile::ir
