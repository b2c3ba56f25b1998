// fma.cpp - tile.mma without tensor cores: every lane keeps a register tile of the accumulator and walks along k,
// reading 16-byte vectors of both operands from shared memory. For f32 IEEE, f64, and types or targets without an
// instruction.
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/lowering/smem_lowering.h"

namespace tile::ir {
using namespace llvm;

namespace {

constexpr int kUnrolled = 8;            ///< k per trip when the product is a loop; a multiple of the swizzle's 8 rows
constexpr int64_t kMaxUnrolled = 2048;  ///< multiply-adds per thread emitted in a row

/// One operand seen as (outer, k): values widened to the accumulator's type.
class FmaOperand {
 public:
  /// `outer`: the thread's first element along m or n; `outerMask`: its possible bits.
  FmaOperand(Emitter& e, Value* base, SmemType type, bool kMinor, Value* outer, int64_t outerMask, Type* element,
             Type* wide)
      : e_(e),
        base_(base),
        tile_(type.slot()),
        kMinor_(kMinor),
        outer_(outer),
        outerMask_(outerMask),
        element_(element),
        wide_(wide) {}

  /// Starts a trip at k0 (a multiple of kUnrolled; null: 0).
  void begin(Value* k0) {
    Value* k = k0 ? k0 : e_.i32(0);
    int64_t kMask = k0 ? ~int64_t{kUnrolled - 1} : 0;
    auto bytes = [&](Value* v) { return e_.b.CreateMul(v, e_.i32(tile_.elementBytes)); };
    if (kMinor_)
      address_.emplace(e_, tile_, outer_, outerMask_, bytes(k), kMask * tile_.elementBytes);
    else
      address_.emplace(e_, tile_, k, kMask, bytes(outer_), outerMask_ * tile_.elementBytes);
  }

  /// Elements (outer + o, k .. k+3) when reading along k, or (outer + o .. o+3, k) otherwise.
  SmallVector<Value*, 4> four(int64_t o, int64_t k) {
    const int64_t eb = tile_.elementBytes;
    return kMinor_ ? load(o, k * eb, 4) : load(k, o * eb, 4);
  }
  Value* one(int64_t o, int64_t k) {
    const int64_t eb = tile_.elementBytes;
    return (kMinor_ ? load(o, k * eb, 1) : load(k, o * eb, 1))[0];
  }
  bool kMinor() const { return kMinor_; }

 private:
  SmallVector<Value*, 4> load(int64_t row, int64_t byte, int count) {
    IRBuilder<>& b = e_.b;
    SmallVector<Value*, 4> out;
    const int perVector = std::min<int>(count, 16 / tile_.elementBytes);
    for (int first = 0; first < count; first += perVector) {
      Value* pointer = address_->at(base_, row, byte + first * tile_.elementBytes);
      if (perVector == 1) {
        out.push_back(widen(b.CreateAlignedLoad(element_, pointer, Align(tile_.elementBytes))));
        continue;
      }
      Value* vector = b.CreateAlignedLoad(FixedVectorType::get(element_, perVector), pointer,
                                          Align(perVector * tile_.elementBytes));
      for (int i = 0; i < perVector; ++i) out.push_back(widen(b.CreateExtractElement(vector, i)));
    }
    return out;
  }
  Value* widen(Value* v) {
    if (v->getType() == wide_) return v;
    return wide_->isFloatingPointTy() ? e_.b.CreateFPExt(v, wide_) : e_.b.CreateSExt(v, wide_);
  }

