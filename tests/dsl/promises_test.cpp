// promises_test.cpp - what code takes for granted of a launch's arguments: addresses, sizes, strides, scalars.
#include <algorithm>

#include "launch.h"
#include "runtime/cache.h"

using namespace tile;
using namespace tile::testing;

TEST_F(Launch, ArgumentsAreSpecialisedAndGenericCodeIsAlwaysRight) {
  auto add = make_vector_add("add_special");
  auto generic = add.compile(host(), VecCfg{}).value_or_throw();
  auto special = add.compile(host(), VecCfg{}, x.data(), y.data(), out.data(), 992).value_or_throw();
  EXPECT_NE(generic.symbol(), special.symbol());
  // A pointer that is not 16-byte aligned and an odd count: only the generic code may run.
  EXPECT_TRUE(generic.try_launch(host()->default_stream(), {16}, x.data() + 1, y.data(), out.data() + 1, 997).ok());
  EXPECT_EQ(out[997], 998.f + 1.f);
  Status refused = special.try_launch(host()->default_stream(), {16}, x.data() + 1, y.data(), out.data(), 992);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::user);
  EXPECT_NE(refused.error().message.find(
                "argument 0 does not keep what this code was specialised to: needs #0:align16, found generic"),
            std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(special.try_launch(host()->default_stream(), {16}, x.data(), y.data(), out.data(), 992).ok());
}

TEST_F(Launch, PromisesOfViews) {
  alignas(64) static half data[64 * 64];
  auto word = [](TensorView<half, 2> v) { return detail::Param<Tensor<half, 2>>::promise(v); };
  const auto dense = word({data, {64, 64}});
  EXPECT_EQ(dense & 1, 1u);
  EXPECT_EQ(dense >> 1 & 15, 2u);                           // dim 1 has stride 1
  EXPECT_EQ(dense >> 5 & 7, 6u);                            // stride 64, size 64
  EXPECT_EQ(word({data + 1, {64, 64}}) & 1, 0u);            // 2 bytes off
  EXPECT_EQ(word({data, {63, 24}, {24, 1}}) >> 5 & 7, 1u);  // stride 24: 16 bytes' worth; size 63
  EXPECT_EQ(word({data, {63, 20}, {20, 1}}) >> 5 & 7, 0u);
  EXPECT_EQ(word(TensorView<half, 2>(data, {64, 64}).transposed()) >> 1 & 15, 1u);  // dim 0 has stride 1
  EXPECT_EQ(word({data, {1, 64}, {7, 1}}) >> 5 & 3, 2u);   // the stride of a dim of size 1 is never used
  EXPECT_EQ(word({data, {4, 4}, {8, 2}}) >> 1 & 15, 0u);   // no unit stride
  EXPECT_EQ(word({data, {4, 4}, {-16, 1}}) >> 5 & 3, 2u);  // negative strides count as well
}

TEST_F(Launch, PromisesTellWhatBulkCopiesTake) {
  alignas(64) static half data[64 * 64];
  auto plain = [](TensorView<half, 2> v) { return (detail::Param<Tensor<half, 2>>::promise(v) & kNoBulkCopies) != 0; };
  EXPECT_FALSE(plain({data, {64, 64}}));
  EXPECT_TRUE(plain({data, {64, 64}, {0, 1}}));  // every row is the same
  EXPECT_FALSE(plain({data, {1, 64}, {0, 1}}));  // there is one row
  EXPECT_TRUE(plain({data, {64, 64}, {-64, 1}}));
  EXPECT_FALSE(plain({data, {0, 64}, {0, 1}}));
  EXPECT_FALSE(plain({data, {2, 64}, {(int64_t{1} << 39) - 8, 1}}));
  EXPECT_TRUE(plain({data, {2, 64}, {int64_t{1} << 39, 1}}));  // 2^40 bytes
  EXPECT_FALSE(plain({data, {int64_t{1} << 32, 8}, {8, 1}}));
  EXPECT_TRUE(plain({data, {(int64_t{1} << 32) + 1, 8}, {8, 1}}));
}

