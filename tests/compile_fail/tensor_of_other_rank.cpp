// expect: no match for call to
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Tensor<float, 2> a) { a.store({0, 0}, 1.f); });
void run(Stream& s, TensorView<float, 3> a) { k(s, a); }
