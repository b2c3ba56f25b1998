// expect: the sizes of a tile are known while tracing
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](I32 n) { auto x = zeros({n, 4}, f32); });
