// late_reads_test.cpp - gathers of runs that have no buffer: the loops that need their elements read them, which is
// later than where they stand. What they read is what was there all the same.
#include "tests/host/host_kernel.h"

namespace tile::test {
namespace {

constexpr int kN = 64;

/// A kernel of two arrays of 3 kN elements, of which the middle ones are %x0 and %y0; %i is 0 .. kN - 1, a mask of the
/// first elements %few. Where %T points lies the address of %x0, hidden behind %n.
std::string kernelOf(const std::string& body) {
  return R"(
    func.func @k(%X: !tile.ptr<f32>, %Y: !tile.ptr<f32>, %T: !tile.ptr<i64>, %n: i32) attributes {tile.kernel} {
      %one = arith.constant 1 : i32
      %back = arith.constant -1 : i32
      %middle = arith.constant 64 : i32
      %i = tile.iota : tensor<64xi32>
      %nn = tile.splat %n : i32 -> tensor<64xi32>
      %few = arith.cmpi slt, %i, %nn : tensor<64xi32>
      %zero = arith.constant dense<0.0> : tensor<64xf32>
      %two = arith.constant dense<2.0> : tensor<64xf32>
      %x0 = tile.ptr_add %X, %middle : !tile.ptr<f32>, i32
      %y0 = tile.ptr_add %Y, %middle : !tile.ptr<f32>, i32
      %x1 = tile.ptr_add %x0, %one : !tile.ptr<f32>, i32
      %xm = tile.ptr_add %x0, %back : !tile.ptr<f32>, i32
      %xn = tile.ptr_add %x0, %n : !tile.ptr<f32>, i32
      %yn = tile.ptr_add %y0, %n : !tile.ptr<f32>, i32
)" + body +
         R"(
      return
    })";
}
std::string read(const std::string& name, const std::string& from, const std::string& more = "") {
  return "      %" + name + " = tile.gather %" + from + " offsets %i : tensor<64xi32>" + more +
         " : !tile.ptr<f32> -> tensor<64xf32>\n";
}
std::string write(const std::string& name, const std::string& to) {
  return "      tile.scatter %" + name + ", %" + to + " offsets %i : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>\n";
}
std::string twice(const std::string& name, const std::string& of) {
  return "      %" + name + " = arith.mulf %" + of + ", %two : tensor<64xf32>\n";
}
std::string add(const std::string& name, const std::string& a, const std::string& b) {
  return "      %" + name + " = arith.addf %" + a + ", %" + b + " : tensor<64xf32>\n";
}
std::string sum(const std::string& name, const std::string& of) {
  return "      %" + name + "_1 = tile.reduce %" + of + R"( axis 0 : (tensor<64xf32>) -> tensor<1xf32> {
      ^bb0(%a: f32, %b: f32):
        %z = arith.addf %a, %b : f32
        tile.yield %z : f32
      }
      %)" +
         name + " = tile.broadcast %" + name + "_1 : tensor<1xf32> -> tensor<64xf32>\n";
}

struct Memory {
  std::vector<float> x = smallNumbers(3 * kN, 3), y = smallNumbers(3 * kN, 5);
};

const char* const kTargets[] = {"host", "host:x86-64", "host:x86-64-v3", "host:x86-64-v4"};

/// Runs the body and compares both arrays with what `expect` makes of them.
void check(const std::string& body, bool isLate, const std::function<void(const Memory&, Memory&, int)>& expect) {
  for (const char* target : kTargets)
    for (int n : {0, 7, 64}) {
      HostKernel kernel(kernelOf(body), target);
      ASSERT_TRUE(kernel.ok()) << kernel.error;
      EXPECT_EQ(kernel.binary.arena_bytes == 0, isLate) << target;
      const Memory before;
      Memory now = before, want = before;
      int64_t table = reinterpret_cast<int64_t>(now.x.data() + kN) ^ n;
      kernel.run(Args().pointer(now.x.data()).pointer(now.y.data()).pointer(&table).scalar(n));
      expect(before, want, n);
      EXPECT_EQ(now.x, want.x) << target << " " << n;
      EXPECT_EQ(now.y, want.y) << target << " " << n;
    }
}

TEST(HostLateReads, NeighboursAreReadInTheLoopThatStoresTheirSum) {
  check(read("l", "xm", " mask %few : tensor<64xi1>") + read("m", "x0") +
            read("r", "x1", " mask %few : tensor<64xi1> other %two : tensor<64xf32>") + add("s", "l", "m") +
            add("t", "s", "r") + write("t", "y0"),
        true, [](const Memory& before, Memory& want, int n) {
          for (int i = 0; i < kN; ++i)
            want.y[kN + i] =
                (i < n ? before.x[kN + i - 1] : 0.f) + before.x[kN + i] + (i < n ? before.x[kN + i + 1] : 2.f);
        });
}

