// underway.cpp - see underway.h.
#include "dsl/tracing/underway.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsl/tracing/kernel_core.h"

namespace tile::detail {
namespace {

// Without a destructor: kernels are launched while threads end.
constinit thread_local const Underway* innermost = nullptr;

/// Steps inside steps: a body that launches another kernel takes three.
constexpr int kMostSteps = 64;

}  // namespace

Underway::Underway(Kind kind, const void* what, const KernelCore& core, std::span<const uint64_t> config)
    : kind_(kind), what_(what), config_(config), around_(innermost) {
  int steps = 0;
  bool again = false;
  for (const Underway* s = around_; s; s = s->around_, ++steps)
    again |= s->kind_ == kind && s->what_ == what &&
             std::equal(config.begin(), config.end(), s->config_.begin(), s->config_.end());
  innermost = this;
  if (!again && steps < kMostSteps) return;
  const std::string described = describe_config(core.fields, {config.begin(), config.end()}, ", ");
  const std::string title = fmt::format("kernel '{}'{}", core.name, described.empty() ? "" : " {" + described + "}");
  refusal_ = user_error(
      again ? title + " is launched, compiled or traced by itself: neither its body nor the functions of a JitPolicy may "
                      "do that while it is traced or compiled"
            : fmt::format("{} is launched, compiled or traced inside {} other such calls of this thread: bodies that "
                          "launch kernels must come to an end",
                          title, steps));
}

Underway::~Underway() { innermost = around_; }

}  // namespace tile::detail
