// shape_test.cpp - moving elements between threads: transposes, reshapes, cat, extract, take, broadcasts, executed.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

using Shape = std::vector<int64_t>;

// Runs `body` (which turns %a of `shape` into %r of `result`) on 0, 1, 2, ... and compares with `want`, over several
// schedules of the threads.
void expectMoves(const Shape& shape, const Shape& result, const std::string& body, const std::vector<int32_t>& want,
                 int warps = 4) {
  for (const char* element : {"i32", "i8"}) {
    bool narrow = element[1] == '8';
    SimtKernel k(kernel(fmt::format("%x: !tile.ptr<{0}> {1}, %o: !tile.ptr<{0}> {1}", element, kIn),
                        readTile("a", "x", shape, element) + fmt::format(fmt::runtime(body), fmt::arg("e", element)) +
                            writeTile("r", "o", result, element)),
                 "sm_90a", warps);
    size_t bytes = narrow ? 1 : 4;
    GuardedBuffer x(bytes * count(shape)), out(bytes * count(result));
    for (int64_t i = 0; i < count(shape); ++i) {
      if (narrow)
        x.as<int8_t>()[i] = static_cast<int8_t>(i);
      else
        x.as<int32_t>()[i] = static_cast<int32_t>(i);
    }
    for (uint32_t seed = 1; seed < 4; ++seed) {
      k.run({slot(x.as<char>()), slot(out.as<char>())}, 1, 1, 1, seed);
      for (size_t i = 0; i < want.size(); ++i) {
        int32_t got = narrow ? out.as<int8_t>()[i] : out.as<int32_t>()[i];
        ASSERT_EQ(got, narrow ? static_cast<int8_t>(want[i]) : want[i]) << shapeText(shape) << " element " << i;
      }
    }
  }
}

TEST(Shapes, Transpose) {
  for (const Shape& s : {Shape{64, 64}, {5, 7}, {128, 48}, {80, 33}, {1, 100}}) {
    std::vector<int32_t> want;
    for (int64_t j = 0; j < s[1]; ++j)
      for (int64_t i = 0; i < s[0]; ++i) want.push_back(static_cast<int32_t>(i * s[1] + j));
    expectMoves(
        s, {s[1], s[0]},
        fmt::format("  %r = tile.trans %a, [1, 0] : tensor<{0}x{1}x{{e}}> -> tensor<{1}x{0}x{{e}}>\n", s[0], s[1]),
        want);
  }
}

TEST(Shapes, Reshape) {
  for (auto [from, to] : {std::pair<Shape, Shape>{{64, 96}, {64, 2, 48}},
                          {{5, 7}, {35}},
                          {{1000}, {8, 125}},
                          {{16, 6}, {6, 16}},
                          {{4, 8, 16}, {32, 16}}}) {
    std::vector<int32_t> want(count(from));
    std::iota(want.begin(), want.end(), 0);
    expectMoves(
        from, to,
        fmt::format("  %r = tile.reshape %a : tensor<{}{{e}}> -> tensor<{}{{e}}>\n", shapeText(from), shapeText(to)),
        want);
  }
}

TEST(Shapes, ExtractAndCat) {
  for (auto [shape, half] : {std::pair<Shape, int64_t>{{64, 64}, 32}, {{5, 14}, 7}, {{16, 96}, 48}, {{8, 6}, 2}}) {
    int64_t rest = shape[1] - half;
    std::vector<int32_t> want;
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = half; j < shape[1]; ++j) want.push_back(static_cast<int32_t>(i * shape[1] + j));
      for (int64_t j = 0; j < half; ++j) want.push_back(static_cast<int32_t>(i * shape[1] + j));
    }
    expectMoves(
        shape, shape,
        fmt::format(
            "  %l = tile.extract %a [0, 0] : tensor<{0}x{1}x{{e}}> -> tensor<{0}x{2}x{{e}}>\n"
            "  %h = tile.extract %a [0, {2}] : tensor<{0}x{1}x{{e}}> -> tensor<{0}x{3}x{{e}}>\n"
            "  %r = tile.cat %h, %l axis 1 : tensor<{0}x{3}x{{e}}>, tensor<{0}x{2}x{{e}}> -> tensor<{0}x{1}x{{e}}>\n",
            shape[0], shape[1], half, rest),
        want);
  }
}

