// control_test.cpp - loops and branches carrying tiles and scalars, above all where sharing one buffer would be wrong:
// values read after their successor is written, exchanges, reads in another order, results of branches.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "host_kernel.h"

namespace tile::test {
namespace {

/// Kernel with a 1-D input of `n` elements in %a (f32), an i32 %t, and tile %r stored at the end.
std::vector<float> run(int n, const std::string& body, const std::vector<float>& a, int t) {
  std::string s = std::to_string(n);
  HostKernel kernel(
      "func.func @k(%A: !tile.view<1 x f32>, %O: !tile.view<1 x f32>, %t: i32) attributes {tile.kernel} {\n  %c0 = "
      "arith.constant 0 : i32\n  %c1 = arith.constant 1 : i32\n"
      "  %a = tile.load %A[%c0 : i32] : !tile.view<1 x f32> -> tensor<" +
      s + "xf32>\n" + body + "\n  tile.store %r, %O[%c0 : i32] : tensor<" + s +
      "xf32>, !tile.view<1 x f32>\n  return\n}");
  EXPECT_TRUE(kernel.ok()) << kernel.error << body;
  std::vector<float> out(n, -99);
  if (kernel.ok()) kernel.run(Args().view(a.data(), {n}).view(out.data(), {n}).scalar(t));
  return out;
}

TEST(HostControl, LoopTripCountsAndSteps) {
  for (const char* type : {"i32", "i64"}) {
    std::string text =
        "func.func @k(%lo: T, %hi: T, %step: T, %o: !tile.ptr<T>) attributes {tile.kernel} {\n  %z = arith.constant 0 "
        ": T\n  %one = arith.constant 1 : T\n"
        "  %r:2 = scf.for %i = %lo to %hi step %step iter_args(%n = %z, %s = %z) -> (T, T) : T {\n    %m = arith.addi "
        "%n, %one : T\n    %q = arith.addi %s, %i : T\n    scf.yield %m, %q : T, T\n  }\n"
        "  tile.scatter %r#0, %o : T, !tile.ptr<T>\n  %p = tile.ptr_add %o, %one : !tile.ptr<T>, T\n  tile.scatter "
        "%r#1, %p : T, !tile.ptr<T>\n  return\n}";
    for (size_t at; (at = text.find('T')) != std::string::npos;) text.replace(at, 1, type);
    HostKernel kernel(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    for (auto [lo, hi, step] : {std::array<int64_t, 3>{0, 0, 1},
                                {0, 1, 1},
                                {0, 7, 2},
                                {5, 5, 3},
                                {6, 5, 1},
                                {-7, 8, 4},
                                {0, 10, 100},
                                {2147483600, 2147483647, 40},
                                {0, 10, 0},
                                {0, 10, -1}}) {
      int64_t n = 0, sum = 0;
      for (int64_t i = lo; step > 0 && i < hi; i += step) ++n, sum += i;
      int64_t out[2] = {-1, -1};
      struct {
        DebugRing header{0, 1, 0};
        DebugRecord record{};
      } ring;
      kernel.run(Args().scalar(lo).scalar(hi).scalar(step).pointer(out).pointer(&ring));
      ASSERT_EQ(ring.header.next, step > 0 ? 0u : 1u) << "a step that is not positive is reported";
      if (step <= 0) continue;
      auto read = [&](int k) {
        return std::string(type) == "i32" ? int64_t{reinterpret_cast<int32_t*>(out)[k]} : out[k];
      };
      ASSERT_EQ(read(0), n) << lo << " " << hi << " " << step;
      ASSERT_EQ(read(1), std::string(type) == "i32" ? int64_t{static_cast<int32_t>(sum)} : sum);
    }
  }
}

TEST(HostControl, AccumulatorOverZeroOneManyTrips) {
  auto a = smallNumbers(65);
  for (int t : {0, 1, 2, 5}) {
    auto r = run(65, R"(
      %r = scf.for %i = %c0 to %t step %c1 iter_args(%x = %a) -> (tensor<65xf32>) : i32 {
        %y = arith.addf %x, %a : tensor<65xf32>
        scf.yield %y : tensor<65xf32>
      })",
                 a, t);
    for (int i = 0; i < 65; ++i) ASSERT_EQ(r[i], a[i] * (1 + t));
  }
}

TEST(HostControl, OldValueReadAfterTheNewOneIsMade) {
  // y = x + a; the yielded value is y, but x is still wanted for z.
  auto a = smallNumbers(20);
  for (int t : {0, 1, 3}) {
    auto r = run(20, R"(
      %r, %w = scf.for %i = %c0 to %t step %c1 iter_args(%x = %a, %z = %a) -> (tensor<20xf32>, tensor<20xf32>) : i32 {
        %y = arith.addf %x, %a : tensor<20xf32>
        %d = arith.mulf %y, %x : tensor<20xf32>
        %e = arith.addf %z, %d : tensor<20xf32>
        scf.yield %e, %y : tensor<20xf32>, tensor<20xf32>
      })",
                 a, t);
    for (int i = 0; i < 20; ++i) {
      float x = a[i], z = a[i];
      for (int k = 0; k < t; ++k) {
        float y = x + a[i], e = z + y * x;
        x = e, z = y;
      }
      ASSERT_EQ(r[i], x) << t;
    }
  }
}

TEST(HostControl, CarriedTilesChangePlaces) {
  auto a = smallNumbers(33);
  for (int t : {0, 1, 2, 3, 4}) {
    auto r = run(33, R"(
      %b = arith.negf %a : tensor<33xf32>
      %c = arith.addf %a, %a : tensor<33xf32>
      %x, %y, %z = scf.for %i = %c0 to %t step %c1 iter_args(%p = %a, %q = %b, %s = %c) -> (tensor<33xf32>, tensor<33xf32>, tensor<33xf32>) : i32 {
        scf.yield %q, %s, %p : tensor<33xf32>, tensor<33xf32>, tensor<33xf32>
      }
      %k = arith.constant dense<100.0> : tensor<33xf32>
      %yk = arith.mulf %y, %k : tensor<33xf32>
      %r = arith.addf %x, %yk : tensor<33xf32>)",
                 a, t);
    for (int i = 0; i < 33; ++i) {
      float v[3] = {a[i], -a[i], 2 * a[i]};
      std::rotate(v, v + t % 3, v + 3);
      ASSERT_EQ(r[i], v[0] + 100 * v[1]) << t;
    }
  }
}

