// role_slice.cpp - collecting the producer's slice backwards from the copies, and emitting it in program order.
#include "compiler/gpu/roles/role_slice.h"

#include "compiler/analysis/definitions.h"
#include "compiler/analysis/memory_roots.h"
#include "compiler/lowering/elementwise.h"

namespace tile::ir {
using namespace mlir;

SmallVector<Value> controlOf(Operation* op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) return {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
  if (auto branch = dyn_cast<scf::IfOp>(op)) return {branch.getCondition()};
  if (auto loop = dyn_cast<scf::WhileOp>(op)) return {loop.getConditionOp().getCondition()};
  return {};
}

namespace {

bool isControl(Operation* op) { return isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op); }

bool touchesTiles(Operation* op) {
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isTensor) || llvm::any_of(op->getResultTypes(), isTensor);
}

/// Adds or takes away dims of one element: a new name for the same registers.
bool isRename(ReshapeOp op) {
  auto longDims = [](Value tile) {
    SmallVector<int64_t> dims;
    llvm::copy_if(cast<RankedTensorType>(tile.getType()).getShape(), std::back_inserter(dims),
                  [](int64_t dim) { return dim != 1; });
    return dims;
  };
  return longDims(op.getSource()) == longDims(op.getResult());
}

/// Work on tiles of which every thread computes the elements it wants, in any layout: other threads are not asked.
bool isOwnWork(Operation* op) {
  if (auto reshape = dyn_cast<ReshapeOp>(op)) return isRename(reshape);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) return isa<SplatElementsAttr>(constant.getValue());
  return isElementwise(op) || isa<IotaOp, SplatOp, BroadcastOp, AssumeOp, LoadOp, GatherOp>(op);
}

}  // namespace

RoleSlice::RoleSlice(func::FuncOp func, const std::vector<LoadGroup>& groups) : func_(func) {
  for (const LoadGroup& group : groups) {
    groupsAt_[group.first].push_back(&group);
    keepAround(group.first);
    for (Operation* load : group.loads) {
      reads_.push_back(load);
      for (Value operand : load->getOperands()) need(operand);
    }
  }
  if (!obstacle_.at) checkOrder();
  if (!obstacle_.at) findUneven();
}

// ---- what is needed

void RoleSlice::need(Value value) {
  if (obstacle_.at) return;
  if (Operation* owner = value.getDefiningOp() ? value.getDefiningOp() : value.getParentBlock()->getParentOp();
      isa<RankedTensorType>(value.getType()) && (isControl(owner) || isa<BlockArgument>(value)))
    return refuse(owner, "where tiles are copied from is a tile carried by a loop or branch");
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Operation* parent = arg.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      if (arg != loop.getInductionVar()) needCarried(loop, arg.getArgNumber() - 1);
    } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
      if (arg.getOwner() == loop.getBeforeBody())
        needBefore(loop, arg.getArgNumber());
      else
        needAfter(loop, arg.getArgNumber());
    }
    return;
  }
  Operation* op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  keep(op);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    needCarried(loop, index);
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    needAfter(loop, index);
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (!ifResults_[op].insert(index)) return;
    for (Region& region : branch->getRegions()) need(region.front().getTerminator()->getOperand(index));
  }
}

void RoleSlice::needCarried(scf::ForOp loop, unsigned index) {
  keep(loop);
  if (!carried_[loop].insert(index)) return;
  need(loop.getInitArgs()[index]);
  need(loop.getBody()->getTerminator()->getOperand(index));
}
void RoleSlice::needBefore(scf::WhileOp loop, unsigned index) {
  keep(loop);
  if (!before_[loop].insert(index)) return;
  need(loop.getInits()[index]);
  need(loop.getYieldOp()->getOperand(index));
}
void RoleSlice::needAfter(scf::WhileOp loop, unsigned index) {
  keep(loop);
  if (after_[loop].insert(index)) need(loop.getConditionOp().getArgs()[index]);
}

void RoleSlice::keep(Operation* op) {
  if (obstacle_.at || !kept_.insert(op).second) return;
  keepAround(op);
  if (isControl(op)) {
    for (Value value : controlOf(op)) need(value);
    return;
  }
  if (isa<LoadOp, GatherOp>(op))
    reads_.push_back(op);
  else if (isa<BallotOp>(op))
    op->walk([&](Operation* inner) {
      if (isa<LoadOp, GatherOp>(inner)) reads_.push_back(inner);
    });
  else if ((touchesTiles(op) && !isOwnWork(op)) || isa<LoadSharedOp, GatherSharedOp, ShareOp, SmemLoadOp>(op))
    return refuse(op, "where or when tiles are copied depends on a tile this program computes");
  else if (!isMemoryEffectFree(op))
    return refuse(op, "where or when tiles are copied depends on an operation with side effects");
  for (Value operand : op->getOperands()) need(operand);
  op->walk([&](Operation* inner) {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp())) need(operand);
  });
}

