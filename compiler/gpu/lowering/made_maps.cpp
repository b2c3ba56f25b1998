// made_maps.cpp - tensor maps of views that are made in the kernel (matrices of a group, sequences of a pack). The
// launcher cannot know them: the producer's thread that copies writes them to global memory, where the copy engine
// reads them (PTX ISA, tensormap.replace and fence.proxy.tensormap).
//
// Memory: a module has an array of blocks, each with all made maps of one program. A program takes a block when it
// starts and gives it back when it ends, so that launches on several streams, and graphs, need no memory of their own.
// Blocks are bits of words; a program looks first at the word of its multiprocessor, where nearly always one is free.
//
// A map is written anew only when its numbers have changed. Copies may still read what it was before: it has several
// places, which it takes in turn, and only where it comes back to the first one does the thread wait for all copies to
// arrive. So the producer goes on to the next program's tiles while those of this one are under way. A map is put
// together in shared memory: fields are parts of words, and each of them would be read from global memory first. Maps
// that are described one behind the other are made known to the copy engine together.
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Words of blocks: one for each multiprocessor of the largest GPUs; more of them would share words.
constexpr int64_t kWords = 160, kBlocksPerWord = 8;
/// Of each map of a block.
constexpr int64_t kPlaces = 8;
constexpr const char* kMaps = "tile_made_maps";
constexpr const char* kTaken = "tile_made_maps_taken";

int64_t blockBytes(Emitter& e) {
  return static_cast<int64_t>(e.roles().madeMaps().size()) * kPlaces * kTensorMapBytes;
}
/// All blocks, and behind them one map's bytes that stay 0: what views without elements have.
llvm::Value* mapMemory(Emitter& e) {
  const int64_t bytes = kWords * kBlocksPerWord * blockBytes(e) + kTensorMapBytes;
  return zeroedArray(e, kMaps, e.b.getInt8Ty(), bytes, kTensorMapBytes);
}
llvm::Value* takenWord(Emitter& e, llvm::Value* word) {
  llvm::Value* words = zeroedArray(e, kTaken, e.b.getInt32Ty(), kWords, 4);
  return e.b.CreatePtrAdd(words, e.b.CreateZExt(e.b.CreateShl(word, 2), e.b.getInt64Ty()));
}

/// Of a producer of many threads, the one that copies.
void byCopyingThread(Emitter& e, llvm::function_ref<void()> body) {
  e.roles().isThread() ? body() : byFirstThread(e, body);
}

/// The field's value in PTX (tensormap.replace): .elemtype and .swizzle_mode.
int elementCode(const TensorMapInfo& map) {
  if (map.tf32) return 11;
  switch (map.dtype) {
    case DType::i16: return 1;
    case DType::i32: return 3;
    case DType::i64: return 5;
    case DType::f16: return 6;
    case DType::f32: return 7;
    case DType::f64: return 9;
    case DType::bf16: return 10;
    default: return 0;  // bytes
  }
}
int swizzleCode(uint8_t bytes) { return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0; }

/// tensormap.replace of one field of the map at `map`.
class Fields {
 public:
  Fields(Emitter& e, llvm::Value* map) : e_(e), map_(map) {}
  void set(llvm::Intrinsic::ID field, llvm::Value* value) const { call(field, {map_, value}); }
  void set(llvm::Intrinsic::ID field, int value) const { set(field, e_.i32(value)); }
  void setOfDim(llvm::Intrinsic::ID field, int dim, llvm::Value* value) const {
    call(field, {map_, e_.i32(dim), value});
  }

 private:
  void call(llvm::Intrinsic::ID field, llvm::ArrayRef<llvm::Value*> args) const {
    e_.b.CreateIntrinsic(field, {map_->getType()}, args);
  }
  Emitter& e_;
  llvm::Value* map_;
};

