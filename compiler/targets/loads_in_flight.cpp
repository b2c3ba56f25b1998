// loads_in_flight.cpp - see loads_in_flight.h.
#include "compiler/targets/loads_in_flight.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/targets/sass_registers.h"

namespace tile::ir {
namespace {

bool isLoad(const SassInstruction& inst, LoadedFrom from) {
  const uint32_t opcode = inst.opcode();
  return from == LoadedFrom::global ? opcode == 0x981 : opcode == 0x984 || opcode == 0x83b;
}

/// Loads of the blocks, and how often their results are waited for, in address order.
LoadsInFlight loadsOf(const SassKernel& kernel, const std::vector<std::pair<int, int>>& blocks, LoadedFrom from) {
  LoadsInFlight all;
  std::vector<SassRange> onTheirWay;
  auto meets = [&](const SassRange& range) {
    return std::any_of(onTheirWay.begin(), onTheirWay.end(), [&](const SassRange& r) { return r.overlaps(range); });
  };
  for (auto [first, end] : blocks)
    for (int i = first; i < end; ++i) {
      const SassInstruction& inst = kernel.code[static_cast<size_t>(i)];
      const std::optional<SassRegisters> registers = registersOf(inst);
      if (!registers) continue;
      if (meets(registers->written) || std::any_of(registers->read.begin(), registers->read.end(), meets))
        ++all.waits, onTheirWay.clear();
      if (isLoad(inst, from)) ++all.loads, onTheirWay.push_back(registers->written);
    }
  if (!onTheirWay.empty()) ++all.waits;
  return all;
}

}  // namespace

std::vector<LoadsInFlight> loadsInFlight(const SassKernel& kernel, LoadedFrom from) {
  auto isAround = [](const SassLoop& outer, const SassLoop& inner) {
    return &outer != &inner && outer.blocks.front().first <= inner.blocks.front().first &&
           inner.blocks.back().second <= outer.blocks.back().second;
  };
  std::vector<std::pair<int, LoadsInFlight>> loops;  // with their first instructions
  for (const SassLoop& loop : kernel.loops) {
    if (std::any_of(kernel.loops.begin(), kernel.loops.end(), [&](const SassLoop& l) { return isAround(loop, l); }))
      continue;
    LoadsInFlight loads = loadsOf(kernel, loop.blocks, from);
    loads.repeated = true;
    if (loads.loads > 0) loops.emplace_back(loop.blocks.front().first, loads);
  }
  if (loops.empty()) return {loadsOf(kernel, {{0, static_cast<int>(kernel.code.size())}}, from)};
  std::sort(loops.begin(), loops.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<LoadsInFlight> each;
  for (const auto& [first, loads] : loops) each.push_back(loads);
  return each;
}

LoadsInFlight mostLoads(const std::vector<LoadsInFlight>& each) {
  return *std::max_element(each.begin(), each.end(), [](const auto& a, const auto& b) { return a.loads < b.loads; });
}

}  // namespace tile::ir
