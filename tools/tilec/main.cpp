// main.cpp - tilec: the command line of the compiler. Each sub-command is a function of its own file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <stdexcept>

#include "runtime/spelling.h"
#include "tools/tilec/commands.h"

namespace tilec {

int fail(const tile::Error& error) {
  std::fputs(error.to_string().c_str(), stderr);
  switch (error.kind) {
    case tile::ErrorKind::user:
    case tile::ErrorKind::compile: return kDiagnostics;
    case tile::ErrorKind::device: return kMissing;
    case tile::ErrorKind::internal: return kInternal;
  }
  return kInternal;
}

int usage(const std::string& message) {
  std::fprintf(stderr, "tilec: %s\n", message.c_str());
  return kUsage;
}

}  // namespace tilec

int main(int argc, char** argv) {
  using namespace tilec;
  CLI::App app{"tilec: compiles, checks and runs tile kernels", "tilec"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "tilec " TILE_VERSION);
  CompileRequest request;
  std::string device = "all";
  std::string targets = "host";
  std::string emit = "json";
  bool json = false, all = false, remarks = false, exact = false;

  auto kernelArguments = [&](CLI::App* command, bool required) {
    auto* kernel = command->add_option("kernel", request.choice.kernel, "catalog name, FILE.mlir, or - for standard input");
    if (required) kernel->required();
    command->add_option("fields", request.choice.fields, "config fields of a catalog kernel: NAME=VALUE (and dtype=...)");
    command->add_flag("--generic", request.choice.generic, "assume nothing about the arguments of a catalog kernel");
  };
  auto compileArguments = [&](CLI::App* command) {
    command->add_option("-t,--target", targets, "comma-separated: sm_80 ... sm_90a, host, host:CPU")->capture_default_str();
    command->add_option("--warps", request.options.numWarps, "warps per program (0: the kernel's or the planner's choice)");
    command->add_option("--stages", request.options.defaultStages, "pipeline stages of loops without a hint");
    command->add_flag("--few-programs", request.options.fewPrograms, "for launches of at most one program per multiprocessor");
    command->add_option("--ptxas", request.options.ptxas, "path of ptxas, or none");
    command->add_flag("--line-info", request.options.lineInfo, "source lines for profilers");
    command->add_flag("--exact-math", exact, "no approximate functions, keep denormals");
    command->add_flag("--remarks", request.remarks, "print remarks about lost performance");
    command->add_flag("--time-report", request.timeReport, "print milliseconds per stage");
  };

  CLI::App* listCommand = app.add_subcommand("list", "the kernels of the catalog with their config fields");
  listCommand->add_flag("--json", json, "machine readable");
  CLI::App* checkCommand = app.add_subcommand("check", "trace and verify only; needs no GPU");
  kernelArguments(checkCommand, false);
  checkCommand->add_flag("--all", all, "every kernel of the catalog");
  checkCommand->add_option("-t,--target", targets, "choose default configs for this target")->capture_default_str();
  CLI::App* compileCommand = app.add_subcommand("compile", "compile to any stage");
  kernelArguments(compileCommand, true);
  compileArguments(compileCommand);
  compileCommand->add_option("-e,--emit", emit, "comma-separated: mlir, mlir:STAGE, llvm, ptx, cubin, asm, obj, json")->capture_default_str();
  compileCommand->add_option("-o,--output", request.outputDir, "directory for NAME.TARGET.KIND files; without it text goes to standard output");
  CLI::App* reportCommand = app.add_subcommand("report", "registers, shared memory by source line, occupancy, tensor instructions, roofline");
  kernelArguments(reportCommand, true);
  compileArguments(reportCommand);
  ReportRequest what;
  reportCommand->add_flag("--json", what.json, "machine readable");
  reportCommand->add_option("--problem", request.choice.problem, "sizes of a problem of a catalog kernel, \"M=8192 N=8192 K=8192\": its default configuration and its roofline");
  reportCommand->add_option("--machine", what.machine, "peaks of the roofline: h200, h100, a100 (default: by the target)");
  reportCommand->add_option("-d,--device", what.device, "measure the problem there (cuda:0, host) and say what share of the roofline it reaches");
  reportCommand->add_option("--time-ms", what.milliseconds, "a time of the problem measured elsewhere");
  CLI::App* runCommand = app.add_subcommand("run", "run a kernel without parameters; its prints and asserts are the result");
  runCommand->add_option("file", request.choice.kernel, "FILE.mlir or - for standard input")->required();
  runCommand->add_option("-d,--device", device, "host, cuda:N, or all devices present")->capture_default_str();
  runCommand->add_flag("--remarks", remarks, "print remarks about lost performance");
  CLI::App* doctorCommand = app.add_subcommand("doctor", "what is installed, found and set on this machine");

  // CLI11 only says that an argument was not expected; a mistyped command deserves its name.
  std::vector<std::string> commands;
  for (const CLI::App* sub : app.get_subcommands({})) commands.push_back(sub->get_name());
  if (argc > 1 && argv[1][0] != '-' && std::find(commands.begin(), commands.end(), argv[1]) == commands.end())
    return usage(tile::unknown_name("command", argv[1], commands));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }

  auto split = [](const std::string& list) {
    std::vector<std::string> parts;
    std::string part;
    for (std::istringstream in(list); std::getline(in, part, ',');)
      if (!part.empty()) parts.push_back(part);
    return parts;
  };
  request.targets = split(targets);
  request.emit = split(emit);
  request.options.fastMath = !exact;
  if (request.targets.empty()) return usage("no target given");
  if (request.emit.empty()) return usage("nothing to emit");

  try {
    if (listCommand->parsed()) return list(json);
    if (checkCommand->parsed()) {
      if (all == !request.choice.kernel.empty()) return usage("check takes a kernel or --all");
      return check(request.choice, request.targets, all);
    }
    if (compileCommand->parsed()) return compile(request);
    if (reportCommand->parsed()) return report(request, what);
    if (runCommand->parsed()) return run(request.choice.kernel, device, remarks);
    if (doctorCommand->parsed()) return doctor();
  } catch (const std::bad_alloc&) {
    std::fputs("tilec: not enough memory for what was asked (a problem of this size?)\n", stderr);
    return kMissing;
  } catch (const std::length_error&) {
    std::fputs("tilec: sizes of the problem multiply to more than memory can hold\n", stderr);
    return kUsage;
  }
  return kUsage;
}
