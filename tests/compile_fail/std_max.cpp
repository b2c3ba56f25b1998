// expect: for std::max and std::min max.a, b.
#include <algorithm>
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<float> p) { store(p, std::max(load(p), load(p + 1))); });
