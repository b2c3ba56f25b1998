// debugger_names.cpp - see debugger_names.h.
#include "compiler/targets/debugger_names.h"

#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/Debugging/ELFDebugObjectPlugin.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h"

extern "C" {
extern jit_descriptor __jit_debug_descriptor;
void __jit_debug_register_code();
}

namespace tile::ir {

void DebuggerNames::watch(llvm::orc::ExecutionSession& session, llvm::orc::ObjectLinkingLayer& layer) {
  auto unsupported = llvm::Error::success();
  auto plugin = std::make_shared<llvm::orc::ELFDebugObjectPlugin>(session, /*RequireDebugSections=*/false,
                                                                  /*AutoRegisterCode=*/true, unsupported);
  if (unsupported)
    llvm::consumeError(std::move(unsupported));
  else
    layer.addPlugin(std::move(plugin));
}

jit_code_entry* DebuggerNames::registered(llvm::function_ref<void()> link) {
  std::lock_guard lock(mutex_);
  const jit_code_entry* before = __jit_debug_descriptor.first_entry;
  link();
  jit_code_entry* first = __jit_debug_descriptor.first_entry;  // new ones come first
  return first == before ? nullptr : first;
}

void DebuggerNames::forget(jit_code_entry* entry) {
  if (!entry) return;
  std::lock_guard lock(mutex_);
  jit_descriptor& list = __jit_debug_descriptor;
  (entry->prev_entry ? entry->prev_entry->next_entry : list.first_entry) = entry->next_entry;
  if (entry->next_entry) entry->next_entry->prev_entry = entry->prev_entry;
  list.relevant_entry = entry;
  list.action_flag = JIT_UNREGISTER_FN;
  __jit_debug_register_code();
  list.relevant_entry = nullptr;
  list.action_flag = JIT_NOACTION;
  delete entry;
}

}  // namespace tile::ir
