// Values of which each is made of the two before it have 2^n ways through them: whoever walks from a value to what it
// is made of has to look at each once. A pass that forgets it takes longer than anybody waits.
#include <gtest/gtest.h>

#include "compiler/compiler.h"

namespace tile::ir {
namespace {

/// `name`0 and further: 40 sums, each of the two values before it (`alike`: of the last one and itself).
std::string sums(const std::string& name, const std::string& op, const std::string& type, bool alike) {
  std::string text;
  for (int i = 1; i <= 40; ++i) {
    auto at = [&](int n) { return "%" + name + std::to_string(n); };
    text += "  " + at(i) + " = arith." + op + " " + at(i - 1) + ", " + at(alike || i < 2 ? i - 1 : i - 2) + " : " +
            type + "\n";
  }
  return text;
}
/// Replaces a line `SUMS name op type` by sums.
std::string expanded(const std::string& kernel, bool alike) {
  std::string text;
  for (size_t at = 0; at < kernel.size();) {
    const size_t end = kernel.find('\n', at);
    const std::string line = kernel.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("SUMS ")) {
      const size_t op = line.find(' ', 5), type = line.find(' ', op + 1);
      text += sums(line.substr(5, op - 5), line.substr(op + 1, type - op - 1), line.substr(type + 1), alike);
    } else {
      text += line + "\n";
    }
  }
  return text;
}

void compileEverywhere(const std::string& kernel) {
  for (const char* target : {"host", "sm_80", "sm_90a"})
    for (bool alike : {false, true}) {
      CompileOptions options;
      auto binary = compileText(expanded(kernel, alike), "sums.mlir", lookupTarget(target).value_or_throw(), options);
      EXPECT_TRUE(binary) << target << ": " << binary.error().to_string();
    }
}

/// A product whose first operand, or a mask of it, is made of sums.
std::string product(const std::string& operand) {
  const std::string view =
      "{tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}";
  return "func.func @product(%a: !tile.view<2xf16> " + view + ", %b: !tile.view<2xf16> " + view +
         ", %c: !tile.view<2xf32> " + view + ", %n: i32) attributes {tile.kernel} {\n" + R"(
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf16>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tile.splat %n : i32 -> tensor<1x64xi32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x0 = tile.load %a[%c0, %k : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %y = tile.load %b[%k, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
)" + operand +
         R"(
    %d = tile.dot %x, %y, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
)";
}

TEST(SumsOfSums, InOperandsOfProducts) {
  compileEverywhere(
      product("SUMS x addf tensor<64x64xf16>\n"
              "    %x = arith.addf %x40, %none : tensor<64x64xf16>\n"));
}

TEST(SumsOfSums, InMasksOfProducts) {
  compileEverywhere(product(R"(
    %ks = tile.splat %k : i32 -> tensor<1x64xi32>
    %s0 = arith.addi %ks, %row : tensor<1x64xi32>
SUMS s addi tensor<1x64xi32>
    %place = arith.addi %s40, %row : tensor<1x64xi32>
    %in = arith.cmpi slt, %place, %end : tensor<1x64xi32>
    %mask = tile.broadcast %in : tensor<1x64xi1> -> tensor<64x64xi1>
    %x = arith.select %mask, %x0, %none : tensor<64x64xi1>, tensor<64x64xf16>
)"));
}

TEST(SumsOfSums, InAddressesOfLoops) {
  compileEverywhere(R"(
func.func @addresses(%p: !tile.ptr<f32>, %v: !tile.view<1xf32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<128xi32>
  scf.for %k0 = %c0 to %n step %c1 : i32 {
SUMS k addi i32
    %q = tile.ptr_add %p, %k40 : !tile.ptr<f32>, i32
    %x = tile.gather %q offsets %i : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %y = tile.load %v[%k40 : i32] : !tile.view<1xf32> -> tensor<128xf32>
    %z = arith.addf %x, %y : tensor<128xf32>
    tile.scatter %z, %q offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
    tile.store %z, %v[%k40 : i32] : tensor<128xf32>, !tile.view<1xf32>
  }
  return
}
)");
}

TEST(SumsOfSums, InTilesOfPointers) {
  compileEverywhere(R"(
func.func @pointers(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<128xi32>
  %one = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %start = tile.ptr_add %one, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %by0 = tile.splat %n : i32 -> tensor<128xi32>
SUMS by addi tensor<128xi32>
  %at0 = arith.addi %i, %by0 : tensor<128xi32>
SUMS at addi tensor<128xi32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%here = %start) -> (tensor<128x!tile.ptr<f32>>) : i32 {
    %there = tile.ptr_add %here, %at40 : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    %x = tile.gather %there : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
    tile.scatter %x, %here : tensor<128xf32>, tensor<128x!tile.ptr<f32>>
    %next = tile.ptr_add %here, %by40 : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    scf.yield %next : tensor<128x!tile.ptr<f32>>
  }
  return
}
)");
}

// Hosts fetch the next program's row, whose place they compute, on the second way through this one's.
TEST(SumsOfSums, InPlacesOfThePrograms) {
  compileEverywhere(R"(
func.func @rows(%v: !tile.view<2xf32>, %o: !tile.view<2xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %at0 = tile.program_id 0
SUMS at addi i32
  %row = tile.load %v[%at40, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<1x2048xf32>
  %most = tile.reduce %row axis 1 : (tensor<1x2048xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %larger = arith.maxnumf %a, %b : f32
    tile.yield %larger : f32
  }
  %all = tile.broadcast %most : tensor<1x1xf32> -> tensor<1x2048xf32>
  %rest = arith.subf %row, %all : tensor<1x2048xf32>
  tile.store %rest, %o[%at40, %c0 : i32, i32] : tensor<1x2048xf32>, !tile.view<2xf32>
  return
}
)");
}

TEST(SumsOfSums, InLoopsWithAVote) {
  compileEverywhere(R"(
func.func @votes(%p: !tile.ptr<i32>, %n: i32) attributes {tile.kernel} {
  %i = tile.iota : tensor<128xi32>
  %end = tile.splat %n : i32 -> tensor<128xi32>
  %r = scf.while (%v = %i) : (tensor<128xi32>) -> tensor<128xi32> {
    %go = arith.cmpi slt, %v, %end : tensor<128xi32>
    %any = tile.reduce %go axis 0 : (tensor<128xi1>) -> tensor<1xi1> {
    ^bb0(%a: i1, %b: i1):
      %or = arith.ori %a, %b : i1
      tile.yield %or : i1
    }
    %some = tile.item %any : tensor<1xi1> -> i1
    scf.condition(%some) %v : tensor<128xi32>
  } do {
  ^bb0(%w0: tensor<128xi32>):
    %active = arith.cmpi slt, %w0, %end : tensor<128xi32>
SUMS w addi tensor<128xi32>
    %x = tile.gather %p offsets %w40 : tensor<128xi32> mask %active : tensor<128xi1> : !tile.ptr<i32> -> tensor<128xi32>
    %next = arith.select %active, %x, %w0 : tensor<128xi1>, tensor<128xi32>
    scf.yield %next : tensor<128xi32>
  }
  tile.scatter %r, %p offsets %i : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}
)");
}

}  // namespace
}  // namespace tile::ir
