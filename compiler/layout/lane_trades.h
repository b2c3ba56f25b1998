// lane_trades.h - layouts that are reached when lanes of a warp trade registers, and how they do.
#pragma once
#include <utility>

#include "compiler/layout/layout.h"

namespace tile::layout {

/// Lanes whose numbers differ in `laneBit` (a power of two) swap registers: of each pair the lower lane's second and
/// the upper lane's first.
struct LaneSwap {
  int laneBit;
  std::vector<std::pair<int, int>> pairs;
};
struct LaneSwaps {
  std::vector<LaneSwap> swaps;
  std::vector<int> map;  ///< behind them: source register of each destination register
};
/// How lanes of the same warp trade elements so that `from` becomes `to`; nullopt where that is not enough: some lane
/// bit stays one under both layouts but is another one, elements move between warps, are replicated or padding, or
/// radices are no powers of two.
std::optional<LaneSwaps> laneSwaps(const Layout& from, const Layout& to);

/// `source` with lanes' bits along the dims that a box of `shape` cuts traded for registers' bits along other dims, so
/// that every thread's elements fall into boxes whole; at most `most` of them. Nullopt where it cannot be, or `source`
/// is that already.
std::optional<Layout> cuttableLayout(const Layout& source, const Shape& shape, int most);
/// `source` with the elements of every warp dealt out anew among its lanes, so that lanes next to each other hold
/// pieces of `vector` elements next to each other along `dim`, and a whole run of `run` of them; both powers of two.
/// Nullopt where a warp does not hold such runs, elements are held twice or are padding, or radices are no powers of
/// two.
std::optional<Layout> runsOfWarps(const Layout& source, int dim, int vector, int run);

}  // namespace tile::layout
