// compiler.cpp - the entry points around the pipeline: dialects, textual input, and what identifies this compiler.
#include "compiler/compiler.h"

#include "compiler/abi_params.h"
#include "compiler/build_id.h"
#include "compiler/check_kernel.h"
#include "compiler/diagnostics.h"
#include "compiler/dialect/dialect.h"
#include "compiler/targets/nvptx.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace tile::ir {

void registerDialects(mlir::DialectRegistry& registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::func::FuncDialect,
                  TileDialect>();
}

namespace {

/// A context of its own for each text: nothing is shared between threads.
struct ParsedText {
  mlir::DialectRegistry registry;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

Result<ParsedText> parse(const std::string& text, const std::string& fileName,
                         const std::function<void(const Diagnostic&)>& onRemark) {
  ParsedText parsed;
  registerDialects(parsed.registry);
  parsed.context = std::make_unique<mlir::MLIRContext>(parsed.registry, mlir::MLIRContext::Threading::DISABLED);
  parsed.context->allowUnregisteredDialects();  // foreign operations are refused by name, not as a parse error
  DiagnosticCollector diagnostics(parsed.context.get(), onRemark);
  parsed.module = mlir::parseSourceString<mlir::ModuleOp>(text, parsed.context.get(), fileName);
  if (!parsed.module) return diagnostics.error(ErrorKind::user, "cannot read " + fileName);
  return parsed;
}

}  // namespace

Result<KernelBinary> compileText(const std::string& text, const std::string& fileName, const Target& target,
                                 const CompileOptions& options) {
  auto parsed = parse(text, fileName, options.onRemark);
  if (!parsed) return parsed.error();
  return compileKernel(*parsed->module, target, options);
}

Status checkText(const std::string& text, const std::string& fileName) {
  auto parsed = parse(text, fileName, {});
  if (!parsed) return parsed.error();
  DiagnosticCollector diagnostics(parsed->context.get(), {});
  auto kernel = findKernel(*parsed->module);
  if (mlir::failed(kernel) || mlir::failed(abiParams(*kernel)))
    return diagnostics.error(ErrorKind::user, fileName + " is not a kernel");
  return ok();
}

std::string compilerFingerprint(const Target& target, const CompileOptions& options) {
  std::string out = "tile " TILE_BUILD_ID " llvm " LLVM_VERSION_STRING " abi " + std::to_string(kAbiVersion);
  out += " target " + target.name + " cpu " + target.cpu + " features " + target.features;
  out += " warps " + std::to_string(options.numWarps) + " stages " + std::to_string(options.defaultStages);
  out += std::string(" lineinfo ") + (options.lineInfo ? "1" : "0") + " fast " + (options.fastMath ? "1" : "0");
  if (target.backend == Backend::nvptx) {
    // Size and time of the file stand for its version: asking ptxas itself costs a process per launch of the program.
    std::string ptxas = findPtxas(options);
    out += " ptxas " + (ptxas.empty() ? "none" : ptxas);
    llvm::sys::fs::file_status status;
    if (!ptxas.empty() && !llvm::sys::fs::status(ptxas, status))
      out += " " + std::to_string(status.getSize()) + " " +
             std::to_string(status.getLastModificationTime().time_since_epoch().count());
  }
  return out;
}

}  // namespace tile::ir
