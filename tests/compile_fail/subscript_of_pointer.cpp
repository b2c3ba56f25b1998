// expect: pointers and tiles have no ..
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p, I32 n) { p[n] = 1.f; });
