// Offline gate: every catalog kernel, element type and default config compiles for the GPU targets, is assembled by
// ptxas, and neither spills registers nor draws a warning about serialised matrix instructions (C75xx). Needs no GPU.
// sm_90a sees every config that a problem of the catalog leads to, sm_80 those of the ordinary problems.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "kernels/catalog.h"

namespace tile::kernels {
namespace {

struct Param {
  std::string target;
  uint32_t shared_bytes;
  const CatalogRow* row;
  Problem problem;
};

void PrintTo(const Param& p, std::ostream* out) {
  *out << p.row->name << " " << p.problem.to_string() << " for " << p.target;
}

Machine machine_of(const std::string& target, uint32_t shared) {
  const bool warpgroups = target == "sm_90a";  // with the tuned configurations that ship
  return {.gpu = true,
          .shared_bytes = shared,
          .multiprocessors = 132,
          .warpgroups = warpgroups,
          .model = warpgroups ? "NVIDIA H200" : ""};
}

/// One problem for each config that the default of some problem of this row leads to.
std::vector<Param> all_builds() {
  std::vector<Param> params;
  for (auto [target, shared] : {std::pair{"sm_80", 166912u}, std::pair{"sm_90a", 232448u}})
    for (const CatalogRow& row : catalog()) {
      if (!row.compilable()) continue;
      std::set<std::pair<std::string, ConfigWords>> seen;
      for (const Problem& p : row.problems) {
        if (p.purpose == Purpose::bench_host || (p.purpose == Purpose::edge && shared < 200000)) continue;
        if (seen.insert({p.dtype, row.default_config(p, machine_of(target, shared))}).second)
          params.push_back({target, shared, &row, p});
      }
    }
  return params;
}

std::string test_name(const testing::TestParamInfo<Param>& info) {
  std::string name = fmt::format("{}_{}_{}", info.param.target, info.param.row->name, info.param.problem.to_string());
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

bool have_ptxas() {
  static const bool found = std::system("ptxas --version >/dev/null 2>&1") == 0 ||
                            std::system("/usr/local/cuda/bin/ptxas --version >/dev/null 2>&1") == 0 ||
                            std::getenv("TILE_PTXAS");
  return found;
}

/// Bytes of spills that are not an accident. ptxas trades a few for an occupancy step on its own, with registers to
/// spare; and attention with 128 x 64 scores and more than 64 channels keeps its row sums (4 words of the loop) and
/// addresses of the copies in local memory: two accumulators of 128 and 64 registers leave no room, smaller tiles read
/// more shared memory.
int allowed_spill_bytes(const CatalogRow& row, const Problem& problem, const Resources& r) {
  if (row.name == "attention_forward" && problem.sizes["D"] > 64 && problem.dtype != "f32" && problem.dtype != "tf32")
    return 192;
  return r.registers < 255 ? 16 : 0;
}

class Gate : public testing::TestWithParam<Param> {};

TEST_P(Gate, AssemblesWithoutSpills) {
  if (!have_ptxas()) GTEST_SKIP() << "ptxas not found in TILE_PTXAS, PATH or /usr/local/cuda/bin";
  const auto& [target, shared, row, problem] = GetParam();
  const AnyKernel& kernel = *row->kernel(problem.dtype);
  ConfigWords config = row->default_config(problem, machine_of(target, shared));
  auto binary = kernel.compile_for(target, config, dense_specialization(kernel));
  ASSERT_TRUE(binary.ok()) << kernel.describe_config(config) << "\n" << binary.error().to_string();
  EXPECT_EQ(binary->format, BinaryFormat::cubin);
  const Resources& r = binary->resources;
  std::string where = kernel.symbol(config) + " {" + kernel.describe_config(config) + "}";
  EXPECT_LE(r.spill_store_bytes, allowed_spill_bytes(*row, problem, r)) << where;
  EXPECT_LE(r.spill_load_bytes, allowed_spill_bytes(*row, problem, r)) << where;
  EXPECT_EQ(r.log.find("C75"), std::string::npos) << where << "\n" << r.log;
  EXPECT_LE(binary->shared_bytes, shared) << where;
}

INSTANTIATE_TEST_SUITE_P(All, Gate, testing::ValuesIn(all_builds()), test_name);

}  // namespace
}  // namespace tile::kernels
