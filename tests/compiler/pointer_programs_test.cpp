// Random programs over tiles of pointers, compiled for the host and executed, against offsets computed here in plain C++.
// What it guards: raise_pointers may regroup address arithmetic as it likes, but every lane must reach its own element.
// TILE_FUZZ_ITERATIONS makes the run longer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "compiler/compiler.h"
#include "compiler/targets/host_loader.h"

namespace tile::ir {
namespace {

constexpr int64_t kReach = 1 << 20;  ///< offsets stay within +-kReach of the base
constexpr int64_t kSecond = 5000;    ///< the second base pointer, in elements after the first
constexpr int kScalar = 37;          ///< value of the kernel's scalar argument

using Shape = std::vector<int64_t>;

/// A value of the program being written: its SSA name, type and what it holds, row-major. Pointers: elements from the base.
struct Value {
  std::string name, type;
  Shape shape;
  std::vector<int64_t> at;
};

int64_t countOf(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed) {}

  /// The kernel's text; `expected` gets what it writes.
  std::string make(std::vector<int64_t>& expected) {
    static const std::vector<Shape> shapes = {{16}, {4, 8}, {6}, {2, 3, 4}, {1, 8}, {8, 1}};
    const Shape shape = shapes[pick(shapes.size())];
    Value p = pointers(shape, 3);
    if (pick(2)) p = loop(p);
    Value result = gather(p);
    Value out = splat("%out", "!tile.ptr<i32>", {countOf(shape)});
    Value lanes = iota(countOf(shape), "i32");
    const std::string target = fresh();
    line(target + " = tile.ptr_add " + out.name + ", " + lanes.name + " : " + out.type + ", " + lanes.type);
    Value flat = reshape(result, {countOf(shape)});
    line("tile.scatter " + flat.name + ", " + target + " : " + flat.type + ", " + out.type);
    expected = flat.at;
    return "func.func @program(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>, %out: !tile.ptr<i32>, %s: i32, %c: i1) attributes {tile.kernel} {\n" + body_ + "  return\n}\n";
  }
  bool inReach() const { return inReach_; }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  std::string fresh() { return "%v" + std::to_string(next_++); }
  void line(const std::string& text) { body_ += indent_ + text + "\n"; }

  static std::string typeOf(const Shape& shape, const std::string& element) {
    std::string t = "tensor<";
    for (int64_t d : shape) t += std::to_string(d) + "x";
    return t + element + ">";
  }
  static std::string elementOf(const Value& v) {
    const size_t x = v.type.find("x!") != std::string::npos ? v.type.find("x!") : v.type.find_last_of('x');
    return v.type.substr(x + 1, v.type.size() - x - 2);
  }
  bool isPointer(const Value& v) const { return v.type.find("ptr") != std::string::npos; }

  // ---- integers

  Value iota(int64_t n, const std::string& element) {
    const int64_t start = pick(2) ? 0 : static_cast<int64_t>(pick(20));
    Value v{fresh(), typeOf({n}, element), {n}, {}};
    line(v.name + " = tile.iota from " + std::to_string(lanesOnly_ ? start : 0) + " : " + v.type);
    for (int64_t i = 0; i < n; ++i) v.at.push_back(i + (lanesOnly_ ? start : 0));
    return v;
  }

  Value splat(const std::string& scalar, const std::string& element, const Shape& shape, int64_t value = 0) {
    Value v{fresh(), typeOf(shape, element), shape, std::vector<int64_t>(static_cast<size_t>(countOf(shape)), value)};
    line(v.name + " = tile.splat " + scalar + " : " + element + " -> " + v.type);
    return v;
  }

  Value binary(const std::string& op, const Value& a, const Value& b) {
    Value v{fresh(), a.type, a.shape, a.at};
    line(v.name + " = arith." + op + " " + a.name + ", " + b.name + " : " + a.type);
    for (size_t i = 0; i < v.at.size(); ++i) v.at[i] = op == "addi" ? a.at[i] + b.at[i] : op == "subi" ? a.at[i] - b.at[i] : a.at[i] * b.at[i];
    return v;
  }

