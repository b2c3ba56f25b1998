// simt.h - runs GPU kernels without a GPU: the LLVM IR of the NVIDIA back end, its instructions replaced by functions
// that do what the PTX ISA says, compiled for this CPU. Every thread of a program is a fiber that runs until it must
// meet others, in an order that changes from meeting to meeting; so a missing barrier shows as a wrong result, a
// barrier that not all threads reach as a deadlock. Asynchronous operations (bulk copies, wgmma) happen at any time
// between their issue and the wait for them; touching their memory in between, or shared memory of the other proxy
// without a fence, is reported. cp.async happens as late as its waits allow. README.md lists what is checked.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compiler.h"

namespace tile::testing {

/// Global memory that ends at a page nobody may touch: reading or writing past it ends the test.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void *mapping_, *data_;
  size_t mapped_;
};

class SimtKernel {
 public:
  /// Compiles tile IR for `target` and prepares it to run here; throws std::runtime_error with the compiler's words.
  /// `change` may put a fault into the LLVM IR.
  SimtKernel(const std::string& mlir, const std::string& target = "sm_90a", int numWarps = 0,
             const std::function<void(std::string& llvm)>& change = nullptr);
  /// LLVM IR and PTX as the compiler made them (StageSink), and its record; params, buffers and launch facts matter.
  SimtKernel(const std::string& llvmText, std::string ptx, KernelBinary binary);
  ~SimtKernel();
  /// One slot per ABI parameter (abi.h), the debug ring included; the hidden ones and tensor maps are added here.
  /// `seed` chooses the schedule: seed % 3 when asynchronous operations happen (0 any time, 1 late, 2 at once).
  /// Throws on deadlock (saying who waits for what), on violations, and when a thread traps ("trap").
  void run(std::vector<uint64_t> slots, int gridX, int gridY = 1, int gridZ = 1, uint32_t seed = 1);

  const KernelBinary& binary() const { return binary_; }
  const std::string& ptx() const { return ptx_; }

 private:
  void prepare(const std::string& llvmText);
  int entryRegisters() const;

  KernelBinary binary_;
  std::string ptx_;
  bool changesRegisters_ = false;
  int maxRegisters_ = 0;
  int minPrograms_ = 0;
  std::shared_ptr<void> code_;
  void (*entry_)(const uint64_t*) = nullptr;
};

}  // namespace tile::testing