TEST(Shapes, Take) {
  std::vector<int32_t> want;
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 24; ++j) want.push_back(static_cast<int32_t>((15 - i) * 24 + j));
  expectMoves({16, 24}, {16, 24},
              "  %i = tile.iota : tensor<16xi32>\n  %c = arith.constant dense<15> : tensor<16xi32>\n  %b = arith.subi "
              "%c, %i : tensor<16xi32>\n"
              "  %col = tile.reshape %b : tensor<16xi32> -> tensor<16x1xi32>\n  %ix = tile.broadcast %col : "
              "tensor<16x1xi32> -> tensor<16x24xi32>\n"
              "  %r = tile.take %a, %ix axis 0 : tensor<16x24x{e}>, tensor<16x24xi32> -> tensor<16x24x{e}>\n",
              want);
}

// 2, 3, .. 8 of i % 10 are counted; small tiles have elements that several threads hold.
TEST(Shapes, CountsOfValues) {
  for (const Shape& shape : {Shape{200}, {7}, {1000}, {5, 70}})
    for (int warps : {1, 4, 8}) {
      const std::string type = tensor(shape, "i32"), counts = tensor({7}, "i32");
      SimtKernel k(kernel(fmt::format("%x: !tile.ptr<i32> {0}, %o: !tile.ptr<i32> {0}", kIn),
                          readTile("a", "x", shape, "i32") +
                              fmt::format("  %ten = arith.constant dense<10> : {0}\n  %two = arith.constant dense<2> : {0}\n"
                                          "  %m = arith.remui %a, %ten : {0}\n  %i = arith.subi %m, %two : {0}\n"
                                          "  %r = tile.histogram %i : {0} -> {1}\n",
                                          type, counts) +
                              writeTile("r", "o", {7}, "i32")),
                   warps == 4 ? "sm_80" : "sm_90a", warps);
      GuardedBuffer x(4 * static_cast<size_t>(count(shape))), out(4 * 7);
      std::vector<int32_t> want(7);
      for (int i = 0; i < count(shape); ++i) {
        x.as<int32_t>()[i] = i;
        if (i % 10 >= 2 && i % 10 < 9) ++want[static_cast<size_t>(i % 10 - 2)];
      }
      for (uint32_t seed = 1; seed < 4; ++seed) {
        k.run({slot(x.as<char>()), slot(out.as<char>())}, 1, 1, 1, seed);
        EXPECT_EQ(std::vector<int32_t>(out.as<int32_t>(), out.as<int32_t>() + 7), want) << shapeText(shape) << " " << warps;
      }
    }
}

// Indices known while compiling: inside threads, inside warps, between warps, all the same, past the end.
TEST(Shapes, TakeKnown) {
  auto check = [](int64_t n, int warps, const std::string& op, int64_t constant, auto index) {
    std::vector<int32_t> want;
    for (int64_t i = 0; i < 2 * n; ++i) {
      const auto at = static_cast<uint32_t>(index(i % n));
      want.push_back(static_cast<int32_t>(i / n * n + std::min<int64_t>(at, n - 1)));
    }
    expectMoves({2, n}, {2, n},
                fmt::format("  %i = tile.iota : tensor<{0}xi32>\n  %c = arith.constant dense<{2}> : tensor<{0}xi32>\n"
                            "  %j = arith.{1} %i, %c : tensor<{0}xi32>\n"
                            "  %row = tile.reshape %j : tensor<{0}xi32> -> tensor<1x{0}xi32>\n"
                            "  %ix = tile.broadcast %row : tensor<1x{0}xi32> -> tensor<2x{0}xi32>\n"
                            "  %r = tile.take %a, %ix axis 1 : tensor<2x{0}x{{e}}>, tensor<2x{0}xi32> -> tensor<2x{0}x{{e}}>\n",
                            n, op, constant),
                want, warps);
  };
  for (int64_t flip : {0, 1, 2, 5, 16, 31, 64, 128, 255})
    for (int warps : {1, 2, 4}) check(256, warps, "xori", flip, [&](int64_t i) { return i ^ flip; });
  check(60, 2, "xori", 1, [](int64_t i) { return i ^ 1; });
  check(64, 1, "addi", 1, [](int64_t i) { return i + 1; });
  check(64, 1, "addi", -3, [](int64_t i) { return i - 3; });
  check(64, 2, "andi", 48, [](int64_t i) { return i & 48; });
  check(100, 4, "muli", 0, [](int64_t) { return 0; });
}

