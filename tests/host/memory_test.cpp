// memory_test.cpp - views with every kind of box (inside, clipped, outside, strided, column-major, leading dims),
// pointers with masks. Buffers lie between guard elements: a write outside the view shows.
#include <functional>
#include <numeric>

#include "host_kernel.h"

namespace tile::test::memory_test {
namespace {

std::string str(int64_t n) { return std::to_string(n); }

/// A kernel that copies one box: load at (%i, %j) with `pad`, store at (%p, %q).
std::string copyKernel(int64_t m, int64_t n, const std::string& element, const std::string& pad,
                       const std::string& attrs = "") {
  std::string v = "!tile.view<2 x " + element + ">", t = "tensor<" + str(m) + "x" + str(n) + "x" + element + ">";
  return "func.func @copy(%A: " + v + attrs + ", %O: " + v + attrs +
         ", %i: i64, %j: i32, %p: i64, %q: i32) attributes {tile.kernel} {\n" +
         "  %a = tile.load %A[%i, %j : i64, i32]" + pad + " : " + v + " -> " + t +
         "\n  tile.store %a, %O[%p, %q : i64, i32] : " + t + ", " + v + "\n  return\n}";
}

struct Layout {
  const char* name;
  int64_t rowStride, columnStride;  ///< for a 20 x 30 view
};
constexpr Layout kLayouts[] = {{"row-major", 30, 1},      {"padded rows", 37, 1}, {"column-major", 1, 20},
                               {"padded columns", 1, 27}, {"every other", 75, 2}, {"backwards", -30, -1},
                               {"repeated row", 0, 1}};

TEST(HostViews, BoxesInsideAcrossAndOutsideForEveryLayout) {
  const int64_t R = 20, C = 30;
  for (auto [m, n] : {std::pair<int64_t, int64_t>{8, 16}, {16, 16}, {5, 7}, {1, 33}, {40, 1}, {32, 48}}) {
    HostKernel kernel(copyKernel(m, n, "i32", " pad -7.0"));
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    for (const Layout& layout : kLayouts) {
      std::vector<int32_t> in(4000);
      std::iota(in.begin(), in.end(), 1);
      for (auto [i, j] : {std::pair<int64_t, int32_t>{0, 0},
                          {3, 5},
                          {R - m, static_cast<int32_t>(C - n)},
                          {-2, -3},
                          {R - 2, C - 3},
                          {R, 0},
                          {0, C},
                          {-m, 0},
                          {1, -static_cast<int32_t>(n)},
                          {INT64_MAX, 0},
                          {INT64_MIN, INT32_MIN}}) {
        std::vector<int32_t> out(m * n + 2, -1);
        const int32_t* origin = in.data() + (layout.rowStride < 0 || layout.columnStride < 0 ? 2000 : 100);
        kernel.run(Args()
                       .view(origin, {R, C}, {layout.rowStride, layout.columnStride})
                       .view(out.data() + 1, {m, n})
                       .scalar(i)
                       .scalar(j)
                       .scalar(int64_t{0})
                       .scalar(0));
        for (int64_t r = 0; r < m; ++r)
          for (int64_t c = 0; c < n; ++c) {
            // i may be near the ends of i64: r is added only where it cannot overflow.
            bool inside = i > -1000 && i < 1000 && i + r >= 0 && i + r < R && j > -1000 && j + c >= 0 && j + c < C;
            int32_t want = inside ? origin[(i + r) * layout.rowStride + (j + c) * layout.columnStride] : -7;
            ASSERT_EQ(out[1 + r * n + c], want)
                << m << "x" << n << " " << layout.name << " at " << i << "," << j << " element " << r << "," << c;
          }
        ASSERT_EQ(out[0], -1);
        ASSERT_EQ(out[m * n + 1], -1);
      }
    }
  }
}

TEST(HostViews, StoresAreClippedForEveryLayout) {
  const int64_t R = 20, C = 30;
  for (auto [m, n] : {std::pair<int64_t, int64_t>{8, 16}, {16, 16}, {5, 7}, {1, 33}, {40, 1}}) {
    HostKernel kernel(copyKernel(m, n, "i32", ""));
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    std::vector<int32_t> in(m * n);
    std::iota(in.begin(), in.end(), 1);
    for (const Layout& layout : kLayouts) {
      if (layout.rowStride <= 0) continue;
      for (auto [p, q] : {std::pair<int64_t, int32_t>{0, 0},
                          {3, 5},
                          {-2, -3},
                          {R - 2, C - 3},
                          {R, 0},
                          {INT64_MAX, 0},
                          {INT64_MIN, INT32_MIN}}) {
        std::vector<int32_t> out(4000, -1), want(4000, -1);
        kernel.run(Args()
                       .view(in.data(), {m, n})
                       .view(out.data() + 100, {R, C}, {layout.rowStride, layout.columnStride})
                       .scalar(int64_t{0})
                       .scalar(0)
                       .scalar(p)
                       .scalar(q));
        for (int64_t r = 0; r < m; ++r)
          for (int64_t c = 0; c < n; ++c)
            if (p > -1000 && p < 1000 && p + r >= 0 && p + r < R && q > -1000 && q + c >= 0 && q + c < C)
              want[100 + (p + r) * layout.rowStride + (q + c) * layout.columnStride] = in[r * n + c];
        ASSERT_EQ(out, want) << m << "x" << n << " " << layout.name << " at " << p << "," << q;
      }
    }
  }
}

TEST(HostViews, KnownUnitStrideAndEveryElementSize) {
  for (auto [element, bytes] : {std::pair<const char*, int>{"i8", 1},
                                {"f16", 2},
                                {"bf16", 2},
                                {"f32", 4},
                                {"f64", 8},
                                {"i64", 8},
                                {"f8E4M3FN", 1},
                                {"i1", 1}}) {
    HostKernel kernel(copyKernel(6, 40, element, "", " {tile.unit_stride = 1 : i32}"));
    ASSERT_TRUE(kernel.ok()) << element << kernel.error;
    std::vector<uint8_t> in(10 * 50 * bytes), out(6 * 40 * bytes, 99);
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = std::string(element) == "i1" ? i % 3 == 0 : static_cast<uint8_t>(i * 7);
    kernel.run(Args()
                   .view(in.data(), {10, 50})
                   .view(out.data(), {6, 40})
                   .scalar(int64_t{5})
                   .scalar(20)
                   .scalar(int64_t{0})
                   .scalar(0));
    for (int64_t r = 0; r < 6; ++r)
      for (int64_t c = 0; c < 40; ++c)
        for (int b = 0; b < bytes; ++b) {
          bool inside = r + 5 < 10 && c + 20 < 50;
          ASSERT_EQ(out[(r * 40 + c) * bytes + b], inside ? in[((r + 5) * 50 + c + 20) * bytes + b] : 0) << element;
        }
  }
}

TEST(HostViews, LeadingDimsSelectAndBoundTheBox) {
  HostKernel kernel(R"(
    func.func @k(%A: !tile.view<3 x f32>, %O: !tile.view<1 x f32>, %h: i32, %i: i32) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %a = tile.load %A[%h, %i, %c0 : i32, i32, i32] : !tile.view<3 x f32> -> tensor<8xf32>
      %s = tile.load %A[%h, %i, %i : i32, i32, i32] pad 5.0 : !tile.view<3 x f32> -> f32
      %sb = tile.splat %s : f32 -> tensor<8xf32>
      %r = arith.addf %a, %sb : tensor<8xf32>
      tile.store %r, %O[%c0 : i32] : tensor<8xf32>, !tile.view<1 x f32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::vector<float> a(2 * 3 * 6);
  std::iota(a.begin(), a.end(), 1.0f);
  for (int h : {0, 1, 2, -1})
    for (int i : {0, 2, 3, -1}) {
      std::vector<float> out(8, -1);
      kernel.run(Args().view(a.data(), {2, 3, 6}).view(out.data(), {8}).scalar(h).scalar(i));
      bool inside = h >= 0 && h < 2 && i >= 0 && i < 3;
      float s = inside ? a[(h * 3 + i) * 6 + i] : 5.0f;
      for (int j = 0; j < 8; ++j)
        ASSERT_EQ(out[j], (inside && j < 6 ? a[(h * 3 + i) * 6 + j] : 0.0f) + s) << h << "," << i << "," << j;
    }
}

TEST(HostViews, EmptyViewIsNeverTouched) {
  HostKernel kernel(copyKernel(4, 16, "f32", " pad 2.0"));
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::vector<float> out(64, -1);
  kernel.run(Args()
                 .view(static_cast<float*>(nullptr), {0, 16})
                 .view(out.data(), {4, 16})
                 .scalar(int64_t{0})
                 .scalar(0)
                 .scalar(int64_t{0})
                 .scalar(0));
  for (float x : out) EXPECT_EQ(x, 2.0f);
  kernel.run(Args()
                 .view(out.data(), {4, 16})
                 .view(static_cast<float*>(nullptr), {4, 0})
                 .scalar(int64_t{0})
                 .scalar(0)
                 .scalar(int64_t{0})
                 .scalar(0));
}

TEST(HostViews, MakeViewFromPointerAndTableOfPointers) {
  HostKernel kernel(R"(
    func.func @k(%table: !tile.ptr<i64>, %n: i64, %O: !tile.view<1 x f32>) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i64
      %one = arith.constant 1 : i32
      %slot = tile.ptr_add %table, %one : !tile.ptr<i64>, i32
      %address = tile.gather %slot : !tile.ptr<i64> -> i64
      %p = tile.int_to_ptr %address : !tile.ptr<f32>
      %v = tile.make_view %p, dims(%n) , strides(%c1) : !tile.ptr<f32> -> !tile.view<1 x f32>
      %a = tile.load %v[%c0 : i32] pad -1.0 : !tile.view<1 x f32> -> tensor<16xf32>
      tile.store %a, %O[%c0 : i32] : tensor<16xf32>, !tile.view<1 x f32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  auto a = smallNumbers(11);
  std::vector<int64_t> table{0, static_cast<int64_t>(reinterpret_cast<uintptr_t>(a.data()))};
  std::vector<float> out(16);
  kernel.run(Args().pointer(table.data()).scalar(int64_t{11}).view(out.data(), {16}));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(out[i], i < 11 ? a[i] : -1.0f);
}

/// The LLVM IR of a kernel.
std::string llvmOf(const std::string& text) {
  std::string found;
  ir::StageSink sink{[](const std::string& stage) { return stage == "llvm"; },
                     [&](const std::string&, const std::string& t) { found = t; }};
  ir::CompileOptions options;
  options.stages = &sink;
  auto compiled = ir::compileText(text, "test.mlir", *ir::lookupTarget("host"), options);
  EXPECT_TRUE(compiled.ok());
  return found;
}

// ---- where tiles are read and written

/// O = X + sums of X's rows: the tile is read twice.
TEST(HostViews, BoxesThatLieLikeTilesAreReadWhereTheyAre) {
  const char* text = R"(
    func.func @k(%X: !tile.view<2xf32>, %O: !tile.view<2xf32>, %i: i32) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %x = tile.load %X[%i, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<8x48xf32>
      %s = tile.reduce %x axis 1 : (tensor<8x48xf32>) -> tensor<8x1xf32> {
      ^bb0(%a: f32, %b: f32):
        %z = arith.addf %a, %b : f32
        tile.yield %z : f32
      }
      %sb = tile.broadcast %s : tensor<8x1xf32> -> tensor<8x48xf32>
      %r = arith.addf %x, %sb : tensor<8x48xf32>
      tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<8x48xf32>, !tile.view<2xf32>
      return
    })";
  const std::string ir = llvmOf(text);
  EXPECT_NE(ir.find("select i1"), std::string::npos);
  HostKernel kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  auto a = smallNumbers(40 * 60);
  struct Layout {
    std::vector<int64_t> shape, strides;
  };
  // Dense rows; rows with gaps; columns; fewer columns than the tile.
  const Layout layouts[] = {{{20, 48}, {48, 1}}, {{20, 48}, {60, 1}}, {{20, 48}, {1, 40}}, {{20, 40}, {48, 1}}};
  for (const Layout& layout : layouts)
    for (int first : {0, 5, 12, 15, -3, 30}) {
      std::vector<float> out(8 * 48, -1);
      kernel.run(Args().view(a.data(), layout.shape, layout.strides).view(out.data(), {8, 48}).scalar(first));
      for (int i = 0; i < 8; ++i) {
        auto at = [&](int j) {
          const int row = first + i;
          const bool inside = row >= 0 && row < layout.shape[0] && j < layout.shape[1];
          return inside ? a[row * layout.strides[0] + j * layout.strides[1]] : 0.0f;
        };
        float sum = 0;
        for (int j = 0; j < 48; ++j) sum += at(j);
        for (int j = 0; j < 48; ++j) ASSERT_EQ(out[i * 48 + j], at(j) + sum) << first << " " << i << " " << j;
      }
    }
}

// What is read once, row by row, may have rows that lie apart; what is read by columns, or again, may not.
TEST(HostViews, MatricesReadOnceAreReadWhereTheirRowsLie) {
  auto text = [](int axis) {
    const std::string sums = axis == 0 ? "tensor<1x48xf32>" : "tensor<8x1xf32>";
    return R"(
    func.func @k(%X: !tile.view<2xf32>, %O: !tile.view<2xf32>, %i: i32) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %x = tile.load %X[%i, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<8x48xf32>
      %y = tile.load %X[%i, %c1 : i32, i32] : !tile.view<2xf32> -> tensor<8x48xf32>
      %d = arith.subf %x, %y : tensor<8x48xf32>
      %q = arith.mulf %d, %d : tensor<8x48xf32>
      %s = tile.reduce %q axis )" +
           std::to_string(axis) + " : (tensor<8x48xf32>) -> " + sums + R"( {
      ^bb0(%a: f32, %b: f32):
        %z = arith.addf %a, %b : f32
        tile.yield %z : f32
      }
      tile.store %s, %O[%c0, %c0 : i32, i32] : )" +
           sums + R"(, !tile.view<2xf32>
      return
    })";
  };
  struct Layout {
    std::vector<int64_t> shape, strides;
  };
  // Dense rows; rows with gaps; columns; fewer columns than the tile.
  const Layout layouts[] = {{{20, 49}, {49, 1}}, {{20, 49}, {60, 1}}, {{20, 49}, {1, 40}}, {{20, 40}, {48, 1}}};
  const auto a = smallNumbers(40 * 60);
  for (int axis : {0, 1})
    for (const char* target : {"host", "host:x86-64"}) {
      HostKernel kernel(text(axis), target);
      ASSERT_TRUE(kernel.ok()) << kernel.error;
      for (const Layout& layout : layouts)
        for (int first : {0, 5, 12, 15, -3, 30}) {
          const int64_t sums = axis == 0 ? 48 : 8;
          std::vector<float> out(sums, -1), want(sums, 0);
          kernel.run(Args()
                         .view(a.data(), layout.shape, layout.strides)
                         .view(out.data(), axis == 0 ? std::vector<int64_t>{1, 48} : std::vector<int64_t>{8, 1})
                         .scalar(first));
          for (int i = 0; i < 8; ++i)
            for (int j = 0; j < 48; ++j) {
              auto at = [&](int column) {
                const int row = first + i;
                const bool inside = row >= 0 && row < layout.shape[0] && column < layout.shape[1];
                return inside ? a[row * layout.strides[0] + column * layout.strides[1]] : 0.0f;
              };
              want[axis == 0 ? j : i] += (at(j) - at(j + 1)) * (at(j) - at(j + 1));
            }
          ASSERT_EQ(out, want) << target << " axis " << axis << " strides " << layout.strides[0] << " from " << first;
        }
    }
}

