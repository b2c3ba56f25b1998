// control.cpp - scf loops and branches as basic blocks. Scalars become phis; carried tiles live in the buffers of the
// Plan, and are copied only where the plan could not give both ends one buffer.
#include "compiler/host/emitter.h"
#include "compiler/host/nest.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

bool isSamePlace(const Plan& plan, const Ref& x, const Ref& y) {
  return plan.root(x.buffer) == plan.root(y.buffer) && x.offset == y.offset && x.strides == y.strides;
}

}  // namespace

void Emitter::copy(const Ref& from, const Ref& to, Type element, ArrayRef<int64_t> shape) {
  Nest nest(*this, shape);
  nest.uses(from);
  nest.uses(to);
  int64_t n = nest.dims().back();
  unsigned widest = nest.isContiguous(from) && nest.isContiguous(to) ? vectorWidth(Numbers::bytes(element), n) : 1;
  (void)nest.run(widest, [&](unsigned width) {
    numbers.store(element, numbers.load(element, nest.address(from, element), width), nest.address(to, element));
    return success();
  });
}

/// Tiles only: scalars are the caller's phis. `at` is the op whose operands are carried (a terminator or a loop).
LogicalResult Emitter::carryAll(Operation* at, ValueRange from, ValueRange to) {
  for (auto [i, source] : llvm::enumerate(from))
    if (const Ref* parked = plan.scratch(at, static_cast<int>(i)))
      copy(*plan.place(source), *parked, elementOf(source), shapeOf(source));
  for (auto [i, pair] : llvm::enumerate(llvm::zip(from, to))) {
    auto [source, target] = pair;
    if (!isTile(source)) continue;
    const Ref& goal = *plan.place(target);
    if (const Ref* parked = plan.scratch(at, static_cast<int>(i))) {
      copy(*parked, goal, elementOf(source), shapeOf(source));
      continue;
    }
    const Ref* place = plan.place(source);
    if (place && isSamePlace(plan, *place, goal)) continue;
    if (failed(evaluateInto(source, goal, elementOf(source)))) return failure();
  }
  return success();
}

LogicalResult Emitter::emitFor(scf::ForOp op) {
  llvm::Value *lo = scalar(op.getLowerBound()), *hi = scalar(op.getUpperBound()), *step = scalar(op.getStep());
  llvm::Type* type = lo->getType();
  llvm::Value *zero = llvm::ConstantInt::get(type, 0), *one = llvm::ConstantInt::get(type, 1);
  // Trips = ceil((hi - lo) / step) in unsigned arithmetic, which cannot overflow; a step that is not positive runs
  // nothing.
  bool isUnsigned = op.getUnsignedCmp();
  llvm::Value* runs = b.CreateAnd(isUnsigned ? b.CreateICmpULT(lo, hi) : b.CreateICmpSLT(lo, hi),
                                  isUnsigned ? b.CreateICmpNE(step, zero) : b.CreateICmpSGT(step, zero));
  llvm::Value* divisor = b.CreateSelect(runs, step, one);
  llvm::Value* trips = b.CreateAdd(b.CreateUDiv(b.CreateSub(b.CreateSub(hi, lo), one), divisor), one);
  trips = b.CreateSelect(runs, trips, zero, "trips");
  if (failed(carryAll(op, op.getInitArgs(), op.getRegionIterArgs()))) return failure();

  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(b.getContext(), "for", function);
  auto* body = llvm::BasicBlock::Create(b.getContext(), "for.body", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "for.done");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* trip = b.CreatePHI(type, 2, "trip");
  trip->addIncoming(zero, before);
  openPhis(op.getInitArgs(), op.getRegionIterArgs(), before);
  b.CreateCondBr(b.CreateICmpULT(trip, trips), body, after);
  b.SetInsertPoint(body);
  setScalar(op.getInductionVar(), b.CreateAdd(lo, b.CreateMul(trip, step)));
  Operation* yield = op.getBody()->getTerminator();
  if (failed(emitBlock(*op.getBody())) || failed(carryAll(yield, yield->getOperands(), op.getRegionIterArgs())))
    return failure();
  trip->addIncoming(b.CreateAdd(trip, one), b.GetInsertBlock());
  closePhis(yield->getOperands(), op.getRegionIterArgs());
  b.CreateBr(head);
  after->insertInto(function);
  b.SetInsertPoint(after);
  for (auto [arg, result] : llvm::zip(op.getRegionIterArgs(), op.getResults()))
    if (!isTile(arg)) words[result] = Words(words[arg]);
  return success();
}

