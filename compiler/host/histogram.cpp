// histogram.cpp - counts of values: computed in vectors, counted one after the other.
#include "compiler/host/nest.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

constexpr int kCheap = 8;  // ops that take no longer one by one than getting at the lanes of a vector

}  // namespace

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
  const unsigned widest = e.plan.cost(op.getSource()) > kCheap ? e.vectorWidth(4, nest.sizes().back(), 1) : 1;
  return nest.run(widest, [&](unsigned width) {
    llvm::Value* value = nest.eval(op.getSource(), width);
    if (!value) return failure();
    llvm::Constant* last = llvm::ConstantInt::get(value->getType(), bins - 1);
    // What is outside adds nothing to the last count.
    llvm::Value* ones = b.CreateZExt(b.CreateICmpULE(value, last), withElement(value->getType(), b.getInt32Ty()));
    llvm::Value* inside = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, value, last);
    for (unsigned lane = 0; lane < width; ++lane) {
      auto at = [&](llvm::Value* v) { return width > 1 ? b.CreateExtractElement(v, lane) : v; };
      llvm::Value* count = e.offsetBy(counts, element, b.CreateZExt(at(inside), b.getInt64Ty()));
      e.numbers.store(element, b.CreateAdd(e.numbers.load(element, count, 1), at(ones)), count);
    }
    return success();
  });
}

}  // namespace tile::ir::host
