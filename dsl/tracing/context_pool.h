// context_pool.h - MLIR contexts with the dialects loaded, reused between traces: making one costs more than a trace.
// A context serves one trace or compilation at a time. Internal to the dsl library.
#pragma once
#include <memory>
#include <string>

#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/MLIRContext.h"

namespace tile::detail {

struct PooledContext {
  PooledContext();
  mlir::MLIRContext context;
  /// Texts of types and attributes of this context, which live as long as it does.
  llvm::DenseMap<const void*, std::string> texts;
  int uses = 0;
};

/// Gives the context back when it goes. Whatever was built in it must be gone by then.
class ContextLease {
 public:
  ContextLease();
  ~ContextLease();
  ContextLease(const ContextLease&) = delete;
  ContextLease& operator=(const ContextLease&) = delete;
  mlir::MLIRContext* context() { return &pooled_->context; }
  PooledContext& pooled() { return *pooled_; }

 private:
  std::unique_ptr<PooledContext> pooled_;
};

}  // namespace tile::detail
