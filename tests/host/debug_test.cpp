// debug_test.cpp - prints and assertions: what reaches the ring, what the sites say, and that a failed assertion ends
// the program without ending the process.
#include <atomic>
#include <cmath>
#include <thread>

#include "host_kernel.h"

namespace tile::test {
namespace {

struct Ring {
  DebugRing header{0, 8, 0};
  DebugRecord records[8] = {};
};

TEST(HostDebug, PrintWritesEveryElementOnceWithItsProgram) {
  HostKernel kernel(R"(
    func.func @k(%A: !tile.view<2 x f16>) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<2x3xf16>
      %p = tile.program_id 1
      tile.print "a" %a : tensor<2x3xf16>
      tile.print "p" %p : i32
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  ASSERT_TRUE(kernel.binary.uses_debug_ring);
  ASSERT_EQ(kernel.binary.debug_sites.size(), 2u);
  EXPECT_EQ(kernel.binary.debug_sites[0].message, "a");
  EXPECT_EQ(kernel.binary.debug_sites[0].dtype, DType::f16);
  EXPECT_EQ(kernel.binary.debug_sites[0].shape, (std::vector<int>{2, 3}));
  EXPECT_EQ(kernel.binary.debug_sites[0].file, "test.mlir");
  EXPECT_EQ(kernel.binary.debug_sites[0].line, 6u);
  EXPECT_TRUE(kernel.binary.debug_sites[1].shape.empty());
  std::vector<half> a(6);
  for (int i = 0; i < 6; ++i) a[i] = half(static_cast<float>(i));
  Ring ring;
  kernel.run(Args().view(a.data(), {2, 3}).pointer(&ring), {1, 2, 1});
  EXPECT_EQ(ring.header.next, 14u) << "records past the capacity are counted, not written";
  for (uint32_t i = 0; i < 8; ++i) {
    const DebugRecord& r = ring.records[i];
    uint32_t k = i % 7;
    EXPECT_EQ(r.site, k < 6 ? 0u : 1u);
    EXPECT_EQ(r.element, k < 6 ? k : 0u);
    EXPECT_EQ(r.program[1], i / 7);
    EXPECT_EQ(r.bits, k < 6 ? std::bit_cast<uint16_t>(half(static_cast<float>(k))) : i / 7);
  }
}

TEST(HostDebug, FailedAssertionRecordsEveryElementAndStopsTheProgram) {
  HostKernel kernel(R"(
    func.func @k(%A: !tile.view<1 x i32>, %O: !tile.view<1 x i32>) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c3 = arith.constant 3 : i32
      %z = arith.constant dense<0> : tensor<5xi32>
      scf.for %i = %c0 to %c3 step %c1 : i32 {
        %a = tile.load %A[%c0 : i32] : !tile.view<1 x i32> -> tensor<5xi32>
        %ok = arith.cmpi sgt, %a, %z : tensor<5xi32>
        tile.assert %ok, "positive" : tensor<5xi1>
        tile.store %a, %O[%c0 : i32] : tensor<5xi32>, !tile.view<1 x i32>
      }
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  ASSERT_EQ(kernel.binary.debug_sites.size(), 1u);
  EXPECT_EQ(kernel.binary.debug_sites[0].kind, DebugSite::assertion);
  std::vector<int32_t> good{1, 2, 3, 4, 5}, bad{1, 0, 3, -4, 5}, out(5, -9);
  Ring ring;
  kernel.run(Args().view(bad.data(), {5}).view(out.data(), {5}).pointer(&ring));
  EXPECT_EQ(ring.header.next, 2u) << "the first failing assertion ends the program";
  EXPECT_EQ(ring.records[0].element, 1u);
  EXPECT_EQ(ring.records[1].element, 3u);
  EXPECT_EQ(out, std::vector<int32_t>(5, -9)) << "nothing after the failed assertion ran";
  Ring quiet;
  kernel.run(Args().view(good.data(), {5}).view(out.data(), {5}).pointer(&quiet));
  EXPECT_EQ(quiet.header.next, 0u);
  EXPECT_EQ(out, good);
}

TEST(HostLoader, BadObjectsAndMissingEntriesAreErrors) {
  auto garbage = ir::loadHostObject("not an object", "k");
  EXPECT_FALSE(garbage.ok());
  HostKernel kernel("func.func @exp() attributes {tile.kernel} {\n  return\n}");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  auto missing = ir::loadHostObject(kernel.binary.bytes, "no_such_kernel");
  EXPECT_FALSE(missing.ok());
  auto truncated =
      ir::loadHostObject(kernel.binary.bytes.substr(0, kernel.binary.bytes.size() / 2), kernel.binary.entry);
  EXPECT_FALSE(truncated.ok());
  auto empty = ir::loadHostObject("", "k");
  EXPECT_FALSE(empty.ok());
}

TEST(HostLoader, ManyThreadsLoadRunAndDropAtOnce) {
  HostKernel kernel(R"(
    func.func @k(%p: !tile.ptr<f32>) attributes {tile.kernel} {
      %x = tile.gather %p : !tile.ptr<f32> -> f32
      %y = arith.addf %x, %x : f32
      tile.scatter %y, %p : f32, !tile.ptr<f32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        auto code = ir::loadHostObject(kernel.binary.bytes, kernel.binary.entry);
        if (!code) continue;
        float x = static_cast<float>(i);
        uint64_t slot = reinterpret_cast<uintptr_t>(&x);
        HostProgram program{{0, 0, 0}, {1, 1, 1}};
        alignas(64) char arena[64];
        code->entry(&slot, &program, arena);
        good += x == 2.0f * static_cast<float>(i);
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(good, 100);
}

TEST(HostLoader, AKernelNamedLikeALibraryFunctionDoesNotReplaceIt) {
  HostKernel kernel(R"(
    func.func @tanh(%p: !tile.ptr<f64>) attributes {tile.kernel} {
      %x = tile.gather %p : !tile.ptr<f64> -> f64
      %y = math.tanh %x : f64
      tile.scatter %y, %p : f64, !tile.ptr<f64>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  double x = 0.5;
  kernel.run(Args().pointer(&x));
  EXPECT_DOUBLE_EQ(x, std::tanh(0.5));
}

}  // namespace
}  // namespace tile::test
