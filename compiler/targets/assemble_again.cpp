// assemble_again.cpp - code that spills registers gets another try, in an order that has fewer values alive.
#include "compiler/targets/nvptx.h"

namespace tile::ir {
namespace {

/// A few words in memory cost less than another schedule may.
constexpr int kFewBytes = 32;

int spilled(const Resources& r) { return r.spill_store_bytes + r.spill_load_bytes; }
bool serialises(const Resources& r) { return r.log.find("C75") != std::string::npos; }

}  // namespace

std::optional<std::string> assembleAgain(llvm::function_ref<std::unique_ptr<llvm::Module>()> emitted,
                                         const std::string& ptx, const Target& target, const CompileOptions& options,
                                         Resources& resources) {
  if (spilled(resources) <= kFewBytes) return std::nullopt;
  const std::unique_ptr<llvm::Module> module = emitted();
  if (!module) return std::nullopt;
  Result<std::string> reordered = assemblePtx(*module, target, options, /*again=*/true);
  if (!reordered || *reordered == ptx) return std::nullopt;
  Resources after;
  Result<std::string> cubin = tryPtxas(*reordered, target, options, after);
  if (!cubin || (serialises(after) && !serialises(resources))) return std::nullopt;
  if (4 * spilled(after) > 3 * spilled(resources)) return std::nullopt;
  resources = std::move(after);
  return std::move(*cubin);
}

}  // namespace tile::ir
