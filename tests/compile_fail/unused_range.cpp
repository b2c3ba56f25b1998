// expect: ignoring return value of 'tile::Range tile::range\(
#pragma GCC diagnostic error "-Wunused-result"
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](I32 n) { range(n); });
