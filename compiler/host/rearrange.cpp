// rearrange.cpp - ops that move elements: tile.cat, tile.take, tile.put; tile.trans is in transpose.cpp.
#include "compiler/host/lanes.h"
#include "compiler/host/nest.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

/// Columns beside each other: vectors of all of them are interleaved and stored together. Nullopt where they do not lie
/// so in `to`.
std::optional<LogicalResult> interleaveColumns(Emitter& e, CatOp op, const Ref& to) {
  const auto count = static_cast<int64_t>(op.getSources().size());
  const int64_t axis = op.getAxis();
  const bool columns = llvm::all_of(op.getSources(), [&](Value v) { return shapeOf(v)[axis] == 1; });
  if (!columns || count > kMostColumns || to.strides[axis] != 1) return std::nullopt;
  Nest nest(e, shapeOf(op.getSources().front()));
  for (Value source : op.getSources()) nest.uses(source);
  nest.uses(to);
  const auto& sizes = nest.dims();
  if (sizes.back() == 1 || nest.stride(to, static_cast<int>(sizes.size()) - 1) != count) return std::nullopt;
  Type element = elementOf(op.getResult());
  int cost = 0;
  for (Value source : op.getSources()) cost += e.plan.cost(source);
  return nest.run(e.vectorWidth(Numbers::bytes(element), sizes.back(), isLong(cost) ? 1 : 2), [&](unsigned width) {
    SmallVector<llvm::Value*, kMostColumns> bits;
    for (Value source : op.getSources()) {
      llvm::Value* v = nest.eval(source, width);
      if (!v) return failure();
      bits.push_back(e.numbers.toMemory(element, v));
    }
    llvm::Value* start = nest.address(to, element);
    const llvm::Align align(Numbers::bytes(element));
    if (width > 1) return e.b.CreateAlignedStore(interleave(e.b, bits), start, align), success();
    for (auto [i, one] : llvm::enumerate(bits))
      e.b.CreateAlignedStore(one, e.offsetBy(start, element, e.i64(static_cast<int64_t>(i))), align);
    return success();
  });
}

}  // namespace

LogicalResult emitCat(Emitter& e, CatOp op) {
  if (!e.plan.owns(op.getResult())) return success();
  Ref to = *e.plan.place(op.getResult());
  if (auto done = interleaveColumns(e, op, to)) return *done;
  for (Value source : op.getSources()) {
    if (failed(e.evaluateInto(source, to, elementOf(source)))) return failure();
    to.offset += shapeOf(source)[op.getAxis()] * to.strides[op.getAxis()];
  }
  return success();
}

namespace {

/// Whether vectors of `width` lanes look up in one row of `length` elements of the type by permuting registers: where
/// it lies in two of them, a lookup is one instruction.
bool isPermuted(Emitter& e, Type element, int64_t length, unsigned width) {
  return isPermutable(e, element, width) && length <= 2 * width;
}

/// i1: all lanes of `index` are elements of one aligned block of as many.
llvm::Value* isInOneBlock(Emitter& e, llvm::Value* index) {
  auto& b = e.b;
  const unsigned width = llvm::cast<llvm::FixedVectorType>(index->getType())->getNumElements();
  llvm::Value* blocks = b.CreateLShr(index, llvm::ConstantInt::get(index->getType(), llvm::Log2_32(width)));
  llvm::Value* first = b.CreateVectorSplat(width, b.CreateExtractElement(blocks, uint64_t{0}));
  return b.CreateAndReduce(b.CreateICmpEQ(blocks, first));
}

/// Memory bits of the elements `index` (all inside) of the row at `table`.
llvm::Value* permuted(Emitter& e, Type element, llvm::Value* table, int64_t length, llvm::Value* index) {
  const unsigned lanes = permutedLanes(element);
  const bool isWide = lanes == 8;
  auto& b = e.b;
  llvm::Type* bits = b.getIntNTy(static_cast<unsigned>(Numbers::bytes(element) * 8));
  auto* words = llvm::FixedVectorType::get(isWide ? b.getInt64Ty() : b.getInt32Ty(), lanes);
  index = b.CreateZExtOrTrunc(index, words);
  auto entries = [&](int64_t first) {
    auto* type = llvm::FixedVectorType::get(bits, lanes);
    SmallVector<llvm::Constant*> there;
    for (int64_t i = 0; i < lanes; ++i) there.push_back(b.getInt1(first + i < length));
    llvm::Value* v =
        b.CreateMaskedLoad(type, e.offsetBy(table, element, e.i64(first)), llvm::Align(Numbers::bytes(element)),
                           llvm::ConstantVector::get(there), llvm::Constant::getNullValue(type));
    return b.CreateZExt(v, words);
  };
  const auto one = isWide ? llvm::Intrinsic::x86_avx512_permvar_di_512 : llvm::Intrinsic::x86_avx512_permvar_si_512;
  const auto two = isWide ? llvm::Intrinsic::x86_avx512_vpermi2var_q_512 : llvm::Intrinsic::x86_avx512_vpermi2var_d_512;
  llvm::Value* found = length <= lanes ? b.CreateIntrinsic(one, {}, {entries(0), index})
                                       : b.CreateIntrinsic(two, {}, {entries(0), index, entries(lanes)});
  found = b.CreateTrunc(found, llvm::FixedVectorType::get(bits, lanes));
  return b.CreateBitCast(found, llvm::FixedVectorType::get(e.numbers.inMemory(element), lanes));
}

}  // namespace

