// wgmma.cpp - tile.mma by warpgroups: asynchronous products of 64 rows, and the wait that makes their results readable.
// Operands: wgmma_descriptor.h (in shared memory), wgmma_registers.h; the instructions' text: wgmma_group.h.
//
// One tile.mma is one group: fence, all k steps of all row and column blocks, commit. Accumulators are tied operands of
// the instructions and of the wait, so that their values flow: LLVM cannot move a use over the wait, the assembler sees
// one set of registers. A product that starts from zero says so to its first instructions, and no zeros are made. Blocks
// of rows come one after the other, each with all its k steps: where registers do not suffice, the assembler moves a
// block's accumulators once for a product; were steps outermost, it would move them at every step.
//
// A product whose first operand the threads read from shared memory (dialect/products.h) is several groups of
// kFragmentSteps k steps. Each reads its fragments while the group before runs, behind a wait for the group before
// that: two sets of registers take turns, across the products of a loop, too, and the tensor cores never wait for a
// read.
#include "compiler/gpu/forms/async_products.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "compiler/gpu/lowering/wgmma_descriptor.h"
#include "compiler/gpu/lowering/wgmma_group.h"
#include "compiler/gpu/lowering/wgmma_registers.h"
#include "compiler/gpu/rings/stage_reads.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace llvm;

