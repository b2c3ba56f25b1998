// expect: a combiner takes two values
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<const float, 1> a) {
  auto x = reduce(a.load({0}, {16}), axis(0), [](Tile b) { return b; });
});