TEST(HostViews, ATileOfAViewThatIsWrittenIsACopy) {
  // X[1] = X[0] and X[0] = 2 X[1]: the loads are of what was there before either store.
  const char* text = R"(
    func.func @k(%X: !tile.view<2xf32>) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %x = tile.load %X[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<1x64xf32>
      %y = tile.load %X[%c1, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<1x64xf32>
      %d = arith.addf %y, %y : tensor<1x64xf32>
      tile.store %x, %X[%c1, %c0 : i32, i32] : tensor<1x64xf32>, !tile.view<2xf32>
      tile.store %d, %X[%c0, %c0 : i32, i32] : tensor<1x64xf32>, !tile.view<2xf32>
      return
    })";
  HostKernel kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  auto before = smallNumbers(128), now = before;
  kernel.run(Args().view(now.data(), {2, 64}));
  for (int j = 0; j < 64; ++j) {
    ASSERT_EQ(now[j], 2 * before[64 + j]);
    ASSERT_EQ(now[64 + j], before[j]);
  }
}

// Outputs of 40 MB are stored around the caches where rows begin on whole vectors; the numbers are the same.
TEST(HostViews, LargeOutputsAreStoredAroundTheCaches) {
  auto text = [](const char* more) {
    return std::string(R"(
    func.func @k(%X: !tile.view<2xf32>, %O: !tile.view<2xf32>, %p: !tile.ptr<i32>) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %row = tile.program_id 0
      %x = tile.load %X[%row, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<1x100xf32>
      %d = arith.addf %x, %x : tensor<1x100xf32>
      tile.store %d, %O[%row, %c0 : i32, i32] : tensor<1x100xf32>, !tile.view<2xf32>
)") + more +
           "      return\n    }";
  };
  EXPECT_NE(llvmOf(text("")).find("!nontemporal"), std::string::npos);
  // Others may wait for an atomic, and then read; a relaxed one tells them nothing.
  auto beside = [&](const std::string& order) {
    return llvmOf(text(("      %one = arith.constant 1 : i32\n      %old = tile.atomic_rmw add " + order +
                        " gpu %p, %one : !tile.ptr<i32>, i32 -> i32\n")
                           .c_str()));
  };
  EXPECT_EQ(beside("acq_rel").find("!nontemporal"), std::string::npos);
  EXPECT_NE(beside("relaxed").find("!nontemporal"), std::string::npos);
  HostKernel kernel(text(""));
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  auto a = smallNumbers(4 * 100);
  int flag = 0;
  for (const int64_t gap : {28, 1, 0}) {  // rows of 128, 101 and 100 elements
    const int64_t stride = 100 + gap, rows = 100000;
    std::vector<float> out(static_cast<size_t>(rows * stride) + 16, -1);
    float* first = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(out.data()) + 63) & ~uintptr_t{63});
    kernel.run(Args().view(a.data(), {4, 100}).view(first, {rows, 100}, {stride, 1}).pointer(&flag), {4, 1, 1});
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < stride; ++j)
        ASSERT_EQ(first[i * stride + j], j < 100 ? 2 * a[i * 100 + j] : -1.0f) << gap << " " << i << " " << j;
  }
}

