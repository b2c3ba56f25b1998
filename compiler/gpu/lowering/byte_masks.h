// byte_masks.h - selects of bytes by comparisons of bytes, four at a time in a 32-bit word.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// A word with a byte of ones for each of the four registers from `reg` on for which the comparison that makes `flags`
/// holds. Null if it does not compare bytes, if something else than selects of bytes uses the flags, or if the bytes
/// are not in words already: packing them would cost more than it saves.
llvm::Value* maskOfBytes(Emitter& e, mlir::Value flags, size_t reg);

}  // namespace tile::ir
