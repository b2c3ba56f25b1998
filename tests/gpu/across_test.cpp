// across_test.cpp - reductions and scans over all kinds of shapes, axes and warp counts, executed and compared with
// plain loops. Integer sums are exact, so any lost, doubled or padded element shows.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

using Shape = std::vector<int64_t>;

std::vector<int32_t> randomInts(int64_t n) {
  std::mt19937 random(7);
  std::vector<int32_t> values(n);
  for (int32_t& v : values) v = static_cast<int32_t>(random() % 2001) - 1000;
  return values;
}

// Calls f(line start, step, length) for every line of the tile along the axis.
template <class F>
void lines(const Shape& shape, int axis, F&& f) {
  int64_t step = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) step *= shape[d];
  for (int64_t outer = 0; outer < count(shape) / (step * shape[axis]); ++outer)
    for (int64_t inner = 0; inner < step; ++inner) f(outer * step * shape[axis] + inner, step, shape[axis]);
}

std::string combiner(const std::string& op) {
  return fmt::format("{{\n  ^bb0(%p: i32, %q: i32):\n    %r = {} %p, %q : i32\n    tile.yield %r : i32\n  }}\n", op);
}

const std::vector<Shape> kShapes = {{1024},   {1000},   {7},       {1, 8192},  {64, 64},  {128, 1}, {5, 7},
                                    {80, 48}, {33, 17}, {3, 1000}, {4, 8, 16}, {2, 3, 5}, {256, 4}, {16, 1024}};

void runReduce(const Shape& shape, int axis, int warps, const std::string& op, int32_t (*combine)(int32_t, int32_t)) {
  Shape small = shape;
  small[axis] = 1;
  SimtKernel k(kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %o: !tile.ptr<i32>",
                      readTile("a", "x", shape, "i32") +
                          fmt::format("  %s = tile.reduce %a axis {} : ({}) -> {} ", axis, tensor(shape, "i32"),
                                      tensor(small, "i32")) +
                          combiner(op) + writeTile("s", "o", small, "i32")),
               "sm_90a", warps);
  auto values = randomInts(count(shape));
  GuardedBuffer x(4 * count(shape)), out(4 * count(small));
  std::copy(values.begin(), values.end(), x.as<int32_t>());
  k.run({slot(x.as<char>()), slot(out.as<char>())}, 1);
  int64_t i = 0;
  lines(shape, axis, [&](int64_t start, int64_t step, int64_t n) {
    int32_t want = values[start];
    for (int64_t j = 1; j < n; ++j) want = combine(want, values[start + j * step]);
    ASSERT_EQ(out.as<int32_t>()[i++], want) << shapeText(shape) << " axis " << axis << " warps " << warps;
  });
}

