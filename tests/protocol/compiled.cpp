// compiled.cpp - runs the tile and GPU passes with an ear at three places.
#include "tests/protocol/compiled.h"

#include <stdexcept>

#include "compiler/gpu/gpu.h"
#include "compiler/transforms/transforms.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

namespace tile::ir::protocol {
using namespace mlir;

namespace {

class Listener : public PassInstrumentation {
 public:
  Listener(Compiled& out, ModuleOp module) : out_(out), module_(module) {}
  void runBeforePass(Pass* pass, Operation*) override {
    if (pass->getArgument() == "tile-specialize") out_.plain = module_.clone();
  }
  void runAfterPass(Pass* pass, Operation*) override {
    if (pass->getArgument() == "tile-specialize") out_.specialized = module_.clone();
    if (pass->getArgument() == "tile-hand-scalars") out_.waited = module_.clone();
  }

 private:
  Compiled& out_;
  ModuleOp module_;
};

}  // namespace

func::FuncOp functionOf(ModuleOp module) { return *module.getOps<func::FuncOp>().begin(); }

bool Compiled::hasRoles() const {
  return specialized && functionOf(const_cast<OwningOpRef<ModuleOp>&>(specialized).get())
                            .walk([](SpecializeOp) { return WalkResult::interrupt(); })
                            .wasInterrupted();
}

Compiled compile(const std::string& text) {
  Compiled out;
  DialectRegistry registry;
  registerDialects(registry);
  out.context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  std::string errors;
  ScopedDiagnosticHandler handler(out.context.get(), [&](mlir::Diagnostic& diagnostic) {
    std::string& to = diagnostic.getSeverity() == DiagnosticSeverity::Error ? errors : out.remarks;
    to += diagnostic.str() + "\n";
    return success();
  });
  auto module = parseSourceString<ModuleOp>(text, out.context.get());
  if (!module) throw std::runtime_error("does not parse: " + errors + text);
  auto target = lookupTarget("sm_90a");
  CompileOptions options;
  PassManager passes(out.context.get());
  passes.addInstrumentation(std::make_unique<Listener>(out, *module));
  OpPassManager& nested = passes.nest<func::FuncOp>();
  addTilePasses(nested);
  addGpuPasses(nested, *target, options);
  if (failed(passes.run(*module))) throw std::runtime_error("a pass failed: " + errors);
  return out;
}

}  // namespace tile::ir::protocol
