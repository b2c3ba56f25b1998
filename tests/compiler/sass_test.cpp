// sass_test.cpp - the reader of machine code, on what ptxas makes of small PTX programs: counts, nests of loops (wait
// loops and blocks moved to the end of the function included), the order of products and waits, register changes; and
// registers that are touched while a product uses them, there and in code written word by word.
#include "compiler/targets/sass.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/compiler.h"
#include "compiler/targets/nvptx.h"
#include "compiler/targets/sass_blocks.h"
#include "compiler/targets/sass_in_flight.h"
#include "compiler/targets/sass_registers.h"

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
  SassKernel read(const std::string& targetName, const std::string& body,
                  decltype(runPtxas)& assembler = runPtxasOnce) {
    const Target target = *lookupTarget(targetName);
    CompileOptions options;
    options.onRemark = [this](const Diagnostic& d) { remarks_ += d.message + "\n"; };
    Resources resources;
    auto cubin = assembler(program(targetName, body), target, options, resources);
    if (!cubin) throw std::runtime_error(cubin.error().to_string());
    auto kernel = readSass(*cubin, "k", target.sm);
    if (!kernel) throw std::runtime_error(kernel.error().to_string());
    return std::move(*kernel);
  }
  std::string remarks_;
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
             "{%r10,%r11},{%r10,%r11,%r12,%r13};\n"
             "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%r10,%r11,%r12,%r13},{%r10,%r11,%r12,%r13},"
             "{%r10,%r11},{%r10,%r11,%r12,%r13}; mov.b32 %f11, %r11;\n");
    EXPECT_EQ(kernel.counts.hmma, 1);
    EXPECT_EQ(kernel.counts.imma, 1);
    EXPECT_EQ(kernel.counts.bmma, 1);
    EXPECT_EQ(kernel.counts.tensorOps(), 3);
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
                           Form{"m64n8k32.s32.s8.s8 {%r30,%r31,%r32,%r33}, %rd1, %rd2, 1;", &SassCounts::igmma},
                           Form{"m64n8k256.s32.b1.b1.and.popc {%r30,%r31,%r32,%r33}, %rd1, %rd2, 1;",
                                &SassCounts::bgmma}}) {
    const SassKernel kernel = read("sm_90a", fill + chain("wgmma.mma_async.sync.aligned." + form.text + "\n") +
                                                 "mov.b32 %r7, %r30; st.global.u32 [%rd2+128], %r7;\n");
    EXPECT_EQ(kernel.counts.*form.member, 1) << form.text;
    EXPECT_EQ(kernel.counts.tensorOps(), 1) << form.text;
  }
}

/// A loop whose product reads operand A from registers that the loop computes, in front of the wait for the product of
/// the iteration before or behind it.
std::string registerOperandLoop(bool behind) {
  const std::string wait = "wgmma.wait_group.sync.aligned 0;\n";
  const std::string compute =
      "add.u32 %r20, %r30, %r1; xor.b32 %r21, %r31, %r20; add.u32 %r22, %r32, %r21; xor.b32 %r23, %r33, %r22;\n";
  return "LOOP:\n.pragma \"nounroll\";\nld.volatile.shared.v4.u32 {%r30,%r31,%r32,%r33}, [%r3];\n" +
         (behind ? wait + compute : compute + wait) + "wgmma.fence.sync.aligned;\n" +
         wgmma("{%r20,%r21,%r22,%r23}", "0") + "wgmma.commit_group.sync.aligned;\n" +
         "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r1; @%p1 bra LOOP;\n" + wait;
}

TEST_F(Sass, OperandWrittenInFrontOfTheWait) {
  const SassKernel wrong = read("sm_90a", registerOperandLoop(false));
  ASSERT_GE(wrong.counts.hgmma, 1);
  const auto found = touchedInFlight(wrong);
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].find("operand A"), std::string::npos) << found[0];
  const SassKernel right = read("sm_90a", registerOperandLoop(true));
  ASSERT_GE(right.counts.hgmma, 1);
  EXPECT_EQ(touchedInFlight(right), std::vector<std::string>());
  EXPECT_EQ(remarks_, "");
}

