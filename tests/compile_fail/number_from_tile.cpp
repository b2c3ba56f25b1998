// expect: it cannot become a C.. number
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](F32 x) { auto y = static_cast<int>(x); });
