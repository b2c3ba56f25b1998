// expect: a combiner returns a value of every tile
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<const float, 1> a) {
  auto x = a.load({0}, {16});
  auto y = scan({x, x}, axis(0), [](Tile b, Tile c, Tile d, Tile e) { return b + d; });
});
