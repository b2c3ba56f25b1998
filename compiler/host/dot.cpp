// dot.cpp - tile.dot as register tiles: MR rows x NV vectors of accumulators stay in registers while k runs over the
// tile. A is read one scalar at a time and spread over a vector, B in vectors along n, its rows as far apart as they
// lie in memory; operands of narrow types, or B lying the other way round, are first packed into scratch. (Rows of A
// any distance apart cost 14 additions of addresses beside 26 multiply-adds, an eighth of the time; copying A costs
// less.) Columns beyond the last whole vector use masked accesses. An accumulator that is a short expression is
// evaluated as its elements are loaded.
#include "compiler/host/matrix_unit.h"
#include "compiler/host/nest.h"
#include "compiler/targets/host.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

struct RegisterTile {
  int64_t rows, vectors;
};

/// The register tile with the fewest estimated cycles for the whole m x n tile: two multiply-adds or two loads a cycle,
/// and at least 8 independent sums to cover the latency of one.
RegisterTile chooseTile(int64_t m, int64_t vectorsOfN, int registers) {
  RegisterTile best{1, 1};
  double bestCycles = 1e300;
  auto block = [](int64_t rows, int64_t vectors) {
    return std::max({0.5 * static_cast<double>(rows * vectors), 0.5 * static_cast<double>(rows + vectors), 4.0});
  };
  for (int64_t vectors = 1; vectors <= std::min<int64_t>(4, vectorsOfN); ++vectors)
    for (int64_t rows = 1; rows <= std::min<int64_t>(14, m); ++rows) {
      if (rows * vectors + vectors + 1 > registers) break;
      double cycles = 0;
      int64_t lastRows = m % rows, lastVectors = vectorsOfN % vectors;
      auto columns = [&](int64_t r) {
        return static_cast<double>(vectorsOfN / vectors) * block(r, vectors) +
               (lastVectors ? block(r, lastVectors) : 0);
      };
      cycles = static_cast<double>(m / rows) * columns(rows) + (lastRows ? columns(lastRows) : 0);
      cycles *= 1 + 0.002 * static_cast<double>(m / rows);  // between equals, fewer trips
      if (cycles < bestCycles) bestCycles = cycles, best = {rows, vectors};
    }
  return best;
}

class DotEmitter {
 public:
  DotEmitter(Emitter& e, DotOp op) : e_(e), b_(e.b), op_(op), shape_(DotShape::of(op, e.plan)) {
    lanes_ = std::max<int64_t>(1, e.target.vectorBytes / shape_.computeBytes);
    isFloat_ = isa<FloatType>(shape_.compute), isOfBits_ = op.getPrecision() == Precision::bits;
    hasFma_ = hostFeatures(e.target).fma;
  }

  LogicalResult run() {
    c_ = *e_.plan.place(op_.getResult());
    auto fill = op_.getAcc().getDefiningOp<arith::ConstantOp>();
    auto splat = fill ? dyn_cast<SplatElementsAttr>(fill.getValue()) : SplatElementsAttr();
    startsAtZero_ = splat && e_.numbers.constant(splat.getSplatValue<Attribute>())->isNullValue();
    const Ref* acc = e_.plan.place(op_.getAcc());
    bool inPlace = acc && e_.plan.root(acc->buffer) == e_.plan.root(c_.buffer) && acc->offset == c_.offset &&
                   acc->strides == c_.strides;
    const bool computed = !startsAtZero_ && !acc && !shape_.onMatrixUnit() && shape_.n % lanes_ == 0 &&
                          e_.plan.cost(op_.getAcc()) <= kShort;
    if (!startsAtZero_ && !inPlace && !computed && failed(e_.evaluateInto(op_.getAcc(), c_, shape_.compute)))
      return failure();
    if (shape_.onMatrixUnit()) return emitOnMatrixUnit(e_, op_, shape_, c_, startsAtZero_);
    if (failed(packA()) || failed(packB())) return failure();
    if (computed) return multiplyOnto(op_.getAcc());
    // Operands start at their pointers; everything else about them is in the name.
    std::string name;
    llvm::raw_string_ostream(name) << "dot_" << shape_.m << "x" << shape_.n << "x" << shape_.k << "_" << shape_.compute
                                   << "_a" << a_.strides[0] << "_" << a_.strides[1] << "_b" << bRef_.strides[0] << "_c"
                                   << c_.strides[0] << (startsAtZero_ ? "_new" : "_add") << (bPitch() ? "_rows" : "")
                                   << (isOfBits_ ? "_bits" : "");
    const SmallVector<llvm::Value*> arguments = operands();
    SmallVector<llvm::Type*> types;
    for (llvm::Value* v : arguments) types.push_back(v->getType());
    llvm::Function* kernel = e_.shared(name, types, [&](ArrayRef<llvm::Value*> inside) { multiply(inside); });
    b_.CreateCall(kernel, arguments);
    return success();
  }

