// access.cpp - vector loads and stores of one thread. Without a predicate or cache hint: plain LLVM accesses, which the
// optimiser understands. With one: inline PTX under the predicate, so that masked lanes touch no memory and no branch
// is needed.
#include "compiler/gpu/lowering/access.h"

namespace tile::ir {
namespace {

llvm::Type* memoryType(llvm::Type* element) {
  return element->isIntegerTy(1) ? llvm::Type::getInt8Ty(element->getContext()) : element;
}

llvm::Value* toMemory(Emitter& e, llvm::Value* value) {
  return value->getType()->isIntegerTy(1) ? e.b.CreateZExt(value, e.b.getInt8Ty()) : value;
}

llvm::Value* fromMemory(Emitter& e, llvm::Value* value, llvm::Type* element) {
  return element->isIntegerTy(1) ? e.b.CreateICmpNE(value, e.b.getInt8(0)) : value;
}

// The access as PTX moves it: `count` words of `bits`.
struct Words {
  int count, bits;
};
Words wordsOf(int bytes) { return bytes >= 4 ? Words{bytes / 4, 32} : Words{1, bytes * 8}; }

// Elements of memory type to 32-bit words (or one 8- or 16-bit word) and back.
Regs pack(Emitter& e, llvm::ArrayRef<llvm::Value*> values, Words words) {
  llvm::Type* element = memoryType(values[0]->getType());
  llvm::Type* word = e.b.getIntNTy(words.bits);
  int elementBits = element->getScalarSizeInBits();
  Regs result;
  if (elementBits == words.bits) {
    for (llvm::Value* value : values) result.push_back(e.b.CreateBitCast(toMemory(e, value), word));
    return result;
  }
  if (elementBits == 64) {
    for (llvm::Value* value : values) {
      llvm::Value* pair = e.b.CreateBitCast(value, llvm::FixedVectorType::get(word, 2));
      for (uint64_t i : {0, 1}) result.push_back(e.b.CreateExtractElement(pair, i));
    }
    return result;
  }
  int perWord = words.bits / elementBits;
  for (size_t first = 0; first < values.size(); first += perWord) {
    llvm::Value* group = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, perWord));
    for (int i = 0; i < perWord; ++i)
      group = e.b.CreateInsertElement(group, toMemory(e, values[first + i]), static_cast<uint64_t>(i));
    result.push_back(e.b.CreateBitCast(group, word));
  }
  return result;
}

Regs unpack(Emitter& e, llvm::ArrayRef<llvm::Value*> words, llvm::Type* element) {
  llvm::Type* stored = memoryType(element);
  int elementBits = stored->getScalarSizeInBits(), wordBits = words[0]->getType()->getIntegerBitWidth();
  Regs result;
  if (elementBits == wordBits) {
    for (llvm::Value* word : words) result.push_back(fromMemory(e, e.b.CreateBitCast(word, stored), element));
  } else if (elementBits == 64) {
    for (size_t i = 0; i < words.size(); i += 2) {
      llvm::Value* pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(words[0]->getType(), 2));
      pair = e.b.CreateInsertElement(pair, words[i], uint64_t{0});
      pair = e.b.CreateInsertElement(pair, words[i + 1], uint64_t{1});
      result.push_back(e.b.CreateBitCast(pair, stored));
    }
  } else {
    int perWord = wordBits / elementBits;
    for (llvm::Value* word : words) {
      llvm::Value* group = e.b.CreateBitCast(word, llvm::FixedVectorType::get(stored, perWord));
      for (int i = 0; i < perWord; ++i)
        result.push_back(fromMemory(e, e.b.CreateExtractElement(group, static_cast<uint64_t>(i)), element));
    }
  }
  return result;
}

bool hasL2Policy(CacheHint cache) { return cache == CacheHint::streaming || cache == CacheHint::last; }
bool isShared(llvm::Value* ptr) { return ptr->getType()->getPointerAddressSpace() == 3; }

/// Appends the policy to an access's operands; returns its place in the text.
std::string policyOperand(Emitter& e, llvm::Value* ptr, CacheHint cache, llvm::SmallVector<llvm::Value*>& args,
                          std::string& constraints, int results) {
  if (isShared(ptr) || !hasL2Policy(cache)) return "";
  args.push_back(l2Policy(e, cache));
  constraints += ",l";
  return ", $" + std::to_string(results + static_cast<int>(args.size()) - 1);
}

