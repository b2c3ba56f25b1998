// exchange.cpp - picks minor dim and row pitch of an exchange by the bank passes its accesses would take.
#include "compiler/layout/exchange.h"

#include <algorithm>
#include <numeric>

#include "compiler/layout/relations.h"
#include "compiler/layout/shared.h"

namespace tile::layout {
namespace {

int vectorLength(const Layout& layout, int dim, int elementBytes) {
  int most = std::max(1, 16 / elementBytes);
  return std::gcd(layout.runLength(dim), most);
}

// Bank passes of the first access of warp 0; the others repeat its pattern at constant offsets.
int passesOf(const Layout& layout, const Exchange& exchange, int vector, int elementBytes) {
  std::vector<int64_t> addresses;
  for (int lane = 0; lane < layout.numLanes(); ++lane)
    addresses.push_back(exchange.address(layout.threadCoord(lane, 0)));
  return bankPasses(addresses.data(), layout.numLanes(), vector * elementBytes);
}

// Whether the layout's coordinates along a dim divide by kSkewRows digit by digit.
bool splitsAtSkew(const Layout& layout, int dim) {
  int64_t low = 0;
  for (const auto* digits : {&layout.regs(), &layout.lanes(), &layout.warps()})
    for (const Digit& digit : *digits) {
      if (digit.dim != dim || digit.stride % kSkewRows == 0) continue;
      if (kSkewRows % digit.stride != 0) return false;
      low += std::min<int64_t>(digit.count * int64_t{digit.stride}, kSkewRows) - digit.stride;
    }
  return low < kSkewRows;
}

}  // namespace

Exchange planExchange(const Layout& from, const Layout& to, int elementBytes) {
  int rank = from.rank();
  Exchange best;
  double bestCost = 0;
  if (rank == 0) {
    best.bytes = 16;
    return best;
  }
  for (int minor = rank - 1; minor >= 0; --minor) {
    if (from.shape()[minor] == 1 && from.cover(minor) == 1 && to.cover(minor) == 1 && minor > 0) continue;
    Exchange plan;
    plan.minor = minor;
    plan.storeVector = vectorLength(from, minor, elementBytes);
    plan.loadVector = vectorLength(to, minor, elementBytes);
    int64_t widest = int64_t{std::max(plan.storeVector, plan.loadVector)} * elementBytes;
    int64_t row = std::max(from.cover(minor), to.cover(minor)) * elementBytes;
    row = (row + widest - 1) / widest * widest;
    int major = minor == rank - 1 ? rank - 2 : rank - 1;  // the dim whose neighbours are one row apart
    const bool canSkew = major >= 0 && splitsAtSkew(from, major) && splitsAtSkew(to, major);
    auto consider = [&](int64_t pad, int64_t skew) {
      plan.byteStride.assign(rank, 0);
      plan.byteStride[minor] = elementBytes;
      plan.major = skew ? major : -1, plan.skew = skew;
      int64_t next = row + pad;
      for (int d = rank - 1; d >= 0; --d) {
        if (d == minor) continue;
        plan.byteStride[d] = next;
        const int64_t rows = std::max(from.cover(d), to.cover(d));
        next *= rows;
        if (d == plan.major) next += (rows + kSkewRows - 1) / kSkewRows * skew;
      }
      plan.bytes = next;
      plan.storePasses = passesOf(from, plan, plan.storeVector, elementBytes);
      plan.loadPasses = passesOf(to, plan, plan.loadVector, elementBytes);
      // Wavefronts per element moved: an access of 4 bytes or less takes one, 8 two, 16 four, times its passes.
      auto cost = [&](int vector, int passes, const Layout& layout) {
        int64_t bytes = int64_t{vector} * elementBytes;
        return double(layout.numRegs()) / vector * passes * std::max<int64_t>(1, bytes / 4);
      };
      double total = cost(plan.storeVector, plan.storePasses, from) + cost(plan.loadVector, plan.loadPasses, to);
      // Instructions count too, or scalar accesses would look as good as vectors.
      total += 0.5 * (double(from.numRegs()) / plan.storeVector + double(to.numRegs()) / plan.loadVector);
      if (best.byteStride.empty() || total < bestCost - 1e-9) {
        best = plan;
        bestCost = total;
      }
    };
    const int64_t unit = std::max<int64_t>(widest, 4);
    for (int64_t pad = 0; pad <= 64; pad += unit) consider(pad, 0);
    if (canSkew)
      for (int64_t skew = unit; skew <= 32; skew += unit) consider(0, skew);
  }
  best.bytes = (best.bytes + 15) / 16 * 16;
  return best;
}

Shape exchangeBox(const Layout& from, const Layout& to, int elementBytes, int64_t mostBytes) {
  Shape box = from.shape();
  const Coord origin(box.size(), 0);
  auto canHalve = [&](size_t dim) {
    Shape half = box;
    half[dim] /= 2;
    if (box[dim] % 2 || from.shape()[dim] % half[dim]) return false;
    Coord offset = origin;
    for (offset[dim] = 0; offset[dim] < from.shape()[dim]; offset[dim] += half[dim])
      if (!boxLayout(from, offset, half) || !boxLayout(to, offset, half)) return false;
    return true;
  };
  auto bytes = [&] {
    return planExchange(*boxLayout(from, origin, box), *boxLayout(to, origin, box), elementBytes).bytes;
  };
  for (size_t dim = box.size(); dim-- > 0;)
    while (bytes() > mostBytes && canHalve(dim)) box[dim] /= 2;
  return box;
}

}  // namespace tile::layout