LogicalResult emitTake(Emitter& e, TakeOp op) {
  if (!e.plan.owns(op.getResult())) return success();
  const Ref &to = *e.plan.place(op.getResult()), &source = *e.plan.place(op.getSource());
  int64_t axis = op.getAxis(), length = shapeOf(op.getSource())[axis];
  Ref start = source;
  start.strides[axis] = 0;
  Nest nest(e, shapeOf(op.getResult()));
  nest.uses(op.getIndices());
  nest.uses(to);
  nest.uses(start);
  const auto& sizes = nest.dims();
  Type element = elementOf(op.getResult());
  const unsigned widest = nest.isContiguous(to) ? e.vectorWidth(Numbers::bytes(element), sizes.back(), 1) : 1;
  const auto block = static_cast<int32_t>(permutedLanes(element));
  const bool inBlocks = source.strides[axis] == 1 && length % block == 0 && nest.isComputed(op.getIndices()) &&
                        nest.stride(start, static_cast<int>(sizes.size()) - 1) == 0;
  return nest.run(widest, [&](unsigned width) {
    auto& b = e.b;
    llvm::Value* index = nest.eval(op.getIndices(), width);
    if (!index) return failure();
    // Undefined but inside the tile.
    index = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, llvm::ConstantInt::get(index->getType(), length - 1));
    const int64_t apart = nest.stride(start, static_cast<int>(sizes.size()) - 1);
    auto narrowed = [&](llvm::Value* v) { return b.CreateZExtOrTrunc(v, withElement(v->getType(), b.getInt32Ty())); };
    auto permute = [&](llvm::Value* table, int64_t entries, llvm::Value* index) {
      llvm::Value* bits = permuted(e, element, table, entries, index);
      e.numbers.store(element, e.numbers.fromMemory(element, bits), nest.address(to, element));
    };
    if (width > 1 && apart == 0 && source.strides[axis] == 1 && isPermuted(e, element, length, width)) {
      permute(nest.address(start, element), length, narrowed(index));
      return success();
    }
    // 32 bits of places are gathered with 16 at a time.
    const int64_t bytes = ShapedType::getNumElements(shapeOf(op.getSource())) * Numbers::bytes(element);
    const bool isSmall = bytes < INT32_MAX;
    auto gather = [&] {
      llvm::Type* wide = withElement(index->getType(), isSmall ? b.getInt32Ty() : b.getInt64Ty());
      llvm::Constant* stride = llvm::ConstantInt::get(wide, source.strides[axis]);
      llvm::Value* at = b.CreateMul(b.CreateZExtOrTrunc(index, wide), stride);
      if (width > 1) {  // where the lanes themselves lie along other dims
        SmallVector<llvm::Constant*> lanes;
        for (unsigned lane = 0; lane < width; ++lane)
          lanes.push_back(llvm::ConstantInt::get(wide->getScalarType(), lane * apart));
        at = b.CreateAdd(at, llvm::ConstantVector::get(lanes));
      }
      llvm::Value* from = e.offsetBy(nest.address(start, element), element, at);
      llvm::Value* v = width > 1 ? e.numbers.fromMemory(element, loadLanes(e, element, from, nullptr, nullptr))
                                 : e.numbers.load(element, from, 1);
      e.numbers.store(element, v, nest.address(to, element));
    };
    const bool computed = width > 1 && apart == 0 && source.strides[axis] == 1 && nest.isComputed(op.getIndices());
    if (!computed) return gather(), success();
    // Shifted rows: computed places that turn out to be neighbours are one load.
    llvm::Value* lanes = narrowed(index);
    auto shifted = [&] {
      e.ifThen(
          growBy(e, lanes, 1),
          [&] {
            llvm::Value* first = b.CreateZExt(b.CreateExtractElement(lanes, uint64_t{0}), b.getInt64Ty());
            llvm::Value* from = e.offsetBy(nest.address(start, element), element, first);
            e.numbers.store(element, e.numbers.load(element, from, width), nest.address(to, element));
          },
          gather);
    };
    // Exchanges with neighbours (i ^ 4), reversed rows: those that stay in one block permute it.
    if (!inBlocks || !isPermuted(e, element, block, width)) return shifted(), success();
    e.ifThen(
        isInOneBlock(e, lanes),
        [&] {
          llvm::Value* first = b.CreateAnd(b.CreateExtractElement(lanes, uint64_t{0}), b.getInt32(~(block - 1)));
          llvm::Value* table = e.offsetBy(nest.address(start, element), element, b.CreateZExt(first, b.getInt64Ty()));
          permute(table, block, lanes);
        },
        shifted);
    return success();
  });
}

