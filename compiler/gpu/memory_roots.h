// memory_roots.h - which memory an op reads or writes, as far as moving reads over other ops needs to know: the kernel
// argument an address is made from. Different arguments are taken to be different memory, as a kernel that updates one
// in place gets it once; so is what addresses that are kept in different arguments point to.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

struct MemoryRoot {
  mlir::Value argument;  ///< null: not known, could be any memory
  unsigned loads = 0;    ///< 1: what addresses in the argument's memory point to, and so on
  explicit operator bool() const { return argument != nullptr; }
  bool operator==(const MemoryRoot&) const = default;
  std::pair<mlir::Value, unsigned> key() const { return {argument, loads}; }
  /// Both are known, and not the same.
  bool isApartFrom(const MemoryRoot& other) const { return *this && other && *this != other; }
};
/// Of a pointer or view.
MemoryRoot rootOf(mlir::Value address);
/// The view or pointer through which an op reads or writes global memory; null for other ops.
mlir::Value addressOf(mlir::Operation* op);
/// A load or gather that must read memory when and where the kernel says, every time.
bool isVolatile(mlir::Operation* load);
/// Writes global memory other threads may read.
bool writesGlobal(mlir::Operation* op);
/// Later reads of this program may see what other programs wrote before their release.
bool isAcquire(mlir::Operation* op);
/// Other programs may read what this program wrote once they see this op's effect.
bool isRelease(mlir::Operation* op);

}  // namespace tile::ir