  Emitter& e_;
  Value* base_;
  layout::SharedTile tile_;
  bool kMinor_;
  Value* outer_;
  int64_t outerMask_;
  Type *element_, *wide_;
  std::optional<SmemAddress> address_;
};

/// The accumulator of one product, and the warps and lanes that divide it.
class FmaProduct {
 public:
  FmaProduct(Emitter& e, MmaOp op, const FmaLanes& lanes, const Cover& cover, FmaOperand& a, FmaOperand& b)
      : e_(e),
        lanes_(lanes),
        warpsM_(static_cast<int>(op.getWarpsM())),
        repsM_(static_cast<int>(cover.m / (lanes.rows * op.getWarpsM()))),
        repsN_(static_cast<int>(cover.n / (lanes.width() * op.getWarpsN()))),
        columnsOfWarps_(lanes.width() * static_cast<int>(op.getWarpsN())),
        isOfBits_(op.getB().getType().getElementType().isInteger(32)),
        apart_(fmaColumns(lanes, b.kMinor()).apart),
        a_(a),
        b_(b),
        wide_(e.elementType(op.getAcc())),
        acc_(e.regs(op.getAcc())) {}

  /// acc += a * b for k below `k`: a loop, if that is much code, and the rest in a row.
  const Regs& multiply(int64_t k) {
    const int64_t trips = k / kUnrolled * kUnrolled;  // k covered by the loop, if there is one
    int64_t done = 0;
    if (static_cast<int64_t>(acc_.size()) * k > kMaxUnrolled && trips > kUnrolled) loop(done = trips);
    a_.begin(nullptr);
    b_.begin(nullptr);
    for (; done < k; done += 4) fourSteps(done);
    return acc_;
  }

 private:
  using Quads = SmallVector<std::array<Value*, 4>>;  ///< [row or column of the thread][step along k]

  void fourSteps(int64_t k) {
    const Quads rows = readRows(k), columns = readColumns(k);
    IRBuilder<>& b = e_.b;
    // To and fro along rows: neighbouring products share an operand. Each reads two registers then, of different banks
    // where the assembler can choose; three take a second cycle.
    for (int i = 0; i < 4; ++i)
      for (int m = 0; m < repsM_; ++m)
        for (int along = 0; along < 4 * repsN_; ++along) {
          const int n = m % 2 ? 4 * repsN_ - 1 - along : along;
          Value*& d = acc_[m * 4 * repsN_ + n];
          d = wide_->isFloatingPointTy() ? b.CreateIntrinsic(Intrinsic::fma, {wide_}, {rows[m][i], columns[n][i], d})
                                         : b.CreateAdd(d, multiplied(rows[m][i], columns[n][i]));
        }
  }

  Value* multiplied(Value* x, Value* y) {
    if (!isOfBits_) return e_.b.CreateMul(x, y);
    return e_.b.CreateUnaryIntrinsic(Intrinsic::ctpop, e_.b.CreateAnd(x, y));
  }

  Quads readRows(int64_t k) {
    Quads rows(repsM_);
    for (int m = 0; m < repsM_; ++m) {
      const int64_t row = lanes_.rowOf(m, warpsM_);
      if (a_.kMinor()) {
        llvm::copy(a_.four(row, k), rows[m].begin());
        continue;
      }
      if (m % lanes_.deep) continue;  // came with the first of its rows
      for (int i = 0; i < 4; ++i) {
        if (lanes_.deep == 1) {
          rows[m][i] = a_.one(row, k + i);
          continue;
        }
        auto v = a_.four(row, k + i);
        for (int r = 0; r < 4; ++r) rows[m + r][i] = v[r];
      }
    }
    return rows;
  }

  Quads readColumns(int64_t k) {
    Quads columns(4 * repsN_);
    for (int n = 0; n < repsN_; ++n)
      for (int i = 0; i < 4; ++i) {
        if (b_.kMinor()) {
          llvm::copy(b_.four(columnsOfWarps_ * n + apart_ * i, k), columns[4 * n + i].begin());
        } else {
          auto v = b_.four(columnsOfWarps_ * n, k + i);
          for (int c = 0; c < 4; ++c) columns[4 * n + c][i] = v[c];
        }
      }
    return columns;
  }

