// e2m1_pairs.h - bytes of two 4-bit floats and block exponents as 16-bit floats, two of them in a register from the
// beginning: a byte times a number of two bits has both halves near where they belong.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

void emitWidenE2m1(Emitter& e, WidenE2m1Op op);
void emitWidenE8m0(Emitter& e, WidenE8m0Op op);

}  // namespace tile::ir
