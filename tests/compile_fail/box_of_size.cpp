// expect: the sizes of a tile are known while tracing
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<const float, 2> a) { auto x = a.load({0, 0}, {a.dim(0), 16}); });
