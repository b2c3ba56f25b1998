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
  int tried(const std::string& ptx, int registers, int64_t sharedBytes = 0, int spilled = 0,
            const std::string& log = "") {
    Resources resources;
    resources.log = log;
    resources.registers = registers;
    resources.spill_store_bytes = spilled;
    const Target target = lookupTarget("sm_90a").value_or_throw();
    const bool isMade = withAnotherProgram(ptx, sharedBytes, target, {}, resources).has_value();
    log_ = resources.log;
    return isMade ? resources.registers : 0;
  }
  std::string log_;
  const std::string waiting_ = codeWith("\tbar.sync 0;\n");
};

TEST_F(AnotherProgram, WhereRegistersNearlyLeaveRoom) {
  const int registers = tried(waiting_, 177);  // two programs; three have 168 registers
  EXPECT_GT(registers, 0);
  EXPECT_LE(registers, 168);
}

TEST_F(AnotherProgram, NotWhereItWouldSpillOrHasNoUse) {
  EXPECT_EQ(tried(waiting_, 255), 0);             // far from 168
  EXPECT_EQ(tried(waiting_, 168), 0);             // three programs have 12 warps, enough
  EXPECT_EQ(tried(waiting_, 177, 0, 8), 0);       // spills already
  EXPECT_EQ(tried(waiting_, 177, 100 << 10), 0);  // three programs of 100 KiB do not fit
  EXPECT_EQ(tried(codeWith(""), 177), 0);         // nobody waits
}

/// An accumulator is read while its product is on its way: ptxas waits for it.
std::string waitingProduct(const std::string& before, const std::string& after) {
  return codeWith(
      "\t.reg .f32 %f<4>;\n\t.reg .b64 %d;\n\t.reg .pred %p;\n\tmov.b64 %d, 1;\n\tmov.f32 %f0, 0f00000000;\n"
      "\tmov.f32 %f1, %f0;\n\tmov.f32 %f2, %f0;\n\tmov.f32 %f3, %f0;\n" +
      before +
      "\tbar.sync 0;\n\twgmma.fence.sync.aligned;\n"
      "\twgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d, %d, 1, 1, 1, 0, 0;\n"
      "\twgmma.commit_group.sync.aligned;\n\tadd.f32 %f0, %f0, %f1;\n\twgmma.wait_group.sync.aligned 0;\n" +
      after + "\tst.global.f32 [%d], %f0;\n");
}

TEST_F(AnotherProgram, ProductsInNoLoopMayWait) {
  EXPECT_GT(tried(waitingProduct("", ""), 177), 0);
  EXPECT_EQ(log_.find("C75"), std::string::npos) << log_;
  EXPECT_NE(log_.find("3 programs instead of 2"), std::string::npos) << log_;
}

TEST_F(AnotherProgram, NotWhereRepeatedProductsWouldWaitThatDidNot) {
  const std::string repeated = waitingProduct("\t.reg .b64 %n;\n\tmov.u64 %n, %clock64;\nagain:\n",
                                              "\tadd.s64 %d, %d, 1;\n\tsetp.lt.s64 %p, %d, %n;\n\t@%p bra again;\n");
  EXPECT_EQ(tried(repeated, 177), 0);
  EXPECT_GT(tried(repeated, 177, 0, 0, "(C7517)"), 0);  // nothing is lost
}

TEST_F(AnotherProgram, NotWhereTheKernelHasABound) {
  std::string bound = waiting_;
  bound.insert(bound.find(".reqntid"), ".minnctapersm 2\n");
  EXPECT_EQ(tried(bound, 177), 0);
}

}  // namespace
}  // namespace tile::ir
