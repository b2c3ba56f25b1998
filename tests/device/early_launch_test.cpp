// early_launch_test.cpp - which launches may begin before the kernel in front of them has ended.
#include "runtime/cuda/early_launch.h"

#include <gtest/gtest.h>

namespace tile::cu {
namespace {

bool early(int64_t programs, int64_t resident, double before, bool is_short = false) {
  return comes_early({programs, resident, /*multiprocessors=*/132}, before, is_short);
}

TEST(EarlyLaunch, WhereProgramsFillTheMachine) {
  EXPECT_TRUE(early(132, 1, 1)) << "one for each multiprocessor";
  EXPECT_TRUE(early(3, 1, 1)) << "a multiprocessor takes no second one";
  EXPECT_TRUE(early(256, 2, 1));
  EXPECT_TRUE(early(100000, 16, 1));
  EXPECT_FALSE(early(256, 3, 1)) << "some multiprocessors would take three, others one";
  EXPECT_FALSE(early(64, 16, 1)) << "four multiprocessors would take all";
}

TEST(EarlyLaunch, WhereThereIsRoomBesideTheKernelInFront) {
  const Placement few{256, 4, 132}, many{320, 4, 132};
  EXPECT_DOUBLE_EQ(few.share(), .5);
  EXPECT_DOUBLE_EQ(many.share(), .75);
  EXPECT_TRUE(comes_early(few, few.share(), false));
  EXPECT_FALSE(comes_early(many, many.share(), false));
  EXPECT_TRUE(comes_early(many, .25, false));
}

TEST(EarlyLaunch, ShortProgramsThatHalfFillTheMachine) {
  EXPECT_TRUE(early(1024, 12, 1, /*is_short=*/true));
  EXPECT_FALSE(early(1024, 12, 1));
  EXPECT_FALSE(early(528, 8, 1, /*is_short=*/true)) << "half of the multiprocessors would take all";
}

}  // namespace
}  // namespace tile::cu
