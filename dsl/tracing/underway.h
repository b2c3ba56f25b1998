// underway.h - what this thread is tracing and compiling at the moment. A kernel's body, and the functions of a
// JitPolicy, may launch and compile other kernels; the same one would wait for itself, or go on without an end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/error.h"

namespace tile::detail {

struct KernelCore;

class Underway {
 public:
  enum Kind : uint8_t { tracing, building, loading };
  /// A step begins, on the stack of this thread; `what` (a kernel, an entry of its cache) and `config`, which outlive it,
  /// tell the same one.
  Underway(Kind kind, const void* what, const KernelCore& core, std::span<const uint64_t> config);
  ~Underway();
  Underway(const Underway&) = delete;
  Underway& operator=(const Underway&) = delete;
  /// Why it must not begin.
  const std::optional<Error>& refusal() const { return refusal_; }

 private:
  Kind kind_;
  const void* what_;
  std::span<const uint64_t> config_;
  const Underway* around_;
  std::optional<Error> refusal_;
};

}  // namespace tile::detail
