// emitter.cpp - the kernel function, the values of tile IR, and the switch from ops to their lowerings.
#include "compiler/gpu/lowering/emitter.h"

#include "compiler/diagnostics.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/lowering/alike.h"
#include "compiler/gpu/lowering/byte_floats.h"
#include "compiler/gpu/lowering/debug_info.h"
#include "compiler/gpu/lowering/e2m1_pairs.h"
#include "compiler/gpu/lowering/fp8_pairs.h"
#include "compiler/gpu/lowering/gpu_math.h"
#include "compiler/gpu/lowering/half_pairs.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/packed_bits.h"
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "compiler/gpu/lowering/user_asm.h"
#include "compiler/gpu/rings/plan.h"
#include "compiler/targets/nvptx.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "mlir/IR/TypeUtilities.h"
#include "runtime/launch_marks.h"

namespace tile::ir {
using namespace mlir;

Emitter::Emitter(func::FuncOp kernel, const Target& target, const CompileOptions& options, llvm::LLVMContext& context,
                 KernelBinary& info)
    : b(context), target(target), options(options), info(info), kernel_(kernel), context_(context) {
  facts_ = std::make_unique<Facts>(kernel.getOperation());
  math_ = std::make_unique<GpuMath>(options.fastMath);
  roles_ = std::make_unique<KernelRoles>();
}
Emitter::~Emitter() = default;

const MathHooks& Emitter::math() const { return *math_; }

// ---- values

llvm::ArrayRef<llvm::Value*> Emitter::regs(Value tile) const { return values_.find(tile)->second; }
const ViewValue& Emitter::view(Value value) const { return views_.find(value)->second; }
void Emitter::define(Value value, Regs registers) { values_[value] = std::move(registers); }
void Emitter::defineView(Value value, ViewValue view) { views_[value] = std::move(view); }

const layout::Layout& Emitter::layoutOf(Value tile) const {
  auto& slot = layouts_[tile.getType()];
  if (!slot) {
    auto found = ir::layoutOf(tile.getType());
    if (!found)
      found = layout::Layout({}, {}, {{layout::kReplicated, target.lanes, 0}}, {{layout::kReplicated, numWarps_, 0}});
    slot = std::make_unique<layout::Layout>(std::move(*found));
  }
  return *slot;
}

llvm::Type* Emitter::typeOf(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type)) type = tensor.getElementType();
  if (isa<PtrType>(type)) return b.getPtrTy(1);
  if (isa<SmemType>(type)) return b.getPtrTy(3);
  if (type.isIndex()) return b.getInt64Ty();
  return llvmType(context_, type);
}
llvm::Type* Emitter::elementType(Value value) { return typeOf(value.getType()); }

Regs Emitter::flat(Value value) const {
  auto it = views_.find(value);
  if (it == views_.end()) return values_.find(value)->second;
  Regs all{it->second.ptr};
  all.append(it->second.dims.begin(), it->second.dims.end());
  all.append(it->second.strides.begin(), it->second.strides.end());
  return all;
}

void Emitter::defineFlat(Value value, Regs all) {
  auto type = dyn_cast<ViewType>(value.getType());
  if (!type) return define(value, std::move(all));
  ViewValue view{all[0], {}, {}};
  view.dims.append(all.begin() + 1, all.begin() + 1 + type.getRank());
  view.strides.append(all.begin() + 1 + type.getRank(), all.end());
  defineView(value, std::move(view));
}

// ---- the kernel

