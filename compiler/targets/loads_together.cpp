// loads_together.cpp - code whose loads wait for each other gets another try with a looser bound of registers. Without
// any ptxas aims at as many warps as it can have, and where a loop loads ten rows it reads one, uses it, and reads the
// next into the same registers: ten latencies an iteration. Told that there is room, it starts them together.
//
// Of launches of at most one program per multiprocessor no warps are lost: there, two loads that wait for each other
// are enough for a try, and so are spills for the sake of another program (ptxas leaves registers for two of 512
// threads).
//
// Counted in the machine code (loads_in_flight.h). The new code is kept if all warps of a multiprocessor together have
// half as many again on their way, and are not many fewer: in straight lines other programs load meanwhile. Where threads
// meet at barriers there must be another program to do so (a layer norm of 16 warps took a sixth longer alone). Where
// as many loads come together with the registers of all these warps (same_warps.cpp), those are enough.
#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/targets/loads_in_flight.h"
#include "compiler/targets/nvptx.h"
#include "compiler/targets/occupancy.h"
#include "compiler/targets/ptx_text.h"
#include "compiler/targets/sass.h"

namespace tile::ir {
namespace {

/// Code whose loads wait for each other, and could have more registers.
struct Apart {
  LoadsInFlight loads;
  int threads = 0, bound = 0;  ///< of a program; of a thread's registers
};

std::optional<Apart> loadsApart(const std::string& ptx, const std::string& cubin, const Target& target,
                                const CompileOptions& options, const Resources& resources) {
  // Of several programs, others load meanwhile: it takes more to be worth their registers.
  const bool few = options.fewPrograms;
  const int fewestLoads = few ? 2 : 6, fewestWaits = few ? 2 : 3, mostRegisters = few ? 248 : 128;
  auto says = [&](const char* word) { return ptx.find(word) != std::string::npos; };
  // Products have their operands copied ahead, and registers for accumulators.
  if (says(".minnctapersm") || says(".maxnreg") || says("setmaxnreg") || says("mma.") ||
      (resources.spill_store_bytes > 0 && !few) || resources.registers <= 0)
    return std::nullopt;
  Apart apart;
  apart.threads = threadsOf(ptx);
  if (apart.threads < target.lanes) return std::nullopt;
  const int all = static_cast<int>(target.registersPerSm) / apart.threads / kRegisterStep * kRegisterStep;
  apart.bound = std::min(mostRegisters, all);
  if (resources.registers + kRegisterStep > apart.bound) return std::nullopt;
  const auto before = readSass(cubin, entryOf(ptx), target.sm);
  if (!before) return std::nullopt;
  apart.loads = mostLoads(loadsInFlight(*before));
  const bool areApart = apart.loads.loads >= fewestLoads && apart.loads.waits >= fewestWaits;
  return areApart || resources.spill_store_bytes > 0 ? std::optional(apart) : std::nullopt;
}

}  // namespace

bool mayLoadTogether(const std::string& ptx, const std::string& cubin, const Target& target,
                     const CompileOptions& options, const Resources& resources) {
  return loadsApart(ptx, cubin, target, options, resources).has_value();
}

std::optional<std::string> withLoadsTogether(const std::string& ptx, const std::string& cubin, int64_t sharedBytes,
                                             const Target& target, const CompileOptions& options,
                                             Resources& resources) {
  const auto given = loadsApart(ptx, cubin, target, options, resources);
  if (!given) return std::nullopt;
  const LoadsInFlight apart = given->loads;
  Resources after;
  Result<std::string> code =
      tryPtxas(withDirective(ptx, "maxnreg " + std::to_string(given->bound)), target, options, after);
  if (!code || after.spill_store_bytes > 0 || after.spill_load_bytes > 0 || after.registers <= 0) return std::nullopt;
  if (resources.spill_store_bytes > 0) {
    resources = std::move(after);
    return std::move(*code);
  }
  const auto made = readSass(*code, entryOf(ptx), target.sm);
  if (!made) return std::nullopt;
  const LoadsInFlight together = mostLoads(loadsInFlight(*made));
  auto programsWith = [&](int registers) {
    if (options.fewPrograms) return 1;
    return std::max(1, occupancyOf({given->threads, registers, sharedBytes}, target).programs);
  };
  const int many = programsWith(resources.registers), fewer = programsWith(after.registers);
  if (apart.repeated != together.repeated || (apart.repeated ? 5 * fewer < 2 * many : 8 * fewer < 7 * many))
    return std::nullopt;
  if (fewer == 1 && many > 1 && ptx.find("bar.sync") != std::string::npos) return std::nullopt;
  if (2 * together.onTheirWay(fewer) < 3 * apart.onTheirWay(many)) return std::nullopt;
  // As good with the warps that there were?
  const int bound = fewer < many ? boundOfSameWarps(given->threads, resources.registers, sharedBytes, target) : 0;
  if (bound) {
    Resources ofAll;
    auto same = tryPtxas(withDirective(ptx, "maxnreg " + std::to_string(bound)), target, options, ofAll);
    if (same && ofAll.registers > 0 && spilledBytes(ofAll) == 0)
      if (const auto read = readSass(*same, entryOf(ptx), target.sm))
        if (mostLoads(loadsInFlight(*read)).onTheirWay(1) >= together.onTheirWay(1))
          after = std::move(ofAll), code = std::move(same);
  }
  resources = std::move(after);
  return std::move(*code);
}

}  // namespace tile::ir
