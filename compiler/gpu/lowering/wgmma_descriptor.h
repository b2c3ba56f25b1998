// wgmma_descriptor.h - operands of products by warpgroups that lie in shared memory.
#pragma once
#include "compiler/gpu/lowering/emitter.h"
#include "compiler/layout/descriptor.h"

namespace tile::ir {

/// Low word of the descriptor of a buffer's start; the high word is constant. Sums of a slot's or block's offset stay
/// in the address field, so everything varying is 32-bit arithmetic of uniform values.
class Descriptor {
 public:
  Descriptor(Emitter& e, mlir::Value smem, const layout::OperandDescriptor& operand);

  void addBytes(llvm::Value* bytes);
  /// Of the first element. What instructions add is added inside their assembly: as values of the kernel, the
  /// descriptors of buffers that loops only read would all be made in front of them, two registers each, and spilled.
  llvm::Value* first() const;
  const layout::OperandDescriptor& operand() const { return operand_; }

 private:
  llvm::Value* start(mlir::Value smem);

  Emitter& e_;
  layout::OperandDescriptor operand_;
  llvm::Value* low_;
};

/// `isA`: as the instruction's first operand, m x k; else its second, k x n. Reports what instructions cannot read.
mlir::FailureOr<layout::OperandDescriptor> describe(MmaOp op, SmemType type, bool isA);

}  // namespace tile::ir
