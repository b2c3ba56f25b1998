// tiles_test.cpp - ops that shape tiles or look across their elements: broadcasts, reshape, transpose, cat, extract,
// take, reductions and scans along every axis, over odd sizes and element types.
#include <cmath>
#include <functional>
#include <numeric>

#include "host_kernel.h"

namespace tile::test {
namespace {

using Shape = std::vector<int64_t>;

std::string dims(const Shape& s) {
  std::string t;
  for (int64_t n : s) t += std::to_string(n) + "x";
  return t;
}
std::string tensor(const Shape& s, const std::string& e) { return "tensor<" + dims(s) + e + ">"; }
std::string view(size_t rank, const std::string& e) { return "!tile.view<" + std::to_string(rank) + " x " + e + ">"; }
int64_t count(const Shape& s) { return std::accumulate(s.begin(), s.end(), int64_t{1}, std::multiplies<>()); }

std::string zeros(size_t rank) {
  std::string idx, types;
  for (size_t i = 0; i < rank; ++i)
    idx += std::string(i ? ", " : "") + "%c0", types += std::string(i ? ", " : "") + "i32";
  return "[" + idx + " : " + types + "]";
}

/// %a is loaded from a tensor of `in`, `body` makes %r of `out`.
template <class T, class R = T>
std::vector<R> compute(const Shape& in, const Shape& out, const std::string& element, const std::string& body,
                       const std::vector<T>& a, const std::string& resultElement = "") {
  std::string re = resultElement.empty() ? element : resultElement;
  HostKernel kernel("func.func @k(%A: " + view(in.size(), element) + ", %O: " + view(out.size(), re) +
                    ") attributes {tile.kernel} {\n  %c0 = arith.constant 0 : i32\n" + "  %a = tile.load %A" +
                    zeros(in.size()) + " : " + view(in.size(), element) + " -> " + tensor(in, element) + "\n" + body +
                    "\n  tile.store %r, %O" + zeros(out.size()) + " : " + tensor(out, re) + ", " +
                    view(out.size(), re) + "\n  return\n}\n");
  EXPECT_TRUE(kernel.ok()) << kernel.error << body;
  std::vector<R> result(count(out));
  if (kernel.ok()) kernel.run(Args().view(a.data(), in).view(result.data(), out));
  return result;
}

Shape stridesOf(const Shape& s) {
  Shape strides(s.size(), 1);
  for (size_t d = s.size(); d-- > 1;) strides[d - 1] = strides[d] * s[d];
  return strides;
}
/// Calls body(index) for every element, row-major.
void forEach(const Shape& s, const std::function<void(const Shape&)>& body) {
  Shape index(s.size(), 0);
  for (int64_t n = count(s); n-- > 0;) {
    body(index);
    for (size_t d = s.size(); d-- > 0;) {
      if (++index[d] < s[d]) break;
      index[d] = 0;
    }
  }
}
int64_t at(const Shape& index, const Shape& shape) {
  Shape strides = stridesOf(shape);
  return std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
}

TEST(HostTiles, BroadcastAlongEachDim) {
  for (int64_t m : {1, 3, 17, 64})
    for (int64_t n : {1, 5, 16, 63}) {
      // r[i][j] = (a[i] + b[j]) * c, with a as a column, b as a row, c spread over both.
      auto a = smallNumbers(m * n + 1);
      Shape box{m, n};
      std::string body =
          "  %col = tile.extract %a[0, 0] : " + tensor(box, "f32") + " -> " + tensor({m, 1}, "f32") + "\n" +
          "  %row = tile.extract %a[0, 0] : " + tensor(box, "f32") + " -> " + tensor({1, n}, "f32") + "\n" +
          "  %one = tile.extract %a[0, 0] : " + tensor(box, "f32") + " -> " + tensor({1, 1}, "f32") + "\n" +
          "  %cb = tile.broadcast %col : " + tensor({m, 1}, "f32") + " -> " + tensor(box, "f32") + "\n" +
          "  %rb = tile.broadcast %row : " + tensor({1, n}, "f32") + " -> " + tensor(box, "f32") + "\n" +
          "  %ob = tile.broadcast %one : " + tensor({1, 1}, "f32") + " -> " + tensor(box, "f32") + "\n" +
          "  %s = arith.addf %cb, %rb : " + tensor(box, "f32") + "\n  %r = arith.mulf %s, %ob : " + tensor(box, "f32");
      auto r = compute<float>(box, box, "f32", body, a);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          ASSERT_EQ(r[i * n + j], (a[i * n] + a[j]) * a[0]) << m << "x" << n << " at " << i << "," << j;
    }
}

TEST(HostTiles, IotaSplatAndReshapeMakeIndices) {
  // r[i][j] = a[i][j] + 10 * (i + 3) + j, indices from two iotas.
  for (auto [m, n] : {std::pair<int64_t, int64_t>{5, 7}, {1, 9}, {33, 1}, {16, 32}}) {
    std::vector<int32_t> a(m * n);
    std::iota(a.begin(), a.end(), 1000);
    Shape box{m, n};
    std::string body =
        "  %i = tile.iota from 3 : " + tensor({m}, "i32") + "\n  %j = tile.iota : " + tensor({n}, "i32") + "\n" +
        "  %ic = tile.reshape %i : " + tensor({m}, "i32") + " -> " + tensor({m, 1}, "i32") + "\n" +
        "  %jr = tile.reshape %j : " + tensor({n}, "i32") + " -> " + tensor({1, n}, "i32") + "\n" +
        "  %ten = arith.constant dense<10> : " + tensor({m, 1}, "i32") +
        "\n  %i10 = arith.muli %ic, %ten : " + tensor({m, 1}, "i32") + "\n" +
        "  %ib = tile.broadcast %i10 : " + tensor({m, 1}, "i32") + " -> " + tensor(box, "i32") + "\n" +
        "  %jb = tile.broadcast %jr : " + tensor({1, n}, "i32") + " -> " + tensor(box, "i32") + "\n" +
        "  %x = arith.addi %ib, %jb : " + tensor(box, "i32") + "\n  %r = arith.addi %x, %a : " + tensor(box, "i32");
    auto r = compute<int32_t>(box, box, "i32", body, a);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) ASSERT_EQ(r[i * n + j], a[i * n + j] + 10 * (i + 3) + j);
  }
}

TEST(HostTiles, ReshapeKeepsRowMajorOrder) {
  auto a = smallNumbers(3 * 4 * 5);
  auto r = compute<float>(
      {3, 4, 5}, {15, 4}, "f32",
      "  %x = arith.addf %a, %a : tensor<3x4x5xf32>\n  %r = tile.reshape %x : tensor<3x4x5xf32> -> tensor<15x4xf32>",
      a);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(r[i], 2 * a[i]);
  auto s = compute<float>({3, 4, 5}, {3, 1, 20}, "f32",
                          "  %x = tile.reshape %a : tensor<3x4x5xf32> -> tensor<60xf32>\n  %r = tile.reshape %x : "
                          "tensor<60xf32> -> tensor<3x1x20xf32>",
                          a);
  EXPECT_EQ(s, a);
}

TEST(HostTiles, ConstantsWithDifferentElements) {
  auto r = compute<float>({2, 3}, {2, 3}, "f32",
                          "  %c = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>\n  %r = "
                          "arith.mulf %a, %c : tensor<2x3xf32>",
                          {1, 1, 1, 2, 2, 2});
  EXPECT_EQ(r, (std::vector<float>{1, 2, 3, 8, 10, 12}));
}

template <class T>
void checkTranspose(const Shape& in, const std::vector<int>& permutation, const std::string& element, bool computed) {
  Shape out;
  std::string list;
  for (int p : permutation) {
    out.push_back(in[p]);
    list += (list.empty() ? "" : ", ") + std::to_string(p);
  }
  std::vector<T> a(count(in));
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(i % 251);
  std::string body = computed ? "  %x = arith.addi %a, %a : " + tensor(in, element) + "\n" : "";
  body += "  %r = tile.trans " + std::string(computed ? "%x" : "%a") + ", [" + list + "] : " + tensor(in, element) +
          " -> " + tensor(out, element);
  auto r = compute<T>(in, out, element, body, a);
  forEach(out, [&](const Shape& index) {
    Shape source(in.size());
    for (size_t d = 0; d < in.size(); ++d) source[permutation[d]] = index[d];
    ASSERT_EQ(r[at(index, out)], static_cast<T>(a[at(source, in)] * (computed ? 2 : 1))) << dims(in) << " " << list;
  });
}

TEST(HostTiles, TransposeEveryPermutation) {
  for (const Shape& s :
       {Shape{1, 1}, Shape{1, 7}, Shape{5, 1}, Shape{3, 5}, Shape{16, 16}, Shape{17, 33}, Shape{64, 48}})
    for (bool computed : {false, true}) {
      checkTranspose<int32_t>(s, {1, 0}, "i32", computed);
      checkTranspose<int8_t>(s, {1, 0}, "i8", computed);
      checkTranspose<int16_t>(s, {1, 0}, "i16", computed);
      checkTranspose<int64_t>(s, {1, 0}, "i64", computed);
    }
  for (const Shape& s : {Shape{2, 3, 5}, Shape{4, 17, 16}, Shape{1, 16, 9}, Shape{7, 1, 4}})
    for (auto p : {std::vector<int>{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}})
      checkTranspose<int32_t>(s, p, "i32", false);
  // A few lines that interleave or are dealt out, and runs that one shuffle moves.
  for (const Shape& s : {Shape{2, 50}, Shape{50, 2}, Shape{3, 67}, Shape{67, 3}, Shape{4, 130}, Shape{130, 4}})
    for (bool computed : {false, true}) {
      checkTranspose<int32_t>(s, {1, 0}, "i32", computed);
      checkTranspose<int8_t>(s, {1, 0}, "i8", computed);
      checkTranspose<int64_t>(s, {1, 0}, "i64", computed);
    }
  for (const Shape& s : {Shape{3, 7, 2, 4}, Shape{2, 5, 2, 32}, Shape{5, 3, 3, 40}, Shape{1, 9, 4, 4}, Shape{2, 3, 40, 2}})
    for (auto p : {std::vector<int>{0, 1, 3, 2}, {0, 2, 1, 3}, {0, 3, 1, 2}, {1, 0, 3, 2}})
      for (bool computed : {false, true}) {
        checkTranspose<int32_t>(s, p, "i32", computed);
        checkTranspose<int8_t>(s, p, "i8", computed);
      }
}

TEST(HostTiles, CatAlongEachAxis) {
  auto a = smallNumbers(3 * 5);
  auto rows = compute<float>(
      {3, 5}, {7, 5}, "f32",
      "  %n = arith.negf %a : tensor<3x5xf32>\n  %e = tile.extract %a[1, 0] : tensor<3x5xf32> -> tensor<1x5xf32>\n"
      "  %r = tile.cat %a, %n, %e axis 0 : tensor<3x5xf32>, tensor<3x5xf32>, tensor<1x5xf32> -> tensor<7x5xf32>",
      a);
  for (int j = 0; j < 5; ++j) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(rows[i * 5 + j], a[i * 5 + j]);
      EXPECT_EQ(rows[(i + 3) * 5 + j], -a[i * 5 + j]);
    }
    EXPECT_EQ(rows[6 * 5 + j], a[5 + j]);
  }
  auto columns = compute<float>({3, 5}, {3, 10}, "f32",
                                "  %n = arith.negf %a : tensor<3x5xf32>\n  %r = tile.cat %a, %n axis 1 : "
                                "tensor<3x5xf32>, tensor<3x5xf32> -> tensor<3x10xf32>",
                                a);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 10; ++j) EXPECT_EQ(columns[i * 10 + j], j < 5 ? a[i * 5 + j] : -a[i * 5 + j - 5]);
}