TEST_F(Sass, CodeThatTouchesOperandsInFlightIsAssembledAgain) {
  const SassKernel mended = read("sm_90a", registerOperandLoop(false), runPtxas);
  ASSERT_GE(mended.counts.hgmma, 1);
  EXPECT_EQ(touchedInFlight(mended), std::vector<std::string>());
  EXPECT_NE(remarks_.find("kernel `k` for sm_90a: products are waited for at once"), std::string::npos) << remarks_;
}

// ---- code written word by word

SassInstruction product(uint64_t acc, uint64_t a, bool commit, uint64_t columns = 64) {
  return {uint64_t{kHgmmaReg} | 7 << 12 | acc << 16 | a << 24 | (columns / 8 - 1) << 53,
          acc | 1 << 11 | uint64_t{commit ? 0u : 7u} << 20};
}
SassInstruction fromShared(uint64_t acc, bool commit) {
  SassInstruction p = product(acc, 0, commit);
  p.low = (p.low & ~uint64_t{0xfff}) | kHgmma;
  return p;
}
SassInstruction waitFor(uint64_t left) { return {uint64_t{kWarpgroup} | 7 << 12 | uint64_t{1} << 47, left << 8}; }
SassInstruction add(uint64_t to, uint64_t a, uint64_t b) { return {0x221 | 7 << 12 | to << 16 | a << 24 | b << 32, 0}; }
SassInstruction branch(uint64_t predicate, int64_t by) {  // by: instructions from the next one
  const uint64_t words = static_cast<uint64_t>(by) * 4;
  return {uint64_t{kBra} | predicate << 12 | (words & 0xff) << 16 | words >> 8 << 34,
          (words >> 38 & 0x3ffff) | uint64_t{7} << 23};
}
const SassInstruction kEnd{kExit | 7 << 12, 0};

size_t touches(std::vector<SassInstruction> code) {
  SassKernel kernel;
  kernel.code = std::move(code);
  kernel.code.push_back(kEnd);
  return touchedInFlight(kernel).size();
}

TEST(SassInFlight, OperandsAreWrittenBehindTheWait) {
  EXPECT_EQ(touches({product(24, 60, true), waitFor(0), add(63, 3, 4)}), 0u);
  EXPECT_EQ(touches({product(24, 60, true), add(63, 3, 4), waitFor(0)}), 1u);
  EXPECT_EQ(touches({product(24, 60, true), add(64, 3, 4), add(59, 63, 60), waitFor(0)}), 0u);  // reading is allowed
  EXPECT_EQ(touches({fromShared(24, true), add(0, 0, 1), waitFor(0)}), 0u);                     // no operand there
}

TEST(SassInFlight, AccumulatorsAreTouchedBehindTheWait) {
  EXPECT_EQ(touches({fromShared(24, true), waitFor(0), add(24, 55, 25)}), 0u);
  EXPECT_EQ(touches({fromShared(24, true), add(24, 3, 4), waitFor(0)}), 1u);
  EXPECT_EQ(touches({fromShared(24, true), add(3, 55, 4), waitFor(0)}), 1u);
  EXPECT_EQ(touches({fromShared(24, true), add(3, 56, 23), waitFor(0)}), 0u);
  EXPECT_EQ(touches({fromShared(24, false), fromShared(24, false), fromShared(24, true), waitFor(0)}), 0u);
  EXPECT_EQ(touches({fromShared(24, true), product(88, 52, true), waitFor(0)}), 1u);      // an accumulator as operand
  EXPECT_EQ(touches({product(24, 88, true), product(24, 92, true, 32), waitFor(0)}), 2u);  // another shape
}

