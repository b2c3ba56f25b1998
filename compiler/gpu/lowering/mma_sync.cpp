// mma_sync.cpp - one product of one warp.
#include "compiler/gpu/lowering/mma_sync.h"

#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/lowering/fp8_pairs.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace llvm;

namespace {

/// f32 for products that ignore all but ten digits of a mantissa: times 1 + 2^-10 / 3 the cut falls where rounding
/// does, or near it. Off by at most 2/3 of the last digit kept, on average by nothing; numbers of ten digits stay as
/// they are, and so do NaNs and infinities. One step where cvt.rna is two, a comparison and an addition.
Value* nearTf32(Emitter& e, Value* bits) {
  constexpr double kThird = 0x1p-10 / 3;
  Value* f = e.b.CreateBitCast(bits, e.b.getFloatTy());
  return e.b.CreateBitCast(e.b.CreateFMul(f, ConstantFP::get(e.b.getFloatTy(), 1 + kThird)), e.b.getInt32Ty());
}

/// Splits f32 into two tf32: the rounded value and what rounding left. Of finite numbers, which this precision asks for,
/// half of the last digit kept and a mask are all that rounding takes; the instruction converts with care for NaNs, in
/// twice as many steps. Products ignore the digits below, so those of the rest stay.
std::pair<Value*, Value*> splitTf32(Emitter& e, Value* bits) {
  constexpr uint32_t kHalf = 1u << 12, kKept = ~((1u << 13) - 1);
  IRBuilder<>& b = e.b;
  auto withHalf = [&](Value* x) { return b.CreateAdd(x, b.getInt32(kHalf)); };
  bits = b.CreateBitCast(bits, b.getInt32Ty());
  Value* big = b.CreateAnd(withHalf(bits), b.getInt32(kKept));
  Value* rest = b.CreateFSub(b.CreateBitCast(bits, b.getFloatTy()), b.CreateBitCast(big, b.getFloatTy()));
  return {big, b.CreateBitCast(rest, b.getInt32Ty())};
}

/// The same fragments by m8n8k4: rows and k in halves.
void multiplyByQuarters(Emitter& e, ArrayRef<Value*> a, ArrayRef<Value*> b, MutableArrayRef<Value*> acc) {
  for (int k = 0; k < 2; ++k)
    for (int half = 0; half < 2; ++half) {
      Value* result = e.b.CreateIntrinsic(Intrinsic::nvvm_mma_m8n8k4_row_col_f64,
                                          {a[half + 2 * k], b[k], acc[2 * half], acc[2 * half + 1]});
      for (int i = 0; i < 2; ++i) acc[2 * half + i] = e.b.CreateExtractValue(result, i);
    }
}

/// Machines whose warpgroups multiply f8 have no such instruction for a single warp: of one the assembler makes two
/// products of f16 that begin at zero, and additions (of 32 x 64 x 64 by two warps, 249 instructions instead of 183).
bool multipliesF8AsHalves(const Emitter& e, Engine engine) {
  return engine == Engine::m16n8k32_f8 && e.target.hasWgmma;
}

/// Four f8 as two registers of f16.
std::pair<Value*, Value*> halvesOf(Emitter& e, Value* bits, bool isE4m3) {
  IRBuilder<>& b = e.b;
  Value* pairs = b.CreateBitCast(bits, FixedVectorType::get(b.getInt16Ty(), 2));
  auto halves = [&](uint64_t pair) {
    return b.CreateBitCast(halvesOfFp8Pair(b, b.CreateExtractElement(pairs, pair), isE4m3), b.getInt32Ty());
  };
  return {halves(0), halves(1)};
}

Intrinsic::ID f8Product(const MmaInstruction& instruction) {
  const auto [a, b] = instruction.f8Names;
  if (a == "e4m3")
    return b == "e4m3" ? Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e4m3_e4m3_f32
                       : Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e4m3_e5m2_f32;
  return b == "e4m3" ? Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e5m2_e4m3_f32
                     : Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e5m2_e5m2_f32;
}

/// One instruction: acc (4 registers) += a (4) * b (2).
void multiplyOnce(Emitter& e, const MmaInstruction& instruction, ArrayRef<Value*> a, ArrayRef<Value*> b,
                  MutableArrayRef<Value*> acc) {
  const Engine engine = multipliesF8AsHalves(e, instruction.engine) ? Engine::m16n8k16_f16 : instruction.engine;
  SmallVector<Value*, 10> args(a.begin(), a.end());
  args.append(b.begin(), b.end());
  if (engine == Engine::m8n8k4_f64) return multiplyByQuarters(e, a, b, acc);
  Intrinsic::ID id;
  switch (engine) {
    case Engine::m16n8k16_f16:
      id = Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32;
      for (Value*& v : args) v = e.b.CreateBitCast(v, FixedVectorType::get(e.b.getHalfTy(), 2));
      break;
    case Engine::m16n8k16_bf16:
      id = Intrinsic::nvvm_mma_m16n8k16_row_col_bf16;
      break;
    case Engine::m16n8k32_s8:
      id = Intrinsic::nvvm_mma_m16n8k32_row_col_s8;
      break;
    case Engine::m16n8k32_f8:
      id = f8Product(instruction);
      break;
    case Engine::m16n8k256_b1:
      id = Intrinsic::nvvm_mma_and_popc_m16n8k256_row_col_b1;
      break;
    case Engine::m16n8k8_f64:
      id = Intrinsic::nvvm_mma_m16n8k8_row_col_f64;
      break;
    default:
      id = Intrinsic::nvvm_mma_m16n8k8_row_col_tf32;
      break;
  }
  args.append(acc.begin(), acc.end());
  Value* result = e.b.CreateIntrinsic(id, args);
  for (int i = 0; i < 4; ++i) acc[i] = e.b.CreateExtractValue(result, i);
}

}  // namespace

