// memory_test.cpp - loads and stores of boxes, gathers, scatters and atomics, executed; buffers end at guarded pages,
// so that an access outside them ends the test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "runtime/float_types.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

// z = x + y over views of n elements, tiles of `tile`, with whatever promises `attrs` make.
void runAdd(int64_t n, int64_t tile, const std::string& attrs, int warps) {
  std::string view = "!tile.view<1xf32> " + attrs;
  SimtKernel k(kernel(fmt::format("%x: {0}, %y: {0}, %z: {0}", view), fmt::format(R"(  %c = arith.constant {0} : i32
  %p = tile.program_id 0
  %o = arith.muli %p, %c : i32
  %a = tile.load %x[%o : i32] : !tile.view<1xf32> -> tensor<{0}xf32>
  %b = tile.load %y[%o : i32] pad 5.0 : !tile.view<1xf32> -> tensor<{0}xf32>
  %s = arith.addf %a, %b : tensor<{0}xf32>
  tile.store %s, %z[%o : i32] : tensor<{0}xf32>, !tile.view<1xf32>
)",
                                                                                  tile)),
               "sm_90a", warps);
  GuardedBuffer x(4 * n), y(4 * n), z(4 * n);
  for (int64_t i = 0; i < n; ++i) {
    x.as<float>()[i] = static_cast<float>(i);
    y.as<float>()[i] = 0.5f * static_cast<float>(i);
  }
  auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  k.run({slot(x.as<float>()), u(n), 1, slot(y.as<float>()), u(n), 1, slot(z.as<float>()), u(n), 1},
        static_cast<int>((n + tile - 1) / tile));
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(z.as<float>()[i], 1.5f * static_cast<float>(i)) << i;
}

// All 256 numbers of 8 bits, widened two by two (before sm_89 in the halves of registers).
template <class T>
void widenAll(const char* element) {
  for (const char* target : {"sm_80", "sm_89", "sm_90a"})
    for (const char* to : {"f16", "f32"}) {
      const std::string wide = std::string("tensor<256x") + to + ">";
      SimtKernel k(kernel(fmt::format("%x: !tile.view<1x{}>, %y: !tile.view<1xf32>", element),
                          fmt::format(R"(  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1x{0}> -> tensor<256x{0}>
  %w = arith.extf %a : tensor<256x{0}> to {1}
  {2}
  tile.store %f, %y[%c0 : i32] : tensor<256xf32>, !tile.view<1xf32>
)",
                                      element, wide,
                                      to == std::string("f32")
                                          ? "%f = arith.addf %w, %w : tensor<256xf32>"
                                          : "%d = arith.addf %w, %w : tensor<256xf16>\n  %f = arith.extf %d : "
                                            "tensor<256xf16> to tensor<256xf32>")),
                   target, 1);
      GuardedBuffer x(256), y(4 * 256);
      for (int i = 0; i < 256; ++i) x.as<uint8_t>()[i] = static_cast<uint8_t>(i);
      k.run({slot(x.as<char>()), 256, 1, slot(y.as<float>()), 256, 1}, 1);
      for (int i = 0; i < 256; ++i) {
        float want = T::from_bits(static_cast<uint8_t>(i));
        want = to == std::string("f32") ? want + want : static_cast<float>(half(want + want));
        const float got = y.as<float>()[i];
        ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want))
            << target << " " << element << " to " << to << ": bits " << i << " gave " << got << ", expected " << want;
      }
    }
}
TEST(Memory, BytesWidened) {
  widenAll<fp8_e4m3>("f8E4M3FN");
  widenAll<fp8_e5m2>("f8E5M2");
}

TEST(Memory, AddWithPromises) {
  runAdd(4096, 1024, "{tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>}", 4);
}
TEST(Memory, AddWithoutPromises) { runAdd(1500, 1024, "", 4); }
TEST(Memory, AddAlignedButRagged) {
  for (int64_t n : {1, 3, 1024, 1028, 1531})
    runAdd(n * 4, 1024, "{tile.align = 16 : i32, tile.unit_stride = 0 : i32}", 8);
  for (int64_t n : {1, 7, 1023, 1025}) runAdd(n, 512, "{tile.align = 4 : i32, tile.unit_stride = 0 : i32}", 4);
}
TEST(Memory, OddTiles) {
  for (int64_t tile : {80, 96, 112, 5, 1000})
    runAdd(333, tile, "{tile.align = 16 : i32, tile.unit_stride = 0 : i32}", 4);
}