namespace {

bool isZero(ArrayRef<Value*> values) {
  return llvm::all_of(values, [](Value* v) {
    auto* constant = dyn_cast<Constant>(v);
    return constant && (constant->isNullValue() || isa<UndefValue>(constant));  // undef: padding
  });
}

/// Groups of instructions the product is issued as.
int groupsOf(MmaOp op) {
  if (!fragmentOperand(op)) return 1;
  return (stepsOf(op) + kFragmentSteps - 1) / kFragmentSteps;
}

/// Whether a product may run between the op and the start of its block, `from` being the last op looked at; null: not
/// known.
std::optional<bool> runsBefore(mlir::Operation* from, MmaOp op) {
  for (mlir::Operation* at = from; at; at = at->getPrevNode()) {
    if (at == op) return true;
    if (auto wait = dyn_cast<MmaWaitOp>(at)) return wait.getPending() > 0;
    if (asyncProduct(at)) return true;
    if (hasAsyncProduct(at)) return false;  // at the edges of regions everything is finished
  }
  return std::nullopt;
}

/// Whether products may run when this one begins: those in front of it, or in loops those of the iteration before.
bool othersRun(MmaOp op) {
  if (auto known = runsBefore(op->getPrevNode(), op)) return *known;
  if (!mlir::isa<mlir::scf::ForOp>(op->getParentOp())) return false;
  return runsBefore(op->getBlock()->getTerminator(), op).value_or(false);
}

void waitForGroups(Emitter& e, int pending) {
  e.inlineAsm(e.b.getVoidTy(), "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";", "~{memory}", {});
}

}  // namespace

void fenceAsyncProxy(Emitter& e) {
  e.b.CreateIntrinsic(Intrinsic::nvvm_fence_proxy_async_shared_cta, {});
}

namespace {

/// The descriptor of the instruction's second operand (b, or a^T) for this warpgroup.
mlir::FailureOr<Descriptor> secondOperand(Emitter& e, MmaOp op, Value* team) {
  const auto [m, n, teamsM, teamsN, cover] = warpgroupProduct(op);
  const int64_t part = cover.n / teamsN;
  const bool transposed = isTransposed(op);
  mlir::Value second = transposed ? mlir::Value(op.getA()) : mlir::Value(op.getB());
  const SmemType type = mlir::cast<SmemType>(second.getType());
  auto b = describe(op, transposed ? type.transposed() : type, false);
  if (failed(b)) return mlir::failure();
  Descriptor start(e, second, *b);
  if (teamsN > 1) {
    const bool insidePanel = part * teamsN <= b->outerUnit();
    if (part % b->outerUnit() != 0 && !insidePanel)
      return op.emitOpError() << "expects parts of " << b->outerUnit() << " columns per warpgroup, found " << part;
    start.addBytes(e.b.CreateMul(e.b.CreateUDiv(team, e.i32(teamsM)), e.i32(b->outerBytes(part))));
  }
  return start;
}

/// The descriptor of a first operand in shared memory (a, or b^T) for this warpgroup.
mlir::FailureOr<Descriptor> firstOperand(Emitter& e, MmaOp op, Value* team) {
  const int64_t teamsM = warpgroupProduct(op).teamsM;
  const mlir::Value operand = isTransposed(op) ? mlir::Value(op.getB()) : op.getA();
  const auto type = mlir::cast<SmemType>(operand.getType());
  auto a = describe(op, isTransposed(op) ? type.transposed() : type, true);
  if (failed(a)) return mlir::failure();
  if (64 % a->outerUnit() != 0)
    return op.emitOpError() << "expects panels of at most 64 rows of a, found " << a->outerUnit();
  Descriptor start(e, operand, *a);
  if (teamsM > 1) start.addBytes(e.b.CreateMul(e.b.CreateURem(team, e.i32(teamsM)), e.i32(a->outerBytes(64))));
  return start;
}

/// Accumulators that hold one number (0 times a row's factor), and constants, get registers of their own here, in front
/// of the fence: the code generator would copy them right in front of the product, and the assembler fence again
/// (C7519).
void giveOwnRegisters(IRBuilderBase& b, Regs& acc) {
  SmallPtrSet<Value*, 16> seen;
  for (Value*& value : acc) {
    const bool isOwn = seen.insert(value).second && (!isa<Constant>(value) || isa<UndefValue>(value));
    if (isOwn) continue;
    Type* type = value->getType();
    auto* form = FunctionType::get(type, {type}, false);
    value = b.CreateCall(InlineAsm::get(form, "mov.b32 $0, $1;", type->isFloatTy() ? "=f,f" : "=r,r",
                                        /*hasSideEffects=*/true),  // else they would be one again
                         {value});
  }
}

}  // namespace

LogicalResult emitWgmma(Emitter& e, MmaOp op) {
  if (static_cast<int>(op.getWarpsM() * op.getWarpsN()) != e.numWarps())
    return op.emitOpError() << "is planned for " << op.getWarpsM() * op.getWarpsN() << " warps, the kernel has "
                            << e.numWarps();
  const auto [m, n, teamsM, teamsN, cover] = warpgroupProduct(op);
  const int64_t part = cover.n / teamsN;
  const int reps = static_cast<int>(cover.m / (64 * teamsM)), steps = stepsOf(op);
  Value* team = e.numWarps() > 4 ? e.warpgroup() : e.i32(0);

  const auto second = secondOperand(e, op, team);
  if (failed(second)) return failure();
  const layout::OperandDescriptor& b = second->operand();
  const bool isFragment = static_cast<bool>(fragmentOperand(op));
  std::optional<Descriptor> first;
  std::unique_ptr<FirstOperand> inRegisters;
  if (isFragment) {
    inRegisters = operandOfFragments(e, op);
  } else if (mlir::isa<SmemType>(op.getA().getType())) {
    auto descriptor = firstOperand(e, op, team);
    if (failed(descriptor)) return failure();
    first.emplace(*descriptor);
  } else {
    inRegisters = operandInRegisters(e, op);
  }

  Regs acc(e.regs(op.getAcc()));
  const int unit = std::max(b.outerUnit(), engineRow(op.getEngine()).n);
  const std::vector<int> columns = layout::instructionColumns(part, unit);
  const bool fromZero = isZero(acc);
  if (!fromZero) giveOwnRegisters(e.b, acc);
  Value *aFirst = first ? first->first() : nullptr, *bFirst = second->first();
  const int stepsPerGroup = isFragment ? kFragmentSteps : steps;
  for (int begin = 0; begin < steps; begin += stepsPerGroup) {
    const int end = std::min(steps, begin + stepsPerGroup);
    // Whose fragments were in the registers these may get. Waits for nothing confuse ptxas (C7515).
    if (isFragment && (begin > 0 || othersRun(op))) waitForGroups(e, 1);
    SmallVector<SmallVector<Value*, 4>> registers;  // reads and conversions stand in front of the fence, all of them
    for (int step = begin; step < end && inRegisters; ++step)
      for (int rep = 0; rep < reps; ++rep) registers.push_back(inRegisters->at(rep, step));
    e.b.CreateIntrinsic(Intrinsic::nvvm_wgmma_fence_sync_aligned, {});
    GroupOfProducts group(e, op, acc, fromZero && begin == 0);
    for (int rep = 0; rep < reps; ++rep) {  // all steps of 64 rows, then the next 64: see above
      for (int step = begin; step < end; ++step) {
        DescriptorPlace a;
        if (first) {
          const layout::OperandDescriptor& rows = first->operand();
          a = {aFirst, rows.outerBytes(64 * teamsM * rep) + rows.stepBytes(step), !rows.kMinor};
        }
        int64_t column = 0;
        for (int width : columns) {
          group.add(static_cast<int>(rep * part + column) / 2, width / 2,
                    first ? ArrayRef<Value*>() : ArrayRef<Value*>(registers[(step - begin) * reps + rep]), a,
                    {bFirst, b.outerBytes(column) + b.stepBytes(step), !b.kMinor}, step == begin);
          column += width;
        }
      }
    }
    group.emit();
    e.b.CreateIntrinsic(Intrinsic::nvvm_wgmma_commit_group_sync_aligned, {});
  }
  e.define(op.getResult(), acc);
  // Copies that stood in front of the product: they start while it runs.
  for (mlir::Operation* copy : carriedBy(op))
    if (failed(emitAsyncOp(e, copy))) return failure();
  return success();
}

namespace {

/// Groups the products issued last before the wait are made of. What stands in front of a region counts as one each.
int pendingGroups(MmaWaitOp op) {
  int products = static_cast<int>(op.getPending()), groups = 0;
  for (mlir::Operation* at = op->getPrevNode(); at && products > 0 && at->getNumRegions() == 0; at = at->getPrevNode())
    if (MmaOp product = asyncProduct(at)) groups += groupsOf(product), --products;
  return groups + products;
}

}  // namespace

LogicalResult emitMmaWait(Emitter& e, MmaWaitOp op) {
  const std::string text = "wgmma.wait_group.sync.aligned " + std::to_string(pendingGroups(op)) + ";";
  SmallVector<Value*, 160> values;
  std::string outputs, inputs;
  for (mlir::Value acc : op.getAccs()) {
    for (Value* v : e.regs(acc)) {
      outputs += v->getType()->isIntegerTy() ? "=r," : "=f,";
      inputs += std::to_string(values.size()) + ",";
      values.push_back(v);
    }
  }
  const std::string constraints = outputs + inputs + "~{memory}";
  if (values.empty()) {
    e.inlineAsm(e.b.getVoidTy(), text, constraints, {});
    return success();
  }
  SmallVector<Type*> types;
  for (Value* v : values) types.push_back(v->getType());
  // A single result is not a struct.
  Type* type = types.size() == 1 ? types[0] : StructType::get(e.b.getContext(), types);
  Value* all = e.inlineAsm(type, text, constraints, values);
  size_t next = 0;
  for (auto [acc, result] : llvm::zip(op.getAccs(), op.getResults())) {
    Regs regs;
    for (size_t i = 0, count = e.regs(acc).size(); i < count; ++i, ++next)
      regs.push_back(types.size() == 1 ? all : e.b.CreateExtractValue(all, static_cast<unsigned>(next)));
    e.define(result, regs);
  }
  return success();
}

}  // namespace tile::ir