/// The numbers of a map: address, extents, then strides in bytes from the second dim on; all i64.
SmallVector<llvm::Value*> numbersOf(Emitter& e, const MadeMap& made) {
  llvm::IRBuilder<>& b = e.b;
  const ViewValue& view = e.view(MakeViewOp(made.view).getResult());
  llvm::Value* empty = b.getFalse();
  for (llvm::Value* dim : view.dims) empty = b.CreateOr(empty, b.CreateICmpSLE(dim, e.i64(0)));
  llvm::Value* zeros = b.CreatePtrAdd(mapMemory(e), e.i64(kWords * kBlocksPerWord * blockBytes(e)));
  SmallVector<llvm::Value*> numbers{b.CreatePtrToInt(b.CreateSelect(empty, zeros, view.ptr), b.getInt64Ty())};
  SmallVector<llvm::Value*> strides;
  for (int d = 0; d < made.map.rank; ++d) {
    const auto dim = static_cast<size_t>(made.map.dims[static_cast<size_t>(d)]);
    // No coordinate is above what an i32 holds.
    llvm::Value* extent = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, view.dims[dim], e.i64(INT32_MAX));
    extent = b.CreateSelect(empty, e.i64(1), extent);
    numbers.push_back(extent);
    if (d == 0) continue;
    // Of a dim with one element any stride says the same; its own may be one that no map takes.
    llvm::Value* bytes = b.CreateMul(view.strides[dim], e.i64(static_cast<int64_t>(size_of(made.map.dtype))));
    strides.push_back(b.CreateSelect(b.CreateICmpEQ(extent, e.i64(1)), e.i64(16), bytes));
  }
  numbers.append(strides);
  return numbers;
}

/// Puts the map together in `memory` (shared), and then where the copy engine will read it.
void write(Emitter& e, const MadeMap& made, llvm::Value* memory, llvm::Value* map, ArrayRef<llvm::Value*> numbers) {
  using namespace llvm::Intrinsic;
  llvm::IRBuilder<>& b = e.b;
  constexpr int64_t kChunk = 16;
  auto* chunk = llvm::FixedVectorType::get(b.getInt32Ty(), 4);
  const llvm::Align align(kChunk);
  for (int64_t byte = 0; byte < kTensorMapBytes; byte += kChunk)
    b.CreateAlignedStore(llvm::Constant::getNullValue(chunk), b.CreatePtrAdd(memory, e.i32(byte)), align);
  const Fields fields(e, memory);
  const int rank = made.map.rank;
  fields.set(nvvm_tensormap_replace_rank, rank - 1);
  fields.set(nvvm_tensormap_replace_elemtype, elementCode(made.map));
  fields.set(nvvm_tensormap_replace_interleave_layout, 0);
  fields.set(nvvm_tensormap_replace_swizzle_mode, swizzleCode(made.map.swizzle));
  fields.set(nvvm_tensormap_replace_fill_mode, 0);
  fields.set(nvvm_tensormap_replace_global_address, numbers.front());
  for (int d = 0; d < rank; ++d) {
    const auto at = static_cast<size_t>(d);
    fields.setOfDim(nvvm_tensormap_replace_box_dim, d, e.i32(made.map.box[at]));
    fields.setOfDim(nvvm_tensormap_replace_element_stride, d, e.i32(1));
    fields.setOfDim(nvvm_tensormap_replace_global_dim, d, b.CreateTrunc(numbers[1 + at], b.getInt32Ty()));
    if (d) fields.setOfDim(nvvm_tensormap_replace_global_stride, d - 1, numbers[static_cast<size_t>(rank) + at]);
  }
  for (int64_t byte = 0; byte < kTensorMapBytes; byte += kChunk)
    b.CreateAlignedStore(b.CreateAlignedLoad(chunk, b.CreatePtrAdd(memory, e.i32(byte)), align),
                         b.CreatePtrAdd(map, e.i64(byte)), align);
}