void RoleSlice::keepAround(Operation* op) {
  for (Operation* parent = op->getParentOp(); parent && parent != func_; parent = parent->getParentOp()) {
    if (!isControl(parent)) return refuse(parent, "a copy stands inside an operation other than a loop or branch");
    keep(parent);
  }
}

// ---- whether it may run ahead

// The producer's reads move in front of everything the consumers did not do yet: writes of the same memory, and what
// makes other programs' writes visible.
void RoleSlice::checkOrder() {
  auto mayPrecede = [](Operation* op, Operation* read) {
    for (Operation* parent = op->getParentOp(); parent; parent = parent->getParentOp())
      if (isa<LoopLikeOpInterface>(parent) && parent->isAncestor(read)) return true;
    for (Operation* at = op; at; at = at->getParentOp())
      if (Operation* other = at->getBlock() ? at->getBlock()->findAncestorOpInBlock(*read) : nullptr)
        return at->isBeforeInBlock(other);
    return true;
  };
  func_.walk([&](Operation* op) {
    for (Operation* read : reads_) {
      if (isAcquire(op) && mayPrecede(op, read))
        return refuse(op, "an acquiring atomic stands before copies, which would run ahead of it");
      if (!writesGlobal(op)) continue;
      if (!rootOf(addressOf(op)).isApartFrom(rootOf(addressOf(read))))
        return refuse(op, "the kernel may write what it copies, and copies run ahead of writes");
    }
    // A wait for other programs: this program's producer may already hold the position that is waited for.
    if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      auto result = loop.getBefore().walk([](Operation* inner) {
        return isa<AtomicRmwOp, AtomicCasOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
      });
      if (result.wasInterrupted()) refuse(op, "a loop waits for other programs");
    }
  });
}

void RoleSlice::findUneven() {
  SmallVector<Value> control;
  for (Operation* op : kept_)
    if (isControl(op)) llvm::append_range(control, controlOf(op));
  uneven_ = llvm::any_of(definitionsBehind(control),
                         [](Operation* op) { return isa<ProgramIdOp, LoadOp, GatherOp, BallotOp>(op); });
}

int RoleSlice::registersPerRow() const {
  llvm::SmallSetVector<Value, 16> tiles;
  auto count = [&](Operation* op) {
    auto loop = op->getParentOfType<LoopLikeOpInterface>();
    if (!loop) return;
    for (Value operand : op->getOperands()) {
      Operation* definition = operand.getDefiningOp();
      if (definition && !loop->isAncestor(definition) && isa<RankedTensorType>(operand.getType()) &&
          !isa<arith::ConstantOp, SplatOp, IotaOp>(definition))
        tiles.insert(operand);
    }
  };
  for (Operation* op : kept_) count(op);
  for (Operation* copy : reads_) count(copy);
  int registers = 0;
  for (Value tile : tiles) registers += getElementTypeOrSelf(tile.getType()).getIntOrFloatBitWidth() > 32 ? 2 : 1;
  return registers;
}

// ---- emission

SmallVector<unsigned> RoleSlice::sorted(const llvm::DenseMap<Operation*, Indices>& of, Operation* op) const {
  SmallVector<unsigned> indices;
  if (auto it = of.find(op); it != of.end()) indices.assign(it->second.begin(), it->second.end());
  llvm::sort(indices);
  return indices;
}

void RoleSlice::emit(OpBuilder& builder, IRMapping& map, EmitGroup emitGroup) const {
  func::FuncOp func = func_;
  emitBlock(builder, func.getBody().front(), map, emitGroup);
}

void RoleSlice::emitBlock(OpBuilder& builder, Block& block, IRMapping& map, EmitGroup emitGroup) const {
  for (Operation& op : block) {
    if (auto it = groupsAt_.find(&op); it != groupsAt_.end())
      for (const LoadGroup* group : it->second) emitGroup(builder, *group, map);
    if (!kept_.contains(&op)) continue;
    if (op.getNumResults() == 1 && map.contains(op.getResult(0))) continue;  // the caller's
    if (auto loop = dyn_cast<scf::ForOp>(op))
      emitFor(builder, loop, map, emitGroup);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      emitIf(builder, branch, map, emitGroup);
    else if (auto loop = dyn_cast<scf::WhileOp>(op))
      emitWhile(builder, loop, map, emitGroup);
    else
      builder.clone(op, map);
  }
}

