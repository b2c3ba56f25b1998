// expect: no tile element type for this C\+\+ type|element type of a tensor view must be a tile dtype
#include "dsl/tile.h"
using namespace tile;
struct Pixel { char r, g, b; };
auto k = kernel("k", [](Ptr<Pixel> p) {});
