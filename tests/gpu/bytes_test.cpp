// bytes_test.cpp - bytes that comparisons of bytes choose, words of four at a time: every pair of bytes; numbers that
// become bytes (packed_bytes.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/float_types.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

TEST(Bytes, ComparisonsThatChooseBytes) {
  const char* predicates[] = {"eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"};
  auto holds = [](int predicate, uint8_t x, uint8_t y) {
    const auto sx = static_cast<int8_t>(x), sy = static_cast<int8_t>(y);
    const bool all[] = {x == y, x != y, (x < y), x <= y, (x > y), x >= y, (sx < sy), sx <= sy, (sx > sy), sx >= sy};
    return all[predicate];
  };
  for (int predicate = 0; predicate < 10; ++predicate)
    for (int constant : {-1000, -128, -1, 0, 3, 127}) {  // -1000: the other tile
      const std::string other = constant == -1000 ? "%b" : "%c";
      SimtKernel k(
          kernel("%x: !tile.ptr<i8> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}, %o: "
                 "!tile.ptr<i8> {tile.align = 16 : i32}",
                 R"(
  %i = tile.iota : tensor<2048xi32>
  %c = arith.constant dense<)" +
                     std::to_string(constant == -1000 ? 0 : constant) + R"(> : tensor<2048xi8>
  %a = tile.gather %x offsets %i : tensor<2048xi32> : !tile.ptr<i8> -> tensor<2048xi8>
  %b = tile.gather %y offsets %i : tensor<2048xi32> : !tile.ptr<i8> -> tensor<2048xi8>
  %f = arith.cmpi )" +
                     predicates[predicate] + ", %a, " + other + R"( : tensor<2048xi8>
  %r = arith.select %f, %b, %a : tensor<2048xi1>, tensor<2048xi8>
  tile.scatter %r, %o offsets %i : tensor<2048xi32> : tensor<2048xi8>, !tile.ptr<i8>
)"));
      for (int part = 0; part < (constant == -1000 ? 32 : 1); ++part) {
        GuardedBuffer x(2048), y(2048), out(2048);
        for (int i = 0; i < 2048; ++i)
          x.as<uint8_t>()[i] = uint8_t(i),
          y.as<uint8_t>()[i] = uint8_t(part * 8 + i / 256 + (constant == -1000 ? 0 : i));
        k.run({slot(x.as<char>()), slot(y.as<char>()), slot(out.as<char>())}, 1);
        for (int i = 0; i < 2048; ++i) {
          const uint8_t a = x.as<uint8_t>()[i], b = y.as<uint8_t>()[i];
          const bool is = holds(predicate, a, constant == -1000 ? b : static_cast<uint8_t>(constant));
          ASSERT_EQ(out.as<uint8_t>()[i], is ? b : a) << int(a) << " " << predicates[predicate] << " " << int(b);
        }
      }
    }
}

