// more_warps.cpp - code that waits at barriers, and of which more programs would fit on a multiprocessor if threads had
// a step of registers less, gets a try with that bound: ptxas often takes a register or two past the step for nothing
// (a softmax of 36 registers ran 6 programs of 8 warps, with 32 there are 8). Kept only where the code is the same but
// for a few instructions, in all and in the hottest loop: no spills, and no load that waits for another one where it
// did not. Twice the programs are worth a few more instructions (cross entropy over blocks of 8192 with 16 warps took
// .0704 ms on an H200, and takes .0514 with 7 % more of them and two programs for one).
//
// Products stay as they are: their operands are copied ahead, and what their loops do in between is scheduled tightly.
#include <algorithm>

#include "compiler/targets/loads_in_flight.h"
#include "compiler/targets/nvptx.h"
#include "compiler/targets/occupancy.h"
#include "compiler/targets/ptx_text.h"

namespace tile::ir {
namespace {

struct RegisterBound {
  int registers = 0;     ///< 0: there is nothing to be had
  bool isTwice = false;  ///< there is room for twice as many programs then
};

RegisterBound boundForMoreWarps(const std::string& ptx, int64_t sharedBytes, const Target& target,
                                const Resources& resources) {
  constexpr int kLeastBound = 32;
  auto says = [&](const char* word) { return ptx.find(word) != std::string::npos; };
  const int threads = threadsOf(ptx);
  if (threads < target.lanes || resources.registers <= 0 || resources.spill_store_bytes > 0 || !says("bar.sync") ||
      says(".minnctapersm") || says(".maxnreg") || says("mma."))
    return {};
  const int registers = (resources.registers + kRegisterStep - 1) / kRegisterStep * kRegisterStep;
  auto programs = [&](int each) { return occupancyOf({threads, each, sharedBytes}, target).programs; };
  // One step; of many registers up to a sixth.
  const int least = std::max(kLeastBound, std::min(registers - kRegisterStep, (5 * registers + 5) / 6));
  for (int bound = registers - kRegisterStep; bound >= least; bound -= kRegisterStep)
    if (programs(bound) > programs(registers)) return {bound, programs(bound) >= 2 * programs(registers)};
  return {};
}

/// Whether there are more instructions than hardly any.
bool grows(const SassCounts& before, const SassCounts& now, bool isTwice) {
  const int perCent = isTwice ? 8 : 2;
  return 100 * now.instructions > (100 + perCent) * before.instructions;
}

}  // namespace

bool mayHaveMoreWarps(const std::string& ptx, int64_t sharedBytes, const Target& target, const Resources& resources) {
  return boundForMoreWarps(ptx, sharedBytes, target, resources).registers > 0;
}

std::optional<std::string> withMoreWarps(const std::string& ptx, const std::string& cubin, int64_t sharedBytes,
                                         const Target& target, const CompileOptions& options, Resources& resources) {
  const RegisterBound bound = boundForMoreWarps(ptx, sharedBytes, target, resources);
  if (!bound.registers) return std::nullopt;
  Resources after;
  Result<std::string> made =
      tryPtxas(withDirective(ptx, "maxnreg " + std::to_string(bound.registers)), target, options, after);
  if (!made || after.spill_store_bytes > 0 || after.spill_load_bytes > 0) return std::nullopt;
  const auto first = readSass(cubin, entryOf(ptx), target.sm), second = readSass(*made, entryOf(ptx), target.sm);
  if (!first || !second || grows(first->counts, second->counts, bound.isTwice)) return std::nullopt;
  const SassLoop *loop = first->hottestLoop(), *loopNow = second->hottestLoop();
  if (!loop != !loopNow || (loop && grows(loop->counts, loopNow->counts, bound.isTwice))) return std::nullopt;
  const LoadsInFlight before = mostLoads(loadsInFlight(*first)), now = mostLoads(loadsInFlight(*second));
  if (before.repeated != now.repeated || now.waits > before.waits) return std::nullopt;
  resources = std::move(after);
  return std::move(*made);
}

}  // namespace tile::ir
