// trace.cpp - one kernel body to one verified module: parameters and their promises in, symbol and hash out.
#include <fmt/format.h>

#include "dsl/tracing/emit_rules.h"
#include "dsl/tracing/ir_key.h"
#include "dsl/tracing/kernel_core.h"
#include "dsl/tracing/underway.h"
#include "mlir/IR/Verifier.h"

namespace tile::detail {
namespace {

/// Turns "BM=128, causal=true" into "BM128_causal1": what fits in a symbol and still reads well in a profiler.
std::string symbol_of(const KernelCore& core, const ConfigWords& config, const Hash128& hash) {
  std::string out = core.name;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "k_" + out;
  for (size_t i = 0; i < core.fields.size() && i < config.size(); ++i) {
    const ConfigField& f = core.fields[i];
    std::string value = describe_config({f}, {config[i]}, "");
    value = value.substr(value.find('=') + 1);
    if (f.kind == FieldKind::boolean) {
      if (config[i]) out += "_" + f.name;
      continue;
    }
    for (char& c : value)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = c == '-' ? 'm' : '_';
    if (out.size() < 160) out += "_" + f.name + value;
  }
  return out + "_" + hash.hex().substr(0, 8);
}

mlir::Type param_type(mlir::MLIRContext* ctx, const ParamInfo& p) {
  mlir::Type element = ir_element_type(ctx, p.dtype);
  if (p.kind == ParamInfo::pointer) return ir::PtrType::get(ctx, element);
  if (p.kind == ParamInfo::view) return ir::ViewType::get(ctx, p.rank, element);
  return element;
}

/// The promises of a specialisation word as argument attributes (encoding: kernel.h).
void attach_promises(mlir::func::FuncOp func, unsigned i, const ParamInfo& p, uint64_t word) {
  mlir::Builder b(func.getContext());
  if (word == 0) return;
  if (p.kind == ParamInfo::pointer) return func.setArgAttr(i, "tile.align", b.getI32IntegerAttr(16));
  if (p.kind == ParamInfo::scalar)
    return word & 2 ? func.setArgAttr(i, "tile.one", b.getUnitAttr())
                    : func.setArgAttr(i, "tile.multiple_of", b.getI32IntegerAttr(promised_multiple(word)));
  if (word & kNoBulkCopies) func.setArgAttr(i, "tile.no_bulk_copies", b.getUnitAttr());
  if (word & 1) func.setArgAttr(i, "tile.align", b.getI32IntegerAttr(16));
  if (const auto unit = static_cast<int32_t>(word >> 1 & 15))
    func.setArgAttr(i, "tile.unit_stride", b.getI32IntegerAttr(unit - 1));
  llvm::SmallVector<int32_t, 4> strides, dims;
  for (int d = 0; d < p.rank; ++d) {
    strides.push_back(promised_stride(word, d, p.dtype));
    dims.push_back(promised_size(word, d));
  }
  func.setArgAttr(i, "tile.stride_multiple_of", b.getDenseI32ArrayAttr(strides));
  func.setArgAttr(i, "tile.dim_multiple_of", b.getDenseI32ArrayAttr(dims));
}

}  // namespace

Counters& counters() {
  static Counters* c = new Counters;  // outlives kernels with static storage
  return *c;
}

namespace {

std::optional<Error> too_late(const KernelCore& core) {
  // MLIR and LLVM keep parts per thread and per process. What is made here before them goes after them.
  static bool process_over = false;
  static thread_local bool thread_over = false;
  struct ProcessEnd {
    ~ProcessEnd() { process_over = true; }
  };
  struct ThreadEnd {
    ~ThreadEnd() { thread_over = true; }
  };
  static ProcessEnd process_end;
  static thread_local ThreadEnd thread_end;
  (void)process_end, (void)&thread_end;
  if (!process_over && !thread_over) return std::nullopt;
  return user_error(
      fmt::format("kernel '{}' is new to this process, which is ending (a destructor of a static or thread_local object): "
                  "compile it earlier, with compile() or a launch; kernels that are compiled may still be launched",
                  core.name));
}

}  // namespace

std::optional<Error> cannot_trace(const KernelCore& core, std::span<const uint64_t> config,
                                  std::span<const uint64_t> spec) {
  if (config.size() != core.fields.size())
    return user_error(fmt::format("kernel '{}' takes a configuration of {} words, one for each field, found {}: words(config) "
                                  "makes them",
                                  core.name, core.fields.size(), config.size()));
  if (!spec.empty() && spec.size() != core.params.size())
    return user_error(fmt::format("kernel '{}' has {} parameters, found a specialisation of {} words (one a parameter, "
                                  "or none at all)",
                                  core.name, core.params.size(), spec.size()));
  for (size_t i = 0; i < spec.size(); ++i)
    if (const ParamInfo& p = core.params[i]; p.kind == ParamInfo::view && (spec[i] >> 1 & 15) > p.rank)
      return user_error(fmt::format("kernel '{}', argument {}: the specialisation has a stride of 1 in dimension {}, the "
                                    "view has {} dimensions",
                                    core.name, i, (spec[i] >> 1 & 15) - 1, p.rank));
  return too_late(core);
}

std::shared_ptr<TraceState> trace_kernel(const KernelCore& core, const ConfigWords& config,
                                         const Specialization& spec) {
  auto state = std::make_shared<TraceState>();
  std::optional<Error> refusal = cannot_trace(core, config, spec);
  std::optional<Underway> step;
  if (!refusal) refusal = step.emplace(Underway::tracing, &core, core, config).refusal();
  if (refusal) {
    state->error = std::move(*refusal);
    return state;
  }
  ++counters().traces;
  state->lease = std::make_unique<ContextLease>();
  mlir::MLIRContext* ctx = state->lease->context();
  mlir::OpBuilder b(ctx);
  const auto where =
      mlir::FileLineColLoc::get(b.getStringAttr(core.loc.file_name()), core.loc.line(), core.loc.column());
  state->module = mlir::ModuleOp::create(where);
  b.setInsertionPointToEnd(state->module->getBody());
  llvm::SmallVector<mlir::Type, 8> types;
  for (const ParamInfo& p : core.params) types.push_back(param_type(ctx, p));
  auto func = mlir::func::FuncOp::create(b, where, "kernel", b.getFunctionType(types, {}));
  func->setAttr("tile.kernel", b.getUnitAttr());
  for (size_t i = 0; i < core.params.size() && i < spec.size(); ++i)
    attach_promises(func, static_cast<unsigned>(i), core.params[i], spec[i]);
  mlir::Block* entry = func.addEntryBlock();

  std::vector<Diagnostic> diagnostics;
  {
    Tracer tracer(func, core.loc);
    std::vector<Value> params;
    for (size_t i = 0; i < core.params.size(); ++i) {
      const ParamInfo& p = core.params[i];
      params.push_back(tracer.add(entry->getArgument(static_cast<unsigned>(i)), p.dtype, core.loc,
                                  p.kind == ParamInfo::pointer ? ValueKind::pointer
                                  : p.kind == ParamInfo::view  ? ValueKind::view
                                                               : ValueKind::number));
    }
    try {
      core.body(config.data(), params.data());
      tracer.finish();
    } catch (const TraceGivenUp&) {
    }
    diagnostics = std::move(tracer.diagnostics);
    state->remarks = std::move(tracer.remarks);
  }
  const std::string described = describe_config(core.fields, config, ", ");
  const std::string title = fmt::format("kernel '{}'{}", core.name, described.empty() ? "" : " {" + described + "}");
  if (!diagnostics.empty()) {
    state->error = {
        ErrorKind::user,
        fmt::format("{}: {} error{} while tracing", title, diagnostics.size(), diagnostics.size() == 1 ? "" : "s"),
        std::move(diagnostics)};
    state->module = nullptr;
    return state;
  }
  std::string complaint;
  mlir::ScopedDiagnosticHandler collect(ctx, [&](mlir::Diagnostic& d) {
    complaint += d.str() + "\n";
    return mlir::success();
  });
  if (mlir::failed(mlir::verify(*state->module))) {
    std::string text;
    llvm::raw_string_ostream os(text);
    state->module->print(os, mlir::OpPrintingFlags().assumeVerified());
    state->error = {
        ErrorKind::internal, fmt::format("{}: the tracer made invalid IR: {}\n{}", title, complaint, text), {}};
    state->module = nullptr;
    return state;
  }
  state->narrow = NarrowIndices(*state->module);
  state->hash = hash128(ir_key(func, state->lease->pooled(), state->operations));
  state->symbol = symbol_of(core, config, state->hash);
  func.setSymName(state->symbol);
  state->ok = true;
  return state;
}

}  // namespace tile::detail
