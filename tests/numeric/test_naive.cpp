// The loops of bench --naive: every row of the catalog has one and a problem for the host, and each arrives at the
// kernel's result, so that what is timed beside a kernel computes the same thing.
#include <gtest/gtest.h>

#include <algorithm>

#include "tools/bench/naive.h"

namespace tile::bench {
namespace {

using kernels::CatalogRow;
using kernels::Problem;
using kernels::Purpose;

TEST(NaiveLoops, EveryRowHasALoopAndAHostProblem) {
  for (const CatalogRow& row : kernels::catalog()) {
    EXPECT_NE(find_naive(row.name), nullptr) << row.name;
    EXPECT_TRUE(std::any_of(row.problems.begin(), row.problems.end(), [](const Problem& p) {
      return p.purpose == Purpose::bench_host;
    })) << row.name;
  }
  for (const NaiveLoop& loop : naive_loops()) EXPECT_TRUE(kernels::find_kernel(loop.row).ok()) << loop.row;
}

/// The host's problem with every large size cut.
Problem small(Problem p) {
  for (const auto& [name, value] : kernels::Fields(p.sizes))
    p.sizes.set(name, std::min<int64_t>(value, name == "B" || name == "Hq" ? 2 : 256));
  return p;
}

TEST(NaiveLoops, ComputeWhatTheKernelsCompute) {
  auto device = open_device("host").value_or_throw();
  const kernels::Machine machine = kernels::Machine::of(device->properties());
  for (const CatalogRow& row : kernels::catalog())
    for (const Problem& timed : row.problems) {
      if (timed.purpose != Purpose::bench_host) continue;
      const Problem problem = small(timed);
      auto run = row.prepare(device, problem, row.default_config(problem, machine));
      ASSERT_TRUE(run.ok()) << row.name << ": " << run.error().to_string();
      auto result = run_naive(*find_naive(row.name), problem, **run, device->default_stream(), /*budget_ms=*/0);
      ASSERT_TRUE(result.ok()) << row.name << ": " << result.error().to_string();
      EXPECT_LE(result->error, naive_tolerance(problem.dtype))
          << row.name << " " << problem.to_string() << ": " << result->output;
      EXPECT_FALSE(result->output.empty()) << row.name;
    }
}

TEST(NaiveLoops, ALoopThatComputesSomethingElseIsSeen) {
  auto device = open_device("host").value_or_throw();
  const CatalogRow& row = *kernels::find_kernel("softmax").value_or_throw();
  const Problem problem{"f32", {{"M", 3}, {"N", 40}}};
  auto run = row.prepare(device, problem, row.default_config(problem, kernels::Machine::of(device->properties())));
  ASSERT_TRUE(run.ok());
  const NaiveLoop wrong{"softmax", [](NaiveData& d) {
                          float* y = d.out("y");
                          for (int i = 0; i < 120; ++i) y[i] = 1.f / 40;
                        }};
  auto result = run_naive(wrong, problem, **run, device->default_stream(), 0);
  ASSERT_TRUE(result.ok());
  EXPECT_GT(result->error, 0.1);
}

}  // namespace
}  // namespace tile::bench