// Sums of one element of every line, at a place that is the same for all, or one that each line has of its own.
void runReduceOne(const Shape& shape, int axis, int warps, bool isOfLine) {
  Shape small = shape, along(shape.size(), 1);
  small[axis] = 1, along[axis] = shape[axis];
  const std::string all = tensor(shape, "i32"), line = tensor(along, "i32"), slice = tensor(small, "i32");
  std::string text = readTile("a", "x", shape, "i32") + readTile("own", "places", small, "i32") +
                     rowMajorIndex("i", along) + "  %c3 = arith.constant 3 : i32\n";
  text += fmt::format("  %three = tile.splat %c3 : i32 -> {0}\n  %moved = arith.addi %i, %three : {0}\n", line);
  if (isOfLine)
    text += fmt::format("  %c = tile.broadcast %moved : {1} -> {0}\n  %place = tile.broadcast %own : {2} -> {0}\n"
                        "  %is = arith.cmpi eq, %place, %c : {0}\n", all, line, slice);
  else
    text += fmt::format("  %place = tile.splat %at : i32 -> {1}\n  %few = arith.cmpi eq, %moved, %place : {1}\n"
                        "  %is = tile.broadcast %few : {2} -> {0}\n", tensor(shape, "i1"), line, tensor(along, "i1"));
  text += fmt::format("  %zero = arith.constant dense<0> : {0}\n  %one = arith.select %is, %a, %zero : {1}, {0}\n"
                      "  %s = tile.reduce %one axis {2} : ({0}) -> {3} ", all, tensor(shape, "i1"), axis, slice);
  SimtKernel k(kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %places: !tile.ptr<i32>, %at: i32, "
                      "%o: !tile.ptr<i32>",
                      text + combiner("arith.addi") + writeTile("s", "o", small, "i32")),
               "sm_90a", warps);
  auto values = randomInts(count(shape));
  GuardedBuffer x(4 * count(shape)), places(4 * count(small)), out(4 * count(small));
  std::copy(values.begin(), values.end(), x.as<int32_t>());
  const int64_t n = shape[axis];
  for (int64_t at : {int64_t{3}, n / 2 + 3, n + 2, n + 3, n + 7, int64_t{0}, int64_t{-1}}) {
    for (int64_t i = 0; i < count(small); ++i) places.as<int32_t>()[i] = static_cast<int32_t>(at + i % 5);
    k.run({slot(x.as<char>()), slot(places.as<char>()), static_cast<uint32_t>(at), slot(out.as<char>())}, 1);
    int64_t i = 0;
    lines(shape, axis, [&](int64_t start, int64_t step, int64_t) {
      const int64_t place = (isOfLine ? places.as<int32_t>()[i] : at) - 3;
      const int32_t want = place >= 0 && place < n ? values[start + place * step] : 0;
      ASSERT_EQ(out.as<int32_t>()[i++], want) << shapeText(shape) << " axis " << axis << " at " << at;
    });
  }
}

TEST(Reduce, OneElement) {
  for (const Shape& shape : {Shape{7}, {64, 64}, {5, 7}, {80, 48}, {33, 17}, {4, 8, 16}, {16, 1024}, {8, 40}})
    for (size_t axis = 0; axis < shape.size(); ++axis)
      for (int warps : {1, 4})
        for (bool isOfLine : {false, true}) runReduceOne(shape, static_cast<int>(axis), warps, isOfLine);
}

TEST(Reduce, SumsOfEveryShapeAndAxis) {
  for (const Shape& shape : kShapes)
    for (size_t axis = 0; axis < shape.size(); ++axis)
      for (int warps : {1, 4, 8})
        runReduce(shape, static_cast<int>(axis), warps, "arith.addi", [](int32_t a, int32_t b) { return a + b; });
}
TEST(Reduce, Maximum) {
  for (const Shape& shape : {Shape{7}, {5, 7}, {33, 17}, {1000}})
    for (size_t axis = 0; axis < shape.size(); ++axis)
      runReduce(shape, static_cast<int>(axis), 4, "arith.maxsi", [](int32_t a, int32_t b) { return std::max(a, b); });
}

TEST(Reduce, OtherIntegers) {
  using Combine = int32_t (*)(int32_t, int32_t);
  const std::pair<const char*, Combine> kinds[] = {
      {"arith.minsi", [](int32_t a, int32_t b) { return std::min(a, b); }},
      {"arith.minui", [](int32_t a, int32_t b) { return static_cast<uint32_t>(a) < static_cast<uint32_t>(b) ? a : b; }},
      {"arith.maxui", [](int32_t a, int32_t b) { return static_cast<uint32_t>(a) < static_cast<uint32_t>(b) ? b : a; }},
      {"arith.andi", [](int32_t a, int32_t b) { return a & b; }},
      {"arith.ori", [](int32_t a, int32_t b) { return a | b; }},
      {"arith.xori", [](int32_t a, int32_t b) { return a ^ b; }}};
  for (const auto& [op, combine] : kinds)
    for (const Shape& shape : {Shape{16}, {1024}, {33, 17}, {4, 256}})
      for (int warps : {1, 4}) runReduce(shape, static_cast<int>(shape.size()) - 1, warps, op, combine);
}

