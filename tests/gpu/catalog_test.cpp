// catalog_test.cpp - kernels of the catalog, compiled for sm_90a and launched on the simulated machine under several
// schedules, against the float64 references. Loops run 0, 1, stages - 1, stages, stages + 1 times; grids are larger
// than the programs that run at a time.
#include "kernels/catalog.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "tests/gpu/simt_device.h"
#include "tests/test_names.h"

namespace tile::kernels {
namespace {

std::shared_ptr<Device> simulated() {
  static std::shared_ptr<Device> device = tile::testing::makeSimtDevice();
  return device;
}

/// Runs a problem of a row under the schedules; `set` changes fields of the default configuration ("BM=64").
void runProblem(const std::string& name, const std::string& dtype, Fields sizes,
                const std::vector<std::string>& set = {}, std::vector<uint32_t> seeds = {1, 2, 3}) {
  Problem problem{dtype, std::move(sizes)};
  SCOPED_TRACE(name + " " + problem.to_string());
  const CatalogRow& row = *find_kernel(name).value_or_throw();
  ConfigWords config = row.default_config(problem, Machine::of(simulated()->properties()));
  if (!set.empty()) config = row.kernel(dtype)->parse_config(set, config).value_or_throw();
  auto run = row.prepare(simulated(), problem, config);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  for (uint32_t seed : seeds) {
    tile::testing::setSimtSeed(seed);
    auto checks = (*run)->check(simulated()->default_stream());
    ASSERT_TRUE(checks.ok()) << "seed " << seed << ": " << checks.error().to_string();
    for (const Check& check : *checks)
      ASSERT_TRUE(check.comparison.pass) << "seed " << seed << ": " << check.output << ": " << check.comparison.why;
  }
}

/// These fields of a product, and no parts of K or clusters but those they ask for.
std::vector<std::string> product(const std::vector<std::string>& set) {
  std::vector<std::string> all = {"splits=1", "cluster=1", "cluster_n=1"};
  all.insert(all.end(), set.begin(), set.end());
  return all;
}

TEST(SimtCatalog, GemmTripCounts) {
  for (int k : {0, 16, 64, 128, 192, 256, 320, 576}) runProblem("gemm", "f16", {{"M", 200}, {"N", 264}, {"K", k}});
}
TEST(SimtCatalog, GemmTransposes) {
  for (int which : {1, 2, 3})
    runProblem("gemm", "bf16", {{"M", 136}, {"N", 128}, {"K", 136}, {"ta", which & 1}, {"tb", which >> 1}});
  // One operand across: read by the threads, b as the first operand of the transposed product.
  for (int which : {0, 3})
    runProblem("gemm", "tf32", {{"M", 264}, {"N", 136}, {"K", 100}, {"ta", which & 1}, {"tb", which >> 1}},
               {"BM=128", "BN=128", "BK=32", "warps=8"});
}
TEST(SimtCatalog, GemmClusters) {
  for (int k : {0, 64, 192, 200, 320})  // four tile rows, and three
    for (int m : {200, 136})
      runProblem("gemm", "f16", {{"M", m}, {"N", 264}, {"K", k}}, product({"cluster=2"}), {1, 2, 3, 4});
  runProblem("gemm", "bf16", {{"M", 300}, {"N", 512}, {"K", 200}, {"tb", 1}, {"batch", 2}},
             product({"BM=128", "BN=256", "warps=8", "cluster=2"}));
  runProblem("gemm", "f8e4m3", {{"M", 128}, {"N", 128}, {"K", 288}, {"tb", 1}}, product({"cluster=2"}));
}
TEST(SimtCatalog, GemmClustersOfFour) {
  auto with = [](const char* cluster) { return product({"BM=64", "BN=64", "warps=4", "stages=3", cluster}); };
  for (int k : {0, 64, 200, 320}) {  // five tile columns, and three tile rows
    runProblem("gemm", "f16", {{"M", 100}, {"N", 264}, {"K", k}, {"tb", 1}}, with("cluster_n=4"), {1, 2});
    runProblem("gemm", "f16", {{"M", 164}, {"N", 72}, {"K", k}}, with("cluster=4"), {1, 2});
  }
  runProblem("gemm", "bf16", {{"M", 80}, {"N", 256}, {"K", 200}, {"tb", 1}, {"batch", 2}},
             product({"BM=80", "BN=64", "warps=4", "cluster_n=2"}));
}
// Rows that 64 does not divide: columns of the transposed product, which leave by bulk copies of all rows.
TEST(SimtCatalog, GemmTurned) {
  for (int which : {0, 1, 2, 3})
    runProblem("gemm", "f16", {{"M", 150}, {"N", 136}, {"K", 200}, {"ta", which & 1}, {"tb", which >> 1}},
               product({"BM=72", "BN=128", "warps=8"}), {1, 2});
  runProblem("gemm", "f16", {{"M", 300}, {"N", 512}, {"K", 136}, {"beta", 2}},
             product({"BM=152", "BN=256", "warps=8", "stages=3"}), {1});
  runProblem("gemm", "bf16", {{"M", 50}, {"N", 192}, {"K", 330}, {"tb", 1}, {"gap", 8}, {"batch", 2}},
             product({"BM=40", "BN=192", "warps=12"}), {1, 2});
  runProblem("gemm", "f8e4m3", {{"M", 100}, {"N", 256}, {"K", 288}, {"tb", 1}},
             product({"BM=104", "BN=128", "warps=8"}), {1, 2});
  runProblem("gemm", "i8", {{"M", 100}, {"N", 128}, {"K", 288}, {"tb", 1}}, product({"BM=112", "BN=128", "warps=8"}),
             {1, 2});
  runProblem("gemm", "tf32", {{"M", 100}, {"N", 128}, {"K", 100}, {"tb", 1}},
             product({"BM=40", "BN=128", "BK=32", "warps=8"}), {1, 2});
  runProblem("gated_gemm", "f16", {{"M", 70}, {"N", 136}, {"K", 200}}, {"BM=72", "BN=64", "warps=4"}, {1, 2});
  runProblem("gated_gemm", "bf16", {{"M", 150}, {"N", 128}, {"K", 136}}, {"BM=152", "BN=128", "warps=8", "stages=3"},
             {1, 2});
}
// Four multiprocessors: tiles of whole rounds, and parts of the others, whose last program adds them.
TEST(SimtCatalog, GemmSplits) {
  const std::vector<std::string> tiles = product({"BM=128", "BN=128", "warps=8", "splits=3"});
  for (int k : {0, 40, 64, 320, 576}) runProblem("gemm", "f16", {{"M", 200}, {"N", 264}, {"K", k}}, tiles);
  runProblem("gemm", "bf16", {{"M", 300}, {"N", 512}, {"K", 200}, {"tb", 1}, {"batch", 2}, {"beta", 2}},
             product({"BM=128", "BN=256", "warps=8", "splits=2"}), {1, 2});
  runProblem("gemm", "f16", {{"M", 60}, {"N", 70}, {"K", 130}, {"gap", 3}},
             product({"BM=64", "BN=64", "warps=4", "splits=4"}));
}
// Both parts of both operands, by warpgroups: A and B as they lie, and turned.
TEST(SimtCatalog, GemmTf32x3) {
  for (int which : {0, 1, 2, 3})
    runProblem("gemm", "tf32x3", {{"M", 136}, {"N", 260}, {"K", 100}, {"ta", which & 1}, {"tb", which >> 1}},
               {"BM=128", "BN=128", "BK=32", "warps=8", "stages=2"}, {1, 2});
  runProblem("gemm", "tf32x3", {{"M", 200}, {"N", 300}, {"K", 130}, {"tb", 1}, {"beta", 2}, {"splits", 2}},
             {"BM=128", "BN=192", "BK=32", "warps=8", "stages=2"}, {1, 2});
}
TEST(SimtCatalog, GemmTypes) {
  for (const char* dtype : {"f32", "tf32", "tf32x3", "i8", "f8e4m3", "f8e5m2"})
    runProblem("gemm", dtype, {{"M", 128}, {"N", 128}, {"K", 160}, {"tb", 1}});
}
// Weights widened in the registers of the transposed product, with one and with two blocks of 64 columns per warpgroup;
// sizes that bulk copies take and sizes that they do not; parts of K.
TEST(SimtCatalog, QuantizedWeights) {
  for (const char* name : {"gemm_w8", "gemm_w4"}) {
    for (int k : {128, 384})
      runProblem(name, "f16", {{"M", 140}, {"N", 144}, {"K", k}}, {"BM=128", "BN=128", "warps=8", "stages=3"}, {1, 2});
    runProblem(name, "bf16", {{"M", 20}, {"N", 272}, {"K", 512}}, {"BM=32", "BN=256", "warps=8", "splits=3"}, {1, 2});
    runProblem(name, "f16", {{"M", 33}, {"N", 77}, {"K", 192}, {"G", 64}, {"gap", 3}}, {"BN=128", "splits=1"}, {1});
    // Several groups to a block, and blocks of the groups' own size.
    for (int group : {8, 32, 48})
      runProblem(name, "f16", {{"M", 70}, {"N", 136}, {"K", 288}, {"G", group}}, {"splits=1"}, {1});
  }
}
TEST(SimtCatalog, AttentionForward) {
  for (int causal : {0, 1})
    for (int keys : {64, 200, 520})
      runProblem("attention_forward", "f16", {{"Hq", 2}, {"Sq", 200}, {"Sk", keys}, {"D", 64}, {"causal", causal}});
}
// Results leave through the stage of the queries, which the next program's copy must leave alone until then.
TEST(SimtCatalog, AttentionForwardOfWideHeads) {
  for (int causal : {0, 1})
    runProblem("attention_forward", "f16", {{"Hq", 2}, {"Sq", 300}, {"Sk", 170}, {"D", 256}, {"causal", causal}},
               {"BM=128", "BN=80", "stages=2", "warps=8"}, {1, 2});
}
// One loop, split by the compiler where masks begin and end, its second product an iteration late.
TEST(SimtCatalog, AttentionForwardInOneLoop) {
  const std::vector<std::string> oneLoop = {"split=false", "BM=128", "BN=64", "warps=8"};
  for (int causal : {0, 1})
    for (int keys : {0, 40, 128, 330})
      runProblem("attention_forward", "f16", {{"Hq", 1}, {"Sq", 200}, {"Sk", keys}, {"D", 64}, {"causal", causal}},
                 oneLoop, {1, 2});
  runProblem("attention_forward", "bf16",
             {{"Hq", 1}, {"Sq", 200}, {"Sk", 700}, {"D", 64}, {"left", 100}, {"right", 70}}, oneLoop, {1});
}

// 8-bit values lie across what products want: warps beside the copying one turn them, and weights stay in registers, in
// an order that both sides count keys in. Tiles that cannot be turned so (48 keys) go through the consumers' registers.
TEST(SimtCatalog, AttentionForwardOfBytes) {
  auto fields = [](int m, int n, int d) {
    return std::vector<std::string>{fmt::format("BM={}", m), fmt::format("BN={}", n),         fmt::format("D={}", d),
                                    fmt::format("DV={}", d), fmt::format("warps={}", m / 16), "split=false"};
  };
  for (int causal : {0, 1})
    for (int keys : {0, 40, 128, 330})
      runProblem("attention_forward", "f8e4m3", {{"Hq", 2}, {"Sq", 200}, {"Sk", keys}, {"D", 64}, {"causal", causal}},
                 fields(128, 64, 64), {1, 2});
  for (auto [m, n, d] :
       {std::array{128, 128, 128}, {64, 96, 64}, {192, 128, 32}, {64, 160, 96}, {64, 48, 64}, {128, 64, 256}})
    runProblem("attention_forward", "f8e4m3",
               {{"Hq", 4}, {"Hkv", 2}, {"Sq", 113}, {"Sk", 203}, {"D", d}, {"causal", 1}, {"descale", 1}},
               fields(m, n, d), {1});
  runProblem("attention_forward", "f8e4m3",
             {{"Hq", 1}, {"Sq", 200}, {"Sk", 500}, {"D", 64}, {"left", 100}, {"right", 70}}, fields(128, 64, 64), {1});
  for (int pattern : {1, 2, 3})
    runProblem("attention_forward", "f8e4m3", {{"Hq", 2}, {"D", 64}, {"varlen", pattern}, {"causal", pattern % 2}},
               fields(128, 64, 64), {1});
}

// Warpgroups that take turns: as often one as the other, across loops and programs.
TEST(SimtCatalog, AttentionForwardInTurns) {
  for (const char* dtype : {"f16", "f8e4m3"})
    for (auto [m, keys, causal] : {std::array{128, 330, 0}, {128, 200, 1}, {192, 40, 1}, {64, 130, 0}, {192, 0, 0}})
      runProblem("attention_forward", dtype, {{"Hq", 2}, {"Sq", 300}, {"Sk", keys}, {"D", 64}, {"causal", causal}},
                 {fmt::format("BM={}", m), "BN=64", fmt::format("warps={}", m / 16), "split=false", "turns=true"}, {1, 2});
}

// The kernels that are meant to have roles on this machine have them.
TEST(SimtCatalog, UsesBulkCopiesAndPersistentPrograms) {
  const auto before = tile::testing::simtLaunches();
  runProblem("gemm", "f16", {{"M", 256}, {"N", 256}, {"K", 128}}, {}, {1});
  const auto after = tile::testing::simtLaunches();
  EXPECT_GT(after.bulk, before.bulk);
  EXPECT_GT(after.persistent, before.persistent);
}

// Lists that heads share have strides of 0, which tensor maps do not describe: that is the lists' business alone.
TEST(SimtCatalog, S2_12_SharedListsOfBlocksLeaveTheTensorsTheirBulkCopies) {
  for (const char* name : {"block_sparse_attention", "block_sparse_attention_backward"}) {
    const auto before = tile::testing::simtLaunches();
    runProblem(name, "f16", {{"Hq", 2}, {"Sq", 300}, {"D", 64}, {"causal", 1}, {"density", 60}}, {}, {1});
    EXPECT_GT(tile::testing::simtLaunches().bulk, before.bulk) << name;
  }
}
// Rows gathered by warps of their own, or by those that multiply them.
TEST(SimtCatalog, GatheredRows) {
  for (int producer : {0, 1}) {
    for (int k : {0, 40, 64, 136, 200, 328})
      runProblem("expert_gemm", "f16", {{"M", 50}, {"N", 144}, {"K", k}, {"E", 3}, {"producer", producer}},
                 {"BM=64", "warps=4"});
    runProblem("expert_gemm", "bf16", {{"M", 77}, {"N", 33}, {"K", 45}, {"E", 1}, {"gap", 3}, {"producer", producer}});
    for (int c : {16, 72})
      runProblem("convolution", "f16",
                 {{"N", 2}, {"H", 9}, {"W", 7}, {"C", c}, {"K", 72}, {"pad", 1}, {"gather", 1}, {"producer", producer}},
                 {"BM=64"});
  }
}
// Pixels in patches: images, rows and columns that no patch divides, taps outside, channels that no copy divides; and a
// view whose strides bulk copies refuse, where threads gather the patch.
TEST(SimtCatalog, PatchesOfPixels) {
  for (const char* patch : {"PN=1 PH=8 PW=8", "PN=4 PH=2 PW=8"}) {
    std::vector<std::string> set{"BM=64", "BN=64", "warps=4"};
    std::istringstream words(patch);
    for (std::string word; words >> word;) set.push_back(word);
    runProblem("convolution", "f16", {{"N", 3}, {"H", 9}, {"W", 7}, {"C", 72}, {"K", 40}, {"pad", 1}}, set, {1, 2});
    runProblem("convolution", "bf16", {{"N", 1}, {"H", 11}, {"W", 12}, {"C", 8}, {"K", 8}, {"pad", 2}, {"dilation", 3}},
               set, {1});
    runProblem("convolution", "f16", {{"N", 2}, {"H", 5}, {"W", 7}, {"C", 3}, {"K", 5}, {"gap", 1}}, set, {1});
  }
  const auto before = tile::testing::simtLaunches();
  runProblem("convolution", "f16", {{"N", 2}, {"H", 12}, {"W", 16}, {"C", 64}, {"K", 136}, {"pad", 1}},
             {"BM=128", "BN=256", "warps=8", "PN=2", "PH=8", "PW=8"}, {1, 2});
  EXPECT_GT(tile::testing::simtLaunches().bulk, before.bulk);
}
// Bytes become floats by their digits, not by a conversion.
TEST(SimtCatalog, WeightsOfBytes) {
  for (const char* dtype : {"f16", "bf16"}) runProblem("gemm_w8", dtype, {{"M", 70}, {"N", 136}, {"K", 256}});
}

// ---- every row: its test and edge problems that are small enough, each under one schedule. Every third of them, as
// they take a second each; TILE_SIMT_ALL=1: all.

struct Param {
  const CatalogRow* row;
  size_t problem;
};
void PrintTo(const Param& p, std::ostream* out) {
  *out << p.row->name << " " << p.row->problems[p.problem].to_string();
}

std::vector<Param> allProblems() {
  std::vector<Param> params;
  size_t count = 0;
  for (const CatalogRow& row : catalog())
    for (size_t p = 0; p < row.problems.size(); ++p)
      if ((count++ % 3 == 0 || std::getenv("TILE_SIMT_ALL")) &&
          (row.problems[p].purpose == Purpose::test || row.problems[p].purpose == Purpose::edge))
        params.push_back({&row, p});
  return params;
}
std::string testName(const ::testing::TestParamInfo<Param>& info) {
  return test_name_of(info.param.row->name + "_" + info.param.row->problems[info.param.problem].to_string());
}

class SimtRow : public ::testing::TestWithParam<Param> {};

TEST_P(SimtRow, AgreesWithReference) {
  constexpr double kMostFlops = 4e7;
  const auto& [row, index] = GetParam();
  const Problem& problem = row->problems[index];
  auto run = row->prepare(simulated(), problem, row->default_config(problem, Machine::of(simulated()->properties())));
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  if ((*run)->work().flops > kMostFlops) return;  // minutes here; the host and GPUs run it
  tile::testing::setSimtSeed(static_cast<uint32_t>(index));
  auto checks = (*run)->check(simulated()->default_stream());
  ASSERT_TRUE(checks.ok()) << checks.error().to_string();
  for (const Check& check : *checks) EXPECT_TRUE(check.comparison.pass) << check.output << ": " << check.comparison.why;
}

INSTANTIATE_TEST_SUITE_P(All, SimtRow, ::testing::ValuesIn(allProblems()), testName);

}  // namespace
}  // namespace tile::kernels
