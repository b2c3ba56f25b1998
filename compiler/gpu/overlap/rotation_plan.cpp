// rotation_plan.cpp - which products of a loop move an iteration later, with what, and which come first.
#include "compiler/gpu/overlap/rotation.h"

namespace tile::ir {
using namespace mlir;

bool isMovable(Operation* op) {
  return isPure(op) || isa<LoadSharedOp, GatherSharedOp, SmemLoadOp, LoadOp, GatherOp, MmaOp>(op);
}

bool RotationPlan::find() {
  if (loop_.getUnsignedCmp() || !bodyAllows()) return false;
  findFollowers();
  findDelayed();
  while (!delayed_.empty() && !closeDelayed()) {
  }
  if (delayed_.empty()) return false;
  return findCrossing() && findEarly();
}

bool RotationPlan::canBranch() const {
  llvm::DenseSet<Value> accumulators;
  for (BlockArgument arg : loop_.getRegionIterArgs())
    if (isLate(arg)) {
      Value from = accumulated(arg);
      if (!from || !crossing_.contains(from) || !accumulators.insert(from).second) return false;
    }
  return llvm::all_of(crossing_, [](Value v) {
    return v.getType().isIntOrIndexOrFloat() || isa<RankedTensorType>(v.getType());
  });
}

int64_t RotationPlan::registersInFlight(int64_t threads) const {
  int64_t bits = 0;
  auto count = [&](Value tile) {
    auto type = dyn_cast<RankedTensorType>(tile.getType());
    if (type) bits += type.getNumElements() * type.getElementTypeBitWidth();
  };
  for (Operation* op : delayed_)
    if (MmaOp product = asyncProduct(op)) {
      MmaOp before = asyncProduct(product.getAcc().getDefiningOp());
      if (!before || !delayed_.contains(before)) count(product.getResult());
      count(product.getA());
    }
  for (Operation* op : early_)
    if (MmaOp product = asyncProduct(op)) count(product.getResult());
  return bits / 32 / threads;
}

/// No writes that a moved load could see, no loops or products inside branches.
bool RotationPlan::bodyAllows() {
  return !loop_.getRegion()
              .walk([&](Operation* op) {
                bool stops =
                    isa<LoopLikeOpInterface, StoreOp, ScatterOp, AccumulateOp, AtomicRmwOp, AtomicCasOp>(op) ||
                    (isa<MmaOp>(op) && !inBody(op));
                return stops ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

/// Ops that need the result of a product of this iteration.
void RotationPlan::findFollowers() {
  for (Operation& op : body_) {
    bool follows = false;
    op.walk([&](Operation* inner) {
      for (Value operand : inner->getOperands())
        if (Operation* def = defInBody(operand)) follows |= followers_.contains(def) || asyncProduct(def);
    });
    if (follows) followers_.insert(&op);
  }
}

bool RotationPlan::isFollower(Value value) const {
  Operation* def = defInBody(value);
  return def && (followers_.contains(def) || asyncProduct(def));
}

void RotationPlan::findDelayed() {
  for (Operation& op : llvm::reverse(body_)) {
    MmaOp product = asyncProduct(&op);
    if (!product || !isa<RankedTensorType>(product.getA().getType()) || !isFollower(product.getA())) continue;
    bool isCarried = llvm::all_of(product.getResult().getUses(), [&](OpOperand& use) {
      if (use.getOwner() == body_.getTerminator()) return true;
      MmaOp next = asyncProduct(use.getOwner());
      return next && delayed_.contains(next) && &use == &next.getAccMutable();
    });
    if (isCarried && !product.getResult().use_empty()) delayed_.insert(product);
  }
}

bool RotationPlan::usersAreDelayed(Operation* op) {
  return llvm::all_of(op->getUsers(),
                      [&](Operation* user) { return delayed_.contains(body_.findAncestorOpInBlock(*user)); });
}

/// Adds what makes the second operands. False: a product has one that others need now; it left the set, try again.
bool RotationPlan::closeDelayed() {
  SmallVector<MmaOp> products;
  for (Operation* op : delayed_)
    if (auto product = asyncProduct(op)) products.push_back(product);
  delayed_.remove_if([](Operation* op) { return !asyncProduct(op); });
  SmallVector<Value> wanted;
  for (MmaOp product : products) wanted.push_back(product.getB());
  while (!wanted.empty()) {
    Operation* op = defInBody(wanted.pop_back_val());
    if (!op || delayed_.contains(op) || !isMovable(op) || op->getNumRegions() || asyncProduct(op) ||
        !usersAreDelayed(op))
      continue;
    delayed_.insert(op);
    llvm::append_range(wanted, op->getOperands());
  }
  for (MmaOp product : products) {
    Operation* def = defInBody(product.getB());
    if (!def || delayed_.contains(def)) continue;
    dropProduct(product);
    return false;
  }
  return true;
}

/// With the products that feed its accumulator: their results have a user that stays.
void RotationPlan::dropProduct(MmaOp product) {
  delayed_.remove(product);
  const MmaOp before = asyncProduct(defInBody(product.getAcc()));
  if (before && delayed_.contains(before)) dropProduct(before);
}

/// What delayed ops take from the rest of their iteration. Tiles are the products' operands only: others would cost
/// registers.
bool RotationPlan::findCrossing() {
  for (Operation& op : body_) {
    if (!delayed_.contains(&op)) continue;
    for (Value value : op.getOperands()) {
      bool isInside = value.getParentBlock() == &body_;
      if (!isInside || makesLate(value)) continue;
      if (!asyncProduct(&op) && !value.getType().isIntOrIndexOrFloat() && !isa<PtrType, ViewType>(value.getType()))
        return false;
      if (isa<SmemType>(value.getType())) return false;
      crossing_.insert(value);
    }
  }
  return true;
}

Value RotationPlan::accumulated(BlockArgument arg) const {
  Value value = yielded(arg);
  while (Operation* op = defInBody(value)) {
    MmaOp product = asyncProduct(op);
    if (!delayed_.contains(op)) return value;
    if (!product) return {};
    value = product.getAcc();
  }
  return value;
}

/// Adds the op and what it needs of the iteration to `slice`; false when that cannot come first.
bool RotationPlan::collect(Value value, llvm::SetVector<Operation*>& slice) {
  if (auto arg = dyn_cast<BlockArgument>(value)) return arg.getOwner() != &body_ || !isLate(arg);
  Operation* op = defInBody(value);
  if (!op || slice.contains(op)) return true;
  if (delayed_.contains(op) || !isMovable(op)) return false;
  if (followers_.contains(op) && !asyncProduct(op)) return false;
  slice.insert(op);
  bool ok = true;
  op->walk([&](Operation* inner) {
    for (OpOperand& operand : inner->getOpOperands()) {
      MmaOp product = asyncProduct(inner);
      bool reads = defInBody(operand.get()) && asyncProduct(defInBody(operand.get())) &&
                   !(product && &operand == &product.getAccMutable());
      ok = ok && !reads && collect(operand.get(), slice);
    }
  });
  return ok;
}

bool RotationPlan::findEarly() {
  bool found = false;
  for (Operation& op : body_) {
    MmaOp product = asyncProduct(&op);
    if (!product || delayed_.contains(&op)) continue;
    llvm::SetVector<Operation*> slice = early_;
    if (!collect(product.getResult(), slice)) continue;
    early_ = slice;
    found = true;
  }
  return found;
}

}  // namespace tile::ir
