// another_program.cpp - code whose registers leave room for few warps on a multiprocessor gets another try with a bound
// that leaves room for one more program: ptxas takes what it may, and seldom needs the last tenth of it. Only where
// threads wait for each other at barriers, since other programs compute meanwhile. Code without barriers hides
// its latencies by the registers it has (a docking kernel of 187 took 1.6 times as long with 168).
#include "compiler/targets/nvptx.h"

namespace tile::ir {

std::optional<std::string> withAnotherProgram(const std::string& ptx, int64_t sharedBytes, const Target& target,
                                              const CompileOptions& options, Resources& resources) {
  constexpr int kRegisters = 65536, kGranule = 8, kFewWarps = 8, kMostPrograms = 3, kReservedShared = 1024;
  const std::string directive = ".reqntid ";
  const size_t at = ptx.find(directive);
  if (at == std::string::npos || ptx.find(".minnctapersm") != std::string::npos || resources.spill_store_bytes > 0 ||
      ptx.find("bar.sync") == std::string::npos)
    return std::nullopt;
  const int threads = std::atoi(ptx.c_str() + at + directive.size());
  if (threads < 32 || resources.registers <= 0) return std::nullopt;
  const int granules = (static_cast<int>(resources.registers) + kGranule - 1) / kGranule * kGranule;
  const int programs = kRegisters / (granules * threads), more = programs + 1;
  const int fewer = kRegisters / (more * threads) / kGranule * kGranule;
  if (programs < 1 || more > kMostPrograms || programs * threads > 32 * kFewWarps) return std::nullopt;
  if (more * (sharedBytes + kReservedShared) > target.maxSharedBytes + kReservedShared) return std::nullopt;
  if (4 * granules > 5 * fewer) return std::nullopt;  // it would spill
  std::string bound = ptx;
  bound.insert(at, ".minnctapersm " + std::to_string(more) + "\n");
  Resources after;
  CompileOptions quiet = options;
  quiet.onRemark = nullptr;
  Result<std::string> cubin = runPtxas(bound, target, quiet, after);
  if (!cubin || after.spill_store_bytes > 0 || after.spill_load_bytes > 0) return std::nullopt;
  resources = std::move(after);
  return std::move(*cubin);
}

}  // namespace tile::ir