// Boxes of short elements that start anywhere, inside or beside the view, whose rows are whole accesses.
template <class T>
void runAnywhere(const std::string& element) {
  constexpr int rows = 19, cols = 96, box = 64;
  const std::string view = fmt::format("!tile.view<2x{}> {{tile.align = 16 : i32, tile.unit_stride = 1 : i32, "
                                       "tile.stride_multiple_of = array<i32: 16, 1>, "
                                       "tile.dim_multiple_of = array<i32: 1, 16>}}", element);
  SimtKernel k(kernel(fmt::format("%x: {0}, %y: {0}, %row: i32, %at: i32", view),
                      fmt::format(R"(  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%row, %at : i32, i32] pad 7.0 : !tile.view<2x{0}> -> tensor<16x64x{0}>
  tile.store %a, %y[%c0, %c0 : i32, i32] : tensor<16x64x{0}>, !tile.view<2x{0}>
)", element)),
               "sm_90a", 2);
  for (int row : {-3, 0, 8})
    for (int at : {-70, -65, -17, -8, -1, 0, 1, 2, 3, 5, 8, 15, 31, 32, 33, 95, 96, 200}) {
      GuardedBuffer x(sizeof(T) * rows * cols), y(sizeof(T) * 16 * box);
      for (int i = 0; i < rows * cols; ++i) x.as<T>()[i] = static_cast<T>(i * 37 + 1);
      k.run({slot(x.as<T>()), rows, cols, cols, 1, slot(y.as<T>()), 16, box, box, 1, static_cast<uint64_t>(row),
             static_cast<uint64_t>(at)}, 1);
      for (int r = 0; r < 16; ++r)
        for (int c = 0; c < box; ++c) {
          const int i = row + r, j = at + c;
          const bool inside = i >= 0 && i < rows && j >= 0 && j < cols;
          ASSERT_EQ(y.as<T>()[r * box + c], inside ? static_cast<T>((i * cols + j) * 37 + 1) : T(7))
              << element << " " << row << " " << at << " " << r << " " << c;
        }
    }
}
TEST(Memory, BoxesThatStartAnywhere) {
  runAnywhere<uint16_t>("i16");
  runAnywhere<uint8_t>("i8");
}

// Four fields of records of six floats, of which each thread reads pairs, and a mask; the last record ends the buffer.
TEST(Memory, FieldsOfRecords) {
  SimtKernel k(kernel("%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.view<1xf32>, %n: i32",
                        R"(  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %six = arith.constant dense<6> : tensor<128xi32>
  %last = arith.constant dense<127> : tensor<128xi32>
  %other = arith.constant dense<1.0> : tensor<128xf32>
  %i = tile.iota : tensor<128xi32>
  %from = arith.subi %last, %i : tensor<128xi32>
  %end = tile.splat %n : i32 -> tensor<128xi32>
  %in = arith.cmpi slt, %from, %end : tensor<128xi32>
  %at = arith.muli %from, %six : tensor<128xi32>
  %x1 = tile.ptr_add %x, %c1 : !tile.ptr<f32>, i32
  %x2 = tile.ptr_add %x, %c2 : !tile.ptr<f32>, i32
  %x3 = tile.ptr_add %x, %c3 : !tile.ptr<f32>, i32
  %b = tile.gather %x1 offsets %at : tensor<128xi32> mask %in : tensor<128xi1>
    other %other : tensor<128xf32> : !tile.ptr<f32> -> tensor<128xf32>
  %a = tile.gather %x offsets %at : tensor<128xi32> mask %in : tensor<128xi1>
    other %other : tensor<128xf32> : !tile.ptr<f32> -> tensor<128xf32>
  %c = tile.gather %x2 offsets %at : tensor<128xi32> mask %in : tensor<128xi1>
    other %other : tensor<128xf32> : !tile.ptr<f32> -> tensor<128xf32>
  %d = tile.gather %x3 offsets %at : tensor<128xi32> mask %in : tensor<128xi1>
    other %other : tensor<128xf32> : !tile.ptr<f32> -> tensor<128xf32>
  %s = arith.subf %a, %b : tensor<128xf32>
  %t = arith.mulf %c, %d : tensor<128xf32>
  %u = arith.addf %s, %t : tensor<128xf32>
  tile.store %u, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
)"),
               "sm_90a", 2);
  const int n = 77;
  GuardedBuffer x(4 * 6 * n), y(4 * 128);
  for (int i = 0; i < 6 * n; ++i) x.as<float>()[i] = static_cast<float>(i % 11);
  k.run({slot(x.as<float>()), slot(y.as<float>()), 128, 1, static_cast<uint64_t>(n)}, 1);
  for (int i = 0; i < 128; ++i) {
    const float* r = x.as<float>() + 6 * (127 - i);
    ASSERT_EQ(y.as<float>()[i], 127 - i < n ? r[0] - r[1] + r[2] * r[3] : 1.f) << i;
  }
}

// A box of 64 rows and 32 columns that a loop updates with a vector in each step, in views with fewer rows: whole
// groups of sixteen, or not.
TEST(Memory, BoxesUpdatedAcrossLoops) {
  const int steps = 3, cols = 32;
  for (auto [rows, divisor, first] : {std::tuple{48, 16, 0}, {32, 16, 16}, {37, 1, 0}, {80, 16, -16}}) {
    const std::string view = "!tile.view<2xf32> {{tile.align = 16 : i32, tile.unit_stride = 1 : i32, "
                             "tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: {}, 16>}}";
    SimtKernel k(kernel(fmt::format("%x: {}, %k: {}, %n: i32", fmt::format(fmt::runtime(view), divisor),
                                    fmt::format(fmt::runtime(view), 1)),
                        fmt::format(R"(  %row = arith.constant {} : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s0 = tile.load %x[%row, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x32xf32>
  %s = scf.for %t = %c0 to %n step %c1 iter_args(%s1 = %s0) -> (tensor<64x32xf32>) : i32 {{
    %v = tile.load %k[%t, %row : i32, i32] : !tile.view<2xf32> -> tensor<64xf32>
    %c = tile.reshape %v : tensor<64xf32> -> tensor<64x1xf32>
    %b = tile.broadcast %c : tensor<64x1xf32> -> tensor<64x32xf32>
    %s2 = arith.addf %s1, %b : tensor<64x32xf32>
    scf.yield %s2 : tensor<64x32xf32>
  }}
  tile.store %s, %x[%row, %c0 : i32, i32] : tensor<64x32xf32>, !tile.view<2xf32>
)", first)),
                 "sm_90a", 4);
    GuardedBuffer x(4 * rows * cols), v(4 * steps * 96);
    for (int i = 0; i < rows * cols; ++i) x.as<float>()[i] = static_cast<float>(i);
    for (int i = 0; i < steps * 96; ++i) v.as<float>()[i] = static_cast<float>(i % 7);
    auto u = [](int64_t n) { return static_cast<uint64_t>(n); };
    k.run({slot(x.as<float>()), u(rows), u(cols), u(cols), 1, slot(v.as<float>()), u(steps), 96, 96, 1, u(steps)}, 1);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c) {
        float want = static_cast<float>(r * cols + c);
        if (r >= first && r < first + 64)
          for (int t = 0; t < steps; ++t) want += r < 96 ? static_cast<float>((t * 96 + r) % 7) : 0;
        ASSERT_EQ(x.as<float>()[r * cols + c], want) << rows << " rows: " << r << ", " << c;
      }
  }
}

// A box at (row, col), negative or past the end on every side, in a view of rows x cols with row pitch.
TEST(Memory, BoxesCrossEveryEdge) {
  const int rows = 19, cols = 30, pitch = 32;
  for (auto [th, tw] : {std::pair<int, int>{16, 32}, {5, 7}, {64, 16}, {8, 24}}) {
    SimtKernel k(kernel(
        "%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = "
        "array<i32: 4, 1>}, "
        "%r: i32, %c: i32, %o: !tile.ptr<f32>, %z: !tile.view<2xf32> {tile.unit_stride = 1 : i32}",
        fmt::format("  %a = tile.load %x[%r, %c : i32, i32] pad -1.0 : !tile.view<2xf32> -> tensor<{0}x{1}xf32>\n"
                    "  tile.store %a, %z[%r, %c : i32, i32] : tensor<{0}x{1}xf32>, !tile.view<2xf32>\n",
                    th, tw) +
            writeTile("a", "o", {th, tw}, "f32")));
    GuardedBuffer x(rows * pitch * 4), out(th * tw * 4), z(rows * pitch * 4);
    for (int i = 0; i < rows * pitch; ++i) x.as<float>()[i] = static_cast<float>(i);
    for (int row : {-100, -3, 0, 4, 17, 19, 1000000}) {
      for (int col : {-40, -1, 0, 3, 16, 29, 30}) {
        std::fill_n(z.as<float>(), rows * pitch, -7.0f);
        k.run({slot(x.as<float>()), rows, static_cast<uint64_t>(cols), pitch, 1, static_cast<uint32_t>(row), static_cast<uint32_t>(col),
               slot(out.as<float>()), slot(z.as<float>()), rows, cols, pitch, 1},
              1);
        for (int i = 0; i < th; ++i)
          for (int j = 0; j < tw; ++j) {
            int r = row + i, c = col + j;
            bool inside = r >= 0 && r < rows && c >= 0 && c < cols;
            ASSERT_EQ(out.as<float>()[i * tw + j], inside ? static_cast<float>(r * pitch + c) : -1.0f) << r << "," << c;
          }
        for (int r = 0; r < rows; ++r)
          for (int c = 0; c < pitch; ++c) {
            bool written = r >= row && r < row + th && c >= col && c < col + tw && c < cols;
            ASSERT_EQ(z.as<float>()[r * pitch + c], written ? static_cast<float>(r * pitch + c) : -7.0f)
                << r << "," << c;
          }
      }
    }
  }
}

TEST(Memory, MaskedGatherReadsOther) {
  for (int n : {1024, 1000, 1001, 3, 0}) {
    SimtKernel k(
        kernel("%x: !tile.ptr<f16> {tile.align = 16 : i32}, %n: i32, %o: !tile.ptr<f16> {tile.align = 16 : i32}", R"(
  %i = tile.iota : tensor<1024xi32>
  %ns = tile.splat %n : i32 -> tensor<1024xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<1024xi32>
  %other = arith.constant dense<3.0> : tensor<1024xf16>
  %a = tile.gather %x offsets %i : tensor<1024xi32> mask %m : tensor<1024xi1> other %other : tensor<1024xf16> : !tile.ptr<f16> -> tensor<1024xf16>
  tile.scatter %a, %o offsets %i : tensor<1024xi32> : tensor<1024xf16>, !tile.ptr<f16>
)"));
    GuardedBuffer x(2 * n), out(2048);
    for (int i = 0; i < n; ++i) x.as<uint16_t>()[i] = static_cast<uint16_t>(i + 1);
    k.run({slot(x.as<char>()), static_cast<uint32_t>(n), slot(out.as<char>())}, 1);
    for (int i = 0; i < 1024; ++i) ASSERT_EQ(out.as<uint16_t>()[i], i < n ? i + 1 : 0x4200) << i;
  }
}

TEST(Memory, AlignedLoadsAre16BytesWide) {
  SimtKernel k(kernel(fmt::format("%x: !tile.ptr<f16> {0}, %o: !tile.ptr<f16> {0}", kIn),
                      readTile("a", "x", {4096}, "f16") + writeTile("a", "o", {4096}, "f16")));
  EXPECT_NE(k.ptx().find("ld.global.v4.b32"), std::string::npos);
  EXPECT_NE(k.ptx().find("st.global.v4.b32"), std::string::npos);
  EXPECT_EQ(k.ptx().find("bar.sync"), std::string::npos);
}

// Boxes a few elements beside an aligned place, crossing every edge: each is cut from aligned accesses, which they
// share where the view's rows are whole ones.
TEST(Memory, BoxesBesideEachOther) {
  const int rows = 9, pitch = 96, most = 6;
  for (int cols : {96, 68, 67})
    for (int warps : {1, 4}) {
      const bool isWhole = cols % 4 == 0;
      std::string loads;
      for (int n = 0; n <= 2 * most; ++n) {
        const int by = n <= most ? n : n - 2 * most - 1;
        loads += fmt::format(
            "  %k{0} = arith.constant {1} : i32\n  %c{0} = arith.addi %col, %k{0} : i32\n"
            "  %a{0} = tile.load %x[%r, %c{0} : i32, i32] pad -1.0 : !tile.view<2xf32> -> tensor<8x64xf32>\n"
            "  %o{0} = arith.constant {2} : i32\n  %p{0} = tile.ptr_add %o, %o{0} : !tile.ptr<f32>, i32\n",
            by + most, by, (by + most) * 8 * 64);
        loads += writeTile(fmt::format("a{}", by + most), fmt::format("p{}", by + most), {8, 64}, "f32");
      }
      SimtKernel k(kernel(fmt::format("%x: !tile.view<2xf32> {{tile.align = 16 : i32, tile.unit_stride = 1 : i32, "
                                      "tile.stride_multiple_of = array<i32: 4, 1>{}}}, %r: i32, %q: i32, %o: !tile.ptr<f32>",
                                      isWhole ? ", tile.dim_multiple_of = array<i32: 1, 4>" : ""),
                          "  %four = arith.constant 4 : i32\n  %col = arith.muli %q, %four : i32\n" + loads),
                   "sm_90a", warps);
      GuardedBuffer x(rows * pitch * 4), out((2 * most + 1) * 8 * 64 * 4);
      for (int i = 0; i < rows * pitch; ++i) x.as<float>()[i] = static_cast<float>(i);
      for (int row : {-3, 0, 5, 100})
        for (int quad : {-100000, -17, -1, 0, 1, 12, 16, 24, 100000}) {
          k.run({slot(x.as<float>()), rows, static_cast<uint64_t>(cols), pitch, 1, static_cast<uint32_t>(row), static_cast<uint32_t>(quad),
                 slot(out.as<float>())},
                1);
          for (int by = -most; by <= most; ++by)
            for (int i = 0; i < 8; ++i)
              for (int j = 0; j < 64; ++j) {
                const int r = row + i, c = quad * 4 + by + j;
                const bool isInside = r >= 0 && r < rows && c >= 0 && c < cols;
                ASSERT_EQ(out.as<float>()[((by + most) * 8 + i) * 64 + j],
                          isInside ? static_cast<float>(r * pitch + c) : -1.f)
                    << cols << " columns, " << warps << " warps: " << r << "," << c << " by " << by;
              }
        }
    }
}

// Bytes and the three in front of each, from anywhere, between pages that must not be touched: a thread reads seven.
TEST(Memory, BytesUnderTheirOwnMasks) {
  constexpr int kTile = 512;
  std::string body = R"(  %i = tile.iota : tensor<512xi32>
  %begin = tile.splat %first : i32 -> tensor<512xi32>
  %at = arith.addi %begin, %i : tensor<512xi32>
  %size = tile.splat %n : i32 -> tensor<512xi32>
)";
  for (int by = 0; by < 4; ++by)
    body += fmt::format(R"(  %by{0} = arith.constant {2} : i32
  %less{0} = arith.constant dense<{0}> : tensor<512xi32>
  %at{0} = arith.subi %at, %less{0} : tensor<512xi32>
  %in{0} = arith.cmpi ult, %at{0}, %size : tensor<512xi32>
  %x{0} = tile.ptr_add %x, %by{0} : !tile.ptr<i8>, i32
  %b{0} = tile.gather %x{0} offsets %at : tensor<512xi32> mask %in{0} : tensor<512xi1> : !tile.ptr<i8> -> tensor<512xi8>
  %w{0} = arith.extui %b{0} : tensor<512xi8> to tensor<512xi32>
  %f{0} = arith.constant dense<{1}> : tensor<512xi32>
  %p{0} = arith.muli %w{0}, %f{0} : tensor<512xi32>
)",
                        by, 1 << (8 * by), -by);
  body += R"(  %s1 = arith.addi %p0, %p1 : tensor<512xi32>
  %s2 = arith.addi %p2, %p3 : tensor<512xi32>
  %sum = arith.addi %s1, %s2 : tensor<512xi32>
)" + writeTile("sum", "o", {kTile}, "i32");
  SimtKernel k(kernel(fmt::format("%x: !tile.ptr<i8>, %n: i32, %first: i32, %o: !tile.ptr<i32> {}", kIn), body), "sm_90a", 4);
  size_t reads = 0;
  for (size_t at = 0; (at = k.ptx().find("ld.global.b8", at)) != std::string::npos; ++at) ++reads;
  EXPECT_EQ(reads, 7u);
  for (int n : {0, 1, 3, 100, 511, 600})
    for (int first : {0, 1, 2, 77}) {
      GuardedBuffer x(n), out(4 * kTile);
      auto byte = [](int i) { return static_cast<uint32_t>(i * 7 + 1) & 255; };
      for (int i = 0; i < n; ++i) x.as<uint8_t>()[i] = static_cast<uint8_t>(byte(i));
      k.run({slot(x.as<char>()), static_cast<uint32_t>(n), static_cast<uint32_t>(first), slot(out.as<char>())}, 1);
      for (int i = 0; i < kTile; ++i) {
        uint32_t want = 0;
        for (int by = 0; by < 4; ++by)
          if (const int at = first + i - by; at >= 0 && at < n) want += byte(at) << (8 * by);
        ASSERT_EQ(out.as<uint32_t>()[i], want) << i << " of " << n << " from " << first;
      }
    }
}

