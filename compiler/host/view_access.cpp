// view_access.cpp - tile.load and tile.store: boxes of views, clipped to the view, rows in vectors.
#include "compiler/host/box.h"
#include "compiler/host/nest.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir::host {
using namespace mlir;

Box::Box(Emitter& e, Value viewValue, OperandRange indices, Type tile) : view(e.view(viewValue)) {
  auto type = dyn_cast<RankedTensorType>(tile);
  if (type) shape.assign(type.getShape().begin(), type.getShape().end());
  auto& b = e.b;
  leading = static_cast<int64_t>(indices.size() - shape.size());
  llvm::Value *offset = e.i64(0), *inside = b.getTrue();
  whole = b.getTrue();
  for (auto [d, index] : llvm::enumerate(indices)) {
    llvm::Value *at = e.asI64(index), *size = view.dims[d];
    offset = b.CreateAdd(offset, b.CreateMul(at, view.strides[d]));
    if (static_cast<int64_t>(d) < leading) {
      inside = b.CreateAnd(inside, b.CreateICmpULT(at, size));
      continue;
    }
    llvm::Value* extent = e.i64(shape[d - leading]);
    auto clamp = [&](llvm::Value* v) {
      v = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, e.i64(0));
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, extent);
    };
    // Saturating: an index near the ends of i64 must not wrap into the view.
    low.push_back(clamp(b.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, e.i64(0), at)));
    high.push_back(clamp(b.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, size, at)));
    whole = b.CreateAnd(whole, b.CreateAnd(b.CreateICmpEQ(low.back(), e.i64(0)), b.CreateICmpEQ(high.back(), extent)));
  }
  whole = b.CreateAnd(whole, inside);
  if (!shape.empty() && leading > 0) high[0] = b.CreateSelect(inside, high[0], e.i64(0));
  if (shape.empty()) whole = inside;
  origin = e.offsetBy(view.pointer, cast<ViewType>(viewValue.getType()).getElementType(), offset);
}

namespace {

/// Elements [lo, hi) of a row: two vectors at a time, then shorter ones, then single elements.
void dynamicRow(Emitter& e, llvm::Value* lo, llvm::Value* hi, unsigned width, llvm::function_ref<void(llvm::Value*, unsigned)> body) {
  for (unsigned w : {width, width / 4})
    if (w > 1) lo = e.loop(lo, hi, w, [&](llvm::Value* j) { body(j, w); });
  e.loop(lo, hi, 1, [&](llvm::Value* j) { body(j, 1); });
}

/// Loops over the clipped outer dims; `row` gets their indices.
void clippedRows(Emitter& e, const Box& box, llvm::function_ref<void(ArrayRef<llvm::Value*>)> row) {
  SmallVector<llvm::Value*, 4> index;
  std::function<void(size_t)> open = [&](size_t d) {
    if (d + 1 == box.shape.size()) return row(index);
    e.loop(box.low[d], box.high[d], 1, [&](llvm::Value* i) {
      index.push_back(i);
      open(d + 1);
      index.pop_back();
    });
  };
  open(0);
}

llvm::Value* rowOffset(Emitter& e, const Box& box, ArrayRef<llvm::Value*> index) {
  llvm::Value* offset = e.i64(0);
  for (auto [d, i] : llvm::enumerate(index)) offset = e.b.CreateAdd(offset, e.b.CreateMul(i, box.stride(d)));
  return offset;
}

LogicalResult loadScalar(Emitter& e, LoadOp op, const Box& box, llvm::Value* pad) {
  Type element = op.getView().getType().getElementType();
  llvm::Value* loaded = nullptr;
  llvm::BasicBlock *outside = e.b.GetInsertBlock(), *inside = nullptr;
  e.ifThen(box.whole, [&] {
    loaded = e.numbers.load(element, box.origin, 1, op.getCache() == CacheHint::volatile_);
    inside = e.b.GetInsertBlock();
  });
  if (!loaded) return e.setScalar(op.getResult(), pad), success();
  if (inside == e.b.GetInsertBlock()) return e.setScalar(op.getResult(), loaded), success();
  llvm::PHINode* phi = e.b.CreatePHI(loaded->getType(), 2);
  phi->addIncoming(loaded, inside);
  phi->addIncoming(pad, outside);
  e.setScalar(op.getResult(), phi);
  return success();
}

}  // namespace

