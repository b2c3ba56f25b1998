// expect: a kernel reads its configuration and cannot change it
#include "dsl/tile.h"
using namespace tile;
struct Cfg {
  int B = 4;
};
auto k = kernel("k", [](Cfg& c, Ptr<float> p) {});
