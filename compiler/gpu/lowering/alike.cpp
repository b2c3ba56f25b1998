// alike.cpp - see alike.h.
#include "compiler/gpu/lowering/alike.h"

#include <map>
#include <numeric>
#include <set>

namespace tile::ir {

/// The first place of each register along a dim that is the same for all threads' elements between there and its own,
/// where aligned groups of `group` are alike.
static llvm::SmallVector<int64_t> firstAlike(const layout::Layout& layout, int dim, int64_t group) {
  // Threads begin whole groups apart, or up to `within` places behind the beginning of one.
  int64_t within = 0;
  for (const std::vector<layout::Digit>* digits : {&layout.lanes(), &layout.warps()})
    for (const layout::Digit& digit : *digits)
      if (digit.dim == dim && digit.stride % group) within += int64_t{digit.count - 1} * digit.stride;
  llvm::SmallVector<int64_t> first;
  for (int reg = 0; reg < layout.numRegs(); ++reg) {
    const int64_t at = layout.regCoord(reg)[dim], behind = at % group;
    first.push_back(behind + within < group ? at - behind : at);
  }
  return first;
}

llvm::SmallVector<size_t> firstOfEqual(llvm::ArrayRef<int64_t> constancy, const layout::Layout& layout) {
  llvm::SmallVector<llvm::SmallVector<int64_t>> alike;  // for every dim
  for (int d = 0; d < layout.rank(); ++d) {
    auto places = [](llvm::ArrayRef<int64_t> all) { return std::set<int64_t>(all.begin(), all.end()).size(); };
    alike.push_back(firstAlike(layout, d, 1));
    // Padding begins between groups.
    const int64_t largest = layout.isPadded(d) ? std::gcd(constancy[d], layout.shape()[d]) : constancy[d];
    for (int64_t group = largest; group > 1; group = group % 2 ? 1 : group / 2)
      if (auto larger = firstAlike(layout, d, group); places(larger) < places(alike.back())) alike.back() = larger;
  }
  llvm::SmallVector<size_t> first;
  std::map<llvm::SmallVector<int64_t>, size_t> seen;
  for (int reg = 0; reg < layout.numRegs(); ++reg) {
    llvm::SmallVector<int64_t> place;
    for (const auto& along : alike) place.push_back(along[reg]);
    first.push_back(seen.try_emplace(place, reg).first->second);
  }
  return first;
}

}  // namespace tile::ir
