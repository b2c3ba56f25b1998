// relations.cpp - which elements two layouts keep where, by comparing coordinates.
#include "compiler/layout/relations.h"

#include <algorithm>
#include <map>
#include <set>

namespace tile::layout {

// Lanes and warps act on coordinates independently, so comparing them one list at a time compares all threads.
bool sameThreads(const Layout& a, const Layout& b) {
  if (a.rank() != b.rank() || a.numLanes() != b.numLanes() || a.numWarps() != b.numWarps()) return false;
  for (int lane = 0; lane < a.numLanes(); ++lane)
    if (a.threadCoord(lane, 0) != b.threadCoord(lane, 0)) return false;
  for (int warp = 0; warp < a.numWarps(); ++warp)
    if (a.threadCoord(0, warp) != b.threadCoord(0, warp)) return false;
  return true;
}

std::optional<std::vector<int>> shiftedRegisterMap(const Layout& from, const Layout& to, const Coord& offset) {
  if (!sameThreads(from, to)) return std::nullopt;
  std::map<Coord, int> held;
  for (int reg = 0; reg < from.numRegs(); ++reg) held.emplace(from.regCoord(reg), reg);
  std::vector<int> map(to.numRegs(), -1);
  for (int reg = 0; reg < to.numRegs(); ++reg) {
    Coord coord = to.regCoord(reg);
    if (!to.inTile(coord)) continue;
    for (size_t d = 0; d < coord.size(); ++d) coord[d] += offset[d];
    auto it = held.find(coord);
    if (it == held.end()) return std::nullopt;
    map[reg] = it->second;
  }
  return map;
}

std::optional<Layout> boxLayout(const Layout& source, const Coord& offset, const Shape& shape) {
  std::vector<Digit> regs = source.regs();
  for (int dim = 0; dim < source.rank(); ++dim) {
    if (shape[dim] == source.shape()[dim]) continue;
    if (source.isPadded(dim)) return std::nullopt;
    int64_t cover = source.cover(dim);
    while (cover > shape[dim]) {
      // Only register digits may shrink, outermost first.
      auto outer = std::find_if(regs.begin(), regs.end(), [&](const Digit& digit) {
        return digit.dim == dim && digit.count > 1 && int64_t{digit.stride} * digit.count == cover;
      });
      if (outer == regs.end()) return std::nullopt;
      if (offset[dim] % outer->stride) return std::nullopt;
      if (shape[dim] >= outer->stride) {
        if (shape[dim] % outer->stride) return std::nullopt;
        outer->count = static_cast<int>(shape[dim] / outer->stride);
        cover = shape[dim];
      } else {
        cover = outer->stride;
        outer->count = 1;
      }
    }
  }
  Layout box(shape, regs, source.lanes(), source.warps());
  if (!box.check().empty() || !shiftedRegisterMap(source, box, offset)) return std::nullopt;
  return box;
}

std::optional<Layout> repeatedLayout(const Layout& part, int dim, int count) {
  if (part.isPadded(dim)) return std::nullopt;
  std::vector<Digit> regs = part.regs();
  regs.push_back({dim, count, static_cast<int>(part.shape()[dim])});
  Shape shape = part.shape();
  shape[dim] *= count;
  return Layout(shape, regs, part.lanes(), part.warps());
}

namespace {

/// Count of each stride along the dim.
std::map<int, int> stepsAlong(const std::vector<Digit>& digits, int dim) {
  std::map<int, int> steps;
  for (const Digit& digit : digits)
    if (digit.dim == dim) steps[digit.stride] = digit.count;
  return steps;
}

std::map<int, int> threadStepsAlong(const Layout& layout, int dim) {
  std::map<int, int> steps = stepsAlong(layout.lanes(), dim);
  steps.merge(stepsAlong(layout.warps(), dim));
  return steps;
}

/// Cuts the steps of registers where they make `length` elements: those of a run, and the rest.
std::optional<std::pair<std::map<int, int>, std::map<int, int>>> cutAt(const std::map<int, int>& steps, int length) {
  std::map<int, int> run, rest;
  for (auto [stride, count] : steps) {
    const int here = std::min(count, length);
    if (count % here || length % here) return std::nullopt;
    if (here > 1) run[stride] = here;
    if (here < count) rest[stride * here] = count / here;
    length /= here;
  }
  return std::pair(run, rest);
}

Layout renumbered(const Layout& layout, int dim, const std::map<int, Digit>& pieces) {
  auto changed = [&](const std::vector<Digit>& digits) {
    std::vector<Digit> result;
    for (const Digit& digit : digits) {
      if (digit.dim != dim || digit.count == 1) {
        result.push_back(digit);
        continue;
      }
      for (int done = 1; done < digit.count; done *= result.back().count)
        result.push_back(pieces.at(digit.stride * done));
    }
    return result;
  };
  return Layout(layout.shape(), changed(layout.regs()), changed(layout.lanes()), changed(layout.warps()));
}

}  // namespace

std::optional<std::pair<Layout, Layout>> withRunsAlong(const Layout& tile, const Layout& box, int dim, int length) {
  if (tile.isPadded(dim) || box.isPadded(dim) || tile.shape()[dim] != box.shape()[dim]) return std::nullopt;
  const auto ofRegs = stepsAlong(tile.regs(), dim), ofThreads = threadStepsAlong(tile, dim);
  if (ofRegs != stepsAlong(box.regs(), dim) || ofThreads != threadStepsAlong(box, dim)) return std::nullopt;
  const auto cut = cutAt(ofRegs, length);
  if (!cut) return std::nullopt;
  std::map<int, Digit> pieces;
  int next = 1;
  bool changes = false;
  for (const auto& steps : {cut->first, ofThreads, cut->second})
    for (auto [stride, count] : steps) {
      changes |= stride != next;
      pieces[stride] = {dim, count, next};
      next *= count;
    }
  if (!changes) return std::nullopt;
  return std::pair(renumbered(tile, dim, pieces), renumbered(box, dim, pieces));
}

int minorDim(const Shape& shape) {
  int dim = std::max(0, static_cast<int>(shape.size()) - 1);
  while (dim > 0 && shape[dim] == 1) --dim;
  return dim;
}

namespace {

// Source register per destination register, or nullopt when some element comes from another thread.
std::optional<std::vector<int>> matchRegisters(const Layout& from, const Layout& to) {
  if (from.shape() != to.shape()) return std::nullopt;
  return shiftedRegisterMap(from, to, Coord(from.shape().size(), 0));
}

}  // namespace

Conversion conversion(const Layout& from, const Layout& to) {
  if (from == to) return Conversion::identity;
  auto map = matchRegisters(from, to);
  if (!map) return Conversion::shared;
  for (size_t i = 0; i < map->size(); ++i)
    if ((*map)[i] != static_cast<int>(i)) return Conversion::registers;
  return from.numRegs() == to.numRegs() ? Conversion::identity : Conversion::registers;
}

std::vector<int> registerMap(const Layout& from, const Layout& to) {
  auto map = matchRegisters(from, to);
  return map ? *map : std::vector<int>();
}

bool isWarpLocal(const Layout& from, const Layout& to) {
  if (from.shape() != to.shape() || from.numWarps() != to.numWarps()) return false;
  for (int warp = 0; warp < from.numWarps(); ++warp)
    if (from.threadCoord(0, warp) != to.threadCoord(0, warp)) return false;
  std::set<Coord> held;
  for (int reg = 0; reg < from.numRegs(); ++reg)
    for (int lane = 0; lane < from.numLanes(); ++lane) held.insert(from.coordOf(reg, lane, 0));
  for (int reg = 0; reg < to.numRegs(); ++reg) {
    for (int lane = 0; lane < to.numLanes(); ++lane) {
      Coord coord = to.coordOf(reg, lane, 0);
      if (to.inTile(coord) && !held.count(coord)) return false;
    }
  }
  return true;
}

namespace {

/// The digits of registers and lanes without what warps add; false where steps do not divide.
bool takeOutWarps(const Layout& layout, std::vector<Digit>& regs, std::vector<Digit>& lanes) {
  regs = layout.regs(), lanes = layout.lanes();
  // Largest steps first: taking one out moves those above it together.
  std::vector<Digit> warps = layout.warps();
  std::sort(warps.begin(), warps.end(), [](const Digit& a, const Digit& b) { return a.stride > b.stride; });
  for (const Digit& warp : warps) {
    if (warp.dim == kReplicated) continue;
    for (auto* digits : {&regs, &lanes})
      for (Digit& digit : *digits) {
        if (digit.dim != warp.dim || digit.stride <= warp.stride) continue;
        if (digit.stride % (warp.stride * warp.count)) return false;
        digit.stride /= warp.count;
      }
  }
  return true;
}

int64_t coverOf(const std::vector<Digit>& regs, const std::vector<Digit>& lanes, int dim) {
  int64_t last = 0;
  for (const auto* digits : {&regs, &lanes})
    for (const Digit& digit : *digits)
      if (digit.dim == dim) last += (digit.count - 1) * int64_t{digit.stride};
  return last + 1;
}

}  // namespace

std::optional<std::pair<Layout, Layout>> withinWarps(const Layout& from, const Layout& to) {
  if (from.warps() != to.warps() || !isWarpLocal(from, to)) return std::nullopt;
  std::vector<Digit> fromRegs, fromLanes, toRegs, toLanes;
  if (!takeOutWarps(from, fromRegs, fromLanes) || !takeOutWarps(to, toRegs, toLanes)) return std::nullopt;
  Shape shape = from.shape();
  for (int dim = 0; dim < from.rank(); ++dim)
    shape[dim] = std::min({shape[dim], coverOf(fromRegs, fromLanes, dim), coverOf(toRegs, toLanes, dim)});
  const std::vector<Digit> all{{kReplicated, from.numWarps(), 0}};
  return std::pair(Layout(shape, fromRegs, fromLanes, all), Layout(shape, toRegs, toLanes, all));
}

}  // namespace tile::layout