// Halves and pairs that lie in lanes: the source turns by shuffles, for both boxes.
TEST(Shapes, BoxesAcrossLanes) {
  for (const Shape& s : {Shape{4, 2, 128}, {4, 64, 2}, {8, 4, 16}, {2, 32, 4}, {1, 2, 32}, {4, 2, 24}}) {
    const int64_t axis = s[1] < s[2] ? 1 : 2, parts = s[axis];
    Shape part = s;
    part[axis] = 1;
    std::vector<int32_t> want;
    for (int64_t i = 0; i < count(s); ++i) {
      const Shape at{i / (s[1] * s[2]), i / s[2] % s[1], i % s[2]};
      Shape from = at;
      from[axis] = parts - 1 - at[axis];
      want.push_back(static_cast<int32_t>((from[0] * s[1] + from[1]) * s[2] + from[2]));
    }
    std::string body, names, types;
    for (int64_t i = 0; i < parts; ++i) {
      body += fmt::format("  %p{0} = tile.extract %a [0, {1}, {2}] : tensor<{3}{{e}}> -> tensor<{4}{{e}}>\n", i,
                          axis == 1 ? i : 0, axis == 2 ? i : 0, shapeText(s), shapeText(part));
      names = fmt::format("%p{}{}", i, i ? ", " + names : "");
      types += fmt::format("{}tensor<{}{{e}}>", i ? ", " : "", shapeText(part));
    }
    expectMoves(s, s, body + fmt::format("  %r = tile.cat {} axis {} : {} -> tensor<{}{{e}}>\n", names, axis, types, shapeText(s)), want);
  }
}

// Tiles moved along an axis, and what fills the place they left: a constant, a line of the tile, what was pushed out.
TEST(Shapes, Shifted) {
  for (const Shape& s : {Shape{16, 64}, {5, 14}, {4, 3, 16}, {128}})
    for (size_t axis = 0; axis < s.size(); ++axis)
      for (int64_t by : {1, 2})
        for (const char* filling : {"constant", "line", "wrapped"}) {
          if (by > 1 && filling[0] == 'l') continue;
          int64_t inner = 1;
          for (size_t d = axis + 1; d < s.size(); ++d) inner *= s[d];
          std::vector<int32_t> want;
          for (int64_t i = 0; i < count(s); ++i) {
            const int64_t at = i / inner % s[axis];
            const int64_t from = at >= by ? -by : filling[0] == 'w' ? s[axis] - by : -at;
            want.push_back(at < by && filling[0] == 'c' ? 7 : static_cast<int32_t>(i + from * inner));
          }
          Shape rest = s, edge = s, zero(s.size(), 0), end = zero;
          rest[axis] -= by, edge[axis] = by, end[axis] = s[axis] - by;
          auto offsets = [](const Shape& o) { return fmt::format("[{}]", fmt::join(o, ", ")); };
          std::string body =
              fmt::format("  %k = tile.extract %a {} : tensor<{}{{e}}> -> tensor<{}{{e}}>\n", offsets(zero), shapeText(s),
                          shapeText(rest));
          if (filling[0] == 'c')
            body += fmt::format("  %f = arith.constant dense<7> : tensor<{}{{e}}>\n", shapeText(edge));
          else
            body += fmt::format("  %f = tile.extract %a {} : tensor<{}{{e}}> -> tensor<{}{{e}}>\n",
                                offsets(filling[0] == 'l' ? zero : end), shapeText(s), shapeText(edge));
          body += fmt::format("  %r = tile.cat %f, %k axis {} : tensor<{}{{e}}>, tensor<{}{{e}}> -> tensor<{}{{e}}>\n",
                              axis, shapeText(edge), shapeText(rest), shapeText(s));
          expectMoves(s, s, body, want, by == 1 ? 4 : 1);
        }
}

