// run.cpp - `tilec run`: a kernel without parameters, on one device or on every device present. The kernel checks itself
// with tile.assert and shows values with tile.print (to standard output).
#include <fmt/format.h>

#include <cstdio>

#include "compiler/dialect/dialect.h"
#include "compiler/targets/host_loader.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "runtime/debug.h"
#include "runtime/device.h"
#include "tools/tilec/commands.h"

namespace tilec {
namespace {

/// `tile.grid = array<i32: x, y, z>` of the kernel; fewer numbers mean 1 for the rest. The text is known to be a kernel.
tile::Grid gridOf(const std::string& text) {
  mlir::DialectRegistry registry;
  tile::ir::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  tile::Grid grid;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module) return grid;
  module->walk([&](mlir::func::FuncOp func) {
    auto attr = func->getAttrOfType<mlir::DenseI32ArrayAttr>("tile.grid");
    if (!attr) return;
    int64_t* into[] = {&grid.x, &grid.y, &grid.z};
    for (int i = 0; i < 3 && i < attr.size(); ++i) *into[i] = attr[i];
  });
  return grid;
}

tile::Status runOn(tile::Device& device, const Source& source, bool remarks) {
  const tile::DeviceProperties& properties = device.properties();
  if (properties.target.empty()) return tile::device_error(fmt::format("{} ({}): no target of this compiler runs there", device.name(), properties.model));
  auto target = tile::ir::lookupTarget(properties.target);
  if (!target) return target.error();
  const tile::Grid grid = gridOf(source.text);
  tile::ir::CompileOptions options;
  options.fewPrograms = properties.has_few(grid);
  if (properties.needs_ptx) options.ptxas = "none";
  if (remarks) options.onRemark = [](const tile::Diagnostic& d) { std::fputs(d.to_string().c_str(), stderr); };
  auto binary = tile::ir::compileText(source.text, source.file, *target, options);
  if (!binary) return binary.error();
  if (!binary->params.empty())
    return tile::user_error(fmt::format("tilec run needs a kernel without parameters, found {} in `{}`", binary->params.size(), binary->entry));
  auto module = device.load(*binary);
  if (!module) return module.error();
  tile::Stream& stream = device.default_stream();
  if (auto status = stream.launch(**module, grid, nullptr, 0); !status) return status;
  return stream.synchronize();
}

}  // namespace

int run(const std::string& file, const std::string& deviceName, bool remarks) {
  bool usageError = false;
  KernelChoice choice;
  choice.kernel = file;
  auto source = loadSource(choice, "host", &usageError);
  if (!source) return usageError ? usage(source.error().message) : fail(source.error());
  tile::set_host_loader(&tile::ir::loadHostObject);
  tile::set_print_sink([](const std::string& text) { fmt::print("{}\n", text); });

  const std::vector<std::string> names = deviceName == "all" ? tile::device_names() : std::vector<std::string>{deviceName};
  int worst = kOk;
  for (const std::string& name : names) {
    auto device = tile::open_device(name);
    if (!device) return device.error().kind == tile::ErrorKind::user ? usage(device.error().message) : fail(device.error());
    auto status = runOn(**device, *source, remarks);
    std::fflush(stdout);
    fmt::print("{}: {}\n", name, status ? "ok" : "failed");
    if (!status) worst = std::max(worst, status.error().kind == tile::ErrorKind::device ? (std::fputs(status.error().to_string().c_str(), stderr), kDiagnostics) : fail(status.error()));
  }
  if (deviceName == "all" && names.size() == 1) fmt::print("cuda: skipped, no device\n");
  return worst;
}

}  // namespace tilec