namespace {

/// The block of a region the builder made, empty.
OpBuilder inside(Region& region) {
  if (region.empty()) region.emplaceBlock();
  Block& block = region.front();
  if (!block.empty() && block.back().hasTrait<OpTrait::IsTerminator>()) block.back().erase();
  return OpBuilder::atBlockEnd(&block);
}

SmallVector<Value> pick(const IRMapping& map, ValueRange from, ArrayRef<unsigned> indices) {
  SmallVector<Value> values;
  for (unsigned i : indices) values.push_back(map.lookupOrDefault(from[i]));
  return values;
}

void mapResults(IRMapping& map, Operation* from, Operation* to, ArrayRef<unsigned> indices) {
  for (auto [position, index] : llvm::enumerate(indices)) map.map(from->getResult(index), to->getResult(position));
}

}  // namespace

void RoleSlice::emitFor(OpBuilder& builder, scf::ForOp op, IRMapping& map, EmitGroup emitGroup) const {
  SmallVector<unsigned> carried = sorted(carried_, op);
  auto made = scf::ForOp::create(builder, op.getLoc(), map.lookupOrDefault(op.getLowerBound()),
                                 map.lookupOrDefault(op.getUpperBound()), map.lookupOrDefault(op.getStep()),
                                 pick(map, op.getInitArgs(), carried));
  made.setUnsignedCmp(op.getUnsignedCmp());
  map.map(op.getInductionVar(), made.getInductionVar());
  for (auto [position, index] : llvm::enumerate(carried))
    map.map(op.getRegionIterArg(index), made.getRegionIterArg(position));
  OpBuilder body = inside(made.getRegion());
  emitBlock(body, *op.getBody(), map, emitGroup);
  scf::YieldOp::create(body, op.getLoc(), pick(map, op.getBody()->getTerminator()->getOperands(), carried));
  mapResults(map, op, made, carried);
}

void RoleSlice::emitIf(OpBuilder& builder, scf::IfOp op, IRMapping& map, EmitGroup emitGroup) const {
  SmallVector<unsigned> results = sorted(ifResults_, op);
  SmallVector<Type> types;
  for (unsigned i : results) types.push_back(op.getResult(i).getType());
  auto made = scf::IfOp::create(builder, op.getLoc(), types, map.lookupOrDefault(op.getCondition()),
                                !op.getElseRegion().empty());
  for (auto [from, to] : llvm::zip(op->getRegions(), made->getRegions())) {
    if (from.empty()) continue;
    OpBuilder body = inside(to);
    emitBlock(body, from.front(), map, emitGroup);
    scf::YieldOp::create(body, op.getLoc(), pick(map, from.front().getTerminator()->getOperands(), results));
  }
  mapResults(map, op, made, results);
}

void RoleSlice::emitWhile(OpBuilder& builder, scf::WhileOp op, IRMapping& map, EmitGroup emitGroup) const {
  SmallVector<unsigned> before = sorted(before_, op), after = sorted(after_, op);
  SmallVector<Type> types;
  for (unsigned i : after) types.push_back(op.getResult(i).getType());
  SmallVector<Value> inits = pick(map, op.getInits(), before);
  auto made = scf::WhileOp::create(builder, op.getLoc(), types, inits);
  auto enter = [&](Region& region, Block& from, ArrayRef<unsigned> indices) {
    if (region.empty()) region.emplaceBlock();
    for (unsigned i : indices)
      map.map(from.getArgument(i), region.addArgument(from.getArgument(i).getType(), op.getLoc()));
    return inside(region);
  };
  OpBuilder first = enter(made.getBefore(), *op.getBeforeBody(), before);
  emitBlock(first, *op.getBeforeBody(), map, emitGroup);
  scf::ConditionOp::create(first, op.getLoc(), map.lookupOrDefault(op.getConditionOp().getCondition()),
                           pick(map, op.getConditionOp().getArgs(), after));
  OpBuilder second = enter(made.getAfter(), *op.getAfterBody(), after);
  emitBlock(second, *op.getAfterBody(), map, emitGroup);
  scf::YieldOp::create(second, op.getLoc(), pick(map, op.getYieldOp().getOperands(), before));
  mapResults(map, op, made, after);
}

}  // namespace tile::ir
