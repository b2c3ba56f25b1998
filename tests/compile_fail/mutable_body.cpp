// expect: the body of if_ or while_ is a .mutable. lambda
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p, I32 n) {
  Tile s = 0.f;
  if_(n > 3, [=]() mutable { s = 1.f; });
  store(p, s);
});
