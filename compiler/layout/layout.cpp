// layout.cpp - digit arithmetic of tile layouts: coordinates, slices, transposes, reshapes, conversions.
#include "compiler/layout/layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace tile::layout {
namespace {

// Drops digits of one value and joins neighbours that together act as one digit.
std::vector<Digit> normalised(const std::vector<Digit>& digits) {
  std::vector<Digit> out;
  for (Digit digit : digits) {
    if (digit.count == 1) continue;
    if (digit.dim == kReplicated) digit.stride = 0;
    if (!out.empty() && out.back().dim == digit.dim && int64_t{out.back().stride} * out.back().count == digit.stride) {
      out.back().count *= digit.count;
    } else {
      out.push_back(digit);
    }
  }
  return out;
}

int product(const std::vector<Digit>& digits) {
  int n = 1;
  for (const Digit& digit : digits) n *= digit.count;
  return n;
}

int replicas(const std::vector<Digit>& digits) {
  int n = 1;
  for (const Digit& digit : digits) n *= digit.dim == kReplicated ? digit.count : 1;
  return n;
}

void addCoord(const std::vector<Digit>& digits, int index, Coord& coord) {
  for (const Digit& digit : digits) {
    if (digit.dim != kReplicated) coord[digit.dim] += int64_t{index % digit.count} * digit.stride;
    index /= digit.count;
  }
}

template <class F>
std::vector<Digit> mapped(const std::vector<Digit>& digits, F&& f) {
  std::vector<Digit> out;
  for (const Digit& digit : digits) f(digit, out);
  return out;
}

std::string digitsText(const std::vector<Digit>& digits) {
  std::string text = "[";
  for (const Digit& digit : digits) {
    if (text.size() > 1) text += ", ";
    if (digit.dim == kReplicated) {
      text += "rep:" + std::to_string(digit.count);
    } else {
      text += std::to_string(digit.dim) + ":" + std::to_string(digit.count) + "*" + std::to_string(digit.stride);
    }
  }
  return text + "]";
}

}  // namespace

Layout::Layout(Shape shape, std::vector<Digit> regs, std::vector<Digit> lanes, std::vector<Digit> warps)
    : shape_(std::move(shape)), regs_(normalised(regs)), lanes_(normalised(lanes)), warps_(normalised(warps)) {}

int Layout::numRegs() const { return product(regs_); }
int Layout::numLanes() const { return product(lanes_); }
int Layout::numWarps() const { return product(warps_); }
int Layout::regReplicas() const { return replicas(regs_); }
int Layout::laneReplicas() const { return replicas(lanes_); }
int Layout::warpReplicas() const { return replicas(warps_); }

int64_t Layout::cover(int dim) const {
  int64_t extent = 1;
  for (const auto* list : {&regs_, &lanes_, &warps_})
    for (const Digit& digit : *list)
      if (digit.dim == dim) extent *= digit.count;
  return extent;
}

bool Layout::isPadded() const {
  for (int d = 0; d < rank(); ++d)
    if (isPadded(d)) return true;
  return false;
}

bool Layout::inTile(const Coord& coord) const {
  for (int d = 0; d < rank(); ++d)
    if (coord[d] >= shape_[d]) return false;
  return true;
}

bool Layout::isRegPadding(int reg) const { return !inTile(regCoord(reg)); }

Coord Layout::coordOf(int reg, int lane, int warp) const {
  Coord coord(shape_.size(), 0);
  addCoord(regs_, reg, coord);
  addCoord(lanes_, lane, coord);
  addCoord(warps_, warp, coord);
  return coord;
}

Coord Layout::regCoord(int reg) const { return coordOf(reg, 0, 0); }
Coord Layout::threadCoord(int lane, int warp) const { return coordOf(0, lane, warp); }

int Layout::contiguousRegs(int dim) const {
  if (regs_.empty() || regs_[0].dim != dim || regs_[0].stride != 1) return 1;
  return regs_[0].count;
}

int Layout::runLength(int dim) const {
  int length = 1;
  for (bool grown = true; grown;) {
    grown = false;
    for (const Digit& digit : regs_) {
      if (digit.dim == dim && digit.stride == length) {
        length *= digit.count;
        grown = true;
      }
    }
  }
  return length;
}

