// view_access.cpp - tile.load, tile.store and tile.accumulate: boxes of views, clipped to the view, rows in vectors. A
// box of a view that nothing writes to, whose elements lie as a tile's would, is read where it is; second operands of
// products whose rows lie apart, too.
#include "compiler/host/box.h"
#include "compiler/host/nest.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir::host {
using namespace mlir;

Box::Box(Emitter& e, Value viewValue, OperandRange indices, Type tile) {
  View view = e.view(viewValue);
  auto type = dyn_cast<RankedTensorType>(tile);
  if (type) shape.assign(type.getShape().begin(), type.getShape().end());
  auto& b = e.b;
  auto leading = static_cast<int64_t>(indices.size() - shape.size());  // view dims in front of the tile's own
  llvm::Value *offset = e.i64(0), *inside = b.getTrue();
  whole = b.getTrue();
  for (auto [d, index] : llvm::enumerate(indices)) {
    llvm::Value *at = e.asI64(index), *size = view.dims[d];
    offset = b.CreateAdd(offset, b.CreateMul(at, view.strides[d]));
    if (static_cast<int64_t>(d) < leading) {
      inside = b.CreateAnd(inside, b.CreateICmpULT(at, size));
      continue;
    }
    stride.push_back(view.strides[d]);
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

SmallVector<llvm::Value*> Box::words() const {
  SmallVector<llvm::Value*> w{origin, whole};
  for (const auto* list : {&low, &high, &stride}) w.append(list->begin(), list->end());
  return w;
}

Box::Box(const Box& outside, ArrayRef<llvm::Value*> p) : shape(outside.shape), origin(p[0]), whole(p[1]) {
  size_t rank = shape.size();
  low.append(p.begin() + 2, p.begin() + 2 + rank);
  high.append(p.begin() + 2 + rank, p.begin() + 2 + 2 * rank);
  // Strides known to be 1 stay known.
  for (size_t d = 0; d < rank; ++d)
    stride.push_back(isa<llvm::Constant>(outside.stride[d]) ? outside.stride[d] : p[2 + 2 * rank + d]);
}

size_t Box::rowsFrom() const {
  constexpr int64_t kShort = 32;
  size_t first = shape.size() - 1;
  for (int64_t n = shape[first]; n < kShort && first > 0; n *= shape[first]) --first;
  return first;
}

llvm::Value* Box::isTogether(Emitter& e, size_t first) const {
  auto& b = e.b;
  const SmallVector<int64_t, 4> wanted = rowMajorStrides(shape);
  llvm::Value* same = b.getTrue();
  for (size_t d = first; d < shape.size(); ++d) {
    if (shape[d] > 1) same = b.CreateAnd(same, b.CreateICmpEQ(stride[d], e.i64(wanted[d])));
    if (d == first) continue;
    same = b.CreateAnd(same, b.CreateAnd(b.CreateICmpEQ(low[d], e.i64(0)), b.CreateICmpEQ(high[d], e.i64(shape[d]))));
  }
  return same;
}

Box Box::together(Emitter& e, size_t first) const {
  Box box = *this;
  llvm::Constant* each = e.i64(rowMajorStrides(shape)[first]);
  box.shape.resize(first + 1), box.stride.resize(first + 1), box.low.resize(first + 1), box.high.resize(first + 1);
  box.shape[first] *= rowMajorStrides(shape)[first], box.stride[first] = e.i64(1);
  for (llvm::Value** bound : {&box.low[first], &box.high[first]}) *bound = e.b.CreateMul(*bound, each);
  return box;
}

namespace {

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
  for (auto [d, i] : llvm::enumerate(index)) offset = e.b.CreateAdd(offset, e.b.CreateMul(i, box.stride[d]));
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

/// Outputs of this size outlive no cache: their lines need not be read before they are written.
constexpr int64_t kStreamBytes = 32 << 20;

/// Whether stores to the view may go around the caches: nothing in this kernel reads what they write, and no other
/// program is told by an atomic that it is there (relaxed ones tell nothing; the runtime orders such stores at the end
/// of a launch).
bool mayStream(Value view) {
  auto arg = dyn_cast<BlockArgument>(view);
  if (!arg || !llvm::all_of(arg.getUsers(), [](Operation* op) { return isa<StoreOp, ViewDimOp, ViewStrideOp>(op); }))
    return false;
  auto kernel = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp());
  return kernel && !kernel.walk([](Operation* op) {
    auto load = dyn_cast<LoadOp>(op);
    auto gather = dyn_cast<GatherOp>(op);
    const bool waits = (load && load.getCache() == CacheHint::volatile_) ||
                       (gather && gather.getCache() == CacheHint::volatile_);
    auto update = dyn_cast<AtomicRmwOp>(op);
    const bool tells = isa<AtomicCasOp>(op) || (update && update.getOrder() != MemOrder::relaxed);
    return waits || tells ? WalkResult::interrupt() : WalkResult::advance();
  }).wasInterrupted();
}

/// Whether a loaded tile may be read where it lies, for as long as it lives: nothing in this kernel writes to the view.
bool mayStay(Emitter& e, LoadOp op) {
  auto arg = dyn_cast<BlockArgument>(op.getView());
  return arg && op.getCache() != CacheHint::volatile_ && isa<func::FuncOp>(arg.getOwner()->getParentOp()) &&
         llvm::all_of(arg.getUsers(), [](Operation* user) { return isa<LoadOp, ViewDimOp, ViewStrideOp>(user); }) &&
         !e.plan.sharesBuffer(op.getResult());
}

/// i1: the box is inside the view, and its elements lie side by side in the order of a tile's.
llvm::Value* isTileInMemory(Emitter& e, const Box& box) {
  llvm::Value* same = box.whole;
  for (auto [stride, wanted, size] : llvm::zip(box.stride, rowMajorStrides(box.shape), box.shape))
    if (size > 1) same = e.b.CreateAnd(same, e.b.CreateICmpEQ(stride, e.i64(wanted)));
  return same;
}

/// Whether only products read the tile, as it is, as their second operand, and once for each time it is loaded: they
/// take rows that lie apart, and what they lose by that (a few percent) is less than a copy takes.
bool isForProducts(Emitter& e, LoadOp op) {
  Value tile = op.getResult();
  return shapeOf(tile).size() == 2 && llvm::all_of(tile.getUsers(), [&](Operation* user) {
    auto dot = dyn_cast<DotOp>(user);
    return dot && dot.getAcc() != tile && dot.getA() != tile && dot->getBlock() == op->getBlock() && e.plan.owns(dot.getResult()) &&
           elementOf(tile) == elementOf(dot.getAcc());
  });
}

/// i1: the box is inside the view, and each of its rows lies together.
llvm::Value* hasRowsInMemory(Emitter& e, const Box& box) {
  return e.b.CreateAnd(box.whole, e.b.CreateICmpEQ(box.stride[1], e.i64(1)));
}

/// i1: the view is large.
llvm::Value* isLarge(Emitter& e, Value viewValue, Type element) {
  llvm::Value* elements = e.i64(1);
  for (llvm::Value* dim : e.view(viewValue).dims) elements = e.b.CreateMul(elements, dim);
  return e.b.CreateICmpSGE(elements, e.i64(kStreamBytes / Numbers::bytes(element)));
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
  const int64_t bytes = cast<RankedTensorType>(op.getResult().getType()).getNumElements() *
                        Numbers::bytes(elementOf(op.getResult()));
  if (!isa<func::FuncOp>(op->getParentOp()) || bytes < kLeast || bytes > kMost) return;
  Operation* reader = e.plan.secondPass(op.getResult());
  if (!reader) return;
  const View view = e.view(op.getView());
  llvm::Value* elements = e.i64(0);
  for (auto [d, index] : llvm::enumerate(op.getIndices())) {
    llvm::Value* next = e.inNextProgram(index);
    if (!next) return;
    if (next == e.scalar(index)) continue;
    llvm::Value* step = b.CreateSub(b.CreateSExt(next, b.getInt64Ty()), e.asI64(index));
    elements = b.CreateAdd(elements, b.CreateMul(step, view.strides[d]));
  }
  if (isa<llvm::Constant>(elements)) return;  // every program's tile, or no later one's
  llvm::Value* distance = b.CreateMul(elements, e.i64(Numbers::bytes(elementOf(op.getResult()))));
  e.fetchAhead(*e.plan.place(op.getResult()), reader, b.CreateSelect(stays, distance, e.i64(0)));
}

}  // namespace

LogicalResult emitLoad(Emitter& e, LoadOp op) {
  Type element = op.getView().getType().getElementType();
  bool isVolatile = op.getCache() == CacheHint::volatile_;
  Box box(e, op.getView(), op.getIndices(), op.getResult().getType());
  llvm::Constant* pad = padOf(e, op);
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
  const bool inRows = isForProducts(e, op);
  llvm::Value* stays = inRows ? hasRowsInMemory(e, box) : isTileInMemory(e, box);
  e.ifThen(e.b.CreateNot(stays), [&] { e.b.CreateCall(copy, arguments); });
  llvm::Value* start = e.b.CreateSelect(stays, box.origin, arguments.back());
  if (inRows)
    e.readRowsAt(place, start, e.b.CreateSelect(stays, box.stride[0], e.i64(box.shape[1])));
  else
    e.readAt(place, start);
  if (!inRows) fetchForNextProgram(e, op, stays);
  return success();
}

namespace {

/// `w` elements to row[j ...], one by one where the row's stride is not 1.
void storeVector(Emitter& e, Type element, llvm::Value* v, llvm::Value* row, llvm::Value* j, unsigned w,
                 llvm::Value* stride, llvm::Value* unit, bool isVolatile) {
  auto& b = e.b;
  e.ifThen(
      unit, [&] { e.numbers.store(element, v, e.offsetBy(row, element, j), isVolatile); },
      [&] {
        llvm::Value* bits = e.numbers.toMemory(element, v);
        for (unsigned lane = 0; lane < w; ++lane) {
          llvm::Value* at = b.CreateMul(b.CreateAdd(j, e.i64(lane)), stride);
          b.CreateAlignedStore(b.CreateExtractElement(bits, lane), e.offsetBy(row, element, at),
                               llvm::Align(Numbers::bytes(element)), isVolatile);
        }
      });
}

}  // namespace

namespace {

/// The rows of a stored box, `box` being that or what its dims are together; the nest has the same dims.
LogicalResult storeRows(Emitter& e, StoreOp op, const Box& box, Nest& nest) {
  Type element = op.getView().getType().getElementType();
  const bool isVolatile = op.getCache() == CacheHint::volatile_;
  auto& b = e.b;
  int last = static_cast<int>(box.shape.size()) - 1;
  llvm::Value *stride = box.stride[last], *unit = b.CreateICmpEQ(stride, e.i64(1));
  // Values that are no wider than in memory while they are computed fill vectors.
  const int64_t widest = std::max(nest.widestElement(op.getValue()), Numbers::bytes(element));
  const int narrow = static_cast<int>(std::max<int64_t>(1, 4 / widest));
  const unsigned width =
      e.vectorWidth(widest, box.shape.back(), isLong(e.plan.cost(op.getValue())) ? narrow : 2 * narrow);
  // Stores around the caches are of whole aligned vectors.
  const int64_t bytes = width * Numbers::bytes(element);
  // Pieces of lines are better put together in a cache.
  constexpr int64_t kLine = 64;
  const bool hasLines = box.shape.back() * Numbers::bytes(element) >= kLine;
  const bool inVectors = bytes % 16 == 0 && llvm::isPowerOf2_64(bytes);
  llvm::Value* large = !isVolatile && inVectors && hasLines && mayStream(op.getView())
                           ? b.CreateAnd(unit, isLarge(e, op.getView(), element))
                           : b.getFalse();
  const llvm::Align whole(std::min<int64_t>(bytes, e.target.vectorBytes));
  bool ok = true;
  clippedRows(e, box, [&](ArrayRef<llvm::Value*> index) {
    for (auto [d, i] : llvm::enumerate(index)) nest.setIndex(static_cast<int>(d), i);
    nest.enterRow();
    nest.hoistAll();
    llvm::Value* row = e.offsetBy(box.origin, element, rowOffset(e, box, index));
    llvm::Value* around = large;
    if (!isa<llvm::Constant>(large)) {
      llvm::Value* start = b.CreatePtrToInt(e.offsetBy(row, element, box.low.back()), b.getInt64Ty());
      llvm::Value* off = b.CreateAnd(start, e.i64(static_cast<int64_t>(whole.value()) - 1));
      around = b.CreateAnd(large, b.CreateICmpEQ(off, e.i64(0)));
    }
    e.inVectors(box.low.back(), box.high.back(), width, [&](llvm::Value* j, unsigned w) {
      nest.enter();
      nest.setIndex(last, j);
      llvm::Value* v = ok ? nest.eval(op.getValue(), w) : nullptr;
      if (!v) return void(ok = false);
      if (w == width && w > 1 && !isa<llvm::Constant>(around)) {
        return e.ifThen(
            around,
            [&] {
              auto* store = b.CreateAlignedStore(e.numbers.toMemory(element, v), e.offsetBy(row, element, j), whole);
              auto* one = llvm::ConstantAsMetadata::get(b.getInt32(1));
              store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b.getContext(), {one}));
            },
            [&] { storeVector(e, element, v, row, j, w, stride, unit, isVolatile); });
      }
      if (w == 1) return e.numbers.store(element, v, e.offsetBy(row, element, b.CreateMul(j, stride)), isVolatile);
      storeVector(e, element, v, row, j, w, stride, unit, isVolatile);
    });
  });
  return success(ok);
}

}  // namespace

