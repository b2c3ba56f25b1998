// kernel_function.cpp - the function of a kernel: its parameters, its attributes, and what every thread does first.
#include "compiler/diagnostics.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/lowering/debug_info.h"
#include "compiler/gpu/lowering/emitter.h"
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/rings/register_plan.h"
#include "compiler/targets/nvptx.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "runtime/launch_marks.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// One .param per slot of the ABI.
llvm::Type* slotType(llvm::IRBuilder<>& b, llvm::Type* type) { return type->isIntegerTy(1) ? b.getInt8Ty() : type; }

/// Programs that have ended count as having triggered: of many, which the hardware starts and ends by the hundred
/// thousand, only those that may run when the last one starts say so themselves. Triggers come one by one: on an H200,
/// 131072 programs of four warps took 0.161 ms with one each and 0.085 ms so. (Counted in 32 bits: where that wraps, a
/// trigger comes early or not at all, which nothing but time depends on. The comparison with 0 is one that ptxas makes
/// of a uniform register: any other has it keep the program's number, and what is computed from it, in registers of
/// threads.)
llvm::Value* isAmongLastPrograms(Emitter& e, int warps) {
  using namespace llvm;
  constexpr int kMostMultiprocessors = 144, kMostPrograms = 32, kMostWarps = 64;  // of a chip, of each of them
  const int atOnce = kMostMultiprocessors * std::min(kMostPrograms, kMostWarps / warps);
  auto read = [&](Intrinsic::ID id) { return e.b.CreateIntrinsic(id, {}); };
  auto behind = [&](Intrinsic::ID count, Intrinsic::ID id) {
    return e.b.CreateSub(e.b.CreateSub(read(count), read(id)), e.i32(1));
  };
  llvm::Value* left = behind(Intrinsic::nvvm_read_ptx_sreg_nctaid_z, Intrinsic::nvvm_read_ptx_sreg_ctaid_z);
  left = e.b.CreateAdd(e.b.CreateMul(left, read(Intrinsic::nvvm_read_ptx_sreg_nctaid_y)),
                       behind(Intrinsic::nvvm_read_ptx_sreg_nctaid_y, Intrinsic::nvvm_read_ptx_sreg_ctaid_y));
  left = e.b.CreateAdd(e.b.CreateMul(left, read(Intrinsic::nvvm_read_ptx_sreg_nctaid_x)),
                       behind(Intrinsic::nvvm_read_ptx_sreg_nctaid_x, Intrinsic::nvvm_read_ptx_sreg_ctaid_x));
  return e.b.CreateICmpSLT(e.b.CreateSub(left, e.i32(atOnce)), e.i32(0));
}

/// Layouts come from assign_layouts; a tile without one, or for another number of warps, is a compiler bug to report.
LogicalResult checkLayouts(func::FuncOp kernel, int warps, int lanes) {
  auto check = [&](Operation* op, Type type) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) return success();
    auto layout = layoutOf(tensor);
    if (!layout) return op->emitOpError() << "has a tile without a layout: " << type;
    auto roles = op->getParentOfType<SpecializeOp>();
    const bool isProducer = roles && roles.getProducer().isAncestor(op->getParentRegion());
    const int expected = isProducer ? kGroupWarps : warps;
    if (layout->numWarps() == expected && layout->numLanes() == lanes) return success();
    return op->emitOpError() << "expected a layout over " << expected << " warps of " << lanes << " lanes, found "
                             << type;
  };
  WalkResult result = kernel.walk([&](Operation* op) {
    for (Type type : op->getResultTypes())
      if (failed(check(op, type))) return WalkResult::interrupt();
    for (Region& region : op->getRegions())
      for (Block& block : region)
        for (Type type : block.getArgumentTypes())
          if (failed(check(op, type))) return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

}  // namespace

LogicalResult Emitter::beginKernel() {
  numWarps_ = warpsOf(kernel_);
  if (!numWarps_) return kernel_.emitError("the kernel has no tile.num_warps: layouts are not assigned yet");
  if (failed(checkLayouts(kernel_, numWarps_, target.lanes))) return failure();
  if (failed(roles_->read(kernel_, *facts_, target, numWarps_))) return failure();

  module_ = std::make_unique<llvm::Module>(kernel_.getSymName(), context_);
  setNvptxTarget(*module_, target);
  bool usesRing = false;
  kernel_.walk([&](Operation* op) { usesRing |= isa<PrintOp, AssertOp>(op); });
  createFunction(usesRing);
  if (options.lineInfo) debugInfo_ = std::make_unique<DebugInfo>(*module_, *function_, kernel_);

  auto* entry = llvm::BasicBlock::Create(context_, "entry", function_);
  auto* body = llvm::BasicBlock::Create(context_, "body", function_);
  b.SetInsertPoint(entry);
  auto* tid = b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
  tid->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, totalThreads())));
  thread_ = tid;
  lane_ = b.CreateAnd(tid, i32(target.lanes - 1), "lane");
  warp_ = b.CreateUDiv(tid, i32(target.lanes), "warp");
  // Roles branch on it: the assembler must see that all lanes agree.
  if (roles_->hasRoles()) warp_ = shuffleIdx(warp_, i32(0));
  bindParameters(usesRing);
  entryEnd_ = b.CreateBr(body);
  b.SetInsertPoint(body);
  if (!roles_->hasRoles()) waitForStream();  // kernels with roles prepare their barriers first
  return success();
}