// Steps of an elimination: an element, the column and the row of it, met with the tile that they come from.
TEST(Shapes, LinesOfTheTileMeetIt) {
  for (const Shape& s : {Shape{64, 64}, {48, 48}, {40, 24}, {32, 128}})
    for (int warps : {1, 2, 4}) {
      std::vector<int32_t> want(count(s));
      std::iota(want.begin(), want.end(), 0);
      std::string body;
      for (int k : {5, 6, 7}) {
        const std::vector<int32_t> last = want;
        for (int64_t i = 0; i < count(s); ++i)
          want[i] += last[i / s[1] * s[1] + k] + 2 * last[k * s[1] + i % s[1]] + last[k * s[1] + k];
        const std::string all = fmt::format("tensor<{}x{}x{{e}}>", s[0], s[1]),
                          column = fmt::format("tensor<{}x1x{{e}}>", s[0]), row = fmt::format("tensor<1x{}x{{e}}>", s[1]),
                          a = k == 5 ? "a" : fmt::format("a{}", k), next = k == 7 ? "r" : fmt::format("a{}", k + 1);
        body += fmt::format(
            "  %d{0} = tile.extract %{1} [{0}, {0}] : {3} -> tensor<1x1x{{e}}>\n"
            "  %c{0} = tile.extract %{1} [0, {0}] : {3} -> {4}\n  %w{0} = tile.extract %{1} [{0}, 0] : {3} -> {5}\n"
            "  %db{0} = tile.broadcast %d{0} : tensor<1x1x{{e}}> -> {4}\n  %cd{0} = arith.addi %c{0}, %db{0} : {4}\n"
            "  %ww{0} = arith.addi %w{0}, %w{0} : {5}\n  %wb{0} = tile.broadcast %ww{0} : {5} -> {3}\n"
            "  %cb{0} = tile.broadcast %cd{0} : {4} -> {3}\n  %s{0} = arith.addi %{1}, %wb{0} : {3}\n"
            "  %{2} = arith.addi %s{0}, %cb{0} : {3}\n",
            k, a, next, all, column, row);
      }
      expectMoves(s, s, body, want, warps);
    }
}

TEST(Shapes, RowAndColumnVectorsMeet) {
  // r[i][j] = a[i] + a[j]: one vector along each dim of the same tile.
  std::vector<int32_t> want;
  for (int i = 0; i < 48; ++i)
    for (int j = 0; j < 48; ++j) want.push_back(i + j);
  expectMoves({48}, {48, 48},
              "  %c = tile.reshape %a : tensor<48x{e}> -> tensor<48x1x{e}>\n  %w = tile.reshape %a : tensor<48x{e}> -> "
              "tensor<1x48x{e}>\n"
              "  %cb = tile.broadcast %c : tensor<48x1x{e}> -> tensor<48x48x{e}>\n  %wb = tile.broadcast %w : "
              "tensor<1x48x{e}> -> tensor<48x48x{e}>\n"
              "  %r = arith.addi %cb, %wb : tensor<48x48x{e}>\n",
              want);
}

TEST(Shapes, ConstantTable) {
  std::vector<int32_t> want = {15, 27, 3, 41, 8};
  expectMoves(
      {5}, {5},
      "  %t = arith.constant dense<[15, 26, 1, 38, 4]> : tensor<5x{e}>\n  %r = arith.addi %a, %t : tensor<5x{e}>\n",
      want);
}

/// Rows of few elements, all of which lie in one warp: turned, read by steps, or all the same.
TEST(Take, WithinShortRows) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{8, 4}, {64, 4}, {3, 16}})
    for (int times : {0, 1, 3})
      for (int plus : {1, 3})
        for (int warps : {1, 4}) {
          const int64_t n = shape[1];
          std::vector<int32_t> want;
          for (int64_t i = 0; i < shape[0] * n; ++i)
            want.push_back(static_cast<int32_t>(i / n * n + (i % n * times + plus) % n));
          const std::string indices = fmt::format(
              "  %i = tile.iota : {0}\n  %by = arith.constant dense<{1}> : {0}\n  %plus = arith.constant dense<{2}> : {0}\n"
              "  %n = arith.constant dense<{3}> : {0}\n  %j = arith.muli %i, %by : {0}\n  %k = arith.addi %j, %plus : {0}\n"
              "  %l = arith.remui %k, %n : {0}\n  %row = tile.reshape %l : {0} -> tensor<1x{3}xi32>\n",
              tensor({n}, "i32"), times, plus, n);
          expectMoves(shape, shape,
                      indices + fmt::format("  %ix = tile.broadcast %row : tensor<1x{0}xi32> -> {1}\n"
                                            "  %r = tile.take %a, %ix axis 1 : {2}, {1} -> {2}\n",
                                            n, tensor(shape, "i32"), tensor(shape, "{e}")),
                      want, warps);
        }
}