TEST(HostTiles, ExtractIsABox) {
  auto a = smallNumbers(9 * 20);
  auto r =
      compute<float>({9, 20}, {4, 17}, "f32", "  %r = tile.extract %a[5, 2] : tensor<9x20xf32> -> tensor<4x17xf32>", a);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 17; ++j) EXPECT_EQ(r[i * 17 + j], a[(i + 5) * 20 + j + 2]);
}

TEST(HostTiles, TakeAlongEachAxisStaysInside) {
  std::vector<int32_t> a(5 * 7);
  std::iota(a.begin(), a.end(), 0);
  auto r = compute<int32_t>(
      {5, 7}, {5, 7}, "i32",
      "  %c3 = arith.constant dense<3> : tensor<5x7xi32>\n  %c7 = arith.constant dense<7> : tensor<5x7xi32>\n"
      "  %m = arith.muli %a, %c3 : tensor<5x7xi32>\n  %i = arith.remsi %m, %c7 : tensor<5x7xi32>\n"
      "  %r = tile.take %a, %i axis 1 : tensor<5x7xi32>, tensor<5x7xi32> -> tensor<5x7xi32>",
      a);
  for (int i = 0; i < 35; ++i) EXPECT_EQ(r[i], i / 7 * 7 + i * 3 % 7);
  auto s = compute<int32_t>({5, 7}, {2, 7}, "i32",
                            "  %e = tile.extract %a[0, 0] : tensor<5x7xi32> -> tensor<2x7xi32>\n  %c5 = arith.constant "
                            "dense<5> : tensor<2x7xi32>\n"
                            "  %i = arith.remsi %e, %c5 : tensor<2x7xi32>\n  %r = tile.take %a, %i axis 0 : "
                            "tensor<5x7xi32>, tensor<2x7xi32> -> tensor<2x7xi32>",
                            a);
  for (int i = 0; i < 14; ++i) EXPECT_EQ(s[i], (i % 5) * 7 + i % 7);
  // Any index at all: no fault, whatever the value.
  std::vector<int32_t> wild(35, -1);
  wild[3] = INT32_MAX, wild[4] = INT32_MIN;
  compute<int32_t>({5, 7}, {5, 7}, "i32",
                   "  %r = tile.take %a, %a axis 1 : tensor<5x7xi32>, tensor<5x7xi32> -> tensor<5x7xi32>", wild);
}