TEST(HostLateReads, AnUpdateInPlaceReadsEachElementBeforeItIsWritten) {
  check(read("v", "x0") + twice("t", "v") + write("t", "x0"), true, [](const Memory& before, Memory& want, int) {
    for (int i = 0; i < kN; ++i) want.x[kN + i] = 2 * before.x[kN + i];
  });
}

TEST(HostLateReads, AMoveInsideOneArrayReadsAllBeforeItWrites) {
  check(read("v", "x0") + write("v", "x1"), false, [](const Memory& before, Memory& want, int) {
    for (int i = 0; i < kN; ++i) want.x[kN + 1 + i] = before.x[kN + i];
  });
}

TEST(HostLateReads, AStoreInTheSameLoopFollowsTheRead) {
  check(read("v", "x0") + write("zero", "x0") + write("v", "y0"), true, [](const Memory& before, Memory& want, int) {
    for (int i = 0; i < kN; ++i) want.x[kN + i] = 0, want.y[kN + i] = before.x[kN + i];
  });
}

TEST(HostLateReads, AStoreInBetweenKeepsTheOldElements) {
  check(read("v", "x0") + write("zero", "x0") + sum("s", "two") + add("u", "s", "v") + write("u", "y0"), false,
        [](const Memory& before, Memory& want, int) {
          for (int i = 0; i < kN; ++i) want.x[kN + i] = 0, want.y[kN + i] = before.x[kN + i] + 2 * kN;
        });
}

TEST(HostLateReads, TwoArraysAreUpdatedInOneLoop) {
  check(read("v", "x0") + read("w", "y0") + add("s", "v", "w") + twice("t", "v") + write("s", "x0") +
            add("u", "t", "w") + write("u", "y0"),
        true, [](const Memory& before, Memory& want, int) {
          for (int i = kN; i < 2 * kN; ++i)
            want.x[i] = before.x[i] + before.y[i], want.y[i] = 2 * before.x[i] + before.y[i];
        });
}

TEST(HostLateReads, StoresThatMayMeetFollowEachOther) {
  check(read("v", "x0") + twice("t", "v") + write("v", "y0") + write("t", "yn"), true,
        [](const Memory& before, Memory& want, int n) {
          for (int i = 0; i < kN; ++i) want.y[kN + i] = before.x[kN + i];
          for (int i = 0; i < kN; ++i) want.y[kN + n + i] = 2 * before.x[kN + i];
        });
}

TEST(HostLateReads, StoresThatMayMeetWhatIsReadDoNot) {
  check(read("v", "x0") + twice("t", "v") + write("t", "x0") + write("v", "xn"), false,
        [](const Memory& before, Memory& want, int n) {
          for (int i = 0; i < kN; ++i) want.x[kN + i] = 2 * before.x[kN + i];
          for (int i = 0; i < kN; ++i) want.x[kN + n + i] = before.x[kN + i];
        });
}

TEST(HostLateReads, AnUpdateBesideStoresThatMayMeetReadsBeforeAll) {
  check(read("v", "x0") + twice("t", "v") + write("t", "x0") + write("v", "y0") + write("t", "yn"), false,
        [](const Memory& before, Memory& want, int n) {
          for (int i = 0; i < kN; ++i) want.x[kN + i] = 2 * before.x[kN + i], want.y[kN + i] = before.x[kN + i];
          for (int i = 0; i < kN; ++i) want.y[kN + n + i] = 2 * before.x[kN + i];
        });
}

TEST(HostLateReads, AStoreToOtherMemoryIsNotInTheWay) {
  check(read("v", "x0") + write("zero", "y0") + write("v", "y0"), true, [](const Memory& before, Memory& want, int) {
    for (int i = 0; i < kN; ++i) want.y[kN + i] = before.x[kN + i];
  });
}

TEST(HostLateReads, AStoreThroughAnUnknownAddressIs) {
  check(read("v", "x0") + R"(
      %address = tile.gather %T : !tile.ptr<i64> -> i64
      %key = arith.extsi %n : i32 to i64
      %plain = arith.xori %address, %key : i64
      %p = tile.int_to_ptr %plain : !tile.ptr<f32>
)" + write("zero", "p") +
            write("v", "y0"),
        false, [](const Memory& before, Memory& want, int) {
          for (int i = 0; i < kN; ++i) want.x[kN + i] = 0, want.y[kN + i] = before.x[kN + i];
        });
}

TEST(HostLateReads, AnAtomicInBetweenIs) {
  check(read("v", "x0") + R"(
      %old = tile.atomic_rmw add relaxed gpu %x0 offsets %i : tensor<64xi32>, %two : !tile.ptr<f32>, tensor<64xf32> -> tensor<64xf32>
)" + write("v", "y0"),
        false, [](const Memory& before, Memory& want, int) {
          for (int i = 0; i < kN; ++i) want.x[kN + i] += 2, want.y[kN + i] = before.x[kN + i];
        });
}

