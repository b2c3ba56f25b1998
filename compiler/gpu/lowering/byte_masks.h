// byte_masks.h - comparisons of bytes that choose bytes, a word of four at a time.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// All bits of the bytes, of four registers from `reg` on, for which the comparison holds that `flags` come from; null
/// where they come from none of bytes, where something else than choices of bytes asks for them, or where the bytes are
/// not in words: packing them would cost more than it saves.
llvm::Value* maskOfBytes(Emitter& e, mlir::Value flags, size_t reg);

}  // namespace tile::ir
