// expect: pointers have no .
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p, I32 n) { auto x = *(p + n); });
