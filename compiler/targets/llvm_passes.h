// llvm_passes.h - LLVM's optimiser with a list of passes of our own, for both back ends.
#pragma once
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Error.h"

namespace tile::ir {

/// Function passes in order, with the analyses they ask for. Used once.
class LlvmPasses {
 public:
  explicit LlvmPasses(llvm::TargetMachine& machine) : builder_(&machine) {
    builder_.registerModuleAnalyses(modules_);
    builder_.registerCGSCCAnalyses(callGraph_);
    builder_.registerFunctionAnalyses(functions_);
    builder_.registerLoopAnalyses(loops_);
    builder_.crossRegisterProxies(loops_, functions_, callGraph_, modules_);
  }

  /// By the names that `opt` knows: "sroa,instcombine".
  llvm::Error add(llvm::StringRef names) { return builder_.parsePassPipeline(passes_, names); }
  template <class Pass>
  void addPass(Pass pass) {
    passes_.addPass(std::move(pass));
  }
  void run(llvm::Module& module) {
    for (llvm::Function& f : module)
      if (!f.isDeclaration()) passes_.run(f, functions_);
  }

 private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager callGraph_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
  llvm::FunctionPassManager passes_;
};

}  // namespace tile::ir
