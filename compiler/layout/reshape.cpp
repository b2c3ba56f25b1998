// reshape.cpp - the same elements under another shape: digits split along groups of dims with the same elements.
#include "compiler/layout/digits.h"

namespace tile::layout {
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

}  // namespace tile::layout