// `ld` or `st` with its modifiers up to the type.
std::string opcode(llvm::StringRef name, llvm::Value* ptr, Words words, CacheHint cache) {
  bool shared = isShared(ptr);
  std::string text = name.str();
  if (cache == CacheHint::volatile_) text += ".volatile";
  text += shared ? ".shared" : ".global";
  if (!shared && cache == CacheHint::streaming) text += ".L1::no_allocate";
  if (!shared && cache == CacheHint::last) text += ".L1::evict_last";
  if (!shared && hasL2Policy(cache)) text += ".L2::cache_hint";
  if (words.count > 1) text += ".v" + std::to_string(words.count);
  return text + ".b" + std::to_string(words.bits);
}

// PTX has no 8-bit registers: bytes travel in 16-bit ones.
llvm::Type* registerType(Emitter& e, Words words) { return e.b.getIntNTy(std::max(words.bits, 16)); }
std::string registerConstraint(llvm::Type* reg) { return reg->isIntegerTy(32) ? "r" : "h"; }

std::string operandList(int first, int count) {
  if (count == 1) return "$" + std::to_string(first);
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

llvm::StringRef addressConstraint(llvm::Value* ptr) {
  return ptr->getType()->getPointerAddressSpace() == 3 ? "r" : "l";
}

// A constant offset goes into the instruction: `[$n+imm]`.
struct Address {
  llvm::Value* base;
  int64_t immediate = 0;
};
Address splitAddress(llvm::Value* ptr) {
  auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(ptr);
  if (!gep || gep->getNumIndices() != 1 || !gep->getSourceElementType()->isIntegerTy(8)) return {ptr};
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(gep->getOperand(1));
  if (!constant || !llvm::isInt<24>(constant->getSExtValue())) return {ptr};
  return {gep->getPointerOperand(), constant->getSExtValue()};
}
std::string addressText(int operand, int64_t immediate) {
  return "[$" + std::to_string(operand) + (immediate ? "+" + std::to_string(immediate) : "") + "]";
}

bool isPlain(llvm::Value* predicate, CacheHint cache) {
  if (auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(predicate))
    return constant->isOne() && cache == CacheHint::none;
  return !predicate && cache == CacheHint::none;
}

}  // namespace

llvm::Value* l2Policy(Emitter& e, CacheHint cache) {
  if (!hasL2Policy(cache)) return nullptr;
  const std::string priority = cache == CacheHint::streaming ? "evict_first" : "evict_last";
  return e.inlineAsm(e.b.getInt64Ty(), "createpolicy.fractional.L2::" + priority + ".b64 $0, 1.0;", "=l", {},
                     /*pure=*/true);
}

int memoryBytes(llvm::Type* element) { return std::max(8u, element->getScalarSizeInBits()) / 8; }

Regs loadVector(Emitter& e, llvm::Value* ptr, llvm::Type* element, int count, llvm::Value* predicate,
                llvm::ArrayRef<llvm::Value*> fallback, CacheHint cache, bool mayMerge) {
  int bytes = memoryBytes(element) * count;
  if (isPlain(predicate, cache)) {
    llvm::Type* stored = memoryType(element);
    llvm::Type* type = count == 1 ? stored : llvm::FixedVectorType::get(stored, count);
    llvm::Value* loaded = e.b.CreateAlignedLoad(type, ptr, llvm::Align(bytes));
    Regs result;
    for (int i = 0; i < count; ++i)
      result.push_back(
          fromMemory(e, count == 1 ? loaded : e.b.CreateExtractElement(loaded, static_cast<uint64_t>(i)), element));
    return result;
  }
  Words words = wordsOf(bytes);
  // One short integer fills its register with zeros: nothing extends it again before it is computed with.
  const bool fillsRegister = words.bits < 32 && count == 1 && memoryType(element)->isIntegerTy();
  llvm::Type* reg = fillsRegister ? e.b.getInt32Ty() : registerType(e, words);
  Address address = splitAddress(ptr);
  std::string text = (predicate ? "@$" + std::to_string(words.count + 1) + " " : "") + opcode("ld", ptr, words, cache) +
                     " " + operandList(0, words.count) + ", " + addressText(words.count, address.immediate);
  std::string constraints;
  for (int i = 0; i < words.count; ++i) constraints += "=" + registerConstraint(reg) + ",";
  constraints += addressConstraint(ptr);
  llvm::SmallVector<llvm::Value*> args{address.base};
  if (predicate) {
    // The results start as the fallback: the load leaves them alone where the predicate is false.
    args.push_back(predicate);
    constraints += ",b";
    Regs start = fallback.empty() ? Regs(words.count, llvm::Constant::getNullValue(e.b.getIntNTy(words.bits)))
                                  : pack(e, fallback, words);
    for (int i = 0; i < words.count; ++i) {
      args.push_back(e.b.CreateZExt(start[i], reg));
      constraints += "," + std::to_string(i);
    }
  }
  llvm::Type* type = words.count == 1
                         ? reg
                         : llvm::StructType::get(e.b.getContext(), llvm::SmallVector<llvm::Type*>(words.count, reg));
  text += policyOperand(e, ptr, cache, args, constraints, words.count) + ";";
  if (mayMerge) constraints += ",~{memory}";  // for the code generator, which does not know what it reads
  llvm::Value* call = e.inlineAsm(type, text, constraints, args, /*pure=*/mayMerge);
  auto* access = llvm::cast<llvm::CallInst>(call);
  if (cache != CacheHint::volatile_) access->setOnlyReadsMemory();
  if (fillsRegister)
    access->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt::getOneBitSet(32, words.bits)));
  Regs loaded;
  for (int i = 0; i < words.count; ++i) {
    llvm::Value* word = words.count == 1 ? call : e.b.CreateExtractValue(call, static_cast<unsigned>(i));
    loaded.push_back(e.b.CreateTrunc(word, e.b.getIntNTy(words.bits)));
  }
  return unpack(e, loaded, element);
}

