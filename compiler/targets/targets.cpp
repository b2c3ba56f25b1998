// targets.cpp - the visible list of targets. NVIDIA rows hold the documented limits of each compute capability; the
// host row asks the CPU it runs on.
#include "compiler/targets/host.h"
#include "compiler/targets/target.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "runtime/spelling.h"

namespace tile::ir {
namespace {

struct NvidiaRow {
  const char* name;
  int sm;
  uint32_t sharedKiB;    ///< opt-in limit per block
  const char*
      features;  ///< PTX ISA: 8.1 is what drivers since CUDA 12.1 accept, 8.4 (CUDA 12.4) the first with products of f8
};
constexpr NvidiaRow kNvidia[] = {
    {"sm_80", 80, 163, "+ptx81"}, {"sm_86", 86, 99, "+ptx81"},  {"sm_87", 87, 163, "+ptx81"},
    {"sm_89", 89, 99, "+ptx84"},  {"sm_90", 90, 227, "+ptx84"}, {"sm_90a", 90, 227, "+ptx84"},
};

Target nvidiaTarget(const NvidiaRow& row) {
  Target t;
  t.name = row.name;
  t.backend = Backend::nvptx;
  t.sm = row.sm;
  t.features = row.features;
  t.maxSharedBytes = row.sharedKiB * 1024;
  t.atomicBytes = row.sm >= 90 ? 16 : 4;
  t.hasAsyncCopy = t.hasMma = true;  // everything since sm_80
  t.hasWgmma = t.hasTma = t.name == "sm_90a";
  return t;
}

/// This machine's features as LLVM spells them, on top of what its CPU name implies: a virtual machine may hide some.
std::string thisMachineFeatures() {
  std::string out;
  const bool hasMatrixUnit = requestMatrixUnit();
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    const bool has = feature.second && (hasMatrixUnit || !feature.first().starts_with("amx"));
    out += (out.empty() ? "" : ",") + std::string(has ? "+" : "-") + feature.first().str();
  }
  return out;
}

Result<Target> hostTarget(const std::string& name, std::string cpu, const std::string& features) {
  auto probe = hostSubtarget("", "");
  if (!probe)
    return Error{ErrorKind::compile, "target '" + name + "': this build generates no code for this machine's CPU", {}};
  if (!probe->isCPUStringValid(cpu)) {
    std::vector<std::string> known;
    for (const llvm::SubtargetSubTypeKV& row : probe->getAllProcessorDescriptions()) known.push_back(row.Key);
    std::string near = nearest_name(cpu, known);
    return Error{ErrorKind::user,
                 "unknown CPU '" + cpu + "' in target '" + name + "'" +
                     (near.empty() ? "" : "; did you mean 'host:" + near + "'?") +
                     " (e.g. host:x86-64, host:x86-64-v3, host:znver4)",
                 {}};
  }
  auto subtarget = hostSubtarget(cpu, features);
  Target t;
  t.name = name;
  t.backend = Backend::host;
  t.lanes = 1;
  t.maxThreads = 1;
  t.cpu = cpu;
  t.features = features;
  const bool avx = subtarget->checkFeatures("+avx"), avx512 = subtarget->checkFeatures("+avx512f,+avx512vl,+avx512bw");
  t.vectorBytes = avx512 ? 64 : avx ? 32 : 16;
  t.vectorRegisters = avx512 ? 32 : 16;
  return t;
}

}  // namespace

std::vector<std::string> targetNames() {
  std::vector<std::string> names;
  for (const NvidiaRow& row : kNvidia) names.push_back(row.name);
  names.push_back("host");
  names.push_back("host:<cpu>");
  return names;
}

Result<Target> lookupTarget(const std::string& name) {
  for (const NvidiaRow& row : kNvidia)
    if (name == row.name) return nvidiaTarget(row);
  if (name == "host") {
    // Probing the CPU takes long enough to show in a launch; the answer never changes.
    static const Result<Target> host = hostTarget("host", llvm::sys::getHostCPUName().str(), thisMachineFeatures());
    return host;
  }
  if (name.starts_with("host:")) return hostTarget(name, name.substr(5), "");
  return Error{ErrorKind::user, unknown_name("target", name, targetNames()), {}};
}

}  // namespace tile::ir
