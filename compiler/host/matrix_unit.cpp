// matrix_unit.cpp - tile.dot by AMX: eight tile registers of up to 16 rows of 64 bytes. Blocks of 2 x 2 registers of C
// (1 x 3, 3 x 1 of narrow products) stay there while k runs; A comes in rows as it lies in memory, B in panels of 16
// columns whose words hold neighbours along k. bf16 products round each sum to f32 and take subnormals as 0; sums of i8
// are exact. Edges of m and n are registers with fewer rows or columns.
#include "compiler/host/matrix_unit.h"

#include "compiler/host/nest.h"
#include "compiler/targets/host.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

constexpr int64_t kSide = 16;       // rows of a register, and its columns of 32 bits
constexpr int64_t kRowBytes = 64;   // of a register
constexpr int64_t kLeast = 8192;    // multiplications, below which setting the unit up costs more than it saves
constexpr int64_t kLeastStep = 32;  // bytes of k at a time: C moves more than is computed; half of it for i8, whose
                                    // vectors multiply a tenth as fast as those of floats

/// Equal blocks along one dim of C.
struct Segment {
  int64_t first = 0, blocks = 0;
  SmallVector<int64_t, 3> sizes;  ///< of each register of a block
};

SmallVector<Segment, 2> segmentsOf(int64_t size, int64_t registers) {
  SmallVector<Segment, 2> list;
  const int64_t block = registers * kSide, whole = size / block;
  if (whole > 0) list.push_back({0, whole, SmallVector<int64_t, 3>(registers, kSide)});
  if (whole * block == size) return list;
  Segment rest{whole * block, 1, {}};
  for (int64_t at = rest.first; at < size; at += kSide) rest.sizes.push_back(std::min(kSide, size - at));
  list.push_back(rest);
  return list;
}

class UnitEmitter {
 public:
  UnitEmitter(Emitter& e, DotOp op, const DotShape& shape) : e_(e), b_(e.b), op_(op), shape_(shape) {
    rows_ = shape.m <= kSide ? 1 : shape.n <= kSide ? 3 : 2;
    columns_ = shape.m <= kSide ? 3 : shape.n <= kSide ? 1 : 2;
  }

  LogicalResult run(const Ref& c, bool startsAtZero) {
    startsAtZero_ = startsAtZero;
    cPitch_ = c.strides[0] * shape_.computeBytes;
    if (failed(packA()) || failed(packB())) return failure();
    std::string name;
    llvm::raw_string_ostream(name) << "dot_" << shape_.m << "x" << shape_.n << "x" << shape_.k << "_" << shape_.operand
                                   << "_unit_c" << c.strides[0] << (startsAtZero ? "_new" : "_add");
    const SmallVector<llvm::Value*> arguments = {a_, aPitch_, words_, e_.address(c, shape_.compute, e_.i64(c.offset))};
    e_.callShared(name, arguments, [&](ArrayRef<llvm::Value*> p) { multiply(p[0], p[1], p[2], p[3]); });
    return success();
  }

 private:
  llvm::Value* start(const Ref& ref, Type element) { return e_.address(ref, element, e_.i64(ref.offset)); }
  llvm::Value* rowDistance(const Ref& ref) {
    llvm::Value* pitch = e_.pitchOf(ref);
    return pitch ? pitch : e_.i64(ref.strides[0]);
  }

  LogicalResult packA() {
    const Ref* source = e_.plan.place(op_.getA());
    const Type element = elementOf(op_.getA());
    llvm::Constant* bytes = e_.i64(shape_.operandBytes());
    if (!shape_.packA) {
      a_ = start(*source, element), aPitch_ = b_.CreateMul(rowDistance(*source), bytes);
      return success();
    }
    const Ref& to = *e_.plan.scratch(op_, 0);
    a_ = start(to, shape_.operand), aPitch_ = e_.i64(shape_.k * shape_.operandBytes());
    if (!source || element != shape_.operand || source->strides[0] != 1)
      return e_.evaluateInto(op_.getA(), to, shape_.operand);
    emitTransposeBlocks(e_, {start(*source, element), e_.i64(source->strides[1])}, element, {a_, e_.i64(shape_.k)},
                        shape_.operand, shape_.m, shape_.k);
    return success();
  }

