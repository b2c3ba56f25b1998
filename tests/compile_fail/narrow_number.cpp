// expect: a half, bfloat16 or fp8 number beside a tile -> a plain literal
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<half> p) { store(p, load(p) * half(2.f)); });
