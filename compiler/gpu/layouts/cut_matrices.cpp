// cut_matrices.cpp - batches of small matrices that loops carry and cut into rows, columns and entries.
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/layout_links.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/layouts/layout_plan.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

/// Whether the loop takes pieces of every matrix of the batch `tile`: pieces that are no part of its first dim only.
bool isCut(Value tile) {
  return llvm::any_of(tile.getUsers(), [&](Operation* user) {
    auto extract = dyn_cast<ExtractOp>(user);
    return extract && extract.getResult().getType().getDimSize(0) == tileType(tile).getDimSize(0);
  });
}

/// A matrix in every thread, or several. Nullopt: the batch does not divide into threads.
std::optional<Layout> matrixPerThread(const layout::Shape& shape, int numWarps, int numLanes) {
  const int64_t threads = int64_t{numWarps} * numLanes;
  if (shape.size() < 3 || shape[0] % threads != 0) return std::nullopt;
  std::vector<layout::Digit> regs;
  for (int dim = static_cast<int>(shape.size()) - 1; dim > 0; --dim)
    regs.push_back({dim, static_cast<int>(shape[dim]), 1});
  regs.push_back({0, static_cast<int>(shape[0] / threads), static_cast<int>(threads)});
  return Layout(shape, regs, {{0, numLanes, 1}}, {{0, numWarps, numLanes}});
}

}  // namespace

// Batches of matrices that a loop carries, and cuts again and again: rotations of pairs of columns, eliminations. A
// thread that holds a whole matrix has all pieces, and works on no piece that another thread has, too.
void LayoutPlan::placeCutMatrices() {
  constexpr int64_t kMostWords = 112;  // of what a loop carries so; the rest of the registers is for its work
  scope_.walk([&](Operation* op) {
    if (!isa<scf::ForOp, scf::WhileOp>(op)) return;
    SmallVector<std::pair<Value, Layout>> matrices;
    int64_t words = 0;
    bool cuts = false;
    for (BlockArgument carried : cast<LoopLikeOpInterface>(op).getRegionIterArgs()) {
      if (!isTile(carried) || isCheap(carried)) continue;
      const auto whole = matrixPerThread(shapeOf(carried), numWarps(), target_.lanes);
      if (!whole) continue;
      words += whole->numRegs() * std::max(1, elementBytes(carried.getType()) / 4);
      cuts |= isCut(carried);
      matrices.emplace_back(carried, *whole);
    }
    if (!cuts || words > kMostWords) return;
    for (auto& [tile, whole] : matrices) choices_.choose(tile, whole);
    choices_.spread();
  });
}

}  // namespace tile::ir
