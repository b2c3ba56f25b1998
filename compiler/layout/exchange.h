// exchange.h - how a tile passes through shared memory when its elements move between threads: where each element sits,
// how wide each thread writes and reads. Pure C++, decided at compile time by counting bank conflicts.
#pragma once
#include "compiler/layout/layout.h"

namespace tile::layout {

/// Threads that turn a tile write columns whose rows lie 8 apart: no pitch that keeps rows aligned spreads them over
/// banks.
inline constexpr int64_t kSkewRows = 8;

struct Exchange {
  int minor = 0;                     ///< dim whose elements are neighbours
  std::vector<int64_t> byteStride;   ///< per dim; byteStride[minor] is the element's size
  int major = -1;                    ///< dim with `skew` bytes more after every kSkewRows elements; -1: none
  int64_t skew = 0;
  int64_t bytes = 0;                 ///< room for both layouts' padding too
  int storeVector = 1, loadVector = 1;  ///< elements per access (at most 16 bytes)
  int storePasses = 1, loadPasses = 1;  ///< bank passes of a typical access, for tests and reports

  int64_t address(const Coord& coord) const {
    int64_t byte = 0;
    for (size_t d = 0; d < coord.size(); ++d) byte += coord[d] * byteStride[d];
    return major < 0 ? byte : byte + coord[static_cast<size_t>(major)] / kSkewRows * skew;
  }
};

/// The address is linear in the digits of both layouts, so a register's share is a constant and folds into the
/// instruction.
Exchange planExchange(const Layout& from, const Layout& to, int elementBytes);

/// The box that a tile may pass in, one after another through the same bytes: halves of the tile, and halves of these,
/// until one needs no more than `mostBytes` or threads' shares would be cut.
Shape exchangeBox(const Layout& from, const Layout& to, int elementBytes, int64_t mostBytes);

}  // namespace tile::layout
