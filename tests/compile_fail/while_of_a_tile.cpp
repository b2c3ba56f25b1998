// expect: are lambdas without parameters
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](I32 n) {
  Tile x = 0;
  while_(x < n, [&] { x += 1; });
});
