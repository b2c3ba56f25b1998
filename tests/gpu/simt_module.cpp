// simt_module.cpp - turns the LLVM IR of a GPU kernel into a function for this CPU.
#include "tests/gpu/simt_module.h"

#include <sys/mman.h>

#include <deque>
#include <stdexcept>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

namespace tile::testing {

char* sharedMemory() {
  static char* memory = [] {
    void* p = mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("no low memory for the simulated shared memory");
    return static_cast<char*>(p);
  }();
  return memory;
}

namespace {

std::deque<Instruction>& instructions() {
  static std::deque<Instruction> list;
  return list;
}

// Replaces GPU instructions by calls of execute(id, args, results); every value travels in 64 bits.
class Rewriter {
 public:
  explicit Rewriter(llvm::Module& module) : module_(module), b_(module.getContext()) {}

  void run(const std::string& entry) {
    module_.setDataLayout("e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128");
    module_.setTargetTriple(llvm::Triple("x86_64-unknown-linux-gnu"));
    if (auto* shared = module_.getNamedGlobal("tile_shared")) {
      auto* address = llvm::ConstantInt::get(b_.getInt64Ty(), reinterpret_cast<uint64_t>(sharedMemory()));
      shared->replaceAllUsesWith(llvm::ConstantExpr::getIntToPtr(address, shared->getType()));
      shared->eraseFromParent();
    }
    llvm::Function* kernel = module_.getFunction(entry);
    kernel->setCallingConv(llvm::CallingConv::C);
    kernel->setName(entry + ".device");
    std::vector<llvm::CallInst*> calls;
    for (llvm::Instruction& inst : llvm::instructions(kernel))
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&inst)) calls.push_back(call);
    for (llvm::CallInst* call : calls) replace(call, *kernel);
    wrap(*kernel, entry);
  }

 private:
  void replace(llvm::CallInst* call, llvm::Function& kernel) {
    Instruction made;
    if (auto* text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand())) {
      made.isAsm = true;
      made.name = text->getAsmString().str();
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
    uint32_t id = static_cast<uint32_t>(instructions().size());
    instructions().push_back(made);

    b_.SetInsertPoint(&*kernel.getEntryBlock().getFirstInsertionPt());
    llvm::Type* word = b_.getInt64Ty();
    llvm::Value* args = b_.CreateAlloca(word, b_.getInt32(std::max<uint32_t>(1, call->arg_size())));
    llvm::Value* results = b_.CreateAlloca(word, b_.getInt32(std::max<uint32_t>(1, types.size())));
    b_.SetInsertPoint(call);
    for (unsigned i = 0; i < call->arg_size(); ++i)
      b_.CreateStore(toWord(call->getArgOperand(i)), b_.CreateConstGEP1_32(word, args, i));
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getInt32Ty(), b_.getPtrTy(), b_.getPtrTy()}, false);
    auto* address = llvm::ConstantInt::get(word, reinterpret_cast<uint64_t>(&execute));
    auto* made_call =
        b_.CreateCall(type, llvm::ConstantExpr::getIntToPtr(address, b_.getPtrTy()), {b_.getInt32(id), args, results});
    made_call->setConvergent();
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
      llvm::Value* word =
          b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_32(b_.getInt64Ty(), function->getArg(0), arg.getArgNo()));
      args.push_back(fromWord(word, arg.getType()));
    }
    b_.CreateCall(&kernel, args);
    b_.CreateRetVoid();
    // Each thread is a fiber with its own stack: inlining the kernel into the wrapper is welcome, attributes of PTX are
    // not.
    for (llvm::Function& f : module_)
      for (const char* name : {"nvvm.reqntid", "target-cpu", "target-features"}) f.removeFnAttr(name);
  }

  llvm::Module& module_;
  llvm::IRBuilder<> b_;
};

}  // namespace

const Instruction& instruction(uint32_t id) { return instructions()[id]; }

void rewriteForHost(llvm::Module& module, const std::string& entry) { Rewriter(module).run(entry); }

}  // namespace tile::testing
