// e2m1_pairs.h - converts bytes that hold two 4-bit floats (e2m1), and block exponents (e8m0), to pairs of 16-bit
// floats. A pair is made in one register: a multiplication by a number with two bits set copies the byte to near where
// both halves need it.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

void emitWidenE2m1(Emitter& e, WidenE2m1Op op);
void emitWidenE8m0(Emitter& e, WidenE8m0Op op);

}  // namespace tile::ir