LogicalResult emitLoad(Emitter& e, LoadOp op) {
  Type element = op.getView().getType().getElementType();
  bool isVolatile = op.getCache() == CacheHint::volatile_;
  Box box(e, op.getView(), op.getIndices(), op.getResult().getType());
  double padValue = op.getPad() ? op.getPad()->convertToDouble() : 0.0;
  Attribute padAttr;
  if (isa<FloatType>(element)) {
    llvm::APFloat value(padValue);
    bool lost;
    value.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lost);
    padAttr = FloatAttr::get(element, value);
  } else {
    llvm::APSInt value(element.getIntOrFloatBitWidth(), padValue >= 0);
    bool exact;
    llvm::APFloat(padValue).convertToInteger(value, llvm::APFloat::rmTowardZero, &exact);
    padAttr = IntegerAttr::get(element, value);
  }
  llvm::Constant* pad = e.numbers.constant(padAttr);
  if (box.shape.empty()) return loadScalar(e, op, box, pad);
  const Ref* to = e.plan.place(op.getResult());
  if (!e.plan.owns(op.getResult())) return success();  // nobody looks at it

  auto& b = e.b;
  int64_t columns = box.shape.back();
  unsigned width = e.vectorWidth(Numbers::bytes(element), columns);
  e.ifThen(b.CreateNot(box.whole), [&] {
    Nest nest(e, box.shape);
    nest.uses(*to);
    int64_t n = nest.dims().back();
    (void)nest.run(e.vectorWidth(Numbers::bytes(element), n), [&](unsigned w) {
      e.numbers.store(element, e.numbers.splat(pad, w), nest.address(*to, element));
      return success();
    });
  });
  // Bits move as they are: no conversion to register form and back.
  llvm::Type* raw = e.numbers.inMemory(element);
  llvm::Align align(Numbers::bytes(element));
  auto move = [&](llvm::Value* from, llvm::Value* target, unsigned w) {
    llvm::Type* type = w > 1 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(raw, w)) : raw;
    b.CreateAlignedStore(b.CreateAlignedLoad(type, from, align, isVolatile), target, align);
  };
  llvm::Value *base = e.arenaBase(*to), *unit = b.CreateICmpEQ(box.stride(box.shape.size() - 1), e.i64(1));
  auto rows = [&](bool inVectors) {
    clippedRows(e, box, [&](ArrayRef<llvm::Value*> index) {
      llvm::Value *from = e.offsetBy(box.origin, element, rowOffset(e, box, index)), *number = e.i64(0);
      for (auto [d, i] : llvm::enumerate(index)) number = b.CreateAdd(number, b.CreateMul(i, e.i64(to->strides[d])));
      llvm::Value* target = e.offsetBy(base, element, number);
      dynamicRow(e, box.low.back(), box.high.back(), inVectors ? width : 1, [&](llvm::Value* j, unsigned w) {
        llvm::Value* step = inVectors ? j : b.CreateMul(j, box.stride(box.shape.size() - 1));
        move(e.offsetBy(from, element, step), e.offsetBy(target, element, j), w);
      });
    });
  };
  // Columns in memory (a transposed view): whole boxes go through registers, block by block.
  auto other = [&] {
    if (box.shape.size() != 2 || isVolatile) return rows(false);
    llvm::Value* columnMajor = b.CreateAnd(box.whole, b.CreateICmpEQ(box.stride(0), e.i64(1)));
    e.ifThen(columnMajor, [&] { emitTransposeBlocks(e, {box.origin, box.stride(1)}, element, {base, e.i64(to->strides[0])}, element, box.shape[0], box.shape[1]); },
             [&] { rows(false); });
  };
  e.ifThen(unit, [&] { rows(true); }, other);
  return success();
}

LogicalResult emitStore(Emitter& e, StoreOp op) {
  Type element = op.getView().getType().getElementType();
  bool isVolatile = op.getCache() == CacheHint::volatile_;
  Box box(e, op.getView(), op.getIndices(), op.getValue().getType());
  if (box.shape.empty()) {
    e.ifThen(box.whole, [&] { e.numbers.store(element, e.scalar(op.getValue()), box.origin, isVolatile); });
    return success();
  }
  auto& b = e.b;
  Nest nest(e, box.shape);
  nest.keepAllApart();
  nest.uses(op.getValue());
  nest.dims();
  int last = static_cast<int>(box.shape.size()) - 1;
  llvm::Value *stride = box.stride(last), *unit = b.CreateICmpEQ(stride, e.i64(1));
  unsigned width = e.vectorWidth(Numbers::bytes(element), box.shape.back());
  bool ok = true;
  clippedRows(e, box, [&](ArrayRef<llvm::Value*> index) {
    for (auto [d, i] : llvm::enumerate(index)) nest.setIndex(static_cast<int>(d), i);
    nest.enterRow();
    nest.hoistAll();
    llvm::Value* row = e.offsetBy(box.origin, element, rowOffset(e, box, index));
    dynamicRow(e, box.low.back(), box.high.back(), width, [&](llvm::Value* j, unsigned w) {
      nest.enter();
      nest.setIndex(last, j);
      llvm::Value* v = ok ? nest.eval(op.getValue(), w) : nullptr;
      if (!v) return void(ok = false);
      if (w == 1) return e.numbers.store(element, v, e.offsetBy(row, element, b.CreateMul(j, stride)), isVolatile);
      e.ifThen(unit, [&] { e.numbers.store(element, v, e.offsetBy(row, element, j), isVolatile); },
               [&] {
                 llvm::Value* bits = e.numbers.toMemory(element, v);
                 for (unsigned lane = 0; lane < w; ++lane) {
                   llvm::Value* at = b.CreateMul(b.CreateAdd(j, e.i64(lane)), stride);
                   b.CreateAlignedStore(b.CreateExtractElement(bits, lane), e.offsetBy(row, element, at), llvm::Align(Numbers::bytes(element)), isVolatile);
                 }
               });
    });
  });
  return success(ok);
}

}  // namespace tile::ir::host
