// expect: convert .<brace-enclosed initializer list>. to .std::array
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<float, 1> p) { p.store({0, 0}, 1.f); });
