// user_asm.h - PTX that a kernel's author wrote.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

mlir::LogicalResult emitUserAsm(Emitter& e, InlineAsmOp op);

}  // namespace tile::ir
