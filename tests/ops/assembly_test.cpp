// assembly_test.cpp - inline assembly: what it computes on every device present, how registers are packed, and that no
// text, however strange, does more than fail at the user's line.
#include <bit>

#include "ops.h"

namespace tile::ops {
namespace {

constexpr int kCount = 1000;  // padding registers and groups that are not whole

template <class T>
void check_packed(int pack, const char* text, const char* constraints, int by) {
  SCOPED_TRACE(std::string(name(dtype_of<T>())) + " pack " + std::to_string(pack));
  std::vector<T> x = operands<T>(kCount, -2, 2, 5);
  for (auto& device : devices()) {
    std::vector<T> y(kCount);
    auto k = kernel("packed", [=](Ptr<const T> p, Ptr<T> out) {
      auto i = arange(0, kCount);
      store(out + i, inline_asm(text, constraints, {load(p + i)}, dtype_of<T>(), {.pack = pack},
                                [&](Tile v) { return v ^ by; }));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, y));
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(y[i], static_cast<T>(x[i] ^ by)) << device->name() << " " << i;
  }
}
TEST(Assembly, Packed) {
  check_packed<int32_t>(1, "xor.b32 $0, $1, 5;", "=r,r", 5);
  check_packed<int32_t>(2, "xor.b32 $0, $2, 5;\nxor.b32 $1, $3, 5;", "=r,=&r,r,r", 5);
  check_packed<int64_t>(1, "xor.b64 $0, $1, 5;", " =l , l ", 5);
  check_packed<int16_t>(1, "xor.b16 $0, $1, 5;", "=h,h", 5);
  check_packed<int16_t>(1, "xor.b32 $0, $1, 5;", "=r,r", 5);
  check_packed<int16_t>(2, "xor.b32 $0, $1, 0x00050005;", "=r,r", 5);
  check_packed<int8_t>(1, "xor.b16 $0, $1, 5;", "=h,h", 5);
  check_packed<int8_t>(2, "xor.b32 $0, $1, 0x0505;", "=r,r", 5);
  check_packed<uint8_t>(4, "xor.b32 $0, $1, 0x05050505;", "=r,r", 5);
  check_packed<uint8_t>(8, "xor.b32 $0, $2, 0x05050505;\n xor.b32 $1, $3, 0x05050505;", "=r,=r,r,r", 5);
}

// Which element of a group is which, in registers of their own and in one word.
TEST(Assembly, ElementsKeepTheirPlaces) {
  std::vector<uint8_t> x = operands<uint8_t>(kCount, 0, 0, 3);
  std::vector<float> y = operands<float>(kCount, -9, 9, 4);
  for (auto& device : devices()) {
    std::vector<float> sums(kCount);
    std::vector<uint16_t> wide(kCount);
    auto k = kernel("places", [](Ptr<const uint8_t> p, Ptr<const float> q, Ptr<float> s, Ptr<uint16_t> w) {
      auto i = arange(0, kCount);
      auto [sum, both] = inline_asm(
          R"({ .reg .b32 a<4>; .reg .f32 f<4>;
             prmt.b32 a0, $6, 0, 0x4440; prmt.b32 a1, $6, 0, 0x4441; prmt.b32 a2, $6, 0, 0x4442; prmt.b32 a3, $6, 0, 0x4443;
             cvt.rn.f32.u32 f0, a0; cvt.rn.f32.u32 f1, a1; cvt.rn.f32.u32 f2, a2; cvt.rn.f32.u32 f3, a3;
             add.f32 $0, f0, $7; add.f32 $1, f1, $8; add.f32 $2, f2, $9; add.f32 $3, f3, $10;
             prmt.b32 $4, $6, 0, 0x4140; prmt.b32 $5, $6, 0, 0x4342; })",
          "=f,=f,=f,=f,=r,=r,r,f,f,f,f", {load(p + i), load(q + i)}, {f32, u16}, {.pack = 4},
          [](Tile a, Tile b) { return std::pair(cast(a, f32) + b, cast(a, u16)); });
      store(s + i, sum);
      store(w + i, both);
    });
    ASSERT_TRUE(run_on(device, k, {}, x, y, sums, wide));
    for (int i = 0; i < kCount; ++i) {
      ASSERT_EQ(sums[i], float(x[i]) + y[i]) << device->name() << " " << i;
      ASSERT_EQ(wide[i], x[i]) << device->name() << " " << i;
    }
  }
}

