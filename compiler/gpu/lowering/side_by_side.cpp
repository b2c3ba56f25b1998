// side_by_side.cpp - see side_by_side.h.
#include "compiler/gpu/lowering/side_by_side.h"

#include <algorithm>
#include <cstdlib>

namespace tile::ir {
namespace {

/// Shorter ones the assembler overlaps by itself.
constexpr size_t kFewestSteps = 24;
/// An error function of eight took 255 registers and spilled, of four 214.
size_t elementsTogether() {
  const char* chosen = std::getenv("TILE_SIDE_BY_SIDE");  // an experiment: to be timed
  return chosen ? std::max(std::atoi(chosen), 1) : 4;
}

llvm::Instruction* lastIn(llvm::IRBuilderBase& b) {
  const auto at = b.GetInsertPoint();
  return at == b.GetInsertBlock()->begin() ? nullptr : &*std::prev(at);
}

}  // namespace

void SideBySide::begin() {
  block_ = b_.GetInsertBlock();
  before_ = lastIn(b_);
}

void SideBySide::end() {
  if (b_.GetInsertBlock() != block_) return elements_.clear();  // not straight-line code
  llvm::SmallVector<llvm::Instruction*> steps;
  for (auto it = before_ ? std::next(before_->getIterator()) : block_->begin(); it != b_.GetInsertPoint(); ++it)
    steps.push_back(&*it);
  if (steps.size() < kFewestSteps) return;
  elements_.push_back(std::move(steps));
  if (elements_.size() >= elementsTogether()) finish();
}

void SideBySide::finish() {
  size_t longest = 0;
  for (const auto& steps : elements_) longest = std::max(longest, steps.size());
  if (elements_.size() > 1)
    for (size_t i = 0; i < longest; ++i)
      for (const auto& steps : elements_)
        if (i < steps.size()) steps[i]->moveBefore(*b_.GetInsertBlock(), b_.GetInsertPoint());
  elements_.clear();
}

}  // namespace tile::ir
