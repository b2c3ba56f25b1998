// expect: declare the kernel parameter as Tensor<T, R>
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<const float, 2> a) { a.scatter(arange(0, 4), 0, zeros({4, 16}, f32)); });