TEST(HostTiles, TakeFromTablesOfEverySize) {  // 32 entries and fewer are looked up in registers where there are such
  for (int n : {4, 15, 16, 17, 24, 32, 33, 200})
    for (const char* type : {"i32", "i16", "i8"}) {
      std::vector<int32_t> a(3 * 200);
      for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int32_t>(i * 37 % 101);
      const std::string table = "tensor<3x" + std::to_string(n) + "x", wide = "tensor<3x200x";
      auto cast = [&](const char* op, std::string_view to, std::string_view from, const std::string& shape) {
        return type == std::string_view("i32")
                   ? "  %" + std::string(to) + " = arith.addi %" + std::string(from) + ", %zero" + std::string(to) +
                         " : " + shape + "i32>\n"
                   : "  %" + std::string(to) + " = arith." + op + " %" + std::string(from) + " : " + shape +
                         (op == std::string_view("trunci") ? "i32> to " : std::string(type) + "> to ") + shape +
                         (op == std::string_view("trunci") ? type : "i32") + ">\n";
      };
      auto zeros = [&](std::string_view of, const std::string& shape) {
        return "  %zero" + std::string(of) + " = arith.constant dense<0> : " + shape + "i32>\n";
      };
      auto r = compute<int32_t>({3, 200}, {3, 200}, "i32",
                                zeros("t", table) + zeros("r", wide) + "  %s = tile.extract %a[0, 0] : " + wide +
                                    "i32> -> " + table + "i32>\n" + cast("trunci", "t", "s", table) +
                                    "  %n = arith.constant dense<" + std::to_string(n) + "> : " + wide + "i32>\n" +
                                    "  %i = arith.remsi %a, %n : " + wide + "i32>\n  %f = tile.take %t, %i axis 1 : " +
                                    table + type + ">, " + wide + "i32> -> " + wide + type + ">\n" +
                                    cast("extsi", "r", "f", wide),
                                a);
      for (int i = 0; i < 600; ++i) ASSERT_EQ(r[i], a[i / 200 * 200 + a[i] % n]) << n << " " << type << " " << i;
    }
}