/// Carries and sums of three words by an instruction each (full_adders.h): a carry as | and as ^, and what is made of
/// both.
TEST(Bytes, WordsWhoseBitsAreAdded) {
  SimtKernel k(kernel("%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %z: !tile.ptr<i32>, %o: !tile.ptr<i32>", R"(
  %i = tile.iota : tensor<64xi32>
  %j = tile.iota from 64 : tensor<64xi32>
  %a = tile.gather %x offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %b = tile.gather %y offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %c = tile.gather %z offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %ab = arith.andi %a, %b : tensor<64xi32>
  %either = arith.ori %a, %b : tensor<64xi32>
  %some = arith.andi %c, %either : tensor<64xi32>
  %carry = arith.ori %some, %ab : tensor<64xi32>
  %half = arith.xori %b, %c : tensor<64xi32>
  %sum = arith.xori %a, %half : tensor<64xi32>
  %part = arith.xori %sum, %carry : tensor<64xi32>
  %all = arith.xori %part, %a : tensor<64xi32>
  %kept = arith.andi %part, %a : tensor<64xi32>
  %both = arith.andi %sum, %carry : tensor<64xi32>
  %next = arith.xori %kept, %both : tensor<64xi32>
  tile.scatter %all, %o offsets %i : tensor<64xi32> : tensor<64xi32>, !tile.ptr<i32>
  tile.scatter %next, %o offsets %j : tensor<64xi32> : tensor<64xi32>, !tile.ptr<i32>
)"));
  GuardedBuffer x(4 * 64), y(4 * 64), z(4 * 64), out(4 * 128);
  for (uint32_t i = 0; i < 64; ++i)
    x.as<uint32_t>()[i] = i * 2654435761u, y.as<uint32_t>()[i] = i * 40503u ^ 0xF0F0F0F0u,
    z.as<uint32_t>()[i] = (i + 7) * 2246822519u;
  k.run({slot(x.as<char>()), slot(y.as<char>()), slot(z.as<char>()), slot(out.as<char>())}, 1);
  auto most = [](uint32_t a, uint32_t b, uint32_t c) { return (a & b) | (a & c) | (b & c); };
  for (int i = 0; i < 64; ++i) {
    const uint32_t a = x.as<uint32_t>()[i], b = y.as<uint32_t>()[i], c = z.as<uint32_t>()[i];
    const uint32_t carry = most(a, b, c), sum = a ^ b ^ c;
    EXPECT_EQ(out.as<uint32_t>()[i], sum ^ carry ^ a) << i;
    EXPECT_EQ(out.as<uint32_t>()[64 + i], most(sum, carry, a)) << i;
  }
}

/// What `count` floats become that are rounded, kept between two ends, and (with `zeros`) zero where they are no
/// numbers.
std::string toBytes(int count, const char* low, const char* high, bool rounds, bool zeros, bool isUnsigned) {
  return fmt::format(R"(
  %i = tile.iota : tensor<{n}xi32>
  %x = tile.gather %p offsets %i : tensor<{n}xi32> : !tile.ptr<f32> -> tensor<{n}xf32>
  %low = arith.constant dense<{low}> : tensor<{n}xf32>
  %high = arith.constant dense<{high}> : tensor<{n}xf32>
  %zero = arith.constant dense<0.0> : tensor<{n}xf32>
  %r = {rounded} : tensor<{n}xf32>
  %most = arith.maxnumf %r, %low : tensor<{n}xf32>
  %in = arith.minnumf %most, %high : tensor<{n}xf32>
  %is = arith.cmpf oeq, %r, %r : tensor<{n}xf32>
  %s = arith.select %is, %in, %zero : tensor<{n}xi1>, tensor<{n}xf32>
  %b = {cast} {kept} : tensor<{n}xf32> to tensor<{n}xi8>
  tile.scatter %b, %o offsets %i : tensor<{n}xi32> : tensor<{n}xi8>, !tile.ptr<i8>
)",
                     fmt::arg("n", count), fmt::arg("low", low), fmt::arg("high", high),
                     fmt::arg("rounded", rounds ? "math.roundeven %x" : "arith.addf %x, %zero"),
                     fmt::arg("kept", zeros ? "%s" : "%in"),
                     fmt::arg("cast", isUnsigned ? "arith.fptoui" : "arith.fptosi"));
}

TEST(Bytes, FloatsThatBecomeBytes) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values{0,      -0.f,  .5f,     1.5f,   2.5f,    -.5f,   -1.5f,  -2.5f, .49f,   127.4f, 127.5f,
                            127.6f, 128.f, -127.5f, -128.f, -128.5f, -129.f, 254.5f, 255.f, 255.5f, 256.f,  3e9f,
                            -3e9f,  1e30f, -1e30f,  inf,    -inf,    nan,    -nan,   99.9f, -99.9f};
  while (values.size() < 512) values.push_back(std::sin(static_cast<float>(values.size())) * 300);
  struct Ends {
    const char *low, *high;
    bool isUnsigned;
  };
  for (const Ends& ends : {Ends{"-128.0", "127.0", false}, Ends{"-127.0", "127.0", false}, Ends{"0.0", "255.0", true},
                           Ends{"-7.0", "7.0", false}, Ends{"2.0", "100.0", true}})
    for (bool rounds : {true, false})
      for (int count : {512, 256})  // four, or two, of each thread
        for (bool zeros : {true, false}) {
          SimtKernel k(kernel("%p: !tile.ptr<f32> {tile.align = 16 : i32}, %o: !tile.ptr<i8> {tile.align = 16 : i32}",
                              toBytes(count, ends.low, ends.high, rounds, zeros, ends.isUnsigned)));
          GuardedBuffer x(2048), out(512);
          for (int i = 0; i < count; ++i) x.as<float>()[i] = values[size_t(i)];
          k.run({slot(x.as<char>()), slot(out.as<char>())}, 1);
          for (int i = 0; i < count; ++i) {
            const float r = rounds ? std::nearbyint(values[size_t(i)]) : values[size_t(i)];
            const float in = std::fmin(std::fmax(r, std::stof(ends.low)), std::stof(ends.high));
            const int want = static_cast<int>(zeros && std::isnan(r) ? 0.f : in);
            ASSERT_EQ(out.as<uint8_t>()[i], static_cast<uint8_t>(want))
                << values[size_t(i)] << " " << ends.low << " " << ends.high << " " << rounds << zeros;
          }
        }
}

