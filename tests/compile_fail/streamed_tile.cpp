// expect: a tile has no value while the kernel is being traced -> device_print
#include <iostream>

#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](I32 n) { std::cout << n; });
