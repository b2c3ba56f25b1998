// expect: the body of if_ or while_ is a .mutable. lambda
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p, I32 n) {
  Tile i = 0;
  while_([&] { return i < n; }, [=]() mutable { i += 1; });
});
