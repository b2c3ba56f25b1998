// wgmma_group.h - the instructions of one group of products by warpgroups, as text.
#pragma once
#include <string>

#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// Descriptors of one instruction: those of their buffers, and the bytes from there.
struct DescriptorPlace {
  llvm::Value* descriptor = nullptr;
  int64_t bytes = 0;
  bool transposed = false;
};

/// The instructions of a group as one statement of assembly. A statement for each would repeat its accumulators, tied,
/// for every step of k: most of LLVM's time went into joining those again.
class GroupOfProducts {
 public:
  /// acc = a * b when `fromZero`, else acc += a * b.
  GroupOfProducts(Emitter& e, MmaOp op, llvm::MutableArrayRef<llvm::Value*> acc, bool fromZero);

  /// The product into the accumulators [first, first + count). `registers`: four of a, which then has no place.
  /// `starts`: the first one into them.
  void add(int first, int count, llvm::ArrayRef<llvm::Value*> registers, const DescriptorPlace& a,
           const DescriptorPlace& b, bool starts);
  /// Writes the statement; the accumulators become its results.
  void emit();

 private:
  void constrain(const std::string& one);
  std::string input(llvm::Value* v, const char* kind);
  std::string descriptor(const DescriptorPlace& place, const char* name);

  Emitter& e_;
  MmaOp op_;
  llvm::MutableArrayRef<llvm::Value*> acc_;
  bool fromZero_;
  std::string text_, constraints_;
  llvm::SmallVector<llvm::Value*, 160> args_;
  llvm::DenseMap<llvm::Value*, size_t> inputs_;  ///< their numbers: what several instructions read is handed over once
  int instructions_ = 0;
};

}  // namespace tile::ir
