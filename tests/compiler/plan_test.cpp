// What a kernel with roles gets of a multiprocessor: stages, staging, registers.
#include "compiler/gpu/rings/memory_plan.h"
#include "compiler/gpu/rings/register_plan.h"

#include <gtest/gtest.h>

#include "mlir/IR/MLIRContext.h"

namespace tile::ir {
namespace {

constexpr int64_t kKilo = 1024;

class Plan : public testing::Test {
 protected:
  Plan() : loc(mlir::UnknownLoc::get(&context)) { plan.limit = 227 * kKilo; }
  void ring(int64_t bytes, bool inLoop, int wished = 0) {
    plan.rings.push_back({loc, "ring", bytes, wished, inLoop, 1});
  }
  void staging(int64_t rowBytes, std::vector<int64_t> columns) {
    plan.stagings.push_back({loc, "staging", rowBytes, columns, 0});
  }
  void scratch(int64_t bytes) { plan.fixed.push_back({loc, "scratch", bytes}); }

  mlir::MLIRContext context;
  mlir::Location loc;
  MemoryPlan plan;
};

// 128x256 halves from 64-column steps: four stages, and the store in two passes.
TEST_F(Plan, StagesBeforeStaging) {
  ring(48 * kKilo, true);
  staging(256, {256, 128, 64});
  scratch(kScratchReserve);
  ASSERT_TRUE(plan.choose());
  EXPECT_EQ(plan.rings[0].stages, 4);
  EXPECT_EQ(plan.stagings[0].chosen, 128);
  EXPECT_LE(plan.bytes(), plan.limit);
}

// Attention on 128 columns: keys, values and queries twice each, whole output tiles.
TEST_F(Plan, NextProgramsTilesBeforeThirdStages) {
  ring(32 * kKilo, false);
  ring(32 * kKilo, true);
  ring(32 * kKilo, true);
  staging(256, {128, 64});
  scratch(kScratchReserve);
  ASSERT_TRUE(plan.choose());
  for (const RingPlan& ring : plan.rings) EXPECT_EQ(ring.stages, 2);
  EXPECT_EQ(plan.stagings[0].chosen, 128);
}

// Attention on 256 columns: the stored tile goes through the stage of the queries where that gives the loop its stages,
// and keeps a buffer of its own where it has them anyway.
TEST_F(Plan, StoresThroughADeadTileMakeRoomForStages) {
  for (int rows : {64, 80}) {
    plan.rings.clear(), plan.stagings.clear(), plan.fixed.clear();
    ring(64 * kKilo, false);
    ring(rows * 512, true, 2);
    ring(rows * 512, true, 2);
    staging(256, {256, 128, 64});
    plan.stagings[0].host = 0;
    scratch(kScratchReserve);
    ASSERT_TRUE(plan.choose());
    EXPECT_EQ(plan.rings[0].stages, 1);
    EXPECT_EQ(plan.rings[1].stages, 2);
    EXPECT_EQ(plan.rings[2].stages, 2);
    EXPECT_EQ(plan.stagings[0].isHosted, rows == 80);
    EXPECT_EQ(plan.stagings[0].chosen, rows == 80 ? 256 : 128);
    EXPECT_LE(plan.bytes(), plan.limit);
  }
}

TEST_F(Plan, WishesHoldAsFarAsTheyFit) {
  ring(8 * kKilo, true, 3);
  ring(8 * kKilo, true);
  ASSERT_TRUE(plan.choose());
  EXPECT_EQ(plan.rings[0].stages, 3);
  EXPECT_EQ(plan.rings[1].stages, kMostStages);

  plan.rings.clear();
  ring(48 * kKilo, true, 6);
  ASSERT_TRUE(plan.choose());
  EXPECT_EQ(plan.rings[0].stages, 4);
  EXPECT_FALSE(plan.isComfortable());

  plan.rings.clear();
  ring(8 * kKilo, true, 1);
  ASSERT_TRUE(plan.choose());
  EXPECT_EQ(plan.rings[0].stages, 1);
}

TEST_F(Plan, StagesBesideWishesTakeWhatNobodyWants) {
  ring(32 * kKilo, true, 3);
  plan.rings[0].beside = 2;
  ASSERT_TRUE(plan.choose());
  EXPECT_EQ(plan.rings[0].stages, 5);

  plan.rings[0].beside = kMostStages;
  ring(40 * kKilo, true, 2);  // gets what it asks for first
  ASSERT_TRUE(plan.choose());
  EXPECT_EQ(plan.rings[0].stages, 4);
  EXPECT_EQ(plan.rings[1].stages, 2);
  EXPECT_LE(plan.bytes(), plan.limit);

  plan.rings.clear();
  for (int operand = 0; operand < 2; ++operand) {  // of one product: both get a stage more, or neither
    ring(32 * kKilo, true, 3);
    plan.rings.back().beside = 2;
  }
  ASSERT_TRUE(plan.choose());
  for (const RingPlan& operand : plan.rings) EXPECT_EQ(operand.stages, 3);

  plan.rings.pop_back();
  plan.rings[0].wished = 1;  // no copies ahead
  ASSERT_TRUE(plan.choose());
  EXPECT_EQ(plan.rings[0].stages, 1);
}

TEST_F(Plan, OneStageOfEverythingOrNothing) {
  ring(100 * kKilo, true);
  ring(100 * kKilo, false);
  staging(256, {128, 64});
  ASSERT_TRUE(plan.choose());
  EXPECT_EQ(plan.rings[0].stages, 1);
  EXPECT_EQ(plan.rings[1].stages, 1);
  EXPECT_EQ(plan.stagings[0].chosen, 64);
  scratch(16 * kKilo);
  EXPECT_FALSE(plan.choose());
}

TEST_F(Plan, NeverMoreThanFitsWhateverTheSizes) {
  for (int64_t a : {1, 3, 8, 16, 40, 64, 120})
    for (int64_t b : {1, 5, 24, 48, 96})
      for (int wished : {0, 1, 2, 5}) {
        plan.rings.clear(), plan.stagings.clear(), plan.fixed.clear();
        ring(a * kKilo, true, wished);
        ring(b * kKilo, false);
        staging(192, {192, 64, 32});
        const bool possible = (a + b) * kKilo + 192 * 32 + 200 <= plan.limit;
        EXPECT_EQ(plan.choose(), possible) << a << " " << b;
        if (!possible) continue;
        EXPECT_LE(plan.bytes(), plan.limit);
        for (const RingPlan& ring : plan.rings) EXPECT_GE(ring.stages, 1);
        if (wished) {
          EXPECT_LE(plan.rings[0].stages, wished);
        }
      }
}

// What programs enter with is all there is to share: a role that asks for more waits for ever.
TEST(Roles, RegistersFitWhatProgramsEnterWith) {
  auto target = lookupTarget("sm_90a");
  ASSERT_TRUE(target);
  for (int warps : {4, 8, 12}) {
    std::vector<RolePlan> plans = rolePlans(warps, *target);
    ASSERT_FALSE(plans.empty());
    EXPECT_EQ(plans.back().programs, 1);
    for (const RolePlan& plan : plans) {
      int threads = 128 * (plan.warpgroups + 1) * plan.programs;
      int entered = std::min(65536 / threads, 255) / 8 * 8;
      EXPECT_LE(plan.producerRegs + plan.warpgroups * plan.consumerRegs, entered * (plan.warpgroups + 1));
      EXPECT_EQ(plan.producerRegs % 8, 0);
      EXPECT_EQ(plan.consumerRegs % 8, 0);
      EXPECT_GE(plan.producerRegs, 24);
      EXPECT_LE(plan.programs * (sharedBytesEach(*target, plan.programs) + 1024), 228 * kKilo);
    }
  }
  EXPECT_TRUE(rolePlans(16, *target).empty());
  EXPECT_TRUE(rolePlans(2, *target).empty());
}

}  // namespace
}  // namespace tile::ir
