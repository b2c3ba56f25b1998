// users_test.cpp - kernels as users write them (the other files of this folder): right on the host and on the
// simulated sm_90a machine, and assembled for GPU targets at full size without spills or serialised products.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/gpu/simt_device.h"
#include "tests/spills.h"
#include "tests/users/use.h"

namespace users {
namespace {

class UserKernel : public ::testing::TestWithParam<size_t> {
 protected:
  const Case& example() const { return cases()[GetParam()]; }
  void runs_on(const std::shared_ptr<Device>& device) {
    Env env;
    env.device = device;
    const Job job = example().prepare(env);
    Stream& stream = device->default_stream();
    for (const Step& step : job.steps) {
      const Status ran = step.run(stream);
      ASSERT_TRUE(ran.ok()) << step.name << ": " << ran.error().to_string();
    }
    const Status finished = stream.synchronize();
    ASSERT_TRUE(finished.ok()) << finished.error().to_string();
    EXPECT_EQ(job.check(), "");
  }
};

TEST_P(UserKernel, OnTheHost) { runs_on(open_device("host").value_or_throw()); }

TEST_P(UserKernel, OnTheSimulatedMachine) {
  tile::testing::setSimtSeed(static_cast<uint32_t>(GetParam()));
  runs_on(tile::testing::makeSimtDevice());
}

Resources without_few_spills(Resources r) {
  const int few = tile::testing::kFewSpilledBytes + 16;  // nobody chose these configurations for a target
  if (r.spill_store_bytes <= few && r.spill_load_bytes <= few)
    r.spill_store_bytes = r.spill_load_bytes = r.stack_bytes = 0;
  return r;
}

/// The assembler takes most of the time of these tests, and few kernels are refused for one target alone: one in three,
/// whatever others there are, is assembled for sm_80 as well. All are where TILE_ALL_TARGETS is set.
bool isForBoth(const std::string& name) {
  unsigned sum = 0;
  for (const char c : name) sum = sum * 31 + static_cast<unsigned char>(c);
  return std::getenv("TILE_ALL_TARGETS") || sum % 3 == 0;
}

TEST_P(UserKernel, Assembles) {
  Env env;
  env.big = true;
  std::vector<std::string> targets{"sm_90a"};
  if (isForBoth(example().name)) targets.push_back("sm_80");
  for (const std::string& target : targets)
    for (const Step& step : example().prepare(env).steps) {
      const auto binary = step.build(target);
      ASSERT_TRUE(binary.ok()) << target << " " << step.name << ": " << binary.error().to_string();
      EXPECT_EQ(code_problem(without_few_spills(binary->resources)), "") << target << " " << step.name;
    }
}

std::string name_of(const ::testing::TestParamInfo<size_t>& info) { return cases()[info.param].name; }
// Cases register themselves while the program starts: the list is complete when main runs.
std::vector<size_t> all() {
  std::vector<size_t> indices(cases().size());
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  return indices;
}
INSTANTIATE_TEST_SUITE_P(All, UserKernel, ::testing::ValuesIn(all()), name_of);

}  // namespace
}  // namespace users
