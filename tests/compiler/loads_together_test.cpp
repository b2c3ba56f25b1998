// Code whose loads wait for each other is assembled again with more registers.
#include <gtest/gtest.h>

#include "compiler/targets/nvptx.h"
#include "tests/compiler/ptx_sums.h"

namespace tile::ir {
namespace {

class LoadsTogether : public testing::Test {
 protected:
  void SetUp() override {
    if (findPtxas({}).empty()) GTEST_SKIP() << "ptxas not found";
  }
  struct Tried {
    int before = 0, after = 0;  ///< registers; `after` 0: the code stays
  };
  static Tried tried(const std::string& ptx, bool few = false) {
    const Target target = lookupTarget("sm_90a").value_or_throw();
    Resources resources;
    const std::string cubin = runPtxas(ptx, target, {}, resources).value_or_throw();
    Tried result{static_cast<int>(resources.registers), 0};
    CompileOptions options;
    options.fewPrograms = few;
    if (withLoadsTogether(ptx, cubin, 0, target, options, resources)) result.after = static_cast<int>(resources.registers);
    return result;
  }
};

TEST_F(LoadsTogether, WhereThereAreMany) {
  const Tried rows = tried(sumsOf(10));
  ASSERT_LT(rows.before, 88) << "ptxas keeps them together by itself by now";
  EXPECT_GE(rows.after, 80);  // 20 sums and 20 numbers on their way, of two registers each
  EXPECT_LE(rows.after, 128);
}

TEST_F(LoadsTogether, NotWhereThereAreFewOrTheKernelHasABound) {
  EXPECT_EQ(tried(sumsOf(2)).after, 0);
  EXPECT_EQ(tried(sumsOf(10, ".minnctapersm 6\n")).after, 0);
}

/// 512 threads, each with 20 sums and as many numbers on their way: two programs would have 64 registers for a thread.
TEST_F(LoadsTogether, OfFewProgramsWhateverRegistersItTakes) {
  std::string ptx = sumsOf(10);
  const std::string threads = ".reqntid 128";
  ptx.replace(ptx.find(threads), threads.size(), ".reqntid 512");
  const Tried many = tried(ptx), few = tried(ptx, /*few=*/true);
  EXPECT_EQ(many.before, few.before);
  EXPECT_GT(few.after, 64);
  EXPECT_LE(few.after, 128);
  EXPECT_EQ(tried(sumsOf(1), /*few=*/true).after, 0);
}

}  // namespace
}  // namespace tile::ir