/// Whether all, and whether any, of a tile's elements are positive: where one warp, several, or a part of one lies along
/// the axis; again in every iteration, so that votes of neighbouring meetings could be mixed up.
TEST(Reduce, Votes) {
  for (const Shape& shape : {Shape{32}, {1024}, {1000}, {7}, {8, 64}, {256, 4}, {4, 128}})
    for (int warps : {1, 4, 8}) {
      const int axis = static_cast<int>(shape.size()) - 1;
      Shape small = shape;
      small[axis] = 1;
      const std::string big = tensor(shape, "i32"), bits = tensor(shape, "i1"), few = tensor(small, "i1"),
                        ints = tensor(small, "i32");
      auto vote = [&](const char* name, const char* op) {
        return fmt::format("    %{} = tile.reduce %m axis {} : ({}) -> {} {{\n    ^bb0(%p: i1, %q: i1):\n      %r = {} "
                           "%p, %q : i1\n      tile.yield %r : i1\n    }}\n",
                           name, axis, bits, few, op);
      };
      const std::string text = kernel(
          "%x: !tile.ptr<i32> {tile.align = 16 : i32}, %o: !tile.ptr<i32>",
          readTile("a", "x", shape, "i32") +
              fmt::format("  %c0 = arith.constant 0 : i32\n  %c1 = arith.constant 1 : i32\n  %c5 = arith.constant 5 : "
                          "i32\n  %z = arith.constant dense<0> : {0}\n  %four = arith.constant dense<4> : {0}\n  %s = "
                          "scf.for %i = %c0 to %c5 step %c1 iter_args(%t = %z) -> ({0}) : i32 {{\n    %v = tile.splat %i "
                          ": i32 -> {1}\n    %m = arith.cmpi sgt, %a, %v : {1}\n",
                          ints, big) +
              vote("all", "arith.andi") + vote("any", "arith.ori") +
              fmt::format("    %l = arith.extui %all : {1} to {0}\n    %n = arith.extui %any : {1} to {0}\n    %two = "
                          "arith.addi %n, %n : {0}\n    %both = arith.addi %l, %two : {0}\n    %up = arith.muli %t, "
                          "%four : {0}\n    %next = arith.addi %up, %both : {0}\n    scf.yield %next : {0}\n  }}\n",
                          ints, few) +
              writeTile("s", "o", small, "i32"));
      SimtKernel k(text, "sm_90a", warps);
      std::vector<int32_t> values(count(shape), 3);
      const int64_t width = shape[axis];
      for (int64_t row = 0; row < count(small); ++row) {
        values[row * width + (row * 5 + 2) % width] = 1;
        values[row * width + (row * 7 + 6) % width] = 5;
      }
      GuardedBuffer x(4 * count(shape)), out(4 * count(small));
      std::copy(values.begin(), values.end(), x.as<int32_t>());
      k.run({slot(x.as<char>()), slot(out.as<char>())}, 1);
      for (int64_t row = 0; row < count(small); ++row) {
        int32_t want = 0;
        for (int i = 0; i < 5; ++i) {
          auto begin = values.begin() + row * width, end = begin + width;
          want = want * 4 + std::all_of(begin, end, [=](int32_t v) { return v > i; }) +
                 2 * std::any_of(begin, end, [=](int32_t v) { return v > i; });
        }
        ASSERT_EQ(out.as<int32_t>()[row], want) << shapeText(shape) << " warps " << warps << " row " << row;
      }
    }
}

/// Every lane ends with the same bits, also where the combiner rounds differently with its operands exchanged: programs
/// branch on what is reduced.
TEST(Reduce, AllLanesAgree) {
  const Shape shape{16, 256}, small{16, 1};
  const std::string big = tensor(shape, "f32"), little = tensor(small, "f32");
  SimtKernel k(kernel("%x: !tile.ptr<f32> {tile.align = 16 : i32}, %o: !tile.ptr<f32>",
                      readTile("a", "x", shape, "f32") + fmt::format(R"(  %s = tile.reduce %a axis 1 : ({0}) -> {1} {{
  ^bb0(%p: f32, %q: f32):
    %third = arith.constant 0.333333343 : f32
    %part = arith.mulf %p, %third : f32
    %r = arith.addf %part, %q : f32
    tile.yield %r : f32
  }}
  %r = tile.broadcast %s : {1} -> {0}
)",
                                                                     big, little) +
                          writeTile("r", "o", shape, "f32")),
               "sm_90a", 4);
  const auto values = randomInts(count(shape));
  GuardedBuffer x(4 * count(shape)), out(4 * count(shape));
  std::transform(values.begin(), values.end(), x.as<float>(), [](int32_t v) { return static_cast<float>(v) * 1e-5f; });
  k.run({slot(x.as<char>()), slot(out.as<char>())}, 1);
  for (int64_t i = 0; i < count(shape); ++i)
    ASSERT_EQ(out.as<float>()[i], out.as<float>()[i / shape[1] * shape[1]]) << "row " << i / shape[1] << " column " << i;
}