TEST(HostLateReads, WhatTwoLoopsNeedIsReadOnce) {
  check(read("v", "x0") + twice("t", "v") + write("zero", "x0") + sum("s", "t") + add("u", "t", "s") + write("u", "y0"),
        false, [](const Memory& before, Memory& want, int) {
          float total = 0;
          for (int i = 0; i < kN; ++i) total += 2 * before.x[kN + i];
          for (int i = 0; i < kN; ++i) want.x[kN + i] = 0, want.y[kN + i] = 2 * before.x[kN + i] + total;
        });
}

TEST(HostLateReads, ABranchBehindAStoreReadsWhatWasThere) {
  check(read("v", "x0") + twice("t", "v") + write("zero", "x0") + R"(
      %any = arith.cmpi sgt, %n, %one : i32
      scf.if %any {
  )" + write("t", "y0") +
            "      }\n",
        false, [](const Memory& before, Memory& want, int n) {
          for (int i = 0; i < kN; ++i) {
            want.x[kN + i] = 0;
            if (n > 1) want.y[kN + i] = 2 * before.x[kN + i];
          }
        });
}

TEST(HostLateReads, AStoreInsideABranchInBetweenCounts) {
  check(read("v", "x0") + R"(
      %any = arith.cmpi sgt, %n, %one : i32
      scf.if %any {
  )" + write("zero", "x0") +
            "      }\n" + write("v", "y0"),
        false, [](const Memory& before, Memory& want, int n) {
          for (int i = 0; i < kN; ++i) {
            if (n > 1) want.x[kN + i] = 0;
            want.y[kN + i] = before.x[kN + i];
          }
        });
}

TEST(HostLateReads, AReductionReadsItsOperandItself) {
  check(read("v", "x0") + sum("s", "v") + write("s", "y0"), false, [](const Memory& before, Memory& want, int) {
    float total = 0;
    for (int i = 0; i < kN; ++i) total += before.x[kN + i];
    for (int i = 0; i < kN; ++i) want.y[kN + i] = total;
  });
}

// Rows of a matrix, their offsets in memory because two kinds of loops need them.
TEST(HostLateReads, RowsStayRows) {
  const char* text = R"(
    func.func @k(%X: !tile.ptr<f32>, %Y: !tile.ptr<f32>, %pitch: i32) attributes {tile.kernel} {
      %r = tile.iota : tensor<5xi32>
      %rc = tile.reshape %r : tensor<5xi32> -> tensor<5x1xi32>
      %pp = tile.splat %pitch : i32 -> tensor<5x1xi32>
      %rp = arith.muli %rc, %pp : tensor<5x1xi32>
      %c = tile.iota : tensor<48xi32>
      %cr = tile.reshape %c : tensor<48xi32> -> tensor<1x48xi32>
      %rb = tile.broadcast %rp : tensor<5x1xi32> -> tensor<5x48xi32>
      %cb = tile.broadcast %cr : tensor<1x48xi32> -> tensor<5x48xi32>
      %at = arith.addi %rb, %cb : tensor<5x48xi32>
      %x = tile.gather %X offsets %at : tensor<5x48xi32> : !tile.ptr<f32> -> tensor<5x48xf32>
      %s = tile.reduce %x axis 0 : (tensor<5x48xf32>) -> tensor<1x48xf32> {
      ^bb0(%a: f32, %b: f32):
        %z = arith.addf %a, %b : f32
        tile.yield %z : f32
      }
      %sb = tile.broadcast %s : tensor<1x48xf32> -> tensor<5x48xf32>
      %w = tile.gather %X offsets %at : tensor<5x48xi32> : !tile.ptr<f32> -> tensor<5x48xf32>
      %u = arith.subf %w, %sb : tensor<5x48xf32>
      tile.scatter %u, %Y offsets %at : tensor<5x48xi32> : tensor<5x48xf32>, !tile.ptr<f32>
      return
    })";
  for (const char* target : kTargets)
    for (int pitch : {48, 53, 100}) {
      HostKernel kernel(text, target);
      ASSERT_TRUE(kernel.ok()) << kernel.error;
      const std::vector<float> x = smallNumbers(5 * 100);
      std::vector<float> y(x.size(), 9), want = y;
      kernel.run(Args().pointer(x.data()).pointer(y.data()).scalar(pitch));
      for (int j = 0; j < 48; ++j) {
        float total = 0;
        for (int i = 0; i < 5; ++i) total += x[i * pitch + j];
        for (int i = 0; i < 5; ++i) want[i * pitch + j] = x[i * pitch + j] - total;
      }
      EXPECT_EQ(y, want) << target << " " << pitch;
    }
}

}  // namespace
}  // namespace tile::test
