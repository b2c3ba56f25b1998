// expect: discards qualifiers
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p, I32 n) {
  Tile s = 0.f;
  if_(n > 3, [=] { s = 1.f; });
  store(p, s);
});
