// dot.cpp - tile.mma on tensor cores: ldmatrix fragments from shared memory, one mma.sync per atom and k step.
//
// A k step goes through b in units of two column atoms (one ldmatrix.x4), each multiplied with all row atoms of a.
// Units are read kAhead units before their products, across k steps, so that latency hides behind few registers:
// accumulators often leave no room for a second set of fragments. 64-bit elements come in plain reads, one or two
// registers of the fragment each (layout/fragments.h).
#include <deque>

#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/lowering/mma_sync.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace llvm;

namespace {

constexpr int kAhead = 4;
constexpr int kMostKept = 64;       ///< registers of an operand, from one product to the next that reads it
constexpr int kAheadOfDoubles = 1;  ///< their products take long enough, their fragments twice the registers

/// Reads an operand from shared memory.
class SmemOperand {
 public:
  SmemOperand(Emitter& e, Value* base, layout::FragmentPlan plan)
      : e_(e), base_(base), plan_(std::move(plan)), address_(e, plan_.tile, plan_.row, plan_.byte) {}

  /// Registers [first, first + count) of one k step.
  Fragments load(int step, int first, int count) const {
    Fragments out(count, nullptr);
    for (const layout::FragmentLoad& load : plan_.step) {
      if (load.registers[0] < first || load.registers[0] >= first + count) continue;
      int64_t row = load.row + step * plan_.rowStep, byte = load.byte + step * plan_.byteStep;
      if (plan_.access == layout::FragmentPlan::elements) {
        out[load.registers[0] - first] = assemble(load, row, byte);
        continue;
      }
      Value* pointer = address_.at(base_, row, byte);
      if (plan_.access == layout::FragmentPlan::doubles) {
        auto* type = FixedVectorType::get(e_.b.getDoubleTy(), load.count);
        Value* elements = e_.b.CreateAlignedLoad(type, pointer, Align(8 * load.count));
        for (int i = 0; i < load.count; ++i) out[load.registers[i] - first] = e_.b.CreateExtractElement(elements, i);
        continue;
      }
      Value* loaded = e_.b.CreateIntrinsic(ldmatrix(load.count), {pointer->getType()}, {pointer});
      for (int i = 0; i < load.count; ++i)
        out[load.registers[i] - first] = load.count == 1 ? loaded : e_.b.CreateExtractValue(loaded, i);
    }
    return out;
  }

 private:
  Intrinsic::ID ldmatrix(int count) const {
    using namespace Intrinsic;
    const bool trans = plan_.access == layout::FragmentPlan::ldmatrixTrans;
    if (count == 4)
      return trans ? nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16 : nvvm_ldmatrix_sync_aligned_m8n8_x4_b16;
    if (count == 2)
      return trans ? nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16 : nvvm_ldmatrix_sync_aligned_m8n8_x2_b16;
    return trans ? nvvm_ldmatrix_sync_aligned_m8n8_x1_trans_b16 : nvvm_ldmatrix_sync_aligned_m8n8_x1_b16;
  }

  /// A register from elements that are not neighbours in memory.
  Value* assemble(const layout::FragmentLoad& load, int64_t row, int64_t byte) const {
    IRBuilder<>& b = e_.b;
    Type* element = b.getIntNTy(8 * plan_.elementBytes);
    Value* out = nullptr;
    for (size_t i = 0; i < load.elementRows.size(); ++i) {
      Value* pointer = address_.at(base_, row + load.elementRows[i], byte + load.elementBytes[i]);
      Value* v = b.CreateZExt(b.CreateAlignedLoad(element, pointer, Align(plan_.elementBytes)), b.getInt32Ty());
      if (i) v = b.CreateShl(v, 8 * plan_.elementBytes * i);
      out = out ? b.CreateOr(out, v) : v;
    }
    return out;
  }

  Emitter& e_;
  Value* base_;
  layout::FragmentPlan plan_;
  SmemAddress address_;
};

/// A first operand that is a register tile in operandALayout: packs neighbours along k.
class RegisterOperand {
 public:
  RegisterOperand(Emitter& e, MmaOp op, int reps, int steps)
      : e_(e),
        values_(e.regs(op.getA())),
        k_(op.getK()),
        pack_(32 / engineRow(op.getEngine()).operandBits),
        reps_(reps),
        steps_(steps) {}

  Fragments load(int step) const {
    IRBuilder<>& b = e_.b;
    Fragments out;
    for (int rep = 0; rep < reps_; ++rep) {
      for (int r = 0; r < 4; ++r) {
        int first = pack_ * (r + 4 * (step + steps_ * rep));
        Value* vector = PoisonValue::get(FixedVectorType::get(values_[first]->getType(), pack_));
        for (int p = 0; p < pack_; ++p) vector = b.CreateInsertElement(vector, inK(values_[first + p], step, r, p), p);
        out.push_back(b.CreateBitCast(vector, b.getInt32Ty()));
      }
    }
    return out;
  }

