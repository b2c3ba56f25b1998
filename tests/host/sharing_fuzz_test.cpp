// sharing_fuzz_test.cpp - random nests of loops and branches that carry several tiles, run by the host target and by a
// few lines of C++ that copy every value. What can go wrong is sharing: one buffer for two tiles that are both still
// wanted. TILE_FUZZ_PROGRAMS sets how many programs (default 150), TILE_FUZZ_SEED where they start.
#include <cstdlib>
#include <functional>
#include <random>

#include "host_kernel.h"

namespace tile::test::sharing_fuzz_test {
namespace {

constexpr int kN = 7;
using Tile = std::array<uint32_t, kN>;
using Environment = std::vector<Tile>;  // by value number
const std::string kType = "tensor<7xi32>";

/// Text of a program and, beside it, the steps that compute the same.
class Program {
 public:
  using Step = std::function<void(Environment&)>;

  explicit Program(uint32_t seed) : random_(seed) {
    std::vector<int> scope{add(), add()};
    steps_.push_back([a = scope[0], b = scope[1]](Environment& e) {
      for (int i = 0; i < kN; ++i)
        e[a][i] = static_cast<uint32_t>(i * 3 + 1), e[b][i] = static_cast<uint32_t>(100 - i * i);
    });
    line(1, "%v" + str(scope[0]) + " = tile.load %A[%c0 : i32] : !tile.view<1 x i32> -> " + kType);
    line(1, "%v" + str(scope[1]) + " = tile.load %A[%c7 : i32] : !tile.view<1 x i32> -> " + kType);
    body(scope, steps_, 1, 6);
    int result = pick(scope);
    for (int v : scope) {  // everything in sight counts
      int sum = add();
      line(1, "%v" + str(sum) + " = arith.addi %v" + str(result) + ", %v" + str(v) + " : " + kType);
      steps_.push_back([=](Environment& e) {
        for (int i = 0; i < kN; ++i) e[sum][i] = e[result][i] + e[v][i];
      });
      result = sum;
    }
    result_ = result;
    line(1, "tile.store %v" + str(result) + ", %O[%c0 : i32] : " + kType + ", !tile.view<1 x i32>");
  }

  std::string text() const {
    return "func.func @k(%A: !tile.view<1 x i32>, %O: !tile.view<1 x i32>, %t: i32) attributes {tile.kernel} {\n  %c0 "
           "= arith.constant 0 : i32\n  %c1 = arith.constant 1 : i32\n  %c7 = arith.constant 7 : i32\n"
           "  %rev = arith.constant dense<[6, 5, 4, 3, 2, 1, 0]> : " +
           kType + "\n" + text_ + "  return\n}\n";
  }

  Tile evaluate(int t) {
    trips_ = t;
    Environment e(values_);
    for (auto& step : steps_) step(e);
    return e[result_];
  }

 private:
  static std::string str(int n) { return std::to_string(n); }
  int add() { return values_++; }
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  int pick(const std::vector<int>& scope) { return scope[below(static_cast<int>(scope.size()))]; }
  void line(int depth, const std::string& s) { text_ += std::string(2 * depth, ' ') + s + "\n"; }

  /// Appends `count` statements; `scope` grows by what they define.
  void body(std::vector<int>& scope, std::vector<Step>& steps, int depth, int count) {
    for (int n = 0; n < count; ++n) switch (below(depth < 4 ? 8 : 5)) {
        case 0:
        case 1:
        case 2:
          elementwise(scope, steps, depth);
          break;
        case 3:
        case 4:
          reordering(scope, steps, depth);
          break;
        case 5:
        case 6:
          loop(scope, steps, depth);
          break;
        default:
          branch(scope, steps, depth);
      }
  }

  void elementwise(std::vector<int>& scope, std::vector<Step>& steps, int depth) {
    static const char* ops[] = {"addi", "subi", "xori", "muli"};
    int op = below(4), a = pick(scope), b = pick(scope), r = add();
    line(depth, "%v" + str(r) + " = arith." + ops[op] + " %v" + str(a) + ", %v" + str(b) + " : " + kType);
    steps.push_back([=](Environment& e) {
      for (int i = 0; i < kN; ++i) {
        uint32_t x = e[a][i], y = e[b][i];
        e[r][i] = op == 0 ? x + y : op == 1 ? x - y : op == 2 ? x ^ y : x * y;
      }
    });
    scope.push_back(r);
  }

  void reordering(std::vector<int>& scope, std::vector<Step>& steps, int depth) {
    int a = pick(scope), r = add();
    std::string v = "%v" + str(a), name = "%v" + str(r);
    const int kind = below(3);
    if (kind == 2) {
      // A sum may make the tile it reads; what it is added to may be one of the tiles that one is made from.
      const int b = pick(scope);
      line(depth, name + "s = tile.reduce " + v + " axis 0 : (" + kType + ") -> tensor<1xi32> {");
      line(depth, "^bb0(" + name + "x: i32, " + name + "y: i32):");
      line(depth + 1, name + "z = arith.addi " + name + "x, " + name + "y : i32");
      line(depth + 1, "tile.yield " + name + "z : i32");
      line(depth, "}");
      line(depth, name + "b = tile.broadcast " + name + "s : tensor<1xi32> -> " + kType);
      line(depth, name + " = arith.addi %v" + str(b) + ", " + name + "b : " + kType);
      steps.push_back([=](Environment& e) {
        uint32_t sum = 0;
        for (uint32_t x : e[a]) sum += x;
        for (int i = 0; i < kN; ++i) e[r][i] = e[b][i] + sum;
      });
    } else if (kind == 1) {
      line(depth, name + " = tile.take " + v + ", %rev axis 0 : " + kType + ", " + kType + " -> " + kType);
      steps.push_back([=](Environment& e) {
        for (int i = 0; i < kN; ++i) e[r][i] = e[a][kN - 1 - i];
      });
    } else {
      line(depth, name + "e = tile.extract " + v + "[2] : " + kType + " -> tensor<1xi32>");
      line(depth, name + "b = tile.broadcast " + name + "e : tensor<1xi32> -> " + kType);
      line(depth, name + " = arith.addi " + v + ", " + name + "b : " + kType);
      steps.push_back([=](Environment& e) {
        for (int i = 0; i < kN; ++i) e[r][i] = e[a][i] + e[a][2];
      });
    }
    scope.push_back(r);
  }

