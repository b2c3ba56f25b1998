// exchange.cpp - picks minor dim and row pitch of an exchange by the bank passes its accesses would take.
#include "compiler/layout/exchange.h"

#include <algorithm>
#include <numeric>

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
    for (int64_t pad = 0; pad <= 64; pad += std::max<int64_t>(widest, 4)) {
      plan.byteStride.assign(rank, 0);
      plan.byteStride[minor] = elementBytes;
      int64_t next = row + pad;
      for (int d = rank - 1; d >= 0; --d) {
        if (d == minor) continue;
        plan.byteStride[d] = next;
        next *= std::max(from.cover(d), to.cover(d));
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
    }
  }
  best.bytes = (best.bytes + 15) / 16 * 16;
  return best;
}

}  // namespace tile::layout