LogicalResult Emitter::emitWhile(scf::WhileOp op) {
  if (failed(carryAll(op, op.getInits(), op.getBeforeArguments()))) return failure();
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(b.getContext(), "while", function);
  auto* body = llvm::BasicBlock::Create(b.getContext(), "while.body", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "while.done");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  openPhis(op.getInits(), op.getBeforeArguments(), before);
  if (failed(emitBlock(*op.getBeforeBody()))) return failure();
  scf::ConditionOp condition = op.getConditionOp();
  // The results share the buffers of the `after` arguments: the last condition leaves them in place.
  if (failed(carryAll(condition, condition.getArgs(), op.getAfterArguments()))) return failure();
  for (auto [value, arg, result] : llvm::zip(condition.getArgs(), op.getAfterArguments(), op.getResults()))
    if (!isTile(value)) {
      Words w = words[value];
      words[arg] = w;
      words[result] = w;
    }
  b.CreateCondBr(scalar(condition.getCondition()), body, after);
  b.SetInsertPoint(body);
  Operation* yield = op.getYieldOp();
  if (failed(emitBlock(*op.getAfterBody())) || failed(carryAll(yield, yield->getOperands(), op.getBeforeArguments())))
    return failure();
  closePhis(yield->getOperands(), op.getBeforeArguments());
  b.CreateBr(head);
  after->insertInto(function);
  b.SetInsertPoint(after);
  return success();
}

LogicalResult Emitter::emitIf(scf::IfOp op) {
  SmallVector<SmallVector<llvm::Value*>, 2> yielded;
  SmallVector<llvm::BasicBlock*, 2> ends;
  LogicalResult ok = success();
  auto arm = [&](Region& region) {
    yielded.emplace_back();
    if (succeeded(ok) && !region.empty()) {
      Operation* yield = region.front().getTerminator();
      if (failed(emitBlock(region.front())) || failed(carryAll(yield, yield->getOperands(), op.getResults())))
        ok = failure();
      if (succeeded(ok))
        for (Value v : yield->getOperands())
          if (!isTile(v)) yielded.back().append(words[v].begin(), words[v].end());
    }
    ends.push_back(b.GetInsertBlock());
  };
  auto* yes = llvm::BasicBlock::Create(b.getContext(), "if", function);
  auto* no = llvm::BasicBlock::Create(b.getContext(), "else");
  auto* after = llvm::BasicBlock::Create(b.getContext(), "if.done");
  b.CreateCondBr(scalar(op.getCondition()), yes, no);
  b.SetInsertPoint(yes);
  arm(op.getThenRegion());
  b.CreateBr(after);
  no->insertInto(function);
  b.SetInsertPoint(no);
  arm(op.getElseRegion());
  b.CreateBr(after);
  after->insertInto(function);
  b.SetInsertPoint(after);
  if (failed(ok)) return failure();
  size_t next = 0;
  for (OpResult result : op.getResults()) {
    if (isTile(result)) continue;
    Words w;
    for (size_t i = 0, n = wordsOf(result.getType()); i < n; ++i, ++next) {
      llvm::PHINode* phi = b.CreatePHI(yielded[0][next]->getType(), 2);
      for (int side : {0, 1}) phi->addIncoming(yielded[side][next], ends[side]);
      w.push_back(phi);
    }
    words[result] = w;
  }
  return success();
}

size_t Emitter::wordsOf(Type type) {
  auto view = dyn_cast<ViewType>(type);
  return view ? 1 + 2 * view.getRank() : 1;
}

void Emitter::openPhis(ValueRange initial, ValueRange args, llvm::BasicBlock* from) {
  for (auto [value, arg] : llvm::zip(initial, args)) {
    if (isTile(value)) continue;
    Words w;
    for (llvm::Value* word : Words(words[value])) {
      llvm::PHINode* phi = b.CreatePHI(word->getType(), 2);
      phi->addIncoming(word, from);
      w.push_back(phi);
    }
    words[arg] = w;
  }
}

void Emitter::closePhis(ValueRange next, ValueRange args) {
  for (auto [value, arg] : llvm::zip(next, args)) {
    if (isTile(value)) continue;
    for (auto [phi, word] : llvm::zip(words[arg], words[value]))
      llvm::cast<llvm::PHINode>(phi)->addIncoming(word, b.GetInsertBlock());
  }
}

}  // namespace tile::ir::host
