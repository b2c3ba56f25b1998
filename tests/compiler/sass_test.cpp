// sass_test.cpp - the reader of machine code, on what ptxas makes of small PTX programs: counts, nests of loops (wait
// loops and blocks moved to the end of the function included), the order of products and waits, register changes.
#include "compiler/targets/sass.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/compiler.h"
#include "compiler/targets/nvptx.h"

namespace tile::ir {
namespace {

std::string program(const std::string& target, const std::string& body) {
  return fmt::format(R"(.version 8.7
.target {}
.address_size 64
.extern .shared .align 1024 .b8 sm[];
.visible .entry k(.param .u64 p, .param .u32 q) .reqntid 128 .minnctapersm 1 {{
.reg .b64 %rd<20>; .reg .b32 %r<60>; .reg .f32 %f<60>; .reg .pred %p<8>;
ld.param.u64 %rd1,[p]; cvta.to.global.u64 %rd1,%rd1; ld.param.u32 %r1,[q]; mov.u32 %r2,%tid.x; mad.wide.u32 %rd2,%r2,16,%rd1;
mov.u32 %r3,sm; ld.global.v4.f32 {{%f10,%f11,%f12,%f13}},[%rd2]; mov.u32 %r5, 0; mov.u32 %r6, 0;
{}
st.global.v4.f32 [%rd2],{{%f10,%f11,%f12,%f13}};
ret; }}
)",
                     target, body);
}

class Sass : public testing::Test {
 protected:
  void SetUp() override {
    if (findPtxas({}).empty()) GTEST_SKIP() << "ptxas not found";
  }
  SassKernel read(const std::string& targetName, const std::string& body) {
    const Target target = *lookupTarget(targetName);
    Resources resources;
    auto cubin = runPtxas(program(targetName, body), target, {}, resources);
    if (!cubin) throw std::runtime_error(cubin.error().to_string());
    auto kernel = readSass(*cubin, "k", target.sm);
    if (!kernel) throw std::runtime_error(kernel.error().to_string());
    return std::move(*kernel);
  }
};

const std::string kInner =
    "OUTER: mov.u32 %r6, 0; ld.volatile.global.f32 %f11, [%rd2+64];\n"
    "INNER: ex2.approx.ftz.f32 %f10, %f10; fma.rn.f32 %f10, %f10, %f11, %f12; st.volatile.global.f32 [%rd2+32], %f10;\n"
    "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r1; @%p1 bra INNER;\n"
    "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r2; @%p1 bra OUTER;\n";

TEST_F(Sass, LoopsNest) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    SCOPED_TRACE(target);
    const SassKernel kernel = read(target, kInner);
    int deepest = 0;
    for (const SassLoop& loop : kernel.loops) deepest = std::max(deepest, loop.depth);
    EXPECT_EQ(deepest, 2);
    const SassLoop* hottest = kernel.hottestLoop();
    ASSERT_TRUE(hottest);
    EXPECT_EQ(hottest->depth, 2);
    EXPECT_GE(hottest->counts.mufu, 1);
    EXPECT_EQ(hottest->counts.mufu, hottest->counts.globalStores);  // unrolled or not
    EXPECT_EQ(hottest->counts.globalLoads, 0);                      // that one is in the outer loop
    EXPECT_EQ(kernel.counts.instructions, static_cast<int>(kernel.code.size()));
  }
}

TEST_F(Sass, WarpProducts) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    const SassKernel kernel =
        read(target,
             "mov.b32 %r10, %f10; mov.b32 %r11, %f11; mov.b32 %r12, %f12; mov.b32 %r13, %f13;\n"
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f10,%f11,%f12,%f13},{%r10,%r11,%r12,%r13},"
             "{%r10,%r11},{%f10,%f11,%f12,%f13};\n"
             "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r10,%r11,%r12,%r13},{%r10,%r11,%r12,%r13},"
             "{%r10,%r11},{%r10,%r11,%r12,%r13}; mov.b32 %f11, %r11;\n");
    EXPECT_EQ(kernel.counts.hmma, 1);
    EXPECT_EQ(kernel.counts.imma, 1);
    EXPECT_EQ(kernel.counts.tensorOps(), 2);
    EXPECT_EQ(kernel.hottestLoop(), nullptr);
  }
}

