// same_warps.cpp - code whose loads wait for each other gets a try with the bound of registers that leaves a
// multiprocessor the warps it has, or seven eighths of them. Without a bound ptxas orders a loop for the fewest
// registers it can have and may still take more than that in the end (an RMS norm of 64 registers waited for its eight
// loads five times; with a bound of 64 it takes 61 and waits twice). With one it takes what there is.
//
// Kept if in some loop, or in straight code that has none, a third more loads are on their way, and in none fewer. That
// is worth an eighth of the warps only where few loads come together in many parts (a Sobel filter of 59 loads in four
// parts took an eighth longer in two).
//
// With products only where no warp is lost, and half as many more loads from global memory, or operands from shared
// memory, come together: their loops are scheduled tightly (a convolution of 128 x 64 had its 64 loads in four parts,
// and in one takes an eighth less). Not with roles, whose registers are given.
#include <algorithm>
#include <vector>

#include "compiler/targets/loads_in_flight.h"
#include "compiler/targets/nvptx.h"
#include "compiler/targets/occupancy.h"
#include "compiler/targets/ptx_text.h"
#include "llvm/ADT/STLExtras.h"

namespace tile::ir {
namespace {

using Loops = std::vector<LoadsInFlight>;

constexpr int kFewTogether = 5;

bool areFew(const LoadsInFlight& of) { return of.loads <= kFewTogether * of.waits; }
/// Loads that wait for each other: in three parts or more, or few in each.
bool areApart(const LoadsInFlight& of) { return of.loads >= 3 && of.waits >= 2 && (of.waits >= 3 || areFew(of)); }
/// Operands that the products of a loop wait for again and again.
bool operandsWait(const LoadsInFlight& of) { return of.repeated && of.waits >= 8 && areFew(of); }
bool anyWaits(const LoadsInFlight& of) { return of.waits >= 2; }

/// What a try is measured by.
struct Loads {
  Loops global, shared;
  explicit Loads(const SassKernel& kernel)
      : global(loadsInFlight(kernel)), shared(loadsInFlight(kernel, LoadedFrom::shared)) {}
};

bool noneLoses(const Loops& before, const Loops& after) {
  return before.size() == after.size() && llvm::all_of(llvm::zip(before, after), [](auto both) {
           auto& [first, second] = both;
           return first.repeated == second.repeated && second.onTheirWay(1) >= first.onTheirWay(1);
         });
}

/// Of programs with products, which stay as many.
bool isWorthItForProducts(const Loads& before, const Loads& after) {
  auto someGains = [](const Loops& first, const Loops& second, bool (*wait)(const LoadsInFlight&)) {
    return noneLoses(first, second) && llvm::any_of(llvm::zip(first, second), [&](auto both) {
             auto& [one, two] = both;
             return wait(one) && 2 * two.onTheirWay(1) >= 3 * one.onTheirWay(1);
           });
  };
  return noneLoses(before.global, after.global) &&
         (someGains(before.global, after.global, anyWaits) || someGains(before.shared, after.shared, operandsWait));
}

/// Of others, `fewer` programs instead of `many`.
bool isWorthIt(const Loops& before, int many, const Loops& after, int fewer) {
  return noneLoses(before, after) && llvm::any_of(llvm::zip(before, after), [&](auto both) {
           auto& [first, second] = both;
           const bool isWorthWarps = fewer == many || (first.waits >= 3 && areFew(first));
           return areApart(first) && isWorthWarps && 10 * second.onTheirWay(fewer) >= 13 * first.onTheirWay(many);
         });
}

}  // namespace

int boundOfSameWarps(int threads, int registers, int64_t sharedBytes, const Target& target, int eighths) {
  constexpr int kMostRegisters = 248;
  auto programs = [&](int each) { return occupancyOf({threads, each, sharedBytes}, target).programs; };
  const int now = programs(registers);
  if (now < 1) return 0;
  int bound = 0;
  for (int each = kRegisterStep; each <= kMostRegisters; each += kRegisterStep)
    if (8 * programs(each) >= eighths * now) bound = each;
  return bound;
}

std::optional<std::string> withSameWarps(const std::string& ptx, const std::string& cubin, int64_t sharedBytes,
                                         const Target& target, const CompileOptions& options, Resources& resources) {
  auto says = [&](const char* word) { return ptx.find(word) != std::string::npos; };
  const int threads = threadsOf(ptx);
  if (threads < target.lanes || resources.registers <= 0 || says(".minnctapersm") || says(".maxnreg") ||
      says("setmaxnreg"))
    return std::nullopt;
  const auto first = readSass(cubin, entryOf(ptx), target.sm);
  if (!first) return std::nullopt;
  const Loads before(*first);
  const bool hasProducts = says("mma.");
  const bool waits = hasProducts ? llvm::any_of(before.global, anyWaits) || llvm::any_of(before.shared, operandsWait)
                                 : llvm::any_of(before.global, areApart);
  const int registers = static_cast<int>(resources.registers);
  const int bound = waits ? boundOfSameWarps(threads, registers, sharedBytes, target, hasProducts ? 8 : 7) : 0;
  if (!bound) return std::nullopt;
  Resources after;
  Result<std::string> made = tryPtxas(withDirective(ptx, "maxnreg " + std::to_string(bound)), target, options, after);
  if (!made || after.registers <= 0 || spilledBytes(after) > 0 || serialises(after)) return std::nullopt;
  const auto second = readSass(*made, entryOf(ptx), target.sm);
  if (!second) return std::nullopt;
  const Loads now(*second);
  auto programs = [&](int each) { return occupancyOf({threads, each, sharedBytes}, target).programs; };
  const int many = programs(registers), fewer = programs(static_cast<int>(after.registers));
  if (hasProducts ? fewer < many || !isWorthItForProducts(before, now)
                  : !isWorthIt(before.global, many, now.global, fewer))
    return std::nullopt;
  resources = std::move(after);
  return std::move(*made);
}

}  // namespace tile::ir
