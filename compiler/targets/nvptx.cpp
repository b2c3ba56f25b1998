// nvptx.cpp - LLVM IR to PTX: the optimisation pipeline and the NVPTX code generator.
#include "compiler/targets/nvptx.h"

#include <mutex>

#include "compiler/targets/byte_sums.h"
#include "compiler/targets/constant_offsets.h"
#include "compiler/targets/full_adders.h"
#include "compiler/targets/invariants_late.h"
#include "compiler/targets/known_divisors.h"
#include "compiler/targets/llvm_passes.h"
#include "compiler/targets/masked_sums.h"
#include "compiler/targets/narrow_phis.h"
#include "compiler/targets/order_by_use.h"
#include "compiler/targets/own_counters.h"
#include "compiler/targets/packed_bytes.h"
#include "compiler/targets/pair_differences.h"
#include "compiler/targets/results_early.h"
#include "compiler/targets/shared_starts.h"
#include "compiler/targets/two_words.h"
#include "compiler/targets/whole_flags.h"
#include "compiler/targets/whole_words.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Utils/Cloning.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tile::ir {
namespace {

const llvm::Triple& nvptxTriple() {
  static const llvm::Triple triple("nvptx64-nvidia-cuda");
  return triple;
}

/// LLVM's options and target tables are global to the process: touched once, before the first target machine.
void initializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // 32-bit shared, local and const pointers: half the registers for shared-memory addresses. There is no API for it,
    // and parsing a command line would reset options a user's own LLVM set.
    auto& options = llvm::cl::getRegisteredOptions();
    if (auto it = options.find("nvptx-short-ptr"); it != options.end())
      it->second->addOccurrence(0, "nvptx-short-ptr", "true");
  });
}

std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const Target& target, bool fastMath) {
  initializeOnce();
  std::string error;
  const llvm::Target* nvptx = llvm::TargetRegistry::lookupTarget(nvptxTriple(), error);
  if (!nvptx) return nullptr;
  llvm::TargetOptions options;
  // a*b+c is one fma, as nvcc does; otherwise only where the operations themselves allow it (contract).
  options.AllowFPOpFusion = fastMath ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Standard;
  // Aggressive makes the same code, a third slower: it runs GVN where Default runs EarlyCSE.
  return std::unique_ptr<llvm::TargetMachine>(nvptx->createTargetMachine(nvptxTriple(), target.name, target.features,
                                                                         options, llvm::Reloc::PIC_, std::nullopt,
                                                                         llvm::CodeGenOptLevel::Default));
}

// Code arrives unrolled to the shape of the tile, folded, with few memory operations LLVM could reorder: this list
// gives the same code as the default O3 list in less than half the time.
constexpr const char* kSimplify =
    "sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(loop-rotate,licm)";
constexpr const char* kFinish = "gvn,instcombine<no-verify-fixpoint>,adce,simplifycfg";

/// Whether straight-line strength reduction is worth its time. It compares pairs of sums and addresses: where nearly
/// all sums are of data (a hash: 2300 of them beside 150 multiples and addresses) it finds nothing, and takes three
/// quarters of the time. Of both sides of a pair it looks at all that they are made of: 400 steps of `p += n` take two
/// seconds, 1000 half a minute. Where it may take longer than kLongest it is left out. (Of kernels with 500 sums and
/// addresses it removes 1 % of the instructions, at most 5 %.)
bool isWorthReducing(const llvm::Module& module) {
  constexpr int kMany = 500, kTimes = 8;
  constexpr double kPair = 1e-6, kStep = 1e-8, kLongest = 5;  // seconds; measured, of a pair and of a step to it
  int sums = 0, places = 0, longest = 0;
  llvm::DenseMap<const llvm::Value*, int> steps;  // the longest way through sums, products and addresses
  for (const llvm::Function& f : module)
    for (const llvm::Instruction& inst : llvm::instructions(f)) {
      switch (inst.getOpcode()) {
        case llvm::Instruction::Add:
        case llvm::Instruction::Sub: ++sums; break;
        case llvm::Instruction::Mul:
        case llvm::Instruction::Shl: ++places; break;
        case llvm::Instruction::GetElementPtr:
          places += !llvm::cast<llvm::GetElementPtrInst>(inst).hasAllConstantIndices();
          break;
        case llvm::Instruction::SExt:
        case llvm::Instruction::ZExt:
        case llvm::Instruction::Trunc: break;
        default: continue;
      }
      int own = 1;
      for (const llvm::Value* operand : inst.operand_values()) own = std::max(own, 1 + steps.lookup(operand));
      steps[&inst] = own;
      longest = std::max(longest, own);
    }
  const bool areData = sums >= kMany && sums > kTimes * places;
  const double pairs = 0.5 * (sums + places) * (sums + places);
  return !areData && pairs * (kPair + longest * kStep) <= kLongest;
}

/// The code generator's fixed list, with one pass more, and perhaps one less.
class CodegenPasses : public llvm::legacy::PassManager {
 public:
  explicit CodegenPasses(bool reducesStraightLines) : reducesStraightLines_(reducesStraightLines) {}
  void add(llvm::Pass* pass) override {
    if (!reducesStraightLines_ && pass->getPassName() == "Straight line strength reduction") {
      delete pass;  // given to this manager, as all are
      return;
    }
    const bool reducesStrength = pass->getPassName() == "Loop Strength Reduction";
    PassManager::add(pass);
    if (reducesStrength) PassManager::add(createOwnCounters());
  }

 private:
  bool reducesStraightLines_;
};

