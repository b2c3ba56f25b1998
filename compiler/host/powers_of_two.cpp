// powers_of_two.cpp - vreduceps and vscalefps, a register of 4, 8 or 16 lanes at a time.
#include "compiler/host/powers_of_two.h"

#include "compiler/host/avx512.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tile::ir::host {
using llvm::Value;

Value* Avx512PowersOfTwo::remainder(llvm::IRBuilderBase& b, Value* x) const {
  return byRegisters(b, {x}, lanes_, [&](llvm::ArrayRef<Value*> v, unsigned lanes) -> Value* {
    // No fraction bits kept, halves to even, no exceptions.
    llvm::SmallVector<Value*> args{v[0], b.getInt32(8), llvm::PoisonValue::get(v[0]->getType()), allLanes(b, lanes)};
    if (lanes == 16) args.push_back(b.getInt32(4));  // rounding as it is set
    return b.CreateIntrinsic(lanes == 16  ? llvm::Intrinsic::x86_avx512_mask_reduce_ps_512
                             : lanes == 8 ? llvm::Intrinsic::x86_avx512_mask_reduce_ps_256
                                          : llvm::Intrinsic::x86_avx512_mask_reduce_ps_128,
                             args);
  });
}

Value* Avx512PowersOfTwo::scale(llvm::IRBuilderBase& b, Value* x, Value* n) const {
  return byRegisters(b, {x, n}, lanes_, [&](llvm::ArrayRef<Value*> v, unsigned lanes) -> Value* {
    llvm::SmallVector<Value*> args{v[0], v[1], llvm::PoisonValue::get(v[0]->getType()), allLanes(b, lanes)};
    if (lanes == 16) args.push_back(b.getInt32(4));
    return b.CreateIntrinsic(lanes == 16  ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512
                             : lanes == 8 ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_256
                                          : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128,
                             args);
  });
}

}  // namespace tile::ir::host
