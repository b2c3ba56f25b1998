// compile.cpp - `tilec compile` and `check`: the pipeline with its stages written where they are asked for.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/spelling.h"
#include "tools/tilec/catalog.h"
#include "tools/tilec/commands.h"
#include "tools/tilec/report.h"

namespace tilec {
namespace {

using tile::ir::Backend;
using tile::ir::Target;

/// One thing to write: which stage, under which file extension.
struct Output {
  std::string emit, stage, extension;
  bool binary = false;
};

std::vector<std::string> mlirStages(const Target& target) {
  if (target.backend == Backend::nvptx) return {"traced", "tile", "pipelined", "layout", "gpu"};
  return {"traced", "tile", "cpu"};
}

/// The outputs of a target; an error text when one does not exist for it.
std::string parseEmit(const std::vector<std::string>& emit, const Target& target, std::vector<Output>& outputs) {
  const bool gpu = target.backend == Backend::nvptx;
  const std::vector<std::string> kinds = {"mlir", "mlir:STAGE", "llvm", gpu ? "ptx" : "asm", gpu ? "cubin" : "obj", "json"};
  const std::vector<std::string> stages = mlirStages(target);
  for (const std::string& item : emit) {
    if (item == "mlir") {
      outputs.push_back({item, stages.back(), "mlir"});
    } else if (item.starts_with("mlir:")) {
      const std::string stage = item.substr(5);
      if (std::find(stages.begin(), stages.end(), stage) == stages.end())
        return tile::unknown_name("stage of " + target.name, stage, stages);
      outputs.push_back({item, stage, stage + ".mlir"});
    } else if (item == "llvm") {
      outputs.push_back({item, "llvm", "ll"});
    } else if (item == "json") {
      outputs.push_back({item, "", "json"});
    } else if (item == "mlir:STAGE" || std::find(kinds.begin(), kinds.end(), item) == kinds.end()) {
      return tile::unknown_name("kind to emit for " + target.name, item, kinds);
    } else {
      outputs.push_back({item, item, item == "asm" ? "s" : item == "obj" ? "o" : item, item == "cubin" || item == "obj"});
    }
  }
  return "";
}

/// Compiles one source for one target and writes its outputs.
int compileOne(const CompileRequest& request, const Target& target, const std::vector<Output>& outputs) {
  bool usageError = false;
  auto source = loadSource(request.choice, target.name, &usageError);
  if (!source) return usageError ? usage(source.error().message) : fail(source.error());

  std::map<std::string, std::string> stages;
  std::map<std::string, double> times;
  tile::ir::StageSink sink;
  sink.wants = [&](const std::string& stage) {
    return std::any_of(outputs.begin(), outputs.end(), [&](const Output& o) { return o.stage == stage; });
  };
  sink.take = [&](const std::string& stage, const std::string& text) { stages[stage] = text; };
  tile::ir::CompileOptions options = request.options;
  options.stages = &sink;
  options.onTime = [&](const std::string& stage, double ms) { times[stage] += ms; };
  if (request.remarks) options.onRemark = [](const tile::Diagnostic& d) { std::fputs(d.to_string().c_str(), stderr); };

  auto binary = tile::ir::compileText(source->text, source->file, target, options);
  // Stages made before a failure are still worth having: they show what failed.
  int code = binary ? kOk : fail(binary.error());
  for (const Output& output : outputs) {
    std::string content;
    if (output.emit == "json") {
      if (!binary) continue;
      content = toJson(*binary, target, times).dump(2) + "\n";
    } else if (auto it = stages.find(output.stage); it != stages.end()) {
      content = it->second;
    } else {
      if (binary) {
        std::fprintf(stderr, "tilec: no %s for %s: %s\n", output.emit.c_str(), target.name.c_str(),
                     output.stage == "cubin" ? "ptxas was not found (see tilec doctor)" : "the compiler made none");
        code = kMissing;
      }
      continue;
    }
    if (request.outputDir.empty()) {
      std::fwrite(content.data(), 1, content.size(), stdout);
      continue;
    }
    std::string file = target.name;
    std::replace(file.begin(), file.end(), ':', '-');
    const auto path = std::filesystem::path(request.outputDir) / (source->name + "." + file + "." + output.extension);
    std::error_code error;
    std::filesystem::create_directories(request.outputDir, error);
    std::ofstream out(path, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    if (!out) {
      std::fprintf(stderr, "tilec: cannot write %s\n", path.c_str());
      return kMissing;
    }
  }
  if (request.timeReport)
    for (const auto& [stage, ms] : times) std::fprintf(stderr, "%-10s %8.2f ms  %s %s\n", stage.c_str(), ms, source->name.c_str(), target.name.c_str());
  return code;
}

}  // namespace

int compile(const CompileRequest& request) {
  // The whole command line is checked before anything is compiled.
  std::vector<std::pair<Target, std::vector<Output>>> work;
  for (const std::string& name : request.targets) {
    auto target = tile::ir::lookupTarget(name);
    if (!target) return usage(target.error().message);
    std::vector<Output> outputs;
    if (std::string problem = parseEmit(request.emit, *target, outputs); !problem.empty()) return usage(problem);
    for (const Output& o : outputs)
      if (o.binary && request.outputDir.empty()) return usage("--emit " + o.emit + " needs -o DIR: it is not text");
    work.emplace_back(*target, std::move(outputs));
  }
  int worst = kOk;
  for (const auto& [target, outputs] : work) worst = std::max(worst, compileOne(request, target, outputs));
  return worst;
}

int check(const KernelChoice& choice, const std::vector<std::string>& targets, bool all) {
  std::vector<std::string> names = all ? catalogNames() : std::vector<std::string>{choice.kernel};
  int worst = kOk;
  for (const std::string& targetName : targets) {
    auto target = tile::ir::lookupTarget(targetName);
    if (!target) return usage(target.error().message);
    for (const std::string& name : names) {
      KernelChoice one = choice;
      one.kernel = name;
      const auto start = std::chrono::steady_clock::now();
      bool usageError = false;
      auto source = loadSource(one, targetName, &usageError);
      if (!source && usageError) return usage(source.error().message);
      int code = kOk;
      if (!source) {
        code = fail(source.error());
      } else if (auto status = tile::ir::checkText(source->text, source->file); !status) {
        code = fail(status.error());
      }
      const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      fmt::print("{}: {} ({:.1f} ms)\n", name, code == kOk ? "ok" : "failed", ms);
      worst = std::max(worst, code);
    }
  }
  return worst;
}

}  // namespace tilec
