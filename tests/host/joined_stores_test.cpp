// joined_stores_test.cpp - boxes that are stored in one loop, and boxes that are read where they lie although the
// kernel overwrites them: what is in memory in the end is as if each op had run by itself.
#include "tests/host/host_kernel.h"

namespace tile::test {
namespace {

constexpr int kRows = 4, kColumns = 64, kPitch = 3 * kColumns;

/// A kernel of views %X and %Y of 2 dims; %i and %j are indices of boxes.
std::string kernelOf(const std::string& body) {
  return R"(
    func.func @k(%X: !tile.view<2 x f32>, %Y: !tile.view<2 x f32>, %i: i32, %j: i32) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c4 = arith.constant 4 : i32
)" + body +
         R"(
      return
    })";
}
std::string load(const std::string& name, const std::string& view, const std::string& at) {
  return "      %" + name + " = tile.load %" + view + "[" + at +
         " : i32, i32] : !tile.view<2 x f32> -> tensor<4x64xf32>\n";
}
std::string store(const std::string& name, const std::string& view, const std::string& at) {
  return "      tile.store %" + name + ", %" + view + "[" + at +
         " : i32, i32] : tensor<4x64xf32>, !tile.view<2 x f32>\n";
}
std::string add(const std::string& name, const std::string& a, const std::string& b) {
  return "      %" + name + " = arith.addf %" + a + ", %" + b + " : tensor<4x64xf32>\n";
}

/// A view of whole numbers, more memory than it covers around it.
struct Matrix {
  int rows, columns, step = 1;
  std::vector<float> data = smallNumbers(5 * kRows * kPitch, rows + columns);
  float* first() { return data.data() + kRows * kPitch; }
  bool has(int row, int column) const { return row >= 0 && row < rows && column >= 0 && column < columns; }
  float& at(int row, int column) { return first()[row * kPitch + column * step]; }
  std::vector<float> box(int i, int j) {
    std::vector<float> b;
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) b.push_back(has(i + r, j + c) ? at(i + r, j + c) : 0.f);
    return b;
  }
  void set(const std::vector<float>& b, int i, int j) {
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c)
        if (has(i + r, j + c)) at(i + r, j + c) = b[r * kColumns + c];
  }
};
std::vector<float> sum(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c;
  for (size_t i = 0; i < a.size(); ++i) c.push_back(a[i] + b[i]);
  return c;
}

const char* const kTargets[] = {"host", "host:x86-64", "host:x86-64-v3", "host:x86-64-v4"};

void check(const std::string& body, const std::function<void(Matrix& x, Matrix& y, int i, int j)>& expect) {
  for (const char* target : kTargets) {
    HostKernel kernel(kernelOf(body), target);
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    for (int columns : {kColumns, kColumns - 5, 2 * kColumns})
      for (int step : {1, 2})
        for (int i : {0, 2, -1})
          for (int j : {0, 3, -7}) {
            Matrix x{2 * kRows, columns, 1}, y{2 * kRows, 2 * kColumns - columns / 2, step};
            Matrix wantX = x, wantY = y;
            auto view = [](Args& args, Matrix& m) { args.view(m.first(), {m.rows, m.columns}, {kPitch, m.step}); };
            Args args;
            view(args, x), view(args, y);
            kernel.run(args.scalar(i).scalar(j));
            expect(wantX, wantY, i, j);
            EXPECT_EQ(x.data, wantX.data) << target << " " << columns << " " << step << " " << i << " " << j;
            EXPECT_EQ(y.data, wantY.data) << target << " " << columns << " " << step << " " << i << " " << j;
          }
  }
}

TEST(HostJoinedStores, TwoViewsAreUpdated) {
  check(load("x", "X", "%i, %j") + load("y", "Y", "%i, %j") + add("s", "x", "y") + add("t", "s", "x") +
            store("s", "X", "%i, %j") + store("t", "Y", "%i, %j"),
        [](Matrix& x, Matrix& y, int i, int j) {
          const auto a = x.box(i, j), b = y.box(i, j), s = sum(a, b);
          x.set(s, i, j), y.set(sum(s, a), i, j);
        });
}

TEST(HostJoinedStores, OneViewIsUpdated) {
  check(load("x", "X", "%i, %j") + add("s", "x", "x") + store("s", "X", "%i, %j"),
        [](Matrix& x, Matrix&, int i, int j) {
          const auto a = x.box(i, j);
          x.set(sum(a, a), i, j);
        });
}

TEST(HostJoinedStores, WhatLiesBesideTheBoxIsReadFirst) {
  check(load("x", "X", "%i, %j") + load("n", "X", "%i, %c0") + add("s", "x", "n") + store("s", "X", "%i, %j"),
        [](Matrix& x, Matrix&, int i, int j) { x.set(sum(x.box(i, j), x.box(i, 0)), i, j); });
}

TEST(HostJoinedStores, BoxesOfOneViewThatMeetFollowEachOther) {
  check(load("x", "X", "%i, %j") + add("s", "x", "x") + store("x", "Y", "%c0, %c0") + store("s", "Y", "%i, %j"),
        [](Matrix& x, Matrix& y, int i, int j) {
          const auto a = x.box(i, j);
          y.set(a, 0, 0), y.set(sum(a, a), i, j);
        });
}

TEST(HostJoinedStores, BoxesOfOneViewThatLieApart) {
  check(load("x", "X", "%i, %j") + add("s", "x", "x") + store("x", "Y", "%c0, %j") + store("s", "Y", "%c4, %j"),
        [](Matrix& x, Matrix& y, int i, int j) {
          const auto a = x.box(i, j);
          y.set(a, 0, j), y.set(sum(a, a), 4, j);
        });
}

TEST(HostJoinedStores, AnUpdateBesideAStoreElsewhere) {
  check(load("x", "X", "%i, %j") + add("s", "x", "x") + store("s", "X", "%i, %j") + store("x", "Y", "%j, %i"),
        [](Matrix& x, Matrix& y, int i, int j) {
          const auto a = x.box(i, j);
          x.set(sum(a, a), i, j), y.set(a, j, i);
        });
}

TEST(HostJoinedStores, ALoopUpdatesWhatItHasWritten) {
  check("      scf.for %k = %c0 to %c4 step %c1 : i32 {\n" + load("x", "X", "%i, %j") + load("y", "Y", "%i, %j") +
            add("s", "x", "y") + store("s", "X", "%i, %j") + store("x", "Y", "%i, %j") + "      }\n",
        [](Matrix& x, Matrix& y, int i, int j) {
          for (int k = 0; k < 4; ++k) {
            const auto a = x.box(i, j), b = y.box(i, j);
            x.set(sum(a, b), i, j), y.set(a, i, j);
          }
        });
}

}  // namespace
}  // namespace tile::test
