// Code of a size that programs reach while they are traced compiles in a moment. Analyses that walk a loop until
// nothing changes must not begin anew with every iteration of the loop around it: 20 loops in each other would take
// 2^20 walks.
#include <gtest/gtest.h>

#include "compiler/compiler.h"

namespace tile::ir {
namespace {

std::string at(const std::string& name, int depth) { return "%" + name + std::to_string(depth); }

/// A kernel with `opening(d)` for every depth, `inside` in the innermost loop, and `closing(d)` behind it.
template <class Opening, class Closing>
void compileNest(int deep, Opening opening, const std::string& inside, Closing closing) {
  std::string text = R"(
func.func @nest(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<128xi32>
)";
  for (int depth = 1; depth <= deep; ++depth) text += opening(depth);
  text += inside;
  for (int depth = deep; depth > 0; --depth) text += closing(depth);
  text += "  return\n}\n";
  for (const char* target : {"host", "sm_80", "sm_90a"}) {
    auto binary = compileText(text, "nest.mlir", lookupTarget(target).value_or_throw(), {});
    EXPECT_TRUE(binary) << target << ": " << binary.error().to_string();
  }
}

/// Reads and writes that meet.
const std::string kShift = R"(
  %x = tile.gather %p offsets %i : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %there = arith.addi %i, %i : tensor<128xi32>
  tile.scatter %x, %p offsets %there : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
)";

// The condition of each is about what memory says.
TEST(Nests, OfLoopsWithConditions) {
  auto opening = [](int d) {
    const std::string k = at("k", d), next = at("next", d);
    return "scf.while (" + k + " = %c0) : (i32) -> i32 {\n  " + at("go", d) + " = arith.cmpi slt, " + k +
           ", %n : i32\n  scf.condition(" + at("go", d) + ") " + k + " : i32\n} do {\n^bb0(" + k + ": i32):\n  " +
           at("q", d) + " = tile.ptr_add %p, " + k + " : !tile.ptr<f32>, i32\n  " + at("y", d) + " = tile.gather " +
           at("q", d) + " : !tile.ptr<f32> -> f32\n  " + at("z", d) + " = arith.fptosi " + at("y", d) +
           " : f32 to i32\n  " + next + " = arith.addi " + k + ", " + at("z", d) + " : i32\n";
  };
  compileNest(20, opening, kShift, [](int d) { return "  scf.yield " + at("next", d) + " : i32\n}\n"; });
}

// Each hands on a number that the loops around it begin with.
TEST(Nests, OfCountingLoops) {
  auto opening = [](int d) {
    return at("r", d) + " = scf.for " + at("k", d) + " = %c0 to %n step %c1 iter_args(" + at("s", d) + " = " +
           (d == 1 ? "%c1" : at("s", d - 1)) + ") -> (i32) : i32 {\n";
  };
  auto closing = [](int d) {
    const std::string made = d == 20 ? at("s", d) : at("r", d + 1);
    return "  " + at("t", d) + " = arith.addi " + made + ", " + at("k", d) + " : i32\n  scf.yield " + at("t", d) +
           " : i32\n}\n";
  };
  compileNest(20, opening, kShift, closing);
}

// A row of continue_if leaves as many branches. All sides of each may share a tile's memory on hosts.
TEST(Nests, OfBranches) {
  auto opening = [](int d) {
    return "  " + at("go", d) + " = arith.cmpi slt, %n, %c" + std::to_string(d % 2) + " : i32\n" + at("x", d) +
           " = scf.if " + at("go", d) + " -> (tensor<128xi32>) {\n";
  };
  auto closing = [](int d) {
    return "  scf.yield " + (d == 100 ? "%i" : at("x", d + 1)) + " : tensor<128xi32>\n} else {\n  " + at("y", d) +
           " = arith.muli %i, %i : tensor<128xi32>\n  scf.yield " + at("y", d) + " : tensor<128xi32>\n}\n" +
           (d > 1 ? ""
                  : "  %f = tile.gather %p offsets %x1 : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>\n"
                    "  tile.scatter %f, %p offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>\n");
  };
  compileNest(100, opening, "", closing);
}

// Each step of a pointer is a sum of all in front of it.
TEST(Rows, OfSteps) {
  std::string steps;
  for (int i = 1; i <= 700; ++i)
    steps += at("q", i) + " = tile.ptr_add " + (i == 1 ? std::string("%p") : at("q", i - 1)) +
             ", %n : !tile.ptr<f32>, i32\n  tile.scatter %x, " + at("q", i) +
             " offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>\n";
  auto none = [](int) { return std::string(); };
  compileNest(0, none, kShift + steps, none);
}

}  // namespace
}  // namespace tile::ir
