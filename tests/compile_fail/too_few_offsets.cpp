// expect: convert .<brace-enclosed initializer list>. |could not convert
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<float, 2> p) { p.store({0}, 1.f); });
