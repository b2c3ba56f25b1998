// expect: the parameters of a kernel have types of their own
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](auto p, I32 n) { store(p + n, 1.f); });