TEST(HostControl, FibonacciOfTiles) {
  auto a = smallNumbers(9);
  auto r = run(9, R"(
      %r, %n = scf.for %i = %c0 to %t step %c1 iter_args(%p = %a, %q = %a) -> (tensor<9xf32>, tensor<9xf32>) : i32 {
        %s = arith.addf %p, %q : tensor<9xf32>
        scf.yield %q, %s : tensor<9xf32>, tensor<9xf32>
      })",
               a, 7);
  for (int i = 0; i < 9; ++i) ASSERT_EQ(r[i], 21 * a[i]);
}

TEST(HostControl, InitialValueIsStillNeededAfterwards) {
  auto a = smallNumbers(40);
  auto r = run(40, R"(
      %e = math.exp2 %a : tensor<40xf32>
      %s = scf.for %i = %c0 to %t step %c1 iter_args(%x = %e) -> (tensor<40xf32>) : i32 {
        %y = arith.addf %x, %x : tensor<40xf32>
        scf.yield %y : tensor<40xf32>
      }
      %r = arith.divf %s, %e : tensor<40xf32>)",
               a, 3);
  for (float x : r) ASSERT_EQ(x, 8.0f);
}

TEST(HostControl, CarriedTileReadInAnotherOrder) {
  // x is replaced by its own reversal through take, and by a broadcast of its first element plus itself.
  auto a = smallNumbers(17);
  for (int t : {1, 2, 3}) {
    auto r = run(17, R"(
      %n = tile.iota : tensor<17xi32>
      %k = arith.constant dense<16> : tensor<17xi32>
      %idx = arith.subi %k, %n : tensor<17xi32>
      %r = scf.for %i = %c0 to %t step %c1 iter_args(%x = %a) -> (tensor<17xf32>) : i32 {
        %v = tile.take %x, %idx axis 0 : tensor<17xf32>, tensor<17xi32> -> tensor<17xf32>
        %f = tile.extract %x[0] : tensor<17xf32> -> tensor<1xf32>
        %fb = tile.broadcast %f : tensor<1xf32> -> tensor<17xf32>
        %y = arith.addf %v, %fb : tensor<17xf32>
        scf.yield %y : tensor<17xf32>
      })",
                 a, t);
    std::vector<float> x = a;
    for (int k = 0; k < t; ++k) {
      float first = x[0];
      std::reverse(x.begin(), x.end());
      for (float& v : x) v += first;
    }
    ASSERT_EQ(r, x);
  }
}

