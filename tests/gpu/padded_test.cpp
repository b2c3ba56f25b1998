// padded_test.cpp - products of tiles whose inner size is no multiple of an instruction's (heads of 72 and 40 elements)
// come by bulk copies of views that end where the tile does: on the simulated machine against plain loops, with
// matrices that are wider than the tile, narrower, and of just its width.
#include <gtest/gtest.h>

#include <random>

#include "runtime/float_types.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing::padded_test {
namespace {

constexpr int kRows = 64;

/// o[i, j] = sum over the blocks of 64 rows n of k, from row 0 to `keys`, of q[i, first .. first + size) k[n + j, ..].
std::string text(int first, int size) {
  const std::string view =
      "!tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, "
      "1>}";
  return kernel("%q: " + view + ", %k: " + view + ", %o: !tile.view<2xf32> {tile.unit_stride = 1 : i32}, %keys: i32",
                fmt::format(R"(
  %c0 = arith.constant 0 : i32
  %first = arith.constant {0} : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %q[%c0, %first : i32, i32] : !tile.view<2xf16> -> tensor<64x{1}xf16>
  %r = scf.for %n = %c0 to %keys step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {{
    %y = tile.load %k[%n, %first : i32, i32] : !tile.view<2xf16> -> tensor<64x{1}xf16>
    %t = tile.trans %y, [1, 0] : tensor<64x{1}xf16> -> tensor<{1}x64xf16>
    %d = tile.dot %x, %t, %acc : tensor<64x{1}xf16>, tensor<{1}x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }} {{tile.stages = 3 : i32}}
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
)",
                            first, size));
}

int wrongElements(SimtKernel& kern, int first, int size, int width, int keys, uint32_t seed) {
  const int pitch = (width + 7) / 8 * 8;
  std::mt19937 random(seed);
  GuardedBuffer q(2 * static_cast<size_t>(kRows * pitch)), k(2 * static_cast<size_t>(std::max(1, keys) * pitch));
  GuardedBuffer o(4 * kRows * kRows);
  auto fill = [&](GuardedBuffer& buffer, int rows) {
    for (int i = 0; i < rows * pitch; ++i)
      buffer.as<half>()[i] = i % pitch < width ? half(static_cast<float>(int(random() % 5) - 2)) : half(NAN);
  };
  fill(q, kRows), fill(k, keys);
  std::fill_n(o.as<float>(), kRows * kRows, -77.f);
  const auto slots = [](int rows, int columns, int stride) {
    return std::array<uint64_t, 4>{uint64_t(rows), uint64_t(columns), uint64_t(stride), 1};
  };
  const auto a = slots(kRows, width, pitch), b = slots(keys, width, pitch), c = slots(kRows, kRows, kRows);
  kern.run({slot(q.data()), a[0], a[1], a[2], a[3], slot(k.data()), b[0], b[1], b[2], b[3], slot(o.data()), c[0], c[1],
            c[2], c[3], static_cast<uint64_t>(keys)},
           1, 1, 1, seed);
  int wrong = 0;
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kRows; ++j) {
      float sum = 0;
      for (int n = j; n < keys; n += kRows)
        for (int d = first; d < std::min(first + size, width); ++d)
          sum += static_cast<float>(q.as<half>()[i * pitch + d]) * static_cast<float>(k.as<half>()[n * pitch + d]);
      wrong += o.as<float>()[i * kRows + j] != sum;
    }
  return wrong;
}

TEST(Padded, HeadsOfAnySize) {
  for (const auto& [first, size] : {std::pair{0, 72}, {0, 40}, {16, 24}}) {
    SimtKernel kern(text(first, size), "sm_90a", 4);
    EXPECT_NE(kern.ptx().find("cp.async.bulk.tensor"), std::string::npos) << size;
    for (const TensorMapInfo& map : kern.binary().tensor_maps) {
      if (map.written) continue;
      ASSERT_EQ(map.made.size(), 5u);
      EXPECT_EQ(map.made[2].most, first + size) << "the view ends where the tile does";
    }
    for (int width : {first + size, first + size + 56, first + size - 3, first + 8, first})
      for (int keys : {0, 1, 64, 200}) {
        if (width == 0) continue;
        EXPECT_EQ(wrongElements(kern, first, size, width, keys, 5), 0) << size << " of " << width << ", keys " << keys;
      }
  }
}

}  // namespace
}  // namespace tile::testing::padded_test
