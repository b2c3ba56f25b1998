// Code whose loads wait for each other is assembled again with all registers that its warps leave.
#include <gtest/gtest.h>

#include "compiler/targets/nvptx.h"
#include "tests/compiler/ptx_sums.h"

namespace tile::ir {
namespace {

class SameWarps : public testing::Test {
 protected:
  void SetUp() override {
    if (findPtxas({}).empty()) GTEST_SKIP() << "ptxas not found";
  }
  struct Tried {
    int before = 0, after = 0;  ///< registers; `after` 0: the code stays
  };
  static Tried tried(const std::string& ptx) {
    const Target target = lookupTarget("sm_90a").value_or_throw();
    Resources resources;
    const std::string cubin = runPtxas(ptx, target, {}, resources).value_or_throw();
    Tried result{static_cast<int>(resources.registers), 0};
    if (withSameWarps(ptx, cubin, 0, target, {}, resources)) result.after = static_cast<int>(resources.registers);
    return result;
  }
};

/// Of 56 registers there are nine programs, whose eight loads come in three parts; of 64 there are eight, and two parts.
TEST_F(SameWarps, TakesTheRegistersThatTheyLeave) {
  const Tried rows = tried(sumsOf(8));
  ASSERT_LE(rows.before, 56) << "ptxas keeps them together by itself by now";
  EXPECT_GT(rows.after, 56);
  EXPECT_LE(rows.after, 64);
}

TEST_F(SameWarps, NotWhereLoadsComeTogetherOrTheKernelHasABound) {
  EXPECT_EQ(tried(sumsOf(3)).after, 0);
  EXPECT_EQ(tried(sumsOf(6)).after, 0);  // in two parts: not worth one program of ten
  EXPECT_EQ(tried(sumsOf(8, ".minnctapersm 8\n")).after, 0);
  EXPECT_EQ(tried(sumsOf(8, ".maxnreg 56\n")).after, 0);
}

/// Two programs of 512 threads have 64 registers for each; a loop that takes them all has no more to gain.
TEST_F(SameWarps, NotForFewerWarps) {
  std::string ptx = sumsOf(8);
  const std::string threads = ".reqntid 128";
  ptx.replace(ptx.find(threads), threads.size(), ".reqntid 512");
  const Tried rows = tried(ptx);
  EXPECT_EQ(rows.before, 64);
  EXPECT_EQ(rows.after, 0);
}

}  // namespace
}  // namespace tile::ir
