// expect: the axis of a reduction is written axis.i.
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<const float, 1> a) { auto x = sum(a.load({0}, {16}), 0); });