 private:
  // Padding registers hold garbage; along k they must be zero.
  Value* inK(Value* v, int step, int r, int p) const {
    int64_t constant = 8 * pack_ * step + 4 * pack_ * (r / 2) + p;
    if (constant + 3 * pack_ < k_) return v;
    IRBuilder<>& b = e_.b;
    Value* k = b.CreateAdd(b.CreateMul(b.CreateAnd(e_.lane(), 3), e_.i32(pack_)), e_.i32(constant));
    return b.CreateSelect(b.CreateICmpULT(k, e_.i32(k_)), v, Constant::getNullValue(v->getType()));
  }

  Emitter& e_;
  ArrayRef<Value*> values_;
  int64_t k_;
  int pack_, reps_, steps_;
};

/// Another product of the block has read this operand. LLVM would keep what that one read, whatever else needs
/// registers.
bool isReadAgain(MmaOp op, mlir::Value operand) {
  return llvm::any_of(operand.getUsers(), [&](mlir::Operation* user) {
    return mlir::isa<MmaOp>(user) && user->getBlock() == op->getBlock() && user->isBeforeInBlock(op);
  });
}

}  // namespace

LogicalResult emitMma(Emitter& e, MmaOp op) {
  const EngineRow& row = engineRow(op.getEngine());
  auto accType = mlir::cast<mlir::RankedTensorType>(op.getAcc().getType());
  const int warpsM = static_cast<int>(op.getWarpsM()), warpsN = static_cast<int>(op.getWarpsN());
  if (warpsM * warpsN != e.numWarps())
    return op.emitOpError() << "is planned for " << warpsM * warpsN << " warps, the kernel has " << e.numWarps();
  const Cover cover = coverOf(op.getEngine(), accType.getDimSize(0), accType.getDimSize(1), op.getK(), warpsM, warpsN);
  const int repsM = static_cast<int>(cover.m / (row.m * warpsM)), repsN = static_cast<int>(cover.n / (8 * warpsN));
  const int steps = static_cast<int>(cover.k / row.k);

  std::optional<SmemOperand> smemA;
  std::optional<RegisterOperand> registersA;
  if (auto type = mlir::dyn_cast<SmemType>(op.getA().getType()))
    smemA.emplace(e, e.scalar(op.getA()),
                  layout::planOperandA(type.slot(), type.getMinor() == 1, warpsM, warpsN, repsM));
  else
    registersA.emplace(e, op, repsM, steps);
  SmemType bType = op.getB().getType();
  SmemOperand b(e, e.scalar(op.getB()),
                layout::planOperandB(bType.slot(), bType.getMinor() == 0, warpsM, warpsN, repsN));
  auto loadA = [&](int step) {
    return rounded(e, op.getEngine(), op.getA().getType(),
                   smemA ? smemA->load(step, 0, 4 * repsM) : registersA->load(step));
  };
  const MmaInstruction instruction(op.getEngine(), op.getA().getType(), op.getB().getType());
  const int units = (repsN + 1) / 2;  // of one k step
  auto loadB = [&](int unit) {
    int first = unit % units * 4;
    return rounded(e, op.getEngine(), bType, b.load(unit / units, first, std::min(4, 2 * repsN - first)));
  };

  // A few registers of operands are kept, more are read again: from here on memory is not what it was.
  if (2 * repsN * steps > kMostKept && isReadAgain(op, op.getB())) e.inlineAsm(e.b.getVoidTy(), "", "~{memory}", {});

  Regs acc(e.regs(op.getAcc()));
  std::deque<Rounded> aReady, bReady;  // of the k steps and units from the current ones on
  int loaded = 0;
  auto loadUpTo = [&](int unit) {
    for (; loaded < steps * units && loaded <= unit; ++loaded) {
      if (loaded % units == 0) aReady.push_back(loadA(loaded / units));
      bReady.push_back(loadB(loaded));
    }
  };
  if (SmallVector<mlir::Operation*> carried = carriedBy(op); !carried.empty()) {
    loadUpTo(units - 1);  // the whole first k step: its products overlap with the copies
    for (mlir::Operation* copy : carried)
      if (failed(emitAsyncOp(e, copy))) return failure();
  }
  for (int unit = 0; unit < steps * units; ++unit) {
    loadUpTo(unit + (row.operandBits == 64 ? kAheadOfDoubles : kAhead));
    if (unit && unit % units == 0) aReady.pop_front();
    const Rounded &a = aReady.front(), &bb = bReady.front();
    for (int m = 0; m < repsM; ++m) {
      for (int j = 0; j < 2; ++j) {
        const int n = unit % units * 2 + j;
        if (n >= repsN) continue;
        MutableArrayRef<Value*> d(acc.data() + 4 * (m * repsN + n), 4);
        multiply(e, instruction, a, 4 * m, bb, 2 * j, d);
      }
    }
    bReady.pop_front();
  }
  e.define(op.getResult(), acc);
  return success();
}

}  // namespace tile::ir