namespace {

/// One .param per slot of the ABI.
llvm::Type* slotType(llvm::IRBuilder<>& b, llvm::Type* type) { return type->isIntegerTy(1) ? b.getInt8Ty() : type; }

/// Programs that have ended count as having triggered: of many, which the hardware starts and ends by the hundred
/// thousand, only those that may run when the last one starts say so themselves. Triggers come one by one: on an H200, 131072
/// programs of four warps took 0.161 ms with one each and 0.085 ms so. (Counted in 32 bits: where that wraps, a trigger
/// comes early or not at all, which nothing but time depends on. The comparison with 0 is one that ptxas makes of a
/// uniform register: any other has it keep the program's number, and what is computed from it, in registers of threads.)
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

void Emitter::waitForStream() {
  if (target.sm < 90) return;
  auto* mark = new llvm::GlobalVariable(*module_, b.getInt8Ty(), /*isConstant=*/false,
                                        llvm::GlobalValue::ExternalLinkage, b.getInt8(1), kWaitsForStreamMark, nullptr,
                                        llvm::GlobalValue::NotThreadLocal, /*AddressSpace=*/1);
  mark->setAlignment(llvm::Align(1));
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
  for (size_t i = firstMap; i < types.size(); ++i) {
    const auto n = static_cast<unsigned>(i);
    auto* map = llvm::ArrayType::get(b.getInt8Ty(), 128);
    function_->addParamAttr(n, llvm::Attribute::getWithByValType(context_, map));
    function_->addParamAttr(n, llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
    function_->addParamAttr(n, llvm::Attribute::get(context_, "nvvm.grid_constant"));
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

std::unique_ptr<llvm::Module> Emitter::run() {
  if (failed(beginKernel())) return nullptr;
  if (!llvm::hasSingleElement(kernel_.getBody())) {
    kernel_.emitError("the kernel must be one block of structured control flow");
    return nullptr;
  }
  if (failed(emitBlock(kernel_.getBody().front()))) return nullptr;
  b.CreateRetVoid();
  if (debugInfo_) debugInfo_->finish();
  info.threads = static_cast<uint32_t>(totalThreads());
  return std::move(module_);
}

// ---- ops

LogicalResult Emitter::emitBlock(Block& block) {
  for (Operation& op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>()) break;  // regions of roles have none
    if (debugInfo_) debugInfo_->setLocation(b, op.getLoc());
    if (failed(emitOp(&op))) return failure();
  }
  return success();
}

FailureOr<Regs> Emitter::inlineRegion(Region& region, llvm::ArrayRef<llvm::Value*> arguments) {
  Block& block = region.front();
  for (auto [arg, value] : llvm::zip(block.getArguments(), arguments)) define(arg, value);
  if (failed(emitBlock(block))) return failure();
  Regs results;
  for (Value value : block.getTerminator()->getOperands()) results.push_back(scalar(value));
  return results;
}

/// Registers of a conversion in groups; where some are left over one of them is converted several times.
template <size_t kTogether, class Convert>
static void convertTogether(Emitter& e, Operation* op, Convert convert) {
  llvm::ArrayRef<llvm::Value*> held = e.regs(op->getOperand(0));
  Regs out(held.size(), llvm::PoisonValue::get(e.elementType(op->getResult(0))));
  SmallVector<size_t> real;
  const bool tile = isa<RankedTensorType>(op->getResult(0).getType());
  for (size_t reg = 0; reg < held.size(); ++reg)
    if (!tile || !e.layoutOf(op->getResult(0)).isRegPadding(static_cast<int>(reg))) real.push_back(reg);
  for (size_t i = 0; i < real.size(); i += kTogether) {
    std::array<llvm::Value*, kTogether> group;
    for (size_t j = 0; j < kTogether; ++j) group[j] = held[real[std::min(i + j, real.size() - 1)]];
    group = convert(e.b, op, group);
    for (size_t j = 0; j < kTogether && i + j < real.size(); ++j) out[real[i + j]] = group[j];
  }
  e.define(op->getResult(0), std::move(out));
}

void Emitter::emitFp8Conversion(Operation* op) {
  convertTogether<2>(*this, op, [&](llvm::IRBuilderBase& builder, Operation* o, std::array<llvm::Value*, 2> pair) {
    return convertFp8Pair(target, builder, o, pair);
  });
}

/// There is an instruction for two elements of 16 bits at a time.
static bool hasHalfPairs(const Target& target, Operation* op) {
  const bool isSign = isa<arith::NegFOp, math::AbsFOp>(op);
  if (!isSign && !isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op)) return false;
  const Type element = getElementTypeOrSelf(op->getResult(0).getType());
  return element.isF16() || (element.isBF16() && (isSign || target.sm >= 90));
}

/// bf16 is the upper half of f32.
static bool widensUpperHalves(Operation* op) {
  return isa<arith::ExtFOp>(op) && getElementTypeOrSelf(op->getOperand(0).getType()).isBF16() &&
         getElementTypeOrSelf(op->getResult(0).getType()).isF32();
}

/// Rounded to 16 bits and computed with: two by two, and each where it lies. (What only takes results of such an op to
/// memory or into fragments packs pairs of its own, which the code generator merges with the conversions.)
static bool roundsToHalves(Operation* op) {
  if (!isa<arith::TruncFOp>(op) || !getElementTypeOrSelf(op->getOperand(0).getType()).isF32()) return false;
  const Type element = getElementTypeOrSelf(op->getResult(0).getType());
  return (element.isF16() || element.isBF16()) && llvm::any_of(op->getUsers(), [](Operation* user) {
           return isa<TakeOp>(user) ||
                  (user->hasTrait<OpTrait::Elementwise>() && user->getDialect()->getNamespace() == "arith");
         });
}

/// What is looked up may be put into shared memory element by element, and LLVM would round it so: ptxas may move one of
/// the conversions over the wait for the product that makes its operand, and then waits for all products (C7517).
static bool isTaken(Operation* op) {
  return llvm::any_of(op->getUsers(), [](Operation* user) { return isa<TakeOp>(user); });
}
static llvm::Value* roundPair(llvm::IRBuilderBase& b, llvm::Value* low, llvm::Value* high, llvm::Type* to) {
  return b.CreateIntrinsic(
      to->isHalfTy() ? llvm::Intrinsic::nvvm_ff2f16x2_rn : llvm::Intrinsic::nvvm_ff2bf16x2_rn, {high, low});
}

llvm::Value* Emitter::elementwise(Operation* op, llvm::ArrayRef<llvm::Value*> args) {
  return emitElementwise(b, op, args, *math_)[0];
}

LogicalResult Emitter::emitElementwiseOp(Operation* op) {
  if (hasFp8Pairs(target, op)) return emitFp8Conversion(op), success();
  if (hasByteFloats(op)) {
    convertTogether<4>(*this, op, [&](llvm::IRBuilderBase& builder, Operation* o, std::array<llvm::Value*, 4> bytes) {
      return convertBytes(builder, o, *facts_, bytes);
    });
    return success();
  }
  if (auto lowest = lowestOfFew(op, *facts_); lowest && regs(op->getOperand(0)).size() > 1) {
    convertTogether<2>(*this, op, [&](llvm::IRBuilderBase& builder, Operation* o, std::array<llvm::Value*, 2> pair) {
      return convertFew(builder, o, *lowest, pair);
    });
    return success();
  }
  size_t count = 1;
  const layout::Layout* layout = nullptr;
  if (isa<RankedTensorType>(op->getResult(0).getType())) {
    layout = &layoutOf(op->getResult(0));
    count = layout->numRegs();
  }
  SmallVector<Regs, 2> results(op->getNumResults());
  const auto packed = static_cast<size_t>(packedElements(op));
  SmallVector<size_t> first;
  if (layout && isa<arith::CmpIOp>(op)) first = firstOfEqual(facts_->of(op->getResult(0)).constancy, *layout);
  for (size_t reg = 0; reg < count; ++reg) {
    if (!first.empty() && first[reg] < reg) {
      results[0].push_back(results[0][first[reg]]);
      continue;
    }
    if (packed > 1 && layout && reg + packed <= count) {
      SmallVector<llvm::ArrayRef<llvm::Value*>, 2> groups;
      for (Value operand : op->getOperands()) groups.push_back(regs(operand).slice(reg, packed));
      if (auto values = emitPackedBits(b, op, groups)) {
        results[0].append(values->begin(), values->end());
        reg += packed - 1;
        continue;
      }
    }
    const bool hasNext = layout && reg + 1 < count && !layout->isRegPadding(static_cast<int>(reg)) &&
                         !layout->isRegPadding(static_cast<int>(reg + 1));
    if (hasNext && hasHalfPairs(target, op) && llvm::any_of(op->getOperands(), [&](Value operand) {
          return isPair(regs(operand)[reg], regs(operand)[reg + 1]);
        })) {
      SmallVector<llvm::Value*, 2> pairs;
      for (Value operand : op->getOperands()) pairs.push_back(packPair(regs(operand)[reg], regs(operand)[reg + 1]));
      llvm::Value* pair = emitElementwise(b, op, pairs, *math_)[0];
      for (uint64_t i = 0; i < 2; ++i) results[0].push_back(b.CreateExtractElement(pair, i));
      ++reg;
      continue;
    }
    if (hasNext && roundsToHalves(op)) {
      llvm::ArrayRef<llvm::Value*> held = regs(op->getOperand(0));
      llvm::Value* pair = isTaken(op) ? roundPair(b, held[reg], held[reg + 1], elementType(op->getResult(0)))
                                      : emitElementwise(b, op, packPair(held[reg], held[reg + 1]), *math_)[0];
      for (uint64_t i = 0; i < 2; ++i) results[0].push_back(b.CreateExtractElement(pair, i));
      ++reg;
      continue;
    }
    if (llvm::Value* word = hasNext ? chooseWord(*this, op, reg) : nullptr) {
      const unsigned chosen = llvm::cast<llvm::FixedVectorType>(word->getType())->getNumElements();
      for (uint64_t i = 0; i < chosen; ++i) results[0].push_back(b.CreateExtractElement(word, i));
      reg += chosen - 1;
      continue;
    }
    if (hasNext && widensUpperHalves(op) && isPair(regs(op->getOperand(0))[reg], regs(op->getOperand(0))[reg + 1])) {
      // Where they lie, one instruction each: taken out of the register first, the upper one would be shifted down and
      // up.
      llvm::ArrayRef<llvm::Value*> held = regs(op->getOperand(0));
      llvm::Value* word = b.CreateBitCast(packPair(held[reg], held[reg + 1]), b.getInt32Ty());
      results[0].push_back(b.CreateBitCast(b.CreateShl(word, 16), b.getFloatTy()));
      results[0].push_back(b.CreateBitCast(b.CreateAnd(word, 0xffff0000u), b.getFloatTy()));
      ++reg;
      continue;
    }
    if (layout && layout->isRegPadding(static_cast<int>(reg))) {
      for (auto [i, list] : llvm::enumerate(results))
        list.push_back(llvm::PoisonValue::get(elementType(op->getResult(i))));
      continue;
    }
    SmallVector<llvm::Value*, 3> args;
    for (Value operand : op->getOperands()) {
      llvm::ArrayRef<llvm::Value*> held = regs(operand);
      args.push_back(isa<RankedTensorType>(operand.getType()) ? held[reg] : held[0]);
    }
    auto values = emitElementwise(b, op, args, *math_);
    if (values.size() != results.size()) {
      std::string type;  // a type of its own would be printed in quotes
      llvm::raw_string_ostream(type) << getElementTypeOrSelf(op->getResult(0).getType());
      return op->emitError() << op->getName().stripDialect() << " of " << type
                             << " does not exist on GPU targets; compute in f32 or on the host";
    }
    for (auto [list, value] : llvm::zip(results, values)) list.push_back(value);
  }
  for (auto [result, list] : llvm::zip(op->getResults(), results)) define(result, std::move(list));
  return success();
}

LogicalResult Emitter::emitConstant(arith::ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements) {
    llvm::Constant* value = llvmConstant(context_, op.getValue());
    if (op.getType().isIndex()) value = b.getInt64(cast<IntegerAttr>(op.getValue()).getInt());
    define(op.getResult(), value);
    return success();
  }
  const layout::Layout& layout = layoutOf(op.getResult());
  if (elements.isSplat()) {
    llvm::Constant* value = llvmConstant(context_, elements.getSplatValue<TypedAttr>());
    define(op.getResult(), Regs(layout.numRegs(), value));
    return success();
  }
  return emitConstantTable(*this, op, elements);
}

LogicalResult Emitter::emitOp(Operation* op) {
  using R = LogicalResult;
  return llvm::TypeSwitch<Operation*, R>(op)
      // ---- scalars, pointers, views
      .Case<arith::ConstantOp>([&](auto o) { return emitConstant(o); })
      .Case<ProgramIdOp, NumProgramsOp>([&](auto o) { return emitGridOp(*this, o); })
      .Case<arith::IndexCastOp>([&](auto o) {
        define(o.getResult(), b.CreateSExtOrTrunc(scalar(o.getIn()), elementType(o.getResult())));
        return success();
      })
      .Case<arith::IndexCastUIOp>([&](auto o) {
        define(o.getResult(), b.CreateZExtOrTrunc(scalar(o.getIn()), elementType(o.getResult())));
        return success();
      })
      .Case<PtrAddOp, PtrToIntOp, IntToPtrOp, MakeViewOp, ViewPtrOp, ViewDimOp, ViewStrideOp>(
          [&](Operation* o) { return emitPointerOp(*this, o); })
      .Case<AssumeOp>([&](auto o) {
        define(o.getResult(), Regs(regs(o.getValue())));
        return success();
      })
      .Case<AssumeTrueOp>([&](auto o) {
        b.CreateAssumption(scalar(o.getCondition()));
        return success();
      })
      // ---- memory
      .Case<LoadOp>([&](auto o) {
        const R done = emitLoad(*this, o);
        keepEarly(*this, o);
        return done;
      })
      .Case<StoreOp>([&](auto o) { return emitStore(*this, o); })
      .Case<AccumulateOp>([&](auto o) { return emitAccumulate(*this, o); })
      .Case<GatherOp>([&](auto o) {
        const R done = emitGather(*this, o);
        keepEarly(*this, o);
        return done;
      })
      .Case<ScatterOp>([&](auto o) { return emitScatter(*this, o); })
      .Case<AtomicRmwOp>([&](auto o) { return emitAtomicRmw(*this, o); })
      .Case<AtomicCasOp>([&](auto o) { return emitAtomicCas(*this, o); })
      // ---- shapes and layouts
      .Case<IotaOp>([&](auto o) { return emitIota(*this, o); })
      .Case<SplatOp>([&](auto o) { return emitSplat(*this, o); })
      .Case<BroadcastOp>([&](auto o) { return emitBroadcast(*this, o); })
      .Case<ReshapeOp>([&](auto o) { return emitReshape(*this, o); })
      .Case<TransOp>([&](auto o) { return emitTrans(*this, o); })
      .Case<CatOp>([&](auto o) { return emitCat(*this, o); })
      .Case<ExtractOp>([&](auto o) { return emitExtract(*this, o); })
      .Case<TakeOp>([&](auto o) { return emitTake(*this, o); })
      .Case<HistogramOp>([&](auto o) { return emitHistogram(*this, o); })
      .Case<ConvertOp>([&](auto o) { return emitConvert(*this, o); })
      .Case<ItemOp>([&](auto o) {
        define(o.getResult(), scalar(o.getSource()));  // laid out so that every thread holds the element
        return success();
      })
      // ---- across elements
      .Case<ReduceOp>([&](auto o) { return emitReduce(*this, o); })
      .Case<ScanOp>([&](auto o) { return emitScan(*this, o); })
      .Case<BallotOp>([&](auto o) { return emitBallot(*this, o); })
      .Case<BarrierOp>([&](auto) {
        barrier();
        return success();
      })
      // ---- control flow
      .Case<scf::ForOp>([&](auto o) { return emitFor(o); })
      .Case<scf::IfOp>([&](auto o) { return emitIf(o); })
      .Case<scf::WhileOp>([&](auto o) { return emitWhile(o); })
      // ---- debugging
      .Case<PrintOp>([&](auto o) { return emitPrint(*this, o); })
      .Case<AssertOp>([&](auto o) { return emitAssert(*this, o); })
      .Default([&](Operation* o) -> R {
        if (isSmemOp(o)) return emitSmemOp(*this, o);
        if (isRoleOp(o)) return emitRoleOp(*this, o);
        if (auto compare = dyn_cast<arith::CmpIOp>(o); compare && emitCoordinateCompare(*this, compare))
          return success();
        if (definedAhead.contains(o) || emitRemainders(*this, o)) return success();
        if (auto widen = dyn_cast<WidenE2m1Op>(o)) return emitWidenE2m1(*this, widen), success();
        if (auto widen = dyn_cast<WidenE8m0Op>(o)) return emitWidenE8m0(*this, widen), success();
        if (auto text = dyn_cast<InlineAsmOp>(o)) return emitUserAsm(*this, text);
        if (isElementwise(o)) return emitElementwiseOp(o);
        return o->emitOpError("is not supported on GPU targets");
      });
}

llvm::Value* Emitter::debugRing() { return debugRing_; }

uint32_t Emitter::debugSite(DebugSite site) {
  info.debug_sites.push_back(std::move(site));
  return static_cast<uint32_t>(info.debug_sites.size() - 1);
}

llvm::Value* Emitter::scratch(Operation* op) {
  auto offset = op->getAttrOfType<IntegerAttr>(kScratchAttr);
  if (!offset) {
    op->emitOpError("needs scratch in shared memory but place_buffers gave it none (a bug of the compiler)");
    return llvm::PoisonValue::get(b.getPtrTy(3));
  }
  return shared(offset.getInt());
}

}  // namespace tile::ir
