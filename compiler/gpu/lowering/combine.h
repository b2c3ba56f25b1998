// combine.h - the combiner of a reduction or scan applied to values that may be padding.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// One value per operand of the reduction.
using Tuple = Regs;

class Combiner {
 public:
  Combiner(Emitter& e, mlir::Region& region) : e(e), region_(region) {}
  /// combiner(acc, next); only `acc` where `nextValid` (null: always true) does not hold.
  Tuple operator()(const Tuple& acc, const Tuple& next, llvm::Value* nextValid = nullptr) {
    Regs args(acc);
    args.append(next);
    auto both = e.inlineRegion(region_, args);
    if (mlir::failed(both)) {
      failed_ = true;
      return acc;
    }
    return nextValid ? select(nextValid, *both, acc) : *both;
  }
  Tuple select(llvm::Value* condition, const Tuple& a, const Tuple& b) {
    Tuple result;
    for (auto [x, y] : llvm::zip(a, b)) result.push_back(e.b.CreateSelect(condition, x, y));
    return result;
  }
  template <class F>
  Tuple map(const Tuple& values, F&& f) {
    Tuple result;
    for (llvm::Value* value : values) result.push_back(f(value));
    return result;
  }
  bool failed() const { return failed_; }

 private:
  Emitter& e;
  mlir::Region& region_;
  bool failed_ = false;
};

}  // namespace tile::ir
