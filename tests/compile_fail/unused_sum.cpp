// expect: ignoring return value of 'tile::Tile tile::operator\+\(
#pragma GCC diagnostic error "-Wunused-result"
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](F32 x) { x + 1.f; });
