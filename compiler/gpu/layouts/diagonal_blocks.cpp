// diagonal_blocks.cpp - see diagonal_blocks.h.
// A block of r x c neighbours has r + c - 1 diagonals. The larger the block, the further apart the lanes of a warp
// read, and the more lines they touch: the best of few candidates is looked for, by an estimate of both.
#include "compiler/gpu/layouts/diagonal_blocks.h"

#include <cmath>
#include <set>

#include "compiler/analysis/diagonals.h"
#include "compiler/dialect/tiles.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/SetVector.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

/// The one axis along which the matrix, or what elementwise work makes of it, is reduced; nullopt where anything else
/// is done with it.
std::optional<int> reducedAxis(GatherOp gather) {
  constexpr size_t kMost = 64;
  llvm::SetVector<Value> made;
  made.insert(gather.getResult());
  std::optional<int> axis;
  for (size_t i = 0; i < made.size(); ++i) {
    if (made.size() > kMost) return std::nullopt;
    for (Operation* user : made[i].getUsers()) {
      if (auto reduce = dyn_cast<ReduceOp>(user)) {
        const int own = static_cast<int>(reduce.getAxis());
        if (axis.value_or(own) != own) return std::nullopt;
        axis = own;
      } else if (isElementwise(user)) {
        made.insert(user->result_begin(), user->result_end());
      } else {
        return std::nullopt;
      }
    }
  }
  return axis;
}

int countAlong(const std::vector<layout::Digit>& digits, int dim) {
  int count = 1;
  for (const layout::Digit& digit : digits)
    if (digit.dim == dim) count *= digit.count;
  return count;
}

/// Cycles of a multiprocessor for a warp: reads of the tile, and exchanges of what is reduced.
double costOf(const Layout& layout, Diagonals diagonals, int axis, int bytes) {
  constexpr double kRead = 1.5, kExchange = 0.5, kBarrier = 6;  // instructions around a read; a shuffle and its sum
  constexpr int kLine = 128;
  auto place = [&](const layout::Coord& at) { return at[0] * diagonals[0] + at[1] * diagonals[1]; };
  std::set<int64_t> reads, lines;
  for (int reg = 0; reg < layout.numRegs(); ++reg) reads.insert(place(layout.regCoord(reg)));
  for (int lane = 0; lane < layout.numLanes(); ++lane) {
    const int64_t at = place(layout.threadCoord(lane, 0)) * bytes;
    lines.insert(at >= 0 ? at / kLine : -((-at + kLine - 1) / kLine));
  }
  const double rows = countAlong(layout.regs(), 1 - axis);
  return double(reads.size()) * (kRead + double(lines.size())) +
         rows * std::log2(double(countAlong(layout.lanes(), axis))) * kExchange +
         (countAlong(layout.warps(), axis) > 1 ? kBarrier : 0);
}

}  // namespace

std::optional<Layout> blocksOfDiagonals(GatherOp gather, const Layout& usual, int bytes, int numWarps, int numLanes) {
  constexpr int kFewRegisters = 8, kMostLanesAlong = 8;
  constexpr double kWorthIt = 0.7;
  if (!gather.getOffsets() || usual.rank() != 2 || usual.numRegs() < kFewRegisters) return std::nullopt;
  const auto diagonals = diagonalsOf(gather.getOffsets());
  if (!diagonals || (*diagonals)[0] == 0 || std::abs((*diagonals)[0]) != std::abs((*diagonals)[1])) return std::nullopt;
  const auto axis = reducedAxis(gather);
  if (!axis) return std::nullopt;
  const layout::Shape shape = usual.shape();
  const int other = 1 - *axis;
  double least = kWorthIt * costOf(usual, *diagonals, *axis, bytes);
  std::optional<Layout> best;
  for (int along = 1; along <= kMostLanesAlong; along *= 2) {
    const int across = numLanes / along;
    const int run = static_cast<int>(shape[*axis] / along), rows = static_cast<int>(shape[other] / (across * numWarps));
    if (run * along != shape[*axis] || rows * across * numWarps != shape[other]) continue;
    Layout layout(shape, {{*axis, run, 1}, {other, rows, 1}}, {{other, across, rows}, {*axis, along, run}},
                  {{other, numWarps, rows * across}});
    if (const double cost = costOf(layout, *diagonals, *axis, bytes); cost < least) {
      best = std::move(layout);
      least = cost;
    }
  }
  return best;
}

}  // namespace tile::ir
