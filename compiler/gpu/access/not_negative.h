// not_negative.h - which scalars are known not to be negative, be it because launches look at arguments.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/gpu/access/counts.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {

/// The loop whose induction variable the value is; null: it is none.
inline mlir::scf::ForOp loopOf(mlir::Value v) {
  auto arg = mlir::dyn_cast<mlir::BlockArgument>(v);
  auto loop = arg ? mlir::dyn_cast<mlir::scf::ForOp>(arg.getOwner()->getParentOp()) : mlir::scf::ForOp();
  return loop && arg == loop.getInductionVar() ? loop : mlir::scf::ForOp();
}

class NotNegative {
 public:
  explicit NotNegative(const Facts& facts) : facts_(facts) {}

  /// Whether to rely from now on on arguments above 0. Forgets which ones.
  void rely(bool relies) { relies_ = relies, relied_.clear(); }
  /// Numbers of the arguments that have to be above 0.
  llvm::ArrayRef<int32_t> relied() const { return relied_.getArrayRef(); }

  /// 0 or more. `depth`: operations seen on the way to it.
  bool isCount(mlir::Value v, int depth = 0) {
    using namespace mlir;
    v = numberBehind(v);
    if (depth > 12) return false;
    auto is = [&](Value x) { return isCount(x, depth + 1); };
    if (isa_and_nonnull<ProgramIdOp, NumProgramsOp, arith::CeilDivUIOp>(v.getDefiningOp())) return true;
    if (facts_.rangeOf(v).min >= 0) return true;
    if (scf::ForOp loop = loopOf(v)) return is(loop.getLowerBound());
    if (auto arg = dyn_cast<BlockArgument>(v)) return isAdvanced(arg, depth);
    Operation* op = v.getDefiningOp();
    if (isa_and_nonnull<arith::MulIOp>(op)) return isProduct(op->getOperand(0), op->getOperand(1), depth);
    if (isa_and_nonnull<arith::AddIOp, arith::MinSIOp>(op)) return is(op->getOperand(0)) && is(op->getOperand(1));
    if (isa_and_nonnull<arith::MaxSIOp>(op)) return is(op->getOperand(0)) || is(op->getOperand(1));
    if (isa_and_nonnull<arith::SubIOp>(op)) return isRemainder(cast<arith::SubIOp>(op)) && is(op->getOperand(0));
    // Divisors are taken to be positive where nothing says that they are not: many are numbers of the launch.
    if (isa_and_nonnull<arith::DivSIOp>(op) && facts_.rangeOf(op->getOperand(1)).max <= 0) return false;
    return isa_and_nonnull<arith::DivSIOp, arith::RemSIOp>(op) && is(op->getOperand(0));
  }
  /// A sum of such numbers and arguments that are relied on.
  bool isCount(const LinearForm& form) {
    return form.constant >= 0 && llvm::all_of(form.symbols, [&](const auto& s) {
             return s.second > 0 && (isCount(s.first) || isRelied(s.first));
           });
  }

 private:
  /// x - x / n * n
  static bool isRemainder(mlir::arith::SubIOp sub) {
    auto product = sub.getRhs().getDefiningOp<mlir::arith::MulIOp>();
    if (!product) return false;
    for (auto [quotient, by] : {std::pair(product.getLhs(), product.getRhs()), {product.getRhs(), product.getLhs()}})
      if (auto divide = quotient.getDefiningOp<mlir::arith::DivSIOp>())
        if (divide.getLhs() == sub.getLhs() && divide.getRhs() == by) return true;
    return false;
  }
  /// A number that a loop carries from a count on, and adds counts to.
  bool isAdvanced(mlir::BlockArgument arg, int depth) {
    auto loop = mlir::dyn_cast<mlir::scf::ForOp>(arg.getOwner()->getParentOp());
    if (!loop) return false;
    auto add = loop.getTiedLoopYieldedValue(arg)->get().getDefiningOp<mlir::arith::AddIOp>();
    if (!add || (add.getLhs() != arg && add.getRhs() != arg)) return false;
    const mlir::Value by = add.getLhs() == arg ? add.getRhs() : add.getLhs();
    return by != arg && isCount(by, depth + 1) && isCount(loop.getTiedLoopInit(arg)->get(), depth + 1);
  }
  /// An argument: launches have to look that it is above 0.
  bool isRelied(mlir::Value v) {
    auto arg = mlir::dyn_cast<mlir::BlockArgument>(numberBehind(v));
    if (!relies_ || !arg || !mlir::isa<mlir::func::FuncOp>(arg.getOwner()->getParentOp())) return false;
    relied_.insert(static_cast<int32_t>(arg.getArgNumber()));
    return true;
  }
  /// A count times another one, or times an argument.
  bool isProduct(mlir::Value a, mlir::Value b, int depth) {
    const bool first = isCount(a, depth + 1), second = isCount(b, depth + 1);
    return (first && second) || (first && isRelied(b)) || (second && isRelied(a));
  }

  const Facts& facts_;
  bool relies_ = false;
  llvm::SmallSetVector<int32_t, 4> relied_;
};

}  // namespace tile::ir