std::vector<std::vector<int>> Layout::runs(int dim, int length) const {
  if (rank() == 0) return {{0}};
  std::map<std::pair<Coord, int>, std::vector<int>> found;  // start and number of the replica -> registers
  std::map<Coord, int> seen;
  std::vector<std::pair<Coord, int>> order;
  for (int reg = 0; reg < numRegs(); ++reg) {
    Coord coord = regCoord(reg);
    int replica = seen[coord]++;
    int64_t inside = coord[dim] % length;
    coord[dim] -= inside;
    auto [it, added] = found.try_emplace({coord, replica}, length, -1);
    if (added) order.push_back(it->first);
    it->second[inside] = reg;
  }
  std::vector<std::vector<int>> result;
  for (const auto& key : order) result.push_back(found[key]);
  return result;
}

int64_t Layout::maxThreadCoord(int dim) const {
  int64_t most = 0;
  for (const auto* list : {&lanes_, &warps_})
    for (const Digit& digit : *list)
      if (digit.dim == dim) most += int64_t{digit.count - 1} * digit.stride;
  return most;
}

Layout Layout::transposed(const std::vector<int>& permutation) const {
  std::vector<int> inverse(permutation.size());
  Shape shape(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    inverse[permutation[i]] = static_cast<int>(i);
    shape[i] = shape_[permutation[i]];
  }
  auto relabel = [&](Digit digit, std::vector<Digit>& out) {
    if (digit.dim != kReplicated) digit.dim = inverse[digit.dim];
    out.push_back(digit);
  };
  return Layout(shape, mapped(regs_, relabel), mapped(lanes_, relabel), mapped(warps_, relabel));
}

Layout Layout::sliced(int dim) const {
  Shape shape = shape_;
  shape[dim] = 1;
  auto drop = [&](const Digit& digit, std::vector<Digit>& out) {
    if (digit.dim != dim) out.push_back(digit);
  };
  auto replicate = [&](const Digit& digit, std::vector<Digit>& out) {
    out.push_back(digit.dim == dim ? Digit{kReplicated, digit.count, 0} : digit);
  };
  return Layout(shape, mapped(regs_, drop), mapped(lanes_, replicate), mapped(warps_, replicate));
}

namespace {

// A run of source dims and of result dims with the same number of elements.
struct Group {
  std::vector<int> from, to;
};

std::vector<Group> matchDims(const Shape& from, const Shape& to) {
  std::vector<Group> groups;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Group group;
    int64_t a = 1, b = 1;
    auto takeFrom = [&] { a *= from[i], group.from.push_back(static_cast<int>(i++)); };
    auto takeTo = [&] { b *= to[j], group.to.push_back(static_cast<int>(j++)); };
    if (i < from.size()) takeFrom();
    if (j < to.size()) takeTo();
    while (a != b) {
      if (a < b && i < from.size()) {
        takeFrom();
      } else if (j < to.size()) {
        takeTo();
      } else {
        return {};  // the element counts differ
      }
    }
    // Unit dims that follow belong to either side; keep them with this group so that both lists end together.
    while (i < from.size() && from[i] == 1) takeFrom();
    while (j < to.size() && to[j] == 1) takeTo();
    groups.push_back(std::move(group));
  }
  return groups;
}

// Where a digit of `count` steps of `stride` elements of the group's row-major order goes under the result dims. The
// outermost dim that is larger than 1 takes whatever exceeds the group (padding).
bool splitDigit(const Group& group, const Shape& shape, int64_t stride, int64_t count, std::vector<Digit>& out) {
  int64_t inner = 1;
  int outermost = -1;
  for (int dim : group.to)
    if (shape[dim] > 1) {
      outermost = dim;
      break;
    }
  if (outermost < 0) outermost = group.to.empty() ? -1 : group.to.front();
  if (outermost < 0) return false;
  for (auto it = group.to.rbegin(); it != group.to.rend() && count > 1; ++it) {
    int dim = *it;
    int64_t outer = inner * shape[dim];
    bool last = dim == outermost;
    if (stride < outer || last) {
      if (stride % inner) return false;
      int64_t take = count;
      if (!last && stride * count > outer) {
        if (outer % stride) return false;
        take = outer / stride;
        if (count % take) return false;
      }
      if (take > 1) out.push_back({dim, static_cast<int>(take), static_cast<int>(stride / inner)});
      stride *= take;
      count /= take;
    }
    if (last) break;
    inner = outer;
  }
  return count == 1;
}

}  // namespace

