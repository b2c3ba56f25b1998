// test_tuning.cpp - tuning as the catalog has it: spaces that make sense, tables that change what they should and
// nothing else, shipped lines that the kernels of today understand.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "dsl/tuned.h"
#include "kernels/attention.h"
#include "kernels/catalog.h"
#include "kernels/gemm.h"
#include "tools/bench/tune.h"

namespace tile::kernels {
namespace {

const Machine kMachines[] = {{.gpu = true, .shared_bytes = 166912, .multiprocessors = 108},
                             {.gpu = true, .shared_bytes = 232448, .multiprocessors = 132, .warpgroups = true},
                             {.multiprocessors = 2}};

class TuningTest : public testing::Test {
 protected:
  void TearDown() override { reload_tuning(); }
  static void add(const char* kernel, const char* device, const std::string& key, const char* config) {
    TuningTable t;
    ASSERT_TRUE(t.set({kernel, device, key, config, 1}));
    add_tuning(t);
  }
};

TEST_F(TuningTest, SpacesStartWithTheUntunedDefaultAndHaveNoTwins) {
  int rows = 0;
  for (const CatalogRow& row : catalog()) {
    if (row.tuning == nullptr) continue;
    ++rows;
    for (const Machine& machine : kMachines)
      for (const Problem& p : row.problems) {
        if (p.purpose != (machine.gpu ? Purpose::bench : Purpose::bench_host)) continue;
        const Tuning t = row.tuning(p, machine);
        if (t.space.empty()) continue;
        const std::string what = row.name + " " + p.to_string();
        EXPECT_EQ(t.space.front(), row.default_config(p, machine)) << what;
        EXPECT_GT(t.space.size(), 2u) << what;
        EXPECT_LT(t.space.size(), 400u) << what;
        EXPECT_EQ(std::set<ConfigWords>(t.space.begin(), t.space.end()).size(), t.space.size()) << what;
        for (const ConfigWords& c : t.space) EXPECT_EQ(c.size(), row.kernel(p.dtype)->fields().size()) << what;
      }
  }
  EXPECT_GE(rows, 4);
}

// What varies in a space is tiles and schedules, never what the problem asks for.
TEST_F(TuningTest, SpacesKeepWhatTheProblemSays) {
  const Problem transposed{"f16", {{"M", 512}, {"N", 512}, {"K", 512}, {"ta", 1}, {"beta", 2}}};
  const CatalogRow& gemm = **find_kernel("gemm");
  for (const Machine& machine : kMachines)
    for (const ConfigWords& words : gemm.tuning(transposed, machine).space) {
      const GemmConfig c = gemm_kernel<half, half>().product.from_words(words);
      EXPECT_TRUE(c.trans_a && c.use_c && !c.trans_b);
    }
  const Problem causal{"f16", {{"Sq", 512}, {"D", 72}, {"causal", 1}}};
  const CatalogRow& attention = **find_kernel("attention_forward");
  for (const Machine& machine : kMachines)
    for (const ConfigWords& words : attention.tuning(causal, machine).space) {
      const AttentionConfig c = attention_kernel<half>().from_words(words);
      EXPECT_TRUE(c.causal && c.D == 80 && c.DV == 80);
    }
}

TEST_F(TuningTest, ALineChangesItsFieldsOfTheDefault) {
  Machine machine = kMachines[1];
  machine.model = "Test GPU";
  const GemmConfig before = default_gemm_config(DType::f16, false, 4096, 4096, machine);
  add("gemm", "Test GPU", gemm_tuning_key(DType::f16, false, 4096, 4096).text(), "BN=176 stages=3");
  const GemmConfig c = default_gemm_config(DType::f16, false, 4096, 4096, machine);
  EXPECT_EQ(c.BN, 176);
  EXPECT_EQ(c.stages, 3);
  EXPECT_EQ(c.BM, before.BM);
  EXPECT_EQ(c.warps, before.warps);
  EXPECT_EQ(default_gemm_config(DType::f16, false, 5000, 3000, machine).BN, 176) << "a problem nearby";
  EXPECT_NE(default_gemm_config(DType::f16, false, 512, 512, machine).BN, 176);
  EXPECT_NE(default_gemm_config(DType::bf16, false, 4096, 4096, machine).BN, 176);
  machine.model = "Another";
  EXPECT_EQ(default_gemm_config(DType::f16, false, 4096, 4096, machine).BN, before.BN);
  machine.model = "Test GPU";
  add("attention_forward", "Test GPU", attention_tuning_key(DType::bf16, 4096, 128, 128, true).text(), "BN=112");
  EXPECT_EQ(default_attention_config(DType::bf16, 4096, 128, 128, true, 1, machine).BN, 112);
  EXPECT_NE(default_attention_config(DType::bf16, 4096, 128, 128, false, 1, machine).BN, 112);
}

// What `bench --tune` keeps must win in time and in cycles, in most of the rounds.
TEST_F(TuningTest, AGainIsOneInTimeAndInCycles) {
  using bench::confirmed_gain;
  EXPECT_NEAR(confirmed_gain({{1.1, 0}, {1.1, 0}, {1.1, 0}}, {{1, 0}, {1, 0}, {1, 0}}), 0.1, 1e-9);
  EXPECT_NEAR(confirmed_gain({{1.1, 110}}, {{1, 108}}), 110. / 108 - 1, 1e-9) << "the clock was lower";
  EXPECT_NEAR(confirmed_gain({{1, 110}}, {{1.02, 100}}), 1 / 1.02 - 1, 1e-9) << "fewer cycles, but of a slower clock";
  EXPECT_NEAR(confirmed_gain({{1, 0}, {1, 0}, {9, 0}}, {{1, 0}, {1, 0}, {1, 0}}), 0, 1e-9) << "one disturbed round";
  EXPECT_EQ(confirmed_gain({}, {}), 0);
}

// A kernel that changed leaves lines behind that mean nothing any more: they must go from the shipped tables with it.
TEST_F(TuningTest, ShippedLinesAreUnderstood) {
  EXPECT_TRUE(tuning_problems().empty());
  std::set<std::string> tables;
  for (const CatalogRow& row : catalog()) {
    if (row.tuning == nullptr) continue;
    for (const Problem& p : row.problems) {
      const Tuning t = row.tuning(p, kMachines[1]);
      if (t.space.empty()) continue;
      tables.insert(t.table);
      for (const TuningEntry& e : tuning_database()->entries()) {
        if (e.kernel != t.table) continue;
        const auto fields = tile::detail::parse_fields(e.config, row.kernel(p.dtype)->fields());
        ASSERT_NE(fields, nullptr) << e.kernel << " | " << e.key << " | " << e.config;
      }
    }
  }
  for (const TuningEntry& e : tuning_database()->entries()) EXPECT_TRUE(tables.count(e.kernel)) << e.kernel;
}

}  // namespace
}  // namespace tile::kernels
