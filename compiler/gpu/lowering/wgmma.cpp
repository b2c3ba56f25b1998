// wgmma.cpp - tile.mma by warpgroups: asynchronous products of 64 rows that read shared memory through descriptors, and the
// wait that makes their results readable.
//
// One tile.mma is one group: fence, all k steps of all row and column blocks, commit. Accumulators are tied operands of the
// instructions and of the wait, so that their values flow: LLVM cannot move a use over the wait, the assembler sees one set
// of registers. A product that starts from zero says so to its first instructions, and no zeros are made.
//
// A product whose first operand the threads read from shared memory (dialect/products.h) is several groups of kFragmentSteps
// k steps. Each reads its fragments while the group before runs, behind a wait for the group before that: two sets of
// registers take turns, across the products of a loop, too, and the tensor cores never wait for a read.
#include "compiler/gpu/async_products.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "compiler/gpu/mma_table.h"
#include "compiler/gpu/shared_memory.h"
#include "compiler/layout/descriptor.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace llvm;

namespace {

/// Names of the instruction's accumulator and operand types, and what stands behind the scale of the accumulator.
struct Spelling {
  const char* types;
  bool scales;      ///< immediate signs of a and b
  bool transposes;  ///< immediate transpose flags
};
Spelling spellingOf(Engine engine) {
  switch (engine) {
    case Engine::wgmma_bf16:
      return {"f32.bf16.bf16", true, true};
    case Engine::wgmma_tf32:
      return {"f32.tf32.tf32", true, false};
    case Engine::wgmma_s8:
      return {"s32.s8.s8", false, false};
    case Engine::wgmma_e4m3:
      return {"f32.e4m3.e4m3", true, false};
    case Engine::wgmma_e5m2:
      return {"f32.e5m2.e5m2", true, false};
    default:
      return {"f32.f16.f16", true, true};
  }
}

std::string list(int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

/// Result of `count` registers of one type.
Type* structOf(IRBuilder<>& b, Type* element, size_t count) {
  return StructType::get(b.getContext(), SmallVector<Type*>(count, element));
}

bool isZero(ArrayRef<Value*> values) {
  return llvm::all_of(values, [](Value* v) {
    auto* constant = dyn_cast<Constant>(v);
    return constant && (constant->isNullValue() || isa<UndefValue>(constant));  // undef: padding
  });
}

// ---- operands in shared memory

/// Low word of the descriptor of a buffer's start; the high word is constant. Sums of a slot's or block's offset stay in
/// the address field, so everything varying is 32-bit arithmetic of uniform values.
class Descriptor {
 public:
  Descriptor(Emitter& e, mlir::Value smem, const layout::OperandDescriptor& operand) : e_(e), operand_(operand) {
    low_ = e.b.CreateAdd(start(smem), e.i32(static_cast<uint32_t>(operand.bits)));
  }

  void addBytes(Value* bytes) { low_ = e_.b.CreateAdd(low_, e_.b.CreateLShr(bytes, 4)); }

  /// Of the first element. What instructions add is added inside their assembly: as values of the kernel, the descriptors of
  /// buffers that loops only read would all be made in front of them, two registers each, and spilled.
  Value* first() const {
    IRBuilder<>& b = e_.b;
    Value* high = e_.i64(static_cast<int64_t>(operand_.bits & ~uint64_t{0xFFFFFFFF}));
    return b.CreateOr(b.CreateZExt(low_, b.getInt64Ty()), high, "", /*IsDisjoint=*/true);
  }

  const layout::OperandDescriptor& operand() const { return operand_; }

 private:
  /// (address & 0x3FFFF) >> 4 of the buffer; slots are added behind the shift, which leaves the rest invariant in loops.
  Value* start(mlir::Value smem) {
    IRBuilder<>& b = e_.b;
    if (auto trans = smem.getDefiningOp<SmemTransOp>()) return start(trans.getSource());
    if (auto slot = smem.getDefiningOp<SmemSlotOp>()) {
      Value* units = b.CreateNUWMul(e_.scalar(slot.getIndex()), e_.i32(slot.getRing().getType().slotBytes() / 16));
      return b.CreateAdd(start(slot.getRing()), units);
    }
    Value* address = b.CreatePtrToInt(e_.scalar(smem), b.getInt32Ty());
    return b.CreateLShr(b.CreateAnd(address, 0x3FFFF), 4);
  }

  Emitter& e_;
  layout::OperandDescriptor operand_;
  Value* low_;
};

/// `isA`: as the instruction's first operand, m x k; else its second, k x n.
mlir::FailureOr<layout::OperandDescriptor> describe(MmaOp op, SmemType type, bool isA) {
  const bool kMinor = type.getMinor() == (isA ? 1 : 0);
  if (auto operand = layout::operandDescriptor(type.slot(), kMinor)) return *operand;
  return op.emitOpError() << "cannot read " << type << " as operand " << (isA ? "a" : "b")
                          << ": expects a swizzled tile in groups of 8 rows"
                          << (kMinor ? "" : ", of 16-bit elements where k is not minor");
}

// ---- a first operand in registers

/// Computed anew in every iteration of the loop: not from values that stay the same.
bool variesIn(mlir::Operation* loop, mlir::Value value) {
  if (!loop->isAncestor(value.getParentRegion()->getParentOp())) return false;
  mlir::Operation* op = value.getDefiningOp();
  if (!op || op->getNumRegions() > 0 || !mlir::isPure(op)) return true;
  return llvm::any_of(op->getOperands(), [&](mlir::Value operand) { return variesIn(loop, operand); });
}

/// The registers of a first operand are needed behind the product, too.
bool outlivesProduct(MmaOp op) {
  for (mlir::Operation* user : op.getA().getUsers()) {
    mlir::Operation* there = op->getBlock()->findAncestorOpInBlock(*user);
    if (!there || op->isBeforeInBlock(there)) return true;
  }
  if (llvm::count(op->getOperands(), op.getA()) > 1) return true;
  mlir::Operation* loop = op->getParentOp();
  while (loop && !mlir::isa<mlir::LoopLikeOpInterface, WorkLoopOp>(loop)) loop = loop->getParentOp();
  return loop && !variesIn(loop, op.getA());
}

/// 4 registers (i32) per row block and k step, of the elements that threads hold of accumulators.
///
/// Of 16-bit elements these are the instruction's own. Of 8-bit ones it wants four neighbours along k in a register, where a
/// thread t of a quad has columns 2 t, + 1 of groups of 8. Counted in the order in which threads have them, that is element
/// 8 x + 2 t + c at place 4 t + 2 x + c of each 16, nothing is to be done, and b is counted in the same order (interleaved).
/// For a b in its own order threads fetch their four from the two of the quad that have them.
class RegisterOperand {
 public:
  RegisterOperand(Emitter& e, MmaOp op, int steps)
      : e_(e),
        values_(e.regs(op.getA())),
        k_(op.getK()),
        steps_(steps),
        isByte_(engineRow(op.getEngine()).operandBits == 8) {
    if (isByte_ && !op.getB().getType().getInterleaved()) exchange_.emplace(e);
    // ptxas 13.0 takes the registers of a first operand for free behind the product even where they are needed again:
    // masks that stay the same in all iterations lost their values on an H200. Such products read copies of their own,
    // made in a way it cannot see through: it undoes plain moves.
    if (outlivesProduct(op))
      zero_ = e.inlineAsm(e.b.getInt32Ty(), "{.reg .b32 t; mov.u32 t, %dynamic_smem_size; shr.u32 $0, t, 31;}", "=r", {});
  }

  SmallVector<Value*, 4> at(int rep, int step) const {
    IRBuilder<>& b = e_.b;
    SmallVector<Value*, 4> out;
    for (int r = 0; r < 4; ++r) {
      Value* word = isByte_ ? quad(rep, step, r) : pair(rep, step, r);
      out.push_back(zero_ ? e_.inlineAsm(b.getInt32Ty(), "xor.b32 $0, $1, $2;", "=r,r,r", {word, zero_}) : word);
    }
    return out;
  }

 private:
  Value* pair(int rep, int step, int r) const {
    const int first = 2 * (r + 4 * (step + steps_ * rep));
    const int64_t column = 16 * step + 8 * (r / 2);
    Value* both = e_.packPair(inK(values_[first], column), inK(values_[first + 1], column + 1));
    return e_.b.CreateBitCast(both, e_.b.getInt32Ty());
  }

  Value* quad(int rep, int step, int r) const {
    SmallVector<Value*, 4> bytes;
    for (int group = 2 * (r / 2); group < 2 * (r / 2) + 2; ++group)
      for (int c = 0; c < 2; ++c)
        bytes.push_back(
            inK(values_[c + 2 * (r % 2) + 4 * (group + 4 * (step + steps_ * rep))], 32 * step + 8 * group + c));
    Value* word = e_.packQuad(bytes);
    return exchange_ ? exchange_->inOrder(word) : word;
  }

  /// Elements 4 t to 4 t + 3 of 16 are those of threads 2 t % 4 and the next, in their lower or upper halves.
  class Exchange {
   public:
    explicit Exchange(Emitter& e) : e_(e) {
      IRBuilder<>& b = e.b;
      Value* t = b.CreateAnd(e.lane(), 3);
      first_ = b.CreateOr(b.CreateAnd(e.lane(), ~3), b.CreateAnd(b.CreateShl(t, 1), 3));
      halves_ = b.CreateSelect(b.CreateICmpULT(t, e.i32(2)), e.i32(0x5410), e.i32(0x7632));
    }
    Value* inOrder(Value* word) const {
      IRBuilder<>& b = e_.b;
      auto from = [&](Value* lane) {
        return b.CreateIntrinsic(Intrinsic::nvvm_shfl_sync_idx_i32, {e_.i32(-1), word, lane, e_.i32(31)});
      };
      return b.CreateIntrinsic(Intrinsic::nvvm_prmt, {from(first_), from(b.CreateOr(first_, 1)), halves_});
    }

   private:
    Emitter& e_;
    Value *first_, *halves_;
  };

  // Padding registers hold garbage; along k they must be zero. Lanes add up to 6 columns.
  Value* inK(Value* v, int64_t column) const {
    if (column + 6 < k_) return v;
    IRBuilder<>& b = e_.b;
    Value* k = b.CreateAdd(b.CreateShl(b.CreateAnd(e_.lane(), 3), 1), e_.i32(column));
    return b.CreateSelect(b.CreateICmpULT(k, e_.i32(k_)), v, Constant::getNullValue(v->getType()));
  }

  Emitter& e_;
  ArrayRef<Value*> values_;
  int64_t k_;
  int steps_;
  bool isByte_;
  std::optional<Exchange> exchange_;  ///< between the threads of a quad; none where k is counted in their order
  Value* zero_ = nullptr;  ///< to make copies with; null: none are needed
};

// ---- a first operand that the threads read from shared memory

/// Groups of instructions the product is issued as.
int groupsOf(MmaOp op) {
  if (!fragmentOperand(op)) return 1;
  const int64_t steps = warpgroupProduct(op).cover.k / engineRow(op.getEngine()).k;
  return static_cast<int>((steps + kFragmentSteps - 1) / kFragmentSteps);
}

void waitForGroups(Emitter& e, int pending) {
  e.inlineAsm(e.b.getVoidTy(), "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";", "~{memory}", {});
}

class FragmentOperand {
 public:
  virtual ~FragmentOperand() = default;
  virtual SmallVector<Value*, 4> at(int rep, int step) const = 0;
};

/// 32-bit elements: pairs of neighbouring rows.
class WordFragments : public FragmentOperand {
 public:
  WordFragments(Emitter& e, MmaOp op)
      : e_(e),
        layout_(fragmentLayout(op)),
        base_(e.scalar(fragmentOperand(op))),
        address_(e, mlir::cast<SmemType>(fragmentOperand(op).getType()).slot(), layout_, /*rowDim=*/1),
        steps_(static_cast<int>(warpgroupProduct(op).cover.k / engineRow(op.getEngine()).k)) {}

  SmallVector<Value*, 4> at(int rep, int step) const override {
    SmallVector<Value*, 4> out;
    for (int pair = 0; pair < 4; pair += 2) {
      const layout::Coord coord = layout_.regCoord(pair + 4 * (step + steps_ * rep));
      out.append(loadVector(e_, address_.at(base_, coord[1], 4 * coord[0]), e_.b.getInt32Ty(), 2));
    }
    return out;
  }

 private:
  Emitter& e_;
  layout::Layout layout_;
  Value* base_;
  SmemAddress address_;
  int steps_;
};

/// Bytes: a register holds four neighbours along k, 4 (lane % 4) to + 3 and 16 behind, of one row. Each is made from reads of
/// two neighbouring rows in four steps of k, and a transposition. Lanes 2 and 3 of four read the steps in the order 2, 3, 0,
/// 1: with the others' they fall into four different 16-byte chunks, and the transposition puts them right.
class ByteFragments : public FragmentOperand {
 public:
  ByteFragments(Emitter& e, MmaOp op)
      : e_(e), rows_(64 * warpgroupProduct(op).teamsM), base_(e.scalar(fragmentOperand(op))) {
    IRBuilder<>& b = e.b;
    const layout::SharedTile tile = mlir::cast<SmemType>(fragmentOperand(op).getType()).slot();
    Value* quad = b.CreateAnd(e.lane(), 3);
    Value* late = b.CreateAnd(quad, 2);
    Value* k = b.CreateOr(b.CreateShl(quad, 2), late);
    Value* row = e.threadCoord(accumulatorLayout(op), isTransposed(op) ? 1 : 0);
    const auto rowBits = static_cast<int64_t>(PowerOf2Ceil(static_cast<uint64_t>(rows_))) - 2;  // pairs of rows
    for (int half = 0; half < 2; ++half)
      addresses_.emplace_back(e, tile, half ? b.CreateXor(k, 2) : k, /*rowMask=*/14, row, rowBits);
    Value* isLate = b.CreateICmpNE(late, e.i32(0));
    even_ = b.CreateSelect(isLate, e.i32(0x1054), e.i32(0x5410));
    odd_ = b.CreateSelect(isLate, e.i32(0x3276), e.i32(0x7632));
  }

  SmallVector<Value*, 4> at(int rep, int step) const override {
    IRBuilder<>& b = e_.b;
    auto permute = [&](Value* x, Value* y, Value* selector) {
      return b.CreateIntrinsic(Intrinsic::nvvm_prmt, {x, y, selector});
    };
    SmallVector<Value*, 4> out;
    for (int k : {0, 16}) {
      Value* halves[2];
      for (int half = 0; half < 2; ++half) {
        Value* words[2];
        for (int i = 0; i < 2; ++i) {
          Value* pointer = addresses_[static_cast<size_t>(half)].at(base_, 32 * step + k + i, rep * rows_);
          words[i] = b.CreateZExt(b.CreateAlignedLoad(b.getInt16Ty(), pointer, Align(2)), b.getInt32Ty());
        }
        halves[half] = permute(words[0], words[1], e_.i32(0x5140));
      }
      out.push_back(permute(halves[0], halves[1], even_));
      out.push_back(permute(halves[0], halves[1], odd_));
    }
    return out;
  }

 private:
  Emitter& e_;
  int64_t rows_;  ///< from repetition to repetition
  Value* base_;
  SmallVector<SmemAddress, 2> addresses_;  ///< of the first and of the last two steps of k out of four
  Value *even_, *odd_;                     ///< what puts the steps of a row in order
};

std::unique_ptr<FragmentOperand> fragmentsOf(Emitter& e, MmaOp op) {
  if (engineRow(op.getEngine()).operandBits == 8) return std::make_unique<ByteFragments>(e, op);
  return std::make_unique<WordFragments>(e, op);
}

// ---- instructions

/// Descriptors of one instruction: those of their buffers, and the bytes from there.
struct Place {
  Value* descriptor = nullptr;
  int64_t bytes = 0;
  bool transposed = false;
};

/// The instructions of a group as one statement of assembly. A statement for each would repeat its accumulators, tied, for
/// every step of k: most of LLVM's time went into joining those again.
class GroupOfProducts {
 public:
  /// acc = a * b when `fromZero`, else acc += a * b.
  GroupOfProducts(Emitter& e, Engine engine, MutableArrayRef<Value*> acc, bool fromZero)
      : e_(e), row_(engineRow(engine)), spelling_(spellingOf(engine)), acc_(acc), fromZero_(fromZero) {
    const std::string kind = engine == Engine::wgmma_s8 ? "r" : "f";
    // What the first of the instructions writes, the others' operands may not share a register with; nor may a's, which
    // an instruction reads to its end.
    for (size_t i = 0; i < acc.size(); ++i) constrain((fromZero ? "=&" : "=") + kind);
    if (fromZero) return;
    for (size_t i = 0; i < acc.size(); ++i) constrain(std::to_string(i));
    args_.append(acc.begin(), acc.end());
  }

  /// The product into the accumulators [first, first + count). `registers`: four of a, which then has no place.
  /// `starts`: the first one into them.
  void add(int first, int count, ArrayRef<Value*> registers, const Place& a, const Place& b, bool starts) {
    const bool inRegisters = !registers.empty();
    std::string aText;
    if (inRegisters) {
      for (Value* v : registers) aText += (aText.empty() ? "{" : ", ") + input(v, "r");
      aText += "}";
    } else {
      aText = descriptor(a, "a");
    }
    const std::string bText = descriptor(b, "b");
    text_ += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * count) + "k" + std::to_string(row_.k) + "." +
             spelling_.types + " " + list(first, count) + ", " + aText + ", " + bText + ", " +
             (fromZero_ && starts ? "0" : "1");
    if (spelling_.scales) text_ += ", 1, 1";
    if (spelling_.transposes) {
      if (!inRegisters) text_ += a.transposed ? ", 1" : ", 0";
      text_ += b.transposed ? ", 1" : ", 0";
    }
    text_ += ";\n\t";
    ++instructions_;
  }

  /// Writes the statement; the accumulators become its results.
  void emit() {
    Type* type = structOf(e_.b, acc_[0]->getType(), acc_.size());
    Value* result = e_.inlineAsm(type, "{" + text_ + "}", constraints_, args_);
    for (auto [i, acc] : llvm::enumerate(acc_)) acc = e_.b.CreateExtractValue(result, static_cast<unsigned>(i));
  }

 private:
  void constrain(const std::string& one) { constraints_ += (constraints_.empty() ? "" : ",") + one; }

  std::string input(Value* v, const char* kind) {
    auto [place, isNew] = inputs_.try_emplace(v, 0);
    if (isNew) {
      place->second = acc_.size() + args_.size();
      constrain(kind);
      args_.push_back(v);
    }
    return "$" + std::to_string(place->second);
  }

  std::string descriptor(const Place& place, const char* name) {
    const std::string start = input(place.descriptor, "l");
    if (place.bytes == 0) return start;
    const std::string own = name + std::to_string(instructions_);
    text_ += ".reg .b64 " + own + "; add.s64 " + own + ", " + start + ", " + std::to_string(place.bytes / 16) + "; ";
    return own;
  }

  Emitter& e_;
  const EngineRow& row_;
  Spelling spelling_;
  MutableArrayRef<Value*> acc_;
  bool fromZero_;
  std::string text_, constraints_;
  SmallVector<Value*, 160> args_;
  DenseMap<Value*, size_t> inputs_;  ///< their numbers: what several instructions read is handed over once
  int instructions_ = 0;
};

}  // namespace

bool isReadByWgmma(mlir::Value smem) {
  SmemAllocOp alloc = allocationOf(smem);
  SmallVector<mlir::Value> pending{alloc ? alloc.getResult() : smem};
  while (!pending.empty()) {
    for (mlir::Operation* user : pending.pop_back_val().getUsers()) {
      if (auto mma = mlir::dyn_cast<MmaOp>(user); mma && isWgmma(mma.getEngine())) return true;
      if (mlir::isa<SmemSlotOp, SmemTransOp>(user)) pending.push_back(user->getResult(0));
    }
  }
  return false;
}

void fenceAsyncProxy(Emitter& e) {
  e.b.CreateIntrinsic(Intrinsic::nvvm_fence_proxy_async_shared_cta, {});
}

LogicalResult emitWgmma(Emitter& e, MmaOp op) {
  const EngineRow& row = engineRow(op.getEngine());
  if (static_cast<int>(op.getWarpsM() * op.getWarpsN()) != e.numWarps())
    return op.emitOpError() << "is planned for " << op.getWarpsM() * op.getWarpsN() << " warps, the kernel has "
                            << e.numWarps();
  const auto [m, n, teamsM, teamsN, cover] = warpgroupProduct(op);
  const int64_t part = cover.n / teamsN;
  const int reps = static_cast<int>(cover.m / (64 * teamsM)), steps = static_cast<int>(cover.k / row.k);
  Value* team = e.numWarps() > 4 ? e.warpgroup() : e.i32(0);

  // The instruction's second operand: b, or a^T.
  const bool transposed = isTransposed(op);
  mlir::Value second = transposed ? mlir::Value(op.getA()) : mlir::Value(op.getB());
  const SmemType secondType = mlir::cast<SmemType>(second.getType());
  auto b = describe(op, transposed ? secondType.transposed() : secondType, false);
  if (failed(b)) return failure();
  Descriptor bStart(e, second, *b);
  if (teamsN > 1) {
    const bool insidePanel = part * teamsN <= b->outerUnit();
    if (part % b->outerUnit() != 0 && !insidePanel)
      return op.emitOpError() << "expects parts of " << b->outerUnit() << " columns per warpgroup, found " << part;
    bStart.addBytes(e.b.CreateMul(e.b.CreateUDiv(team, e.i32(teamsM)), e.i32(b->outerBytes(part))));
  }
  std::optional<Descriptor> aStart;
  std::optional<RegisterOperand> aRegisters;
  std::unique_ptr<FragmentOperand> aFragments;
  if (fragmentOperand(op)) {
    aFragments = fragmentsOf(e, op);
  } else if (auto type = mlir::dyn_cast<SmemType>(op.getA().getType())) {
    auto a = describe(op, type, true);
    if (failed(a)) return failure();
    if (64 % a->outerUnit() != 0) return op.emitOpError() << "expects panels of at most 64 rows of a, found " << a->outerUnit();
    aStart.emplace(e, op.getA(), *a);
    if (teamsM > 1) aStart->addBytes(e.b.CreateMul(e.b.CreateURem(team, e.i32(teamsM)), e.i32(a->outerBytes(64))));
  } else {
    aRegisters.emplace(e, op, steps);
  }

  Regs acc(e.regs(op.getAcc()));
  const std::vector<int> columns = layout::instructionColumns(part, b->outerUnit());
  const bool fromZero = isZero(acc);
  Value *aFirst = aStart ? aStart->first() : nullptr, *bFirst = bStart.first();
  const int stepsPerGroup = aFragments ? kFragmentSteps : steps;
  for (int begin = 0; begin < steps; begin += stepsPerGroup) {
    const int end = std::min(steps, begin + stepsPerGroup);
    if (aFragments) waitForGroups(e, 1);  // whose fragments were in the registers these may get
    SmallVector<SmallVector<Value*, 4>> inRegisters;  // reads and conversions stand in front of the fence, all of them
    for (int step = begin; step < end && !aStart; ++step)
      for (int rep = 0; rep < reps; ++rep)
        inRegisters.push_back(aFragments ? aFragments->at(rep, step) : aRegisters->at(rep, step));
    e.b.CreateIntrinsic(Intrinsic::nvvm_wgmma_fence_sync_aligned, {});
    GroupOfProducts group(e, op.getEngine(), acc, fromZero && begin == 0);
    for (int step = begin; step < end; ++step) {
      for (int rep = 0; rep < reps; ++rep) {
        Place a;
        if (aStart)
          a = {aFirst, aStart->operand().outerBytes(64 * teamsM * rep) + aStart->operand().stepBytes(step),
               !aStart->operand().kMinor};
        int64_t column = 0;
        for (int width : columns) {
          group.add(static_cast<int>(rep * part + column) / 2, width / 2,
                    aStart ? ArrayRef<Value*>() : ArrayRef<Value*>(inRegisters[(step - begin) * reps + rep]), a,
                    {bFirst, b->outerBytes(column) + b->stepBytes(step), !b->kMinor}, step == begin);
          column += width;
        }
      }
    }
    group.emit();
    e.b.CreateIntrinsic(Intrinsic::nvvm_wgmma_commit_group_sync_aligned, {});
  }
  e.define(op.getResult(), acc);
  // Copies that stood in front of the product: they start while it runs.
  for (mlir::Operation* copy : carriedBy(op))
    if (failed(emitAsyncOp(e, copy))) return failure();
  return success();
}

namespace {

/// Groups the products issued last before the wait are made of. What stands in front of a region counts as one each.
int pendingGroups(MmaWaitOp op) {
  int products = static_cast<int>(op.getPending()), groups = 0;
  for (mlir::Operation* at = op->getPrevNode(); at && products > 0 && at->getNumRegions() == 0; at = at->getPrevNode())
    if (MmaOp product = asyncProduct(at)) groups += groupsOf(product), --products;
  return groups + products;
}

}  // namespace

LogicalResult emitMmaWait(Emitter& e, MmaWaitOp op) {
  const std::string text = "wgmma.wait_group.sync.aligned " + std::to_string(pendingGroups(op)) + ";";
  SmallVector<Value*, 160> values;
  std::string outputs, inputs;
  for (mlir::Value acc : op.getAccs()) {
    for (Value* v : e.regs(acc)) {
      outputs += v->getType()->isIntegerTy() ? "=r," : "=f,";
      inputs += std::to_string(values.size()) + ",";
      values.push_back(v);
    }
  }
  const std::string constraints = outputs + inputs + "~{memory}";
  if (values.empty()) {
    e.inlineAsm(e.b.getVoidTy(), text, constraints, {});
    return success();
  }
  SmallVector<Type*> types;
  for (Value* v : values) types.push_back(v->getType());
  // A single result is not a struct.
  Value* all = e.inlineAsm(types.size() == 1 ? types[0] : StructType::get(e.b.getContext(), types), text, constraints, values);
  size_t next = 0;
  for (auto [acc, result] : llvm::zip(op.getAccs(), op.getResults())) {
    Regs regs;
    for (size_t i = 0, count = e.regs(acc).size(); i < count; ++i, ++next)
      regs.push_back(types.size() == 1 ? all : e.b.CreateExtractValue(all, static_cast<unsigned>(next)));
    e.define(result, regs);
  }
  return success();
}

}  // namespace tile::ir