// Neighbours, each under a mask of its own, with values of its own for what the masks leave out: read as one window by
// every thread, for four elements or (where a scan of pairs wants them so) for eight in a row.
TEST(Memory, NeighboursUnderTheirOwnMasks) {
  constexpr int kTile = 1024;
  const std::string scan = R"(  %f = arith.constant dense<0.0> : tensor<1024xf32>
  %r:2 = tile.scan %sum, %f axis 0 : (tensor<1024xi32>, tensor<1024xf32>) -> (tensor<1024xi32>, tensor<1024xf32>) {
  ^bb0(%p0: i32, %p1: f32, %q0: i32, %q1: f32):
    %t0 = arith.addi %p0, %q0 : i32
    %t1 = arith.addf %p1, %q1 : f32
    tile.yield %t0, %t1 : i32, f32
  }
  %total = arith.addi %r#0, %zero : tensor<1024xi32>
)";
  for (bool scans : {false, true}) {
    SimtKernel k(
        kernel(fmt::format("%x: !tile.ptr<i32> {0}, %n: i32 {{tile.multiple_of = {1} : i32}}, %o: !tile.ptr<i32> {0}", kIn, 16),
               R"(  %m1 = arith.constant -1 : i32
  %two = arith.constant 2 : i32
  %i = tile.iota : tensor<1024xi32>
  %zero = arith.constant dense<0> : tensor<1024xi32>
  %twos = arith.constant dense<2> : tensor<1024xi32>
  %n0 = tile.splat %n : i32 -> tensor<1024xi32>
  %in = arith.cmpi slt, %i, %n0 : tensor<1024xi32>
  %some = arith.cmpi sgt, %i, %zero : tensor<1024xi32>
  %low = arith.andi %in, %some : tensor<1024xi1>
  %behind = arith.addi %i, %twos : tensor<1024xi32>
  %high = arith.cmpi slt, %behind, %n0 : tensor<1024xi32>
  %xl = tile.ptr_add %x, %m1 : !tile.ptr<i32>, i32
  %xh = tile.ptr_add %x, %two : !tile.ptr<i32>, i32
  %e0 = arith.constant dense<-1> : tensor<1024xi32>
  %e1 = arith.constant dense<-20> : tensor<1024xi32>
  %e2 = arith.constant dense<-300> : tensor<1024xi32>
  %a = tile.gather %x offsets %i : tensor<1024xi32> mask %in : tensor<1024xi1> other %e0 : tensor<1024xi32> : !tile.ptr<i32> -> tensor<1024xi32>
  %b = tile.gather %xl offsets %i : tensor<1024xi32> mask %low : tensor<1024xi1> other %e1 : tensor<1024xi32> : !tile.ptr<i32> -> tensor<1024xi32>
  %c = tile.gather %xh offsets %i : tensor<1024xi32> mask %high : tensor<1024xi1> other %e2 : tensor<1024xi32> : !tile.ptr<i32> -> tensor<1024xi32>
  %ab = arith.subi %a, %b : tensor<1024xi32>
  %sum = arith.addi %ab, %c : tensor<1024xi32>
)" + (scans ? scan : "") + writeTile(scans ? "total" : "sum", "o", {kTile}, "i32")),
        "sm_90a", 4);
    EXPECT_NE(k.ptx().find("ld.global.v4.b32"), std::string::npos);
    for (int n : {1024, 1008, 512, 16, 0}) {
      GuardedBuffer x(4 * n), out(4 * kTile);
      for (int i = 0; i < n; ++i) x.as<int32_t>()[i] = i * i % 1009;
      k.run({slot(x.as<char>()), static_cast<uint32_t>(n), slot(out.as<char>())}, 1);
      int32_t want = 0;
      for (int i = 0; i < kTile; ++i) {
        auto at = [&](int by) { return (i + by) * (i + by) % 1009; };
        const int32_t one = (i < n ? at(0) : -1) - (i > 0 && i < n ? at(-1) : -20) + (i + 2 < n ? at(2) : -300);
        want = scans ? want + one : one;
        ASSERT_EQ(out.as<int32_t>()[i], want) << i << " of " << n << (scans ? ", summed" : "");
      }
    }
  }
}

