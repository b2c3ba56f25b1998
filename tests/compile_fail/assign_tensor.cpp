// expect: use of deleted function
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<float, 2> a, Tensor<float, 2> b) { a = b; });