TEST_F(Launch, CodeForArgumentsThatBulkCopiesDoNotTake) {
  auto k = kernel("copy_tile", [](Tensor<const half, 2> a, Tensor<half, 2> b) {
    b.store({0, 0}, a.load({0, 0}, {64, 64}));
  });
  const AnyKernel& any = k;
  const uint64_t view = 1 | 2 << 1 | 6ull << 5 | 6ull << 8;
  CacheOptions options;
  options.directory = cache_directory() + "/bulk";
  set_jit_policy({.disk = std::make_shared<DiskCache>(options)});
  auto compiles = [&](const std::string& target, uint64_t first, bool tma) {
    const uint64_t before = jit_stats().compiles;
    const auto r = any.compile_for(target, {}, {first, view}, {.tma = tma, .ptxas = "none"});
    EXPECT_TRUE(r) << r.error().to_string();
    return jit_stats().compiles - before;
  };
  EXPECT_EQ(compiles("sm_90a", view | kNoBulkCopies, true), 1u);
  EXPECT_EQ(compiles("sm_90a", view, false), 1u);
  EXPECT_EQ(compiles("sm_90a", view | kNoBulkCopies, false), 0u) << "without bulk copies it makes no difference";
  EXPECT_EQ(compiles("sm_90a", view, true), 1u);
  EXPECT_EQ(compiles("sm_80", view | kNoBulkCopies, true), 1u);
  EXPECT_EQ(compiles("sm_80", view, true), 0u) << "a target without bulk copies makes no difference";
  set_jit_policy({});
}

TEST_F(Launch, OneRepeatedArgumentLeavesTheOthersTheirBulkCopies) {
  auto k = kernel("listed_products", [](Tensor<const half, 2> a, Tensor<const half, 2> b, Tensor<const int32_t, 2> list,
                                        Tensor<float, 2> d) {
    num_warps(4);
    const auto m0 = program_id(0) * 64;
    Tile acc = zeros({64, 64}, f32);
    for (auto e : range(0, list.dim(1))) {
      const auto k0 = list.load({program_id(0), e}) * 64;
      acc = dot(a.load({m0, k0}, {64, 64}), b.load({k0, 0}, {64, 64}), acc);
    }
    d.store({m0, 0}, acc);
  });
  const uint64_t view = 1 | 2 << 1 | 6ull << 5 | 6ull << 8;
  auto maps = [&](const Specialization& spec) {
    const auto r = static_cast<const AnyKernel&>(k).compile_for("sm_90a", {}, spec, {.ptxas = "none"});
    EXPECT_TRUE(r) << r.error().to_string();
    return !r ? 0 : std::count_if(r->tensor_maps.begin(), r->tensor_maps.end(), [](const TensorMapInfo& map) {
      return !map.remainder;
    });
  };
  EXPECT_EQ(maps({view, view, view, view}), 3);  // a, b and d
  EXPECT_EQ(maps({view, view, view | kNoBulkCopies, view}), 3) << "the list is read by plain loads anyway";
  EXPECT_EQ(maps({view, view, view, view | kNoBulkCopies}), 2);
  EXPECT_EQ(maps({view, view | kNoBulkCopies, view, view}), 0) << "all copies of one kernel go one way";
}

/// Seeds are not sizes: whether one happens to be a multiple of 16 makes no code of its own.
TEST_F(Launch, SeedsAreNotSpecialised) {
  auto k = kernel("seeds", [](Ptr<uint64_t> p, U64 seed) { store(p, Tile(seed) + 1u); });
  uint64_t found = 0;
  const uint64_t before = jit_stats().traces;
  for (uint64_t seed : {uint64_t{16}, uint64_t{17}, uint64_t{0}, uint64_t{0x8000000000000001}}) {
    k.launch(host()->default_stream(), {}, Grid{1}, &found, seed);
    host()->synchronize().value_or_throw();
    EXPECT_EQ(found, seed + 1);
  }
  EXPECT_EQ(jit_stats().traces, before + 1);
}