template <class T>
void runAtomic(const std::string& kind, const std::string& type, T start, const std::vector<T>& values, T expected) {
  int n = static_cast<int>(values.size());
  // Every value meets one address; small tiles are replicated over threads, which must not show.
  std::string tile = fmt::format("tensor<{}x{}>", n, type);
  SimtKernel k(kernel(fmt::format("%x: !tile.ptr<{0}>, %o: !tile.ptr<{0}>, %old: !tile.ptr<{0}>", type),
                      readTile("v", "x", {n}, type) +
                          fmt::format("  %zero = arith.constant dense<0> : tensor<{0}xi32>\n"
                                      "  %r = tile.atomic_rmw {1} relaxed gpu %o offsets %zero : tensor<{0}xi32>, %v : "
                                      "!tile.ptr<{2}>, {3} -> {3}\n",
                                      n, kind, type, tile) +
                          writeTile("r", "old", {n}, type)));
  GuardedBuffer x(n * sizeof(T)), out(sizeof(T)), old(n * sizeof(T));
  std::copy(values.begin(), values.end(), x.as<T>());
  *out.as<T>() = start;
  k.run({slot(x.as<T>()), slot(out.as<T>()), slot(old.as<T>())}, 1);
  EXPECT_EQ(*out.as<T>(), expected) << kind << " " << type;
  if (kind == "add" && *std::min_element(values.begin(), values.end()) > 0) {
    // Exactly one update saw the start value.
    EXPECT_EQ(std::count(old.as<T>(), old.as<T>() + n, start), 1) << type;
  }
}