TEST(SassInFlight, WaitsLeaveTheYoungestGroups) {
  const std::vector<SassInstruction> two{product(24, 60, false), product(24, 64, true), product(88, 120, true)};
  auto then = [&](uint64_t left, uint64_t written) {
    auto code = two;
    code.insert(code.end(), {waitFor(left), add(written, 3, 4), waitFor(0)});
    return touches(code);
  };
  EXPECT_EQ(then(1, 60), 0u);
  EXPECT_EQ(then(1, 64), 0u);
  EXPECT_EQ(then(1, 24), 0u);
  EXPECT_EQ(then(1, 120), 1u);
  EXPECT_EQ(then(2, 60), 1u);
  EXPECT_EQ(then(2, 64), 1u);
  EXPECT_EQ(then(0, 120), 0u);
}

TEST(SassInFlight, AroundTheBackEdgeAndBranches) {
  // The product of one iteration reads what the next one writes in front of its wait.
  EXPECT_EQ(touches({add(60, 3, 4), waitFor(0), product(24, 60, true), branch(0, -4), waitFor(0)}), 1u);
  EXPECT_EQ(touches({waitFor(0), add(60, 3, 4), product(24, 60, true), branch(0, -4), waitFor(0)}), 0u);
  // One way to the write leads around the wait.
  EXPECT_EQ(touches({product(24, 60, true), branch(0, 1), waitFor(0), add(60, 3, 4)}), 1u);
  EXPECT_EQ(touches({product(24, 60, true), branch(7, 1), add(60, 3, 4), waitFor(0)}), 0u);  // never reached
  // A wait that not every thread executes is none.
  SassInstruction maybe = waitFor(0);
  maybe.low &= ~uint64_t{7 << 12};
  EXPECT_EQ(touches({product(24, 60, true), maybe, add(60, 3, 4)}), 1u);
}

TEST(SassInFlight, CallsTouchWhereTheyAreCalledFrom) {
  SassInstruction call = branch(7, 3);
  call.low = (call.low & ~uint64_t{0xfff}) | kCall;
  const SassInstruction back{kRet | 7 << 12 | 2 << 24, 0};
  EXPECT_EQ(touches({call, product(24, 60, true), waitFor(0), kEnd, add(60, 3, 4), back}), 0u);
  EXPECT_EQ(touches({product(24, 60, true), call, waitFor(0), kEnd, kEnd, add(60, 3, 4), back}), 1u);
  call.low ^= uint64_t{1} << 34;  // to nowhere
  EXPECT_EQ(touches({product(24, 60, true), call, waitFor(0)}), 1u);
}

TEST(SassInFlight, TheUnknownCountsAsTouching) {
  const SassInstruction unknown{0x2ff | 7 << 12, 0};
  EXPECT_EQ(touches({unknown, product(24, 60, true), waitFor(0), unknown}), 0u);
  EXPECT_EQ(touches({product(24, 60, true), unknown, waitFor(0)}), 1u);
}

TEST(SassRegisters, OfProductsOfAllKinds) {
  // As ptxas 13.0 encodes them: 64x256x16 f32, 64x128x16 f16, 64x48x32 of bytes, 64x64x256 of bits, 64x8 bf16.
  struct Case {
    SassInstruction inst;
    SassRange written, a;
  };
  for (const Case& c : {Case{{0x03e0000898187df0, 0x000fe6000b800818}, {24, 128}, {152, 4}},
                        Case{{0x01e0000838187df0, 0x000fe6000b800018}, {24, 32}, {56, 4}},
                        Case{{0x0180000830187df1, 0x000fe2000b841018}, {24, 24}, {48, 4}},
                        Case{{0x00a00000081879f2, 0x000fe2000b814018}, {24, 32}, {}},
                        Case{{0x40000000081879f0, 0x000fe2000b801818}, {24, 4}, {}},
                        Case{{0x000000003fff79f0, 0x000fe6000c0000ff}, {}, {}}}) {
    const auto r = registersOf(c.inst);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->written.first, c.written.first);
    EXPECT_EQ(r->written.count, c.written.count);
    EXPECT_EQ(r->read[0].first, c.a.first);
    EXPECT_EQ(r->read[0].count, c.a.count);
  }
}

