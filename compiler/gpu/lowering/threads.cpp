// threads.cpp - threads of a program in LLVM IR: coordinates, exchange between lanes, barriers, shared memory.
#include "compiler/gpu/lowering/emitter.h"
#include "compiler/gpu/lowering/roles.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {

using layout::Digit;
using layout::Layout;
using llvm::LogicalResult;

llvm::Value* Emitter::digitSum(llvm::ArrayRef<Digit> digits, llvm::Value* index, int dim) {
  llvm::Value* sum = nullptr;
  int below = 1, total = 1;
  for (const Digit& digit : digits) total *= digit.count;
  for (const Digit& digit : digits) {
    if (digit.dim == dim) {
      llvm::Value* value = below == 1 ? index : b.CreateUDiv(index, i32(below));
      if (below * digit.count != total) value = b.CreateURem(value, i32(digit.count));
      if (digit.stride != 1) value = b.CreateMul(value, i32(digit.stride), "", /*NUW=*/true, /*NSW=*/true);
      sum = sum ? b.CreateAdd(sum, value, "", true, true) : value;
    }
    below *= digit.count;
  }
  return sum;
}

llvm::Value* Emitter::threadCoord(const Layout& layout, int dim) {
  std::string key;
  auto append = [&](const std::vector<Digit>& digits) {
    for (const Digit& digit : digits)
      key += (digit.dim == dim ? "*" + std::to_string(digit.stride) : ".") + std::to_string(digit.count);
    key += "|";
  };
  append(layout.lanes());
  append(layout.warps());
  llvm::Value*& cached = threadCoords_[key];
  if (cached) return cached;
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(entryEnd_);
  llvm::Value* fromLane = digitSum(layout.lanes(), lane_, dim);
  llvm::Value* fromWarp = digitSum(layout.warps(), warp_, dim);
  llvm::Value* sum = i32(0);
  if (fromLane && fromWarp)
    sum = b.CreateAdd(fromLane, fromWarp, "", true, true);
  else if (fromLane || fromWarp)
    sum = fromLane ? fromLane : fromWarp;
  return cached = sum;
}

llvm::Value* Emitter::warpgroup() {
  if (warpgroup_) return warpgroup_;
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(entryEnd_);  // where all lanes are together
  return warpgroup_ = b.CreateLShr(shuffleIdx(warp_, i32(0)), 2, "warpgroup");
}

llvm::Value* Emitter::isFirstReplica(const Layout& layout) {
  int lanes = layout.laneReplicas(), warps = layout.warpReplicas();
  if (lanes == 1 && warps == 1) return nullptr;
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(entryEnd_);
  if (lanes == layout.numLanes() && warps == layout.numWarps()) return b.CreateICmpEQ(thread_, i32(0));
  // Replicated digits all zero: as sums over the pseudo-dim kReplicated with stride 1, any non-zero digit shows.
  auto ones = [](std::vector<Digit> digits) {
    for (Digit& digit : digits)
      if (digit.dim == layout::kReplicated) digit.stride = 1;
    return digits;
  };
  llvm::Value* sum = nullptr;
  for (llvm::Value* part : {digitSum(ones(layout.lanes()), lane_, layout::kReplicated),
                            digitSum(ones(layout.warps()), warp_, layout::kReplicated)}) {
    if (part) sum = sum ? b.CreateAdd(sum, part) : part;
  }
  return b.CreateICmpEQ(sum, i32(0));
}

llvm::Value* Emitter::inTile(const Layout& layout, int reg) {
  layout::Coord coord = layout.regCoord(reg);
  llvm::Value* all = nullptr;
  for (int dim = 0; dim < layout.rank(); ++dim) {
    int64_t room = layout.shape()[dim] - coord[dim];
    if (layout.maxThreadCoord(dim) < room) continue;
    llvm::Value* inside = room <= 0 ? b.getFalse() : b.CreateICmpULT(threadCoord(layout, dim), i32(room));
    all = all ? b.CreateAnd(all, inside) : inside;
  }
  return all;
}