TEST(Atomics, EveryElementOnce) {
  std::vector<int32_t> ints(50);
  std::iota(ints.begin(), ints.end(), -20);
  int32_t sum = std::accumulate(ints.begin(), ints.end(), 1000);
  runAtomic<int32_t>("add", "i32", 1000, ints, sum);
  for (int n : {1, 3, 50, 300}) runAtomic<int32_t>("add", "i32", -4, std::vector<int32_t>(n, 2), 2 * n - 4);
  runAtomic<int32_t>("max", "i32", -1000, ints, 29);
  runAtomic<int32_t>("min", "i32", 1000, ints, -20);
  runAtomic<int32_t>("umax", "i32", 0, ints, -1);
  runAtomic<int32_t>("xor", "i32", 0, ints, std::accumulate(ints.begin(), ints.end(), 0, std::bit_xor<>()));
  std::vector<float> floats = {3.0f, -8.5f, 0.25f, -0.0f, 7.0f, -2.0f, 1.0f};
  runAtomic<float>("max", "f32", -100.0f, floats, 7.0f);
  runAtomic<float>("min", "f32", 100.0f, floats, -8.5f);
  runAtomic<float>("max", "f32", -3.0f, {-8.0f, -4.0f}, -3.0f);
  runAtomic<float>("add", "f32", 100.0f, floats, 100.75f);
  runAtomic<double>("add", "f64", 100.0, {1.0, 2.0, 4.0}, 107.0);
  runAtomic<double>("max", "f64", -9.0, {-8.0, -12.0}, -8.0);
  runAtomic<int64_t>("add", "i64", 5, {1LL << 40, 2, 3}, (1LL << 40) + 10);
  runAtomic<int8_t>("max", "i8", -100, {3, 9, -5}, 9);
  runAtomic<uint16_t>("exchange", "i16", 7, {9}, 9);
}

