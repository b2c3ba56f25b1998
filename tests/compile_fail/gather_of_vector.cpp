// expect: gather takes rows of a tensor of 2 dims
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<const float, 1> a) { auto x = a.gather(arange(0, 4), 0, 16); });
