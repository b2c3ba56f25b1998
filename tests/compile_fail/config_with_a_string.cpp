// expect: a field of a kernel configuration is a bool, integer, enum, DType or float
#include "dsl/tile.h"
using namespace tile;
struct Cfg { std::string name = "x"; };
auto k = kernel("k", [](const Cfg&, Ptr<float> p) { store(p, 1.f); });
