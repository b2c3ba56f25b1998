// mma_sync.h - one product of one warp (mma.sync), its operands in registers.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// Registers (i32, of 64-bit elements f64) of one operand.
using Fragments = llvm::SmallVector<llvm::Value*, 32>;

/// What a fragment register becomes before it is multiplied: itself; a rounded value and a rest; or, of four f8, the
/// first two and the others as f16.
struct Rounded {
  Fragments big, small;
};
/// Of an operand of this type.
Rounded rounded(Emitter& e, Engine engine, mlir::Type operand, Fragments in);

struct MmaInstruction {
  Engine engine;
  std::pair<std::string, std::string> f8Names;  ///< of products of f8

  /// For tiles of these types, in registers or shared memory.
  MmaInstruction(Engine engine, mlir::Type a, mlir::Type b);
};

/// acc (4 registers) += a (4 from `firstA` on) * b (2 from `firstB` on).
void multiply(Emitter& e, const MmaInstruction& instruction, const Rounded& a, int firstA, const Rounded& b, int firstB,
              llvm::MutableArrayRef<llvm::Value*> acc);

}  // namespace tile::ir
