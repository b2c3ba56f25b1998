// assemble_again.cpp - code that spills registers gets another try, in an order that has fewer values alive.
#include "compiler/targets/nvptx.h"

namespace tile::ir {
namespace {

/// A few words in memory cost less than another schedule may.
constexpr int kFewBytes = 32;

}  // namespace

std::optional<std::string> assembleAgain(llvm::function_ref<std::unique_ptr<llvm::Module>()> emitted,
                                         const std::string& ptx, const Target& target, const CompileOptions& options,
                                         Resources& resources) {
  if (spilledBytes(resources) <= kFewBytes) return std::nullopt;
  const std::unique_ptr<llvm::Module> module = emitted();
  if (!module) return std::nullopt;
  Result<std::string> reordered = assemblePtx(*module, target, options, /*again=*/true);
  if (!reordered || *reordered == ptx) return std::nullopt;
  Resources after;
  Result<std::string> cubin = tryPtxas(*reordered, target, options, after);
  if (!cubin || (serialises(after) && !serialises(resources))) return std::nullopt;
  if (4 * spilledBytes(after) > 3 * spilledBytes(resources)) return std::nullopt;
  resources = std::move(after);
  return std::move(*cubin);
}

}  // namespace tile::ir
