// expect: the grid function takes the configuration .NoConfig where the kernel has none. and the kernel's host arguments
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p, I32 n) { store(p, 1.f); }).grid([](float*, int n) { return Grid{n}; });