llvm::Value* Emitter::andAll(llvm::ArrayRef<llvm::Value*> conditions) {
  llvm::Value* all = nullptr;
  for (llvm::Value* condition : conditions)
    if (condition) all = all ? b.CreateAnd(all, condition) : condition;
  return all;
}

llvm::Value* Emitter::packQuad(llvm::ArrayRef<llvm::Value*> bytes) {
  // Poison in one byte (padding) would be poison in all of the word.
  auto widened = [&](llvm::Value* byte) -> llvm::Value* {
    return llvm::isa<llvm::UndefValue>(byte) ? i32(0) : b.CreateZExt(byte, b.getInt32Ty());
  };
  llvm::Value* word = widened(bytes[0]);
  for (unsigned i = 1; i < 4; ++i)
    word = b.CreateOr(word, b.CreateShl(widened(bytes[i]), 8 * i), "", /*IsDisjoint=*/true);
  return word;
}
llvm::SmallVector<llvm::Value*, 4> Emitter::unpackQuad(llvm::Value* word) {
  llvm::SmallVector<llvm::Value*, 4> bytes;
  for (unsigned i = 0; i < 4; ++i) bytes.push_back(b.CreateTrunc(b.CreateLShr(word, 8 * i), b.getInt8Ty()));
  return bytes;
}

llvm::Value* Emitter::packPair(llvm::Value* low, llvm::Value* high) {
  auto* type = llvm::FixedVectorType::get(low->getType(), 2);
  auto pair = [&](llvm::Value* x, llvm::Value* y) {
    llvm::Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(x->getType(), 2));
    return b.CreateInsertElement(b.CreateInsertElement(vector, x, uint64_t{0}), y, uint64_t{1});
  };
  auto *x = llvm::dyn_cast<llvm::FPTruncInst>(low), *y = llvm::dyn_cast<llvm::FPTruncInst>(high);
  if (!x || !y || !x->getOperand(0)->getType()->isFloatTy() || !y->getOperand(0)->getType()->isFloatTy())
    return pair(low, high);
  // One instruction for both. Left apart, ptxas may move one over the wait for the product that makes its operand.
  return b.CreateFPTrunc(pair(x->getOperand(0), y->getOperand(0)), type);
}

void Emitter::barrier() {
  if (role == Role::consumer) return namedBarrier(*this, i32(kConsumerBarrier), numThreads());
  if (totalThreads() == target.lanes) return syncWarp();  // orders memory between the lanes as well
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {i32(0)});
}
llvm::Value* Emitter::barrierVote(llvm::Value* holds, bool inAll) {
  using namespace llvm::Intrinsic;
  if (role == Role::consumer)
    return b.CreateIntrinsic(inAll ? nvvm_barrier_cta_red_and_aligned_count : nvvm_barrier_cta_red_or_aligned_count,
                             {i32(kConsumerBarrier), i32(numThreads()), holds});
  return b.CreateIntrinsic(inAll ? nvvm_barrier_cta_red_and_aligned_all : nvvm_barrier_cta_red_or_aligned_all,
                           {i32(0), holds});
}
void Emitter::syncWarp() { b.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {i32(-1)}); }