// ---- pointers

/// out[i] = (p + f(i))[0] where mask, else other; mask is i < n.
std::string gatherKernel(int64_t size, const std::string& element, const std::string& offsets, bool other) {
  std::string s = str(size), ti = "tensor<" + s + "xi32>", tm = "tensor<" + s + "xi1>",
              t = "tensor<" + s + "x" + element + ">";
  return "func.func @k(%p: !tile.ptr<" + element + ">, %o: !tile.ptr<" + element +
         ">, %n: i32) attributes {tile.kernel} {\n" + "  %i = tile.iota : " + ti + "\n  %nn = tile.splat %n : i32 -> " +
         ti + "\n  %m = arith.cmpi slt, %i, %nn : " + ti + "\n" + offsets +
         (other ? "  %f = arith.constant dense<3> : " + ti + "\n  %g = arith.trunci %f : " + ti + " to tensor<" + s +
                      "xi8>\n  %x = arith.sitofp %g : tensor<" + s + "xi8> to " + t + "\n"
                : "") +
         "  %a = tile.gather %p offsets %f0 : " + ti + " mask %m : " + tm + (other ? " other %x : " + t : "") +
         " : !tile.ptr<" + element + "> -> " + t + "\n  tile.scatter %a, %o offsets %i : " + ti + " : " + t +
         ", !tile.ptr<" + element + ">\n  return\n}";
}

