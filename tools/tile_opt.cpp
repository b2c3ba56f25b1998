// tile_opt.cpp - mlir-opt for the tile dialect: every pass of the compiler and the general ones it uses, one flag each.
// Passes that depend on the machine ask for --tile-target (default sm_80) and the other --tile-* options below.
#include <cstdio>

#include "compiler/compiler.h"
#include "compiler/gpu/gpu.h"
#include "compiler/host/host.h"
#include "compiler/transforms/transforms.h"
#include "llvm/Support/CommandLine.h"
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
    return o;
  }();
  return chosen;
}

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
  registerPipeline("tile-pipeline", "the tile stage", [](mlir::OpPassManager& p) { tile::ir::addTilePasses(p); });
  registerPipeline("tile-gpu-pipeline", "the GPU passes after the tile stage",
                   [](mlir::OpPassManager& p) { tile::ir::addGpuPasses(p, target(), options()); });
  registerPipeline("tile-host-pipeline", "the host passes after the tile stage",
                   [](mlir::OpPassManager& p) { tile::ir::addHostPasses(p, target(), options()); });
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "tile-opt: runs passes over tile IR\n", registry));
}
