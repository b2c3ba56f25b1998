// random_test.cpp - random tile programs, executed by the host back end and by the simulated GPU: the results must be
// the same to the bit (integers only). TILE_RANDOM_PROGRAMS=n runs n programs, TILE_RANDOM_SEED=s starts at seed s.
#include <gtest/gtest.h>

#include <random>

#include "compiler/targets/host_loader.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/settings.h"
#include "tests/gpu/simt.h"

namespace tile::testing::random_test {
namespace {

using Shape = std::vector<int64_t>;
constexpr int kInput = 4096, kOutputs = 3, kOutput = 8192;

class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {
    read("x0", pickShape(), "in");
    for (int step = 0; step < 14; ++step) grow();
    for (int i = 0; i < kOutputs; ++i) {
      const Tile& t = pick();
      std::string at = fresh();
      text_ += rowMajorIndex(at, t.shape) +
               fmt::format(
                   "  %c{0} = arith.constant dense<{1}> : {2}\n  %p{0} = arith.addi %{0}, %c{0} : {2}\n"
                   "  tile.scatter %{3}, %out offsets %p{0} : {2} : {2}, !tile.ptr<i32>\n",
                   at, i * kOutput, type(t.shape), t.name);
    }
  }
  std::string text() const {
    return kernel(
        "%in: !tile.ptr<i32> {tile.align = 16 : i32}, %tmp: !tile.ptr<i32> {tile.align = 16 : i32}, "
        "%out: !tile.ptr<i32> {tile.align = 16 : i32}",
        text_);
  }

 private:
  struct Tile {
    std::string name;
    Shape shape;
  };

