// windows_test.cpp - gathers whose lanes turn out to lie in one vector: rows that are stretched, places that go back.
#include "tests/host/host_kernel.h"

namespace tile::test {
namespace {

/// y[i] = x[i * n / d + (i & 1) * back], or -1 from element `few` on.
template <class T>
void check(const std::string& type, const std::string& minusOne) {
  const std::string text = R"(
    func.func @k(%X: !tile.ptr<TYPE>, %Y: !tile.ptr<TYPE>, %n: i32, %d: i32, %back: i32, %few: i32) attributes {tile.kernel} {
      %i = tile.iota : tensor<64xi32>
      %one = arith.constant dense<1> : tensor<64xi32>
      %other = arith.constant dense<MINUS> : tensor<64xTYPE>
      %nn = tile.splat %n : i32 -> tensor<64xi32>
      %dd = tile.splat %d : i32 -> tensor<64xi32>
      %bb = tile.splat %back : i32 -> tensor<64xi32>
      %ff = tile.splat %few : i32 -> tensor<64xi32>
      %p = arith.muli %i, %nn : tensor<64xi32>
      %q = arith.divsi %p, %dd : tensor<64xi32>
      %odd = arith.andi %i, %one : tensor<64xi32>
      %b = arith.muli %odd, %bb : tensor<64xi32>
      %at = arith.addi %q, %b : tensor<64xi32>
      %in = arith.cmpi slt, %i, %ff : tensor<64xi32>
      %x = tile.gather %X offsets %at : tensor<64xi32> mask %in : tensor<64xi1> other %other : tensor<64xTYPE> : !tile.ptr<TYPE> -> tensor<64xTYPE>
      tile.scatter %x, %Y offsets %i : tensor<64xi32> : tensor<64xTYPE>, !tile.ptr<TYPE>
      return
    })";
  std::string full = text;
  for (size_t at; (at = full.find("TYPE")) != std::string::npos;) full.replace(at, 4, type);
  full.replace(full.find("MINUS"), 5, minusOne);
  for (const char* target : {"host", "host:x86-64", "host:x86-64-v3", "host:x86-64-v4"}) {
    HostKernel kernel(full, target);
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    for (int n : {0, 1, 3, -1, 20})
      for (int d : {1, 2, 7})
        for (int back : {0, 2, -5, 30})
          for (int few : {64, 40, 0}) {
            constexpr int kFirst = 1500;
            std::vector<T> x(2 * kFirst), y(64, T(9)), want;
            for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 120);
            for (int i = 0; i < 64; ++i) want.push_back(i < few ? x[kFirst + i * n / d + (i & 1) * back] : T(-1));
            kernel.run(
                Args().pointer(x.data() + kFirst).pointer(y.data()).scalar(n).scalar(d).scalar(back).scalar(few));
            EXPECT_EQ(y, want) << target << " " << n << " " << d << " " << back << " " << few;
          }
  }
}

TEST(HostWindows, Floats) { check<float>("f32", "-1.0"); }
TEST(HostWindows, Doubles) { check<double>("f64", "-1.0"); }
TEST(HostWindows, Bytes) { check<int8_t>("i8", "-1"); }
TEST(HostWindows, Shorts) { check<int16_t>("i16", "-1"); }
TEST(HostWindows, Longs) { check<int64_t>("i64", "-1"); }

}  // namespace
}  // namespace tile::test
