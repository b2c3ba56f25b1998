// doctor.cpp - `tilec doctor`: what the compiler and the runtime find on this machine, and where.
#include <fmt/format.h>

#include <filesystem>

#include "compiler/targets/nvptx.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "runtime/cache.h"
#include "runtime/device.h"
#include "runtime/env.h"
#include "tools/tilec/commands.h"

namespace tilec {
namespace {

/// The line of `ptxas --version` with the release; why not, when it does not run.
std::string ptxasVersion(const std::string& path) {
  llvm::SmallString<128> log;
  if (llvm::sys::fs::createTemporaryFile("tile", "version", log)) return "cannot make a temporary file";
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  std::string why;
  const int code = llvm::sys::ExecuteAndWait(path, {path, "--version"}, std::nullopt, redirects, 0, 0, &why);
  std::string text;
  if (auto buffer = llvm::MemoryBuffer::getFile(log)) text = (*buffer)->getBuffer().str();
  llvm::sys::fs::remove(log);
  if (code != 0) return "does not run: " + (why.empty() ? text : why);
  const size_t at = text.find("release");
  return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
}

void row(const std::string& name, const std::string& value) { fmt::print("{:<24}{}\n", name, value); }

void devices() {
  for (const std::string& name : tile::device_names()) {
    auto device = tile::open_device(name);
    if (!device) {
      row(name, "cannot be opened: " + device.error().message);
      continue;
    }
    const tile::DeviceProperties& p = (*device)->properties();
    row(name, fmt::format("{}, target {}{}, {} {}, {:.1f} GiB", p.model, p.target.empty() ? "none" : p.target,
                          p.needs_ptx ? " (as PTX)" : "", p.multiprocessors, p.sm ? "SMs" : "threads",
                          static_cast<double>(p.memory_bytes) / (1 << 30)));
  }
  if (tile::device_names().size() == 1) {
    auto cuda = tile::open_device("cuda:0");
    row("cuda:0", cuda ? "" : cuda.error().message);
  }
}

}  // namespace

int doctor() {
  row("tile", TILE_VERSION ", LLVM " LLVM_VERSION_STRING);
  auto sm = tile::ir::lookupTarget("sm_90a");
  if (sm) row("compiler", tile::ir::compilerFingerprint(*sm, {}));
  const std::string ptxas = tile::ir::findPtxas({});
  row("ptxas", ptxas.empty() ? "not found: the driver assembles PTX when a kernel is loaded" : ptxas + ", " + ptxasVersion(ptxas));
  for (const std::string& name : tile::ir::targetNames()) {
    auto target = tile::ir::lookupTarget(name);
    if (target && name == "host") row("host CPU", fmt::format("{}, {}-byte vectors", target->cpu, target->vectorBytes));
  }
  fmt::print("\ndevices\n");
  devices();

  fmt::print("\ncache\n");
  const tile::DiskCache& cache = tile::DiskCache::standard();
  const auto usage = cache.usage();
  const std::string problem = cache.problem();
  row("directory", cache.options().directory + (problem.empty() ? "" : fmt::format(" (nothing is stored: {})", problem)));
  row("entries", fmt::format("{} in {:.1f} MiB (limit {} MiB)", usage.entries, static_cast<double>(usage.bytes) / (1 << 20), cache.options().max_bytes >> 20));

  fmt::print("\nenvironment\n");
  for (const tile::EnvVariable& variable : tile::env_variables()) {
    auto value = tile::env_text(variable.id);
    row(variable.name, value ? *value : fmt::format("(unset: {})", *variable.default_text ? variable.default_text : "nothing"));
  }
  return kOk;
}

}  // namespace tilec
