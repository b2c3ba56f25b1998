// atomics_test.cpp - atomic updates of every kind and width, one by one and by many threads.
#include <functional>
#include <thread>

#include "tests/host/host_kernel.h"

namespace tile::test {
namespace {

TEST(HostAtomics, EveryKindReturnsTheOldValue) {
  struct Kind {
    const char* name;
    std::function<int32_t(int32_t, int32_t)> update;
  };
  const Kind kinds[] = {{"add", [](int32_t a, int32_t b) { return a + b; }},
                        {"max", [](int32_t a, int32_t b) { return std::max(a, b); }},
                        {"min", [](int32_t a, int32_t b) { return std::min(a, b); }},
                        {"umax", [](int32_t a, int32_t b) { return static_cast<int32_t>(std::max<uint32_t>(a, b)); }},
                        {"umin", [](int32_t a, int32_t b) { return static_cast<int32_t>(std::min<uint32_t>(a, b)); }},
                        {"and", [](int32_t a, int32_t b) { return a & b; }},
                        {"or", [](int32_t a, int32_t b) { return a | b; }},
                        {"xor", [](int32_t a, int32_t b) { return a ^ b; }},
                        {"exchange", [](int32_t, int32_t b) { return b; }}};
  for (const Kind& kind : kinds) {
    HostKernel kernel(
        std::string(R"(
      func.func @k(%p: !tile.ptr<i32>, %v: !tile.ptr<i32>, %o: !tile.ptr<i32>) attributes {tile.kernel} {
        %i = tile.iota : tensor<9xi32>
        %four = arith.constant dense<4> : tensor<9xi32>
        %m = arith.cmpi ne, %i, %four : tensor<9xi32>
        %x = tile.gather %v offsets %i : tensor<9xi32> : !tile.ptr<i32> -> tensor<9xi32>
        %old = tile.atomic_rmw )") +
        kind.name +
        R"( relaxed gpu %p offsets %i : tensor<9xi32>, %x mask %m : tensor<9xi1> : !tile.ptr<i32>, tensor<9xi32> -> tensor<9xi32>
        tile.scatter %old, %o offsets %i : tensor<9xi32> mask %m : tensor<9xi1> : tensor<9xi32>, !tile.ptr<i32>
        return
      })");
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    std::vector<int32_t> memory{5, -5, 0, INT32_MAX, 44, -1, 12, 7, INT32_MIN},
        before = memory, values{3, 3, -3, 0, 99, 1, 10, -7, 5}, old(9, 77);
    kernel.run(Args().pointer(memory.data()).pointer(values.data()).pointer(old.data()));
    for (int i = 0; i < 9; ++i) {
      ASSERT_EQ(memory[i], i == 4 ? before[i] : kind.update(before[i], values[i])) << kind.name << " " << i;
      ASSERT_EQ(old[i], i == 4 ? 77 : before[i]) << kind.name;
    }
  }
}

TEST(HostAtomics, FloatsOfEveryWidthAndDuplicateAddresses) {
  for (const char* element : {"f16", "bf16", "f32", "f64"}) {
    std::string text =
        "func.func @k(%p: !tile.ptr<E>) attributes {tile.kernel} {\n  %z = arith.constant dense<0> : tensor<40xi32>\n  "
        "%v = arith.constant dense<0.5> : tensor<40xE>\n"
        "  %old = tile.atomic_rmw add acq_rel gpu %p offsets %z : tensor<40xi32>, %v : !tile.ptr<E>, tensor<40xE> -> "
        "tensor<40xE>\n"
        "  %s = arith.constant 3.0 : E\n  %one = arith.constant 1 : i32\n  %q = tile.ptr_add %p, %one : !tile.ptr<E>, "
        "i32\n"
        "  %w = tile.atomic_rmw max relaxed sys %q, %s : !tile.ptr<E>, E -> E\n  return\n}";
    for (size_t at; (at = text.find('E')) != std::string::npos;) text.replace(at, 1, element);
    HostKernel typed(text);
    ASSERT_TRUE(typed.ok()) << typed.error;
    auto check = [&](auto zero) {
      using T = decltype(zero);
      std::vector<T> memory{T(1.0f), T(-2.0f)};
      typed.run(Args().pointer(memory.data()));
      EXPECT_EQ(static_cast<double>(memory[0]), 21.0) << element;
      EXPECT_EQ(static_cast<double>(memory[1]), 3.0) << element;
    };
    if (std::string(element) == "f16") check(half(0.0f));
    if (std::string(element) == "bf16") check(bfloat16(0.0f));
    if (std::string(element) == "f32") check(0.0f);
    if (std::string(element) == "f64") check(0.0);
  }
}

TEST(HostAtomics, CompareAndSwap) {
  HostKernel kernel(R"(
    func.func @k(%p: !tile.ptr<i64>, %o: !tile.ptr<i64>) attributes {tile.kernel} {
      %i = tile.iota : tensor<6xi32>
      %e = arith.constant dense<1> : tensor<6xi64>
      %d = arith.constant dense<100> : tensor<6xi64>
      %old = tile.atomic_cas acq_rel gpu %p offsets %i : tensor<6xi32>, %e, %d : !tile.ptr<i64>, tensor<6xi64>, tensor<6xi64> -> tensor<6xi64>
      tile.scatter %old, %o offsets %i : tensor<6xi32> : tensor<6xi64>, !tile.ptr<i64>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::vector<int64_t> memory{0, 1, 2, 1, -1, 1}, before = memory, old(6);
  kernel.run(Args().pointer(memory.data()).pointer(old.data()));
  EXPECT_EQ(old, before);
  EXPECT_EQ(memory, (std::vector<int64_t>{0, 100, 2, 100, -1, 100}));
}

TEST(HostAtomics, ManyThreadsLoseNothing) {
  HostKernel kernel(R"(
    func.func @k(%p: !tile.ptr<f32>) attributes {tile.kernel} {
      %one = arith.constant 1.0 : f32
      %old = tile.atomic_rmw add relaxed gpu %p, %one : !tile.ptr<f32>, f32 -> f32
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  float sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { kernel.run(Args().pointer(&sum), {5000, 1, 1}); });
  for (auto& t : threads) t.join();
  EXPECT_EQ(sum, 20000.0f);
}

}  // namespace
}  // namespace tile::test
