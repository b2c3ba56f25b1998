// emitter.cpp - the values of tile IR, and the switch from ops to their lowerings.
#include "compiler/gpu/lowering/emitter.h"

#include "compiler/diagnostics.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/lowering/debug_info.h"
#include "compiler/gpu/lowering/e2m1_pairs.h"
#include "compiler/gpu/lowering/gpu_math.h"
#include "compiler/gpu/lowering/half_pairs.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "compiler/gpu/lowering/user_asm.h"
#include "compiler/targets/nvptx.h"
#include "llvm/ADT/TypeSwitch.h"

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

std::unique_ptr<llvm::Module> Emitter::run() {
  if (failed(beginKernel())) return nullptr;
  if (!llvm::hasSingleElement(kernel_.getBody())) {
    kernel_.emitError("the kernel must be one block of structured control flow");
    return nullptr;
  }
  if (failed(emitBlock(kernel_.getBody().front()))) return nullptr;
  b.CreateRetVoid();
  markIfShort();
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

llvm::Value* Emitter::elementwise(Operation* op, llvm::ArrayRef<llvm::Value*> args) {
  return emitElementwise(b, op, args, *math_)[0];
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
      .Case<PutOp>([&](auto o) { return emitPut(*this, o); })
      .Case<HistogramOp>([&](auto o) { return emitHistogram(*this, o); })
      .Case<SmemCountOp>([&](auto o) { return emitSmemCount(*this, o); })
      .Case<ConvertOp>([&](auto o) { return emitConvert(*this, o); })
      .Case<ItemOp>([&](auto o) {
        define(o.getResult(), scalar(o.getSource()));  // laid out so that every thread holds the element
        return success();
      })
      // ---- across elements
      .Case<ReduceOp>([&](auto o) { return emitReduce(*this, o); })
      .Case<ScanOp>([&](auto o) { return emitScan(*this, o); })
      .Case<TotalOp>([](auto) { return success(); })  // defined with its scan
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
        if (isElementwise(o)) return emitElementwiseOp(*this, o);
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
