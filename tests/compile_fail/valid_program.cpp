// expect: nothing
#include "dsl/tile.h"
using namespace tile;
struct Cfg { int BM = 4; };
auto k = kernel("k", [](const Cfg& c, Ptr<const float> x, Ptr<float> o, I32 n) {
           auto i = arange(0, c.BM);
           store(o + i, load(x + i, {.mask = (i < n) & (i >= 0), .other = 1}));
         }).grid([](const Cfg&, const float*, float*, int n) { return Grid{n}; });
void run(Stream& s, const float* x, float* o, int n) { k(s, x, o, n); }
// Arithmetic of the host is none of ours.
bool host(half x, int n) { return (x + .3 * n > 0) & (2.f * x < x) & (x == half(1.f)); }