/// The code of the 8-bit float nearest to x, of two as near the even one; the largest where x is beyond it.
template <class F>
uint8_t nearestCode(double x) {
  auto valueOf = [](int code) {
    F f;
    const auto byte = static_cast<uint8_t>(code);
    std::memcpy(&f, &byte, 1);
    return static_cast<double>(static_cast<float>(f));
  };
  int best = 0;
  for (int code = 1; code < 128; ++code) {
    const double far = std::abs(std::abs(x) - valueOf(code)), before = std::abs(std::abs(x) - valueOf(best));
    if (std::isfinite(valueOf(code)) && (far < before || (far == before && code % 2 == 0))) best = code;
  }
  return static_cast<uint8_t>(best | (std::signbit(x) ? 128 : 0));
}

template <class From, class To>
void numbersBecomeFloatsOfBytes(const std::string& from, const std::string& to, const char* op,
                                const std::vector<double>& numbers) {
  const std::string n = std::to_string(numbers.size()), tile = "tensor<" + n + "x";
  const std::string text =
      "  %i = tile.iota : " + tile + "i32>\n  %x = tile.gather %p offsets %i : " + tile + "i32> : !tile.ptr<" + from +
      "> -> " + tile + from + ">\n  %y = arith." + op + " %x : " + tile + from + "> to " + tile + to +
      ">\n  tile.scatter %y, %o offsets %i : " + tile + "i32> : " + tile + to + ">, !tile.ptr<" + to + ">\n";
  for (const char* target : {"sm_90a", "sm_80"}) {
    SimtKernel k(
        kernel("%p: !tile.ptr<" + from + "> {tile.align = 16 : i32}, %o: !tile.ptr<" + to + "> {tile.align = 16 : i32}",
               text),
        target, 4);
    GuardedBuffer in(numbers.size() * sizeof(From)), out(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) in.as<From>()[i] = static_cast<From>(numbers[i]);
    k.run({slot(in.data()), slot(out.data())}, 1);
    for (size_t i = 0; i < numbers.size(); ++i)
      ASSERT_EQ(out.as<uint8_t>()[i], nearestCode<To>(static_cast<double>(in.as<From>()[i])))
          << from << " to " << to << ", " << target << ": " << numbers[i];
  }
}

TEST(Bytes, NumbersThatBecomeFloatsOfBytes) {
  std::vector<double> whole, fractions;
  for (int i = -512; i < 512; ++i) whole.push_back(i < -500 ? i * 1000003. : i > 500 ? i * 77. : i);
  for (int i = 0; i < 1024; ++i) {  // ties and what lies a little beside them
    const double x = (1 + i % 32 / 16. + 1 / 16.) * std::ldexp(1., i / 64 - 8);
    fractions.push_back((i % 2 ? -x : x) * (1 + (i % 3 - 1) * 1e-13));
  }
  numbersBecomeFloatsOfBytes<int32_t, fp8_e4m3>("i32", "f8E4M3FN", "sitofp", whole);
  numbersBecomeFloatsOfBytes<int32_t, fp8_e5m2>("i32", "f8E5M2", "sitofp", whole);
  numbersBecomeFloatsOfBytes<double, fp8_e4m3>("f64", "f8E4M3FN", "truncf", fractions);
  numbersBecomeFloatsOfBytes<double, fp8_e5m2>("f64", "f8E5M2", "truncf", fractions);
}

}  // namespace
}  // namespace tile::testing