void storeVector(Emitter& e, llvm::Value* ptr, llvm::ArrayRef<llvm::Value*> values, llvm::Value* predicate,
                 CacheHint cache) {
  llvm::Type* element = values[0]->getType();
  int count = static_cast<int>(values.size()), bytes = memoryBytes(element) * count;
  if (isPlain(predicate, cache)) {
    llvm::Value* stored = toMemory(e, values[0]);
    if (count > 1) {
      llvm::Value* group = llvm::PoisonValue::get(llvm::FixedVectorType::get(memoryType(element), count));
      for (int i = 0; i < count; ++i)
        group = e.b.CreateInsertElement(group, toMemory(e, values[i]), static_cast<uint64_t>(i));
      stored = group;
    }
    e.b.CreateAlignedStore(stored, ptr, llvm::Align(bytes));
    return;
  }
  Words words = wordsOf(bytes);
  Address address = splitAddress(ptr);
  std::string text = (predicate ? "@$" + std::to_string(words.count + 1) + " " : "") + opcode("st", ptr, words, cache) +
                     " " + addressText(words.count, address.immediate) + ", " + operandList(0, words.count);
  std::string constraints;
  llvm::SmallVector<llvm::Value*> args;
  for (llvm::Value* word : pack(e, values, words)) {
    llvm::Type* reg = registerType(e, words);
    args.push_back(e.b.CreateZExt(word, reg));
    constraints += registerConstraint(reg) + ",";
  }
  args.push_back(address.base);
  constraints += addressConstraint(ptr);
  if (predicate) {
    args.push_back(predicate);
    constraints += ",b";
  }
  text += policyOperand(e, ptr, cache, args, constraints, 0) + ";";
  e.inlineAsm(e.b.getVoidTy(), text, constraints, args);
}

Regs branch(Emitter& e, llvm::Value* fast, llvm::function_ref<Regs(bool)> body) {
  llvm::Function* function = e.b.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = e.b.getContext();
  auto* fastBlock = llvm::BasicBlock::Create(context, "inside", function);
  auto* slowBlock = llvm::BasicBlock::Create(context, "edge", function);
  auto* join = llvm::BasicBlock::Create(context, "join", function);
  e.b.CreateCondBr(fast, fastBlock, slowBlock);
  e.b.SetInsertPoint(fastBlock);
  Regs fastValues = body(true);
  auto* fastEnd = e.b.GetInsertBlock();
  e.b.CreateBr(join);
  e.b.SetInsertPoint(slowBlock);
  Regs slowValues = body(false);
  auto* slowEnd = e.b.GetInsertBlock();
  e.b.CreateBr(join);
  e.b.SetInsertPoint(join);
  Regs result;
  for (auto [a, c] : llvm::zip(fastValues, slowValues)) {
    llvm::PHINode* phi = e.b.CreatePHI(a->getType(), 2);
    phi->addIncoming(a, fastEnd);
    phi->addIncoming(c, slowEnd);
    result.push_back(phi);
  }
  return result;
}

}  // namespace tile::ir
