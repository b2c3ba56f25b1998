// load.cpp - tile.load: boxes of views, clipped to the view, rows in vectors. A box of a view that nothing writes to,
// whose elements lie as a tile's would, is read where it is; one whose rows lie apart, too, where it is read once, in
// loops over its rows.
#include "compiler/dialect/boxes.h"
#include "compiler/host/box.h"
#include "compiler/host/dot_shape.h"
#include "compiler/host/emitter.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

LogicalResult loadScalar(Emitter& e, LoadOp op, const Box& box, llvm::Constant* pad) {
  Type element = op.getView().getType().getElementType();
  if (e.isLongBody() && op.getCache() != CacheHint::volatile_ && !isa<llvm::Constant>(box.whole)) {
    // No branch: what reads outside reads the padding.
    llvm::Value* from = e.b.CreateSelect(box.whole, box.origin, e.inMemory(element, pad));
    return e.setScalar(op.getResult(), e.numbers.load(element, from, 1)), success();
  }
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

/// The constant that elements outside the view read as, in its register form.
llvm::Constant* padOf(Emitter& e, LoadOp op) {
  Type element = op.getView().getType().getElementType();
  llvm::APFloat value = op.getPad() ? *op.getPad() : llvm::APFloat(0.0);
  if (auto type = dyn_cast<FloatType>(element)) {
    bool lost;
    value.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lost);
    return e.numbers.constant(FloatAttr::get(element, value));
  }
  llvm::APSInt whole(element.getIntOrFloatBitWidth(), !value.isNegative());
  bool exact;
  value.convertToInteger(whole, llvm::APFloat::rmTowardZero, &exact);
  return e.numbers.constant(IntegerAttr::get(element, whole));
}

/// Whether a loaded tile may be read where it lies, for as long as it lives: nothing in this kernel writes to the view,
/// or only what reads the tile, behind it.
bool mayStay(Emitter& e, LoadOp op) {
  auto arg = dyn_cast<BlockArgument>(op.getView());
  if (!arg || !isa<func::FuncOp>(arg.getOwner()->getParentOp()) || op.getCache() == CacheHint::volatile_ ||
      e.plan.sharesBuffer(op.getResult()))
    return false;
  auto onlyReads = [](Operation* user) { return isa<LoadOp, ViewDimOp, ViewStrideOp>(user); };
  return llvm::all_of(arg.getUsers(), onlyReads) || (e.plan.isReadLate(op) && !e.isLongBody());
}

/// i1: the box is inside the view, and its elements lie side by side in the order of a tile's.
llvm::Value* isTileInMemory(Emitter& e, const Box& box) {
  llvm::Value* same = box.whole;
  for (auto [stride, wanted, size] : llvm::zip(box.stride, rowMajorStrides(box.shape), box.shape))
    if (size > 1) same = e.b.CreateAnd(same, e.b.CreateICmpEQ(stride, e.i64(wanted)));
  return same;
}

/// Whether a product takes the tile, as it is, with rows that lie apart: as its second operand, or where it copies its
/// operands anyway. What it loses by that (a few percent) is less than a copy takes.
bool takesRows(Emitter& e, DotOp dot, Value tile) {
  if (dot.getAcc() == tile || !e.plan.owns(dot.getResult())) return false;
  const DotShape shape = DotShape::of(dot, e.plan);
  if (shape.onMatrixUnit()) return !(dot.getA() == tile && shape.packA) && !(dot.getB() == tile && shape.rowsOfB);
  return (dot.getA() != tile || shape.packA) && (dot.getB() != tile || elementOf(tile) == elementOf(dot.getAcc()));
}

/// Whether all that reads the tile has loops over its rows (inner ones, or around sums of columns), once for each time
/// it is loaded: rows may lie apart then. They are long enough to be loops of their own.
bool isReadByRows(Emitter& e, LoadOp op) {
  constexpr int64_t kShort = 32;
  const auto shape = shapeOf(op.getResult());
  if (shape.size() < 2 || e.plan.secondPass(op.getResult())) return false;
  bool loops = false;
  llvm::DenseSet<Value> seen;
  std::function<bool(Value)> visit = [&](Value tile) {
    if (!seen.insert(tile).second) return true;
    return llvm::all_of(tile.getUsers(), [&](Operation* user) {
      if (user->getBlock() != op->getBlock()) return false;
      if (auto dot = dyn_cast<DotOp>(user); dot && tile == op.getResult()) return takesRows(e, dot, tile);
      loops = true;
      if (isa<ReduceOp, ScanOp, StoreOp, ScatterOp>(user)) return true;
      if (!isElementwise(user)) return false;
      return llvm::all_of(user->getResults(), [&](Value v) { return e.plan.owns(v) || visit(v); });
    });
  };
  return visit(op.getResult()) && (!loops || shape.back() >= kShort);
}

/// i1: the box is inside the view, and each of its rows lies together.
llvm::Value* hasRowsInMemory(Emitter& e, const Box& box) {
  return e.b.CreateAnd(box.whole, e.b.CreateICmpEQ(box.stride.back(), e.i64(1)));
}