  int64_t number(int64_t below) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(below)); }
  std::string fresh() { return "v" + std::to_string(next_++); }
  static std::string type(const Shape& shape, const char* element = "i32") { return tensor(shape, element); }
  const Tile& pick() { return tiles_[number(static_cast<int64_t>(tiles_.size()))]; }
  void add(const std::string& name, const Shape& shape) { tiles_.push_back({name, shape}); }
  void line(const std::string& text) { text_ += "  " + text + "\n"; }

  Shape pickShape() {
    static const std::vector<Shape> shapes = {{64},     {100},    {1024},  {7},        {16, 32},  {5, 7},
                                              {64, 48}, {1, 500}, {33, 4}, {4, 8, 16}, {3, 5, 6}, {128, 8}};
    return shapes[number(static_cast<int64_t>(shapes.size()))];
  }
  void read(const std::string& name, const Shape& shape, const char* from) {
    text_ += readTile(name, from, shape, "i32");
    add(name, shape);
  }
  // A tile of the shape: one there is, or a fresh one.
  std::string some(const Shape& shape) {
    std::vector<std::string> fits;
    for (const Tile& t : tiles_)
      if (t.shape == shape) fits.push_back(t.name);
    if (!fits.empty() && number(4)) return fits[number(static_cast<int64_t>(fits.size()))];
    std::string name = fresh();
    if (number(2))
      text_ += rowMajorIndex(name, shape);
    else
      text_ += readTile(name, "in", shape, "i32");
    add(name, shape);
    return name;
  }
  // Values in [0, bound) of the tile's shape.
  std::string bounded(const Tile& t, int64_t bound) {
    std::string c = fresh(), r = fresh();
    line(fmt::format("%{} = arith.constant dense<{}> : {}", c, bound, type(t.shape)));
    line(fmt::format("%{} = arith.remui %{}, %{} : {}", r, t.name, c, type(t.shape)));
    return r;
  }

  void grow() {
    Tile t = pick();
    std::string r = fresh();
    int rank = static_cast<int>(t.shape.size()), axis = static_cast<int>(number(rank));
    std::string T = type(t.shape);
    switch (number(13)) {
      case 0:
      case 1: {
        static const char* ops[] = {"addi", "subi", "muli", "xori", "maxsi", "minui"};
        line(fmt::format("%{} = arith.{} %{}, %{} : {}", r, ops[number(6)], t.name, some(t.shape), T));
        return add(r, t.shape);
      }
      case 2: {
        std::vector<int> order(rank);
        for (int i = 0; i < rank; ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random_);
        Shape shape;
        for (int d : order) shape.push_back(t.shape[d]);
        line(fmt::format("%{} = tile.trans %{}, [{}] : {} -> {}", r, t.name, fmt::join(order, ", "), T, type(shape)));
        return add(r, shape);
      }
      case 3: {
        int64_t n = count(t.shape);
        std::vector<int64_t> divisors;
        for (int64_t d = 1; d <= n; ++d)
          if (n % d == 0) divisors.push_back(d);
        int64_t a = divisors[number(static_cast<int64_t>(divisors.size()))];
        Shape shape = number(3) ? Shape{a, n / a} : Shape{n};
        line(fmt::format("%{} = tile.reshape %{} : {} -> {}", r, t.name, T, type(shape)));
        return add(r, shape);
      }
      case 4: {
        Shape small = t.shape;
        small[axis] = 1;
        line(fmt::format("%{} = tile.reduce %{} axis {} : ({}) -> {} {{", r, t.name, axis, T, type(small)));
        line("^bb0(%p: i32, %q: i32):");
        line(fmt::format("%r = arith.{} %p, %q : i32", number(2) ? "addi" : "maxsi"));
        line("tile.yield %r : i32");
        line("}");
        add(r, small);
        if (number(2)) {
          std::string b = fresh();
          line(fmt::format("%{} = tile.broadcast %{} : {} -> {}", b, r, type(small), T));
          add(b, t.shape);
        }
        return;
      }
      case 5:
        line(fmt::format("%{} = tile.scan %{} axis {} {}: ({}) -> {} {{", r, t.name, axis, number(2) ? "reverse " : "",
                         T, T));
        line("^bb0(%p: i32, %q: i32):");
        line("%r = arith.addi %p, %q : i32");
        line("tile.yield %r : i32");
        line("}");
        return add(r, t.shape);
      case 6: {
        Shape shape = t.shape;
        std::vector<int64_t> offset;
        for (int64_t& dim : shape) {
          int64_t size = 1 + number(dim);
          offset.push_back(number(dim - size + 1));
          dim = size;
        }
        line(fmt::format("%{} = tile.extract %{}[{}] : {} -> {}", r, t.name, fmt::join(offset, ", "), T, type(shape)));
        return add(r, shape);
      }
      case 7: {
        Shape shape = t.shape;
        shape[axis] *= 2;
        if (count(shape) > 4096) return;
        line(fmt::format("%{} = tile.cat %{}, %{} axis {} : {}, {} -> {}", r, t.name, some(t.shape), axis, T, T,
                         type(shape)));
        return add(r, shape);
      }
      case 8: {
        std::string at = bounded({some(t.shape), t.shape}, t.shape[axis]);
        line(fmt::format("%{} = tile.take %{}, %{} axis {} : {}, {} -> {}", r, t.name, at, axis, T, T, T));
        return add(r, t.shape);
      }
      case 9: {
        std::string at = bounded(t, kInput), m = fresh();
        line(fmt::format("%{} = arith.cmpi sgt, %{}, %{} : {}", m, some(t.shape), some(t.shape), T));
        line(fmt::format("%{} = tile.gather %in offsets %{} : {} mask %{} : {} other %{} : {} : !tile.ptr<i32> -> {}",
                         r, at, T, m, type(t.shape, "i1"), some(t.shape), T, T));
        return add(r, t.shape);
      }
      case 10: {  // through memory and back in another order
        std::string at = fresh(), c = fresh(), back = fresh();
        text_ += rowMajorIndex(at, t.shape);
        line(fmt::format("tile.scatter %{}, %tmp offsets %{} : {} : {}, !tile.ptr<i32>", t.name, at, T, T));
        line(fmt::format("%{} = arith.constant dense<{}> : {}", c, count(t.shape) - 1, T));
        line(fmt::format("%{} = arith.subi %{}, %{} : {}", back, c, at, T));
        line(fmt::format("%{} = tile.gather %tmp offsets %{} : {} : !tile.ptr<i32> -> {}", r, back, T, T));
        return add(r, t.shape);
      }
      case 11: {  // turned along an axis; what comes to be in front of its start is put nowhere
        const int64_t n = t.shape[axis];
        Shape row(t.shape.size(), 1), flat{n};
        row[axis] = n;
        const std::string i = fresh(), far = fresh(), moved = fresh(), size = fresh(), turned = fresh(), less = fresh(),
                          left = fresh(), along = fresh(), at = fresh();
        line(fmt::format("%{} = tile.iota : {}", i, type(flat)));
        line(fmt::format("%{} = arith.constant dense<{}> : {}", far, number(n), type(flat)));
        line(fmt::format("%{} = arith.addi %{}, %{} : {}", moved, i, far, type(flat)));
        line(fmt::format("%{} = arith.constant dense<{}> : {}", size, n, type(flat)));
        line(fmt::format("%{} = arith.remui %{}, %{} : {}", turned, moved, size, type(flat)));
        line(fmt::format("%{} = arith.constant dense<{}> : {}", less, number(n), type(flat)));
        line(fmt::format("%{} = arith.subi %{}, %{} : {}", left, turned, less, type(flat)));
        line(fmt::format("%{} = tile.reshape %{} : {} -> {}", along, left, type(flat), type(row)));
        line(fmt::format("%{} = tile.broadcast %{} : {} -> {}", at, along, type(row), T));
        line(fmt::format("%{} = tile.put %{} at %{} into %{} axis {} : ({}, {}, {}) -> {}", r, t.name, at, some(t.shape),
                         axis, T, T, T, T));
        return add(r, t.shape);
      }
      default: {
        std::string lo = fresh(), hi = fresh(), one = fresh(), s = fresh(), v = fresh(), other = some(t.shape);
        line(
            fmt::format("%{} = arith.constant 0 : i32\n  %{} = arith.constant {} : i32\n  %{} = arith.constant 1 : i32",
                        lo, hi, number(4), one));
        line(fmt::format("%{} = scf.for %i{} = %{} to %{} step %{} iter_args(%{} = %{}) -> ({}) : i32 {{", r, r, lo, hi,
                         one, s, t.name, T));
        if (number(2)) {
          Shape small = t.shape;
          small[axis] = 1;
          std::string m = fresh(), b = fresh();
          line(fmt::format("%{} = tile.reduce %{} axis {} : ({}) -> {} {{", m, s, axis, T, type(small)));
          line("^bb0(%p: i32, %q: i32):\n  %rr = arith.addi %p, %q : i32\n  tile.yield %rr : i32\n  }");
          line(fmt::format("%{} = tile.broadcast %{} : {} -> {}", b, m, type(small), T));
          line(fmt::format("%{} = arith.subi %{}, %{} : {}", v, b, other, T));
        } else {
          std::string w = fresh(), k = fresh();
          line(fmt::format("%{} = tile.splat %i{} : i32 -> {}", k, r, T));
          line(fmt::format("%{} = arith.xori %{}, %{} : {}", w, s, other, T));
          line(fmt::format("%{} = arith.addi %{}, %{} : {}", v, w, k, T));
        }
        line(fmt::format("scf.yield %{} : {}", v, T));
        line("}");
        return add(r, t.shape);
      }
    }
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<Tile> tiles_;
  int next_ = 0;
};

