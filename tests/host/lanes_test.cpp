// lanes_test.cpp - vectors whose lanes do not lie side by side: loads and stores at steps and at addresses of their own,
// columns that interleave, boxes whose short rows lie together. Data ends at a page that may not be touched.
#include <sys/mman.h>
#include <unistd.h>

#include <numeric>

#include "host_kernel.h"

namespace tile::test::lanes_test {
namespace {

/// A page of memory between two that nobody may read.
class LonelyPage {
 public:
  LonelyPage() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    void* all = mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(all, MAP_FAILED);
    start_ = static_cast<uint8_t*>(all);
    EXPECT_EQ(mprotect(start_ + page_, page_, PROT_READ | PROT_WRITE), 0);
  }
  ~LonelyPage() { munmap(start_, 3 * page_); }
  template <class T>
  T* begin() const {
    return reinterpret_cast<T*>(start_ + page_);
  }
  template <class T>
  T* end() const {
    return reinterpret_cast<T*>(start_ + 2 * page_);
  }

 private:
  size_t page_;
  uint8_t* start_;
};

const char* const kTargets[] = {"host", "host:x86-64-v3", "host:x86-64"};

std::string text(int64_t n) { return std::to_string(n); }

/// o[i] = p[offset(i)] for i < n, `offsets` making %f of %i.
std::string gather(int64_t size, const std::string& element, const std::string& offsets, bool masked) {
  const std::string s = text(size), ti = "tensor<" + s + "xi32>", t = "tensor<" + s + "x" + element + ">";
  return "func.func @k(%p: !tile.ptr<" + element + ">, %o: !tile.ptr<" + element +
         ">, %n: i32) attributes {tile.kernel} {\n  %i = tile.iota : " + ti + "\n  %nn = tile.splat %n : i32 -> " + ti +
         "\n  %m = arith.cmpi slt, %i, %nn : " + ti + "\n" + offsets + "  %a = tile.gather %p offsets %f : " + ti +
         (masked ? " mask %m : tensor<" + s + "xi1>" : "") + " : !tile.ptr<" + element + "> -> " + t +
         "\n  tile.scatter %a, %o offsets %i : " + ti + " mask %m : tensor<" + s + "xi1> : " + t + ", !tile.ptr<" +
         element + ">\n  return\n}";
}

std::string steps(int64_t size, int64_t step) {
  const std::string ti = "tensor<" + text(size) + "xi32>";
  return "  %c = arith.constant dense<" + text(step) + "> : " + ti + "\n  %f = arith.muli %i, %c : " + ti + "\n";
}

template <class T>
void checkSteps(const std::string& element) {
  const LonelyPage page;
  for (auto* p = page.begin<T>(); p < page.end<T>(); ++p) *p = static_cast<T>((p - page.begin<T>()) % 119);
  for (const char* target : kTargets)
    for (int64_t size : {7, 16, 33, 64})
      for (int64_t step : {0, 2, 3, 4, 5, -1, -2})
        for (bool masked : {false, true}) {
          HostKernel kernel(gather(size, element, steps(size, step), masked), target);
          ASSERT_TRUE(kernel.ok()) << kernel.error;
          for (int64_t n : {int64_t{0}, int64_t{1}, size - 3, size}) {
            if (!masked && n < size) continue;
            // The last element read is the page's last one, or with steps back its first.
            const int64_t far = std::max<int64_t>(n - 1, 0) * step;
            const T* base = step < 0 ? page.begin<T>() - far : page.end<T>() - 1 - far;
            std::vector<T> out(size, T{1});
            kernel.run(Args().pointer(base).pointer(out.data()).scalar(static_cast<int32_t>(n)));
            for (int64_t i = 0; i < size; ++i)
              ASSERT_EQ(out[i], i < n ? base[i * step] : T{1}) << element << " " << target << " " << size << " " << step;
          }
        }
}

TEST(HostLanes, StepsReadNothingBesideWhatTheyNeed) {
  checkSteps<int8_t>("i8");
  checkSteps<int16_t>("i16");
  checkSteps<int32_t>("i32");
  checkSteps<int64_t>("i64");
}

/// Offsets without order, some of them twice: the highest lane's value stays.
template <class T>
void checkScattered(const std::string& element) {
  const int64_t size = 64;
  const std::string ti = "tensor<64xi32>";
  const std::string offsets = "  %c7 = arith.constant dense<7> : " + ti + "\n  %c32 = arith.constant dense<40> : " + ti +
                              "\n  %x = arith.muli %i, %c7 : " + ti + "\n  %f = arith.remui %x, %c32 : " + ti + "\n";
  for (const char* target : kTargets)
    for (bool masked : {false, true}) {
      HostKernel kernel("func.func @k(%p: !tile.ptr<" + element + ">, %o: !tile.ptr<" + element +
                            ">, %n: i32) attributes {tile.kernel} {\n  %i = tile.iota : " + ti +
                            "\n  %nn = tile.splat %n : i32 -> " + ti + "\n  %m = arith.cmpi slt, %i, %nn : " + ti + "\n" +
                            offsets + "  %a = tile.gather %p offsets %f : " + ti + " : !tile.ptr<" + element +
                            "> -> tensor<64x" + element + ">\n  %b = tile.gather %p offsets %i : " + ti + " : !tile.ptr<" +
                            element + "> -> tensor<64x" + element + ">\n  %s = arith.addi %a, %b : tensor<64x" + element +
                            ">\n  tile.scatter %s, %o offsets %f : " + ti +
                            (masked ? " mask %m : tensor<64xi1>" : "") + " : tensor<64x" + element + ">, !tile.ptr<" +
                            element + ">\n  return\n}",
                        target);
      ASSERT_TRUE(kernel.ok()) << kernel.error;
      std::vector<T> in(size);
      std::iota(in.begin(), in.end(), T{1});
      for (int n : {0, 5, 50, 64}) {
        std::vector<T> out(40, T{0}), want(40, T{0});
        kernel.run(Args().pointer(in.data()).pointer(out.data()).scalar(n));
        for (int64_t i = 0; i < (masked ? n : size); ++i)
          want[i * 7 % 40] = static_cast<T>(in[i * 7 % 40] + in[i]);
        ASSERT_EQ(out, want) << element << " " << target << " " << n;
      }
    }
}

TEST(HostLanes, ScatteredLanesKeepTheirOrder) {
  checkScattered<int8_t>("i8");
  checkScattered<int16_t>("i16");
  checkScattered<int32_t>("i32");
  checkScattered<int64_t>("i64");
}

// Offsets that so many ask for that they lie in memory: their rows are one long row there, but not where they lead.
TEST(HostLanes, RowsOfOffsetsThatAreKept) {
  const std::string column = "tensor<4x1xi32>", row = "tensor<1x16xi32>", ti = "tensor<4x16xi32>", tf = "tensor<4x16xf32>";
  std::string body, sum = "%g0";
  for (int k = 0; k < 5; ++k) {
    body += "  %n" + text(k) + " = arith.constant " + text(k) + " : i64\n  %p" + text(k) + " = tile.ptr_add %p, %n" + text(k) +
            " : !tile.ptr<f32>, i64\n  %g" + text(k) + " = tile.gather %p" + text(k) + " offsets %at : " + ti + " : !tile.ptr<f32> -> " + tf + "\n";
    if (k == 0) continue;
    body += "  %s" + text(k) + " = arith.addf " + sum + ", %g" + text(k) + " : " + tf + "\n";
    sum = "%s" + text(k);
  }
  HostKernel kernel("func.func @k(%p: !tile.ptr<f32>, %o: !tile.ptr<f32>, %w: i32) attributes {tile.kernel} {\n"
                    "  %i = tile.iota : tensor<4xi32>\n  %y = tile.reshape %i : tensor<4xi32> -> " + column +
                    "\n  %j = tile.iota : tensor<16xi32>\n  %x = tile.reshape %j : tensor<16xi32> -> " + row +
                    "\n  %ww = tile.splat %w : i32 -> " + column + "\n  %yw = arith.muli %y, %ww : " + column +
                    "\n  %yb = tile.broadcast %yw : " + column + " -> " + ti + "\n  %xb = tile.broadcast %x : " + row +
                    " -> " + ti + "\n  %at = arith.addi %yb, %xb : " + ti + "\n" + body + "  tile.scatter " + sum +
                    ", %o offsets %at : " + ti + " : " + tf + ", !tile.ptr<f32>\n  return\n}");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  const int w = 19;
  auto a = smallNumbers(4 * w + 5);
  std::vector<float> out(4 * w, -1), want(4 * w, -1);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 16; ++x) want[y * w + x] = std::accumulate(&a[y * w + x], &a[y * w + x] + 5, 0.0f);
  kernel.run(Args().pointer(a.data()).pointer(out.data()).scalar(w));
  EXPECT_EQ(out, want);
}