  LogicalResult packB() {
    words_ = start(*e_.plan.scratch(op_, 1), shape_.operand);
    if (shape_.computesB) return computeWords();
    const Ref* source = shape_.rowsOfB ? e_.plan.scratch(op_, 2) : e_.plan.place(op_.getB());
    if (shape_.rowsOfB && failed(e_.evaluateInto(op_.getB(), *source, shape_.operand))) return failure();
    const bool columns = source->strides[1] != 1;
    std::string name;
    llvm::raw_string_ostream(name) << (columns ? "words_of_columns_" : "words_") << shape_.k << "x" << shape_.n << "_"
                                   << shape_.operand;
    llvm::Value* distance = columns ? e_.i64(source->strides[1] / shape_.group) : rowDistance(*source);
    const SmallVector<llvm::Value*> arguments = {start(*source, shape_.operand), distance, words_};
    e_.callShared(name, arguments, [&](ArrayRef<llvm::Value*> p) {
      columns ? turnWords({p[0], p[1]}, p[2]) : interleaveRows({p[0], p[1]}, p[2]);
    });
    return success();
  }

  /// Words of pairs of rows that are computed here: in registers they are floats whose upper halves are their bits.
  LogicalResult computeWords() {
    const Value tile = op_.getB();
    auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), kSide);
    Nest nest(e_, {shape_.k, shape_.n});
    nest.keepAllApart();
    nest.uses(tile);
    nest.dims();
    bool ok = true;
    e_.loop(e_.i64(0), e_.i64(shape_.k / 2), 1, [&](llvm::Value* word) {
      e_.loop(e_.i64(0), e_.i64(shape_.n / kSide), 1, [&](llvm::Value* p) {
        std::array<llvm::Value*, 2> rows{};
        for (int64_t r = 0; r < 2; ++r) {
          nest.enterRow();
          nest.setIndex(nest.dimOf(0), b_.CreateAdd(b_.CreateMul(word, e_.i64(2)), e_.i64(r)));
          nest.setIndex(nest.dimOf(1), b_.CreateMul(p, e_.i64(kSide)));
          llvm::Value* v = ok ? nest.eval(tile, kSide) : nullptr;
          if (!v) return void(ok = false);
          rows[r] = b_.CreateBitCast(e_.numbers.widen(elementOf(tile), shape_.operand, v), words);
        }
        llvm::Value* low = b_.CreateLShr(rows[0], llvm::ConstantInt::get(words, 16));
        llvm::Value* high = b_.CreateAnd(rows[1], llvm::ConstantInt::get(words, 0xffff0000));
        llvm::Value* place = b_.CreateAdd(b_.CreateMul(p, e_.i64(panelBytes())), b_.CreateMul(word, e_.i64(kRowBytes)));
        b_.CreateAlignedStore(b_.CreateOr(low, high), b_.CreateGEP(b_.getInt8Ty(), words_, place),
                              llvm::Align(kRowBytes));
      });
    });
    return success(ok);
  }

  int64_t panelBytes() const { return shape_.k / shape_.group * kRowBytes; }

  /// Words of `group` rows each, from a matrix of rows of operands.
  void interleaveRows(Lines from, llvm::Value* to) {
    llvm::Type* bits = b_.getIntNTy(static_cast<unsigned>(8 * shape_.operandBytes()));
    auto* vector = llvm::FixedVectorType::get(bits, kSide);
    auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), kSide);
    const llvm::Align align(shape_.operandBytes());
    const int64_t whole = shape_.n / kSide;
    e_.loop(e_.i64(0), e_.i64(shape_.k / shape_.group), 1, [&](llvm::Value* word) {
      SmallVector<llvm::Value*, 4> rows;
      for (int64_t r = 0; r < shape_.group; ++r) {
        llvm::Value* k = b_.CreateAdd(b_.CreateMul(word, e_.i64(shape_.group)), e_.i64(r));
        rows.push_back(b_.CreateGEP(bits, from.base, b_.CreateMul(k, from.distance)));
      }
      auto panel = [&](llvm::Value* p, llvm::Constant* mask) {
        llvm::Value* all = nullptr;
        for (auto [r, row] : llvm::enumerate(rows)) {
          llvm::Value* at = b_.CreateGEP(bits, row, b_.CreateMul(p, e_.i64(kSide)));
          llvm::Value* v = mask ? b_.CreateMaskedLoad(vector, at, align, mask, llvm::Constant::getNullValue(vector))
                                : static_cast<llvm::Value*>(b_.CreateAlignedLoad(vector, at, align));
          v = b_.CreateShl(b_.CreateZExt(v, words), llvm::ConstantInt::get(words, 32 / shape_.group * r));
          all = all ? b_.CreateOr(all, v) : v;
        }
        llvm::Value* place = b_.CreateAdd(b_.CreateMul(p, e_.i64(panelBytes())), b_.CreateMul(word, e_.i64(kRowBytes)));
        b_.CreateAlignedStore(all, b_.CreateGEP(b_.getInt8Ty(), to, place), llvm::Align(kRowBytes));
      };
      e_.loop(e_.i64(0), e_.i64(whole), 1, [&](llvm::Value* p) { panel(p, nullptr); });
      if (whole * kSide == shape_.n) return;
      SmallVector<llvm::Constant*> bits;
      for (int64_t i = 0; i < kSide; ++i) bits.push_back(b_.getInt1(whole * kSide + i < shape_.n));
      panel(e_.i64(whole), llvm::ConstantVector::get(bits));
    });
  }

  /// The same from columns whose elements lie together: their words only change places.
  void turnWords(Lines from, llvm::Value* to) {
    const Type word = IntegerType::get(op_.getContext(), 32);
    const int64_t whole = shape_.n / kSide;
    auto panel = [&](llvm::Value* p, int64_t columns) {
      llvm::Value* first = b_.CreateMul(b_.CreateMul(p, e_.i64(kSide)), from.distance);
      llvm::Value* place = b_.CreateGEP(b_.getInt8Ty(), to, b_.CreateMul(p, e_.i64(panelBytes())));
      emitTransposeBlocks(e_, {e_.offsetBy(from.base, word, first), from.distance}, word, {place, e_.i64(kSide)}, word,
                          shape_.k / shape_.group, columns);
    };
    e_.loop(e_.i64(0), e_.i64(whole), 1, [&](llvm::Value* p) { panel(p, kSide); });
    if (whole * kSide < shape_.n) panel(e_.i64(whole), shape_.n - whole * kSide);
  }

  // Registers of a block: C first, then A, then B.
  int64_t registerOfC(int64_t i, int64_t j) const { return i * columns_ + j; }
  int64_t registerOfA(int64_t i) const { return rows_ * columns_ + i; }
  int64_t registerOfB(int64_t j) const { return rows_ * columns_ + rows_ + j; }

  void tile(llvm::Intrinsic::ID what, ArrayRef<int64_t> registers, ArrayRef<llvm::Value*> more = {}) {
    SmallVector<llvm::Value*, 4> arguments;
    for (int64_t r : registers) arguments.push_back(b_.getInt8(static_cast<uint8_t>(r)));
    arguments.append(more.begin(), more.end());
    b_.CreateIntrinsic(what, {}, arguments);
  }

  /// What LDTILECFG reads: palette 1, bytes in a row of each register, rows of each register.
  llvm::Constant* configuration(ArrayRef<int64_t> rows, ArrayRef<int64_t> columns) {
    std::array<uint8_t, 64> bytes{};
    bytes[0] = 1;
    auto set = [&](int64_t r, int64_t rowCount, int64_t rowBytes) {
      bytes[16 + 2 * r] = static_cast<uint8_t>(rowBytes), bytes[48 + r] = static_cast<uint8_t>(rowCount);
    };
    auto rowsOf = [&](int64_t i) { return i < static_cast<int64_t>(rows.size()) ? rows[i] : kSide; };
    auto columnsOf = [&](int64_t j) { return j < static_cast<int64_t>(columns.size()) ? columns[j] : kSide; };
    for (int64_t i = 0; i < rows_; ++i) set(registerOfA(i), rowsOf(i), shape_.step * shape_.operandBytes());
    for (int64_t j = 0; j < columns_; ++j) set(registerOfB(j), shape_.step / shape_.group, 4 * columnsOf(j));
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < columns_; ++j) set(registerOfC(i, j), rowsOf(i), 4 * columnsOf(j));
    return llvm::ConstantDataArray::get(b_.getContext(), bytes);
  }

  /// All of C; pitches in bytes.
  void multiply(llvm::Value* a, llvm::Value* aPitch, llvm::Value* words, llvm::Value* c) {
    llvm::Constant* now = nullptr;
    for (const Segment& right : segmentsOf(shape_.n, columns_))
      for (const Segment& down : segmentsOf(shape_.m, rows_)) {
        if (llvm::Constant* next = configuration(down.sizes, right.sizes); next != now) {
          now = next;
          auto* global = new llvm::GlobalVariable(*e_.module, next->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                                  next, "tile_registers");
          global->setAlignment(llvm::Align(64));
          tile(llvm::Intrinsic::x86_ldtilecfg, {}, {global});
        }
        e_.loop(e_.i64(0), e_.i64(right.blocks), 1, [&](llvm::Value* j) {
          llvm::Value* panel = b_.CreateAdd(b_.CreateMul(j, e_.i64(columns_)), e_.i64(right.first / kSide));
          e_.loop(e_.i64(0), e_.i64(down.blocks), 1, [&](llvm::Value* i) {
            llvm::Value* row = b_.CreateAdd(b_.CreateMul(i, e_.i64(rows_ * kSide)), e_.i64(down.first));
            block(a, aPitch, words, c, row, panel, static_cast<int64_t>(down.sizes.size()),
                  static_cast<int64_t>(right.sizes.size()));
          });
        });
      }
    tile(llvm::Intrinsic::x86_tilerelease, {});
  }

  void block(llvm::Value* a, llvm::Value* aPitch, llvm::Value* words, llvm::Value* c, llvm::Value* row,
             llvm::Value* panel, int64_t rows, int64_t columns) {
    auto bytes = [&](llvm::Value* base, llvm::Value* at) { return b_.CreateGEP(b_.getInt8Ty(), base, at); };
    auto rowOf = [&](int64_t i) { return b_.CreateAdd(row, e_.i64(i * kSide)); };
    auto panelOf = [&](int64_t j) { return b_.CreateAdd(panel, e_.i64(j)); };
    auto eachOfC = [&](llvm::function_ref<void(int64_t, llvm::Value*)> access) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          llvm::Value* at = b_.CreateAdd(b_.CreateMul(rowOf(i), e_.i64(cPitch_)),
                                         b_.CreateMul(panelOf(j), e_.i64(kSide * shape_.computeBytes)));
          access(registerOfC(i, j), bytes(c, at));
        }
    };
    eachOfC([&](int64_t r, llvm::Value* at) {
      if (startsAtZero_)
        tile(llvm::Intrinsic::x86_tilezero, {r});
      else
        tile(llvm::Intrinsic::x86_tileloadd64, {r}, {at, e_.i64(cPitch_)});
    });
    SmallVector<llvm::Value*, 3> aRows, bPanels;
    for (int64_t i = 0; i < rows; ++i) aRows.push_back(bytes(a, b_.CreateMul(rowOf(i), aPitch)));
    for (int64_t j = 0; j < columns; ++j)
      bPanels.push_back(bytes(words, b_.CreateMul(panelOf(j), e_.i64(panelBytes()))));
    const auto product = shape_.operand.isInteger() ? llvm::Intrinsic::x86_tdpbssd : llvm::Intrinsic::x86_tdpbf16ps;
    e_.loop(e_.i64(0), e_.i64(shape_.k / shape_.step), 1, [&](llvm::Value* s) {
      llvm::Value* inRow = b_.CreateMul(s, e_.i64(shape_.step * shape_.operandBytes()));
      llvm::Value* inPanel = b_.CreateMul(s, e_.i64(shape_.step / shape_.group * kRowBytes));
      for (int64_t i = 0; i < rows; ++i)
        tile(llvm::Intrinsic::x86_tileloadd64, {registerOfA(i)}, {bytes(aRows[i], inRow), aPitch});
      for (int64_t j = 0; j < columns; ++j)
        tile(llvm::Intrinsic::x86_tileloadd64, {registerOfB(j)}, {bytes(bPanels[j], inPanel), e_.i64(kRowBytes)});
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) tile(product, {registerOfC(i, j), registerOfA(i), registerOfB(j)});
    });
    eachOfC([&](int64_t r, llvm::Value* at) {
      tile(llvm::Intrinsic::x86_tilestored64, {r}, {at, e_.i64(cPitch_)});
    });
  }

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  DotOp op_;
  const DotShape& shape_;
  int64_t rows_, columns_;  ///< registers of a block of C
  int64_t cPitch_ = 0;
  bool startsAtZero_ = false;
  llvm::Value *a_ = nullptr, *aPitch_ = nullptr, *words_ = nullptr;
};

}  // namespace