// ---- reductions and scans

struct Combiner {
  const char* name;
  std::string element, body;  ///< body combines %x and %y into %z
  std::function<double(double, double)> reference;
};
const Combiner kCombiners[] = {
    {"sum f32", "f32", "%z = arith.addf %x, %y : f32", [](double a, double b) { return a + b; }},
    {"max f32", "f32", "%z = arith.maximumf %x, %y : f32", [](double a, double b) { return std::max(a, b); }},
    {"min f64", "f64", "%z = arith.minimumf %x, %y : f64", [](double a, double b) { return std::min(a, b); }},
    {"sum i32", "i32", "%z = arith.addi %x, %y : i32", [](double a, double b) { return a + b; }},
    {"xor i8", "i8", "%z = arith.xori %x, %y : i8",
     [](double a, double b) { return static_cast<int8_t>(static_cast<int>(a) ^ static_cast<int>(b)); }},
    {"max i64", "i64", "%z = arith.maxsi %x, %y : i64", [](double a, double b) { return std::max(a, b); }},
    {"max f16", "f16", "%z = arith.maxnumf %x, %y : f16", [](double a, double b) { return std::max(a, b); }},
    {"custom f32", "f32",
     "%h = arith.constant 0.0 : f32\n    %s = arith.addf %x, %y : f32\n    %z = arith.addf %s, %h : f32",
     [](double a, double b) { return a + b; }},
};

