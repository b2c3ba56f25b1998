// layout.cpp - digit arithmetic of tile layouts: coordinates, runs, slices, transposes, text.
#include "compiler/layout/layout.h"

#include <algorithm>
#include <map>

#include "compiler/layout/digits.h"

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

}  // namespace tile::layout
