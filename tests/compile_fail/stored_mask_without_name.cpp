// expect: masks are named
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p, I32 n) { store(p, 1.f, n > 0); });
