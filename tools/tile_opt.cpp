// tile_opt.cpp - mlir-opt for the tile dialect: every pass of the compiler and the general ones it uses, one flag each.
// Passes that depend on the machine ask for --tile-target (default sm_80) and the other --tile-* options below.
// -tile-emit=as=<llvm|ptx|cubin>, after the last GPU pass, prints the code of each kernel: IR written by hand can start anywhere.
#include <cstdio>
#include <string>
#include <vector>

#include "compiler/abi_params.h"
#include "compiler/compiler.h"
#include "compiler/gpu/gpu.h"
#include "compiler/host/host.h"
#include "compiler/targets/nvptx.h"
#include "compiler/transforms/transforms.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

namespace {

llvm::cl::opt<std::string> targetName("tile-target", llvm::cl::init("sm_80"), llvm::cl::desc("machine the passes work for"));
llvm::cl::opt<int> numWarps("tile-warps", llvm::cl::init(0), llvm::cl::desc("warps per program (0: planner's choice)"));
llvm::cl::opt<int> stages("tile-stages", llvm::cl::init(0), llvm::cl::desc("default pipeline stages (0: planner's choice)"));

llvm::cl::opt<bool> fewPrograms("tile-few-programs", llvm::cl::init(false),
                                llvm::cl::desc("for launches of at most one program per multiprocessor"));
llvm::cl::opt<bool> registersInFlight("tile-registers-in-flight", llvm::cl::init(true),
                                      llvm::cl::desc("products of the iteration before may read operands in registers"));

/// Asked when a pass is made, which is after the command line is parsed.
const tile::ir::Target& target() {
  static const tile::ir::Target chosen = [] {
    auto found = tile::ir::lookupTarget(targetName);
    if (found) return *found;
    std::fputs(found.error().to_string().c_str(), stderr);
    std::exit(2);
  }();
  return chosen;
}

const tile::ir::CompileOptions& options() {
  static const tile::ir::CompileOptions chosen = [] {
    tile::ir::CompileOptions o;
    o.numWarps = numWarps;
    o.defaultStages = stages;
    o.fewPrograms = fewPrograms;
    o.registerOperandsInFlight = registersInFlight;
    return o;
  }();
  return chosen;
}

/// What the launcher has to know about hidden parameters.
void printHidden(llvm::raw_ostream& out, const tile::KernelBinary& binary) {
  out << "// threads " << binary.threads << ", shared bytes " << binary.shared_bytes;
  if (binary.persistent) out << ", persistent";
  if (binary.uses_tickets) out << ", tickets";
  out << "\n";
  for (const tile::TensorMapInfo& map : binary.tensor_maps) {
    out << "// tensor map of parameter " << map.param << ": dims";
    for (int i = 0; i < map.rank; ++i) out << " " << int(map.dims[i]);
    out << ", box";
    for (int i = 0; i < map.rank; ++i) out << " " << map.box[i];
    out << ", swizzle " << int(map.swizzle) << (map.tf32 ? ", tf32" : "") << (map.remainder ? ", remainder" : "")
        << "\n";
  }
}

/// Prints the kernel as the option says. Expects what the GPU passes leave behind.
class EmitPass : public mlir::PassWrapper<EmitPass, mlir::OperationPass<mlir::func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitPass)
  EmitPass() = default;
  EmitPass(const EmitPass& other) : PassWrapper(other) {}
  llvm::StringRef getArgument() const override { return "tile-emit"; }
  llvm::StringRef getDescription() const override { return "print the code of the kernel: llvm, ptx or (the log of) cubin"; }

  void runOnOperation() override {
    const auto& machine = target();
    tile::KernelBinary binary;
    auto params = tile::ir::abiParams(getOperation());
    if (mlir::failed(params)) return signalPassFailure();
    binary.params = std::move(*params);
    llvm::LLVMContext context;
    auto module = tile::ir::emitGpu(getOperation(), machine, options(), context, binary);
    if (!module) return signalPassFailure();
    printHidden(llvm::outs(), binary);
    if (form == "llvm") {
      module->print(llvm::outs(), nullptr);
      return;
    }
    auto ptx = tile::ir::assemblePtx(*module, machine, options());
    if (!ptx) return fail(ptx.error());
    if (form == "ptx") {
      llvm::outs() << *ptx;
      return;
    }
    auto cubin = tile::ir::runPtxas(*ptx, machine, options(), binary.resources);
    if (!cubin) return fail(cubin.error());
    llvm::outs() << binary.resources.log;
  }

 private:
  void fail(const tile::Error& error) {
    getOperation().emitError(error.to_string());
    signalPassFailure();
  }
  Option<std::string> form{*this, "as", llvm::cl::init("ptx"), llvm::cl::desc("llvm, ptx or cubin")};
};

void registerPipeline(const char* name, const char* description, void (*build)(mlir::OpPassManager&)) {
  mlir::registerPassPipeline(
      name, description,
      [build](mlir::OpPassManager& passes, llvm::StringRef, llvm::function_ref<mlir::LogicalResult(const llvm::Twine&)>) {
        build(passes.nest<mlir::func::FuncOp>());
        return mlir::success();
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions&)>) {});
}

}  // namespace

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  tile::ir::registerDialects(registry);
  mlir::registerTransformsPasses();  // canonicalize, cse, loop-invariant-code-motion ...
  tile::ir::registerTilePasses();
  tile::ir::registerGpuPasses(target, options);
  tile::ir::registerHostPasses();
  mlir::PassRegistration<EmitPass>();
  registerPipeline("tile-pipeline", "the tile stage", [](mlir::OpPassManager& p) { tile::ir::addTilePasses(p); });
  registerPipeline("tile-gpu-pipeline", "the GPU passes after the tile stage",
                   [](mlir::OpPassManager& p) { tile::ir::addGpuPasses(p, target(), options()); });
  registerPipeline("tile-host-pipeline", "the host passes after the tile stage",
                   [](mlir::OpPassManager& p) { tile::ir::addHostPasses(p, target(), options()); });
  // Functions one after the other: tile-emit prints as it goes, and tests read what it prints in their order.
  std::vector<char*> arguments(argv, argv + argc);
  std::string alone = "--mlir-disable-threading";
  arguments.push_back(alone.data());
  return mlir::asMainReturnCode(mlir::MlirOptMain(static_cast<int>(arguments.size()), arguments.data(),
                                                  "tile-opt: runs passes over tile IR\n", registry));
}
