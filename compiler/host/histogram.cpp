// histogram.cpp - counts of values, one element after the other.
#include "compiler/host/nest.h"

namespace tile::ir::host {
using namespace mlir;

LogicalResult emitHistogram(Emitter& e, HistogramOp op) {
  if (!e.plan.owns(op.getResult())) return success();
  const Ref& to = *e.plan.place(op.getResult());
  const int64_t bins = shapeOf(op.getResult())[0];
  Type element = elementOf(op.getResult());
  llvm::IRBuilder<>& b = e.b;
  llvm::Value* counts = e.address(to, element, e.i64(to.offset));
  b.CreateMemSet(counts, b.getInt8(0), e.i64(bins * Numbers::bytes(element)), llvm::MaybeAlign(4));
  Nest nest(e, shapeOf(op.getSource()));
  nest.uses(op.getSource());
  nest.dims();
  return nest.run(1, [&](unsigned) {
    llvm::Value* value = nest.eval(op.getSource(), 1);
    if (!value) return failure();
    llvm::Value* last = llvm::ConstantInt::get(value->getType(), bins - 1);
    // What is outside adds nothing to the last count.
    llvm::Value* one = b.CreateZExt(b.CreateICmpULE(value, last), b.getInt32Ty());
    llvm::Value* bin = b.CreateZExt(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, value, last), b.getInt64Ty());
    llvm::Value* at = e.offsetBy(counts, element, bin);
    e.numbers.store(element, b.CreateAdd(e.numbers.load(element, at, 1), one), at);
    return success();
  });
}

}  // namespace tile::ir::host
