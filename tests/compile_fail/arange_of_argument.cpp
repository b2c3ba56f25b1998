// expect: both ends of arange are known while tracing
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](I32 n) { auto i = arange(0, n); });
