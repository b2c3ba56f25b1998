// same_warps.cpp - code whose loads wait for each other gets a try with the bound of registers that leaves a
// multiprocessor the warps it has, or seven eighths of them. Without a bound ptxas orders a loop for the fewest registers
// it can have and may still take more than that in the end (an RMS norm of 64 registers waited for its eight loads five
// times; with a bound of 64 it takes 61 and waits twice). With one it takes what there is.
//
// Kept if in some loop, or in straight code that has none, a third more loads are on their way, and in none fewer. That
// is worth an eighth of the warps only where few loads come together in many parts (a Sobel filter of 59 loads in four
// parts took an eighth longer in two).
//
// Products stay as they are: their operands are copied ahead, and what their loops do in between is scheduled tightly.
#include <algorithm>
#include <vector>

#include "compiler/targets/loads_in_flight.h"
#include "compiler/targets/nvptx.h"
#include "compiler/targets/occupancy.h"
#include "compiler/targets/ptx_text.h"
#include "llvm/ADT/STLExtras.h"

namespace tile::ir {
namespace {

constexpr int kFewTogether = 5;

/// Loads that wait for each other: in three parts or more, or few in each.
bool areApart(const LoadsInFlight& of) {
  return of.loads >= 3 && of.waits >= 2 && (of.waits >= 3 || of.loads <= kFewTogether * of.waits);
}

bool gains(const std::vector<LoadsInFlight>& before, int many, const std::vector<LoadsInFlight>& after, int fewer) {
  if (before.size() != after.size()) return false;
  bool some = false;
  for (auto [first, second] : llvm::zip(before, after)) {
    if (first.repeated != second.repeated || second.onTheirWay(1) < first.onTheirWay(1)) return false;
    const bool isWorthWarps = fewer == many || (first.waits >= 3 && first.loads <= kFewTogether * first.waits);
    some |= areApart(first) && isWorthWarps && 10 * second.onTheirWay(fewer) >= 13 * first.onTheirWay(many);
  }
  return some;
}

}  // namespace

int boundOfSameWarps(int threads, int registers, int64_t sharedBytes, const Target& target) {
  constexpr int kMostRegisters = 248;
  auto programs = [&](int each) { return occupancyOf({threads, each, sharedBytes}, target).programs; };
  const int now = programs(registers);
  if (now < 1) return 0;
  int bound = 0;
  for (int each = kRegisterStep; each <= kMostRegisters; each += kRegisterStep)
    if (8 * programs(each) >= 7 * now) bound = each;
  return bound;
}

std::optional<std::string> withSameWarps(const std::string& ptx, const std::string& cubin, int64_t sharedBytes,
                                         const Target& target, const CompileOptions& options, Resources& resources) {
  auto says = [&](const char* word) { return ptx.find(word) != std::string::npos; };
  const int threads = threadsOf(ptx);
  if (threads < target.lanes || resources.registers <= 0 || says(".minnctapersm") || says(".maxnreg") ||
      says("setmaxnreg") || says("mma."))
    return std::nullopt;
  const auto first = readSass(cubin, entryOf(ptx), target.sm);
  if (!first) return std::nullopt;
  const std::vector<LoadsInFlight> before = loadsInFlight(*first);
  if (llvm::none_of(before, areApart)) return std::nullopt;
  const int bound = boundOfSameWarps(threads, static_cast<int>(resources.registers), sharedBytes, target);
  if (!bound) return std::nullopt;
  Resources after;
  Result<std::string> made = tryPtxas(withDirective(ptx, "maxnreg " + std::to_string(bound)), target, options, after);
  if (!made || after.registers <= 0 || spilledBytes(after) > 0) return std::nullopt;
  const auto second = readSass(*made, entryOf(ptx), target.sm);
  if (!second) return std::nullopt;
  auto programs = [&](const Resources& r) {
    return occupancyOf({threads, static_cast<int>(r.registers), sharedBytes}, target).programs;
  };
  if (!gains(before, programs(resources), loadsInFlight(*second), programs(after))) return std::nullopt;
  resources = std::move(after);
  return std::move(*made);
}

}  // namespace tile::ir
