// flat_fields.h - the configuration of kernels over flat arrays: elements of a program, and warps.
#pragma once
#include "tests/users/use.h"

namespace users {

struct FlatCfg {
  int B = 512, warps = 4;
};
/// The one for big or small problems, with what the command line says of it.
inline FlatCfg flat(Env& e, FlatCfg big, FlatCfg small) {
  FlatCfg c = e.big ? big : small;
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  return c;
}

}  // namespace users