std::string wgmma(const std::string& a, const std::string& flags) {
  return fmt::format(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f10,%f11,%f12,%f13}}, {}, %rd2, 1, 1, 1, {};\n", a, flags);
}

TEST_F(Sass, WarpgroupLoopInOrder) {
  const std::string wait =
      "{.reg .pred P1; W: mbarrier.try_wait.parity.shared.b64 P1, [%r3], %r1; @P1 bra.uni D; bra.uni W; D: }\n";
  const SassKernel kernel =
      read("sm_90a", "setmaxnreg.inc.sync.aligned.u32 240;\nLOOP:\n" + wait + "wgmma.fence.sync.aligned;\n" +
                         wgmma("%rd1", "0, 0") + wgmma("%rd1", "0, 0") +
                         "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n"
                         "mbarrier.arrive.shared.b64 _, [%r3+8];\n"
                         "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r1; @%p1 bra LOOP;\n"
                         "wgmma.wait_group.sync.aligned 0;\n");
  EXPECT_EQ(kernel.counts.hgmma, 2);
  EXPECT_EQ(kernel.registerChanges, std::vector<int>{240});
  const SassLoop* hottest = kernel.hottestLoop();
  ASSERT_TRUE(hottest);
  EXPECT_EQ(hottest->counts.hgmma, 2);
  const std::string phases = kernel.phases(*hottest);
  EXPECT_NE(phases.find("ss2 wait1 arrive"), std::string::npos) << phases;
  EXPECT_EQ(phases.find("wait0"), std::string::npos) << phases;
}

TEST_F(Sass, OperandKinds) {
  auto chain = [](const std::string& product) {
    return "wgmma.fence.sync.aligned;\n" + product +
           "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  };
  const std::string d = "{%f10,%f11,%f12,%f13}", reg = "{%r20,%r21,%r22,%r23}",
                    fill = "ld.global.v4.u32 {%r20,%r21,%r22,%r23}, [%rd2+256];\n";
  struct Form {
    std::string text;
    int SassCounts::*member;
  };
  for (const Form& form : {Form{"m64n8k32.f32.e4m3.e4m3 " + d + ", %rd1, %rd2, 1, 1, 1;", &SassCounts::qgmma},
                           Form{"m64n8k32.f32.e5m2.e5m2 " + d + ", " + reg + ", %rd2, 1, 1, 1;", &SassCounts::qgmma},
                           Form{"m64n8k8.f32.tf32.tf32 " + d + ", " + reg + ", %rd2, 1, 1, 1;", &SassCounts::hgmma},
                           Form{"m64n8k16.f32.bf16.bf16 " + d + ", %rd1, %rd2, 1, 1, 1, 1, 1;", &SassCounts::hgmma},
                           Form{"m64n8k32.s32.s8.s8 {%r30,%r31,%r32,%r33}, %rd1, %rd2, 1;", &SassCounts::igmma}}) {
    const SassKernel kernel = read("sm_90a", fill + chain("wgmma.mma_async.sync.aligned." + form.text + "\n") +
                                                 "mov.b32 %r7, %r30; st.global.u32 [%rd2+128], %r7;\n");
    EXPECT_EQ(kernel.counts.*form.member, 1) << form.text;
    EXPECT_EQ(kernel.counts.tensorOps(), 1) << form.text;
  }
}

TEST(SassLoops, OfCopiesOfALoopTheShortestIsTheHottest) {
  SassKernel kernel;
  kernel.counts.hgmma = 33;
  for (auto [instructions, products] : {std::pair{700, 16}, {460, 16}, {480, 16}, {90, 1}}) {
    SassLoop loop;
    const int at = 1000 * static_cast<int>(kernel.loops.size());
    loop.blocks = {{at, at + instructions}};
    loop.counts.instructions = instructions, loop.counts.hgmma = products;
    kernel.loops.push_back(loop);
  }
  EXPECT_EQ(kernel.hottestLoop(), &kernel.loops[1]);
}

TEST(SassFiles, BrokenOnesAreErrors) {
  for (const std::string& bytes :
       {std::string(), std::string("\177ELF"), std::string("\177ELF") + std::string(100, '\xff'), std::string(64, 'x')})
    EXPECT_FALSE(readSass(bytes, "k", 90).ok());
}

}  // namespace
}  // namespace tile::ir