std::optional<Layout> Layout::groupsAlong(int dim, int64_t step) const {
  int64_t below = 0;  // of what the digits add at most, the part below `step`
  bool divides = true;
  auto cut = [&](const Digit& digit, std::vector<Digit>& out) {
    if (digit.dim != dim || digit.stride % step == 0) return out.push_back(digit);
    const int64_t whole = step % digit.stride == 0 ? step / digit.stride : 0;
    const int inside = static_cast<int>(std::min<int64_t>(digit.count, whole));
    divides &= inside > 0 && digit.count % inside == 0;
    if (!divides) return;
    below += int64_t{inside - 1} * digit.stride;
    out.push_back({kReplicated, inside, 0});
    out.push_back({dim, digit.count / inside, digit.stride * inside});
  };
  Layout groups(shape_, mapped(regs_, cut), mapped(lanes_, cut), mapped(warps_, cut));
  return divides && below < step ? std::optional(std::move(groups)) : std::nullopt;
}

std::optional<Layout> Layout::reshaped(const Shape& shape) const {
  std::vector<Group> groups = matchDims(shape_, shape);
  if (groups.empty() && !(shape_.empty() && shape.empty())) return std::nullopt;
  std::vector<const Group*> groupOf(rank());
  std::vector<int64_t> flatStride(rank(), 1);
  for (const Group& group : groups) {
    int64_t stride = 1;
    bool mayPad = false;
    for (auto it = group.from.rbegin(); it != group.from.rend(); ++it) {
      groupOf[*it] = &group;
      flatStride[*it] = stride;
      // Padding is harmless only beyond the group's last element: on its outermost dim, or alone in its group.
      if (mayPad && isPadded(*it) && shape_[*it] == 1) return std::nullopt;
      stride *= shape_[*it];
      if (stride > 1) mayPad = true;
    }
    int64_t elements = stride;
    for (int dim : group.from)
      if (isPadded(dim) && flatStride[dim] * shape_[dim] != elements) return std::nullopt;
  }
  bool ok = true;
  auto move = [&](const Digit& digit, std::vector<Digit>& out) {
    if (digit.dim == kReplicated) {
      out.push_back(digit);
    } else {
      ok = ok && splitDigit(*groupOf[digit.dim], shape, flatStride[digit.dim] * digit.stride, digit.count, out);
    }
  };
  Layout result(shape, mapped(regs_, move), mapped(lanes_, move), mapped(warps_, move));
  if (!ok || !result.check().empty()) return std::nullopt;
  return result;
}

std::string Layout::to_string() const {
  std::string text;
  for (size_t i = 0; i < shape_.size(); ++i) text += (i ? "x" : "") + std::to_string(shape_[i]);
  return text + " regs " + digitsText(regs_) + " lanes " + digitsText(lanes_) + " warps " + digitsText(warps_);
}