  void loop(std::vector<int>& scope, std::vector<Step>& steps, int depth) {
    int count = 1 + below(3), id = values_;
    std::vector<int> inits, args, results, yields, inner = scope;
    for (int i = 0; i < count; ++i) inits.push_back(pick(scope)), args.push_back(add()), results.push_back(add());
    inner.insert(inner.end(), args.begin(), args.end());
    std::string list, types, iters;
    for (int i = 0; i < count; ++i) {
      std::string comma = i ? ", " : "";
      list += comma + "%v" + str(results[i]);
      iters += comma + "%v" + str(args[i]) + " = %v" + str(inits[i]);
      types += comma + kType;
    }
    line(depth, list + " = scf.for %i" + str(id) + " = %c0 to %t step %c1 iter_args(" + iters + ") -> (" + types +
                    ") : i32 {");
    std::vector<Step> inside;
    body(inner, inside, depth + 1, 1 + below(4));
    std::string yielded;
    for (int i = 0; i < count; ++i) {
      yields.push_back(below(3) ? pick(inner) : pick(args));
      yielded += (i ? ", " : "") + ("%v" + str(yields[i]));
    }
    line(depth + 1, "scf.yield " + yielded + " : " + types);
    line(depth, "}");
    steps.push_back([=, this](Environment& e) {
      std::vector<Tile> carried;
      for (int v : inits) carried.push_back(e[v]);
      for (int k = 0; k < trips_; ++k) {
        for (int i = 0; i < count; ++i) e[args[i]] = carried[i];
        for (auto& step : inside) step(e);
        for (int i = 0; i < count; ++i) carried[i] = e[yields[i]];
      }
      for (int i = 0; i < count; ++i) e[results[i]] = carried[i];
    });
    scope.insert(scope.end(), results.begin(), results.end());
  }

  void branch(std::vector<int>& scope, std::vector<Step>& steps, int depth) {
    int count = 1 + below(2), at = below(4), id = values_;
    std::vector<int> results, yields[2];
    std::string list, types;
    for (int i = 0; i < count; ++i) {
      results.push_back(add());
      list += (i ? ", " : "") + ("%v" + str(results[i]));
      types += (i ? ", " : "") + kType;
    }
    line(depth, "%k" + str(id) + " = arith.constant " + str(at) + " : i32");
    line(depth, "%p" + str(id) + " = arith.cmpi sgt, %t, %k" + str(id) + " : i32");
    line(depth, list + " = scf.if %p" + str(id) + " -> (" + types + ") {");
    std::vector<Step> inside[2];
    for (int side : {0, 1}) {
      std::vector<int> inner = scope;
      body(inner, inside[side], depth + 1, below(3));
      std::string yielded;
      for (int i = 0; i < count; ++i) {
        yields[side].push_back(pick(inner));
        yielded += (i ? ", " : "") + ("%v" + str(yields[side][i]));
      }
      line(depth + 1, "scf.yield " + yielded + " : " + types);
      line(depth, side == 0 ? "} else {" : "}");
    }
    steps.push_back([=, this, then = inside[0], otherwise = inside[1], a = yields[0], b = yields[1]](Environment& e) {
      bool yes = trips_ > at;
      for (auto& step : yes ? then : otherwise) step(e);
      std::vector<Tile> made;
      for (int v : yes ? a : b) made.push_back(e[v]);
      for (int i = 0; i < count; ++i) e[results[i]] = made[i];
    });
    scope.insert(scope.end(), results.begin(), results.end());
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<Step> steps_;
  int values_ = 0, result_ = 0, trips_ = 0;
};

TEST(HostSharing, RandomNestsKeepEveryValueThatIsStillWanted) {
  auto setting = [](const char* name, int otherwise) {
    return std::getenv(name) ? std::atoi(std::getenv(name)) : otherwise;
  };
  int first = setting("TILE_FUZZ_SEED", 1), count = setting("TILE_FUZZ_PROGRAMS", 150);
  std::array<uint32_t, 2 * kN> in;
  for (int i = 0; i < kN; ++i)
    in[i] = static_cast<uint32_t>(i * 3 + 1), in[kN + i] = static_cast<uint32_t>(100 - i * i);
  for (int seed = first; seed < first + count; ++seed) {
    Program program(static_cast<uint32_t>(seed));
    HostKernel kernel(program.text(), "host:x86-64");
    ASSERT_TRUE(kernel.ok()) << kernel.error << program.text();
    for (int t : {0, 1, 2, 3}) {
      Tile out{};
      kernel.run(Args().view(in.data(), {2 * kN}).view(out.data(), {kN}).scalar(t));
      ASSERT_EQ(out, program.evaluate(t)) << "seed " << seed << ", " << t << " trips\n" << program.text();
    }
  }
}

}  // namespace
}  // namespace tile::test::sharing_fuzz_test