TEST(HostPointers, GatherEveryPatternTouchesOnlyUnmaskedMemory) {
  for (int64_t size : {1, 5, 16, 33, 128}) {
    std::string ti = "tensor<" + str(size) + "xi32>";
    struct Pattern {
      const char* name;
      std::string text;
      std::function<int64_t(int64_t)> offset;
    };
    const Pattern patterns[] = {
        {"consecutive", "  %c = arith.constant dense<4> : " + ti + "\n  %f0 = arith.addi %i, %c : " + ti + "\n",
         [](int64_t i) { return i + 4; }},
        {"strided", "  %c = arith.constant dense<3> : " + ti + "\n  %f0 = arith.muli %i, %c : " + ti + "\n",
         [](int64_t i) { return 3 * i; }},
        {"same", "  %f0 = arith.constant dense<2> : " + ti + "\n", [](int64_t) { return int64_t{2}; }},
        {"backwards", "  %c = arith.constant dense<0> : " + ti + "\n  %f0 = arith.subi %c, %i : " + ti + "\n",
         [](int64_t i) { return -i; }},
        {"scrambled",
         "  %c = arith.constant dense<5> : " + ti + "\n  %f1 = arith.muli %i, %c : " + ti +
             "\n  %d = arith.constant dense<7> : " + ti + "\n  %f0 = arith.remsi %f1, %d : " + ti + "\n",
         [](int64_t i) { return 5 * i % 7; }},
    };
    for (const Pattern& pattern : patterns)
      for (bool other : {false, true})
        for (const char* target : {"host", "host:x86-64"}) {
          HostKernel kernel(gatherKernel(size, "f32", pattern.text, other), target);
          ASSERT_TRUE(kernel.ok()) << kernel.error;
          auto a = smallNumbers(1000);
          for (int n : {0, 1, static_cast<int>(size) - 1, static_cast<int>(size)}) {
            std::vector<float> out(size, -1);
            // With nothing to read, the pointer itself is not one.
            const float* base = n == 0 ? reinterpret_cast<const float*>(uintptr_t{8}) : a.data() + 500;
            kernel.run(Args().pointer(base).pointer(out.data()).scalar(n));
            for (int64_t i = 0; i < size; ++i)
              ASSERT_EQ(out[i], i < n   ? base[pattern.offset(i)]
                                : other ? 3.0f
                                        : 0.0f)
                  << pattern.name << " " << size << " " << n << " " << target;
          }
        }
  }
}