void DotShape::useMatrixUnit(DotOp dot, const Plan& plan) {
  const Type element = elementOf(dot.getA());
  const bool isInteger = element.isInteger(8);
  const bool isNarrow = element.isBF16() || isF8(element);
  if (isInteger ? !plan.machine().amxInt8 : !isNarrow || !plan.machine().amxBf16) return;
  const int64_t group = isInteger ? 4 : 2;
  int64_t step = std::min(k, kRowBytes * group / 4) / group * group;
  while (step > 0 && k % step != 0) step -= group;
  if (m * n * k < kLeast || step * 4 / group < (isInteger ? kLeastStep / 2 : kLeastStep)) return;
  operand = isInteger ? element : Type(BFloat16Type::get(dot.getContext()));
  this->group = group, this->step = step;
  const Ref *a = plan.place(dot.getA()), *b = plan.place(dot.getB());
  packA = !a || element != operand || a->strides[1] != 1;
  packB = true;
  computesB = !b && !isInteger && n % kSide == 0;
  auto hasWords = [&] { return b->strides[1] == 1 || (b->strides[0] == 1 && b->strides[1] % group == 0); };
  rowsOfB = !computesB && (!b || element != operand || !hasWords());
}

LogicalResult emitOnMatrixUnit(Emitter& e, DotOp op, const DotShape& shape, const Ref& c, bool startsAtZero) {
  return UnitEmitter(e, op, shape).run(c, startsAtZero);
}

}  // namespace tile::ir::host
