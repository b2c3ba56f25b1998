// definitions.cpp - see definitions.h.
#include "compiler/analysis/definitions.h"

namespace tile::ir {
using namespace mlir;

namespace {

class Search {
 public:
  explicit Search(ValueRange values) {
    visit(values);
    while (!todo_.empty()) follow(todo_.pop_back_val());
  }
  llvm::SetVector<Operation*> found;

 private:
  void visit(ValueRange values) {
    for (Value value : values)
      if (seen_.insert(value).second) todo_.push_back(value);
  }

  void follow(Value value) {
    auto arg = dyn_cast<BlockArgument>(value);
    Operation* op = arg ? arg.getOwner()->getParentOp() : value.getDefiningOp();
    const unsigned number = arg ? arg.getArgNumber() : cast<OpResult>(value).getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      visit({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
      if (arg && arg == loop.getInductionVar()) return;
      const unsigned carried = arg ? number - loop.getNumInductionVars() : number;
      visit({loop.getInitArgs()[carried], loop.getYieldedValues()[carried]});
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      visit(loop.getConditionOp().getCondition());
      if (arg && arg.getOwner() == loop.getBeforeBody())
        visit({loop.getInits()[number], loop.getYieldOp()->getOperand(number)});
      else
        visit(loop.getConditionOp().getArgs()[number]);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      visit(branch.getCondition());
      for (Region& region : branch->getRegions()) visit(region.front().getTerminator()->getOperand(number));
    } else if (!isa<FunctionOpInterface>(op)) {
      found.insert(op);
      visit(op->getOperands());
    }
  }

  llvm::DenseSet<Value> seen_;
  SmallVector<Value> todo_;
};

}  // namespace

llvm::SetVector<Operation*> definitionsBehind(ValueRange values) { return std::move(Search(values).found); }

BlockArgument argumentOfKernel(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && isa_and_nonnull<FunctionOpInterface>(argument.getOwner()->getParentOp()) ? argument
                                                                                              : BlockArgument();
}

}  // namespace tile::ir
