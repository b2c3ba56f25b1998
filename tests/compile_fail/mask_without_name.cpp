// expect: masks and what masked-off lanes read are named
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p, I32 n) { auto x = load(p, n > 0, 0.f); });
