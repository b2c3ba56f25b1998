// e2m1_pairs.cpp - see e2m1_pairs.h. A number is s e e m. With its exponent and mantissa at the place of a 16-bit
// float's lowest ones and its sign at the top it is a power of two too small, subnormals included, and one product of
// pairs makes that good. No register is filled from two sources: every result is a pair of halves.
#include "compiler/gpu/lowering/e2m1_pairs.h"

#include "compiler/gpu/lowering/packed_bits.h"
#include "compiler/lowering/microscaling.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr uint32_t kSigns = 0x80008000;

struct Form {
  int shift;         ///< from the lowest bits of a half to the place of exponent and mantissa
  uint32_t kept;     ///< the bits of both results
  double too_small;  ///< the factor that is missing
};
constexpr Form kBrain{6, 0x81c081c0, 0x1p126}, kHalf{9, 0x8e008e00, 0x1p14};

class Widener {
 public:
  Widener(Emitter& e, Type to)
      : b_(e.b), isBrain_(to.isBF16()), isFloat_(to.isF32()), form_(isBrain_ ? kBrain : kHalf) {}

  /// Of one byte in a register of its own.
  std::array<llvm::Value*, 2> ofByte(llvm::Value* byte) {
    // The upper number belongs into the upper half: once it is 12 bits up, both are as far from their places.
    llvm::Value* word = b_.CreateZExt(byte, b_.getInt32Ty());
    llvm::Value* near = b_.CreateMul(word, b_.getInt32(1u << form_.shift | 1u << (form_.shift + 12)));
    llvm::Value* signs = b_.CreateAnd(b_.CreateShl(near, 12 - form_.shift), b_.getInt32(kSigns));
    return scaled(b_.CreateOr(b_.CreateAnd(near, b_.getInt32(form_.kept & ~kSigns)), signs));
  }

  /// Of four bytes that one register holds.
  llvm::SmallVector<std::array<llvm::Value*, 2>, 4> ofWord(llvm::Value* word) {
    llvm::Value* low = b_.CreateAnd(word, b_.getInt32(0x0f0f0f0f));
    llvm::Value* high = b_.CreateAnd(b_.CreateLShr(word, 4), b_.getInt32(0x0f0f0f0f));
    llvm::SmallVector<std::array<llvm::Value*, 2>, 4> all;
    for (uint32_t i = 0; i < 4; ++i) {
      // One number in every half: byte i of both words, each below its own sign bit repeated, which is 0.
      const uint32_t selector = i | (i + 8) << 4 | (i + 4) << 8 | (i + 12) << 12;
      llvm::Value* apart = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {low, high, b_.getInt32(selector)});
      if (isBrain_) {  // the copies of a number for its sign and for the rest do not meet
        llvm::Value* both = b_.CreateMul(apart, b_.getInt32(1u << 12 | 1u << form_.shift));
        all.push_back(scaled(b_.CreateAnd(both, b_.getInt32(form_.kept))));
      } else {
        llvm::Value* signs = b_.CreateAnd(b_.CreateShl(apart, 12), b_.getInt32(kSigns));
        llvm::Value* rest = b_.CreateAnd(b_.CreateShl(apart, form_.shift), b_.getInt32(form_.kept & ~kSigns));
        all.push_back(scaled(b_.CreateOr(signs, rest)));
      }
    }
    return all;
  }

 private:
  std::array<llvm::Value*, 2> scaled(llvm::Value* bits) {
    auto* type = llvm::FixedVectorType::get(isBrain_ ? b_.getBFloatTy() : b_.getHalfTy(), 2);
    llvm::Value* pair = b_.CreateBitCast(bits, type);
    // As an fma: bf16 has no product of its own before sm_90.
    pair = b_.CreateIntrinsic(llvm::Intrinsic::fma, {type},
                              {pair, llvm::ConstantFP::get(type, form_.too_small), llvm::ConstantFP::get(type, -0.0)});
    std::array<llvm::Value*, 2> out{};
    for (uint64_t i = 0; i < 2; ++i) out[i] = b_.CreateExtractElement(pair, i);
    if (isFloat_)
      for (llvm::Value*& x : out) x = b_.CreateFPExt(x, b_.getFloatTy());
    return out;
  }

  llvm::IRBuilder<>& b_;
  bool isBrain_, isFloat_;
  Form form_;
};

}  // namespace

void emitWidenE2m1(Emitter& e, WidenE2m1Op op) {
  constexpr size_t kBytes = 4;
  Widener widener(e, getElementTypeOrSelf(op.getLow().getType()));
  llvm::ArrayRef<llvm::Value*> bytes = e.regs(op.getBytes());
  Regs low, high;
  auto add = [&](const std::array<llvm::Value*, 2>& pair) { low.push_back(pair[0]), high.push_back(pair[1]); };
  for (size_t i = 0; i < bytes.size();) {
    llvm::Value* word = i + kBytes <= bytes.size() ? wordOf(e.b, bytes.slice(i, kBytes)) : nullptr;
    if (word)
      for (const auto& pair : widener.ofWord(word)) add(pair), ++i;
    else
      add(widener.ofByte(bytes[i++]));
  }
  e.define(op.getLow(), std::move(low));
  e.define(op.getHigh(), std::move(high));
}

void emitWidenE8m0(Emitter& e, WidenE8m0Op op) {
  const Type to = getElementTypeOrSelf(op.getResult().getType());
  llvm::IRBuilder<>& b = e.b;
  Regs out;
  for (llvm::Value* byte : e.regs(op.getBytes())) {
    if (to.isF32() || to.isF16()) {
      llvm::Value* power = widenE8m0(b, byte);
      out.push_back(to.isF32() ? power : b.CreateFPTrunc(power, b.getHalfTy()));
      continue;
    }
    // The exponent of both halves. 0 is the one subnormal; infinity times 0 makes 255 a NaN.
    auto* type = llvm::FixedVectorType::get(b.getBFloatTy(), 2);
    llvm::Value* bits = b.CreateMul(b.CreateZExt(byte, b.getInt32Ty()), b.getInt32(0x00800080));
    bits = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, bits, b.getInt32(0x00400040));
    llvm::Value* pair = b.CreateBitCast(bits, type);
    pair = b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {pair, llvm::ConstantFP::get(type, 0.0), pair});
    out.push_back(b.CreateExtractElement(pair, uint64_t{0}));
  }
  e.define(op.getResult(), std::move(out));
}

}  // namespace tile::ir
