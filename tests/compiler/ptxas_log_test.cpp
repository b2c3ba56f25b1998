// What `ptxas -v` prints, read back.
#include <gtest/gtest.h>

#include "compiler/targets/nvptx.h"

namespace tile::ir {
namespace {

TEST(PtxasLog, ResourcesOfAKernel) {
  Resources r;
  auto warnings = parsePtxasLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'attention' for 'sm_90a'\n"
      "ptxas info    : Function properties for attention\n"
      "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 16 bytes cumulative stack size, 512 bytes smem\n",
      r);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(r.registers, 168);
  EXPECT_EQ(r.stack_bytes, 16);
  EXPECT_EQ(r.spill_store_bytes, 12);
  EXPECT_EQ(r.spill_load_bytes, 8);
  EXPECT_EQ(r.static_shared_bytes, 512u);
}

TEST(PtxasLog, SharedMemoryWithAnAddend) {
  Resources r;
  (void)parsePtxasLog("ptxas info    : Used 32 registers, 1024+16 bytes smem, 400 bytes cmem[0]\n", r);
  EXPECT_EQ(r.registers, 32);
  EXPECT_EQ(r.static_shared_bytes, 1024u);
}

TEST(PtxasLog, SerialisedPipelinesAreWarnings) {
  Resources r;
  auto warnings = parsePtxasLog(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to function boundary\n"
      "ptxas warning : Value of threads per SM for entry k is out of range\n"
      "ptxas info    : Used 40 registers\n",
      r);
  EXPECT_EQ(warnings.size(), 2u);
}

TEST(PtxasLog, OtherTextChangesNothing) {
  Resources r;
  EXPECT_TRUE(parsePtxasLog("", r).empty());
  EXPECT_TRUE(parsePtxasLog("registers Used many\nbytes smem\n", r).empty());
  EXPECT_EQ(r.registers, 0);
}

}  // namespace
}  // namespace tile::ir
