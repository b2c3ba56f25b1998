// The compiler's entry points: stages in order, diagnostics with places, several threads.
#include <gtest/gtest.h>

#include <thread>

#include "compiler/compiler.h"

namespace tile::ir {
namespace {

const char* const kKernel = R"(
func.func @twice(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %v: !tile.view<2xf16>, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel} {
  %iota = tile.iota : tensor<128xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %xp = tile.ptr_add %xs, %iota : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %a = tile.gather %xp : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
  %b = arith.addf %a, %a : tensor<128xf32>
  tile.scatter %b, %xp : tensor<128xf32>, tensor<128x!tile.ptr<f32>>
  return
}
)";

Target targetOf(const char* name) { return lookupTarget(name).value_or_throw(); }

std::vector<std::string> stagesOf(const Target& target) {
  std::vector<std::string> seen;
  StageSink sink;
  sink.take = [&](const std::string& stage, const std::string& text) {
    EXPECT_FALSE(text.empty()) << stage;
    seen.push_back(stage);
  };
  CompileOptions options;
  options.stages = &sink;
  auto binary = compileText(kKernel, "twice.mlir", target, options);
  EXPECT_TRUE(binary) << binary.error().to_string();
  return seen;
}

TEST(Pipeline, HostStagesInOrder) {
  EXPECT_EQ(stagesOf(targetOf("host")), (std::vector<std::string>{"traced", "tile", "cpu", "llvm", "asm", "obj"}));
}

TEST(Pipeline, GpuStagesInOrder) {
  auto seen = stagesOf(targetOf("sm_80"));
  if (!seen.empty() && seen.back() == "cubin") seen.pop_back();  // where ptxas is installed
  EXPECT_EQ(seen, (std::vector<std::string>{"traced", "tile", "pipelined", "layout", "gpu", "llvm", "ptx"}));
}

TEST(Pipeline, StagesNobodyWantsAreNotPrinted) {
  StageSink sink;
  int taken = 0;
  sink.wants = [](const std::string& stage) { return stage == "tile"; };
  sink.take = [&](const std::string& stage, const std::string&) { taken += stage == "tile" ? 1 : 100; };
  CompileOptions options;
  options.stages = &sink;
  ASSERT_TRUE(compileText(kKernel, "twice.mlir", targetOf("host"), options));
  EXPECT_EQ(taken, 1);
}

TEST(Pipeline, ParametersFollowTheArguments) {
  auto binary = compileText(kKernel, "twice.mlir", targetOf("host"), {});
  ASSERT_TRUE(binary) << binary.error().to_string();
  ASSERT_EQ(binary->params.size(), 3u);
  EXPECT_EQ(binary->params[0].kind, ParamInfo::pointer);
  EXPECT_EQ(binary->params[0].align, 16u);
  EXPECT_EQ(binary->params[1].kind, ParamInfo::view);
  EXPECT_EQ(binary->params[1].rank, 2);
  EXPECT_EQ(binary->params[1].dtype, DType::f16);
  EXPECT_EQ(binary->params[2].kind, ParamInfo::scalar);
  EXPECT_EQ(binary->params[2].dtype, DType::i32);
}

TEST(Pipeline, ErrorsCarryThePlace) {
  auto broken = compileText("func.func @k() attributes {tile.kernel} {\n  %0 = tile.program_id 7\n  return\n}\n", "grid.mlir", targetOf("host"), {});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().kind, ErrorKind::user);
  ASSERT_EQ(broken.error().diagnostics.size(), 1u);
  EXPECT_EQ(broken.error().diagnostics[0].file, "grid.mlir");
  EXPECT_EQ(broken.error().diagnostics[0].line, 2u);
  EXPECT_EQ(broken.error().diagnostics[0].column, 8u);
}

