// scalars.cpp - ops on numbers, pointers and views: one LLVM value or a few of them; the code of combiners.
#include "compiler/host/emitter.h"
#include "compiler/host/nest.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir::host {
using namespace mlir;

LogicalResult Emitter::emitScalar(Operation* op) {
  auto set = [&](llvm::Value* v) {
    setScalar(op->getResult(0), v);
    return success();
  };
  auto field = [&](int32_t index, StringRef name) {
    return set(b.CreateLoad(b.getInt32Ty(), b.CreateConstInBoundsGEP1_32(b.getInt32Ty(), program, index), name.str()));
  };
  return llvm::TypeSwitch<Operation*, LogicalResult>(op)
      .Case<arith::ConstantOp>([&](auto c) {
        if (c.getType().isIndex()) return set(i64(cast<IntegerAttr>(c.getValue()).getInt()));
        return set(numbers.constant(c.getValue()));
      })
      .Case<ProgramIdOp>([&](auto p) { return field(p.getAxis(), "program_id"); })
      .Case<NumProgramsOp>([&](auto p) { return field(3 + p.getAxis(), "num_programs"); })
      .Case<PtrAddOp>([&](auto p) {
        return set(
            offsetBy(scalar(p.getPtr()), cast<PtrType>(p.getPtr().getType()).getElementType(), asI64(p.getOffset())));
      })
      .Case<PtrToIntOp>([&](auto p) { return set(b.CreatePtrToInt(scalar(p.getPtr()), b.getInt64Ty())); })
      .Case<IntToPtrOp>([&](auto p) { return set(b.CreateIntToPtr(scalar(p.getAddress()), b.getPtrTy())); })
      .Case<MakeViewOp>([&](auto v) {
        Words w{scalar(v.getPtr())};
        for (Value d : v.getDims()) w.push_back(scalar(d));
        for (Value s : v.getStrides()) w.push_back(scalar(s));
        words[v.getResult()] = w;
        return success();
      })
      .Case<ViewPtrOp>([&](auto v) { return set(view(v.getView()).pointer); })
      .Case<ViewDimOp>([&](auto v) { return set(view(v.getView()).dims[v.getDim()]); })
      .Case<ViewStrideOp>([&](auto v) { return set(view(v.getView()).strides[v.getDim()]); })
      .Case<AssumeOp>([&](auto a) { return set(scalar(a.getValue())); })
      .Case<ItemOp>([&](auto item) {
        Nest nest(*this, shapeOf(item.getSource()));
        nest.uses(item.getSource());
        nest.dims();
        llvm::Value* v = nest.eval(item.getSource(), 1);
        return v ? set(v) : failure();
      })
      .Case<AssumeTrueOp>([&](auto a) {
        b.CreateAssumption(scalar(a.getCondition()));
        return success();
      })
      .Case<arith::SelectOp>([&](auto s) {  // of numbers, pointers or whole views
        Words w;
        for (auto [yes, no] : llvm::zip(words[s.getTrueValue()], words[s.getFalseValue()]))
          w.push_back(b.CreateSelect(scalar(s.getCondition()), yes, no));
        words[s.getResult()] = w;
        return success();
      })
      .Default([&](Operation* op) -> LogicalResult {
        SmallVector<llvm::Value*, 4> args;
        for (Value v : op->getOperands()) {
          if (!words.contains(v)) return op->emitError() << op->getName() << " is not known to the host target";
          args.push_back(scalar(v));
        }
        Numbers::Values results;
        if (isElementwise(op)) results = numbers.apply(op, args);
        if (results.size() != op->getNumResults() || results.empty())
          return op->emitError() << op->getName() << " is not known to the host target";
        for (auto [result, value] : llvm::zip(op->getResults(), results)) setScalar(result, value);
        return success();
      });
}

llvm::Value* Emitter::inNextProgram(Value v, llvm::DenseMap<Value, llvm::Value*>& made) {
  if (auto it = made.find(v); it != made.end()) return it->second;
  Operation* op = v.getDefiningOp();
  if (!op || isa<ViewDimOp, ViewStrideOp, arith::ConstantOp, NumProgramsOp>(op)) return scalar(v);
  if (auto id = dyn_cast<ProgramIdOp>(op))
    return id.getAxis() == 0 ? b.CreateAdd(scalar(v), llvm::ConstantInt::get(scalar(v)->getType(), 1)) : scalar(v);
  if (!isElementwise(op) || op->getNumResults() != 1 || !v.getType().isIntOrIndex()) return nullptr;
  SmallVector<llvm::Value*, 2> args;
  for (Value operand : op->getOperands()) {
    args.push_back(inNextProgram(operand, made));
    if (!args.back()) return nullptr;
  }
  return made[v] = numbers.apply(op, args)[0];
}

FailureOr<SmallVector<llvm::Value*>> Emitter::combine(Region& combiner, ArrayRef<llvm::Value*> args) {
  Block& block = combiner.front();
  llvm::DenseMap<Value, llvm::Value*> local;
  for (auto [arg, value] : llvm::zip(block.getArguments(), args)) local[arg] = value;
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(args[0]->getType());
  unsigned width = vector ? vector->getNumElements() : 1;
  auto get = [&](Value v) {
    auto it = local.find(v);
    return it != local.end() ? it->second : numbers.splat(scalar(v), width);
  };
  for (Operation& op : block.without_terminator()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      local[constant] = numbers.splat(numbers.constant(constant.getValue()), width);
      continue;
    }
    SmallVector<llvm::Value*, 4> operands;
    for (Value v : op.getOperands()) operands.push_back(get(v));
    Numbers::Values results = op.getNumRegions() == 0 ? numbers.apply(&op, operands) : Numbers::Values{};
    if (results.size() != op.getNumResults()) {
      op.emitError() << "a combiner may only hold elementwise arithmetic, found " << op.getName();
      return failure();
    }
    for (auto [result, value] : llvm::zip(op.getResults(), results)) local[result] = value;
  }
  SmallVector<llvm::Value*> yielded;
  for (Value v : block.getTerminator()->getOperands()) yielded.push_back(get(v));
  return yielded;
}

}  // namespace tile::ir::host