TEST(HostControl, BranchesMakeUpdateAndPassThrough) {
  auto a = smallNumbers(50);
  for (int t : {0, 1, 5, 6}) {
    auto r = run(50, R"(
      %c2 = arith.constant 2 : i32
      %r = scf.for %i = %c0 to %t step %c1 iter_args(%x = %a) -> (tensor<50xf32>) : i32 {
        %m = arith.remsi %i, %c2 : i32
        %odd = arith.cmpi eq, %m, %c1 : i32
        %y = scf.if %odd -> (tensor<50xf32>) {
          %u = arith.addf %x, %a : tensor<50xf32>
          scf.yield %u : tensor<50xf32>
        } else {
          scf.yield %x : tensor<50xf32>
        }
        scf.yield %y : tensor<50xf32>
      })",
                 a, t);
    for (int i = 0; i < 50; ++i) ASSERT_EQ(r[i], a[i] * (1 + t / 2)) << t;
  }
}

TEST(HostControl, BranchesExchangeTwoTiles) {
  auto a = smallNumbers(24);
  for (int t : {0, 1}) {
    auto r = run(24, R"(
      %b = math.exp2 %a : tensor<24xf32>
      %p = arith.cmpi eq, %t, %c1 : i32
      %x, %y, %s = scf.if %p -> (tensor<24xf32>, tensor<24xf32>, i32) {
        scf.yield %b, %a, %t : tensor<24xf32>, tensor<24xf32>, i32
      } else {
        %n = arith.negf %a : tensor<24xf32>
        scf.yield %n, %b, %c0 : tensor<24xf32>, tensor<24xf32>, i32
      }
      %k = arith.constant dense<10.0> : tensor<24xf32>
      %yk = arith.mulf %y, %k : tensor<24xf32>
      %q = arith.addf %x, %yk : tensor<24xf32>
      %f = arith.sitofp %s : i32 to f32
      %fb = tile.splat %f : f32 -> tensor<24xf32>
      %r = arith.addf %q, %fb : tensor<24xf32>)",
                 a, t);
    for (int i = 0; i < 24; ++i) {
      float e = std::exp2(a[i]);
      ASSERT_NEAR(r[i], t ? e + 10 * a[i] + 1 : -a[i] + 10 * e, 1e-4);
    }
  }
}

TEST(HostControl, NestedLoopsWithCarriedTilesInBoth) {
  auto a = smallNumbers(21);
  for (int t : {0, 1, 3}) {
    auto r = run(21, R"(
      %z = arith.constant dense<0.0> : tensor<21xf32>
      %r = scf.for %i = %c0 to %t step %c1 iter_args(%x = %z) -> (tensor<21xf32>) : i32 {
        %f = arith.sitofp %i : i32 to f32
        %fb = tile.splat %f : f32 -> tensor<21xf32>
        %y = scf.for %j = %c0 to %i step %c1 iter_args(%u = %x) -> (tensor<21xf32>) : i32 {
          %v = arith.addf %u, %a : tensor<21xf32>
          %w = arith.addf %v, %fb : tensor<21xf32>
          scf.yield %w : tensor<21xf32>
        }
        %s = arith.addf %y, %a : tensor<21xf32>
        scf.yield %s : tensor<21xf32>
      })",
                 a, t);
    for (int i = 0; i < 21; ++i) {
      float x = 0;
      for (int k = 0; k < t; ++k) {
        for (int j = 0; j < k; ++j) x = x + a[i] + static_cast<float>(k);
        x += a[i];
      }
      ASSERT_EQ(r[i], x) << t;
    }
  }
}

