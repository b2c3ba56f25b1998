// expect: declare the kernel parameter as Tensor<T, R>
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<const float, 1> p) { p.store({0}, 1.f); });
