// occupancy.cpp - see occupancy.h.
#include "compiler/targets/occupancy.h"

#include <algorithm>
#include <utility>

namespace tile::ir {
namespace {

struct Multiprocessor {
  int sm;
  uint32_t sharedBytes;
  int warps, programs;
};
constexpr Multiprocessor kMultiprocessors[] = {
    {80, 167936, 64, 32}, {86, 102400, 48, 16}, {87, 167936, 48, 16}, {89, 102400, 48, 24}, {90, 233472, 64, 32}};
constexpr int64_t kReservedShared = 1024;  ///< of each program, by the driver

}  // namespace

Occupancy occupancyOf(const ProgramNeeds& needs, const Target& target) {
  const auto* m = std::find_if(std::begin(kMultiprocessors), std::end(kMultiprocessors),
                               [&](const Multiprocessor& each) { return each.sm == target.sm; });
  if (m == std::end(kMultiprocessors) || needs.registers <= 0 || needs.threads <= 0) return {};
  const int warps = (needs.threads + target.lanes - 1) / target.lanes;
  const int perWarp = (needs.registers + kRegisterStep - 1) / kRegisterStep * kRegisterStep * target.lanes;
  const int64_t shared = needs.sharedBytes + kReservedShared;
  // The smallest bound is the answer; of equal ones the first named.
  const std::pair<int, const char*> bounds[] = {
      {static_cast<int>(m->sharedBytes / shared), "shared memory"},
      {static_cast<int>(target.registersPerSm) / (perWarp * warps), "registers"},
      {m->warps / warps, "threads"},
      {m->programs, "programs"}};
  const auto& least = *std::min_element(std::begin(bounds), std::end(bounds),
                                        [](const auto& a, const auto& b) { return a.first < b.first; });
  return {least.first, least.first * warps, m->warps, least.second};
}

}  // namespace tile::ir
