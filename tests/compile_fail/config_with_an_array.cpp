// expect: a field of a kernel configuration is a bool, integer, enum, DType or float: no array, string or struct
#include "dsl/tile.h"
using namespace tile;
struct Cfg {
  int blocks[2] = {8, 16};
  int stages = 3;
};
auto k = kernel("k", [](const Cfg& c, Ptr<float> p) { store(p, 1.f); });
