// lanes.cpp - strided and scattered vectors: neighbouring loads and shuffles, the machine's gathers and scatters where
// it has them, else lane by lane without branches.
#include "compiler/host/lanes.h"

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

unsigned widthOf(llvm::Value* v) { return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements(); }

/// Both vectors one behind the other.
llvm::Value* concatenate(llvm::IRBuilder<>& b, llvm::Value* low, llvm::Value* high) {
  const int n = static_cast<int>(widthOf(low)), m = static_cast<int>(widthOf(high)), longest = std::max(n, m);
  auto stretched = [&](llvm::Value* v, int have) {
    if (have == longest) return v;
    SmallVector<int> lanes(longest, llvm::PoisonMaskElem);
    for (int i = 0; i < have; ++i) lanes[i] = i;
    return b.CreateShuffleVector(v, lanes);
  };
  SmallVector<int> lanes;
  for (int i = 0; i < n; ++i) lanes.push_back(i);
  for (int i = 0; i < m; ++i) lanes.push_back(longest + i);
  return b.CreateShuffleVector(stretched(low, n), stretched(high, m), lanes);
}

/// Narrow elements come out of the aligned words they lie in, which end on no other page than they do.
llvm::Value* gatherNarrow(Emitter& e, llvm::FixedVectorType* type, llvm::Value* addresses, llvm::Value* mask) {
  auto& b = e.b;
  auto* words = llvm::FixedVectorType::get(b.getInt32Ty(), type);
  auto* longs = llvm::FixedVectorType::get(b.getInt64Ty(), type);
  auto number = [&](uint64_t n) { return llvm::ConstantInt::get(longs, n); };
  llvm::Value* at = b.CreatePtrToInt(addresses, longs);
  llvm::Value* start = b.CreateIntToPtr(b.CreateAnd(at, number(~uint64_t{3})), addresses->getType());
  llvm::Value* word = b.CreateMaskedGather(words, start, llvm::Align(4), mask, llvm::Constant::getNullValue(words));
  llvm::Value* bits = b.CreateTrunc(b.CreateShl(b.CreateAnd(at, number(3)), number(3)), words);
  return b.CreateTrunc(b.CreateLShr(word, bits), type);
}

/// Somewhere that lanes without an element may read.
llvm::Value* nothing(Emitter& e) {
  if (auto* known = e.module->getNamedGlobal("nothing")) return known;
  auto* type = llvm::ArrayType::get(e.b.getInt8Ty(), 16);
  auto* zeros = new llvm::GlobalVariable(*e.module, type, true, llvm::GlobalValue::PrivateLinkage,
                                         llvm::Constant::getNullValue(type), "nothing");
  zeros->setAlignment(llvm::Align(16));
  return zeros;
}

}  // namespace

bool hasGather(Emitter& e) { return e.target.vectorBytes >= 64; }

llvm::Value* loadApart(Emitter& e, Type element, llvm::Value* address, int64_t step, unsigned width) {
  auto& b = e.b;
  auto* type = llvm::FixedVectorType::get(e.numbers.inMemory(element), width);
  const llvm::Align align(Numbers::bytes(element));
  const auto whole = static_cast<unsigned>(e.target.vectorBytes / Numbers::bytes(element));
  if (width > whole && width % whole == 0) {  // a register at a time: what crosses them is dear to pick
    llvm::Value* all = nullptr;
    for (unsigned lane = 0; lane < width; lane += whole) {
      llvm::Value* piece = loadApart(e, element, e.offsetBy(address, element, e.i64(lane * step)), step, whole);
      all = all ? concatenate(b, all, piece) : piece;
    }
    return all;
  }
  const int64_t last = (width - 1) * step;
  llvm::Value* all = nullptr;
  SmallVector<int64_t, kWidestStep> starts;
  for (int64_t start = 0; start <= last; start += width) {
    starts.push_back(std::min(start, last + 1 - width));  // the last one ends with the last element
    llvm::Value* piece = b.CreateAlignedLoad(type, e.offsetBy(address, element, e.i64(starts.back())), align);
    all = all ? concatenate(b, all, piece) : piece;
  }
  SmallVector<int> lanes;
  for (int64_t at = 0; at <= last; at += step) {
    const int64_t piece = std::min<int64_t>(at / width, static_cast<int64_t>(starts.size()) - 1);
    lanes.push_back(static_cast<int>(piece * width + at - starts[piece]));
  }
  return b.CreateShuffleVector(all, lanes);
}

