// expect: a kernel is a lambda or function that returns nothing
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<const float> p) { return load(p); });
