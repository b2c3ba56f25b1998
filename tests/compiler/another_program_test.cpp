// Code whose registers leave room for one program less than slightly fewer would is assembled again.
#include <gtest/gtest.h>

#include "compiler/targets/nvptx.h"

namespace tile::ir {
namespace {

std::string codeWith(const std::string& body) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n.reqntid 128\n{\n" + body +
         "\tret;\n}\n";
}

class AnotherProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (findPtxas({}).empty()) GTEST_SKIP() << "ptxas not found";
  }
  /// The registers of the second try for code that took `registers`; 0: there was none.
  int tried(const std::string& ptx, int registers, int64_t sharedBytes = 0, int spilled = 0) {
    Resources resources;
    resources.registers = registers;
    resources.spill_store_bytes = spilled;
    const Target target = lookupTarget("sm_90a").value_or_throw();
    return withAnotherProgram(ptx, sharedBytes, target, {}, resources) ? resources.registers : 0;
  }
  const std::string waiting_ = codeWith("\tbar.sync 0;\n");
};

TEST_F(AnotherProgram, WhereRegistersNearlyLeaveRoom) {
  const int registers = tried(waiting_, 177);  // two programs; three have 168 registers
  EXPECT_GT(registers, 0);
  EXPECT_LE(registers, 168);
}

TEST_F(AnotherProgram, NotWhereItWouldSpillOrHasNoUse) {
  EXPECT_EQ(tried(waiting_, 255), 0);                // far from 168
  EXPECT_EQ(tried(waiting_, 168), 0);                // three programs have 12 warps, enough
  EXPECT_EQ(tried(waiting_, 177, 0, 8), 0);          // spills already
  EXPECT_EQ(tried(waiting_, 177, 100 << 10), 0);     // three programs of 100 KiB do not fit
  EXPECT_EQ(tried(codeWith(""), 177), 0);            // nobody waits
}

TEST_F(AnotherProgram, NotWhereTheKernelHasABound) {
  std::string bound = waiting_;
  bound.insert(bound.find(".reqntid"), ".minnctapersm 2\n");
  EXPECT_EQ(tried(bound, 177), 0);
}

}  // namespace
}  // namespace tile::ir