  void loop(int64_t trips) {
    IRBuilder<>& b = e_.b;
    Function* function = b.GetInsertBlock()->getParent();
    BasicBlock* before = b.GetInsertBlock();
    BasicBlock* loop = BasicBlock::Create(b.getContext(), "fma", function);
    BasicBlock* after = BasicBlock::Create(b.getContext(), "fma.end", function);
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    PHINode* k0 = b.CreatePHI(b.getInt32Ty(), 2);
    k0->addIncoming(e_.i32(0), before);
    SmallVector<PHINode*> phis;
    for (Value*& v : acc_) {
      PHINode* phi = b.CreatePHI(wide_, 2);
      phi->addIncoming(v, before);
      phis.push_back(phi);
      v = phi;
    }
    a_.begin(k0);
    b_.begin(k0);
    for (int i = 0; i < kUnrolled; i += 4) fourSteps(i);
    Value* next = b.CreateNUWAdd(k0, e_.i32(kUnrolled));
    k0->addIncoming(next, loop);
    for (auto [phi, v] : llvm::zip(phis, acc_)) phi->addIncoming(v, loop);
    b.CreateCondBr(b.CreateICmpULT(next, e_.i32(trips)), loop, after);
    b.SetInsertPoint(after);
  }

  Emitter& e_;
  const FmaLanes& lanes_;
  int warpsM_, repsM_, repsN_;
  int columnsOfWarps_;  ///< of all warps side by side
  bool isOfBits_;       ///< words are multiplied for their common bits only (Precision::bits)
  int apart_;           ///< the four columns of a lane
  FmaOperand &a_, &b_;
  Type* wide_;
  Regs acc_;
};

/// Null for elements that cannot be multiplied.
Type* memoryType(IRBuilder<>& b, mlir::Type element) {
  if (element.isF16()) return b.getHalfTy();
  if (element.isBF16()) return b.getBFloatTy();
  if (element.isF32()) return b.getFloatTy();
  if (element.isF64()) return b.getDoubleTy();
  if (element.isInteger(32)) return b.getInt32Ty();
  return element.isInteger(8) ? b.getInt8Ty() : nullptr;
}

}  // namespace

LogicalResult emitFma(Emitter& e, MmaOp op) {
  auto accType = mlir::cast<mlir::RankedTensorType>(op.getAcc().getType());
  const int warpsM = static_cast<int>(op.getWarpsM()), warpsN = static_cast<int>(op.getWarpsN());
  if (warpsM * warpsN != e.numWarps())
    return op.emitOpError() << "is planned for " << warpsM * warpsN << " warps, the kernel has " << e.numWarps();
  const Cover cover = coverOf(Engine::fma, accType.getDimSize(0), accType.getDimSize(1), op.getK(), warpsM, warpsN);
  const FmaLanes lanes = fmaLanes(accType.getDimSize(0), accType.getDimSize(1), warpsM, warpsN);

  const auto aType = mlir::cast<SmemType>(op.getA().getType());
  const SmemType bType = op.getB().getType();
  Type *element = memoryType(e.b, bType.getElementType()), *wide = e.elementType(op.getAcc());
  if (!element) return op.emitOpError() << "cannot multiply elements of " << bType.getElementType();
  // The accumulator's layout (accumulatorLayout): lane = column group + columns * row, warp = m + warpsM * n.
  using layout::ThreadTerm;
  const layout::ThreadSum rowSum{
      {{ThreadTerm::lane, lanes.columns, lanes.rows, lanes.deep}, {ThreadTerm::warp, 1, warpsM, lanes.height()}}};
  const bool alongK = bType.getMinor() == 0;
  const layout::ThreadSum colSum{{{ThreadTerm::lane, 1, lanes.columns, fmaColumns(lanes, alongK).ofLanes},
                                  {ThreadTerm::warp, warpsM, warpsN, lanes.width()}}};
  FmaOperand a(e, e.scalar(op.getA()), aType, aType.getMinor() == 1, emitThreadSum(e, rowSum),
               rowSum.mask(e.numWarps()), element, wide);
  FmaOperand b(e, e.scalar(op.getB()), bType, alongK, emitThreadSum(e, colSum), colSum.mask(e.numWarps()), element,
               wide);
  e.define(op.getResult(), FmaProduct(e, op, lanes, cover, a, b).multiply(cover.k));
  return success();
}

}  // namespace tile::ir
