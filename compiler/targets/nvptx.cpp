// nvptx.cpp - LLVM IR to PTX: the optimisation pipeline and the NVPTX code generator.
#include "compiler/targets/nvptx.h"

#include <mutex>

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tile::ir {
namespace {

const llvm::Triple& nvptxTriple() {
  static const llvm::Triple triple("nvptx64-nvidia-cuda");
  return triple;
}

/// LLVM's options and target tables are global to the process: touched once, before the first target machine.
void initializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // 32-bit shared, local and const pointers: half the registers for shared-memory addresses. There is no API for it,
    // and parsing a command line would reset options a user's own LLVM set.
    auto& options = llvm::cl::getRegisteredOptions();
    if (auto it = options.find("nvptx-short-ptr"); it != options.end())
      it->second->addOccurrence(0, "nvptx-short-ptr", "true");
  });
}

std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const Target& target) {
  initializeOnce();
  std::string error;
  const llvm::Target* nvptx = llvm::TargetRegistry::lookupTarget(nvptxTriple(), error);
  if (!nvptx) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;  // a*b+c is one fma, as nvcc does
  return std::unique_ptr<llvm::TargetMachine>(nvptx->createTargetMachine(nvptxTriple(), target.name, target.features,
                                                                         options, llvm::Reloc::PIC_, std::nullopt,
                                                                         llvm::CodeGenOptLevel::Aggressive));
}

/// The standard O3 pipeline without what only costs time or registers on a GPU: code arrives unrolled to the shape of the
/// tile, threads are the vectors, and loops that should unroll carry a hint.
void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;  // hinted loops still unroll
  tuning.LoopInterleaving = false;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

}  // namespace

void setNvptxTarget(llvm::Module& module, const Target& target) {
  module.setTargetTriple(nvptxTriple());
  if (auto machine = makeTargetMachine(target)) module.setDataLayout(machine->createDataLayout());
}

Result<std::string> assemblePtx(llvm::Module& module, const Target& target, const CompileOptions& options) {
  auto machine = makeTargetMachine(target);
  if (!machine) return Error{ErrorKind::internal, "this build of LLVM has no NVPTX target", {}};
  module.setTargetTriple(nvptxTriple());
  module.setDataLayout(machine->createDataLayout());
  if (options.fastMath)  // flush denormals: single-instruction exp2, division and square roots
    for (llvm::Function& f : module)
      if (!f.isDeclaration()) f.addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign");

  std::string problems;
  llvm::raw_string_ostream problemStream(problems);
  if (options.verifyEach && llvm::verifyModule(module, &problemStream))
    return Error{ErrorKind::internal, "the LLVM IR made for " + target.name + " is not valid: " + problems, {}};

  optimize(module, *machine);

  llvm::SmallVector<char, 0> ptx;
  llvm::raw_svector_ostream out(ptx);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, out, nullptr, llvm::CodeGenFileType::AssemblyFile, !options.verifyEach))
    return Error{ErrorKind::internal, "LLVM cannot emit PTX text", {}};
  codegen.run(module);
  return std::string(ptx.begin(), ptx.end());
}

}  // namespace tile::ir