TEST(Reduce, ArgmaxOfSeveralOperands) {
  for (const Shape& shape : {Shape{1, 1000}, {17, 33}, {64, 64}}) {
    Shape small = {shape[0], 1};
    std::string big = tensor(shape, "i32"), little = tensor(small, "i32");
    SimtKernel k(kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %o: !tile.ptr<i32>",
                        readTile("a", "x", shape, "i32") +
                            fmt::format(R"(  %i = tile.iota : tensor<{0}xi32>
  %row = tile.reshape %i : tensor<{0}xi32> -> tensor<1x{0}xi32>
  %index = tile.broadcast %row : tensor<1x{0}xi32> -> {1}
  %s:2 = tile.reduce %a, %index axis 1 : ({1}, {1}) -> ({2}, {2}) {{
  ^bb0(%v: i32, %vi: i32, %w: i32, %wi: i32):
    %gt = arith.cmpi sgt, %v, %w : i32
    %eq = arith.cmpi eq, %v, %w : i32
    %lower = arith.cmpi slt, %vi, %wi : i32
    %tie = arith.andi %eq, %lower : i1
    %keep = arith.ori %gt, %tie : i1
    %rv = arith.select %keep, %v, %w : i32
    %ri = arith.select %keep, %vi, %wi : i32
    tile.yield %rv, %ri : i32, i32
  }}
  %r = arith.addi %s#1, %s#1 : {2}
)",
                                        shape[1], big, little) +
                            writeTile("r", "o", small, "i32")));
    auto values = randomInts(count(shape));
    GuardedBuffer x(4 * count(shape)), out(4 * shape[0]);
    std::copy(values.begin(), values.end(), x.as<int32_t>());
    k.run({slot(x.as<char>()), slot(out.as<char>())}, 1);
    for (int64_t r = 0; r < shape[0]; ++r) {
      auto row = values.begin() + r * shape[1];
      ASSERT_EQ(out.as<int32_t>()[r], 2 * (std::max_element(row, row + shape[1]) - row))
          << shapeText(shape) << " row " << r;
    }
  }
}

void runScan(const Shape& shape, int axis, bool reverse, int warps) {
  // a, b -> 3 * a + b on pairs would not be associative; affine maps x -> m x + c compose associatively and not
  // commutatively.
  std::string t = tensor(shape, "i32");
  SimtKernel k(kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %o: !tile.ptr<i32>, %w: !tile.ptr<i32>",
                      readTile("a", "x", shape, "i32") +
                          fmt::format(R"(  %three = arith.constant dense<3> : {0}
  %m = arith.muli %a, %three : {0}
  %s:2 = tile.scan %m, %a axis {1} {2}: ({0}, {0}) -> ({0}, {0}) {{
  ^bb0(%m0: i32, %c0: i32, %m1: i32, %c1: i32):
    %mm = arith.muli %m0, %m1 : i32
    %t = arith.muli %m1, %c0 : i32
    %c = arith.addi %t, %c1 : i32
    tile.yield %mm, %c : i32, i32
  }}
  %r = arith.addi %s#0, %s#1 : {0}
)",
                                      t, axis, reverse ? "reverse " : "") +
                          writeTile("r", "o", shape, "i32")),
               "sm_90a", warps);
  auto values = randomInts(count(shape));
  GuardedBuffer x(4 * count(shape)), out(4 * count(shape));
  std::copy(values.begin(), values.end(), x.as<int32_t>());
  k.run({slot(x.as<char>()), slot(out.as<char>()), 0}, 1);
  lines(shape, axis, [&](int64_t start, int64_t step, int64_t n) {
    uint32_t m = 0, c = 0;
    for (int64_t j = 0; j < n; ++j) {
      int64_t at = start + (reverse ? n - 1 - j : j) * step;
      uint32_t v = static_cast<uint32_t>(values[at]);
      c = j == 0 ? v : 3 * v * c + v;
      m = j == 0 ? 3 * v : m * 3 * v;
      ASSERT_EQ(out.as<uint32_t>()[at], m + c)
          << shapeText(shape) << " axis " << axis << (reverse ? " reverse" : "") << " element " << j;
    }
  });
}

