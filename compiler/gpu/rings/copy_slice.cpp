// copy_slice.cpp - collecting and re-emitting the address slice of a loop's copies.
#include "compiler/gpu/rings/copy_slice.h"

#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/forms/shared_memory.h"

namespace tile::ir {
using namespace mlir;

void emitThreadCopy(OpBuilder& builder, Operation* copy, const IRMapping& map, Value target, Value enable) {
  auto at = [&](ValueRange values) {
    SmallVector<Value> out;
    for (Value v : values) out.push_back(map.lookupOrDefault(v));
    return out;
  };
  if (auto load = dyn_cast<LoadSharedOp>(copy)) {
    auto box = AsyncCopyOp::create(builder, copy->getLoc(), map.lookupOrDefault(load.getView()), at(load.getIndices()),
                                   target, enable, load.getBox(), load.getCache());
    if (Attribute fromZero = load->getAttr(kFromZeroAttr)) box->setAttr(kFromZeroAttr, fromZero);
  } else {
    auto gather = cast<GatherSharedOp>(copy);
    Value mask = gather.getMask() ? map.lookupOrDefault(gather.getMask()) : Value();
    AsyncGatherOp::create(builder, copy->getLoc(), map.lookupOrDefault(gather.getPtr()),
                          map.lookupOrDefault(gather.getOffsets()), mask, target, enable, gather.getCache());
  }
}

CopySlice::CopySlice(scf::ForOp loop, ArrayRef<Operation*> copies, ArrayRef<Operation*> apart)
    : loop_(loop), copies_(copies.begin(), copies.end()) {
  if (loop.getUnsignedCmp()) refuse("the loop counts unsigned");
  for (Operation* copy : copies) {
    if (!llvm::is_contained(apart, copy)) readRoots_.push_back(addressOf(copy));
    for (Value operand : copy->getOperands()) need(operand);
    needEnclosing(copy);
  }
  if (obstacle_.empty()) checkWrites();
}

void CopySlice::need(Value value) {
  if (!obstacle_.empty()) return;
  Region& body = loop_.getRegion();
  if (!body.isAncestor(value.getParentRegion())) return;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    if (arg.getOwner() != loop_.getBody() || arg == loop_.getInductionVar()) return;
    unsigned index = arg.getArgNumber() - 1;
    if (carried_.insert(index)) need(loop_.getBody()->getTerminator()->getOperand(index));
    return;
  }
  Operation* op = value.getDefiningOp();
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    unsigned index = cast<OpResult>(value).getResultNumber();
    if (!ifResults_[op].insert(index)) return;
    needOp(op);
    for (Region& region : branch->getRegions()) need(region.front().getTerminator()->getOperand(index));
    return;
  }
  needOp(op);
}

void CopySlice::needOp(Operation* op) {
  if (!ops_.insert(op).second) return;
  needEnclosing(op);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    needsGuard_ = true;
    return need(branch.getCondition());
  }
  if (isa<DotOp, MmaOp, LoadSharedOp, GatherSharedOp, ShareOp, SmemLoadOp>(op))
    return refuse("an address depends on the result of a product or of another such copy");
  if (isa<LoadOp, GatherOp>(op)) {
    needsGuard_ = true;
    readRoots_.push_back(addressOf(op));
  } else if (!isMemoryEffectFree(op)) {
    return refuse("an address depends on an operation with side effects");
  }
  if (isa<LoopLikeOpInterface>(op)) return refuse("an address depends on the result of an inner loop");
  for (Value operand : op->getOperands()) need(operand);
  op->walk([&](Operation* inner) {
    if (inner == op) return;
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp())) need(operand);
  });
}

void CopySlice::needEnclosing(Operation* op) {
  for (Operation* parent = op->getParentOp(); parent != loop_; parent = parent->getParentOp()) {
    if (!isa<scf::IfOp>(parent)) return refuse("a copy stands inside an inner loop");
    needOp(parent);
  }
}

// Running ahead moves reads over the writes of earlier iterations: those must go elsewhere.
void CopySlice::checkWrites() {
  loop_.getRegion().walk([&](Operation* op) {
    if (!writesGlobal(op)) return;
    if (isAcquire(op)) return refuse("the loop contains an acquiring atomic");
    const MemoryRoot written = rootOf(addressOf(op));
    for (Value read : readRoots_)
      if (!written.isApartFrom(rootOf(read))) return refuse("the loop may write what it copies");
  });
}

void CopySlice::emit(OpBuilder& builder, Value iv, SmallVectorImpl<Value>& state, EmitCopy emitCopy) const {
  IRMapping map;
  scf::ForOp loop = loop_;
  map.map(loop.getInductionVar(), iv);
  for (auto [i, index] : llvm::enumerate(carried_)) map.map(loop.getRegionIterArg(index), state[i]);
  emitBlock(builder, *loop.getBody(), map, emitCopy);
  Operation* yield = loop.getBody()->getTerminator();
  for (auto [i, index] : llvm::enumerate(carried_)) state[i] = map.lookupOrDefault(yield->getOperand(index));
}

void CopySlice::emitBlock(OpBuilder& builder, Block& block, IRMapping& map, EmitCopy emitCopy) const {
  for (Operation& op : block) {
    if (copies_.contains(&op)) {
      emitCopy(builder, &op, map);
    } else if (ops_.contains(&op)) {
      if (auto branch = dyn_cast<scf::IfOp>(op))
        emitIf(builder, branch, map, emitCopy);
      else
        builder.clone(op, map);
    }
  }
}

void CopySlice::emitIf(OpBuilder& builder, scf::IfOp op, IRMapping& map, EmitCopy emitCopy) const {
  SmallVector<unsigned> results;
  if (auto it = ifResults_.find(op.getOperation()); it != ifResults_.end())
    results.assign(it->second.begin(), it->second.end());
  SmallVector<Type> types;
  for (unsigned i : results) types.push_back(op.getResult(i).getType());
  bool hasElse = !op.getElseRegion().empty();
  auto made = scf::IfOp::create(builder, op.getLoc(), types, map.lookupOrDefault(op.getCondition()), hasElse);
  for (auto [from, to] :
       {std::pair(&op.getThenRegion(), &made.getThenRegion()), {&op.getElseRegion(), &made.getElseRegion()}}) {
    if (from->empty()) continue;
    Block& target = to->front();
    if (!target.empty()) target.back().erase();  // the builder may have put a yield there
    OpBuilder inside = OpBuilder::atBlockEnd(&target);
    emitBlock(inside, from->front(), map, emitCopy);
    SmallVector<Value> values;
    for (unsigned i : results) values.push_back(map.lookupOrDefault(from->front().getTerminator()->getOperand(i)));
    scf::YieldOp::create(inside, op.getLoc(), values);
  }
  for (auto [i, result] : llvm::enumerate(results)) map.map(op.getResult(result), made.getResult(i));
}

}  // namespace tile::ir
