// test_product_tiles.cpp - the tiles that products get by their sizes: such as the kernel takes, for any size, and the
// ones that measurements chose.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "kernels/catalog.h"
#include "kernels/expert_gemm.h"
#include "kernels/gemm.h"

namespace tile::kernels {
namespace {

Machine hopper() {
  Machine m;
  m.gpu = m.warpgroups = true;
  m.shared_bytes = 232448, m.multiprocessors = 132;
  return m;
}
std::string text(const ProductTile& t) {
  return fmt::format("{}x{} splits {} cluster {} x {}", t.bm, t.bn, t.splits, t.cluster, t.cluster_n);
}

TEST(ProductTiles, AnySizeHasOneThatTheKernelTakes) {
  std::mt19937 random(5);
  auto size = [&] { return static_cast<int64_t>(std::exp2(std::uniform_real_distribution<>(0, 15)(random))); };
  for (int i = 0; i < 3000; ++i) {
    constexpr DType kTypes[] = {DType::f16, DType::bf16, DType::f8e4m3, DType::i8, DType::f32};
    ProductSizes s{1 + static_cast<int64_t>(random() % 3), size(), size(), random() % 2 ? size() : 0,
                   random() % 2 == 0};
    s.in = kTypes[random() % std::size(kTypes)], s.along_k = is_f8(s.in) || random() % 2;
    s.beside = 1 + static_cast<int>(size_of(s.in) == 2 && random() % 2);
    const ProductTile t = warpgroup_tile(s, hopper());
    SCOPED_TRACE(fmt::format("{} x {} x {} x {}: {}", s.batch, s.m, s.n, s.k, text(t)));
    ASSERT_TRUE(t.bm % 8 == 0 && t.bn % 64 == 0 && t.warps % 4 == 0 && t.stages >= 3);
    ASSERT_LE((t.bm + t.bn) * 128 * t.stages, 232448 - 4096) << "stages fit";
    ASSERT_GE(t.splits, 1);
    ASSERT_TRUE(t.splits == 1 || (s.may_split && s.k / t.splits >= 400)) << "parts of K worth a launch of their own";
    ASSERT_TRUE(t.splits == 1 || t.cluster * t.cluster_n == 1) << "parts have no clusters";
    ASSERT_TRUE(t.cluster == 1 || cdiv(s.m, int64_t{t.bm}) % t.cluster == 0);
    ASSERT_TRUE(t.cluster_n == 1 || (t.cluster == 1 && cdiv(s.n, int64_t{t.bn}) % t.cluster_n == 0 && s.m % t.bm == 0 &&
                                     t.bm % (8 * t.cluster_n) == 0));
  }
}

TEST(ProductTiles, SizesThatWereMeasured) {
  auto tile = [](int64_t m, int64_t n, int64_t k) {
    return text(warpgroup_tile({1, m, n, k, /*may_split=*/true}, hopper()));
  };
  EXPECT_EQ("128x256 splits 1 cluster 1 x 1", tile(4096, 4096, 4096));
  EXPECT_EQ("144x256 splits 1 cluster 1 x 1", tile(8192, 8192, 8192));
  EXPECT_EQ("64x128 splits 1 cluster 1 x 1", tile(1024, 1024, 1024)) << "a cluster would wait longer than it saves";
  EXPECT_EQ("64x128 splits 1 cluster 1 x 1", text(warpgroup_tile({1, 1024, 1024, 1024}, hopper())));
  EXPECT_EQ("16x128 splits 1 cluster 1 x 1", tile(1, 4096, 4096));
  EXPECT_EQ("72x64 splits 1 cluster 1 x 1", tile(72, 6144, 4096)) << "as many rows as there are";
  EXPECT_EQ("152x256 splits 1 cluster 1 x 1", tile(300, 14336, 4096));
  EXPECT_EQ("64x128 splits 1 cluster 2 x 1", tile(128, 8192, 8192)) << "pairs of tile rows copy B together";
  EXPECT_EQ("64x128 splits 3 cluster 1 x 1", tile(128, 2560, 8192)) << "40 tiles do not fill the machine";
}

TEST(ExpertTiles, SizesThatWereMeasured) {
  auto tile = [](int64_t rows, int64_t experts, int64_t n, int64_t k) {
    const ExpertGemmConfig c = default_expert_gemm_config(rows, experts, n, hopper(), k);
    return fmt::format("{}x{}x{} stages {}", c.BM, c.BN, c.BK, c.stages);
  };
  EXPECT_EQ("16x128x128 stages 6", tile(64, 128, 1536, 2048)) << "weights from memory, deep rings";
  EXPECT_EQ("32x128x128 stages 5", tile(2048, 128, 1536, 2048));
  EXPECT_EQ("64x128x64 stages 6", tile(4096, 128, 1536, 2048));
  EXPECT_EQ("128x256x64 stages 4", tile(16384, 8, 14336, 4096));
  EXPECT_EQ("144x128x64 stages 3", tile(4096, 32, 7168, 2048)) << "a block for each expert";
  EXPECT_EQ("16x128x128 stages 6", tile(0, 0, 0, 0)) << "nothing to compute";
  for (const ExpertTile& t : detail::kExpertTiles)
    EXPECT_LE((t.bm + t.bn) * t.bk * 2 * t.stages, 232448 - 4096) << t.bm << "x" << t.bn;
}

TEST(ExpertTiles, TheGateBuildsAllOfThem) {
  std::set<std::pair<int, int>> built;
  for (const CatalogRow& row : catalog())
    for (const Problem& p : row.problems)
      if (row.name == "expert_gemm" && p.purpose == Purpose::build) {
        const auto c = expert_gemm_kernel<half>().from_words(row.default_config(p, hopper()));
        built.emplace(c.BM, c.BN);
      }
  for (const ExpertTile& t : detail::kExpertTiles) EXPECT_TRUE(built.contains({t.bm, t.bn})) << t.bm << "x" << t.bn;
}

TEST(ExpertTiles, BlocksAreThoseOfRowsDrawnAtRandom) {
  std::mt19937 random(3);
  for (const double each : {.1, 1., 8., 16., 100., 128., 300., 2000.})
    for (const int height : {16, 80, 128}) {
      std::poisson_distribution<int> rows(each);
      double blocks = 0;
      for (int i = 0; i < 20000; ++i) blocks += cdiv(rows(random), height);
      EXPECT_NEAR(blocks / 20000, detail::expected_blocks(each, 1, height), .02 * (1 + blocks / 20000))
          << each << " rows in blocks of " << height;
    }
}

TEST(ResidentTiles, AnySizeHasOneThatTheKernelTakes) {
  Machine ampere;
  ampere.gpu = true, ampere.shared_bytes = 101376, ampere.multiprocessors = 84;  // sm_86
  std::mt19937 random(6);
  auto size = [&] { return static_cast<int64_t>(std::exp2(std::uniform_real_distribution<>(0, 15)(random))) - 1; };
  for (int i = 0; i < 2000; ++i)
    for (const Machine& machine : {hopper(), ampere})
      for (const auto& [in, tf32x3] : {std::pair(DType::f32, false), {DType::f32, true}, {DType::f64, false}}) {
        const int64_t batch = 1 + static_cast<int64_t>(random() % 3), m = size(), n = size(), k = size();
        const bool may_split = random() % 2;
        const ResidentTile t = resident_tile(
            {.batch = batch, .m = m, .n = n, .k = k, .may_split = may_split, .in = in, .tf32x3 = tf32x3}, machine);
        SCOPED_TRACE(fmt::format("{} x {} x {} x {}: {}x{}x{} in {}", batch, m, n, k, t.bm, t.bn, t.bk, t.splits));
        ASSERT_LE(detail::ring_bytes(t, in), machine.shared_bytes - 2048) << "stages fit";
        ASSERT_TRUE(t.stages >= 2 && t.splits >= 1 && (may_split || t.splits == 1));
        ASSERT_TRUE(t.splits == 1 || k / t.splits >= 256) << "parts of K worth a launch of their own";
      }
}

TEST(ResidentTiles, SizesThatWereMeasured) {
  auto tile = [](DType in, int64_t m, int64_t n, int64_t k) {
    const ResidentTile t = resident_tile({1, m, n, k, /*may_split=*/true, in}, hopper());
    return fmt::format("{}x{}x{} splits {}", t.bm, t.bn, t.bk, t.splits);
  };
  EXPECT_EQ("128x128x32 splits 1", tile(DType::f32, 4096, 4096, 4096));
  EXPECT_EQ("64x128x32 splits 1", tile(DType::f32, 1024, 1024, 1024)) << "one tile for each multiprocessor";
  EXPECT_EQ("64x128x32 splits 4", tile(DType::f32, 64, 4096, 4096)) << "32 tiles";
  const ResidentTile x3 = resident_tile({.batch = 1, .m = 4096, .n = 4096, .k = 4096, .tf32x3 = true}, hopper());
  EXPECT_EQ("128x128", fmt::format("{}x{}", x3.bm, x3.bn));
  EXPECT_EQ("128x64x16 splits 1", tile(DType::f64, 4096, 4096, 4096));
  EXPECT_EQ("96x96x16 splits 1", tile(DType::f64, 1500, 1500, 1500)) << "two rounds, 256 of 264 programs";
}

TEST(ResidentTiles, TheGateBuildsAllOfThem) {
  std::set<std::tuple<std::string, int, int>> built;
  for (const CatalogRow& row : catalog())
    for (const Problem& p : row.problems)
      if (row.name == "gemm" && p.purpose == Purpose::build) {
        const auto c = gemm_kernel<float, float>().product.from_words(row.default_config(p, hopper()));
        built.emplace(p.dtype, c.BM, c.BN);
      }
  for (const ResidentTile& t : detail::kTilesOfF32)
    EXPECT_TRUE(built.contains({"f32", t.bm, t.bn})) << t.bm << "x" << t.bn;
  for (const ResidentTile& t : detail::kTilesOfTf32x3)
    EXPECT_TRUE(built.contains({"tf32x3", t.bm, t.bn})) << t.bm << "x" << t.bn;
  for (const ResidentTile& t : detail::kTilesOfF64)
    EXPECT_TRUE(built.contains({"f64", t.bm, t.bn})) << t.bm << "x" << t.bn;
}

TEST(ProductTiles, KeptOnesAreOfTheirSizesAndMachine) {
  Machine half = hopper();
  half.multiprocessors = 66;
  for (int turn = 0; turn < 2; ++turn)
    for (int64_t m = 1; m < 3000; m += 7)
      for (int beside : {1, 2})
        for (const Machine& machine : {hopper(), half}) {
          const ProductSizes s{.batch = 1, .m = m, .n = 4096, .k = 4096, .may_split = m % 2 == 0, .beside = beside};
          ASSERT_EQ(text(detail::fastest_tile(s, machine.multiprocessors)), text(warpgroup_tile(s, machine)));
        }
}

TEST(ProductTiles, CyclesGrowWithTheProduct) {
  const ProductTile t{128, 128, 8, 6, .95};
  const double one = detail::cycles_of(t, {1, 4096, 4096, 4096}, 4096, 132);
  EXPECT_NEAR(2 * one, detail::cycles_of(t, {1, 4096, 4096, 8192}, 8192, 132), one * .1);
  EXPECT_LT(one, detail::cycles_of(t, {1, 4096, 4096, 4100}, 4100, 132)) << "rows begin within lines";
  EXPECT_LT(one, detail::cycles_of(t, {1, 4097, 4096, 4096}, 4096, 132)) << "a round more";
  EXPECT_LT(one, detail::cycles_of(t, {2, 4096, 4096, 4096}, 4096, 132));
}

}  // namespace
}  // namespace tile::kernels
