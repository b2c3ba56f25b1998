// expect: no match for call to
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<const float> x, Ptr<float> o, I32 n) { store(o + n, load(x)); });
void run(Stream& s, const float* x, float* o, double n) { k(s, x, o, n); }
