// transpose.cpp - tile.trans: blocks of rows and columns are transposed in registers. Where only short runs of elements
// change places, neighbouring vectors are shuffled; a tile of a few long lines is interleaved into rows, or rows are
// split into them.
#include "compiler/host/lanes.h"

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

/// Memory bits, as they are.
class Bits {
 public:
  Bits(Emitter& e, Type element) : e_(e), raw_(e.numbers.inMemory(element)), element_(element) {}
  llvm::Value* address(llvm::Value* base, llvm::Value* at) const { return e_.offsetBy(base, element_, at); }
  llvm::Value* load(llvm::Value* address, int64_t width) const {
    auto* type = width > 1 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(raw_, width)) : raw_;
    return e_.b.CreateAlignedLoad(type, address, align());
  }
  void store(llvm::Value* bits, llvm::Value* address) const { e_.b.CreateAlignedStore(bits, address, align()); }

 private:
  llvm::Align align() const { return llvm::Align(Numbers::bytes(element_)); }
  Emitter& e_;
  llvm::Type* raw_;
  Type element_;
};

void transposeLoops(Emitter& e, Lines from, Type element, Lines to, Type as, int64_t rows, int64_t columns) {
  auto& b = e.b;
  const auto fits = static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(std::min(rows, columns))));
  const int64_t n = std::min({int64_t{16}, e.target.vectorBytes / std::max<int64_t>(4, Numbers::bytes(as)), fits});
  auto source = [&](llvm::Value* i, llvm::Value* j) {
    return e.offsetBy(from.base, element, b.CreateAdd(b.CreateMul(j, from.distance), i));
  };
  auto target = [&](llvm::Value* i, llvm::Value* j) {
    return e.offsetBy(to.base, as, b.CreateAdd(b.CreateMul(i, to.distance), j));
  };
  const bool sameBits = element == as;
  const Bits bits(e, element);
  auto load = [&](llvm::Value* address, unsigned width) {
    return sameBits ? bits.load(address, width)
                    : e.numbers.widen(element, as, e.numbers.load(element, address, width));
  };
  auto store = [&](llvm::Value* v, llvm::Value* address) {
    return sameBits ? bits.store(v, address) : e.numbers.store(as, v, address);
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

/// Elements that one shuffle moves at most.
constexpr int64_t kLongestRun = 64;

/// The first dim from which on only what lies behind it changes places: in front of it, source and result agree.
int firstMoved(TransOp op) {
  ArrayRef<int32_t> order = op.getPermutation();
  int first = 0;
  while (first < static_cast<int>(order.size()) && order[first] == first) ++first;
  return first;
}

bool isRowMajor(const Ref& ref, ArrayRef<int64_t> shape) { return ArrayRef(ref.strides) == ArrayRef(rowMajorStrides(shape)); }

/// Runs of `length` elements in which the trailing dims of `shape` change places, and which themselves stay where they
/// are. `from` has the strides of the result's dims in the source.
void shuffleRuns(Emitter& e, const Ref& from, const Ref& to, Type element, ArrayRef<int64_t> shape, int64_t length) {
  SmallVector<int64_t> origins;  // by the result's elements, in order
  const SmallVector<int64_t, 4> strides = rowMajorStrides(shape);
  for (int64_t i = 0; i < length; ++i) {
    int64_t origin = 0;
    for (auto [d, size] : llvm::enumerate(shape)) origin += i / strides[d] % size * from.strides[d];
    origins.push_back(origin);
  }
  const Bits bits(e, element);
  llvm::Value *source = e.address(from, element, e.i64(from.offset)), *target = e.address(to, element, e.i64(to.offset));
  const int64_t n = ShapedType::getNumElements(shape), many = std::max<int64_t>(1, e.vectorWidth(Numbers::bytes(element), n) / length);
  auto move = [&](int64_t first, int64_t end, int64_t runs) {
    SmallVector<int> lanes;
    for (int64_t run = 0; run < runs; ++run)
      for (int64_t origin : origins) lanes.push_back(static_cast<int>(run * length + origin));
    e.loop(e.i64(first), e.i64(end), runs * length, [&](llvm::Value* i) {
      llvm::Value* v = bits.load(bits.address(source, i), runs * length);
      bits.store(e.b.CreateShuffleVector(v, lanes), bits.address(target, i));
    });
  };
  const int64_t whole = n / (many * length) * many * length;
  if (whole > 0) move(0, whole, many);
  if (whole < n) move(whole, n, 1);
}

/// A few lines of `rows` elements, whose elements follow each other in turns: to[i][j] = from[j][i].
void interleaveLines(Emitter& e, Lines from, llvm::Value* to, Type element, int64_t rows, int64_t columns) {
  const Bits bits(e, element);
  e.inVectors(e.i64(0), e.i64(rows), e.vectorWidth(Numbers::bytes(element), rows), [&](llvm::Value* i, unsigned width) {
    SmallVector<llvm::Value*, kMostColumns> lines;
    for (int64_t j = 0; j < columns; ++j) {
      llvm::Value* at = e.b.CreateAdd(e.b.CreateMul(e.i64(j), from.distance), i);
      lines.push_back(bits.load(bits.address(from.base, at), width));
    }
    llvm::Value* start = bits.address(to, e.b.CreateMul(i, e.i64(columns)));
    if (width > 1) return bits.store(interleave(e.b, lines), start);
    for (int64_t j = 0; j < columns; ++j) bits.store(lines[j], bits.address(start, e.i64(j)));
  });
}

/// The way back: elements that follow each other in turns, as a few lines of `columns` elements.
void dealLines(Emitter& e, llvm::Value* from, Lines to, Type element, int64_t rows, int64_t columns) {
  const Bits bits(e, element);
  e.inVectors(e.i64(0), e.i64(columns), e.vectorWidth(Numbers::bytes(element), columns), [&](llvm::Value* j, unsigned width) {
    for (int64_t i = 0; i < rows; ++i) {
      llvm::Value* start = bits.address(from, e.b.CreateAdd(e.b.CreateMul(j, e.i64(rows)), e.i64(i)));
      llvm::Value* line = width > 1 ? loadApart(e, element, start, rows, width) : bits.load(start, 1);
      bits.store(line, bits.address(to.base, e.b.CreateAdd(e.b.CreateMul(e.i64(i), to.distance), j)));
    }
  });
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
  const int64_t run = ShapedType::getNumElements(shape.drop_front(firstMoved(op)));
  if (run <= kLongestRun && isRowMajor(*source, shapeOf(op.getSource())) && isRowMajor(to, shape))
    return shuffleRuns(*this, from, to, element, shape, run), success();
  const int64_t rows = shape[contiguous], columns = shape[last];
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
    const Lines lines{start(from), i64(from.strides[last])}, turned{start(to), i64(to.strides[contiguous])};
    if (columns <= kMostColumns && to.strides[contiguous] == columns)
      interleaveLines(*this, lines, turned.base, element, rows, columns);
    else if (rows <= kWidestStep && from.strides[last] == rows)
      dealLines(*this, lines.base, turned, element, rows, columns);
    else
      emitTransposeBlocks(*this, lines, element, turned, element, rows, columns);
  };
  open(0);
  return success();
}

}  // namespace tile::ir::host
