// expect: a tile has no value while the kernel is being traced
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p, I32 n) {
  if (n > 3) store(p, 1.f);
});