/// Tiles moved along by a few elements, their ends repeated: lanes hand elements to their neighbours.
TEST(Take, Shifted) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1024}, {128}, {300}, {4, 128}})
    for (int by : {-5, -2, -1, 1, 2, 33})
      for (int warps : {1, 4}) {
        const int64_t width = shape.back();
        const std::string ints = tensor(shape, "i32"), flat = tensor({width}, "i32");
        std::string indices = fmt::format("  %i = tile.iota : {0}\n  %by = arith.constant dense<{1}> : {0}\n  %low = "
                                          "arith.constant dense<0> : {0}\n  %high = arith.constant dense<{2}> : {0}\n  "
                                          "%j = arith.addi %i, %by : {0}\n  %k = arith.maxsi %j, %low : {0}\n  %row = "
                                          "arith.minsi %k, %high : {0}\n",
                                          flat, by, width - 1);
        if (shape.size() == 2)
          indices += fmt::format("  %one = tile.reshape %row : {0} -> tensor<1x{1}xi32>\n  %ix = tile.broadcast %one : "
                                 "tensor<1x{1}xi32> -> {2}\n",
                                 flat, width, ints);
        SimtKernel k(kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %o: !tile.ptr<i32>",
                            readTile("a", "x", shape, "i32") + indices +
                                fmt::format("  %r = tile.take %a, {3} axis {0} : {1}, {1} -> {1}\n", shape.size() - 1, ints,
                                            width, shape.size() == 2 ? "%ix" : "%row") +
                                writeTile("r", "o", shape, "i32")),
                     "sm_90a", warps);
        GuardedBuffer x(4 * count(shape)), out(4 * count(shape));
        for (int64_t i = 0; i < count(shape); ++i) x.as<int32_t>()[i] = static_cast<int32_t>(i * 7 + 3);
        k.run({slot(x.as<char>()), slot(out.as<char>())}, 1);
        for (int64_t i = 0; i < count(shape); ++i) {
          const int64_t from = i / width * width + std::clamp<int64_t>(i % width + by, 0, width - 1);
          ASSERT_EQ(out.as<int32_t>()[i], from * 7 + 3) << shapeText(shape) << " by " << by << " warps " << warps;
        }
      }
}

/// Integers of few values become floats of 16 bits by their digits: all that a mask and an offset leave, also negative
/// ones and the widest that have room.
TEST(Casts, OfFewValues) {
  for (auto [element, low, mask] : {std::tuple{"f16", -15, 15}, {"f16", -1024, 1023}, {"f16", 1025, 1023},
                                    {"bf16", -128, 127}, {"bf16", 7, 15}, {"f16", -8, 15}})
    for (const char* source : {"i32", "i16"}) {
      const std::vector<int64_t> shape{1024};
      const std::string from = tensor(shape, source), wide = tensor(shape, "f32"), to = tensor(shape, element);
      SimtKernel k(kernel("%x: !tile.ptr<" + std::string(source) + "> {tile.align = 16 : i32}, %o: !tile.ptr<f32>",
                          readTile("a", "x", shape, source) +
                              fmt::format("  %m = arith.constant dense<{3}> : {0}\n  %l = arith.constant dense<{4}> : "
                                          "{0}\n  %b = arith.andi %a, %m : {0}\n  %c = arith.addi %b, %l : {0}\n  %d = "
                                          "arith.sitofp %c : {0} to {1}\n  %e = arith.extf %d : {1} to {2}\n",
                                          from, to, wide, mask, low) +
                              writeTile("e", "o", shape, "f32")),
                   "sm_90a", 4);
      GuardedBuffer x((source[1] == '3' ? 4 : 2) * 1024), out(4 * 1024);
      for (int i = 0; i < 1024; ++i) {
        if (source[1] == '3')
          x.as<int32_t>()[i] = i * 37 - 70000;
        else
          x.as<int16_t>()[i] = static_cast<int16_t>(i * 37 - 20000);
      }
      k.run({slot(x.as<char>()), slot(out.as<char>())}, 1);
      for (int i = 0; i < 1024; ++i) {
        const int value = source[1] == '3' ? i * 37 - 70000 : static_cast<int16_t>(i * 37 - 20000);
        ASSERT_EQ(out.as<float>()[i], static_cast<float>((value & mask) + low)) << element << " of " << source << " " << i;
      }
    }
}

}  // namespace
}  // namespace tile::testing
