// expect: nothing
#include "dsl/tile.h"
using namespace tile;
struct Cfg { int BM = 4; };
auto k = kernel("k", [](const Cfg& c, Ptr<const float> x, Ptr<float> o, I32 n) {
           auto i = arange(0, c.BM);
           store(o + i, load(x + i, {.mask = (i < n) & (i >= 0), .other = 1}));
         }).grid([](const Cfg&, const float*, float*, int n) { return Grid{n}; });
void run(Stream& s, const float* x, float* o, int n) { k(s, x, o, n); }
// What has effects may be left unused; a result of pointer arithmetic is a pointer; both calls have one best match.
Tile first(Ptr<const float> p) { return load(p); }
Tile first(Ptr<const half> p, int) { return load(p); }
int chosen(const Tile&) { return 1; }
int chosen(Ptr<const float>) { return 2; }
auto used = kernel("used", [](Ptr<const float> x, Ptr<float> o, I32 n) {
  Ptr<const float> row = x + n;
  atomic_add(o, first(row) + first(x + n) + first(o)), chosen(x + n), chosen(x);
  auto from = make_view(x, {4}, {1}), back = make_view<const float>(o, {4}, {1});
  make_view<float>(o + n, {4}, {1}).store({0}, from.load({0}) + back.load({0}));
});
enum Kind { kFirst, kSecond };
auto scalars = kernel("scalars", [](Ptr<float> o, I32 a, I64 b, U32 c, F32 d, F64 e) { store(o, d); });
void run(Stream& s, float* o) { scalars.launch(s, {}, {1}, o, kSecond, 3, 3u, 3.f, 3.f); }
// Arithmetic of the host is none of ours.
bool host(half x, int n) { return (x + .3 * n > 0) & (2.f * x < x) & (x == half(1.f)); }