// Locations in the text win over the text's own lines: an error of a traced kernel points at the user's C++.
TEST(Pipeline, ErrorsFollowLocations) {
  auto broken = compileText(
      "func.func @k() attributes {tile.kernel} {\n"
      "  func.call @f() : () -> () loc(callsite(\"add\"(\"user.cpp\":10:5) at \"user.cpp\":42:3))\n"
      "  return\n}\nfunc.func private @f()\n",
      "kernel.mlir", targetOf("host"), {});
  ASSERT_FALSE(broken);
  ASSERT_EQ(broken.error().diagnostics.size(), 1u);
  const Diagnostic& d = broken.error().diagnostics[0];
  EXPECT_EQ(d.file, "user.cpp");
  EXPECT_EQ(d.line, 10u);
  ASSERT_FALSE(d.notes.empty());
  EXPECT_EQ(d.notes[0].line, 42u);
}

TEST(Pipeline, EveryProblemIsReported) {
  auto broken = compileText(
      "func.func private @f()\nfunc.func @k(%x: i128) attributes {tile.kernel} {\n  func.call @f() : () -> ()\n  %c = arith.constant 0 : index\n  return\n}\n",
      "k.mlir", targetOf("host"), {});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().diagnostics.size(), 2u) << broken.error().to_string();
}

TEST(Pipeline, ThreadsCompileAtOnce) {
  const Target host = targetOf("host"), gpu = targetOf("sm_90a");
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      CompileOptions options;
      options.ptxas = "none";
      auto binary = compileText(kKernel, "twice.mlir", i % 2 ? host : gpu, options);
      results[i] = binary ? binary->bytes : binary.error().to_string();
    });
  for (std::thread& t : threads) t.join();
  for (size_t i = 2; i < results.size(); ++i) EXPECT_EQ(results[i], results[i % 2]);
  EXPECT_NE(results[0].find(".target sm_90a"), std::string::npos) << results[0];
}

TEST(Pipeline, PrintsKnowWhetherIntegersHaveASign) {
  const char* const kPrints = R"(
func.func @prints(%a: i8, %b: i64) attributes {tile.kernel} {
  %t = tile.splat %a : i8 -> tensor<16xi8>
  tile.print "signed" %t : tensor<16xi8>
  tile.print "unsigned" %t unsigned : tensor<16xi8>
  tile.print "scalar" %b unsigned : i64
  return
}
)";
  for (const char* name : {"host", "sm_80", "sm_90a"}) {
    CompileOptions options;
    options.ptxas = "none";
    const auto binary = compileText(kPrints, "prints.mlir", targetOf(name), options);
    ASSERT_TRUE(binary) << binary.error().to_string();
    ASSERT_EQ(binary->debug_sites.size(), 3u) << name;
    EXPECT_EQ(binary->debug_sites[0].dtype, DType::i8) << name;
    EXPECT_EQ(binary->debug_sites[1].dtype, DType::u8) << name;
    EXPECT_EQ(binary->debug_sites[2].dtype, DType::u64) << name;
  }
}

TEST(Pipeline, AProgramThatIsNoAssembler) {
  CompileOptions options;
  options.ptxas = "/bin/true";
  const auto binary = compileText(kKernel, "twice.mlir", targetOf("sm_80"), options);
  ASSERT_FALSE(binary);
  EXPECT_EQ(binary.error().kind, ErrorKind::compile);
  EXPECT_NE(binary.error().message.find("ptxas (/bin/true) ended without an error and made no cubin"), std::string::npos)
      << binary.error().message;
}

TEST(Fingerprint, ChangesWithWhatChangesTheCode) {
  const Target a = targetOf("sm_80"), b = targetOf("sm_90a");
  CompileOptions plain, exact, warps;
  exact.fastMath = false;
  warps.numWarps = 8;
  EXPECT_EQ(compilerFingerprint(a, plain), compilerFingerprint(a, plain));
  EXPECT_NE(compilerFingerprint(a, plain), compilerFingerprint(b, plain));
  EXPECT_NE(compilerFingerprint(a, plain), compilerFingerprint(a, exact));
  EXPECT_NE(compilerFingerprint(a, plain), compilerFingerprint(a, warps));
  CompileOptions none;
  none.ptxas = "none";
  EXPECT_NE(compilerFingerprint(a, none).find("ptxas none"), std::string::npos);
}

}  // namespace
}  // namespace tile::ir
