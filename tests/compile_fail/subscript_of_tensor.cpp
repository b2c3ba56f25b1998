// expect: a Tensor has no ..
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<const float, 2> a) { auto x = a[0]; });
