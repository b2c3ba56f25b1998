// expect: tiles have no ..
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](I32 n) { Tile i = n; i++; });