// Pairs side by side (complex numbers, say) are read at once only where their size and the stride of what is in front
// of them are known to be even.
TEST_F(Launch, SmallStridesAndSizesArePromised) {
  auto word = [](int64_t rows, int64_t columns, int64_t parts) {
    return detail::Param<Tensor<float, 3>>::promise({reinterpret_cast<float*>(256), {rows, columns, parts}});
  };
  auto expect = [&](uint64_t w, std::array<int, 3> strides, int size) {
    for (int d = 0; d < 3; ++d) EXPECT_EQ(promised_stride(w, d, DType::f32), strides[static_cast<size_t>(d)]) << d;
    EXPECT_EQ(promised_size(w, 2), size);
  };
  expect(word(100, 256, 2), {16, 2, 1}, 2);
  expect(word(100, 10, 6), {4, 2, 1}, 2);
  expect(word(100, 5, 8), {4, 4, 1}, 8);
  expect(word(100, 5, 3), {1, 1, 1}, 1);
  expect(word(100, 7, 32), {16, 16, 1}, 16);
  expect(word(100, 7, 40), {4, 4, 1}, 8);
  expect(word(100, 7, 36), {4, 4, 1}, 4);
  EXPECT_EQ(promised_size(word(6, 256, 2), 0), 1) << "only neighbours matter";
  EXPECT_EQ(word(100, 7, 36), word(99, 9, 44)) << "rows of any length make few variants";
  auto k = kernel("pairs", [](Tensor<const float, 3> a, Ptr<float> p) { store(p, a.load({0, 0, 0})); });
  const std::string text = static_cast<const AnyKernel&>(k).trace({}, {word(100, 256, 2), 1}).text();
  EXPECT_NE(text.find("tile.stride_multiple_of = array<i32: 16, 2, 1>"), std::string::npos) << text;
  EXPECT_NE(text.find("tile.dim_multiple_of = array<i32: 1, 16, 2>"), std::string::npos) << text;
}

// Rows that begin at multiples of 4 or 8 bytes are moved in words of so many, and their bounds cut none. What varies from
// launch to launch makes few variants: planes say no more than their rows, sizes no more than strides.
TEST_F(Launch, LargeStridesArePromisedAsWordsOfBytes) {
  auto of = [](auto element, int64_t plane, int64_t row, int64_t rows, int64_t columns) {
    using T = decltype(element);
    return detail::Param<Tensor<T, 3>>::promise({reinterpret_cast<T*>(256), {5, rows, columns}, {plane, row, 1}});
  };
  auto expect = [](uint64_t w, DType dtype, std::array<int, 2> strides, int size) {
    for (int d = 0; d < 2; ++d) EXPECT_EQ(promised_stride(w, d, dtype), strides[static_cast<size_t>(d)]) << d;
    EXPECT_EQ(promised_size(w, 2), size);
  };
  expect(of(half(), 10000, 100, 100, 100), DType::f16, {16, 4}, 4);
  expect(of(half(), 9900, 100, 99, 100), DType::f16, {4, 4}, 4);
  expect(of(half(), 9604, 98, 98, 98), DType::f16, {2, 2}, 2);
  expect(of(half(), 9999, 100, 99, 100), DType::f16, {1, 1}, 1);  // planes at odd places
  expect(of(half(), 9801, 99, 99, 99), DType::f16, {1, 1}, 1);
  expect(of(half(), 10000, 100, 100, 99), DType::f16, {16, 4}, 1);
  expect(of(half(), 10000, 100, 100, 98), DType::f16, {16, 4}, 1);
  expect(of(half(), 9604, 98, 98, 96), DType::f16, {2, 2}, 16);
  expect(of(int8_t(), 9900, 100, 99, 100), DType::i8, {4, 4}, 4);
  expect(of(int8_t(), 9604, 98, 98, 98), DType::i8, {1, 1}, 1);  // words of 2 bytes are not worth a variant
  expect(of(float(), 9604, 98, 98, 98), DType::f32, {4, 2}, 2);
  expect(of(double(), 9801, 99, 99, 99), DType::f64, {1, 1}, 1);
  expect(of(half(), -9900, 100, 99, 100), DType::f16, {1, 1}, 1);
  EXPECT_EQ(of(half(), 10000, 100, 100, 100), of(half(), 18000, 180, 100, 180));
}