std::string Layout::check() const {
  std::vector<std::vector<Digit>> perDim(shape_.size());
  for (int64_t extent : shape_)
    if (extent < 1) return "tile dims must be positive, found " + std::to_string(extent);
  for (const auto* list : {&regs_, &lanes_, &warps_}) {
    for (const Digit& digit : *list) {
      if (digit.count < 1) return "digit counts must be positive, found " + std::to_string(digit.count);
      if (digit.dim == kReplicated) continue;
      if (digit.dim < 0 || digit.dim >= rank()) {
        return "digit moves along dim " + std::to_string(digit.dim) + " of a tile of rank " + std::to_string(rank());
      }
      perDim[digit.dim].push_back(digit);
    }
  }
  for (int d = 0; d < rank(); ++d) {
    std::sort(perDim[d].begin(), perDim[d].end(), [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
    int64_t next = 1;
    for (const Digit& digit : perDim[d]) {
      if (digit.stride != next) {
        return "digits of dim " + std::to_string(d) + " must be dense: expected stride " + std::to_string(next) +
               ", found " + std::to_string(digit.stride);
      }
      next *= digit.count;
    }
    if (next < shape_[d]) {
      return "digits of dim " + std::to_string(d) + " cover " + std::to_string(next) + " of " +
             std::to_string(shape_[d]) + " elements";
    }
  }
  return "";
}

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

/// Every digit as digits of 2, minor first; nullopt for replicas and other radices.
std::optional<std::vector<Digit>> bitsOf(const std::vector<Digit>& digits) {
  std::vector<Digit> bits;
  for (const Digit& digit : digits) {
    if (digit.dim == kReplicated || (digit.count & (digit.count - 1)) != 0) return std::nullopt;
    for (int step = 1; step < digit.count; step *= 2) bits.push_back({digit.dim, 2, digit.stride * step});
  }
  return bits;
}

}  // namespace

std::optional<LaneSwaps> laneSwaps(const Layout& from, const Layout& to) {
  if (from.shape() != to.shape() || from.warps() != to.warps() || from.isPadded() || to.isPadded()) return std::nullopt;
  auto regs = bitsOf(from.regs()), lanes = bitsOf(from.lanes()), wantedRegs = bitsOf(to.regs()),
       wantedLanes = bitsOf(to.lanes());
  if (!regs || !lanes || !wantedRegs || !wantedLanes || regs->size() != wantedRegs->size()) return std::nullopt;
  LaneSwaps out;
  for (size_t p = 0; p < lanes->size(); ++p) {
    if ((*lanes)[p] == (*wantedLanes)[p]) continue;
    auto reg = std::find(regs->begin(), regs->end(), (*wantedLanes)[p]);
    if (reg == regs->end()) return std::nullopt;
    LaneSwap swap{1 << p, {}};
    const int bit = 1 << (reg - regs->begin());
    for (int r = 0; r < from.numRegs(); ++r)
      if (!(r & bit)) swap.pairs.emplace_back(r, r | bit);
    out.swaps.push_back(std::move(swap));
    std::swap((*lanes)[p], *reg);
  }
  const Layout swapped(from.shape(), *regs, *lanes, from.warps());
  if (conversion(swapped, to) == Conversion::shared) return std::nullopt;
  out.map = registerMap(swapped, to);
  return out;
}

std::optional<Layout> cuttableLayout(const Layout& source, const Shape& shape, int most) {
  auto isCut = [&](const Digit& bit) {
    const auto dim = static_cast<size_t>(bit.dim);
    return bit.dim != kReplicated && shape[dim] != source.shape()[dim] && int64_t{bit.stride} * bit.count > shape[dim];
  };
  auto regs = bitsOf(source.regs()), lanes = bitsOf(source.lanes());
  if (!regs || !lanes || source.isPadded()) return std::nullopt;
  for (const Digit& digit : source.warps())
    if (isCut(digit)) return std::nullopt;
  // Neighbours across rows go to lanes first, which reads and writes memory well; those of a row are kept longest: they are
  // read and written at once.
  constexpr int kVector = 4;
  auto rank = [&](const Digit& bit) {
    const bool isVector = bit.dim == source.rank() - 1 && bit.stride < kVector;
    return std::tuple(isVector, -bit.dim, isVector ? -bit.stride : bit.stride);
  };
  int traded = 0;
  for (Digit& lane : *lanes) {
    if (!isCut(lane)) continue;
    Digit* given = nullptr;
    for (Digit& reg : *regs)
      if (!isCut(reg) && (!given || rank(reg) < rank(*given))) given = &reg;
    if (!given || ++traded > most) return std::nullopt;
    std::swap(lane, *given);
  }
  if (!traded) return std::nullopt;
  return Layout(source.shape(), *regs, *lanes, source.warps());
}

std::optional<Layout> runsOfWarps(const Layout& source, int dim, int vector, int run) {
  auto bits = bitsOf(source.regs()), lanes = bitsOf(source.lanes());
  if (!bits || !lanes || source.isPadded()) return std::nullopt;
  const size_t laneBits = lanes->size();
  bits->insert(bits->end(), lanes->begin(), lanes->end());
  // What a thread holds, what its neighbours do, what further lanes do, the rest: by what comes first.
  auto place = [&](const Digit& bit) {
    const int part = bit.dim != dim ? 2 : bit.stride < vector ? 0 : bit.stride < run ? 1 : 3;
    return std::tuple(part, -bit.dim, bit.stride);
  };
  std::stable_sort(bits->begin(), bits->end(), [&](const Digit& a, const Digit& b) { return place(a) < place(b); });
  size_t inRun = 0, inVector = 0;
  for (const Digit& bit : *bits)
    if (bit.dim == dim && bit.stride < run) ++inRun, inVector += bit.stride < vector;
  if (1 << inRun != run || 1 << inVector != vector || inRun - inVector > laneBits) return std::nullopt;
  if (bits->size() < inVector + laneBits) return std::nullopt;
  std::vector<Digit> regs(bits->begin(), bits->begin() + inVector);
  const std::vector<Digit> spread(bits->begin() + inVector, bits->begin() + inVector + laneBits);
  regs.insert(regs.end(), bits->begin() + inVector + laneBits, bits->end());
  return Layout(source.shape(), regs, spread, source.warps());
}

}  // namespace tile::layout
