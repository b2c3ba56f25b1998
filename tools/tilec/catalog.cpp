// catalog.cpp - the kernels that come with the library, traced for tilec; and `tilec list`.
#include "tools/tilec/catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/catalog.h"
#include "runtime/spelling.h"
#include "tools/tilec/catalog_choice.h"

namespace tilec {
namespace {

using tile::kernels::CatalogRow;

/// "dtype=bf16" among the fields chooses the kernel; the rest configures it.
std::string takeDtype(std::vector<std::string>& fields, const CatalogRow& row, const std::vector<tile::ConfigField>& own) {
  for (const tile::ConfigField& field : own)
    if (field.name == "dtype") return row.dtypes.front();
  for (auto it = fields.begin(); it != fields.end(); ++it)
    if (it->starts_with("dtype=")) {
      std::string dtype = it->substr(6);
      fields.erase(it);
      return dtype;
    }
  return row.dtypes.front();
}

tile::kernels::Machine machineOf(const tile::ir::Target& target) {
  const bool gpu = target.backend == tile::ir::Backend::nvptx;
  return {gpu, target.maxSharedBytes, gpu ? 132 : 1, target.hasWgmma, target.hasWgmma ? "NVIDIA H200" : ""};
}

/// The configuration a launch of the problem would use on the target; null: of the row's first timed problem.
tile::ConfigWords defaultConfig(const CatalogRow& row, const tile::AnyKernel& kernel, const std::string& dtype, const tile::ir::Target& target,
                                const tile::kernels::Problem* problem) {
  if (!row.default_config) return kernel.default_config();
  if (problem) return row.default_config(*problem, machineOf(target));
  const bool gpu = target.backend == tile::ir::Backend::nvptx;
  const auto wanted = gpu ? tile::kernels::Purpose::bench : tile::kernels::Purpose::bench_host;
  for (const tile::kernels::Problem& p : row.problems)
    if (p.dtype == dtype && p.purpose == wanted) return row.default_config(p, machineOf(target));
  for (const tile::kernels::Problem& p : row.problems)
    if (p.dtype == dtype) return row.default_config(p, machineOf(target));
  return kernel.default_config();
}

/// A compilable row, its kernel for the element type among the fields, and the other fields.
struct Chosen {
  const CatalogRow* row = nullptr;
  const tile::AnyKernel* kernel = nullptr;
  std::string dtype;
  std::vector<std::string> fields;
};
tile::Result<Chosen> choose(const KernelChoice& choice) {
  auto row = tile::kernels::find_kernel(choice.kernel);
  if (!row) return row.error();
  if (!(*row)->compilable())
    return tile::user_error(fmt::format("'{}' launches several kernels; compile one of: {}", choice.kernel, fmt::join((*row)->parts, ", ")));
  Chosen c{*row, nullptr, "", choice.fields};
  c.dtype = takeDtype(c.fields, **row, (*row)->kernel((*row)->dtypes.front())->fields());
  const bool known = std::find((*row)->dtypes.begin(), (*row)->dtypes.end(), c.dtype) != (*row)->dtypes.end();
  c.kernel = known ? (*row)->kernel(c.dtype) : nullptr;
  if (!c.kernel) return tile::user_error(tile::unknown_name("dtype of " + choice.kernel, c.dtype, (*row)->dtypes));
  return c;
}

}  // namespace

std::vector<std::string> catalogNames() {
  std::vector<std::string> names;
  for (const CatalogRow& row : tile::kernels::catalog())
    if (row.compilable()) names.push_back(row.name);
  return names;
}

tile::Result<tile::kernels::Problem> catalogProblem(const KernelChoice& choice) {
  auto chosen = choose(choice);
  if (!chosen) return chosen.error();
  return tile::kernels::parse_problem(*chosen->row, chosen->dtype, choice.problem);
}

tile::Result<tile::ConfigWords> catalogConfig(const KernelChoice& choice, const std::string& targetName, const tile::kernels::Problem* problem) {
  auto chosen = choose(choice);
  if (!chosen) return chosen.error();
  auto target = tile::ir::lookupTarget(targetName);
  if (!target) return target.error();
  return chosen->kernel->parse_config(chosen->fields, defaultConfig(*chosen->row, *chosen->kernel, chosen->dtype, *target, problem));
}

tile::Result<Source> catalogSource(const KernelChoice& choice, const std::string& target, bool* usageError) {
  *usageError = true;
  auto chosen = choose(choice);
  if (!chosen) return chosen.error();
  tile::kernels::Problem problem;
  if (!choice.problem.empty()) {
    auto parsed = catalogProblem(choice);
    if (!parsed) return parsed.error();
    problem = std::move(*parsed);
  }
  auto config = catalogConfig(choice, target, choice.problem.empty() ? nullptr : &problem);
  if (!config) return config.error();
  *usageError = false;
  const tile::AnyKernel& kernel = *chosen->kernel;
  tile::Traced traced = kernel.trace(*config, choice.generic ? tile::Specialization{} : tile::kernels::dense_specialization(kernel));
  if (!traced) return traced.error();
  return Source{choice.kernel, choice.kernel + ".mlir", traced.text(/*locations=*/true)};
}

int list(bool json) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const CatalogRow& row : tile::kernels::catalog()) {
    nlohmann::ordered_json one{{"name", row.name}, {"summary", row.summary}, {"dtypes", row.dtypes}, {"sizes", row.sizes}};
    if (!json) fmt::print("{:<28}{}{}\n{:<28}dtypes {}\n", row.name, row.name.size() < 28 ? "" : " ", row.summary, "", fmt::join(row.dtypes, ", "));
    if (row.compilable()) {
      const tile::AnyKernel* kernel = row.kernel(row.dtypes.front());
      const std::string defaults = kernel->describe_config(kernel->default_config());
      one["fields"] = nlohmann::ordered_json::array();
      for (const tile::ConfigField& field : kernel->fields()) one["fields"].push_back(field.name);
      one["defaults"] = defaults;
      if (!json && !defaults.empty()) fmt::print("{:<28}fields {}\n", "", defaults);
    } else {
      one["parts"] = row.parts;
      if (!json) fmt::print("{:<28}launches {}\n", "", fmt::join(row.parts, ", "));
    }
    all.push_back(one);
  }
  if (json) fmt::print("{}\n", all.dump(2));
  return kOk;
}

}  // namespace tilec
