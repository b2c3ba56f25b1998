// context_pool.cpp - see detail/context_pool.h.
#include "dsl/tracing/context_pool.h"

#include <mutex>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/dialect/dialect.h"

namespace tile::detail {
namespace {

// A context only grows (types, attributes and locations are kept for good), so each is retired after this many leases.
constexpr int kUses = 256;
constexpr size_t kIdle = 8;

struct Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<PooledContext>> idle;
};
Pool& pool() {
  static Pool* p = new Pool;  // outlives kernels with static storage
  return *p;
}

mlir::DialectRegistry& registry() {
  static auto* r = [] {
    auto* made = new mlir::DialectRegistry;
    ir::registerDialects(*made);
    return made;
  }();
  return *r;
}

}  // namespace

PooledContext::PooledContext() : context(registry(), mlir::MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
}

ContextLease::ContextLease() {
  Pool& p = pool();
  {
    std::lock_guard lock(p.mutex);
    if (!p.idle.empty()) {
      pooled_ = std::move(p.idle.back());
      p.idle.pop_back();
    }
  }
  if (!pooled_) pooled_ = std::make_unique<PooledContext>();
  ++pooled_->uses;
}

ContextLease::~ContextLease() {
  if (pooled_->uses >= kUses) return;
  Pool& p = pool();
  std::lock_guard lock(p.mutex);
  if (p.idle.size() < kIdle) p.idle.push_back(std::move(pooled_));
}

}  // namespace tile::detail