// Rows gathered through strides: where the view says that its last stride is 1, by argument or as a number that is
// known, rows move in vectors, whatever the numbers of their starts.
TEST(HostPointers, RowsOfAViewWithUnitStrideMoveInVectors) {
  const std::string kernel = R"(
    func.func @k(%v: !tile.view<2xf32> UNIT, %o: !tile.view<2xf32> {tile.unit_stride = 1 : i32})
        attributes {tile.kernel} {
      %p = tile.view_ptr %v : <2xf32> -> !tile.ptr<f32>
      %s0 = tile.view_stride %v, 0 : <2xf32>
      %s1 = tile.view_stride %v, 1 : <2xf32>
      %i = tile.iota : tensor<5xi32>
      %five = arith.constant dense<5> : tensor<5xi32>
      %three = arith.constant dense<3> : tensor<5xi32>
      %row = arith.muli %i, %three : tensor<5xi32>
      %rows = arith.remui %row, %five : tensor<5xi32>
      %r64 = arith.extsi %rows : tensor<5xi32> to tensor<5xi64>
      %t0 = tile.splat %s0 : i64 -> tensor<5xi64>
      %ro = arith.muli %r64, %t0 : tensor<5xi64>
      %j = tile.iota : tensor<64xi32>
      %j64 = arith.extsi %j : tensor<64xi32> to tensor<64xi64>
      %t1 = tile.splat %s1 : i64 -> tensor<64xi64>
      %co = arith.muli %j64, %t1 : tensor<64xi64>
      %rc = tile.reshape %ro : tensor<5xi64> -> tensor<5x1xi64>
      %rb = tile.broadcast %rc : tensor<5x1xi64> -> tensor<5x64xi64>
      %cr = tile.reshape %co : tensor<64xi64> -> tensor<1x64xi64>
      %cb = tile.broadcast %cr : tensor<1x64xi64> -> tensor<5x64xi64>
      %at = arith.addi %rb, %cb : tensor<5x64xi64>
      %a = tile.gather %p offsets %at : tensor<5x64xi64> : !tile.ptr<f32> -> tensor<5x64xf32>
      %c0 = arith.constant 0 : i32
      tile.store %a, %o[%c0, %c0 : i32, i32] : tensor<5x64xf32>, !tile.view<2xf32>
      return
    })";
  auto a = smallNumbers(5 * 70);
  for (const bool unit : {true, false}) {
    std::string text = kernel;
    text.replace(text.find("UNIT"), 4, unit ? "{tile.unit_stride = 1 : i32}" : "");
    HostKernel k(text);
    ASSERT_TRUE(k.ok()) << k.error;
    std::vector<float> out(5 * 64, -1);
    k.run(Args().view(a.data(), {5, 64}, {70, 1}).view(out.data(), {5, 64}));
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 64; ++j) ASSERT_EQ(out[i * 64 + j], a[i * 3 % 5 * 70 + j]) << i << " " << j;
    // The store of the row has code for single elements left over; the gather has some only where lanes lie apart.
    const std::string ir = llvmOf(text);
    int single = 0;
    for (size_t at = ir.find("load float"); at != ir.npos; at = ir.find("load float", at + 1)) ++single;
    EXPECT_EQ(single == 1 && ir.find("masked.gather") == ir.npos, unit) << ir;
  }
}