  Value offsets(const Shape& shape, const std::string& element, int depth) {
    if (element == "i64" && depth > 0 && pick(3) == 0) {
      Value narrow = offsets(shape, "i32", depth - 1);
      Value v{fresh(), typeOf(shape, "i64"), shape, narrow.at};
      line(v.name + " = arith.extsi " + narrow.name + " : " + narrow.type + " to " + v.type);
      return v;
    }
    switch (depth == 0 ? pick(3) : pick(8)) {
      case 0: {
        lanesOnly_ = true;
        Value v = reshape(iota(countOf(shape), element), shape);
        lanesOnly_ = false;
        return v;
      }
      case 1: {
        const int64_t k = static_cast<int64_t>(pick(30)) - 10;
        Value v{fresh(), typeOf(shape, element), shape, std::vector<int64_t>(static_cast<size_t>(countOf(shape)), k)};
        line(v.name + " = arith.constant dense<" + std::to_string(k) + "> : " + v.type);
        return v;
      }
      case 2: {
        if (element == "i32") return splat("%s", "i32", shape, kScalar);
        const std::string wide = fresh();
        line(wide + " = arith.extsi %s : i32 to i64");
        return splat(wide, "i64", shape, kScalar);
      }
      case 3: return binary("addi", offsets(shape, element, depth - 1), offsets(shape, element, depth - 1));
      case 4: return binary("subi", offsets(shape, element, depth - 1), offsets(shape, element, depth - 1));
      case 5: {  // times a scalar: what splits; or element by element: a leaf
        Value a = offsets(shape, element, depth - 1);
        return binary("muli", a, offsets(shape, element, pick(2) ? 0 : depth - 1));
      }
      case 6: return transposed(shape, [&](const Shape& from) { return offsets(from, element, depth - 1); });
      default: return broadcasted(shape, [&](const Shape& from) { return offsets(from, element, depth - 1); });
    }
  }

  // ---- shape operations, on integers and pointers alike

  Value reshape(const Value& a, const Shape& shape) {
    if (a.shape == shape) return a;
    Value v{fresh(), typeOf(shape, elementOf(a)), shape, a.at};
    line(v.name + " = tile.reshape " + a.name + " : " + a.type + " -> " + v.type);
    return v;
  }

  template <class Make>
  Value broadcasted(const Shape& shape, Make&& make) {
    Shape from = shape;
    const size_t d = pick(shape.size());
    from[d] = 1;
    Value a = make(from);
    Value v{fresh(), typeOf(shape, elementOf(a)), shape, {}};
    line(v.name + " = tile.broadcast " + a.name + " : " + a.type + " -> " + v.type);
    forEach(shape, [&](Shape coord) {
      coord[d] = 0;
      v.at.push_back(a.at[index(from, coord)]);
    });
    return v;
  }

  template <class Make>
  Value transposed(const Shape& shape, Make&& make) {
    const size_t rank = shape.size();
    Shape from(shape.rbegin(), shape.rend());
    Value a = make(from);
    Value v{fresh(), typeOf(shape, elementOf(a)), shape, {}};
    std::string permutation;
    for (size_t d = 0; d < rank; ++d) permutation += (d ? ", " : "") + std::to_string(rank - 1 - d);
    line(v.name + " = tile.trans " + a.name + ", [" + permutation + "] : " + a.type + " -> " + v.type);
    forEach(shape, [&](const Shape& coord) { v.at.push_back(a.at[index(from, Shape(coord.rbegin(), coord.rend()))]); });
    return v;
  }