template <class T>
void checkAcross(const Combiner& c, const Shape& shape, int axis, const char* op, bool reverse) {
  bool isScan = std::string(op) == "scan";
  Shape out = shape;
  if (!isScan) out[axis] = 1;
  std::vector<T> a(count(shape));
  auto numbers = smallNumbers(a.size(), 11);
  for (size_t i = 0; i < a.size(); ++i) a[i] = T(numbers[i] * 4);
  std::string body = "  %r = tile." + std::string(op) + " %a axis " + std::to_string(axis) +
                     (reverse ? " reverse" : "") + " : (" + tensor(shape, c.element) + ") -> " +
                     tensor(out, c.element) + " {\n  ^bb0(%x: " + c.element + ", %y: " + c.element + "):\n    " +
                     c.body + "\n    tile.yield %z : " + c.element + "\n  }";
  auto r = compute<T>(shape, out, c.element, body, a);
  forEach(out, [&](const Shape& index) {
    int64_t n = shape[axis], from = 0, to = n;
    if (isScan) reverse ? from = index[axis] : to = index[axis] + 1;
    Shape i = index;
    i[axis] = from;
    double want = static_cast<double>(a[at(i, shape)]);
    for (int64_t k = from + 1; k < to; ++k) {
      i[axis] = k;
      want = c.reference(want, static_cast<double>(a[at(i, shape)]));
    }
    ASSERT_EQ(static_cast<double>(r[at(index, out)]), want)
        << op << " " << c.name << " of " << dims(shape) << " axis " << axis << (reverse ? " reverse" : "");
  });
}

void checkAll(const Combiner& c, const Shape& shape, int axis, const char* op, bool reverse = false) {
  if (c.element == "f32") checkAcross<float>(c, shape, axis, op, reverse);
  if (c.element == "f64") checkAcross<double>(c, shape, axis, op, reverse);
  if (c.element == "f16") checkAcross<half>(c, shape, axis, op, reverse);
  if (c.element == "i8") checkAcross<int8_t>(c, shape, axis, op, reverse);
  if (c.element == "i32") checkAcross<int32_t>(c, shape, axis, op, reverse);
  if (c.element == "i64") checkAcross<int64_t>(c, shape, axis, op, reverse);
}

const Shape kShapes[] = {{1},     {3},      {17},    {65},      {200},      {1, 1},     {1, 63},   {5, 1},
                         {7, 17}, {16, 64}, {63, 5}, {2, 3, 5}, {4, 1, 33}, {3, 16, 1}, {5, 17, 9}};

TEST(HostAcross, ReduceEveryAxis) {
  size_t i = 0;
  for (const Shape& shape : kShapes)
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      checkAll(kCombiners[i++ % std::size(kCombiners)], shape, axis, "reduce");
      checkAll(kCombiners[i++ % std::size(kCombiners)], shape, axis, "reduce");
    }
}

// Rows whose vectors are folded against each other: more rows than lanes, with rows left over, of whole vectors.
TEST(HostAcross, ReduceManyRowsTogether) {
  size_t i = 0;
  for (const Shape& shape : {Shape{16, 8}, {40, 8}, {33, 2}, {35, 64}, {18, 128}, {3, 20, 16}, {100, 4}, {17, 48}})
    for (int more = 0; more < 3; ++more)
      checkAll(kCombiners[i++ % std::size(kCombiners)], shape, static_cast<int>(shape.size()) - 1, "reduce");
}

TEST(HostAcross, ReduceColumnsOfManyVectors) {
  size_t i = 0;
  for (const Shape& shape : {Shape{8, 64}, {5, 100}, {20, 257}})
    for (int more = 0; more < 3; ++more) checkAll(kCombiners[i++ % std::size(kCombiners)], shape, 0, "reduce");
}

TEST(HostAcross, ScanEveryAxisBothWays) {
  size_t i = 0;
  for (const Shape& shape : kShapes)
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
      for (bool reverse : {false, true})
        checkAll(kCombiners[i++ % std::size(kCombiners)], shape, axis, "scan", reverse);
}