/// Element by element; indices outside of the axis store to a place that nobody reads.
static LogicalResult storePlaced(Emitter& e, PutOp op, Value values, Value indices, llvm::Value* nowhere) {
  auto& b = e.b;
  const Ref& to = *e.plan.place(op.getResult());
  const Type element = elementOf(op.getResult());
  const int64_t axis = op.getAxis(), length = shapeOf(op.getResult())[axis];
  Ref start = to;
  start.strides[axis] = 0;
  Nest nest(e, shapeOf(values));
  nest.uses(indices);
  nest.uses(values);
  nest.uses(start);
  const auto& sizes = nest.dims();
  const int64_t apart = nest.stride(start, static_cast<int>(sizes.size()) - 1);
  return nest.run(e.vectorWidth(Numbers::bytes(element), sizes.back(), 1), [&](unsigned width) {
    llvm::Value *index = nest.eval(indices, width), *value = index ? nest.eval(values, width) : nullptr;
    if (!value) return failure();
    llvm::Value* fits = b.CreateICmpULT(index, llvm::ConstantInt::get(index->getType(), length));
    llvm::Value* row = nest.address(start, element);
    for (unsigned lane = 0; lane < width; ++lane) {
      auto at = [&](llvm::Value* v) { return width > 1 ? b.CreateExtractElement(v, lane) : v; };
      llvm::Value* place = b.CreateMul(b.CreateZExt(at(index), b.getInt64Ty()), e.i64(to.strides[axis]));
      llvm::Value* there = e.offsetBy(row, element, b.CreateAdd(place, e.i64(lane * apart)));
      e.numbers.store(element, at(value), b.CreateSelect(at(fits), there, nowhere));
    }
    return success();
  });
}

LogicalResult emitPut(Emitter& e, PutOp op) {
  if (!e.plan.owns(op.getResult())) return success();
  const Type element = elementOf(op.getResult());
  if (failed(e.evaluateInto(op.getInto(), *e.plan.place(op.getResult()), element))) return failure();
  llvm::IRBuilder<> entry(&e.function->getEntryBlock(), e.function->getEntryBlock().begin());
  llvm::Value* nowhere = entry.CreateAlloca(e.numbers.inMemory(element));
  for (auto [values, indices] : llvm::zip(op.getValues(), op.getIndices()))
    if (failed(storePlaced(e, op, values, indices, nowhere))) return failure();
  return success();
}

}  // namespace tile::ir::host
