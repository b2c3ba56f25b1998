// simt_module.h - between the rewriting of GPU modules (simt_module.cpp) and the machine that executes them (simt.cpp).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace tile::testing {

inline constexpr size_t kSharedBytes = 256 * 1024;
/// The simulated shared memory, in the low 4 GiB, where 32-bit shared pointers reach it.
char* sharedMemory();

/// A GPU instruction of a module: an NVVM intrinsic or inline assembly.
struct Instruction {
  std::string name;  ///< intrinsic name without "llvm.nvvm.", or PTX text
  bool isAsm = false;
  std::vector<int> resultBits;
  int arguments = 0;
};
const Instruction& instruction(uint32_t id);

/// Called by rewritten code in place of instruction `id`; every value travels in 64 bits. Defined by the machine.
void execute(uint32_t id, const uint64_t* args, uint64_t* results);

/// Makes the module one for this CPU: `entry` becomes  void entry(const uint64_t* slots), run once per thread.
void rewriteForHost(llvm::Module& module, const std::string& entry);

}  // namespace tile::testing
