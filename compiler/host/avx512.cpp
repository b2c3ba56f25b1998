// avx512.cpp - see avx512.h.
#include "compiler/host/avx512.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tile::ir::host {
using llvm::Value;

namespace {

/// `count` lanes of a vector from `first` on; those past its end are unspecified.
Value* lanesFrom(llvm::IRBuilderBase& b, Value* x, unsigned first, unsigned count) {
  auto* type = llvm::cast<llvm::FixedVectorType>(x->getType());
  if (first == 0 && count == type->getNumElements()) return x;
  llvm::SmallVector<int> lanes;
  for (unsigned i = first; i < first + count; ++i)
    lanes.push_back(i < type->getNumElements() ? static_cast<int>(i) : -1);
  return b.CreateShuffleVector(x, lanes);
}

}  // namespace

Value* byRegisters(llvm::IRBuilderBase& b, llvm::ArrayRef<Value*> args, unsigned widest,
                   llvm::function_ref<Value*(llvm::ArrayRef<Value*>, unsigned)> fn) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(args[0]->getType());
  if (!type) {
    auto four = llvm::map_to_vector<2>(args, [&](Value* x) {
      Value* none = llvm::PoisonValue::get(llvm::FixedVectorType::get(x->getType(), 4));
      return b.CreateInsertElement(none, x, uint64_t{0});
    });
    return b.CreateExtractElement(fn(four, 4), uint64_t{0});
  }
  const unsigned count = type->getNumElements(), lanes = std::clamp(count, 4u, widest);
  llvm::SmallVector<Value*> parts;
  for (unsigned first = 0; first < count; first += lanes)
    parts.push_back(fn(llvm::map_to_vector<2>(args, [&](Value* x) { return lanesFrom(b, x, first, lanes); }), lanes));
  while (parts.size() > 1) {
    llvm::SmallVector<Value*> joined;
    for (size_t i = 0; i < parts.size(); i += 2) {
      const unsigned n = llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
      joined.push_back(b.CreateShuffleVector(parts[i], parts[i + 1], llvm::to_vector(llvm::seq<int>(0, 2 * n))));
    }
    parts = std::move(joined);
  }
  return lanesFrom(b, parts[0], 0, count);
}

/// A bit for every lane; registers of 4 lanes have a mask of 8 as well.
llvm::Constant* allLanes(llvm::IRBuilderBase& b, unsigned lanes) {
  return lanes == 16 ? b.getInt16(0xffff) : b.getInt8(0xff);
}

Value* largerOrSmaller(llvm::IRBuilderBase& b, Value* x, Value* y, bool larger, unsigned widest) {
  const bool isDouble = x->getType()->getScalarType()->isDoubleTy();
  return byRegisters(
      b, {x, y}, isDouble ? widest / 2 : widest, [&](llvm::ArrayRef<Value*> v, unsigned lanes) -> Value* {
        // The sign is that of the result.
        Value* kind = b.getInt32(larger ? 5 : 4);
        llvm::SmallVector<Value*> args{v[0], v[1], kind, llvm::PoisonValue::get(v[0]->getType()), allLanes(b, lanes)};
        const unsigned bits = lanes * (isDouble ? 64 : 32);
        if (bits == 512) args.push_back(b.getInt32(4));
        if (isDouble)
          return b.CreateIntrinsic(bits == 512 ? llvm::Intrinsic::x86_avx512_mask_range_pd_512
                                               : llvm::Intrinsic::x86_avx512_mask_range_pd_256,
                                   args);
        return b.CreateIntrinsic(bits == 512   ? llvm::Intrinsic::x86_avx512_mask_range_ps_512
                                 : bits == 256 ? llvm::Intrinsic::x86_avx512_mask_range_ps_256
                                               : llvm::Intrinsic::x86_avx512_mask_range_ps_128,
                                 args);
      });
}

}  // namespace tile::ir::host
