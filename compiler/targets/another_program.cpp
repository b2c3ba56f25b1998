// another_program.cpp - code whose registers leave room for few warps on a multiprocessor gets another try with a bound
// that leaves room for one more program: ptxas takes what it may, and seldom needs the last tenth of it. Only where
// threads wait for each other at barriers, since other programs compute meanwhile. Code without barriers hides
// its latencies by the registers it has (a docking kernel of 187 took 1.6 times as long with 168).
//
// Products of warpgroups that a loop repeats overlap with the iterations around them, and are not made to wait for each
// other. Those outside loops are waited for at once anyway (the outputs of a chunk of linear attention, three products
// one after the other, took .205 ms with three programs and waits, .230 with two and none).
#include <algorithm>
#include <sstream>

#include "compiler/targets/nvptx.h"
#include "compiler/targets/occupancy.h"
#include "compiler/targets/ptx_text.h"
#include "compiler/targets/sass.h"
#include "llvm/ADT/STLExtras.h"

namespace tile::ir {
namespace {

/// Two words in memory cost less than half as many programs again are worth (a ranking loss of 204 registers took 0.385
/// ms on an H200 and takes 0.334 with 168). Not where products need their registers for operands on their way: a
/// convolution of 198 took 0.107 ms and 0.131 with 168.
int mostSpilledBytes(const std::string& ptx) { return ptx.find("mma.") == std::string::npos ? kSpilledForAnother : 0; }

/// How many programs there would be; 0: no more than there are, or not without many spills.
int programsWithAnother(const std::string& ptx, int64_t sharedBytes, const Target& target, const Resources& resources) {
  constexpr int kFewWarps = 8, kMostPrograms = 3;
  const int threads = threadsOf(ptx);
  if (threads < target.lanes || resources.registers <= 0 || resources.spill_store_bytes > 0 ||
      ptx.find(".minnctapersm") != std::string::npos || ptx.find("bar.sync") == std::string::npos)
    return 0;
  const int programs = occupancyOf({threads, resources.registers, sharedBytes}, target).programs, more = programs + 1;
  if (programs < 1 || more > kMostPrograms || programs * threads > target.lanes * kFewWarps) return 0;
  const int fewer = static_cast<int>(target.registersPerSm) / (more * threads) / kRegisterStep * kRegisterStep;
  if (occupancyOf({threads, fewer, sharedBytes}, target).programs < more) return 0;
  const int registers = (resources.registers + kRegisterStep - 1) / kRegisterStep * kRegisterStep;
  return 4 * registers > 5 * fewer ? 0 : more;  // it would spill
}

bool repeatsProducts(const std::string& cubin, const std::string& entry, const Target& target) {
  const auto code = readSass(cubin, entry, target.sm);
  return !code || llvm::any_of(code->loops, [](const SassLoop& loop) { return loop.counts.warpgroupProducts() > 0; });
}

/// The assembler's log with a word on why there are waits, instead of its warnings of them.
std::string explained(const std::string& log, int programs) {
  std::istringstream lines(log);
  std::string out;
  for (std::string line; std::getline(lines, line);)
    if (line.find("(C75") == std::string::npos) out += line + "\n";
  return out + "tile: products, none of them in a loop, wait for each other, so that a multiprocessor has " +
         std::to_string(programs) + " programs instead of " + std::to_string(programs - 1) + "\n";
}

}  // namespace

bool mayHaveAnotherProgram(const std::string& ptx, int64_t sharedBytes, const Target& target,
                           const Resources& resources) {
  return programsWithAnother(ptx, sharedBytes, target, resources) > 0;
}

std::optional<std::string> withAnotherProgram(const std::string& ptx, int64_t sharedBytes, const Target& target,
                                              const CompileOptions& options, Resources& resources) {
  const int more = programsWithAnother(ptx, sharedBytes, target, resources);
  if (!more) return std::nullopt;
  Resources after;
  Result<std::string> cubin =
      tryPtxas(withDirective(ptx, "minnctapersm " + std::to_string(more)), target, options, after);
  if (!cubin || std::max(after.spill_store_bytes, after.spill_load_bytes) > mostSpilledBytes(ptx)) return std::nullopt;
  if (serialises(after) && !serialises(resources)) {
    if (repeatsProducts(*cubin, entryOf(ptx), target)) return std::nullopt;
    after.log = explained(after.log, more);
  }
  resources = std::move(after);
  return std::move(*cubin);
}

}  // namespace tile::ir