llvm::Value* loadLanes(Emitter& e, Type element, llvm::Value* addresses, llvm::Value* mask, llvm::Value* other) {
  auto& b = e.b;
  const unsigned width = widthOf(addresses);
  auto* type = llvm::FixedVectorType::get(e.numbers.inMemory(element), width);
  const llvm::Align align(Numbers::bytes(element));
  if (hasGather(e)) {
    if (align.value() >= 4) return b.CreateMaskedGather(type, addresses, align, mask, other);
    llvm::Value* bits = gatherNarrow(e, type, addresses, mask);
    return mask ? b.CreateSelect(mask, bits, other) : bits;
  }
  if (mask) addresses = b.CreateSelect(mask, addresses, b.CreateVectorSplat(width, nothing(e)));
  llvm::Value* bits = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < width; ++lane) {
    llvm::Value* one = b.CreateAlignedLoad(type->getElementType(), b.CreateExtractElement(addresses, lane), align);
    bits = b.CreateInsertElement(bits, one, lane);
  }
  return mask ? b.CreateSelect(mask, bits, other) : bits;
}

void storeLanes(Emitter& e, Type element, llvm::Value* bits, llvm::Value* addresses, llvm::Value* mask) {
  auto& b = e.b;
  const llvm::Align align(Numbers::bytes(element));
  if (hasGather(e) && align.value() >= 4) {
    b.CreateMaskedScatter(bits, addresses, align, mask);
    return;
  }
  for (unsigned lane = 0; lane < widthOf(addresses); ++lane) {
    auto store = [&] {
      b.CreateAlignedStore(b.CreateExtractElement(bits, lane), b.CreateExtractElement(addresses, lane), align);
    };
    if (mask)
      e.ifThen(b.CreateExtractElement(mask, lane), store);
    else
      store();
  }
}

llvm::Value* laneOffsets(Emitter& e, int64_t step, unsigned width) {
  SmallVector<llvm::Constant*> lanes;
  for (unsigned lane = 0; lane < width; ++lane) lanes.push_back(e.i64(lane * step));
  return llvm::ConstantVector::get(lanes);
}

llvm::Value* growBy(Emitter& e, llvm::Value* lanes, int64_t step) {
  const unsigned width = widthOf(lanes);
  llvm::Value* first = e.b.CreateVectorSplat(width, e.b.CreateExtractElement(lanes, uint64_t{0}));
  llvm::Value* steps = e.b.CreateTrunc(laneOffsets(e, step, width), lanes->getType());
  return e.b.CreateAndReduce(e.b.CreateICmpEQ(lanes, e.b.CreateAdd(first, steps)));
}

bool isPermutable(Emitter& e, Type element, unsigned width) {
  return hasGather(e) && e.target.vectorBytes == 64 && !isa<PtrType>(element) && width == permutedLanes(element);
}

llvm::Value* loadWindow(Emitter& e, Type element, llvm::Value* address, llvm::Value* places) {
  auto& b = e.b;
  const unsigned width = widthOf(places);
  const bool isWide = width == 8;
  auto* words = llvm::FixedVectorType::get(isWide ? b.getInt64Ty() : b.getInt32Ty(), width);
  auto* type = llvm::FixedVectorType::get(b.getIntNTy(static_cast<unsigned>(Numbers::bytes(element) * 8)), width);
  llvm::Value* last = b.CreateVectorSplat(width, b.CreateIntMaxReduce(places, /*IsSigned=*/false));
  llvm::Value* lanes = b.CreateTrunc(laneOffsets(e, 1, width), places->getType());
  llvm::Value* bits = b.CreateMaskedLoad(type, address, llvm::Align(Numbers::bytes(element)),
                                         b.CreateICmpULE(lanes, last), llvm::Constant::getNullValue(type));
  const auto permute = isWide ? llvm::Intrinsic::x86_avx512_permvar_di_512 : llvm::Intrinsic::x86_avx512_permvar_si_512;
  llvm::Value* found = b.CreateIntrinsic(permute, {}, {b.CreateZExt(bits, words), b.CreateZExtOrTrunc(places, words)});
  return b.CreateBitCast(b.CreateTrunc(found, type), llvm::FixedVectorType::get(e.numbers.inMemory(element), width));
}

llvm::Value* interleave(llvm::IRBuilder<>& b, ArrayRef<llvm::Value*> vectors) {
  if (vectors.size() == 1) return vectors[0];
  llvm::Value* all = vectors[0];
  for (llvm::Value* v : vectors.drop_front()) all = concatenate(b, all, v);
  const int n = static_cast<int>(vectors.size()), width = static_cast<int>(widthOf(vectors[0]));
  SmallVector<int> lanes;
  for (int i = 0; i < width; ++i)
    for (int k = 0; k < n; ++k) lanes.push_back(k * width + i);
  return b.CreateShuffleVector(all, lanes);
}

}  // namespace tile::ir::host
