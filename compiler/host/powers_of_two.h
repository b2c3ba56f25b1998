// powers_of_two.h - AVX-512's instructions for splitting off and applying powers of two, on f32 of any width.
#pragma once
#include "compiler/lowering/math_functions.h"

namespace tile::ir::host {

class Avx512PowersOfTwo : public PowersOfTwo {
 public:
  /// `lanes` of the widest vectors to use: 8 or 16.
  explicit Avx512PowersOfTwo(unsigned lanes) : lanes_(lanes) {}
  unsigned lanes() const { return lanes_; }
  llvm::Value* remainder(llvm::IRBuilderBase& b, llvm::Value* x) const override;
  llvm::Value* scale(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* n) const override;

 private:
  unsigned lanes_;
};

}  // namespace tile::ir::host