LogicalResult emitStore(Emitter& e, StoreOp op) {
  Box box(e, op.getView(), op.getIndices(), op.getValue().getType());
  if (box.shape.empty()) {
    Type element = op.getView().getType().getElementType();
    const bool isVolatile = op.getCache() == CacheHint::volatile_;
    e.ifThen(box.whole, [&] { e.numbers.store(element, e.scalar(op.getValue()), box.origin, isVolatile); });
    return success();
  }
  auto nestWith = [&](size_t apart) {
    Nest nest(e, box.shape);
    for (size_t d = 0; d < apart; ++d) nest.keepApart(static_cast<int>(d));
    nest.uses(op.getValue());
    nest.dims();
    return nest;
  };
  bool ok = true;
  auto apart = [&] {
    Nest nest = nestWith(box.shape.size());
    ok &= succeeded(storeRows(e, op, box, nest));
  };
  const size_t first = box.rowsFrom();
  Nest rows = nestWith(first);
  if (first + 1 == box.shape.size() || rows.sizes().size() != first + 1) return apart(), success(ok);
  e.ifThen(
      box.isTogether(e, first), [&] { ok &= succeeded(storeRows(e, op, box.together(e, first), rows)); }, apart);
  return success(ok);
}

LogicalResult emitAccumulate(Emitter& e, AccumulateOp op) {
  Type element = op.getView().getType().getElementType();
  Box box(e, op.getView(), op.getIndices(), op.getValue().getType());
  auto add = [&](llvm::Value* address, llvm::Value* value) {
    atomicUpdate(e, RmwKind::add, MemOrder::relaxed, element, address, value);
  };
  if (box.shape.empty()) {
    e.ifThen(box.whole, [&] { add(box.origin, e.scalar(op.getValue())); });
    return success();
  }
  Nest nest(e, box.shape);
  nest.keepAllApart();
  nest.uses(op.getValue());
  nest.dims();
  const int last = static_cast<int>(box.shape.size()) - 1;
  bool ok = true;
  clippedRows(e, box, [&](ArrayRef<llvm::Value*> index) {
    for (auto [d, i] : llvm::enumerate(index)) nest.setIndex(static_cast<int>(d), i);
    nest.enterRow();
    nest.hoistAll();
    llvm::Value* row = e.offsetBy(box.origin, element, rowOffset(e, box, index));
    e.loop(box.low.back(), box.high.back(), 1, [&](llvm::Value* j) {
      nest.enter();
      nest.setIndex(last, j);
      llvm::Value* v = ok ? nest.eval(op.getValue(), 1) : nullptr;
      if (!v) return void(ok = false);
      add(e.offsetBy(row, element, e.b.CreateMul(j, box.stride[last])), v);
    });
  });
  return success(ok);
}

}  // namespace tile::ir::host
