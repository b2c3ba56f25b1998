// known_divisors.h - divisions by numbers that are known before they are needed, as multiplications.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// Quotients and remainders of 32 bits by a number that a loop does not change, or that many elements are divided by:
/// a factor and a shift are computed once, in front of the loop, and every division is the upper half of a product and
/// a shift. Exact for all dividends and divisors, signed or not. No instruction divides integers on GPUs (an assembler
/// makes 15 to 20 of each division, and computes the reciprocal anew in every iteration), and none divides vectors on
/// hosts. By zero the quotient is the dividend.
struct KnownDivisors : llvm::PassInfoMixin<KnownDivisors> {
  explicit KnownDivisors(bool forHost) : forHost_(forHost) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  bool forHost_;
};

}  // namespace tile::ir