// Strides of 1 are constants of the code: what is read through them lies side by side.
TEST_F(Launch, ScalarsThatAreOne) {
  auto k = kernel("strided",
                  [](Ptr<float> p, I32 n, I64 stride) { store(p + arange(0, 8) * cast(stride, i32), cast(n, f32)); });
  const auto words = [](auto n, auto stride) {
    return std::vector<uint64_t>{0, detail::Param<I32>::promise(n), detail::Param<I64>::promise(stride)};
  };
  const auto text = [&](int n, int64_t stride) {
    return static_cast<const AnyKernel&>(k).trace({}, words(n, stride)).text();
  };
  EXPECT_NE(text(16, 1).find("i64 {tile.one}"), std::string::npos) << text(16, 1);
  EXPECT_NE(text(16, 1).find("i32 {tile.multiple_of = 16 : i32}"), std::string::npos) << text(16, 1);
  EXPECT_NE(text(-144, 1).find("i32 {tile.multiple_of = 16 : i32}"), std::string::npos) << text(-144, 1);
  for (int n : {0, -128, 384})
    EXPECT_NE(text(n, 1).find("i32 {tile.multiple_of = 128 : i32}"), std::string::npos) << text(n, 1);
  EXPECT_EQ(text(3, 2).find("tile.one"), std::string::npos);
  EXPECT_EQ(detail::Param<U64>::promise(uint64_t{1}), 0u) << "keys and seeds";
  auto shift = kernel("shift_by", [](Ptr<float> p, I32 by) { store(p + by, 5.f); });
  auto made = shift.compile(host(), {}, x.data(), 1).value_or_throw();
  EXPECT_TRUE(made.try_launch(host()->default_stream(), Grid{1}, x.data(), 1).ok());
  const Status refused = made.try_launch(host()->default_stream(), Grid{1}, x.data(), 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("needs #0:1, found generic"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(shift.try_launch(host()->default_stream(), {}, Grid{1}, x.data(), 2).ok());
  EXPECT_EQ(x[1], 5.f);
  EXPECT_EQ(x[2], 5.f);
}

// Arguments of loops that these turn out not to need go, and others may come to lie where they were: one of those is no
// input because that one was.
TEST_F(Launch, InputsAndOutputsOfLoops) {
  auto k = kernel("loops", [](Ptr<const int32_t> a, Ptr<const int32_t> b, Ptr<int32_t> x, Ptr<int32_t> y, I32 n) {
    for (auto e : range(n))
      for (auto i : range(load(a + e), load(a + e + 1), 4)) store(x + i / 4, e);
    for (auto i : range(n)) {
      auto p = y + load(b + i);
      auto rank = load(p);
      store(x + (load(a + i) + rank), i);
      store(p, rank + 1);
    }
  });
  for (int round = 0; round < 100; ++round) {
    const auto trace = static_cast<const AnyKernel&>(k).trace({}, {});
    ASSERT_NE(trace.text().find("tile.scatter"), std::string::npos) << "round " << round;
  }
}

TEST_F(Launch, PromisesReachTheIr) {
  auto k = kernel("promises", [](Tensor<const half, 2> a, Ptr<float> p, I32 n) {
    store(p + n, cast(a.load({0, 0}), f32));
  });
  const uint64_t view = 1 | 2 << 1 | 6ull << 5 | 5ull << 8 | kNoBulkCopies;
  const std::string text = static_cast<const AnyKernel&>(k).trace({}, {view, 1, 1}).text();
  for (const char* part :
       {"tile.align = 16 : i32", "tile.unit_stride = 1 : i32", "tile.stride_multiple_of = array<i32: 16, 8>",
        "tile.dim_multiple_of = array<i32: 16, 16>", "tile.multiple_of = 16 : i32", "tile.no_bulk_copies"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}
