// wgmma_registers.h - the first operand of a product by warpgroups where it comes from registers: what a thread
// computed, or fragments that it reads from shared memory.
#pragma once
#include <memory>

#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

class FirstOperand {
 public:
  virtual ~FirstOperand() = default;
  /// 4 registers (i32) of an instruction: of a block of 64 rows (`rep`) and a step along k.
  virtual llvm::SmallVector<llvm::Value*, 4> at(int rep, int step) const = 0;
};

/// Of the product's own operand, a tile.
std::unique_ptr<FirstOperand> operandInRegisters(Emitter& e, MmaOp op);
/// Of the tile in shared memory that threads read it from (fragmentOperand in dialect/products.h).
std::unique_ptr<FirstOperand> operandOfFragments(Emitter& e, MmaOp op);

/// Steps along k of all instructions of the product.
int stepsOf(MmaOp op);

}  // namespace tile::ir