/// Where the map is now.
llvm::Value* mapInBlock(Emitter& e, size_t index) {
  llvm::IRBuilder<>& b = e.b;
  auto wide = [&](llvm::AllocaInst* number) {
    return b.CreateZExt(b.CreateLoad(b.getInt32Ty(), number), b.getInt64Ty());
  };
  const MadeMap& made = e.roles().madeMaps()[index];
  llvm::Value* block = b.CreateMul(wide(e.roles().madeBlock), e.i64(blockBytes(e)));
  llvm::Value* place = b.CreateAdd(wide(made.place), e.i64(static_cast<int64_t>(index) * kPlaces));
  return b.CreatePtrAdd(mapMemory(e), b.CreateAdd(block, b.CreateMul(place, e.i64(kTensorMapBytes))));
}

/// Moves the map to its next place, which no copy reads any more.
void moveOn(Emitter& e, const MadeMap& made) {
  llvm::IRBuilder<>& b = e.b;
  llvm::Value* next = b.CreateAdd(b.CreateLoad(b.getInt32Ty(), made.place), e.i32(1));
  next = b.CreateAnd(next, e.i32(kPlaces - 1));
  b.CreateStore(next, made.place);
  emitIf(e, b.CreateICmpEQ(next, e.i32(0)), [&] {
    for (Value ring : made.rings) waitForFills(e, ring);
  });
}

/// Another description follows, with nothing between them that could copy.
bool isFollowed(TmaDescribeOp op) {
  for (Operation* next = op->getNextNode(); next && next->getNumRegions() == 0; next = next->getNextNode()) {
    if (isa<TmaDescribeOp>(next)) return true;
    if (isa<TmaLoadOp>(next)) return false;
  }
  return false;
}

/// The copy engine may know the maps as they were.
void makeKnown(Emitter& e, ArrayRef<size_t> maps) {
  llvm::IRBuilder<>& b = e.b;
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_fence_proxy_tensormap_generic_release_gpu, {});
  for (size_t map : maps)
    b.CreateIntrinsic(llvm::Intrinsic::nvvm_fence_proxy_tensormap_generic_acquire_gpu,
                      {b.CreateAddrSpaceCast(mapInBlock(e, map), b.getPtrTy()), e.i32(kTensorMapBytes)});
}

}  // namespace

llvm::GlobalVariable* zeroedArray(Emitter& e, llvm::StringRef name, llvm::Type* element, int64_t count,
                                  uint64_t align) {
  llvm::Module& module = *e.b.GetInsertBlock()->getModule();
  if (llvm::GlobalVariable* known = module.getNamedGlobal(name)) return known;
  auto* type = llvm::ArrayType::get(element, static_cast<uint64_t>(count));
  auto* array = new llvm::GlobalVariable(module, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
                                         llvm::ConstantAggregateZero::get(type), name, nullptr,
                                         llvm::GlobalValue::NotThreadLocal, 1);
  array->setAlignment(llvm::Align(align));
  return array;
}

llvm::Value* madeMapAddress(Emitter& e, size_t index) {
  return e.b.CreateAddrSpaceCast(mapInBlock(e, index), e.b.getPtrTy());
}

