// host_kernel.h - textual tile IR compiled for the host and run over plain buffers: the harness of the tests here.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/targets/host_loader.h"
#include "runtime/float_types.h"

namespace tile::test {

/// Slots of one launch, in the order of the kernel's parameters.
class Args {
 public:
  template <class T>
  Args& pointer(T* p) {
    return slot(reinterpret_cast<uint64_t>(p));
  }
  template <class T>
  Args& scalar(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return slot(bits);
  }
  /// Shape and strides in elements.
  template <class T>
  Args& view(T* p, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    pointer(p);
    for (int64_t n : shape) slot(static_cast<uint64_t>(n));
    for (int64_t n : strides) slot(static_cast<uint64_t>(n));
    return *this;
  }
  /// Row-major.
  template <class T>
  Args& view(T* p, std::vector<int64_t> shape) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    return view(p, shape, strides);
  }
  const uint64_t* data() const { return slots_.data(); }
  Args& slot(uint64_t bits) {
    slots_.push_back(bits);
    return *this;
  }

 private:
  std::vector<uint64_t> slots_;
};

/// `target`, or "host" where this machine's processor cannot run what is made for it.
inline std::string runnable(const std::string& target) {
#if defined(__x86_64__)
  if (target.ends_with("x86-64-v4") && !__builtin_cpu_supports("x86-64-v4")) return "host";
  if (target.ends_with("x86-64-v3") && !__builtin_cpu_supports("x86-64-v3")) return "host";
  return target;
#else
  return target.find("x86-64") == std::string::npos ? target : "host";
#endif
}

class HostKernel {
 public:
  /// `target`: "host" is this machine, "host:x86-64" the portable baseline; see runnable().
  explicit HostKernel(const std::string& text, const std::string& target = "host") {
    Result<HostCode> loaded = build(text, runnable(target));
    if (loaded)
      code_ = *loaded;
    else
      error = loaded.error().to_string();
  }
  bool ok() const { return code_.entry != nullptr; }

  void run(const Args& args, std::array<int32_t, 3> grid = {1, 1, 1}) {
    ASSERT_TRUE(ok()) << error;
    // Poison shows reads of arena bytes nobody wrote; the guard shows writes past its end.
    std::vector<uint8_t> storage(binary.arena_bytes + 64 + kGuard);
    auto base = (reinterpret_cast<uintptr_t>(storage.data()) + 63) & ~uintptr_t{63};
    auto* arena = reinterpret_cast<uint8_t*>(base);
    HostProgram program{{0, 0, 0}, {grid[0], grid[1], grid[2]}};
    for (program.id[2] = 0; program.id[2] < grid[2]; ++program.id[2])
      for (program.id[1] = 0; program.id[1] < grid[1]; ++program.id[1])
        for (program.id[0] = 0; program.id[0] < grid[0]; ++program.id[0]) {
          std::memset(storage.data(), 0xff, storage.size());
          code_.entry(args.data(), &program, arena);
          for (size_t i = binary.arena_bytes; arena + i < storage.data() + storage.size(); ++i)
            ASSERT_EQ(arena[i], 0xff) << "byte " << i << " past the arena's end was written";
        }
  }

  KernelBinary binary;
  std::string error;

 private:
  static constexpr size_t kGuard = 256;

  Result<HostCode> build(const std::string& text, const std::string& targetName) {
    auto target = ir::lookupTarget(targetName);
    if (!target) return target.error();
    auto compiled = ir::compileText(text, "test.mlir", *target, {});
    if (!compiled) return compiled.error();
    binary = *compiled;
    return ir::loadHostObject(binary.bytes, binary.entry);
  }

  HostCode code_;
};

/// Small exact values: sums of products of them are exact in f32, so results can be compared for equality.
inline std::vector<float> smallNumbers(size_t n, uint32_t seed = 1) {
  std::vector<float> v(n);
  for (float& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int>(seed >> 24) % 17 - 8) * 0.25f;
  }
  return v;
}

}  // namespace tile::test