struct Memory {
  GuardedBuffer in{4 * kInput}, tmp{4 * kOutput}, out{4 * kOutput * kOutputs};
  Memory() {
    std::mt19937 random(11);
    for (int i = 0; i < kInput; ++i) in.as<int32_t>()[i] = static_cast<int32_t>(random() % 20001) - 10000;
    std::fill_n(out.as<int32_t>(), kOutput * kOutputs, -1);
  }
  std::vector<uint64_t> slots() const { return {slot(in.as<char>()), slot(tmp.as<char>()), slot(out.as<char>())}; }
};

void runOnHost(const std::string& text, const Memory& memory) {
  auto binary = ir::compileText(text, "kernel.mlir", *ir::lookupTarget("host"), {});
  ASSERT_TRUE(binary) << binary.error().to_string();
  auto code = ir::loadHostObject(binary->bytes, binary->entry);
  ASSERT_TRUE(code) << code.error().to_string();
  std::vector<char> arena(binary->arena_bytes + 64);
  HostProgram program{{0, 0, 0}, {1, 1, 1}};
  char* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(arena.data()) + 63) / 64 * 64);
  auto slots = memory.slots();
  code->entry(slots.data(), &program, aligned);
}

TEST(RandomPrograms, HostAndGpuAgree) {
  int first = setting("TILE_RANDOM_SEED", 1), programs = setting("TILE_RANDOM_PROGRAMS", 40);
  for (int seed = first; seed < first + programs; ++seed) {
    std::string text = Program(static_cast<uint32_t>(seed)).text();
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    Memory host, gpu;
    runOnHost(text, host);
    if (HasFatalFailure()) return;
    static const int warps[] = {4, 1, 8, 2, 12};
    try {
      SimtKernel(text, seed % 2 ? "sm_90a" : "sm_80", warps[seed % 5])
          .run(gpu.slots(), 1, 1, 1, static_cast<uint32_t>(seed));
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
    for (int i = 0; i < kOutput * kOutputs; ++i)
      ASSERT_EQ(gpu.out.as<int32_t>()[i], host.out.as<int32_t>()[i])
          << "output " << i / kOutput << " element " << i % kOutput;
  }
}

}  // namespace
}  // namespace tile::testing::random_test