void takeMadeMaps(Emitter& e) {
  KernelRoles& roles = e.roles();
  if (roles.madeMaps().empty()) return;
  roles.madeBlock = e.variable("made.block");
  roles.madeChanged = e.variable("made.changed", e.b.getInt1Ty());
  for (MadeMap& made : roles.madeMaps()) {
    made.place = e.variable("made.place");
    for (int n = 0; n < 2 * made.map.rank; ++n) made.written.push_back(e.variable("made.number", e.b.getInt64Ty()));
  }
  byCopyingThread(e, [&] {
    llvm::IRBuilder<>& b = e.b;
    llvm::Function* function = b.GetInsertBlock()->getParent();
    auto block = [&](const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, function); };
    auto *before = b.GetInsertBlock(), *look = block("made.look"), *taken = block("made.taken");
    llvm::Value* own = b.CreateURem(b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_smid, {}), e.i32(kWords));
    b.CreateBr(look);
    b.SetInsertPoint(look);
    llvm::PHINode* word = b.CreatePHI(b.getInt32Ty(), 2, "made.word");
    word->addIncoming(own, before);
    llvm::Value* held = e.inlineAsm(b.getInt32Ty(), "ld.relaxed.gpu.global.u32 $0, [$1];", "=r,l,~{memory}",
                                    {takenWord(e, word)});
    llvm::Value* free = b.CreateAnd(b.CreateNot(held), e.i32((1 << kBlocksPerWord) - 1));
    llvm::Value* bit = b.CreateAnd(free, b.CreateNeg(free));  // 0: none is free
    llvm::Value* found = e.inlineAsm(b.getInt32Ty(), "atom.acquire.gpu.global.or.b32 $0, [$1], $2;", "=r,l,r,~{memory}",
                                     {takenWord(e, word), bit});
    llvm::Value* none = b.CreateICmpEQ(free, e.i32(0));
    llvm::Value* next = b.CreateURem(b.CreateAdd(word, b.CreateZExt(none, b.getInt32Ty())), e.i32(kWords));
    word->addIncoming(next, look);
    llvm::Value* again = b.CreateOr(none, b.CreateICmpNE(b.CreateAnd(found, bit), e.i32(0)));
    b.CreateCondBr(again, look, taken);
    b.SetInsertPoint(taken);
    llvm::Value* place = b.CreateIntrinsic(llvm::Intrinsic::cttz, {b.getInt32Ty()}, {bit, b.getTrue()});
    b.CreateStore(b.CreateAdd(b.CreateMul(word, e.i32(kBlocksPerWord)), place), roles.madeBlock);
  });
}

void writeMadeMaps(Emitter& e, TmaDescribeOp op) {
  KernelRoles& roles = e.roles();
  const bool isLast = !isFollowed(op);
  byCopyingThread(e, [&] {
    llvm::IRBuilder<>& b = e.b;
    for (auto [index, made] : llvm::enumerate(roles.madeMaps())) {
      if (made.view != op.getView().getDefiningOp()) continue;
      roles.madeUnknown.push_back(index);
      const size_t at = index;
      const MadeMap& map = made;
      const SmallVector<llvm::Value*> numbers = numbersOf(e, map);
      llvm::Value* changed = b.getFalse();
      for (auto [number, before] : llvm::zip(numbers, map.written))
        changed = b.CreateOr(changed, b.CreateICmpNE(number, b.CreateLoad(b.getInt64Ty(), before)));
      emitIf(e, changed, [&] {
        for (auto [number, before] : llvm::zip(numbers, map.written)) b.CreateStore(number, before);
        b.CreateStore(b.getTrue(), roles.madeChanged);
        moveOn(e, map);
        write(e, map, e.scalar(op.getMemory()), mapInBlock(e, at), numbers);
      });
    }
    if (!isLast) return;
    emitIf(e, b.CreateLoad(b.getInt1Ty(), roles.madeChanged), [&] {
      makeKnown(e, roles.madeUnknown);
      b.CreateStore(b.getFalse(), roles.madeChanged);
    });
    roles.madeUnknown.clear();
  });
}

void giveBackMadeMaps(Emitter& e) {
  if (e.roles().madeMaps().empty()) return;
  byCopyingThread(e, [&] {
    llvm::IRBuilder<>& b = e.b;
    llvm::SmallSetVector<Value, 4> rings;
    for (const MadeMap& made : e.roles().madeMaps()) rings.insert(made.rings.begin(), made.rings.end());
    for (Value ring : rings) waitForFills(e, ring);
    llvm::Value* block = b.CreateLoad(b.getInt32Ty(), e.roles().madeBlock);
    llvm::Value* bit = b.CreateShl(e.i32(1), b.CreateURem(block, e.i32(kBlocksPerWord)));
    e.inlineAsm(b.getInt32Ty(), "atom.release.gpu.global.and.b32 $0, [$1], $2;", "=r,l,r,~{memory}",
                {takenWord(e, b.CreateUDiv(block, e.i32(kBlocksPerWord))), b.CreateNot(bit)});
  });
}

}  // namespace tile::ir
