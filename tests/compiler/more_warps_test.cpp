// Code that waits at barriers, and takes a register or two more than leave room for further programs, gets less.
#include <gtest/gtest.h>

#include "compiler/targets/nvptx.h"
#include "compiler/targets/occupancy.h"

namespace tile::ir {
namespace {

constexpr int kThreads = 192;

/// `many` numbers of each thread, read through as many addresses in front of a barrier, and written through them behind
/// it as their products with what a long chain of operations makes of their sum.
std::string waitingWith(int many, const std::string& barrier = "\tbar.sync 0;\n", const std::string& bounds = "") {
  constexpr int kChain = 400;
  std::string loads, sums, stores;
  for (int i = 0; i < many; ++i) {
    const std::string number = std::to_string(i), x = "%x" + number, q = "%q" + number;
    loads += "\tmad.lo.s64 " + q + ", %n, " + std::to_string(i + 1) + ", %p;\n\tld.global.f32 " + x + ", [" + q + "];\n";
    sums += "\tadd.f32 %s, %s, " + x + ";\n";
    stores += "\tmul.f32 %y, " + x + ", %s;\n\tst.global.f32 [" + q + "], %y;\n";
  }
  for (int i = 0; i < kChain; ++i) sums += "\tfma.rn.f32 %s, %s, %s, 0f3F000000;\n";
  const std::string count = std::to_string(many);
  return ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n" + bounds +
         ".reqntid " + std::to_string(kThreads) + "\n{\n\t.reg .b32 %t;\n\t.reg .b64 %p, %o, %n, %q<" + count +
         ">;\n\t.reg .f32 %s, %y, %x<" + count +
         ">;\n\tld.param.u64 %p, [a];\n\tld.param.u64 %n, [b];\n\tmov.u32 %t, %tid.x;\n"
         "\tmul.wide.u32 %o, %t, 4;\n\tadd.s64 %p, %p, %o;\n\tmov.f32 %s, 0f00000000;\n" +
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
  for (int many = 12; many < 18; ++many) {
    const Tried with = tried(waitingWith(many));
    if (!with.after) continue;
    ++gained;
    EXPECT_LT(with.after, with.before) << many;
    EXPECT_GT(with.more, with.programs) << many;
  }
  EXPECT_GT(gained, 0);
}

TEST_F(MoreWarps, NotWhereNobodyWaitsOrNothingFits) {
  for (int many = 12; many < 18; ++many) {
    EXPECT_EQ(tried(waitingWith(many, "")).after, 0) << many;
    EXPECT_EQ(tried(waitingWith(many), 100 << 10).after, 0) << many;
    EXPECT_EQ(tried(waitingWith(many, "\tbar.sync 0;\n", ".maxnreg 128\n")).after, 0) << many;
  }
}

}  // namespace
}  // namespace tile::ir
