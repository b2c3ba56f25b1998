// bytes_test.cpp - bytes that comparisons of bytes choose, words of four at a time: every pair of bytes.
#include <gtest/gtest.h>

#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

TEST(Bytes, ComparisonsThatChooseBytes) {
  const char* predicates[] = {"eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"};
  auto holds = [](int predicate, uint8_t x, uint8_t y) {
    const auto sx = static_cast<int8_t>(x), sy = static_cast<int8_t>(y);
    const bool all[] = {x == y, x != y, (x < y), x <= y, (x > y), x >= y, (sx < sy), sx <= sy, (sx > sy), sx >= sy};
    return all[predicate];
  };
  for (int predicate = 0; predicate < 10; ++predicate)
    for (int constant : {-1000, -128, -1, 0, 3, 127}) {  // -1000: the other tile
      const std::string other = constant == -1000 ? "%b" : "%c";
      SimtKernel k(
          kernel("%x: !tile.ptr<i8> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}, %o: "
                 "!tile.ptr<i8> {tile.align = 16 : i32}",
                 R"(
  %i = tile.iota : tensor<2048xi32>
  %c = arith.constant dense<)" +
                     std::to_string(constant == -1000 ? 0 : constant) + R"(> : tensor<2048xi8>
  %a = tile.gather %x offsets %i : tensor<2048xi32> : !tile.ptr<i8> -> tensor<2048xi8>
  %b = tile.gather %y offsets %i : tensor<2048xi32> : !tile.ptr<i8> -> tensor<2048xi8>
  %f = arith.cmpi )" +
                     predicates[predicate] + ", %a, " + other + R"( : tensor<2048xi8>
  %r = arith.select %f, %b, %a : tensor<2048xi1>, tensor<2048xi8>
  tile.scatter %r, %o offsets %i : tensor<2048xi32> : tensor<2048xi8>, !tile.ptr<i8>
)"));
      for (int part = 0; part < (constant == -1000 ? 32 : 1); ++part) {
        GuardedBuffer x(2048), y(2048), out(2048);
        for (int i = 0; i < 2048; ++i)
          x.as<uint8_t>()[i] = uint8_t(i),
          y.as<uint8_t>()[i] = uint8_t(part * 8 + i / 256 + (constant == -1000 ? 0 : i));
        k.run({slot(x.as<char>()), slot(y.as<char>()), slot(out.as<char>())}, 1);
        for (int i = 0; i < 2048; ++i) {
          const uint8_t a = x.as<uint8_t>()[i], b = y.as<uint8_t>()[i];
          const bool is = holds(predicate, a, constant == -1000 ? b : static_cast<uint8_t>(constant));
          ASSERT_EQ(out.as<uint8_t>()[i], is ? b : a) << int(a) << " " << predicates[predicate] << " " << int(b);
        }
      }
    }
}

}  // namespace
}  // namespace tile::testing