 private:
  static constexpr int kShort = 6;  // ops for each element: fewer than a pass over the accumulator takes

  /// The product where it stands (what `acc` is computed from is at hand here only), added to `acc`.
  LogicalResult multiplyOnto(Value acc) {
    Nest nest(e_, {shape_.m, shape_.n});
    nest.keepAllApart();
    nest.uses(acc);
    nest.dims();
    bool ok = true;
    start_ = [&](llvm::Value* row, llvm::Value* column) -> llvm::Value* {
      nest.enterRow();
      nest.setIndex(nest.dimOf(0), row);
      nest.setIndex(nest.dimOf(1), column);
      llvm::Value* v = ok ? nest.eval(acc, static_cast<unsigned>(lanes_)) : nullptr;
      ok &= v != nullptr;
      return v ? v : llvm::PoisonValue::get(vectorType());
    };
    multiply(operands());
    return success(ok);
  }

  llvm::Value* bPitch() const { return shape_.packB ? nullptr : e_.pitchOf(bRef_); }

  /// What the product is computed from: the first elements of A, B and C, and how far rows of B lie apart where that is
  /// a value of the launch.
  SmallVector<llvm::Value*> operands() {
    SmallVector<llvm::Value*> list;
    for (const Ref* ref : {&a_, &bRef_, &c_}) list.push_back(e_.address(*ref, shape_.compute, e_.i64(ref->offset)));
    if (llvm::Value* pitch = bPitch()) list.push_back(pitch);
    return list;
  }

  LogicalResult packA() {
    a_ = shape_.packA ? *e_.plan.scratch(op_, 0) : *e_.plan.place(op_.getA());
    return shape_.packA ? e_.evaluateInto(op_.getA(), a_, shape_.compute) : success();
  }

  LogicalResult packB() {
    const Ref* source = e_.plan.place(op_.getB());
    if (!shape_.packB) return bRef_ = *source, success();
    bRef_ = *e_.plan.scratch(op_, 1);
    Type element = elementOf(op_.getB());
    if (source && source->strides[0] == 1 && source->strides[1] != 1 && shape_.n > 1) {
      emitTransposeBlocks(e_, {e_.address(*source, element, e_.i64(source->offset)), e_.i64(source->strides[1])},
                          element, {e_.address(bRef_, shape_.compute, e_.i64(0)), e_.i64(shape_.n)}, shape_.compute,
                          shape_.k, shape_.n);
      return success();
    }
    return e_.evaluateInto(op_.getB(), bRef_, shape_.compute);
  }

  /// All of c += a * b (or c = a * b), operands as operands() lists them.
  void multiply(ArrayRef<llvm::Value*> operands) {
    aStart_ = operands[0], bStart_ = operands[1], cStart_ = operands[2];
    bRows_ = operands.size() > 3 ? operands[3] : nullptr;
    int64_t vectors = llvm::divideCeil(shape_.n, lanes_);
    RegisterTile tile = chooseTile(shape_.m, vectors, e_.target.vectorRegisters);
    int64_t wide = tile.vectors * lanes_, whole = shape_.n / wide * wide;
    e_.loop(e_.i64(0), e_.i64(whole), wide, [&](llvm::Value* j) { columns(tile.rows, j, wide); });
    if (whole < shape_.n) columns(tile.rows, e_.i64(whole), shape_.n - whole);
  }

  /// One panel of `width` columns from j on, all rows.
  void columns(int64_t rows, llvm::Value* j, int64_t width) {
    int64_t whole = shape_.m / rows * rows;
    e_.loop(e_.i64(0), e_.i64(whole), rows, [&](llvm::Value* i) { block(i, rows, j, width); });
    if (whole < shape_.m) block(e_.i64(whole), shape_.m - whole, j, width);
  }

  llvm::Value* at(llvm::Value* start, const Ref& ref, llvm::Value* row, int64_t rowOffset, llvm::Value* column,
                  int64_t columnOffset, llvm::Value* pitch = nullptr) {
    if (pitch) {
      row = b_.CreateMul(b_.CreateAdd(row, e_.i64(rowOffset)), pitch);
      return e_.offsetBy(e_.offsetBy(start, shape_.compute, b_.CreateAdd(row, column)), shape_.compute,
                         e_.i64(columnOffset));
    }
    llvm::Value* n =
        b_.CreateAdd(b_.CreateMul(row, e_.i64(ref.strides[0])), b_.CreateMul(column, e_.i64(ref.strides[1])));
    // Constant parts last: they become displacements of one address.
    llvm::Value* base = e_.offsetBy(start, shape_.compute, n);
    return e_.offsetBy(base, shape_.compute, e_.i64(rowOffset * ref.strides[0] + columnOffset * ref.strides[1]));
  }