/// Columns are taken apart (of `count` beside each other), and the same ones joined again the other way round.
template <class T>
void checkColumns(const std::string& element, int64_t rows, int64_t count) {
  const std::string all = "tensor<" + text(rows) + "x" + text(count) + "x" + element + ">",
                    one = "tensor<" + text(rows) + "x1x" + element + ">", v = "!tile.view<2 x " + element + ">";
  std::string body, names, types;
  for (int64_t k = 0; k < count; ++k) {
    const std::string name = "%k" + text(k);
    body += "  " + name + " = tile.extract %a [0, " + text(k) + "] : " + all + " -> " + one + "\n  %s" + text(k) +
            " = arith.addi " + name + ", " + name + " : " + one + "\n";
    names = "%s" + text(k) + (k ? ", " : "") + names;
    types += std::string(k ? ", " : "") + one;
  }
  HostKernel kernel("func.func @k(%A: " + v + ", %O: " + v +
                    ") attributes {tile.kernel} {\n  %c0 = arith.constant 0 : i32\n  %a = tile.load %A[%c0, %c0 : i32, "
                    "i32] : " + v + " -> " + all + "\n" + body + "  %r = tile.cat " + names + " axis 1 : " + types +
                    " -> " + all + "\n  tile.store %r, %O[%c0, %c0 : i32, i32] : " + all + ", " + v + "\n  return\n}");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::vector<T> in(rows * count), out(rows * count + 1, T{-1});
  std::iota(in.begin(), in.end(), T{1});
  kernel.run(Args().view(in.data(), {rows, count}).view(out.data(), {rows, count}));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < count; ++k)
      ASSERT_EQ(out[i * count + k], static_cast<T>(2 * in[i * count + count - 1 - k])) << element << " " << rows << " " << count;
  EXPECT_EQ(out.back(), T{-1});
}