TEST(HostAcross, ArgmaxKeepsTheFirstOfEqualValues) {
  for (auto [shape, axis] : {std::pair<Shape, int>{{5, 67}, 1}, {{67, 5}, 0}, {{1, 8}, 1}, {{9}, 0}, {{37, 32}, 1}}) {
    Shape out = shape;
    out[axis] = 1;
    std::vector<float> a(count(shape));
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>((i * 7) % 5);
    std::string ti = tensor(shape, "i32"), tf = tensor(shape, "f32"), iota;
    Shape line(shape.size(), 1);
    line[axis] = shape[axis];
    std::string body = "  %n = tile.iota : " + tensor({shape[axis]}, "i32") +
                       "\n  %nl = tile.reshape %n : " + tensor({shape[axis]}, "i32") + " -> " + tensor(line, "i32") +
                       "\n  %i = tile.broadcast %nl : " + tensor(line, "i32") + " -> " + ti +
                       "\n  %m, %r = tile.reduce %a, %i axis " + std::to_string(axis) + " : (" + tf + ", " + ti +
                       ") -> (" + tensor(out, "f32") + ", " + tensor(out, "i32") +
                       ") {\n  ^bb0(%x: f32, %xi: i32, %y: f32, %yi: i32):\n    %gt = arith.cmpf ogt, %y, %x : f32\n   "
                       " %eq = arith.cmpf oeq, %y, %x : f32\n"
                       "    %lt = arith.cmpi slt, %yi, %xi : i32\n    %tie = arith.andi %eq, %lt : i1\n    %take = "
                       "arith.ori %gt, %tie : i1\n"
                       "    %v = arith.select %take, %y, %x : f32\n    %w = arith.select %take, %yi, %xi : i32\n    "
                       "tile.yield %v, %w : f32, i32\n  }";
    auto r = compute<float, int32_t>(shape, out, "f32", body, a, "i32");
    forEach(out, [&](const Shape& index) {
      Shape i = index;
      int best = 0;
      for (int k = 1; k < shape[axis]; ++k) {
        Shape b = index;
        i[axis] = k, b[axis] = best;
        if (a[at(i, shape)] > a[at(b, shape)]) best = k;
      }
      ASSERT_EQ(r[at(index, out)], best) << dims(shape);
    });
  }
}

TEST(HostAcross, ReduceOfAFusedExpression) {
  // The reduction evaluates exp2(a) * row itself: nothing of it is in memory first.
  auto a = smallNumbers(33 * 70);
  auto r = compute<float>({33, 70}, {33, 1}, "f32",
                          "  %row = tile.extract %a[0, 0] : tensor<33x70xf32> -> tensor<1x70xf32>\n  %rb = "
                          "tile.broadcast %row : tensor<1x70xf32> -> tensor<33x70xf32>\n"
                          "  %p = arith.mulf %a, %rb : tensor<33x70xf32>\n"
                          "  %r = tile.reduce %p axis 1 : (tensor<33x70xf32>) -> tensor<33x1xf32> {\n  ^bb0(%x: f32, "
                          "%y: f32):\n    %z = arith.addf %x, %y : f32\n    tile.yield %z : f32\n  }",
                          a);
  for (int i = 0; i < 33; ++i) {
    float sum = 0;
    for (int j = 0; j < 70; ++j) sum += a[i * 70 + j] * a[j];
    EXPECT_EQ(r[i], sum);
  }
}

TEST(HostTiles, ItemFeedsScalars) {
  std::vector<float> a = smallNumbers(40);
  auto r = compute<float>({40}, {40}, "f32",
                          "  %m = tile.reduce %a axis 0 : (tensor<40xf32>) -> tensor<1xf32> {\n  ^bb0(%x: f32, %y: "
                          "f32):\n    %z = arith.maximumf %x, %y : f32\n    tile.yield %z : f32\n  }\n"
                          "  %s = tile.item %m : tensor<1xf32> -> f32\n  %sb = tile.splat %s : f32 -> tensor<40xf32>\n "
                          " %r = arith.subf %a, %sb : tensor<40xf32>",
                          a);
  float top = *std::max_element(a.begin(), a.end());
  for (int i = 0; i < 40; ++i) EXPECT_EQ(r[i], a[i] - top);
}

}  // namespace
}  // namespace tile::test