// Boxes at every edge of a view, added by 5 programs; small whole numbers, so that every order gives the same sums.
template <class T>
void runAccumulate(const std::string& type, const std::string& target, int64_t rows, int64_t cols, const std::string& attrs) {
  const int64_t height = 20, width = 24;
  const bool isFloat = type != "i32";
  const std::string tile = tensor({rows, cols}, type);
  SimtKernel k(kernel(fmt::format("%x: !tile.view<2x{0}> {1}", type, attrs),
                      rowMajorIndex("n", {rows, cols}) + fmt::format(R"(  %p = tile.program_id 0
  %five = arith.constant 5 : i32
  %eight = arith.constant 8 : i32
  %r = arith.subi %p, %five : i32
  %row = arith.muli %r, %five : i32
  %c = arith.subi %p, %five : i32
  %col = arith.muli %c, %eight : i32
  %m = arith.constant dense<7> : {0}
  %k = arith.remui %n, %m : {0}
  {1}
  tile.accumulate %v, %x[%row, %col : i32, i32] : {2}, !tile.view<2x{3}>
  %z = arith.constant 0 : i32
  tile.accumulate %v, %x[%z, %col : i32, i32] : {2}, !tile.view<2x{3}>
)",
                                                                     tensor({rows, cols}, "i32"),
                                                                     isFloat ? fmt::format("%v = arith.sitofp %k : {} to {}", tensor({rows, cols}, "i32"), tile)
                                                                             : "%zero = arith.constant dense<0> : " + tile + "\n  %v = arith.addi %k, %zero : " + tile,
                                                                     tile, type)),
               target, 4);
  GuardedBuffer x(sizeof(T) * height * width);
  std::vector<double> want(height * width);
  for (int64_t i = 0; i < height * width; ++i) x.as<T>()[i] = T(static_cast<float>(want[i] = static_cast<double>(i % 3)));
  const auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  k.run({slot(x.as<T>()), u(height), u(width), u(width), 1}, 9);
  for (int64_t p = 0; p < 9; ++p)
    for (int64_t from : {(p - 5) * 5, int64_t{0}})
      for (int64_t i = 0; i < rows * cols; ++i) {
        const int64_t r = from + i / cols, c = (p - 5) * 8 + i % cols;
        if (r >= 0 && r < height && c >= 0 && c < width) want[r * width + c] += static_cast<double>(i % 7);
      }
  for (int64_t i = 0; i < height * width; ++i)
    ASSERT_EQ(static_cast<double>(static_cast<float>(x.as<T>()[i])), want[i])
        << type << " " << target << " " << rows << "x" << cols << attrs << " at " << i / width << ", " << i % width;
}

