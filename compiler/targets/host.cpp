// host.cpp - LLVM IR to a relocatable object for the host target.
#include "compiler/targets/host.h"

#include <mutex>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "compiler/targets/known_divisors.h"
#include "compiler/targets/llvm_passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace tile::ir {

namespace {

/// LLVM's target of this machine, registered. Null where this LLVM was built for another host.
const llvm::Target* hostTarget(const llvm::Triple& triple, std::string& error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    // CodeGenPrepare goes over a whole function again after every change, or, in functions of more blocks than this,
    // over what changed: 2000 loads of numbers took it 2.3 s, and take .03 s.
    auto& options = llvm::cl::getRegisteredOptions();
    if (auto it = options.find("cgpp-huge-func"); it != options.end())
      it->second->addOccurrence(0, "cgpp-huge-func", "0");
  });
  return llvm::TargetRegistry::lookupTarget(triple, error);
}

std::unique_ptr<llvm::TargetMachine> machineFor(const Target& target, std::string& error) {
  const llvm::Triple triple(llvm::sys::getProcessTriple());
  const llvm::Target* x86 = hostTarget(triple, error);
  if (!x86) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // a*b+c rounds twice, on every CPU the same
  return std::unique_ptr<llvm::TargetMachine>(x86->createTargetMachine(triple, target.cpu, target.features, options,
                                                                       llvm::Reloc::PIC_, std::nullopt,
                                                                       llvm::CodeGenOptLevel::Default, /*JIT=*/true));
}

/// The IR arrives with explicit vectors, loops of the right size and few redundant values: this short list does what
/// the default O3 list does to it in a tenth of the time.
constexpr const char* kPasses =
    "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,loop-mssa(loop-rotate,licm),"
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg";

llvm::Error optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  LlvmPasses passes(machine);
  if (llvm::Error error = passes.add(kPasses)) return error;
  passes.addPass(KnownDivisors(/*forHost=*/true));
  passes.run(module);
  return llvm::Error::success();
}

Result<std::string> generate(llvm::Module& module, const Target& target, llvm::CodeGenFileType kind) {
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = machineFor(target, error);
  if (!machine) return Error{ErrorKind::compile, "no code generator for " + target.name + ": " + error, {}};
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty()) f.addFnAttr("target-features", target.features);
    f.addFnAttr("prefer-vector-width", std::to_string(target.vectorBytes * 8));
  }
  if (llvm::Error problem = optimise(module, *machine))
    return Error{ErrorKind::internal, "the host optimiser: " + llvm::toString(std::move(problem)), {}};

  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, out, nullptr, kind))
    return Error{ErrorKind::internal, "the code generator of " + target.name + " cannot write this kind of file", {}};
  codegen.run(module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace

std::unique_ptr<llvm::MCSubtargetInfo> hostSubtarget(const std::string& cpu, const std::string& features) {
  const llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target* x86 = hostTarget(triple, error);
  if (!x86) return nullptr;
  return std::unique_ptr<llvm::MCSubtargetInfo>(x86->createMCSubtargetInfo(triple, cpu, features));
}

bool requestMatrixUnit() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

HostFeatures hostFeatures(const Target& target) {
  static std::mutex mutex;
  static std::map<std::string, HostFeatures> known;
  std::lock_guard lock(mutex);
  auto [it, fresh] = known.try_emplace(target.cpu + "/" + target.features);
  if (fresh) {
    std::string error;
    if (auto machine = machineFor(target, error)) {
      const llvm::MCSubtargetInfo* cpu = machine->getMCSubtargetInfo();
      it->second = {.fma = cpu->checkFeatures("+fma"),
                    .f16c = cpu->checkFeatures("+f16c"),
                    .powersOfTwo = cpu->checkFeatures("+avx512dq") && cpu->checkFeatures("+avx512vl"),
                    .amxBf16 = cpu->checkFeatures("+amx-bf16") && cpu->checkFeatures("+avx512bw"),
                    .amxInt8 = cpu->checkFeatures("+amx-int8") && cpu->checkFeatures("+avx512bw")};
    }
  }
  return it->second;
}

Result<std::string> emitObject(llvm::Module& module, const Target& target, const CompileOptions&) {
  return generate(module, target, llvm::CodeGenFileType::ObjectFile);
}

Result<std::string> emitAssembly(llvm::Module& module, const Target& target, const CompileOptions&) {
  return generate(module, target, llvm::CodeGenFileType::AssemblyFile);
}

}  // namespace tile::ir
