// module.h - between the rewriting of GPU modules (module.cpp) and the machine that executes them (machine.cpp).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/gpu/simt/ptx_asm.h"

namespace llvm {
class Module;
}

namespace tile::testing {

/// A GPU instruction of a module: an NVVM intrinsic or inline assembly.
struct Instruction {
  std::string name;               ///< intrinsic name without "llvm.nvvm.", or PTX text
  std::unique_ptr<AsmBody> body;  ///< of assembly
  std::vector<int> resultBits;
  int arguments = 0;
};
const Instruction& instruction(uint32_t id);

// Called by rewritten code; defined by the machine.
/// In place of instruction `id`; every value travels in 64 bits.
void execute(uint32_t id, const uint64_t* args, uint64_t* results);
/// Before a plain load or store of shared memory, in kernels with asynchronous operations on it.
void touchShared(uint64_t pointer, uint32_t bytes, bool writes);
/// Of an ordinary load or store whose address is no multiple of `align` bytes, which it counts on.
void reportMisaligned(uint64_t pointer, uint32_t align, bool writes);
/// Where the shared memory of the running program starts.
uint64_t sharedStart();

struct ModuleFacts {
  bool asynchronous = false;  ///< has bulk copies or wgmma: two proxies share its memory
  int entryRegisters = 0;     ///< "nvvm.maxnreg"; 0: not given
  int minPrograms = 0;        ///< "nvvm.minctasm"; 0: not given
  int threads = 0;            ///< "nvvm.reqntid"
};
/// Makes the module one for this CPU: `entry` becomes  void entry(const uint64_t* slots), run once per thread.
/// Parameters passed by value (tensor maps) become slots with their addresses.
ModuleFacts rewriteForHost(llvm::Module& module, const std::string& entry);

}  // namespace tile::testing