TEST(HostLanes, ColumnsInterleave) {
  for (int64_t rows : {1, 3, 16, 37, 128})
    for (int64_t count : {2, 3, 4, 5}) {
      checkColumns<int8_t>("i8", rows, count);
      checkColumns<int16_t>("i16", rows, count);
      checkColumns<int32_t>("i32", rows, count);
      checkColumns<int64_t>("i64", rows, count);
    }
}

/// Boxes of short rows (colours of pixels): lines of the view may lie further apart than they are long, columns too, and
/// the box may reach over its edges.
TEST(HostLanes, ShortRowsOfBoxes) {
  const std::string v = "!tile.view<3 x i16>", t = "tensor<4x20x3xi16>";
  HostKernel kernel("func.func @k(%A: " + v + ", %O: " + v + ", %y: i32, %x: i32) attributes {tile.kernel} {\n"
                    "  %c0 = arith.constant 0 : i32\n  %a = tile.load %A[%y, %x, %c0 : i32, i32, i32] : " + v + " -> " + t +
                    "\n  %r = arith.addi %a, %a : " + t + "\n  tile.store %r, %O[%y, %x, %c0 : i32, i32, i32] : " + t +
                    ", " + v + "\n  return\n}");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  const int64_t H = 9, W = 33;
  struct Strides {
    int64_t line, pixel, channel;
  };
  for (const Strides& s : {Strides{W * 3, 3, 1}, {W * 3 + 5, 3, 1}, {W * 4, 4, 1}, {W * 6, 6, 2}, {W, 1, H * W}})
    for (int64_t channels : {3, 2})
      for (auto [y, x] : {std::pair{0, 0}, {4, 7}, {-2, -5}, {7, 25}, {20, 0}, {0, 40}}) {
        std::vector<int16_t> in(4000), out(4000, -1), want(4000, -1);
        std::iota(in.begin(), in.end(), int16_t{1});
        kernel.run(Args()
                       .view(in.data(), {H, W, channels}, {s.line, s.pixel, s.channel})
                       .view(out.data(), {H, W, channels}, {s.line, s.pixel, s.channel})
                       .scalar(y)
                       .scalar(x));
        for (int64_t i = std::max(y, 0); i < std::min<int64_t>(y + 4, H); ++i)
          for (int64_t j = std::max(x, 0); j < std::min<int64_t>(x + 20, W); ++j)
            for (int64_t k = 0; k < channels; ++k) {
              const int64_t at = i * s.line + j * s.pixel + k * s.channel;
              want[at] = static_cast<int16_t>(2 * in[at]);
            }
        ASSERT_EQ(out, want) << s.line << " " << s.pixel << " " << channels << " at " << y << ", " << x;
      }
}

}  // namespace
}  // namespace tile::test::lanes_test
