// atomic.cpp - atomics on global memory, with results and (addVector) without. Of all threads that hold an element only
// the first performs the update; when the result is used, the others get it through shared memory.
//
// What the hardware has is one predicated PTX instruction; f32/f64 max and min are integer ones on the bits; the rest
// (8/16-bit types, f16/bf16 max and min) is left to LLVM, which writes a compare-and-swap loop.
#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/exchange.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "compiler/lowering/atomic_kinds.h"

namespace tile::ir {
using namespace mlir;

llvm::StringRef constraintOf(llvm::Type* type) {
  switch (type->getScalarSizeInBits()) {
    case 16:
      return "h";
    case 64:
      return type->isDoubleTy() ? "d" : "l";
    default:
      return type->isFloatTy() ? "f" : "r";
  }
}

std::string suffixOfAdd(llvm::Type* type) {
  if (type->isIntegerTy()) return memoryBytes(type) == 8 ? ".u64" : ".u32";
  return type->isDoubleTy() ? ".f64" : type->isFloatTy() ? ".f32" : type->isBFloatTy() ? ".bf16" : ".f16";
}

namespace {

llvm::StringRef orderText(MemOrder order) {
  switch (order) {
    case MemOrder::relaxed:
      return ".relaxed";
    case MemOrder::acquire:
      return ".acquire";
    case MemOrder::release:
      return ".release";
    case MemOrder::acq_rel:
      return ".acq_rel";
  }
  return ".acq_rel";
}
llvm::StringRef scopeText(MemScope scope) {
  return scope == MemScope::cta ? ".cta" : scope == MemScope::gpu ? ".gpu" : ".sys";
}
llvm::SyncScope::ID llvmScope(llvm::LLVMContext& context, MemScope scope) {
  if (scope == MemScope::sys) return llvm::SyncScope::System;
  return context.getOrInsertSyncScopeID(scope == MemScope::cta ? "block" : "device");
}
bool acquires(MemOrder order) { return order == MemOrder::acquire || order == MemOrder::acq_rel; }
bool releases(MemOrder order) { return order == MemOrder::release || order == MemOrder::acq_rel; }

// One atom instruction: `suffix` is the operation and type, e.g. ".add.f32".
llvm::Value* atom(Emitter& e, llvm::Twine suffix, MemOrder order, MemScope scope, llvm::Value* ptr,
                  llvm::ArrayRef<llvm::Value*> operands, llvm::Value* predicate) {
  llvm::Type* type = operands[0]->getType();
  std::string text, constraints = "=" + constraintOf(type).str() + ",l";
  llvm::SmallVector<llvm::Value*> args{ptr};
  for (llvm::Value* operand : operands) {
    constraints += "," + constraintOf(type).str();
    args.push_back(operand);
  }
  if (predicate) {
    text = "@$" + std::to_string(args.size() + 1) + " ";
    constraints += ",b";
    args.push_back(predicate);
  }
  text += "atom" + (orderText(order) + scopeText(scope) + ".global").str() + suffix.str() + " $0, [$1]";
  for (size_t i = 0; i < operands.size(); ++i) text += ", $" + std::to_string(i + 2);
  return e.inlineAsm(type, text + ";", constraints, args);
}

// The PTX operation and type for the kind on `type`; empty where there is none.
std::string nativeSuffix(RmwKind kind, llvm::Type* type, int sm) {
  unsigned bits = type->getScalarSizeInBits();
  bool isInt = type->isIntegerTy() && (bits == 32 || bits == 64);
  std::string b = ".b" + std::to_string(bits), s = ".s" + std::to_string(bits), u = ".u" + std::to_string(bits);
  switch (kind) {
    case RmwKind::add:
      if (type->isFloatTy()) return ".add.f32";
      if (type->isDoubleTy()) return ".add.f64";
      if (type->isHalfTy()) return ".add.noftz.f16";
      if (type->isBFloatTy()) return sm >= 90 ? ".add.noftz.bf16" : "";
      return isInt ? ".add" + u : "";
    case RmwKind::max:
      return isInt ? ".max" + s : "";
    case RmwKind::min:
      return isInt ? ".min" + s : "";
    case RmwKind::umax:
      return isInt ? ".max" + u : "";
    case RmwKind::umin:
      return isInt ? ".min" + u : "";
    case RmwKind::and_:
      return isInt ? ".and" + b : "";
    case RmwKind::or_:
      return isInt ? ".or" + b : "";
    case RmwKind::xor_:
      return isInt ? ".xor" + b : "";
    case RmwKind::exchange:
      return bits == 32 || bits == 64 ? ".exch" + b : "";
  }
  return "";
}

// `body` only where the predicate holds; its value is undefined elsewhere.
llvm::Value* guarded(Emitter& e, llvm::Value* predicate, llvm::function_ref<llvm::Value*()> body) {
  if (!predicate) return body();
  llvm::Function* function = e.b.GetInsertBlock()->getParent();
  auto* from = e.b.GetInsertBlock();
  auto* then = llvm::BasicBlock::Create(e.b.getContext(), "atomic", function);
  auto* after = llvm::BasicBlock::Create(e.b.getContext(), "atomic.end", function);
  e.b.CreateCondBr(predicate, then, after);
  e.b.SetInsertPoint(then);
  llvm::Value* value = body();
  auto* end = e.b.GetInsertBlock();
  e.b.CreateBr(after);
  e.b.SetInsertPoint(after);
  llvm::PHINode* phi = e.b.CreatePHI(value->getType(), 2);
  phi->addIncoming(value, end);
  phi->addIncoming(llvm::PoisonValue::get(value->getType()), from);
  return phi;
}

llvm::Value* emitRmw(Emitter& e, AtomicRmwOp op, MemOrder order, llvm::Value* ptr, llvm::Value* value,
                     llvm::Value* predicate) {
  llvm::IRBuilder<>& b = e.b;
  llvm::Type* type = value->getType();
  RmwKind kind = op.getKind();
  MemScope scope = op.getScope();
  if (std::string suffix = nativeSuffix(kind, type, e.target.sm); !suffix.empty()) {
    bool asBits = kind == RmwKind::exchange && type->isFloatingPointTy();
    if (!asBits) return atom(e, suffix, order, scope, ptr, {value}, predicate);
    llvm::Type* integer = b.getIntNTy(type->getScalarSizeInBits());
    return b.CreateBitCast(atom(e, suffix, order, scope, ptr, {b.CreateBitCast(value, integer)}, predicate), type);
  }
  if ((type->isFloatTy() || type->isDoubleTy()) && (kind == RmwKind::max || kind == RmwKind::min)) {
    // Floats order like signed integers when the new value is not negative, and like reversed unsigned ones when it is.
    unsigned bits = type->getScalarSizeInBits();
    llvm::Type* integer = b.getIntNTy(bits);
    llvm::Value* raw = b.CreateBitCast(value, integer);
    llvm::Value* negative = b.CreateICmpSLT(raw, llvm::ConstantInt::get(integer, 0));
    bool isMax = kind == RmwKind::max;
    std::string width = std::to_string(bits);
    llvm::Value* onSigned = atom(e, (isMax ? ".max.s" : ".min.s") + width, order, scope, ptr, {raw},
                                 e.andAll({predicate, b.CreateNot(negative)}));
    llvm::Value* onUnsigned =
        atom(e, (isMax ? ".min.u" : ".max.u") + width, order, scope, ptr, {raw}, e.andAll({predicate, negative}));
    return b.CreateBitCast(b.CreateSelect(negative, onUnsigned, onSigned), type);
  }
  return guarded(e, predicate, [&]() -> llvm::Value* {
    // LLVM's expansion wants integers for everything but arithmetic.
    bool asBits = kind == RmwKind::exchange && type->isFloatingPointTy();
    llvm::Value* operand = asBits ? b.CreateBitCast(value, b.getIntNTy(type->getScalarSizeInBits())) : value;
    llvm::Value* old =
        b.CreateAtomicRMW(llvmBinOp(kind, type->isFloatingPointTy() && !asBits), ptr, operand,
                          llvm::Align(memoryBytes(type)), llvmOrdering(order), llvmScope(b.getContext(), scope));
    return asBits ? b.CreateBitCast(old, type) : old;
  });
}

llvm::Value* emitCas(Emitter& e, AtomicCasOp op, MemOrder order, llvm::Value* ptr, llvm::Value* expected,
                     llvm::Value* desired, llvm::Value* predicate) {
  unsigned bits = desired->getType()->getScalarSizeInBits();
  if (bits >= 16) {
    std::string suffix = ".cas.b" + std::to_string(bits);
    return atom(e, suffix, order, op.getScope(), ptr, {expected, desired}, predicate);
  }
  return guarded(e, predicate, [&]() -> llvm::Value* {
    auto failure = acquires(order) ? llvm::AtomicOrdering::Acquire : llvm::AtomicOrdering::Monotonic;
    auto* pair =
        e.b.CreateAtomicCmpXchg(ptr, expected, desired, llvm::Align(memoryBytes(desired->getType())),
                                llvmOrdering(order), failure, llvmScope(e.b.getContext(), op.getScope()));
    return e.b.CreateExtractValue(pair, 0);
  });
}

void fence(Emitter& e, MemScope scope) {
  e.b.CreateFence(llvm::AtomicOrdering::AcquireRelease, llvmScope(e.b.getContext(), scope));
}

/// Whether this thread updates any element under the mask; null: all do. A fence waits for whatever the multiprocessor
/// has under way: threads that update nothing had better not ask for one. Barriers put what they wrote and read in
/// order with those that do.
llvm::Value* updatesAny(Emitter& e, const layout::Layout& layout, llvm::ArrayRef<llvm::Value*> mask) {
  llvm::Value* any = nullptr;
  for (int reg = 0; reg < layout.numRegs(); ++reg) {
    if (layout.isRegPadding(reg)) continue;
    llvm::Value* here = e.andAll({mask.empty() ? nullptr : mask[reg], e.inTile(layout, reg)});
    if (!here) return e.isFirstReplica(layout);
    any = any ? e.b.CreateOr(any, here) : here;
  }
  return any ? e.andAll({e.isFirstReplica(layout), any}) : e.b.getFalse();
}

// Runs `update(order, register, address, predicate)` once per element and spreads the results to every holder.
template <class Op, class Update>
LogicalResult emitAtomic(Emitter& e, Op op, Update&& update) {
  if (isa<RankedTensorType>(op.getPtr().getType()))
    return op.emitOpError("through a tile of pointers must be raised first");
  llvm::IRBuilder<>& b = e.b;
  Value result = op.getResult();
  const layout::Layout& layout = e.layoutOf(result);
  llvm::Type* element = e.elementType(result);
  if (element->isIntegerTy(1)) return op.emitOpError("is not defined on i1");
  int64_t bytes = memoryBytes(element);
  llvm::ArrayRef<llvm::Value*> offsets, mask;
  if (op.getOffsets()) offsets = e.regs(op.getOffsets());
  if (op.getMask()) mask = e.regs(op.getMask());

  // An ordered update fences memory by itself: several of a thread share one fence before and one after all of them.
  const MemOrder order = op.getOrder();
  const int updates = llvm::count_if(llvm::seq(layout.numRegs()), [&](int reg) { return !layout.isRegPadding(reg); });
  const bool fenced = updates > 1 && order != MemOrder::relaxed;
  // A release covers what every thread of the program wrote before it.
  if (releases(order)) e.barrier();
  llvm::Value* updatesHere = fenced ? updatesAny(e, layout, mask) : nullptr;
  if (fenced && releases(order)) emitIf(e, updatesHere, [&] { fence(e, op.getScope()); });
  llvm::Value* first = e.isFirstReplica(layout);
  std::map<layout::Coord, llvm::Value*> done;  // register replicas share one update
  Regs values;
  for (int reg = 0; reg < layout.numRegs(); ++reg) {
    if (layout.isRegPadding(reg)) {
      values.push_back(llvm::PoisonValue::get(element));
      continue;
    }
    llvm::Value*& value = done[layout.regCoord(reg)];
    if (!value) {
      llvm::Value* ptr = e.scalar(op.getPtr());
      if (!offsets.empty())
        ptr = b.CreatePtrAdd(ptr, b.CreateMul(b.CreateSExt(offsets[reg], b.getInt64Ty()), e.i64(bytes)));
      value = update(fenced ? MemOrder::relaxed : order, reg, ptr,
                     e.andAll({first, mask.empty() ? nullptr : mask[reg], e.inTile(layout, reg)}));
    }
    values.push_back(value);
  }
  if (fenced && acquires(order)) emitIf(e, updatesHere, [&] { fence(e, op.getScope()); });
  if (scratchOf(op)) {
    llvm::Value* base = e.scratch(op);
    layout::Coord origin(layout.rank(), 0);
    storeLinear(e, base, layout.shape(), layout, values, origin);
    e.barrier();
    values = loadLinear(e, base, layout.shape(), layout, element, origin);
  } else if (acquires(order)) {
    e.barrier();  // and an acquire covers what every thread reads after it
  }
  e.define(result, std::move(values));
  return success();
}

}  // namespace

void addVector(Emitter& e, llvm::Value* ptr, llvm::ArrayRef<llvm::Value*> values, llvm::Value* predicate,
               MemScope scope) {
  llvm::IRBuilder<>& b = e.b;
  llvm::Type* type = values[0]->getType();
  const int bytes = memoryBytes(type), count = static_cast<int>(values.size());
  const bool isHalf = bytes == 2;
  if (type->isBFloatTy() && e.target.sm < 90) {  // no such instruction: compare and swap
    for (int i = 0; i < count; ++i)
      guarded(e, predicate, [&]() -> llvm::Value* {
        return b.CreateAtomicRMW(llvm::AtomicRMWInst::FAdd, b.CreatePtrAdd(ptr, e.i64(i * bytes)), values[i],
                                 llvm::Align(bytes), llvm::AtomicOrdering::Monotonic,
                                 llvmScope(b.getContext(), scope));
      });
    return;
  }
  // Words as the instruction takes them: 16-bit elements in pairs; one f32, pair or integer; several where it can.
  const int perWord = isHalf && count > 1 ? 2 : 1;
  int words = type->isIntegerTy() || bytes == 8 ? 1 : std::max(1, e.target.atomicBytes / (perWord * bytes));
  if (perWord * bytes < 4) words = 1;
  words = std::min(words, count / perWord);
  std::string suffix = suffixOfAdd(type);
  if (perWord == 2) suffix += "x2";
  for (int first = 0; first < count; first += words * perWord) {
    std::string constraints = "l", list;
    llvm::SmallVector<llvm::Value*> args{b.CreatePtrAdd(ptr, e.i64(first * bytes))};
    for (int w = 0; w < words; ++w) {
      llvm::Value* word = values[first + w * perWord];
      if (perWord == 2) {
        word = b.CreateInsertElement(llvm::PoisonValue::get(llvm::FixedVectorType::get(type, 2)), word, uint64_t{0});
        word = b.CreateBitCast(b.CreateInsertElement(word, values[first + 2 * w + 1], uint64_t{1}), b.getInt32Ty());
      }
      list += (w ? ", $" : "$") + std::to_string(w + 1);
      constraints += "," + constraintOf(word->getType()).str();
      args.push_back(word);
    }
    std::string text = predicate ? "@$" + std::to_string(words + 1) + " " : "";
    text += "red.relaxed" + scopeText(scope).str() + ".global.add" + (isHalf ? ".noftz" : "");
    if (words > 1) text += ".v" + std::to_string(words), list = "{" + list + "}";
    if (predicate) {
      constraints += ",b";
      args.push_back(predicate);
    }
    e.inlineAsm(b.getVoidTy(), text + suffix + " [$0], " + list + ";", constraints + ",~{memory}", args);
  }
}

LogicalResult emitAtomicRmw(Emitter& e, AtomicRmwOp op) {
  if (onlyAdds(op)) {
    const MemOrder order = op.getOrder();
    if (releases(order)) {
      e.barrier();
      fence(e, op.getScope());
    }
    if (!e.definedAhead.contains(op) && !emitSiblingAdds(e, op)) emitAddedTile(e, op);
    if (acquires(order)) {
      fence(e, op.getScope());
      e.barrier();
    }
    e.define(op.getResult(), Regs(e.layoutOf(op.getResult()).numRegs(),
                                  llvm::PoisonValue::get(e.elementType(op.getResult()))));
    return success();
  }
  Regs values(e.regs(op.getValue()));
  return emitAtomic(e, op, [&](MemOrder order, int reg, llvm::Value* ptr, llvm::Value* predicate) {
    return emitRmw(e, op, order, ptr, values[reg], predicate);
  });
}

LogicalResult emitAtomicCas(Emitter& e, AtomicCasOp op) {
  Regs expected(e.regs(op.getExpected())), desired(e.regs(op.getDesired()));
  return emitAtomic(e, op, [&](MemOrder order, int reg, llvm::Value* ptr, llvm::Value* predicate) {
    return emitCas(e, op, order, ptr, expected[reg], desired[reg], predicate);
  });
}

}  // namespace tile::ir