TEST(HostControl, WhileCarriesTilesAndScalars) {
  auto a = smallNumbers(30);
  for (int t : {0, 1, 4}) {
    auto r = run(30, R"(
      %r, %n = scf.while (%x = %a, %k = %c0) : (tensor<30xf32>, i32) -> (tensor<30xf32>, i32) {
        %more = arith.cmpi slt, %k, %t : i32
        scf.condition(%more) %x, %k : tensor<30xf32>, i32
      } do {
      ^bb0(%y: tensor<30xf32>, %m: i32):
        %s = arith.addf %y, %a : tensor<30xf32>
        %next = arith.addi %m, %c1 : i32
        scf.yield %s, %next : tensor<30xf32>, i32
      })",
                 a, t);
    for (int i = 0; i < 30; ++i) ASSERT_EQ(r[i], a[i] * (1 + t));
  }
}

TEST(HostControl, WhileExchangesAndForwardsOtherValues) {
  auto a = smallNumbers(30);
  for (int t : {0, 1, 2, 5}) {
    auto r = run(30, R"(
      %b = math.exp2 %a : tensor<30xf32>
      %r, %s, %n = scf.while (%x = %a, %y = %b, %k = %c0) : (tensor<30xf32>, tensor<30xf32>, i32) -> (tensor<30xf32>, tensor<30xf32>, i32) {
        %more = arith.cmpi slt, %k, %t : i32
        scf.condition(%more) %y, %x, %k : tensor<30xf32>, tensor<30xf32>, i32
      } do {
      ^bb0(%p: tensor<30xf32>, %q: tensor<30xf32>, %m: i32):
        %next = arith.addi %m, %c1 : i32
        %u = arith.addf %q, %a : tensor<30xf32>
        scf.yield %p, %u, %next : tensor<30xf32>, tensor<30xf32>, i32
      })",
                 a, t);
    for (int i = 0; i < 30; ++i) {
      float x = a[i], y = std::exp2(a[i]), result = 0;
      for (int k = 0;; ++k) {
        float p = y, q = x;
        result = p;
        if (k >= t) break;
        x = p, y = q + a[i];
      }
      ASSERT_NEAR(r[i], result, 1e-4) << t;
    }
  }
}

TEST(HostControl, AccumulatorOfADotInALoopWithABranch) {
  HostKernel kernel(R"(
    func.func @k(%A: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %t: i32) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<8x8xf32>
      %r = scf.for %i = %c0 to %t step %c1 iter_args(%acc = %a) -> (tensor<8x8xf32>) : i32 {
        %p = arith.cmpi sgt, %i, %c0 : i32
        %x = scf.if %p -> (tensor<8x8xf32>) {
          %d = tile.dot %a, %acc, %acc : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
          scf.yield %d : tensor<8x8xf32>
        } else {
          scf.yield %acc : tensor<8x8xf32>
        }
        scf.yield %x : tensor<8x8xf32>
      }
      tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<8x8xf32>, !tile.view<2 x f32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  auto a = smallNumbers(64);
  for (int t : {0, 1, 2, 3}) {
    std::vector<float> x = a, out(64);
    for (int k = 1; k < t; ++k) {
      auto old = x;
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j)
          for (int q = 0; q < 8; ++q) x[i * 8 + j] += a[i * 8 + q] * old[q * 8 + j];
    }
    kernel.run(Args().view(a.data(), {8, 8}).view(out.data(), {8, 8}).scalar(t));
    ASSERT_EQ(out, x) << t;
  }
}

