// user_asm.h - PTX that a kernel's author wrote.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// In front of the text in the PTX, with the user's place behind it: where ptxas finds fault, that place is to blame.
inline constexpr llvm::StringLiteral kUserAsmMark = "// assembly of ";

mlir::LogicalResult emitUserAsm(Emitter& e, InlineAsmOp op);

}  // namespace tile::ir
