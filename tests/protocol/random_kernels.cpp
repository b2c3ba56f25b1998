// random_kernels.cpp - nests of loops and branches nobody would write: tiles held across them, read by warps and by
// products, addresses carried and read from memory.
#include <random>

#include "tests/protocol/kernels.h"

namespace tile::ir::protocol {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string body() {
    numbers_ = {"%c0", "%c1", "%x", "%y", "%n"};
    std::string result = block("%zero", 0);
    // One loop with copies at least: without, kernels have no roles.
    std::string last = loop(result, 2, /*mustCopy=*/true);
    return text_ + "    %r = arith.addf " + last + ", %zero : ACC\n";
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  std::string fresh() { return "%v" + std::to_string(next_++); }
  std::string number() { return numbers_[static_cast<size_t>(pick(static_cast<int>(numbers_.size())))]; }
  void line(const std::string& code) { text_ += "      " + code + "\n"; }

  std::string load() {
    static const char* views[] = {"%a", "%b", "%c"};
    std::string name = fresh();
    line(name + " = tile.load_shared " + views[pick(3)] + "[" + number() + ", " + number() + " : i32, i32] BOX");
    tiles_.push_back(name);
    return name;
  }
  std::string tile() {
    return tiles_.empty() || pick(3) == 0 ? load() : tiles_[static_cast<size_t>(pick(static_cast<int>(tiles_.size())))];
  }

  std::string product(const std::string& acc) {
    if (pick(5) == 0) {  // from accumulators
      std::string packed = fresh(), b = tile(), name = fresh();
      line(packed + " = arith.truncf " + acc + " : ACC to tensor<64x64xf16>");
      line(name + " = PRODUCT " + packed + ", " + b + ", %zero RS");
      return name;
    }
    std::string a = tile(), b = tile(), name = fresh();
    line(name + " = PRODUCT " + a + ", " + b + ", " + acc + " SS");
    return name;
  }

  std::string read(const std::string& acc) {
    std::string source = tile(), registers = fresh(), wide = fresh(), sum = fresh();
    line(registers + " = tile.smem_load " + source + " : SMEM -> tensor<64x64xf16>");
    line(wide + " = arith.extf " + registers + " : tensor<64x64xf16> to ACC");
    line(sum + " = arith.addf " + acc + ", " + wide + " : ACC");
    return sum;
  }

  void scalar() {
    std::string a = number(), b = number(), name = fresh();
    if (pick(2))
      line(name + " = tile.load %table[" + a + " : i32] : !tile.view<1xi32> -> i32");
    else
      line(name + " = arith." + (pick(2) ? "addi " : "subi ") + a + ", " + b + " : i32");
    numbers_.push_back(name);
  }

  /// At most six iterations.
  std::string bound() {
    if (pick(3) == 0) return "%n";
    std::string name = fresh();
    line(name + " = tile.load %table[" + number() + " : i32] : !tile.view<1xi32> -> i32");
    return name;
  }

  /// What a region defines is gone behind it.
  template <class Inside>
  std::string scoped(Inside inside) {
    auto numbers = numbers_, tiles = tiles_;
    std::string result = inside();
    numbers_ = numbers, tiles_ = tiles;
    return result;
  }

  std::string loop(const std::string& acc, int depth, bool mustCopy) {
    std::string high = bound(), iv = fresh(), in = fresh(), at = fresh(), out = fresh(), start = number();
    line(out + ":2 = scf.for " + iv + " = %c0 to " + high + " step %c1 iter_args(" + in + " = " + acc + ", " + at +
         " = " + start + ") -> (ACC, i32) : i32 {");
    scoped([&] {
      numbers_.push_back(iv), numbers_.push_back(at);
      if (mustCopy) load();
      std::string result = mustCopy ? product(in) : in;
      if (mustCopy) {
        std::string again = fresh();
        line(again + " = PRODUCT " + tiles_.back() + ", " + tiles_.back() + ", " + result + " SS");
        result = again;
      }
      result = block(result, depth + 1);
      line("scf.yield " + result + ", " + number() + " : ACC, i32");
      return result;
    });
    line(pick(2) ? "}" : "} {tile.stages = " + std::to_string(1 + pick(3)) + " : i32}");
    numbers_.push_back(out + "#1");
    return out + "#0";
  }

  std::string branch(const std::string& acc, int depth) {
    std::string condition = fresh(), out = fresh(), a = number(), b = number();
    line(condition + " = arith.cmpi slt, " + a + ", " + b + " : i32");
    line(out + " = scf.if " + condition + " -> ACC {");
    scoped([&] { return line("scf.yield " + block(acc, depth + 1) + " : ACC"), std::string(); });
    line("} else {");
    scoped([&] { return line("scf.yield " + (pick(2) ? acc : block(acc, depth + 1)) + " : ACC"), std::string(); });
    line("}");
    return out;
  }

  std::string block(std::string acc, int depth) {
    for (int statements = 1 + pick(4); statements > 0; --statements) {
      switch (pick(depth < 3 ? 8 : 5)) {
        case 0:
          load();
          break;
        case 1:
          scalar();
          break;
        case 2:
          acc = read(acc);
          break;
        case 3:
        case 4:
          acc = product(acc);
          break;
        case 5:
          acc = branch(acc, depth);
          break;
        default:
          acc = loop(acc, depth, false);
      }
    }
    return acc;
  }

  std::mt19937_64 random_;
  std::string text_;
  std::vector<std::string> numbers_, tiles_;
  int next_ = 0;
};

}  // namespace

TestKernel randomKernel(uint64_t seed) {
  return {"random " + std::to_string(seed), kernelText(Generator(seed).body()), trips({0, 1, 3}, {3, 2, 1})};
}

}  // namespace tile::ir::protocol
