// expect: are lambdas without parameters
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](I32 n) {
  Tile x = 0;
  if_(n > 3, [&](Tile y) { x = y; });
});
