// expect: no matching function|could not convert|has no non-static data member
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p, I32 n) { auto x = load(p, {.masc = n > 0}); });