// Lanes exchange 32-bit words: narrower values travel in one, 64-bit ones in two.
llvm::Value* Emitter::shuffle(llvm::Value* value, llvm::Intrinsic::ID mode, llvm::Value* operand, int clamp) {
  llvm::Type* type = value->getType();
  auto word = [&](llvm::Value* v) -> llvm::Value* {
    return b.CreateIntrinsic(mode, {i32(-1), v, operand, i32(clamp)});
  };
  if (type->isFloatTy()) return b.CreateBitCast(word(b.CreateBitCast(value, b.getInt32Ty())), type);
  bool isPointer = type->isPointerTy();
  unsigned bits = isPointer ? 64 : type->getScalarSizeInBits();
  llvm::Type* integer = b.getIntNTy(bits);
  llvm::Value* asInt = isPointer ? b.CreatePtrToInt(value, integer) : b.CreateBitCast(value, integer);
  llvm::Value* moved = nullptr;
  if (bits <= 32) {
    moved = b.CreateTrunc(word(b.CreateZExt(asInt, b.getInt32Ty())), integer);
  } else {
    llvm::Value* low = word(b.CreateTrunc(asInt, b.getInt32Ty()));
    llvm::Value* high = word(b.CreateTrunc(b.CreateLShr(asInt, 32), b.getInt32Ty()));
    moved = b.CreateOr(b.CreateZExt(low, integer), b.CreateShl(b.CreateZExt(high, integer), 32));
  }
  return isPointer ? b.CreateIntToPtr(moved, type) : b.CreateBitCast(moved, type);
}

llvm::Value* Emitter::shuffleXor(llvm::Value* value, int mask) {
  return shuffle(value, llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, i32(mask), 31);
}
llvm::Value* Emitter::shuffleUp(llvm::Value* value, int delta) {
  return shuffle(value, llvm::Intrinsic::nvvm_shfl_sync_up_i32, i32(delta), 0);
}
llvm::Value* Emitter::shuffleDown(llvm::Value* value, int delta) {
  return shuffle(value, llvm::Intrinsic::nvvm_shfl_sync_down_i32, i32(delta), 31);
}
llvm::Value* Emitter::shuffleIdx(llvm::Value* value, llvm::Value* lane) {
  return shuffle(value, llvm::Intrinsic::nvvm_shfl_sync_idx_i32, lane, 31);
}

llvm::Value* Emitter::shared(int64_t offset) {
  if (!sharedMemory_) {
    sharedMemory_ = new llvm::GlobalVariable(*module_, llvm::ArrayType::get(b.getInt8Ty(), 0), false,
                                             llvm::GlobalValue::ExternalLinkage, nullptr, "tile_shared", nullptr,
                                             llvm::GlobalValue::NotThreadLocal, 3);
    sharedMemory_->setAlignment(llvm::Align(1024));
  }
  return offset ? b.CreatePtrAdd(sharedMemory_, i32(offset)) : sharedMemory_;
}

llvm::AllocaInst* Emitter::variable(const char* name, llvm::Type* type) {
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(entryEnd_);
  if (!type) type = b.getInt32Ty();
  llvm::AllocaInst* variable = b.CreateAlloca(type, nullptr, name);
  b.CreateStore(llvm::Constant::getNullValue(type), variable);
  return variable;
}

LogicalResult Emitter::asProducerWarps(llvm::function_ref<LogicalResult()> body) {
  // The producer's warpgroup comes behind whole warpgroups.
  llvm::Value *thread = nullptr, *warp = nullptr;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    b.SetInsertPoint(entryEnd_);
    thread = b.CreateAnd(thread_, i32(kGroupThreads - 1), "producer.thread");
    warp = b.CreateAnd(warp_, i32(kGroupWarps - 1), "producer.warp");
  }
  std::map<std::string, llvm::Value*> coords;
  int warps = kGroupWarps;
  auto change = [&] {
    std::swap(thread_, thread);
    std::swap(warp_, warp);
    std::swap(numWarps_, warps);
    std::swap(threadCoords_, coords);
  };
  change();
  LogicalResult result = body();
  change();
  return result;
}

llvm::Value* Emitter::inlineAsm(llvm::Type* result, llvm::StringRef text, llvm::StringRef constraints,
                                llvm::ArrayRef<llvm::Value*> args, bool pure) {
  llvm::SmallVector<llvm::Type*> types;
  for (llvm::Value* arg : args) types.push_back(arg->getType());
  auto* callee = llvm::InlineAsm::get(llvm::FunctionType::get(result, types, false), text, constraints, !pure);
  llvm::CallInst* call = b.CreateCall(callee, args);
  if (!pure) call->setConvergent();
  call->setDoesNotThrow();
  return call;
}

}  // namespace tile::ir
