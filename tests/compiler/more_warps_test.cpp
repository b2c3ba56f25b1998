// Code that waits at barriers, and takes a register or two more than leave room for further programs, gets less.
#include <gtest/gtest.h>

#include "compiler/targets/nvptx.h"
#include "compiler/targets/occupancy.h"

namespace tile::ir {
namespace {

constexpr int kThreads = 256;

/// `many` numbers of each thread, read in front of a barrier and written behind it as their products with their sum.
std::string waitingWith(int many, const std::string& barrier = "\tbar.sync 0;\n", const std::string& bounds = "") {
  std::string loads, sums, stores;
  for (int i = 0; i < many; ++i) {
    const std::string x = "%x" + std::to_string(i), at = "[%p+" + std::to_string(1024 * i) + "];\n";
    loads += "\tld.global.f32 " + x + ", " + at;
    sums += "\tadd.f32 %s, %s, " + x + ";\n";
    stores += "\tmul.f32 %y, " + x + ", %s;\n\tst.global.f32 [%p+" + std::to_string(1024 * i) + "], %y;\n";
  }
  return ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a)\n" + bounds + ".reqntid " +
         std::to_string(kThreads) + "\n{\n\t.reg .b32 %t;\n\t.reg .b64 %p, %o;\n\t.reg .f32 %s, %y, %x<" +
         std::to_string(many) +
         ">;\n\tld.param.u64 %p, [a];\n\tmov.u32 %t, %tid.x;\n\tmul.wide.u32 %o, %t, 4;\n\tadd.s64 %p, %p, %o;\n"
         "\tmov.f32 %s, 0f00000000;\n" +
         loads + sums + barrier + stores + "\tret;\n}\n";
}

class MoreWarps : public testing::Test {
 protected:
  void SetUp() override {
    if (findPtxas({}).empty()) GTEST_SKIP() << "ptxas not found";
  }
  struct Tried {
    int before = 0, after = 0;    ///< registers; `after` 0: the code stays
    int programs = 0, more = 0;  ///< on a multiprocessor
  };
  static Tried tried(const std::string& ptx, int64_t sharedBytes = 0) {
    const Target target = lookupTarget("sm_90a").value_or_throw();
    Resources resources;
    const std::string cubin = runPtxas(ptx, target, {}, resources).value_or_throw();
    Tried result{static_cast<int>(resources.registers)};
    auto programs = [&] {
      return occupancyOf({kThreads, static_cast<int>(resources.registers), sharedBytes}, target).programs;
    };
    result.programs = result.more = programs();
    if (withMoreWarps(ptx, cubin, sharedBytes, target, {}, resources))
      result.after = static_cast<int>(resources.registers), result.more = programs();
    return result;
  }
};

TEST_F(MoreWarps, WhereAFewRegistersAreInTheWay) {
  int gained = 0;
  for (int many = 20; many < 60; ++many) {
    const Tried with = tried(waitingWith(many));
    if (!with.after) continue;
    ++gained;
    EXPECT_LT(with.after, with.before) << many;
    EXPECT_GT(with.more, with.programs) << many;
  }
  EXPECT_GT(gained, 0);
}

TEST_F(MoreWarps, NotWhereNobodyWaitsOrNothingFits) {
  for (int many = 20; many < 60; ++many) {
    EXPECT_EQ(tried(waitingWith(many, "")).after, 0) << many;
    EXPECT_EQ(tried(waitingWith(many), 100 << 10).after, 0) << many;
    EXPECT_EQ(tried(waitingWith(many, "\tbar.sync 0;\n", ".maxnreg 128\n")).after, 0) << many;
  }
}

}  // namespace
}  // namespace tile::ir