MmaInstruction::MmaInstruction(Engine engine, mlir::Type a, mlir::Type b)
    : engine(engine), f8Names(ir::f8Names(a, b)) {}

Rounded rounded(Emitter& e, Engine engine, mlir::Type operand, Fragments in) {
  Rounded out;
  auto split = [&](auto&& inTwo) {
    for (Value* v : in) {
      auto [big, small] = inTwo(v);
      out.big.push_back(big);
      out.small.push_back(small);
    }
  };
  if (engine == Engine::m16n8k8_tf32x3) {
    split([&](Value* v) { return splitTf32(e, v); });
  } else if (multipliesF8AsHalves(e, engine)) {
    const bool isE4m3 = f8Names(operand, operand).first == "e4m3";
    split([&](Value* v) { return halvesOf(e, v, isE4m3); });
  } else if (engine == Engine::m16n8k8_tf32) {
    for (Value* v : in) out.big.push_back(nearTf32(e, v));
  } else {
    out.big = std::move(in);
  }
  return out;
}

void multiply(Emitter& e, const MmaInstruction& instruction, const Rounded& a, int firstA, const Rounded& b, int firstB,
              MutableArrayRef<Value*> acc) {
  auto aOf = [&](const Fragments& f) { return ArrayRef<Value*>(f).slice(firstA, 4); };
  auto bOf = [&](const Fragments& f) { return ArrayRef<Value*>(f).slice(firstB, 2); };
  if (multipliesF8AsHalves(e, instruction.engine)) {
    // Along k in an order of its own, the same for both: the first two of every four neighbours, then the others.
    for (int k = 0; k < 2; ++k) {
      Value* const rows[] = {aOf(a.big)[2 * k], aOf(a.big)[2 * k + 1], aOf(a.small)[2 * k], aOf(a.small)[2 * k + 1]};
      Value* const columns[] = {bOf(b.big)[k], bOf(b.small)[k]};
      multiplyOnce(e, instruction, rows, columns, acc);
    }
    return;
  }
  if (!a.small.empty()) {
    multiplyOnce(e, instruction, aOf(a.small), bOf(b.big), acc);
    multiplyOnce(e, instruction, aOf(a.big), bOf(b.small), acc);
  }
  multiplyOnce(e, instruction, aOf(a.big), bOf(b.big), acc);
}

}  // namespace tile::ir