void Emitter::mark(const char* name) {
  auto* mark =
      new llvm::GlobalVariable(*module_, b.getInt8Ty(), /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                               b.getInt8(1), name, nullptr, llvm::GlobalValue::NotThreadLocal, /*AddressSpace=*/1);
  mark->setAlignment(llvm::Align(1));
}

void Emitter::markIfShort() {
  constexpr unsigned kFew = 400;  // instructions, before anything is made of them
  auto isLoop = [](LoopLikeOpInterface) { return WalkResult::interrupt(); };
  if (target.sm >= 90 && function_->getInstructionCount() <= kFew && !kernel_.walk(isLoop).wasInterrupted())
    mark(kShortMark);
}

void Emitter::waitForStream() {
  if (target.sm < 90) return;
  mark(kWaitsForStreamMark);
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_griddepcontrol_wait, {});
  if (roles_->hasRoles()) {  // few programs, or large ones
    b.CreateIntrinsic(llvm::Intrinsic::nvvm_griddepcontrol_launch_dependents, {});
    return;
  }
  inlineAsm(b.getVoidTy(), "@$0 griddepcontrol.launch_dependents;", "b,~{memory}",
            {isAmongLastPrograms(*this, numWarps_)});
}

// One .param per slot of the ABI, then the hidden ones (runtime/abi.h).
void Emitter::createFunction(bool usesDebugRing) {
  SmallVector<llvm::Type*> types;
  for (BlockArgument arg : kernel_.getArguments()) {
    if (auto view = dyn_cast<ViewType>(arg.getType())) {
      types.push_back(b.getPtrTy(1));
      types.append(2 * view.getRank(), b.getInt64Ty());
    } else {
      types.push_back(slotType(b, typeOf(arg.getType())));
    }
  }
  if (usesDebugRing) types.push_back(b.getPtrTy(1));
  if (roles_->hasWorkLoop()) types.append(3, b.getInt32Ty());
  if (roles_->usesTickets()) types.push_back(b.getPtrTy(1));
  const size_t firstMap = types.size();
  types.append(roles_->tensorMaps().size(), b.getPtrTy());
  function_ = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                     llvm::GlobalValue::ExternalLinkage, kernel_.getSymName(), *module_);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function_->addFnAttr("nvvm.reqntid", std::to_string(totalThreads()));
  // Only with a known number of registers at entry can roles change theirs.
  if (roles_->hasRoles())
    function_->addFnAttr("nvvm.minctasm", std::to_string(roles_->specialize().getPrograms()));
  else if (const int programs = askedPrograms(kernel_, totalThreads(), target))
    function_->addFnAttr("nvvm.minctasm", std::to_string(programs));
  if (roles_->cluster() > 1) function_->addFnAttr("nvvm.cluster_dim", std::to_string(roles_->cluster()) + ",1,1");
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  addDimRanges();
  for (size_t i = firstMap; i < types.size(); ++i) {
    const auto n = static_cast<unsigned>(i);
    auto* map = llvm::ArrayType::get(b.getInt8Ty(), 128);
    function_->addParamAttr(n, llvm::Attribute::getWithByValType(context_, map));
    function_->addParamAttr(n, llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
    function_->addParamAttr(n, llvm::Attribute::get(context_, "nvvm.grid_constant"));
  }
}

// A launch with a negative dim is refused: LLVM makes one comparison of `>= 0` and `< dim`.
void Emitter::addDimRanges() {
  const llvm::ConstantRange sizes(llvm::APInt(64, 0), llvm::APInt::getSignedMinValue(64));
  const auto range = llvm::Attribute::get(context_, llvm::Attribute::Range, sizes);
  unsigned slot = 0;
  for (BlockArgument arg : kernel_.getArguments()) {
    auto view = dyn_cast<ViewType>(arg.getType());
    const auto rank = view ? static_cast<unsigned>(view.getRank()) : 0U;
    for (unsigned d = 0; d < rank; ++d) function_->getArg(slot + 1 + d)->addAttr(range);
    slot += 1 + 2 * rank;
  }
}

void Emitter::bindParameters(bool usesDebugRing) {
  unsigned slot = 0;
  auto next = [&] { return function_->getArg(slot++); };
  for (BlockArgument arg : kernel_.getArguments()) {
    if (auto view = dyn_cast<ViewType>(arg.getType())) {
      Regs all;
      for (unsigned i = 0; i < 1 + 2 * view.getRank(); ++i) all.push_back(next());
      defineFlat(arg, std::move(all));
    } else {
      llvm::Value* value = next();
      if (typeOf(arg.getType())->isIntegerTy(1)) value = b.CreateTrunc(value, b.getInt1Ty());
      define(arg, value);
    }
  }
  if (usesDebugRing) debugRing_ = next();
  if (roles_->hasWorkLoop())
    for (llvm::Value*& extent : roles_->grid) extent = next();
  if (roles_->usesTickets()) roles_->tickets = next();
  for (size_t i = 0; i < roles_->tensorMaps().size(); ++i) roles_->mapParams.push_back(next());
  info.uses_debug_ring = usesDebugRing;
  info.persistent = roles_->hasWorkLoop();
  info.cluster = static_cast<uint32_t>(roles_->cluster());
  info.uses_tickets = roles_->usesTickets();
  info.tensor_maps = roles_->tensorMaps();
  for (unsigned argument : roles_->positiveArguments()) info.params[argument].positive = true;
}

int Emitter::totalThreads() const { return numThreads() + (roles_->hasRoles() ? kGroupThreads : 0); }

}  // namespace tile::ir
