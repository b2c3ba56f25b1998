// exchanges.cpp - which takes are steps of a sort, and how its tiles lie best.
#include "compiler/gpu/layouts/exchanges.h"

#include <map>

#include "compiler/analysis/known_values.h"
#include "compiler/dialect/tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

// How far apart partners are where every element takes that of the place that differs in one bit; nothing: it does not.
std::optional<int64_t> distanceOfPartners(TakeOp take) {
  Value indices = take.getIndices();
  while (Operation* from = indices.getDefiningOp()) {
    if (!isa<BroadcastOp, ReshapeOp>(from)) break;
    indices = from->getOperand(0);
  }
  auto turned = indices.getDefiningOp<arith::XOrIOp>();
  APInt far;
  if (!turned || !matchPattern(turned.getRhs(), m_ConstantInt(&far)) || !far.isPowerOf2()) return std::nullopt;
  const auto places = knownValues(turned.getLhs());
  const bool areTheirOwn = places && llvm::all_of(llvm::enumerate(*places), [](const auto& place) {
    return place.value() == static_cast<int64_t>(place.index());
  });
  return areTheirOwn ? std::optional<int64_t>(far.getSExtValue()) : std::nullopt;
}

}  // namespace

// How many elements of the axis a thread holds: all of a short one, so that no step leaves it, where it would have as
// many elements anyway; else runs, as what is sorted is mostly read from memory first.
static int64_t runOf(int64_t axis, int64_t perThread) {
  constexpr int64_t kShort = 64, kMostRun = 16;
  int64_t run = axis <= std::min(kShort, perThread) ? axis : std::min(kMostRun, perThread);
  while (run > 1 && axis % run != 0) run /= 2;
  return run;
}

std::vector<Exchanges> exchangesInRuns(ArrayRef<TakeOp> takes, int numWarps, int numLanes) {
  constexpr size_t kFewSteps = 4;
  struct Steps {
    SmallVector<TakeOp> takes;
    SmallVector<int64_t> distances;
  };
  std::map<std::pair<layout::Shape, int>, Steps> sorts;  // by shape and axis
  for (TakeOp take : takes) {
    const layout::Shape shape = shapeOf(take.getResult());
    if (shapeOf(take.getSource()) != shape) continue;
    const auto far = distanceOfPartners(take);
    if (!far) continue;
    Steps& steps = sorts[{shape, static_cast<int>(take.getAxis())}];
    steps.takes.push_back(take);
    steps.distances.push_back(*far);
  }
  std::vector<Exchanges> all;
  for (auto& [sorted, steps] : sorts) {
    const auto& [shape, axis] = sorted;
    int64_t elements = 1;
    for (int64_t size : shape) elements *= size;
    const int64_t run = runOf(shape[axis], elements / (int64_t{numWarps} * numLanes));
    const auto near = llvm::count_if(steps.distances, [run](int64_t far) { return far < run; });
    if (run <= 1 || static_cast<size_t>(near) <= kFewSteps) continue;
    std::vector<int> order{axis};  // dims from fastest to slowest
    for (int dim = static_cast<int>(shape.size()) - 1; dim >= 0; --dim)
      if (dim != axis) order.push_back(dim);
    const layout::Layout layout = layout::blocked(shape, static_cast<int>(run), order, numWarps, numLanes);
    if (!layout.isPadded()) all.push_back({std::move(steps.takes), layout});
  }
  return all;
}

}  // namespace tile::ir