/// Fills what is outside with `pad`, then copies the rest. Bits move as they are, never through their register form.
void copyBox(Emitter& e, const Box& box, Type element, llvm::Value* to, llvm::Value* pad, bool isVolatile) {
  auto& b = e.b;
  llvm::Type* raw = e.numbers.inMemory(element);
  llvm::Align align(Numbers::bytes(element));
  auto vectorOf = [&](unsigned w) {
    return w > 1 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(raw, w)) : raw;
  };
  int64_t elements = 1;
  for (int64_t n : box.shape) elements *= n;
  e.ifThen(b.CreateNot(box.whole), [&] {
    unsigned width = e.vectorWidth(Numbers::bytes(element), elements);
    auto fill = [&](int64_t from, int64_t end, unsigned w) {
      e.loop(e.i64(from), e.i64(end), w,
             [&](llvm::Value* i) { b.CreateAlignedStore(e.numbers.splat(pad, w), e.offsetBy(to, element, i), align); });
    };
    fill(0, elements / width * width, width);
    fill(elements / width * width, elements, 1);
  });

  auto rows = [&](const Box& box, bool inVectors) {
    const SmallVector<int64_t, 4> strides = rowMajorStrides(box.shape);
    const unsigned width = e.vectorWidth(Numbers::bytes(element), box.shape.back());
    clippedRows(e, box, [&](ArrayRef<llvm::Value*> index) {
      llvm::Value *from = e.offsetBy(box.origin, element, rowOffset(e, box, index)), *number = e.i64(0);
      for (auto [i, stride] : llvm::zip(index, strides)) number = b.CreateAdd(number, b.CreateMul(i, e.i64(stride)));
      llvm::Value* target = e.offsetBy(to, element, number);
      e.inVectors(box.low.back(), box.high.back(), inVectors ? width : 1, [&](llvm::Value* j, unsigned w) {
        llvm::Value* step = inVectors ? j : b.CreateMul(j, box.stride.back());
        llvm::Value* bits = b.CreateAlignedLoad(vectorOf(w), e.offsetBy(from, element, step), align, isVolatile);
        b.CreateAlignedStore(bits, e.offsetBy(target, element, j), align);
      });
    });
  };
  // Columns in memory (a transposed view): whole boxes go through registers, block by block.
  auto strided = [&] {
    if (box.shape.size() != 2 || isVolatile) return rows(box, false);
    llvm::Value* columnMajor = b.CreateAnd(box.whole, b.CreateICmpEQ(box.stride[0], e.i64(1)));
    e.ifThen(
        columnMajor,
        [&] {
          emitTransposeBlocks(e, {box.origin, box.stride[1]}, element, {to, e.i64(box.shape[1])}, element, box.shape[0],
                              box.shape[1]);
        },
        [&] { rows(box, false); });
  };
  auto apart = [&] {
    e.ifThen(
        b.CreateICmpEQ(box.stride.back(), e.i64(1)), [&] { rows(box, true); }, strided);
  };
  const size_t first = box.rowsFrom();
  if (first + 1 == box.shape.size()) return apart();
  e.ifThen(
      box.isTogether(e, first), [&] { rows(box.together(e, first), true); }, apart);
}

/// Programs that go over a tile more than once ask for the next program's on the way: memory would be idle meanwhile.
void fetchForNextProgram(Emitter& e, LoadOp op, llvm::Value* stays) {
  constexpr int64_t kLeast = 2 << 10, kMost = 256 << 10;  // bytes; what the second cache holds beside this one's
  auto& b = e.b;
  const int64_t bytes =
      cast<RankedTensorType>(op.getResult().getType()).getNumElements() * Numbers::bytes(elementOf(op.getResult()));
  if (!isa<func::FuncOp>(op->getParentOp()) || bytes < kLeast || bytes > kMost) return;
  Operation* reader = e.plan.secondPass(op.getResult());
  if (!reader) return;
  const View view = e.view(op.getView());
  llvm::Value* elements = e.i64(0);
  llvm::DenseMap<Value, llvm::Value*> made;
  for (auto [d, index] : llvm::enumerate(op.getIndices())) {
    llvm::Value* next = e.inNextProgram(index, made);
    if (!next) return;
    if (next == e.scalar(index)) continue;
    llvm::Value* step = b.CreateSub(b.CreateSExt(next, b.getInt64Ty()), e.asI64(index));
    elements = b.CreateAdd(elements, b.CreateMul(step, view.strides[d]));
  }
  if (isa<llvm::Constant>(elements)) return;  // every program's tile, or no later one's
  llvm::Value* distance = b.CreateMul(elements, e.i64(Numbers::bytes(elementOf(op.getResult()))));
  e.fetchAhead(*e.plan.place(op.getResult()), reader, b.CreateSelect(stays, distance, e.i64(0)));
}

/// i1: the loops that overwrite the loaded box are one: all that they store is inside of its view.
llvm::Value* isUpdatedInOneLoop(Emitter& e, LoadOp op) {
  llvm::Value* whole = e.b.getTrue();
  for (Operation* update : e.plan.updatesOf(op)) {
    auto store = cast<StoreOp>(update);
    if (store->hasAttr(kInsideAttr)) continue;
    whole = e.b.CreateAnd(whole, Box(e, store.getView(), store.getIndices(), store.getValue().getType()).whole);
  }
  return whole;
}

