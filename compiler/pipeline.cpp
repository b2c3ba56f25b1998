// pipeline.cpp - the compiler, top to bottom: tile IR -> tile stage -> a back end's passes -> LLVM IR -> bytes.
#include <chrono>

#include "compiler/abi_params.h"
#include "compiler/check_kernel.h"
#include "compiler/compiler.h"
#include "compiler/diagnostics.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/products.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/gpu.h"
#include "compiler/gpu/rings/register_plan.h"
#include "compiler/gpu/small_steps.h"
#include "compiler/host/host.h"
#include "compiler/other_choices.h"
#include "compiler/targets/host.h"
#include "compiler/targets/nvptx.h"
#include "compiler/transforms/transforms.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

namespace tile::ir {
namespace {

/// Stages inside a back end's passes: the pass (by its flag) after which the named stage is complete.
struct StageAfterPass {
  llvm::StringRef pass, stage;
};
constexpr StageAfterPass kStageAfterPass[] = {{"tile-stage", "pipelined"}, {"tile-assign-layouts", "layout"}};

std::string textOf(mlir::Operation* op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  op->print(out, mlir::OpPrintingFlags().enableDebugInfo(false).useLocalScope());
  return text;
}

std::string textOf(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

/// What the caller wants to see on the way: dumps and times.
class Observer {
 public:
  explicit Observer(const CompileOptions& options) : options_(options) {}

  bool wants(const std::string& stage) const {
    const StageSink* sink = options_.stages;
    return sink && sink->take && (!sink->wants || sink->wants(stage));
  }

  template <class Ir>
  void dump(const std::string& stage, Ir&& ir) const {
    if (!wants(stage)) return;
    const StageSink* sink = options_.stages;
    if constexpr (std::is_convertible_v<Ir, const std::string&>)
      sink->take(stage, ir);
    else
      sink->take(stage, textOf(ir));
  }

  /// Runs one step of the pipeline and reports its time.
  template <class Step>
  auto time(const std::string& stage, Step&& step) const {
    if (!options_.onTime) return step();
    auto start = std::chrono::steady_clock::now();
    auto result = step();
    options_.onTime(stage, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    return result;
  }

 private:
  const CompileOptions& options_;
};

/// Dumps the stages that lie between passes, and remembers which pass failed.
class StageInstrumentation : public mlir::PassInstrumentation {
 public:
  StageInstrumentation(const Observer& observer, mlir::ModuleOp module, std::string& failedPass)
      : observer_(observer), module_(module), failedPass_(failedPass) {}
  void runAfterPass(mlir::Pass* pass, mlir::Operation*) override {
    for (const StageAfterPass& row : kStageAfterPass)
      if (pass->getArgument() == row.pass) observer_.dump(row.stage.str(), module_.getOperation());
  }
  void runAfterPassFailed(mlir::Pass* pass, mlir::Operation*) override {
    if (failedPass_.empty() && !pass->getArgument().empty()) failedPass_ = pass->getArgument().str();
  }

 private:
  const Observer& observer_;
  mlir::ModuleOp module_;
  std::string& failedPass_;
};

/// Runs a list of function passes. Failure with diagnostics is a limit of the target; IR that no longer verifies, or a
/// failure nobody explained, is a bug of ours and carries the IR.
std::optional<Error> runPasses(mlir::ModuleOp module, const std::string& kernel, const Target& target,
                               const CompileOptions& options, const Observer& observer,
                               DiagnosticCollector& diagnostics, llvm::function_ref<void(mlir::OpPassManager&)> list) {
  mlir::PassManager passes(module->getContext());
  passes.enableVerifier(options.verifyEach);
  std::string failedPass;
  passes.addInstrumentation(std::make_unique<StageInstrumentation>(observer, module, failedPass));
  list(passes.nest<mlir::func::FuncOp>());
  if (mlir::succeeded(passes.run(module))) return std::nullopt;

  const std::string headline = "cannot compile kernel `" + kernel + "` for " + target.name;
  bool explained = diagnostics.hasErrors();
  if (explained && mlir::succeeded(mlir::verify(module))) return diagnostics.error(ErrorKind::compile, headline);
  Error error = diagnostics.error(
      ErrorKind::internal, headline + ": pass " + failedPass + " left IR that is not valid (a bug of the compiler)");
  error.diagnostics.push_back({Severity::note, "the IR at that point:\n" + textOf(module), "", 0, 0, {}});
  return error;
}

/// A back end's translation returned nothing.
Error translationError(const KernelBinary& binary, DiagnosticCollector& diagnostics, mlir::ModuleOp module) {
  const std::string headline = "cannot compile kernel `" + binary.entry + "` for " + binary.target;
  if (diagnostics.hasErrors()) return diagnostics.error(ErrorKind::compile, headline);
  Error error = diagnostics.error(
      ErrorKind::internal, headline + ": the translation to LLVM IR failed without saying why (a bug of the compiler)");
  error.diagnostics.push_back({Severity::note, "the IR at that point:\n" + textOf(module), "", 0, 0, {}});
  return error;
}

bool hasRoles(mlir::ModuleOp module) {
  return module.walk([](SpecializeOp) { return mlir::WalkResult::interrupt(); }).wasInterrupted();
}
bool hasRings(mlir::ModuleOp module) {
  return module
      .walk([](SmemAllocOp alloc) {
        return alloc.getResult().getType().isRing() ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// Behind the GPU passes: LLVM IR, PTX, and what the assembler makes of it.
Result<KernelBinary> assembleGpu(mlir::ModuleOp module, mlir::func::FuncOp kernel, KernelBinary binary,
                                 const Target& target, const CompileOptions& options, const Observer& observer,
                                 DiagnosticCollector& diagnostics) {
  const KernelBinary bare = binary;
  llvm::LLVMContext context, contextAgain;
  auto llvmModule = observer.time("llvm", [&] { return emitGpu(kernel, target, options, context, binary); });
  if (!llvmModule || diagnostics.hasErrors()) return translationError(binary, diagnostics, module);
  observer.dump("llvm", *llvmModule);

  auto ptx = observer.time("ptx", [&] { return assemblePtx(*llvmModule, target, options); });
  if (!ptx) return ptx.error();
  observer.dump("ptx", *ptx);

  if (findPtxas(options).empty()) {  // the driver compiles it
    binary.format = BinaryFormat::ptx;
    binary.bytes = std::move(*ptx);
    return binary;
  }
  auto cubin = observer.time("cubin", [&] { return runPtxas(*ptx, target, options, binary.resources); });
  if (!cubin) return cubin.error();
  auto emitted = [&] {  // the same module; LLVM's passes have rewritten the first one
    DiagnosticCollector quiet(module->getContext(), nullptr);
    KernelBinary same = bare;
    return emitGpu(kernel, target, options, contextAgain, same);
  };
  CompileOptions ofFew = options;
  ofFew.fewPrograms = true;
  binary.varies_with_grid |= mayLoadTogether(*ptx, *cubin, target, ofFew, binary.resources);
  auto together = [&] {
    return observer.time("together", [&] {
      return withLoadsTogether(*ptx, *cubin, binary.shared_bytes, target, options, binary.resources);
    });
  };
  std::optional<std::string> better = options.fewPrograms ? together() : std::nullopt;
  if (!better)
    better = observer.time("again", [&] { return assembleAgain(emitted, *ptx, target, options, binary.resources); });
  if (!better && options.fewPrograms) {  // another program would not come
    binary.varies_with_grid |= mayHaveAnotherProgram(*ptx, binary.shared_bytes, target, binary.resources) ||
                               mayHaveMoreWarps(*ptx, binary.shared_bytes, target, binary.resources);
  } else if (!better) {
    better = observer.time("another", [&] {
      return withAnotherProgram(*ptx, binary.shared_bytes, target, options, binary.resources);
    });
    binary.varies_with_grid |= better.has_value();
    if (!better) better = together();
    if (!better) {
      better = observer.time("more warps", [&] {
        return withMoreWarps(*ptx, *cubin, binary.shared_bytes, target, options, binary.resources);
      });
      binary.varies_with_grid |= better.has_value();
    }
    if (!better)
      better = observer.time("same warps", [&] {
        return withSameWarps(*ptx, *cubin, binary.shared_bytes, target, options, binary.resources);
      });
  }
  if (better) *cubin = std::move(*better);
  observer.dump("cubin", *cubin);
  binary.format = BinaryFormat::cubin;
  binary.bytes = std::move(*cubin);
  return binary;
}

/// Whether one warpgroup of consumers has the multiprocessor for itself, of a number of warps that nobody asked for,
/// and two could divide the rows of all products: what a thread holds turned out to leave no room for a second program,
/// and tensor cores would pause whenever the one computes something else.
bool isLoneByOurChoice(mlir::func::FuncOp kernel, mlir::ModuleOp given, const CompileOptions& options) {
  constexpr int64_t kRowsOfTwo = 128;
  if (options.numWarps || warpsOf(kernel) != 4 || (*findKernel(given))->hasAttr("tile.num_warps")) return false;
  bool isLone = false, fits = true;
  kernel.walk([&](SpecializeOp roles) { isLone = roles.getPrograms() == 1 && !kernel->hasAttr("tile.programs"); });
  if (!isLone) return false;
  kernel.walk([&](MmaOp product) {
    const int along = product.getWarpsM() == 4 ? 0 : 1;
    fits &= isWgmma(product.getEngine()) && product.getAcc().getType().getShape()[along] >= kRowsOfTwo;
  });
  return fits;
}

/// One way through the GPU passes, which rewrite the module, begun again from `given` where what came of a choice shows
/// that it was none.
class GpuPasses {
 public:
  GpuPasses(mlir::ModuleOp module, mlir::ModuleOp given, mlir::func::FuncOp kernel, const std::string& entry,
            const Target& target, const CompileOptions& options, const Observer& observer,
            DiagnosticCollector& diagnostics)
      : module_(module),
        given_(given),
        kernel_(kernel),
        entry_(entry),
        target_(target),
        options_(options),
        observer_(observer),
        diagnostics_(diagnostics) {}

  mlir::ModuleOp module() const { return module_; }
  mlir::func::FuncOp kernel() const { return kernel_; }

  /// With roles, rings keep their shared memory as long as the kernel runs; what conversions need beside them shows only
  /// when layouts are known. When that is too much, rings get so much less. Where that leaves them no two stages there
  /// is still the way without roles, and then one with as few stages as it takes, where nobody asked for more.
  std::optional<Error> run() {
    CompileOptions without = options_;
    auto error = runOnce(options_);
    auto again = [&](const char* why) {
      diagnostics_.forgetErrors();
      startAgain(why);
      return runOnce(without);
    };
    if (error && lacksMemory() && hasRoles(module_)) {
      without.reservedSharedBytes = neededBytes() - target_.maxSharedBytes;
      error = again("smaller rings: with all of their stages, what conversions need does not fit shared memory");
      without.reservedSharedBytes = 0;
      without.useTma = false;
    }
    if (error && lacksMemory() && hasRoles(module_))
      error = again("no producer warps: rings and conversions together do not fit shared memory (buffers of copies, and what "
                    "threads hand each other of tiles: smaller blocks or fewer stages would)");
    if (!error || !lacksMemory() || options_.defaultStages != 0 || !hasRings(module_)) return error;
    for (int stages : {3, 2, 1}) {
      without.defaultStages = stages;
      if (!again("fewer stages: rings and conversions together do not fit shared memory")) return std::nullopt;
    }
    return error;
  }

 private:
  void startAgain(const char* why) {
    spare_ = given_.clone();
    module_ = *spare_;
    kernel_ = *findKernel(module_);
    kernel_.emitRemark() << why;
  }

  /// Bytes of shared memory that the kernel turned out to need; 0: not known.
  int64_t neededBytes() {
    auto bytes = kernel_->getAttrOfType<mlir::IntegerAttr>(kSharedBytesAttr);
    return bytes ? bytes.getInt() : 0;
  }
  bool lacksMemory() { return neededBytes() > target_.maxSharedBytes; }

  std::optional<Error> runOnce(CompileOptions with) {
    with.registerOperandsInFlight = options_.registerOperandsInFlight.value_or(!findPtxas(options_).empty());
    auto run = [&](decltype(addGpuPasses)& list) {
      return runPasses(module_, entry_, target_, with, observer_, diagnostics_,
                       [&](mlir::OpPassManager& passes) { list(passes, target_, with); });
    };
    return observer_.time("gpu", [&] {
      auto error = run(addProductPasses);
      auto takeBoxesBack = [&] {
        if (error || !kernel_->hasAttr(kRaisedBoxesAttr) || hasRoles(module_)) return;
        with.raiseBoxes = false;
        startAgain("matrices stay gathered through pointers: without producer warps boxes of views are no better");
        error = run(addProductPasses);
      };
      takeBoxesBack();  // boxes are for producers: threads copy what they gather by pointers as well, or better
      if (!error && isLoneByOurChoice(kernel_, given_, with)) {
        const bool varies = kernel_->hasAttr(kVariesWithGridAttr);
        with.numWarps = 2 * warpsOf(kernel_);
        startAgain("8 warps: threads of four hold too much for a second program beside theirs");
        error = run(addProductPasses);
        takeBoxesBack();
        if (varies) kernel_->setAttr(kVariesWithGridAttr, mlir::UnitAttr::get(module_.getContext()));
      }
      if (error) return error;
      remarkOnRegisters();
      return run(addLayoutPasses);
    });
  }

  /// Of tiles that need registers twice over most lie in memory, and the assembler may take a minute to find that out:
  /// whoever asks for remarks hears of it before, with the line where most is alive.
  void remarkOnRegisters() {
    constexpr int kTimes = 2;
    const RegisterEstimate least = estimateRegisters(kernel_, warpsOf(kernel_, kUsualWarps), /*atLeast=*/true);
    if (least.registers > kTimes * target_.maxRegsPerThread)
      least.at->emitRemark() << "tiles alive here need about " << least.registers
                             << " registers of each thread, which has " << target_.maxRegsPerThread
                             << ": most will lie in memory, and compiling may take a minute; make tiles smaller, or "
                                "take more warps";
  }

  mlir::ModuleOp module_, given_;
  mlir::func::FuncOp kernel_;
  const std::string& entry_;
  const Target& target_;
  const CompileOptions& options_;
  const Observer& observer_;
  DiagnosticCollector& diagnostics_;
  mlir::OwningOpRef<mlir::ModuleOp> spare_;
};

/// GPU passes and the assembler. `given`: the module as it came, which the passes rewrite.
Result<KernelBinary> compileGpuOnce(mlir::ModuleOp module, mlir::ModuleOp given, mlir::func::FuncOp kernel,
                                    KernelBinary binary, const Target& target, const CompileOptions& options,
                                    const Observer& observer, DiagnosticCollector& diagnostics, Learnt& learnt) {
  const std::string entry = binary.entry;
  GpuPasses passes(module, given, kernel, entry, target, options, observer, diagnostics);
  if (auto error = passes.run()) return *error;
  learnt.fitsOneWarp = stepsFitOneWarp(passes.kernel(), target.lanes, options);
  learnt.isStraight = hasProduct(given) && !hasProductInLoop(given);
  learnt.isCrowded = passes.kernel()->hasAttr(kCrowdedAttr);
  binary.varies_with_grid = passes.kernel()->hasAttr(kVariesWithGridAttr);
  observer.dump("gpu", passes.module().getOperation());
  return assembleGpu(passes.module(), passes.kernel(), std::move(binary), target, options, observer, diagnostics);
}

/// Roles, and the number of warps where it was our choice, are chosen before anything is known of layouts and registers:
/// what came of it shows whether another choice had better be tried.
Result<KernelBinary> compileGpu(mlir::ModuleOp module, mlir::func::FuncOp kernel, KernelBinary binary,
                                const Target& target, const CompileOptions& options, const Observer& observer,
                                DiagnosticCollector& diagnostics) {
  mlir::OwningOpRef<mlir::ModuleOp> given = module.clone();
  Learnt learnt;
  std::vector<Diagnostic> saidOfFirst;  // by the assembler: nobody wants to hear of code that is not kept
  CompileOptions held = options;
  if (options.onRemark) held.onRemark = [&](const Diagnostic& d) { saidOfFirst.push_back(d); };
  auto say = [&](const std::vector<Diagnostic>& said) {
    for (const Diagnostic& d : said) options.onRemark(d);
  };
  auto first = compileGpuOnce(module, *given, kernel, binary, target, held, observer, diagnostics, learnt);
  const bool areWarpsOurs = !options.numWarps && !(*findKernel(*given))->hasAttr("tile.num_warps");
  std::vector<OtherChoice> choices;
  if (first) choices = otherChoices(*first, learnt, areWarpsOurs, target, options);
  for (const OtherChoice& choice : choices) {
    // What another try says and dumps counts only if it is taken.
    std::vector<std::pair<std::string, std::string>> stages;
    std::vector<Diagnostic> said;
    StageSink later{options.stages ? options.stages->wants : nullptr,
                    [&](const std::string& stage, const std::string& text) { stages.emplace_back(stage, text); }};
    CompileOptions with = choice.with;
    if (options.onRemark) with.onRemark = [&](const Diagnostic& d) { said.push_back(d); };
    if (options.stages) with.stages = &later;
    DiagnosticCollector quiet(module->getContext(), nullptr);
    mlir::OwningOpRef<mlir::ModuleOp> copy = given->clone();
    auto other = compileGpuOnce(*copy, *given, *findKernel(*copy), binary, target, with, Observer(with), quiet, learnt);
    if (!other || !choice.isTaken(*first, *other, target)) continue;
    other->varies_with_grid = first->varies_with_grid;  // a given number of warps does not
    for (const auto& [stage, text] : stages) observer.dump(stage, text);
    if (options.onRemark) {
      say(said);
      const SourcePlace at = sourcePlace(kernel.getLoc());
      options.onRemark({Severity::remark, choice.why(*first, *other, target), at.file, at.line, at.column, {}});
    }
    return other;
  }
  say(saidOfFirst);
  return first;
}

Result<KernelBinary> compileHost(mlir::ModuleOp module, mlir::func::FuncOp kernel, KernelBinary binary,
                                 const Target& target, const CompileOptions& options, const Observer& observer,
                                 DiagnosticCollector& diagnostics) {
  if (auto error = observer.time("cpu", [&] {
        return runPasses(module, binary.entry, target, options, observer, diagnostics,
                         [&](mlir::OpPassManager& passes) { addHostPasses(passes, target, options); });
      }))
    return *error;
  observer.dump("cpu", module.getOperation());

  llvm::LLVMContext context;
  auto llvmModule = observer.time("llvm", [&] { return emitHost(kernel, target, options, context, binary); });
  if (!llvmModule || diagnostics.hasErrors()) return translationError(binary, diagnostics, module);
  observer.dump("llvm", *llvmModule);

  if (observer.wants("asm")) {  // an object cannot be read back, so the text is generated beside it
    auto copy = llvm::CloneModule(*llvmModule);
    if (auto assembly = emitAssembly(*copy, target, options)) observer.dump("asm", *assembly);
  }
  auto object = observer.time("obj", [&] { return emitObject(*llvmModule, target, options); });
  if (!object) return object.error();
  observer.dump("obj", *object);
  binary.format = BinaryFormat::host_object;
  binary.bytes = std::move(*object);
  return binary;
}

/// What is wrong with the numbers a caller gave; kernels' own are checked while they are traced.
std::optional<Error> checkOptions(const CompileOptions& options) {
  const int warps = options.numWarps;
  if (warps != 0 && warps != 1 && warps != 2 && (warps < 4 || warps > 32 || warps % 4 != 0))
    return user_error("warps per program must be 1, 2 or a multiple of 4 up to 32 (0: the kernel's choice), found " +
                      std::to_string(warps));
  if (options.defaultStages < 0)
    return user_error("stages must not be negative, found " + std::to_string(options.defaultStages));
  return std::nullopt;
}

/// Where a kernel asks for producer warps (`specialize = always`), and what was said of them last. Whoever asks hears of
/// it if there are none: that is a mistake in the kernel, or a limit that its author does not know.
class AskedRoles {
 public:
  explicit AskedRoles(const CompileOptions& options) : options_(options) {}

  void find(mlir::ModuleOp module) {
    module.walk([&](mlir::scf::ForOp loop) {
      auto hint = loop->getAttrOfType<mlir::IntegerAttr>("tile.specialize");
      if (hint && hint.getInt() == 1) places_.push_back(sourcePlace(loop.getLoc()));
    });
  }

  /// For the collector of diagnostics: passes them on.
  void listen(const Diagnostic& d) {
    constexpr llvm::StringRef kNone = "no producer warps: ";
    if (llvm::StringRef(d.message).starts_with(kNone)) why_ = ": " + d.message.substr(kNone.size());
    if (options_.onRemark) options_.onRemark(d);
  }

  void warn(const Result<KernelBinary>& code, const Target& target) const {
    if (!options_.onRemark || !options_.useTma || !target.hasTma || !code || isOfRoles(*code)) return;
    for (const SourcePlace& at : places_)
      options_.onRemark({Severity::warning, "this loop asks for producer warps and gets none" + why_, at.file, at.line,
                         at.column, {}});
  }

 private:
  const CompileOptions& options_;
  std::vector<SourcePlace> places_;
  std::string why_;
};

}  // namespace

Result<KernelBinary> compileKernel(mlir::ModuleOp module, const Target& target, const CompileOptions& options) {
  if (auto error = checkOptions(options)) return *error;
  const Observer observer(options);
  AskedRoles asked(options);
  DiagnosticCollector diagnostics(module->getContext(), [&](const Diagnostic& d) { asked.listen(d); });
  observer.dump("traced", module.getOperation());

  if (mlir::failed(mlir::verify(module))) return diagnostics.error(ErrorKind::user, "the tile IR is not valid");
  auto kernel = findKernel(module);
  if (mlir::failed(kernel)) return diagnostics.error(ErrorKind::user, "the tile IR is not a kernel");

  KernelBinary binary;
  binary.target = target.name;
  binary.entry = kernel->getSymName().str();
  auto params = abiParams(*kernel);
  if (mlir::failed(params))
    return diagnostics.error(ErrorKind::user, "kernel `" + binary.entry + "` has parameters that cannot be passed");
  binary.params = std::move(*params);

  if (auto error = observer.time("tile", [&] {
        return runPasses(
            module, binary.entry, target, options, observer, diagnostics,
            [&](mlir::OpPassManager& passes) { addTilePasses(passes, /*forHost=*/target.backend != Backend::nvptx); });
      }))
    return *error;
  observer.dump("tile", module.getOperation());

  asked.find(module);
  auto backend = target.backend == Backend::nvptx ? compileGpu : compileHost;
  auto code = backend(module, *kernel, std::move(binary), target, options, observer, diagnostics);
  asked.warn(code, target);
  return code;
}

}  // namespace tile::ir