// Products up to every element, and of all: where threads hold no padding, the scan tells them (tile.total).
void runScanAndReduction(const Shape& shape, int axis, bool reverse, int warps) {
  Shape reduced = shape;
  reduced[axis] = 1;
  std::string t = tensor(shape, "i32"), u = tensor(reduced, "i32");
  const std::string multiply = combiner("arith.muli");
  SimtKernel k(kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %o: !tile.ptr<i32>, %w: !tile.ptr<i32>",
                      readTile("a", "x", shape, "i32") +
                          fmt::format("  %s = tile.scan %a axis {} {}: ({}) -> {} {}", axis, reverse ? "reverse " : "", t,
                                      t, multiply) +
                          fmt::format("  %r = tile.reduce %a axis {} : ({}) -> {} {}", axis, t, u, multiply) +
                          writeTile("s", "o", shape, "i32") + writeTile("r", "w", reduced, "i32")),
               "sm_90a", warps);
  auto values = randomInts(count(shape));
  for (int32_t& value : values) value |= 1;
  GuardedBuffer x(4 * count(shape)), out(4 * count(shape)), whole(4 * count(reduced));
  std::copy(values.begin(), values.end(), x.as<int32_t>());
  k.run({slot(x.as<char>()), slot(out.as<char>()), slot(whole.as<char>())}, 1);
  int64_t line = 0;
  lines(shape, axis, [&](int64_t start, int64_t step, int64_t n) {
    uint32_t product = 1;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = start + (reverse ? n - 1 - j : j) * step;
      product *= static_cast<uint32_t>(values[at]);
      ASSERT_EQ(out.as<uint32_t>()[at], product) << shapeText(shape) << " axis " << axis << " element " << j;
    }
    ASSERT_EQ(whole.as<uint32_t>()[line++], product) << shapeText(shape) << " axis " << axis << " warps " << warps;
  });
}

TEST(Scan, TellsWhatItComesTo) {
  for (const Shape& shape : kShapes)
    for (size_t axis = 0; axis < shape.size(); ++axis)
      for (int warps : {1, 4}) runScanAndReduction(shape, static_cast<int>(axis), (axis + warps) % 2 == 0, warps);
  for (int warps : {8, 16}) runScanAndReduction({4096}, 0, warps == 8, warps);
}

TEST(Scan, EveryShapeAxisAndDirection) {
  for (const Shape& shape : kShapes)
    for (size_t axis = 0; axis < shape.size(); ++axis)
      for (bool reverse : {false, true}) runScan(shape, static_cast<int>(axis), reverse, 4);
}
/// Short axes beside sizes that are no powers of two: rows lie in lanes and warps of which some have none.
TEST(Scan, OddSizes) {
  for (const Shape& shape : {Shape{4, 13, 21}, {3, 21}, {3, 5, 7}, {13, 2, 3}, {11, 67}, {7, 3, 3, 5}})
    for (size_t axis = 0; axis < shape.size(); ++axis)
      for (int warps : {1, 4, 8, 12, 24}) runScan(shape, static_cast<int>(axis), (axis + warps) % 2 == 0, warps);
}
TEST(Scan, WarpCounts) {
  for (int warps : {1, 2, 8})
    for (const Shape& shape : {Shape{1000}, {5, 7}, {64, 80}})
      runScan(shape, static_cast<int>(shape.size()) - 1, warps == 2, warps);
}

}  // namespace
}  // namespace tile::testing