TEST(HostPointers, MaskedVectorsOfEveryElementSize) {
  auto check = [](auto zero, const char* element) {
    using T = decltype(zero);
    for (const char* target : {"host", "host:x86-64"}) {
      HostKernel plain(
          gatherKernel(37, element,
                       "  %z = arith.constant dense<0> : tensor<37xi32>\n  %f0 = arith.addi %i, %z : tensor<37xi32>\n",
                       false),
          target);
      ASSERT_TRUE(plain.ok()) << plain.error;
      std::vector<T> a(37), out(37);
      std::memset(a.data(), 0x21, a.size() * sizeof(T));
      for (int n : {0, 3, 36, 37}) {
        plain.run(Args().pointer(a.data()).pointer(out.data()).scalar(n));
        for (int i = 0; i < 37; ++i) {
          T want{};
          if (i < n) want = a[i];
          ASSERT_EQ(std::memcmp(&out[i], &want, sizeof(T)), 0) << element << " " << n << " " << i;
        }
      }
    }
  };
  check(int8_t{}, "i8");
  check(uint16_t{}, "f16");
  check(uint16_t{}, "bf16");
  check(int32_t{}, "i32");
  check(double{}, "f64");
}

TEST(HostPointers, TileOfPointersCarriedByALoop) {
  // Triton's way: a tile of pointers advanced by the loop.
  HostKernel kernel(R"(
    func.func @k(%p: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %z = arith.constant dense<0.0> : tensor<20xf32>
      %i = tile.iota : tensor<20xi32>
      %pp = tile.splat %p : !tile.ptr<f32> -> tensor<20x!tile.ptr<f32>>
      %start = tile.ptr_add %pp, %i : tensor<20x!tile.ptr<f32>>, tensor<20xi32>
      %step = arith.constant dense<20> : tensor<20xi32>
      %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %z, %at = %start) -> (tensor<20xf32>, tensor<20x!tile.ptr<f32>>) : i32 {
        %v = tile.gather %at : tensor<20x!tile.ptr<f32>> -> tensor<20xf32>
        %s = arith.addf %sum, %v : tensor<20xf32>
        %next = tile.ptr_add %at, %step : tensor<20x!tile.ptr<f32>>, tensor<20xi32>
        scf.yield %s, %next : tensor<20xf32>, tensor<20x!tile.ptr<f32>>
      }
      tile.scatter %r#0, %o offsets %i : tensor<20xi32> : tensor<20xf32>, !tile.ptr<f32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  auto a = smallNumbers(100);
  for (int n : {0, 1, 5}) {
    std::vector<float> out(20, -1);
    kernel.run(Args().pointer(a.data()).pointer(out.data()).scalar(n));
    for (int i = 0; i < 20; ++i) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += a[20 * k + i];
      ASSERT_EQ(out[i], sum);
    }
  }
}

// ---- atomics

}  // namespace
}  // namespace tile::test::memory_test
