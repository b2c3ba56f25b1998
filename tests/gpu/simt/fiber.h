// fiber.h - a thread of control with its own stack, switched by hand (x86-64) or by ucontext (elsewhere).
#pragma once
#include <cstddef>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace tile::testing {

class Context {
 public:
  Context() = default;
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  /// The next switchTo runs entry() on a stack of its own; entry must never return. Reuses the stack it has.
  void start(void (*entry)());
  /// Saves the current thread of control in `from` and continues this one.
  void switchTo(Context& from);

 private:
  void* stack_ = nullptr;
#if defined(__x86_64__)
  void* sp_ = nullptr;
#else
  ucontext_t context_;
#endif
};

}  // namespace tile::testing
