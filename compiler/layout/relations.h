// relations.h - how layouts of a tile, or of a tile and its pieces, relate: which elements stay in their thread or
// warp.
#pragma once
#include "compiler/layout/layout.h"

namespace tile::layout {

/// How two layouts of one tile relate; decides how a conversion is lowered.
enum class Conversion : uint8_t {
  identity,   ///< same element in the same register of the same thread
  registers,  ///< same thread, other register: a renaming
  shared,     ///< elements move between threads
};
Conversion conversion(const Layout& from, const Layout& to);
/// For Conversion::identity and ::registers: source register of each destination register; -1 where the destination
/// register is padding in every thread.
std::vector<int> registerMap(const Layout& from, const Layout& to);
/// Lanes and warps add the same coordinates under both, whatever the registers and shapes.
bool sameThreads(const Layout& a, const Layout& b);
/// Source register of each register of `to`, whose element x is the source's element x + offset; -1 for padding.
/// Nullopt when some element is in another thread.
std::optional<std::vector<int>> shiftedRegisterMap(const Layout& from, const Layout& to, const Coord& offset);
/// Every element a warp needs under `to` is held by the same warp under `from`: lanes exchange, warps need not meet.
bool isWarpLocal(const Layout& from, const Layout& to);
/// Where lanes exchange (isWarpLocal): both layouts of what one warp has, as a tile of its own that all warps hold.
/// Nullopt: warps need to meet, or their shares are no boxes.
std::optional<std::pair<Layout, Layout>> withinWarps(const Layout& from, const Layout& to);
/// Layout of a box at `offset` of a tile whose elements stay where they are; nullopt when threads' shares are cut.
std::optional<Layout> boxLayout(const Layout& source, const Coord& offset, const Shape& shape);
/// A tile and a box that is whole along `dim`, with the elements along it numbered anew, alike in both: what a thread
/// holds along it becomes runs of `length`. Nullopt: it lies so already, or the two hand out the dim differently.
std::optional<std::pair<Layout, Layout>> withRunsAlong(const Layout& tile, const Layout& box, int dim, int length);
/// Along which neighbours lie side by side in a row-major buffer: the last dim that has several elements.
int minorDim(const Shape& shape);
/// Layout of `count` tiles of one layout put one after another along `dim`; nullopt when the layout is padded there.
std::optional<Layout> repeatedLayout(const Layout& part, int dim, int count);

}  // namespace tile::layout