TEST(HostControl, ViewsAndPointersChosenAtRunTime) {
  HostKernel kernel(R"(
    func.func @k(%A: !tile.view<1 x f32>, %B: !tile.view<1 x f32>, %O: !tile.view<1 x f32>, %t: i32) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %p = arith.cmpi eq, %t, %c0 : i32
      %v = scf.if %p -> (!tile.view<1 x f32>) {
        scf.yield %A : !tile.view<1 x f32>
      } else {
        scf.yield %B : !tile.view<1 x f32>
      }
      %a = tile.load %v[%c0 : i32] : !tile.view<1 x f32> -> tensor<8xf32>
      tile.store %a, %O[%c0 : i32] : tensor<8xf32>, !tile.view<1 x f32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  auto a = smallNumbers(8, 1), b = smallNumbers(16, 2);
  for (int t : {0, 1}) {
    std::vector<float> out(8, -1);
    kernel.run(Args().view(a.data(), {8}).view(b.data(), {5}, {2}).view(out.data(), {8}).scalar(t));
    for (int i = 0; i < 8; ++i) ASSERT_EQ(out[i], t == 0 ? a[i] : i < 5 ? b[2 * i] : 0.0f);
  }
}

TEST(HostControl, ProgramIdsAndGrid) {
  HostKernel kernel(R"(
    func.func @k(%o: !tile.ptr<i32>) attributes {tile.kernel} {
      %x = tile.program_id 0
      %y = tile.program_id 1
      %z = tile.program_id 2
      %nx = tile.num_programs 0
      %ny = tile.num_programs 1
      %a = arith.muli %z, %ny : i32
      %b = arith.addi %a, %y : i32
      %c = arith.muli %b, %nx : i32
      %d = arith.addi %c, %x : i32
      %p = tile.ptr_add %o, %d : !tile.ptr<i32>, i32
      tile.scatter %d, %p : i32, !tile.ptr<i32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::vector<int32_t> out(24, -1), want(24);
  std::iota(want.begin(), want.end(), 0);
  kernel.run(Args().pointer(out.data()), {4, 3, 2});
  EXPECT_EQ(out, want);
}

TEST(HostControl, AccumulatorsShareOneBuffer) {
  // The arena of a loop that accumulates holds the accumulator once: 64 x 64 x 4 bytes, plus the operand.
  HostKernel kernel(R"(
    func.func @k(%A: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %t: i32) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %z = arith.constant dense<0.0> : tensor<64x64xf32>
      %r = scf.for %i = %c0 to %t step %c1 iter_args(%x = %z) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%i, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<64x64xf32>
        %y = arith.addf %x, %a : tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  EXPECT_EQ(kernel.binary.arena_bytes, 2u * 64 * 64 * 4);
  uint32_t bytes = 0;
  for (const BufferInfo& b : kernel.binary.buffers) bytes += b.bytes;
  EXPECT_EQ(bytes, kernel.binary.arena_bytes);
}

TEST(HostErrors, ArenaTooLargeNamesTheTiles) {
  HostKernel kernel(R"(
    func.func @k(%A: !tile.view<2 x f64>, %O: !tile.view<2 x f64>) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f64> -> tensor<2048x2048xf64>
      %b = tile.load %A[%c0, %c1 : i32, i32] : !tile.view<2 x f64> -> tensor<2048x2048xf64>
      %c = tile.load %A[%c1, %c0 : i32, i32] : !tile.view<2 x f64> -> tensor<2048x2048xf64>
      %ab = arith.addf %a, %b : tensor<2048x2048xf64>
      %abc = arith.addf %ab, %c : tensor<2048x2048xf64>
      tile.store %abc, %O[%c0, %c0 : i32, i32] : tensor<2048x2048xf64>, !tile.view<2 x f64>
      return
    })");
  EXPECT_FALSE(kernel.ok());
  EXPECT_NE(kernel.error.find("100663296"), std::string::npos) << kernel.error;
  EXPECT_NE(kernel.error.find("33554432 bytes: load tensor<2048x2048xf64>"), std::string::npos) << kernel.error;
}

}  // namespace
}  // namespace tile::test
