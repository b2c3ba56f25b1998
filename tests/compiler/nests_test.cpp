// Analyses that walk a loop until nothing changes must not begin anew with every iteration of the loop around it: 20
// loops in each other would take 2^20 walks, longer than anybody waits.
#include <gtest/gtest.h>

#include "compiler/compiler.h"

namespace tile::ir {
namespace {

constexpr int kDeep = 20;

std::string at(const std::string& name, int depth) { return "%" + name + std::to_string(depth); }

/// A kernel with `opening(d)` for every depth, `inside` in the innermost loop, and `closing(d)` behind it.
template <class Opening, class Closing>
void compileNest(Opening opening, const std::string& inside, Closing closing) {
  std::string text = R"(
func.func @nest(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<128xi32>
)";
  for (int depth = 1; depth <= kDeep; ++depth) text += opening(depth);
  text += inside;
  for (int depth = kDeep; depth > 0; --depth) text += closing(depth);
  text += "  return\n}\n";
  for (const char* target : {"host", "sm_80", "sm_90a"}) {
    auto binary = compileText(text, "nest.mlir", lookupTarget(target).value_or_throw(), {});
    EXPECT_TRUE(binary) << target << ": " << binary.error().to_string();
  }
}

/// Reads and writes that meet.
constexpr const char* kShift = R"(
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
  compileNest(opening, kShift, [](int d) { return "  scf.yield " + at("next", d) + " : i32\n}\n"; });
}

// Each hands on a number that the loops around it begin with.
TEST(Nests, OfCountingLoops) {
  auto opening = [](int d) {
    return at("r", d) + " = scf.for " + at("k", d) + " = %c0 to %n step %c1 iter_args(" + at("s", d) + " = " +
           (d == 1 ? "%c1" : at("s", d - 1)) + ") -> (i32) : i32 {\n";
  };
  auto closing = [](int d) {
    const std::string made = d == kDeep ? at("s", d) : at("r", d + 1);
    return "  " + at("t", d) + " = arith.addi " + made + ", " + at("k", d) + " : i32\n  scf.yield " + at("t", d) +
           " : i32\n}\n";
  };
  compileNest(opening, kShift, closing);
}

}  // namespace
}  // namespace tile::ir