  llvm::VectorType* vectorType() {
    return llvm::FixedVectorType::get(e_.numbers.inRegister(shape_.compute), static_cast<unsigned>(lanes_));
  }

  /// Null when all lanes of the vector that starts `column` elements into a panel of `width` are inside it.
  llvm::Constant* maskAt(int64_t column, int64_t width) {
    if (column + lanes_ <= width) return nullptr;
    SmallVector<llvm::Constant*> bits;
    for (int64_t lane = 0; lane < lanes_; ++lane) bits.push_back(b_.getInt1(column + lane < width));
    return llvm::ConstantVector::get(bits);
  }

  llvm::Value* loadVector(llvm::Value* address, llvm::Constant* mask) {
    llvm::Align align(shape_.computeBytes);
    if (!mask) return b_.CreateAlignedLoad(vectorType(), address, align);
    return b_.CreateMaskedLoad(vectorType(), address, align, mask, llvm::Constant::getNullValue(vectorType()));
  }

  llvm::Value* multiplyAdd(llvm::Value* x, llvm::Value* y, llvm::Value* sum) {
    if (isOfBits_) return b_.CreateAdd(b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, b_.CreateAnd(x, y)), sum);
    if (!isFloat_) return b_.CreateAdd(b_.CreateMul(x, y), sum);
    if (hasFma_) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {x, y, sum});
    return b_.CreateFAdd(b_.CreateFMul(x, y), sum);
  }

  void block(llvm::Value* i, int64_t rows, llvm::Value* j, int64_t width) {
    int64_t vectors = llvm::divideCeil(width, lanes_);
    llvm::Align align(shape_.computeBytes);
    SmallVector<llvm::Value*> sums;
    auto first = [&](int64_t r, int64_t v) -> llvm::Value* {
      if (startsAtZero_) return llvm::Constant::getNullValue(vectorType());
      if (start_) return start_(b_.CreateAdd(i, e_.i64(r)), b_.CreateAdd(j, e_.i64(v * lanes_)));
      return loadVector(at(cStart_, c_, i, r, j, v * lanes_), maskAt(v * lanes_, width));
    };
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v) sums.push_back(first(r, v));
    sums = e_.loopCarrying(0, shape_.k, 1, sums, [&](llvm::Value* k, ArrayRef<llvm::Value*> sums) {
      SmallVector<llvm::Value*> bs, next;
      for (int64_t v = 0; v < vectors; ++v)
        bs.push_back(loadVector(at(bStart_, bRef_, k, 0, j, v * lanes_, bRows_), maskAt(v * lanes_, width)));
      for (int64_t r = 0; r < rows; ++r) {
        llvm::Value* a = b_.CreateAlignedLoad(vectorType()->getElementType(), at(aStart_, a_, i, r, k, 0), align);
        a = b_.CreateVectorSplat(static_cast<unsigned>(lanes_), a);
        for (int64_t v = 0; v < vectors; ++v) next.push_back(multiplyAdd(a, bs[v], sums[r * vectors + v]));
      }
      return next;
    });
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v) {
        llvm::Value *sum = sums[r * vectors + v], *to = at(cStart_, c_, i, r, j, v * lanes_);
        if (llvm::Constant* mask = maskAt(v * lanes_, width))
          b_.CreateMaskedStore(sum, to, align, mask);
        else
          b_.CreateAlignedStore(sum, to, align);
      }
  }

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  DotOp op_;
  DotShape shape_;
  Ref a_, bRef_, c_;
  llvm::Value *aStart_ = nullptr, *bStart_ = nullptr, *cStart_ = nullptr;
  llvm::Value* bRows_ = nullptr;  ///< elements from one row of B to the next; null: known, as its strides say
  int64_t lanes_ = 1;
  bool isFloat_ = true, isOfBits_ = false, hasFma_ = false, startsAtZero_ = false;
  std::function<llvm::Value*(llvm::Value* row, llvm::Value* column)> start_;  ///< a vector of the accumulator
};

}  // namespace

LogicalResult emitDot(Emitter& e, DotOp op) {
  return e.plan.owns(op.getResult()) ? DotEmitter(e, op).run() : success();
}

}  // namespace tile::ir::host