  static size_t index(const Shape& shape, const Shape& coord) {
    int64_t i = 0;
    for (size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + coord[d];
    return static_cast<size_t>(i);
  }
  template <class F>
  static void forEach(const Shape& shape, F&& f) {
    Shape coord(shape.size(), 0);
    for (;;) {
      f(coord);
      size_t d = shape.size();
      while (d > 0 && ++coord[d - 1] == shape[d - 1]) coord[--d] = 0;
      if (d == 0) return;
    }
  }

  // ---- pointers

  Value advanced(const Value& p, const Value& o) {
    Value v{fresh(), p.type, p.shape, p.at};
    line(v.name + " = tile.ptr_add " + p.name + ", " + o.name + " : " + p.type + ", " + o.type);
    for (size_t i = 0; i < v.at.size(); ++i) v.at[i] += o.at[i];
    return v;
  }

  Value chosen(const Value& a, const Value& b) {
    Value v{fresh(), a.type, a.shape, a.at};
    if (pick(2)) {  // the argument %c is true
      line(v.name + " = arith.select %c, " + a.name + ", " + b.name + " : " + a.type);
      return v;
    }
    Value x = offsets(a.shape, "i32", 1), y = offsets(a.shape, "i32", 1);
    const std::string mask = fresh(), maskType = typeOf(a.shape, "i1");
    line(mask + " = arith.cmpi slt, " + x.name + ", " + y.name + " : " + x.type);
    line(v.name + " = arith.select " + mask + ", " + a.name + ", " + b.name + " : " + maskType + ", " + a.type);
    for (size_t i = 0; i < v.at.size(); ++i) v.at[i] = x.at[i] < y.at[i] ? a.at[i] : b.at[i];
    return v;
  }

  Value pointers(const Shape& shape, int depth) {
    switch (depth == 0 ? 0 : pick(7)) {
      case 0: {
        const bool second = pick(2);
        return splat(second ? "%q" : "%p", "!tile.ptr<i32>", shape, second ? kSecond : 0);
      }
      case 1:
      case 2: return advanced(pointers(shape, depth - 1), offsets(shape, pick(2) ? "i32" : "i64", 2));
      case 3: return chosen(pointers(shape, depth - 1), pointers(shape, depth - 1));
      case 4: return branch(shape, depth);
      case 5: return transposed(shape, [&](const Shape& from) { return pointers(from, depth - 1); });
      default: return broadcasted(shape, [&](const Shape& from) { return pointers(from, depth - 1); });
    }
  }

  Value branch(const Shape& shape, int depth) {
    const std::string type = typeOf(shape, "!tile.ptr<i32>");
    Value v{fresh(), type, shape, {}};
    line(v.name + " = scf.if %c -> (" + type + ") {");
    const std::string before = indent_;
    indent_ += "  ";
    Value taken = pointers(shape, depth - 1);
    line("scf.yield " + taken.name + " : " + type);
    indent_ = before;
    line("} else {");
    indent_ += "  ";
    Value other = pointers(shape, depth - 1);
    line("scf.yield " + other.name + " : " + type);
    indent_ = before;
    line("}");
    v.at = taken.at;
    return v;
  }

  /// Three rounds that advance the pointers, by the same step or by another per lane.
  Value loop(const Value& start) {
    Value v{fresh(), start.type, start.shape, start.at};
    const std::string low = fresh(), high = fresh(), one = fresh(), carried = fresh();
    line(low + " = arith.constant 0 : i32");
    line(high + " = arith.constant 3 : i32");
    line(one + " = arith.constant 1 : i32");
    line(v.name + " = scf.for %i" + low.substr(1) + " = " + low + " to " + high + " step " + one + " iter_args(" + carried + " = " + start.name + ") -> (" + start.type + ") : i32 {");
    const std::string before = indent_;
    indent_ += "  ";
    Value inside{carried, start.type, start.shape, start.at};
    Value step = offsets(start.shape, pick(2) ? "i32" : "i64", static_cast<int>(pick(3)));
    Value next = advanced(inside, step);
    line("scf.yield " + next.name + " : " + next.type);
    indent_ = before;
    line("}");
    for (size_t i = 0; i < v.at.size(); ++i) v.at[i] += 3 * step.at[i];
    return v;
  }

  Value gather(const Value& p) {
    for (int64_t o : p.at) inReach_ &= o > -kReach && o < kReach;
    Value v{fresh(), typeOf(p.shape, "i32"), p.shape, p.at};
    line(v.name + " = tile.gather " + p.name + " : " + p.type + " -> " + v.type);
    return v;
  }

  std::mt19937_64 random_;
  std::string body_, indent_ = "  ";
  int next_ = 0;
  bool inReach_ = true, lanesOnly_ = false;
};

TEST(PointerPrograms, EveryLaneReachesItsElement) {
  const char* more = std::getenv("TILE_FUZZ_ITERATIONS");
  const uint64_t iterations = more ? std::strtoull(more, nullptr, 10) : 300;
  const Target host = lookupTarget("host:x86-64").value_or_throw();
  std::vector<int32_t> data(2 * kReach);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int32_t>(static_cast<int64_t>(i) - kReach);
  uint64_t ran = 0;
  for (uint64_t seed = 0; seed < iterations; ++seed) {
    Program program(seed);
    std::vector<int64_t> expected;
    const std::string text = program.make(expected);
    if (!program.inReach()) continue;
    ++ran;
    auto binary = compileText(text, "program.mlir", host, {});
    ASSERT_TRUE(binary) << "seed " << seed << "\n" << text << binary.error().to_string();
    auto code = loadHostObject(binary->bytes, binary->entry);
    ASSERT_TRUE(code) << code.error().to_string();

    std::vector<int32_t> out(expected.size(), -123456789);
    auto address = [](const void* p) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p)); };
    const uint64_t slots[] = {address(&data[kReach]), address(&data[kReach + kSecond]), address(out.data()), kScalar, 1};
    HostProgram where{{0, 0, 0}, {1, 1, 1}};
    std::unique_ptr<void, decltype(&std::free)> arena(std::aligned_alloc(64, (binary->arena_bytes + 127) / 64 * 64), &std::free);
    code->entry(slots, &where, arena.get());
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], expected[i]) << "seed " << seed << " element " << i << "\n" << text;
  }
  EXPECT_GT(ran, iterations / 2);
}

}  // namespace
}  // namespace tile::ir
