// expect: a kernel is a lambda or function that returns nothing
#include "dsl/tile.h"
using namespace tile;
int width = 4;
auto k = kernel("k", [w = width](Ptr<float> p, I32 n) mutable { store(p, cast(n + w++, f32)); });