std::string error_for_gpu(const AnyKernel& k) {
  Result<KernelBinary> binary = k.compile_for("sm_90a", k.default_config());
  return binary.ok() ? "" : binary.error().to_string();
}

/// Whether ptxas is there to find fault.
bool has_ptxas() {
  auto k = kernel("plain", [](Ptr<int32_t> p) { store(p, 1); });
  Result<KernelBinary> binary = k.compile_for("sm_90a", k.default_config());
  return binary.ok() && binary->format == BinaryFormat::cubin;
}

TEST(Assembly, PtxasSpeaksOfTheUsersLine) {
  if (!has_ptxas()) GTEST_SKIP() << "no ptxas";
  const int line = __LINE__ + 2;
  auto k =
      kernel("wrong", [](Ptr<int32_t> p) { store(p, inline_asm("frobnicate.s32 $0, $1;", "=r,r", {load(p)}, i32)); });
  const std::string error = error_for_gpu(k);
  EXPECT_NE(error.find("assembly_test.cpp:" + std::to_string(line)), std::string::npos) << error;
  EXPECT_NE(error.find("frobnicate"), std::string::npos) << error;
}

TEST(Assembly, StrangeTextsFail) {
  if (!has_ptxas()) GTEST_SKIP() << "no ptxas";
  for (const char* text : {"{", "}", "} }", "/*", "\"", "\\", "// end inline asm\nnonsense;", "ret", ".entry f() {",
                           "mov.u32 $0, %nowhere;", "bra nowhere;", "$$x;", "%%;", "\xff\xfe;", "@p add.s32 $0, $1, 1;",
                           ".loc 1 2 3;;", "{ .reg .b32 a; mov.b32 a, $1; mov.b32 $0, b; }",
                           "// assembly of other.cpp:7\nnonsense;", ".version 99.9\n.target sm_1"}) {
    const int line = __LINE__ + 1;
    auto k = kernel("strange", [=](Ptr<int32_t> p) { store(p, inline_asm(text, "=r,r", {load(p)}, i32)); });
    const std::string error = error_for_gpu(k);
    if (std::string(text) == "\\") continue;
    EXPECT_NE(error, "") << text;
    if (std::string(text).find("other.cpp") == std::string::npos) {
      EXPECT_NE(error.find("assembly_test.cpp:" + std::to_string(line)), std::string::npos) << text << "\n" << error;
    }
  }
}

TEST(Assembly, HostsWantAFormOfTheirOwn) {
  const int line = __LINE__ + 2;
  auto k =
      kernel("gpu_only", [](Ptr<int32_t> p) { store(p, inline_asm("add.s32 $0, $1, 1;", "=r,r", {load(p)}, i32)); });
  std::vector<int32_t> x(1);
  const auto host = open_device("host").value_or_throw();
  auto result = run_on(host, k, {}, x);
  ASSERT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("no form for hosts"), std::string::npos) << result.message();
  EXPECT_NE(std::string(result.message()).find("assembly_test.cpp:" + std::to_string(line)), std::string::npos)
      << result.message();
}

// A store through an address of its own, kept because it is not pure.
TEST(Assembly, EffectsAreKept) {
  auto k = kernel("effects", [](Ptr<int32_t> p) {
    auto unused =
        inline_asm("nanosleep.u32 17; mov.u32 $0, 0;", "=r", u32, {.pure = false}, [] { return cast(Tile(0), u32); });
    store(p, 1);
  });
  KernelOptions ptx;
  ptx.ptxas = "none";
  const auto binary = k.compile_for("sm_80", k.default_config(), {}, ptx).value_or_throw();
  EXPECT_NE(std::string(binary.bytes.begin(), binary.bytes.end()).find("nanosleep.u32 17"), std::string::npos);
}

}  // namespace
}  // namespace tile::ops
