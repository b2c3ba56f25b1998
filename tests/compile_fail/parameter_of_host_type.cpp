// expect: a kernel parameter is a Ptr<T>, a Tensor<T, R> or a scalar
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](std::vector<float> x, I32 n) {});