/// A load as one call, of a function that finds out where the tile lies, copies it where it may not stay, and returns
/// where it is.
void callLoad(Emitter& e, LoadOp op, llvm::Constant* pad) {
  const Type element = op.getView().getType().getElementType();
  const bool isVolatile = op.getCache() == CacheHint::volatile_, may = mayStay(e, op);
  const bool inRows = may && shapeOf(op.getResult()).size() == 2 && isReadByRows(e, op);
  const BoxWords box(e, op.getView(), op.getIndices());
  const Ref& place = *e.plan.place(op.getResult());
  std::string name;
  llvm::raw_string_ostream(name) << (isVolatile ? "call_load_volatile_"
                                     : inRows   ? "call_load_rows_"
                                     : may      ? "call_load_"
                                                : "call_copy_")
                                 << op.getResult().getType() << box.name() << "_of_" << op.getIndices().size();
  SmallVector<llvm::Value*> arguments(box.words());
  arguments.push_back(e.numbers.toMemory(element, pad));
  arguments.push_back(e.arenaBase(place));
  llvm::Value* at = e.callShared(
      name, arguments,
      [&](ArrayRef<llvm::Value*> p) {
        const auto [view, indices] = box.inside(p);
        const Box there(e, view, indices, element, op.getResult().getType());
        llvm::Value* stays = !may ? e.b.getFalse() : inRows ? hasRowsInMemory(e, there) : isTileInMemory(e, there);
        e.ifThen(e.b.CreateNot(stays), [&] { copyBox(e, there, element, p.back(), p[p.size() - 2], isVolatile); });
        e.b.CreateRet(e.b.CreateSelect(stays, there.origin, p.back()));
      },
      e.b.getPtrTy());
  if (!may) return;
  if (!inRows) return e.readAt(place, at);
  const ArrayRef<int64_t> shape = shapeOf(op.getResult());
  llvm::Value* isCopy = e.b.CreateICmpEQ(at, arguments.back());
  llvm::Value* stride = e.view(op.getView()).strides[op.getIndices().size() - 2];
  e.readRowsAt(place, at, e.b.CreateSelect(isCopy, e.i64(shape[1]), stride));
}

}  // namespace

LogicalResult emitLoad(Emitter& e, LoadOp op) {
  Type element = op.getView().getType().getElementType();
  bool isVolatile = op.getCache() == CacheHint::volatile_;
  llvm::Constant* pad = padOf(e, op);
  if (e.isLongBody() && isTile(op.getResult()))
    return e.plan.owns(op.getResult()) ? (callLoad(e, op, pad), success()) : success();
  Box box(e, op.getView(), op.getIndices(), op.getResult().getType());
  if (op->hasAttr(kInsideAttr)) box.isInside(e);
  if (box.shape.empty()) return loadScalar(e, op, box, pad);
  if (!e.plan.owns(op.getResult())) return success();  // nobody looks at it

  std::string name;
  llvm::raw_string_ostream out(name);
  out << (isVolatile ? "load_volatile_" : "load_") << op.getResult().getType();
  for (llvm::Value* stride : box.stride)
    if (auto* known = dyn_cast<llvm::ConstantInt>(stride))
      out << "_" << known->getSExtValue();
    else
      out << "_any";
  SmallVector<llvm::Value*> arguments = box.words();
  arguments.push_back(e.numbers.toMemory(element, pad));
  arguments.push_back(e.arenaBase(*e.plan.place(op.getResult())));
  SmallVector<llvm::Type*> types;
  for (llvm::Value* v : arguments) types.push_back(v->getType());
  llvm::Function* copy = e.shared(name, types, [&](ArrayRef<llvm::Value*> p) {
    copyBox(e, Box(box, p), element, p.back(), p[p.size() - 2], isVolatile);
  });
  const Ref& place = *e.plan.place(op.getResult());
  if (!mayStay(e, op)) return e.b.CreateCall(copy, arguments), success();
  const bool inRows = isReadByRows(e, op);
  llvm::Value* stays = inRows ? hasRowsInMemory(e, box) : isTileInMemory(e, box);
  if (e.plan.isReadLate(op)) stays = e.b.CreateAnd(stays, isUpdatedInOneLoop(e, op));
  e.ifThen(e.b.CreateNot(stays), [&] { e.b.CreateCall(copy, arguments); });
  llvm::Value* start = e.b.CreateSelect(stays, box.origin, arguments.back());
  if (inRows) {
    SmallVector<llvm::Value*, 3> pitches;
    for (auto [stride, own] : llvm::drop_end(llvm::zip(box.stride, rowMajorStrides(box.shape))))
      pitches.push_back(e.b.CreateSelect(stays, stride, e.i64(own)));
    e.readRowsAt(place, start, pitches);
  } else {
    e.readAt(place, start);
  }
  if (!inRows) fetchForNextProgram(e, op, stays);
  return success();
}

}  // namespace tile::ir::host
