// debugger_names.h - where the code of a kernel faults on a host, gdb shows the kernel's symbol: through its interface to
// code that is made while it watches (gdb/jit.h), which is also read when it attaches later. LLVM registers objects there
// and takes none back; this does.
#pragma once
#include <mutex>

#include "llvm/ADT/STLFunctionalExtras.h"

struct jit_code_entry;
namespace llvm::orc {
class ExecutionSession;
class ObjectLinkingLayer;
}  // namespace llvm::orc

namespace tile::ir {

class DebuggerNames {
 public:
  /// Objects of the layer are registered from now on, with debug sections or without; where that is not to be had, none.
  void watch(llvm::orc::ExecutionSession& session, llvm::orc::ObjectLinkingLayer& layer);
  /// Runs `link`, which links one object in this thread; what forget() takes, or null.
  jit_code_entry* registered(llvm::function_ref<void()> link);
  /// Before the memory of the object goes.
  void forget(jit_code_entry* entry);

 private:
  std::mutex mutex_;  // the list has no lock that we could take
};

}  // namespace tile::ir
