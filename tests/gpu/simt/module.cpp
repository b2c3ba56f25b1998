// module.cpp - turns the LLVM IR of a GPU kernel into a function for this CPU.
#include "tests/gpu/simt/module.h"

#include <deque>

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace tile::testing {

namespace {

std::deque<Instruction>& instructions() {
  static std::deque<Instruction> list;
  return list;
}

// Replaces GPU instructions by calls of execute(id, args, results); every value travels in 64 bits.
class Rewriter {
 public:
  explicit Rewriter(llvm::Module& module) : module_(module), b_(module.getContext()) {}

  ModuleFacts run(const std::string& entry) {
    module_.setDataLayout("e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128");
    module_.setTargetTriple(llvm::Triple("x86_64-unknown-linux-gnu"));
    llvm::Function* kernel = module_.getFunction(entry);
    readFacts(*kernel);
    for (llvm::GlobalVariable& global : llvm::make_early_inc_range(module_.globals()))
      if (global.getAddressSpace() == 3) placeShared(global, *kernel);
    kernel->setCallingConv(llvm::CallingConv::C);
    kernel->setName(entry + ".device");
    std::vector<llvm::CallInst*> calls;
    for (llvm::Instruction& inst : llvm::instructions(kernel))
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&inst)) calls.push_back(call);
    for (llvm::CallInst* call : calls) replace(call, *kernel);
    divideAsGpus(*kernel);
    watchAlignment(*kernel);
    if (facts_.asynchronous) watchSharedAccesses(*kernel);
    wrap(*kernel, entry);
    return facts_;
  }

 private:
  void readFacts(llvm::Function& kernel) {
    auto number = [&](const char* name) {
      llvm::StringRef text = kernel.getFnAttribute(name).getValueAsString().split(',').first;
      int value = 0;
      return text.getAsInteger(10, value) ? 0 : value;
    };
    facts_.entryRegisters = number("nvvm.maxnreg");
    facts_.minPrograms = number("nvvm.minctasm");
    facts_.threads = number("nvvm.reqntid");
  }

  // The one array of dynamic shared memory: each program has its own, so its address is asked for on entry.
  void placeShared(llvm::GlobalVariable& shared, llvm::Function& kernel) {
    llvm::convertUsersOfConstantsToInstructions({&shared});
    b_.SetInsertPoint(&*kernel.getEntryBlock().getFirstInsertionPt());
    llvm::Value* start = callHost(reinterpret_cast<uint64_t>(&sharedStart), b_.getInt64Ty(), {});
    shared.replaceAllUsesWith(b_.CreateIntToPtr(start, shared.getType()));
    shared.eraseFromParent();
  }

  llvm::CallInst* callHost(uint64_t function, llvm::Type* result, llvm::ArrayRef<llvm::Value*> args) {
    llvm::SmallVector<llvm::Type*> types;
    for (llvm::Value* arg : args) types.push_back(arg->getType());
    auto* type = llvm::FunctionType::get(result, types, false);
    llvm::CallInst* call =
        b_.CreateCall(type, llvm::ConstantExpr::getIntToPtr(b_.getInt64(function), b_.getPtrTy()), args);
    call->setConvergent();
    return call;
  }

  /// A GPU's divisions end for any numbers, as those of masked-off elements have to: the smallest number by -1 wraps,
  /// and by 0 something comes out. This CPU's would end the process.
  void divideAsGpus(llvm::Function& kernel) {
    std::vector<llvm::BinaryOperator*> divisions;
    for (llvm::Instruction& inst : llvm::instructions(kernel))
      if (auto* op = llvm::dyn_cast<llvm::BinaryOperator>(&inst); op && op->isIntDivRem()) divisions.push_back(op);
    for (llvm::BinaryOperator* op : divisions) {
      const bool isSigned = op->getOpcode() == llvm::Instruction::SDiv || op->getOpcode() == llvm::Instruction::SRem;
      const bool isQuotient = op->getOpcode() == llvm::Instruction::SDiv || op->getOpcode() == llvm::Instruction::UDiv;
      llvm::Value *x = op->getOperand(0), *by = op->getOperand(1);
      auto* one = llvm::ConstantInt::get(op->getType(), 1);
      b_.SetInsertPoint(op);
      llvm::Value* isMinusOne = b_.CreateICmpEQ(by, llvm::Constant::getAllOnesValue(op->getType()));
      llvm::Value* isOdd = b_.CreateICmpEQ(by, llvm::Constant::getNullValue(op->getType()));
      if (isSigned) isOdd = b_.CreateOr(isOdd, isMinusOne);
      op->setOperand(1, b_.CreateSelect(isOdd, one, by));  // x / 1 is x, of which nothing remains, as by -1
      if (!isSigned || !isQuotient) continue;
      b_.SetInsertPoint(op->getNextNode());
      llvm::Value* negative = b_.CreateNeg(x);
      llvm::Value* quotient = b_.CreateSelect(isMinusOne, negative, op);
      op->replaceUsesWithIf(quotient, [&](llvm::Use& use) { return use.getUser() != quotient; });
    }
  }

  /// A GPU takes no vector that does not lie at a multiple of its size; loads and stores say what they count on.
  /// Loads and stores say what their addresses are multiples of; a GPU refuses vectors at others.
  void watchAlignment(llvm::Function& kernel) {
    std::vector<llvm::Instruction*> accesses;
    for (llvm::Instruction& inst : llvm::instructions(kernel))
      if (llvm::Value* pointer = llvm::getLoadStorePointerOperand(&inst))
        if (llvm::getLoadStoreAlignment(&inst) > 1 && !llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(pointer)))
          accesses.push_back(&inst);
    for (llvm::Instruction* access : accesses) {
      const uint64_t align = llvm::getLoadStoreAlignment(access).value();
      b_.SetInsertPoint(access);
      llvm::Value* address = b_.CreatePtrToInt(llvm::getLoadStorePointerOperand(access), b_.getInt64Ty());
      llvm::Value* isOff = b_.CreateICmpNE(b_.CreateAnd(address, align - 1), b_.getInt64(0));
      b_.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(isOff, access, /*Unreachable=*/false));
      callHost(reinterpret_cast<uint64_t>(&reportMisaligned), b_.getVoidTy(),
               {address, b_.getInt32(static_cast<uint32_t>(align)), b_.getInt1(llvm::isa<llvm::StoreInst>(access))});
    }
  }

  void watchSharedAccesses(llvm::Function& kernel) {
    for (llvm::Instruction& inst : llvm::instructions(kernel)) {
      llvm::Value* pointer = llvm::getLoadStorePointerOperand(&inst);
      if (!pointer || pointer->getType()->getPointerAddressSpace() != 3) continue;
      uint64_t bytes = module_.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&inst));
      b_.SetInsertPoint(&inst);
      callHost(reinterpret_cast<uint64_t>(&touchShared), b_.getVoidTy(),
               {b_.CreatePtrToInt(pointer, b_.getInt64Ty()), b_.getInt32(static_cast<uint32_t>(bytes)),
                b_.getInt1(llvm::isa<llvm::StoreInst>(inst))});
    }
  }

  void replace(llvm::CallInst* call, llvm::Function& kernel) {
    Instruction made;
    if (auto* text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand())) {
      made.name = text->getAsmString().str();
      int results = call->getType()->isVoidTy()     ? 0
                    : call->getType()->isStructTy() ? static_cast<int>(call->getType()->getStructNumElements())
                                                    : 1;
      made.body = std::make_unique<AsmBody>(parseAsm(made.name, text->getConstraintString().str(), results));
    } else if (auto* callee = call->getCalledFunction(); callee && callee->getName().starts_with("llvm.nvvm.")) {
      made.name = callee->getName().drop_front(10).str();
    } else {
      return;
    }
    std::vector<llvm::Type*> types;
    if (auto* record = llvm::dyn_cast<llvm::StructType>(call->getType()))
      types = record->elements().vec();
    else if (!call->getType()->isVoidTy())
      types = {call->getType()};
    for (llvm::Type* type : types) made.resultBits.push_back(bitsOf(type));
    made.arguments = static_cast<int>(call->arg_size());
    for (const char* part : {"wgmma.", "cp.async.bulk.", "cp.reduce.async.bulk."})
      facts_.asynchronous |= made.name.find(part) != std::string::npos;
    uint32_t id = static_cast<uint32_t>(instructions().size());
    instructions().push_back(std::move(made));

    b_.SetInsertPoint(&*kernel.getEntryBlock().getFirstInsertionPt());
    llvm::Type* word = b_.getInt64Ty();
    llvm::Value* args = b_.CreateAlloca(word, b_.getInt32(std::max<uint32_t>(1, call->arg_size())));
    llvm::Value* results = b_.CreateAlloca(word, b_.getInt32(std::max<uint32_t>(1, types.size())));
    b_.SetInsertPoint(call);
    for (unsigned i = 0; i < call->arg_size(); ++i)
      b_.CreateStore(toWord(call->getArgOperand(i)), b_.CreateConstGEP1_32(word, args, i));
    callHost(reinterpret_cast<uint64_t>(&execute), b_.getVoidTy(), {b_.getInt32(id), args, results});
    if (!types.empty()) {
      llvm::Value* value = llvm::PoisonValue::get(call->getType());
      for (unsigned i = 0; i < types.size(); ++i) {
        llvm::Value* part = fromWord(b_.CreateLoad(word, b_.CreateConstGEP1_32(word, results, i)), types[i]);
        value = call->getType()->isStructTy() ? b_.CreateInsertValue(value, part, i) : part;
      }
      call->replaceAllUsesWith(value);
    }
    call->eraseFromParent();
  }

  static int bitsOf(llvm::Type* type) {
    if (type->isPointerTy()) return 64;
    return static_cast<int>(type->getPrimitiveSizeInBits());
  }
  llvm::Value* toWord(llvm::Value* value) {
    llvm::Type* type = value->getType();
    if (type->isPointerTy()) return b_.CreatePtrToInt(value, b_.getInt64Ty());
    return b_.CreateZExt(b_.CreateBitCast(value, b_.getIntNTy(bitsOf(type))), b_.getInt64Ty());
  }
  llvm::Value* fromWord(llvm::Value* word, llvm::Type* type) {
    if (type->isPointerTy()) return b_.CreateIntToPtr(word, type);
    return b_.CreateBitCast(b_.CreateTrunc(word, b_.getIntNTy(bitsOf(type))), type);
  }

  // void entry(const uint64_t* slots): loads each parameter from its slot.
  void wrap(llvm::Function& kernel, const std::string& entry) {
    auto* function = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false),
                                            llvm::GlobalValue::ExternalLinkage, entry, module_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", function));
    std::vector<llvm::Value*> args;
    for (llvm::Argument& arg : kernel.args()) {
      arg.removeAttr(llvm::Attribute::ByVal);  // the slot has its address
      llvm::Value* word =
          b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_32(b_.getInt64Ty(), function->getArg(0), arg.getArgNo()));
      args.push_back(fromWord(word, arg.getType()));
    }
    b_.CreateCall(&kernel, args);
    b_.CreateRetVoid();
    // Each thread is a fiber with its own stack: inlining the kernel into the wrapper is welcome, attributes of PTX are
    // not.
    for (llvm::Function& f : module_)
      for (const char* name : {"nvvm.reqntid", "nvvm.minctasm", "nvvm.maxnreg", "target-cpu", "target-features"})
        f.removeFnAttr(name);
  }

  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  ModuleFacts facts_;
};

}  // namespace

const Instruction& instruction(uint32_t id) { return instructions()[id]; }

ModuleFacts rewriteForHost(llvm::Module& module, const std::string& entry) { return Rewriter(module).run(entry); }

}  // namespace tile::testing
