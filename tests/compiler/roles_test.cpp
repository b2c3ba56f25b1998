// Kernels with roles, through the whole compiler: what a launch has to know, and the way back when shared memory is
// short.
#include <gtest/gtest.h>

#include "compiler/compiler.h"

namespace tile::ir {
namespace {

/// C = A B over tiles of 128x128; `epilogue` makes %out from %r.
std::string gemm(const std::string& epilogue, bool columns = false) {
  const std::string facts =
      "{tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, "
      "tile.dim_multiple_of = array<i32: 1, 8>}";
  return "func.func @k(%a: !tile.view<2xf16> " + facts + ", %b: !tile.view<2xf16> " + facts +
         ", %c: !tile.view<2xf32> " +
         (columns ? "{tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.stride_multiple_of = array<i32: 1, 8>}"
                  : facts) +
         R"(, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %x = tile.program_id 0
  %m = arith.muli %x, %c128 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
    %ta = tile.load %a[%m, %k : i32, i32] : !tile.view<2xf16> -> tensor<128x64xf16>
    %tb = tile.load %b[%k, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x256xf16>
    %d = tile.dot %ta, %tb, %acc : tensor<128x64xf16>, tensor<64x256xf16> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
)" + epilogue +
         "  return\n}\n";
}

struct Outcome {
  KernelBinary binary;
  std::string remarks, error;
};
Outcome compileFor(const std::string& target, const std::string& text) {
  Outcome outcome;
  CompileOptions options;
  options.ptxas = "none";
  options.onRemark = [&](const Diagnostic& remark) { outcome.remarks += remark.message + "\n"; };
  auto machine = lookupTarget(target);
  auto binary = compileText(text, "kernel.mlir", *machine, options);
  if (binary)
    outcome.binary = std::move(*binary);
  else
    outcome.error = binary.error().to_string();
  return outcome;
}

TEST(Roles, LaunchesKnowWhatTheyNeed) {
  const std::string text = gemm("  tile.store %r, %c[%m, %c0 : i32, i32] : tensor<128x256xf32>, !tile.view<2xf32>\n");
  Outcome outcome = compileFor("sm_90a", text);
  ASSERT_EQ(outcome.error, "");
  EXPECT_TRUE(outcome.binary.persistent);
  EXPECT_FALSE(outcome.binary.uses_tickets);
  EXPECT_EQ(outcome.binary.threads, 384u);
  EXPECT_EQ(outcome.binary.tensor_maps.size(), 4u);  // two loads, the rows with which a ends, one store

  Outcome other = compileFor("sm_80", text);
  ASSERT_EQ(other.error, "");
  EXPECT_FALSE(other.binary.persistent);
  EXPECT_EQ(other.binary.threads, 256u);
  EXPECT_TRUE(other.binary.tensor_maps.empty());
}

// A loop that asks for producer warps is told, as everybody, where there are none; one that does not ask is not, nor on
// machines that have no bulk copies.
TEST(Roles, WarnWhereTheyWereAskedFor) {
  std::string text = gemm("  tile.store %r, %a[%m, %c0 : i32, i32] : tensor<128x256xf16>, !tile.view<2xf16>\n");
  auto replace = [&](const std::string& from, const std::string& to) { text.replace(text.find(from), from.size(), to); };
  replace("  tile.store %r", "  %s = arith.truncf %r : tensor<128x256xf32> to tensor<128x256xf16>\n  tile.store %s");
  const std::string warning = "this loop asks for producer warps and gets none: the kernel may write what it copies";
  EXPECT_EQ(compileFor("sm_90a", text).remarks.find(warning), std::string::npos);
  replace("scf.yield %d : tensor<128x256xf32>\n  }", "scf.yield %d : tensor<128x256xf32>\n  } {tile.specialize = 1 : i32}");
  const Outcome asked = compileFor("sm_90a", text);
  ASSERT_EQ(asked.error, "");
  EXPECT_NE(asked.remarks.find(warning), std::string::npos) << asked.remarks;
  EXPECT_EQ(compileFor("sm_80", text).remarks.find("asks for producer warps"), std::string::npos);
}

// A tile stored along its columns changes hands behind the loop: 128 KB that rings would have to leave free. Without
// roles the loop's buffers are over by then.
TEST(Roles, GiveWayWhenConversionsNeedTheMemory) {
  Outcome outcome = compileFor(
      "sm_90a", gemm("  tile.store %r, %c[%m, %c0 : i32, i32] : tensor<128x256xf32>, !tile.view<2xf32>\n", true));
  ASSERT_EQ(outcome.error, "");
  EXPECT_FALSE(outcome.binary.persistent);
  EXPECT_EQ(outcome.binary.threads, 256u);
  EXPECT_NE(outcome.remarks.find("rings and conversions together do not fit shared memory"), std::string::npos)
      << outcome.remarks;
}

}  // namespace
}  // namespace tile::ir
