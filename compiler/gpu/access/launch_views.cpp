// launch_views.cpp - see launch_views.h.
#include "compiler/gpu/access/launch_views.h"

#include "compiler/analysis/definitions.h"
#include "compiler/analysis/sum_of_products.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Maps of one kernel that made views may take: one view may need several, for boxes of different sizes.
constexpr size_t kMostViews = 8;

/// Of slots.
using Sum = SumOfProducts;

bool isSmall(const Sum& sum) { return tile::ir::isSmall(sum, kMaxSumTerms, kMaxTermSlots); }

/// The first slot of an argument (abi.h).
uint32_t slotOf(BlockArgument arg) {
  uint32_t slot = 0;
  for (BlockArgument before : arg.getOwner()->getArguments().take_front(arg.getArgNumber())) {
    auto view = dyn_cast<ViewType>(before.getType());
    slot += view ? 1 + 2 * static_cast<uint32_t>(view.getRank()) : 1;
  }
  return slot;
}

std::optional<Sum> slot(Value argument, int64_t behind) {
  BlockArgument arg = argumentOfKernel(argument);
  if (!arg) return std::nullopt;
  return Sum{{{slotOf(arg) + static_cast<uint32_t>(behind)}, 1}};
}

std::optional<Sum> scalarSum(Value v, int depth = 0) {
  if (depth > 16) return std::nullopt;
  if (auto c = getConstantIntValue(v)) return *c ? Sum{{{}, *c}} : Sum{};
  if (argumentOfKernel(v)) return v.getType().isInteger(32) || v.getType().isInteger(64) ? slot(v, 0) : std::nullopt;
  Operation* op = v.getDefiningOp();
  if (!op) return std::nullopt;
  auto operand = [&](unsigned i) { return scalarSum(op->getOperand(i), depth + 1); };
  if (auto dim = dyn_cast<ViewDimOp>(op)) return slot(dim.getView(), 1 + dim.getDim());
  if (auto stride = dyn_cast<ViewStrideOp>(op)) {
    const BlockArgument view = argumentOfKernel(stride.getView());
    return view ? slot(view, 1 + cast<ViewType>(view.getType()).getRank() + stride.getDim()) : std::nullopt;
  }
  // Sizes of views that a kernel asks for in 32 bits fit them: launches look.
  if (auto narrow = dyn_cast<arith::TruncIOp>(op))
    return narrow.getType().isInteger(32) && narrow.getIn().getDefiningOp<ViewDimOp>() ? operand(0) : std::nullopt;
  if (isa<arith::ExtSIOp, AssumeOp>(op)) return operand(0);
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) return std::nullopt;
  const auto left = operand(0), right = left ? operand(1) : std::nullopt;
  if (!right) return std::nullopt;
  Sum sum = isa<arith::MulIOp>(op) ? times(*left, *right) : plus(*left, *right, isa<arith::SubIOp>(op) ? -1 : 1);
  return isSmall(sum) ? std::optional(std::move(sum)) : std::nullopt;
}

/// In bytes; `root`: the argument in which it begins.
std::optional<Sum> addressSum(Value pointer, BlockArgument& root) {
  Sum sum;
  const Sum element{{{}, cast<PtrType>(pointer.getType()).getElementType().getIntOrFloatBitWidth() / 8}};
  while (auto add = pointer.getDefiningOp<PtrAddOp>()) {
    const auto offset = scalarSum(add.getOffset());
    if (!offset) return std::nullopt;
    sum = plus(std::move(sum), times(*offset, element));
    pointer = add.getPtr();
  }
  auto start = pointer.getDefiningOp<ViewPtrOp>();
  root = argumentOfKernel(start ? start.getView() : pointer);
  if (!root) return std::nullopt;
  sum = plus(std::move(sum), *slot(root, 0));
  return isSmall(sum) ? std::optional(std::move(sum)) : std::nullopt;
}

SlotSum slotSum(const Sum& sum) {
  SlotSum result;
  for (const auto& [slots, factor] : sum)
    if (slots.empty())
      result.constant = factor;
    else
      result.terms.push_back({factor, slots});
  return result;
}

}  // namespace

bool isOfLaunch(Value scalar) { return scalarSum(scalar).has_value(); }

std::optional<LaunchView> launchView(MakeViewOp view) {
  const int64_t rank = view.getType().getRank();
  if (rank > 5) return std::nullopt;  // of tensor maps
  BlockArgument root;
  const auto address = addressSum(view.getPtr(), root);
  if (!address) return std::nullopt;
  LaunchView found{root.getArgNumber(), {slotSum(*address)}};
  for (ValueRange numbers : {ValueRange(view.getDims()), ValueRange(view.getStrides())})
    for (Value number : numbers) {
      int64_t most = INT64_MAX;  // of `min(dim, 40)`
      if (auto least = number.getDefiningOp<arith::MinSIOp>())
        if (const auto bound = getConstantIntValue(least.getRhs())) number = least.getLhs(), most = *bound;
      const auto sum = scalarSum(number);
      if (!sum) return std::nullopt;
      found.made.push_back(slotSum(*sum));
      found.made.back().most = most;
    }
  return found;
}

void markLaunchViews(func::FuncOp kernel) {
  size_t views = llvm::count_if(kernel.getArgumentTypes(), [](Type type) { return isa<ViewType>(type); });
  kernel.walk([&](MakeViewOp view) {
    if (views >= kMostViews || view->use_empty() || !launchView(view)) return;
    view->setAttr(kOfLaunchAttr, UnitAttr::get(view.getContext()));
    ++views;
  });
}

}  // namespace tile::ir
