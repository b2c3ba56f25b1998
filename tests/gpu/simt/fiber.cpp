// fiber.cpp - see fiber.h. ucontext would do everywhere, but its two system calls a switch are most of a test's time.
#include "tests/gpu/simt/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace tile::testing {
namespace {

constexpr size_t kStack = 2048 * 1024;

void* newStack() {  // touched pages only cost memory
  void* p = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  mprotect(p, 4096, PROT_NONE);  // who needs more faults instead of writing over a neighbour
  return p;
}

}  // namespace

Context::~Context() {
  if (stack_) munmap(stack_, kStack);
}

#if defined(__x86_64__)

extern "C" void tileSwitchStacks(void** save, void* next);
// Pushes what a call preserves, exchanges the stacks, pops the other side's.
asm(R"(
.text
.type tileSwitchStacks, @function
tileSwitchStacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tileSwitchStacks, .-tileSwitchStacks
)");

void Context::start(void (*entry)()) {
  if (!stack_) stack_ = newStack();
  auto* top = reinterpret_cast<void**>(static_cast<char*>(stack_) + kStack);
  *--top = nullptr;  // a return address for entry, which never returns: keeps the stack aligned as after a call
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  sp_ = top;
}
void Context::switchTo(Context& from) { tileSwitchStacks(&from.sp_, sp_); }

#else

void Context::start(void (*entry)()) {
  if (!stack_) stack_ = newStack();
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = kStack;
  context_.uc_link = nullptr;
  makecontext(&context_, entry, 0);
}
void Context::switchTo(Context& from) { swapcontext(&from.context_, &context_); }

#endif

}  // namespace tile::testing