TEST(SassRegisters, OfOrdinaryInstructions) {
  auto is = [](uint64_t low, uint64_t high, SassRange written, std::array<SassRange, 3> read) {
    const auto r = registersOf({low, high});
    return r && r->written == written && r->read == read;
  };
  EXPECT_TRUE(is(0x00010004021c7981, 0x000ea2000c1e1d00, {28, 4}, {{{2, 2}, {}, {}}}));      // LDG.E.128 R28, [R2.64]
  EXPECT_TRUE(is(0x0000001802007986, 0x000fe2000c101d04, {}, {{{2, 2}, {24, 4}, {}}}));       // STG.E.128 [R2.64], R24
  EXPECT_TRUE(is(0x000000ffff067224, 0x000fe400078e0020, {6, 1}, {{{}, {}, {32, 1}}}));       // IMAD.MOV.U32 R6, R32
  EXPECT_TRUE(is(0x000000071c047836, 0x000fc40000000000, {4, 1}, {{{28, 1}, {}, {}}}));       // VIADD R4, R28, 7
  EXPECT_TRUE(is(0x000000147cb8723c, 0x042fe600000018ff, {184, 4}, {{{124, 4}, {20, 2}, {}}}));  // HMMA.16816.F32
  EXPECT_TRUE(is(0x0000000000b87805, 0x000fe2000001ff00, {184, 2}, {}));                      // CS2R R184, SRZ
  EXPECT_TRUE(is(0x000000381d007844, 0x000fe20000000200, {}, {{{29, 1}, {56, 4}, {}}}));      // STSM.16.M88.4 [R29]
  EXPECT_TRUE(is(0x0000006d6c66720f, 0x000fe4000780018b, {102, 1}, {{{108, 1}, {109, 1}, {139, 1}}}));  // VIMNMX3
  EXPECT_TRUE(is(0x0000002400237309, 0x000fe40000000000, {35, 1}, {{{}, {36, 1}, {}}}));                // POPC R35, R36
  EXPECT_TRUE(is(0x000000231a00798e, 0x0013e4000d10e3a0, {}, {{{26, 2}, {35, 1}, {}}}));                // REDG.E.MAX.S32
  EXPECT_TRUE(is(0x0000000000507310, 0x000e620000201800, {80, 2}, {{{}, {0, 1}, {}}}));                 // F2F.F64.F32
  EXPECT_TRUE(is(0x0000000800117310, 0x010e260000301000, {17, 1}, {{{}, {8, 2}, {}}}));                 // F2F.F32.F64
  EXPECT_TRUE(is(0x0000000c000c7311, 0x010e64000030d900, {12, 2}, {{{}, {12, 2}, {}}}));                // F2I.S64.F64
  EXPECT_TRUE(is(0x0000000a000b7312, 0x004e700000301400, {11, 1}, {{{}, {10, 2}, {}}}));                // I2F.S64 R11
  EXPECT_TRUE(is(0x00000a00ff017b82, 0x000fe20000000800, {1, 1}, {}));                    // LDC R1, c[0x0][0x28]
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
  // The place of the sections' names is so large that what stands there is in front of the file.
  std::string far = std::string("\177ELF") + std::string(124, '\0');
  far[0x28] = 0x40, far[0x3a] = 0x40, far[0x3c] = 1;
  std::fill_n(far.begin() + 0x40 + 0x18, 8, '\xff');
  EXPECT_FALSE(readSass(far, "k", 90).ok());
}

}  // namespace
}  // namespace tile::ir
