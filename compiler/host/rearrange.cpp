// rearrange.cpp - ops that move elements: tile.trans (in blocks held in registers), tile.cat, tile.take.
#include "compiler/host/lanes.h"
#include "compiler/host/nest.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

/// An n x n block held as n rows: log2(n) rounds of interleaving row k with row k + n/2.
void transposeRegisters(llvm::IRBuilder<>& b, SmallVectorImpl<llvm::Value*>& rows) {
  int n = static_cast<int>(rows.size());
  SmallVector<int> low, high;
  for (int i = 0; i < n / 2; ++i) {
    low.append({i, i + n});
    high.append({i + n / 2, i + n / 2 + n});
  }
  for (int round = 1; round < n; round *= 2) {
    SmallVector<llvm::Value*, 16> next;
    for (int k = 0; k < n / 2; ++k) {
      next.push_back(b.CreateShuffleVector(rows[k], rows[k + n / 2], low));
      next.push_back(b.CreateShuffleVector(rows[k], rows[k + n / 2], high));
    }
    rows.assign(next.begin(), next.end());
  }
}

void transposeLoops(Emitter& e, Lines from, Type element, Lines to, Type as, int64_t rows, int64_t columns) {
  auto& b = e.b;
  int64_t n = std::min<int64_t>(16, e.target.vectorBytes / std::max<int64_t>(4, Numbers::bytes(as)));
  auto source = [&](llvm::Value* i, llvm::Value* j) {
    return e.offsetBy(from.base, element, b.CreateAdd(b.CreateMul(j, from.distance), i));
  };
  auto target = [&](llvm::Value* i, llvm::Value* j) {
    return e.offsetBy(to.base, as, b.CreateAdd(b.CreateMul(i, to.distance), j));
  };
  bool sameBits = element == as;
  llvm::Type* raw = e.numbers.inMemory(element);
  auto load = [&](llvm::Value* address, unsigned width) -> llvm::Value* {
    if (!sameBits) return e.numbers.widen(element, as, e.numbers.load(element, address, width));
    return b.CreateAlignedLoad(width > 1 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(raw, width)) : raw,
                               address, llvm::Align(Numbers::bytes(element)));
  };
  auto store = [&](llvm::Value* v, llvm::Value* address) {
    if (!sameBits) return e.numbers.store(as, v, address);
    b.CreateAlignedStore(v, address, llvm::Align(Numbers::bytes(as)));
  };
  auto singly = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    e.loop(e.i64(j0), e.i64(j1), 1, [&](llvm::Value* j) {
      e.loop(e.i64(i0), e.i64(i1), 1, [&](llvm::Value* i) { store(load(source(i, j), 1), target(i, j)); });
    });
  };
  int64_t wholeRows = n > 1 ? rows / n * n : 0, wholeColumns = n > 1 ? columns / n * n : 0;
  if (wholeRows == 0 || wholeColumns == 0) return singly(0, rows, 0, columns);
  e.loop(e.i64(0), e.i64(wholeRows), n, [&](llvm::Value* i) {
    e.loop(e.i64(0), e.i64(wholeColumns), n, [&](llvm::Value* j) {
      SmallVector<llvm::Value*, 16> block;
      for (int64_t k = 0; k < n; ++k)
        block.push_back(load(source(i, b.CreateAdd(j, e.i64(k))), static_cast<unsigned>(n)));
      transposeRegisters(b, block);
      for (int64_t k = 0; k < n; ++k) store(block[k], target(b.CreateAdd(i, e.i64(k)), j));
    });
  });
  singly(0, wholeRows, wholeColumns, columns);
  singly(wholeRows, rows, 0, columns);
}

}  // namespace

void emitTransposeBlocks(Emitter& e, Lines from, Type element, Lines to, Type as, int64_t rows, int64_t columns) {
  std::string name;
  llvm::raw_string_ostream(name) << "transpose_" << rows << "x" << columns << "_" << element << "_" << as;
  llvm::Type *ptr = e.b.getPtrTy(), *i64 = e.b.getInt64Ty();
  llvm::Function* blocks = e.shared(name, {ptr, i64, ptr, i64}, [&](ArrayRef<llvm::Value*> p) {
    transposeLoops(e, {p[0], p[1]}, element, {p[2], p[3]}, as, rows, columns);
  });
  e.b.CreateCall(blocks, {from.base, from.distance, to.base, to.distance});
}

LogicalResult Emitter::emitTransposed(TransOp op, const Ref& to) {
  const Ref* source = plan.place(op.getSource());
  if (!source) return op.emitError("internal error: transpose of a tile that is not in memory");
  auto shape = shapeOf(op.getResult());
  Type element = elementOf(op.getResult());
  Ref from{source->buffer, source->offset, {}};
  int contiguous = -1, last = static_cast<int>(shape.size()) - 1;
  for (auto [d, s] : llvm::enumerate(op.getPermutation())) {
    from.strides.push_back(source->strides[s]);
    if (source->strides[s] == 1 && shape[d] > 1) contiguous = static_cast<int>(d);
  }
  if (contiguous < 0 || contiguous == last) return copy(from, to, element, shape), success();
  // Loops over the other dims, blocks over these two.
  SmallVector<llvm::Value*, 4> index(shape.size(), i64(0));
  std::function<void(int)> open = [&](int d) {
    if (d == contiguous || d == last) return open(d + 1);
    if (d < static_cast<int>(shape.size())) {
      loop(i64(0), i64(shape[d]), 1, [&](llvm::Value* i) {
        index[d] = i;
        open(d + 1);
      });
      return;
    }
    auto start = [&](const Ref& ref) {
      llvm::Value* n = i64(ref.offset);
      for (auto [i, stride] : llvm::zip(index, ref.strides)) n = b.CreateAdd(n, b.CreateMul(i, i64(stride)));
      return address(ref, element, n);
    };
    emitTransposeBlocks(*this, {start(from), i64(from.strides[last])}, element,
                        {start(to), i64(to.strides[contiguous])}, element, shape[contiguous], shape[last]);
  };
  open(0);
  return success();
}

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
  nest.dims();
  Type element = elementOf(op.getResult());
  return nest.run(1, [&](unsigned) {
    llvm::Value* index = nest.eval(op.getIndices(), 1);
    if (!index) return failure();
    // Undefined but inside the tile.
    index =
        e.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, llvm::ConstantInt::get(index->getType(), length - 1));
    index = e.b.CreateMul(e.b.CreateZExt(index, e.b.getInt64Ty()), e.i64(source.strides[axis]));
    llvm::Value* v = e.numbers.load(element, e.offsetBy(nest.address(start, element), element, index), 1);
    e.numbers.store(element, v, nest.address(to, element));
    return success();
  });
}

}  // namespace tile::ir::host
