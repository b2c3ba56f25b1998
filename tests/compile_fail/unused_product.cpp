// expect: ignoring return value of 'tile::Tile tile::dot\(
#pragma GCC diagnostic error "-Wunused-result"
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<const half, 2> a) {
  Tile x = a.load({0, 0}, {16, 16}), acc = zeros({16, 16}, f32);
  for (auto i : range(4)) dot(x, x, acc);
});
