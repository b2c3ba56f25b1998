// catalog.cpp - the kernels that come with the library, traced for tilec; and `tilec list`.
#include "tools/tilec/catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/catalog.h"
#include "runtime/spelling.h"

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

/// The configuration a launch of the row's first timed problem would use on the target.
tile::ConfigWords defaultConfig(const CatalogRow& row, const tile::AnyKernel& kernel, const std::string& dtype, const tile::ir::Target& target) {
  if (row.default_config) {
    const bool gpu = target.backend == tile::ir::Backend::nvptx;
    const auto wanted = gpu ? tile::kernels::Purpose::bench : tile::kernels::Purpose::bench_host;
    for (const tile::kernels::Problem& problem : row.problems)
      if (problem.dtype == dtype && problem.purpose == wanted) return row.default_config(problem, machineOf(target));
    for (const tile::kernels::Problem& problem : row.problems)
      if (problem.dtype == dtype) return row.default_config(problem, machineOf(target));
  }
  return kernel.default_config();
}

}  // namespace

std::vector<std::string> catalogNames() {
  std::vector<std::string> names;
  for (const CatalogRow& row : tile::kernels::catalog())
    if (row.compilable()) names.push_back(row.name);
  return names;
}

tile::Result<Source> catalogSource(const KernelChoice& choice, const std::string& targetName, bool* usageError) {
  *usageError = true;
  auto row = tile::kernels::find_kernel(choice.kernel);
  if (!row) return row.error();
  if (!(*row)->compilable())
    return tile::user_error(fmt::format("'{}' launches several kernels; compile one of: {}", choice.kernel, fmt::join((*row)->parts, ", ")));
  auto target = tile::ir::lookupTarget(targetName);
  if (!target) return target.error();
  std::vector<std::string> fields = choice.fields;
  const tile::AnyKernel* any = (*row)->kernel((*row)->dtypes.front());
  const std::string dtype = takeDtype(fields, **row, any->fields());
  const bool known = std::find((*row)->dtypes.begin(), (*row)->dtypes.end(), dtype) != (*row)->dtypes.end();
  const tile::AnyKernel* kernel = known ? (*row)->kernel(dtype) : nullptr;
  if (!kernel) return tile::user_error(tile::unknown_name("dtype of " + choice.kernel, dtype, (*row)->dtypes));
  auto config = kernel->parse_config(fields, defaultConfig(**row, *kernel, dtype, *target));
  if (!config) return config.error();
  *usageError = false;
  tile::Traced traced = kernel->trace(*config, choice.generic ? tile::Specialization{} : tile::kernels::dense_specialization(*kernel));
  if (!traced) return traced.error();
  return Source{choice.kernel, choice.kernel + ".mlir", traced.text(/*locations=*/true)};
}

int list(bool json) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const CatalogRow& row : tile::kernels::catalog()) {
    nlohmann::ordered_json one{{"name", row.name}, {"summary", row.summary}, {"dtypes", row.dtypes}, {"sizes", row.sizes}};
    if (!json) fmt::print("{:<28}{}\n{:<28}dtypes {}\n", row.name, row.summary, "", fmt::join(row.dtypes, ", "));
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