bool hasUnrollHint(const llvm::Module& module) {
  for (const llvm::Function& f : module)
    for (const llvm::BasicBlock& block : f)
      if (const llvm::MDNode* loop =
              block.getTerminator() ? block.getTerminator()->getMetadata(llvm::LLVMContext::MD_loop) : nullptr)
        for (const llvm::MDOperand& operand : loop->operands())
          if (auto* hint = llvm::dyn_cast_or_null<llvm::MDNode>(operand.get()); hint && hint->getNumOperands() > 0)
            if (auto* name = llvm::dyn_cast_or_null<llvm::MDString>(hint->getOperand(0).get()))
              if (name->getString() == "llvm.loop.unroll.count" || name->getString() == "llvm.loop.unroll.full")
                return true;
  return false;
}

/// Calls become code (a call in a kernel serialises every warpgroup product): the list below works on functions alone.
void inlineCalls(llvm::Module& module) {
  for (llvm::Function& f : llvm::make_early_inc_range(module)) {
    if (f.isDeclaration() || !f.hasFnAttribute(llvm::Attribute::AlwaysInline)) continue;
    for (llvm::User* user : llvm::make_early_inc_range(f.users()))
      if (auto* call = llvm::dyn_cast<llvm::CallBase>(user)) {
        llvm::InlineFunctionInfo info;
        llvm::InlineFunction(*call, info);
      }
    if (f.use_empty()) f.eraseFromParent();
  }
}

/// What is rounded to 16 bits, or has the sign of something that was widened from them, gets it as a bit. The code
/// generator would round first, or look at the half, and choose between the number and its negative.
struct SignsAsBits : llvm::PassInfoMixin<SignsAsBits> {
  static bool isRounded(const llvm::Value* value) {
    return llvm::any_of(value->users(), [](const llvm::User* user) {
      return llvm::isa<llvm::FPTruncInst>(user) || (llvm::isa<llvm::InsertElementInst>(user) && isRounded(user));
    });
  }
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager&) {
    for (llvm::Instruction& inst : llvm::make_early_inc_range(llvm::instructions(f))) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst);
      if (!call || call->getIntrinsicID() != llvm::Intrinsic::copysign || !call->getType()->isFloatTy() ||
          (!isRounded(call) && !llvm::isa<llvm::FPExtInst>(call->getArgOperand(1))))
        continue;
      llvm::IRBuilder<> b(call);
      auto bits = [&](unsigned operand, uint32_t mask) {
        return b.CreateAnd(b.CreateBitCast(call->getArgOperand(operand), b.getInt32Ty()), mask);
      };
      call->replaceAllUsesWith(b.CreateBitCast(b.CreateOr(bits(0, 0x7fffffff), bits(1, 0x80000000)), call->getType()));
      call->eraseFromParent();
    }
    return llvm::PreservedAnalyses::none();
  }
};

llvm::Error optimize(llvm::Module& module, llvm::TargetMachine& machine, bool again) {
  inlineCalls(module);
  LlvmPasses passes(machine);
  if (llvm::Error error = passes.add(kSimplify)) return error;
  if (hasUnrollHint(module)) {
    if (llvm::Error error = passes.add("loop(indvars)")) return error;  // trip counts for the unroller
    passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(/*OptLevel=*/3, /*OnlyWhenForced=*/true)));
  }
  if (!again) passes.addPass(ConstantOffsets());  // what spills is tried without
  if (llvm::Error error = passes.add(kFinish)) return error;
  passes.addPass(NarrowPhis());
  passes.addPass(SignsAsBits());
  passes.addPass(PackedBytes());
  passes.addPass(WholeWords());
  passes.addPass(ByteSums());
  passes.addPass(MaskedSums());
  if (again) passes.addPass(InvariantsLate());
  if (again) passes.addPass(ResultsEarly());
  passes.addPass(OrderByUse(again));
  passes.addPass(TwoWords());
  passes.addPass(FullAdders());
  passes.addPass(PairDifferences());
  passes.addPass(SharedStarts());
  passes.addPass(WholeFlags());
  passes.addPass(KnownDivisors(/*forHost=*/false));  // behind what moves values to their uses, into loops as well
  passes.addPass(HideCounted());
  passes.run(module);
  return llvm::Error::success();
}

}  // namespace

void setNvptxTarget(llvm::Module& module, const Target& target) {
  module.setTargetTriple(nvptxTriple());
  if (auto machine = makeTargetMachine(target, true)) module.setDataLayout(machine->createDataLayout());
}

Result<std::string> assemblePtx(llvm::Module& module, const Target& target, const CompileOptions& options,
                                bool again) {
  auto machine = makeTargetMachine(target, options.fastMath);
  if (!machine) return Error{ErrorKind::internal, "this build of LLVM has no NVPTX target", {}};
  module.setTargetTriple(nvptxTriple());
  module.setDataLayout(machine->createDataLayout());

  std::string problems;
  llvm::raw_string_ostream problemStream(problems);
  if (options.verifyEach && llvm::verifyModule(module, &problemStream))
    return Error{ErrorKind::internal, "the LLVM IR made for " + target.name + " is not valid: " + problems, {}};

  if (llvm::Error problem = optimize(module, *machine, again))
    return Error{ErrorKind::internal, "the PTX optimiser: " + llvm::toString(std::move(problem)), {}};

  llvm::SmallVector<char, 0> ptx;
  llvm::raw_svector_ostream out(ptx);
  CodegenPasses codegen(/*reducesStraightLines=*/isWorthReducing(module));
  if (machine->addPassesToEmitFile(codegen, out, nullptr, llvm::CodeGenFileType::AssemblyFile, !options.verifyEach))
    return Error{ErrorKind::internal, "LLVM cannot emit PTX text", {}};
  codegen.run(module);
  return std::string(ptx.begin(), ptx.end());
}

}  // namespace tile::ir
