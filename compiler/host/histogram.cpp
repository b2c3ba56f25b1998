// histogram.cpp - counts of values, or sums of their weights: computed in vectors, added one after the other in several
// tables in turns.
#include "compiler/host/nest.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

constexpr int kCheap = 8;  // ops that take no longer one by one than getting at the lanes of a vector
constexpr int64_t kTables = 4;

}  // namespace

int64_t histogramTables(HistogramOp op) {
  constexpr int64_t kMostBytes = 16 << 10;  // half of a first cache
  const int64_t bins = shapeOf(op.getResult())[0];
  const int64_t values = cast<RankedTensorType>(op.getSource().getType()).getNumElements();
  const int64_t bytes = kTables * bins * Numbers::bytes(elementOf(op.getResult()));
  return values >= 2 * bins && values >= 16 * kTables && bytes <= kMostBytes ? kTables : 1;
}

LogicalResult emitHistogram(Emitter& e, HistogramOp op) {
  if (!e.plan.owns(op.getResult())) return success();
  const Ref& to = *e.plan.place(op.getResult());
  const int64_t bins = shapeOf(op.getResult())[0];
  Type element = elementOf(op.getResult());
  llvm::IRBuilder<>& b = e.b;
  const int64_t bytes = bins * Numbers::bytes(element);
  SmallVector<llvm::Value*, kTables> tables{e.address(to, element, e.i64(to.offset))};
  b.CreateMemSet(tables[0], b.getInt8(0), e.i64(bytes), llvm::MaybeAlign(4));
  if (const Ref* others = e.plan.scratch(op, 0)) {
    llvm::Value* start = e.address(*others, element, e.i64(0));
    for (int64_t t = 1; t < kTables; ++t) tables.push_back(e.offsetBy(start, element, e.i64((t - 1) * bins)));
    b.CreateMemSet(start, b.getInt8(0), e.i64((kTables - 1) * bytes), llvm::MaybeAlign(4));
  }
  Nest nest(e, shapeOf(op.getSource()));
  int cost = 0;
  for (Value operand : op->getOperands()) nest.uses(operand), cost += e.plan.cost(operand);
  nest.dims();
  const bool isCheap = cost <= kCheap;
  auto add = [&](llvm::Value* x, llvm::Value* y) {
    return x->getType()->isFPOrFPVectorTy() ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
  };
  const int last = static_cast<int>(nest.sizes().size()) - 1;
  /// Counts `width` values that begin at the nest's index, the first of them in table `first`.
  auto count = [&](unsigned width, size_t first) {
    llvm::Value* value = nest.eval(op.getSource(), width);
    llvm::Value* weight = value && op.getWeights() ? nest.eval(op.getWeights(), width) : nullptr;
    if (!value || (op.getWeights() && !weight)) return failure();
    llvm::Constant* last = llvm::ConstantInt::get(value->getType(), bins - 1);
    // What is outside adds nothing to the last number.
    llvm::Value* counts = b.CreateICmpULE(value, last);
    llvm::Value* added = weight ? b.CreateSelect(counts, weight, llvm::Constant::getNullValue(weight->getType()))
                                : b.CreateZExt(counts, withElement(value->getType(), b.getInt32Ty()));
    llvm::Value* inside = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, value, last);
    for (unsigned lane = 0; lane < width; ++lane) {
      auto at = [&](llvm::Value* v) { return width > 1 ? b.CreateExtractElement(v, lane) : v; };
      llvm::Value* table = tables[(first + lane) % tables.size()];
      llvm::Value* sum = e.offsetBy(table, element, b.CreateZExt(at(inside), b.getInt64Ty()));
      e.numbers.store(element, add(e.numbers.load(element, sum, 1), at(added)), sum);
    }
    return success();
  };
  const unsigned widest = isCheap ? tables.size() : e.vectorWidth(4, nest.sizes().back(), 1);
  const LogicalResult counted = nest.run(widest, [&](unsigned width) {
    if (!isCheap) return count(width, 0);
    llvm::Value* start = nest.index(last);
    for (unsigned i = 0; i < width; ++i) {
      nest.enter();
      nest.setIndex(last, b.CreateAdd(start, e.i64(i), "", true, true));
      if (failed(count(1, i))) return failure();
    }
    return success();
  });
  if (failed(counted) || tables.size() == 1) return counted;
  e.inVectors(e.i64(0), e.i64(bins), e.vectorWidth(Numbers::bytes(element), bins), [&](llvm::Value* i, unsigned width) {
    llvm::Value* sum = nullptr;
    for (llvm::Value* table : tables) {
      llvm::Value* part = e.numbers.load(element, e.offsetBy(table, element, i), width);
      sum = sum ? add(sum, part) : part;
    }
    e.numbers.store(element, sum, e.offsetBy(tables[0], element, i));
  });
  return success();
}

}  // namespace tile::ir::host