TEST(Atomics, AccumulateBoxes) {
  const std::string known = "{tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, "
                            "tile.dim_multiple_of = array<i32: 1, 8>}";
  for (const char* target : {"sm_80", "sm_90a"})
    for (auto [rows, cols] : {std::pair{16, 16}, {3, 5}, {1, 64}})
      for (const std::string& attrs : {known, std::string()}) {
        runAccumulate<float>("f32", target, rows, cols, attrs);
        runAccumulate<tile::half>("f16", target, rows, cols, attrs);
        runAccumulate<tile::bfloat16>("bf16", target, rows, cols, attrs);
        runAccumulate<int32_t>("i32", target, rows, cols, attrs);
      }
}

TEST(Atomics, ScalarResultReachesEveryThread) {
  SimtKernel k(kernel("%n: !tile.ptr<i32>, %o: !tile.ptr<i32>", R"(
  %one = arith.constant 1 : i32
  %t = tile.atomic_rmw add acq_rel gpu %n, %one : !tile.ptr<i32>, i32 -> i32
  %s = tile.splat %t : i32 -> tensor<256xi32>
  %i = tile.iota : tensor<256xi32>
  %a = arith.addi %s, %i : tensor<256xi32>
  %c = arith.constant 256 : i32
  %b = arith.muli %t, %c : i32
  %p = tile.ptr_add %o, %b : !tile.ptr<i32>, i32
  tile.scatter %a, %p offsets %i : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
)"));
  GuardedBuffer n(4), out(4 * 256 * 5);
  *n.as<int32_t>() = 0;
  k.run({slot(n.as<char>()), slot(out.as<char>())}, 5);
  EXPECT_EQ(*n.as<int32_t>(), 5);
  for (int t = 0; t < 5; ++t)
    for (int i = 0; i < 256; ++i) ASSERT_EQ(out.as<int32_t>()[t * 256 + i], t + i);
}

// Strings of a dictionary: each warp looks up the places of its own rows.
TEST(Gathers, ShortRowsThatAreLookedUp) {
  SimtKernel k(kernel("%c: !tile.ptr<i32>, %f: !tile.ptr<i32>, %x: !tile.ptr<i8>, %t: !tile.ptr<i32>, %o: !tile.ptr<i8>", R"(
  %i = tile.iota : tensor<64xi32>
  %b = tile.iota : tensor<32xi32>
  %code = tile.gather %c offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %from = tile.gather %f offsets %code : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %to = tile.gather %t offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %row = tile.reshape %b : tensor<32xi32> -> tensor<1x32xi32>
  %columns = tile.broadcast %row : tensor<1x32xi32> -> tensor<64x32xi32>
  %fromColumn = tile.reshape %from : tensor<64xi32> -> tensor<64x1xi32>
  %fromRows = tile.broadcast %fromColumn : tensor<64x1xi32> -> tensor<64x32xi32>
  %toColumn = tile.reshape %to : tensor<64xi32> -> tensor<64x1xi32>
  %toRows = tile.broadcast %toColumn : tensor<64x1xi32> -> tensor<64x32xi32>
  %at = arith.addi %fromRows, %columns : tensor<64x32xi32>
  %into = arith.addi %toRows, %columns : tensor<64x32xi32>
  %v = tile.gather %x offsets %at : tensor<64x32xi32> : !tile.ptr<i8> -> tensor<64x32xi8>
  tile.scatter %v, %o offsets %into : tensor<64x32xi32> : tensor<64x32xi8>, !tile.ptr<i8>
)"));
  EXPECT_EQ(k.ptx().find("bar.sync"), std::string::npos);
  GuardedBuffer codes(64 * 4), from(16 * 4), x(16 * 7 + 32), to(64 * 4), out(64 * 32);
  for (int i = 0; i < 16 * 7 + 32; ++i) x.as<int8_t>()[i] = static_cast<int8_t>(i);
  for (int i = 0; i < 16; ++i) from.as<int32_t>()[i] = i * 7;
  for (int i = 0; i < 64; ++i) codes.as<int32_t>()[i] = i * 5 % 16, to.as<int32_t>()[i] = (i * 11 % 64) * 32;
  k.run({slot(codes.as<char>()), slot(from.as<char>()), slot(x.as<char>()), slot(to.as<char>()), slot(out.as<char>())}, 1,
        1, 1, 1);
  for (int i = 0; i < 64; ++i)
    for (int b = 0; b < 32; ++b)
      ASSERT_EQ(out.as<int8_t>()[(i * 11 % 64) * 32 + b], static_cast<int8_t>(i * 5 % 16 * 7 + b)) << i << " " << b;
}

// Reading back what other threads of the program wrote needs a barrier between; in place it must not have one.
TEST(Barriers, StoreThenLoadOfAnotherThreadsData) {
  SimtKernel k(
      kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %o: !tile.ptr<i32>", readTile("a", "x", {1024}, "i32") + R"(
  %c1 = arith.constant dense<1023> : tensor<1024xi32>
  %i = tile.iota : tensor<1024xi32>
  %back = arith.subi %c1, %i : tensor<1024xi32>
  tile.scatter %a, %o offsets %back : tensor<1024xi32> : tensor<1024xi32>, !tile.ptr<i32>
  %b = tile.gather %o offsets %i : tensor<1024xi32> : !tile.ptr<i32> -> tensor<1024xi32>
  %d = arith.addi %b, %a : tensor<1024xi32>
  tile.scatter %d, %o offsets %i : tensor<1024xi32> : tensor<1024xi32>, !tile.ptr<i32>
)"));
  GuardedBuffer x(4096), out(4096);
  std::iota(x.as<int32_t>(), x.as<int32_t>() + 1024, 0);
  for (uint32_t seed = 1; seed < 6; ++seed) {
    std::fill_n(out.as<int32_t>(), 1024, -1);
    k.run({slot(x.as<char>()), slot(out.as<char>())}, 1, 1, 1, seed);
    for (int i = 0; i < 1024; ++i) ASSERT_EQ(out.as<int32_t>()[i], 1023) << i;
  }
}

TEST(Barriers, InPlaceUpdateNeedsNone) {
  SimtKernel k(kernel("%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}", R"(
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %b = arith.addf %a, %a : tensor<1024xf32>
  tile.store %b, %x[%c0 : i32] : tensor<1024xf32>, !tile.view<1xf32>
)"));
  EXPECT_EQ(k.ptx().find("bar.sync"), std::string::npos);
}

}  // namespace
}  // namespace tile::testing
