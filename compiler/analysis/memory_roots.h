// memory_roots.h - which memory an op reads or writes, as far as is needed to move reads over other ops: the kernel
// argument that its address is made from. Different arguments are different memory by the rules of the language, and so
// is the memory that addresses kept in different arguments point to.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

struct MemoryRoot {
  mlir::Value argument;  ///< null: unknown, could be any memory
  unsigned loads = 0;    ///< 0: the argument's memory; 1: what addresses stored there point to, and so on
  explicit operator bool() const { return argument != nullptr; }
  bool operator==(const MemoryRoot&) const = default;
  std::pair<mlir::Value, unsigned> key() const { return {argument, loads}; }
  /// Whether both are known and differ.
  bool isApartFrom(const MemoryRoot& other) const { return *this && other && *this != other; }
};
/// The root of a pointer or view.
MemoryRoot rootOf(mlir::Value address);
/// The view or pointer through which an op reads or writes global memory; null for other ops.
mlir::Value addressOf(mlir::Operation* op);
/// Whether it is a volatile load or gather, which must stay where it is.
bool isVolatile(mlir::Operation* load);
/// Whether the op writes global memory that other threads may read.
bool writesGlobal(mlir::Operation* op);
/// Whether the op is an acquire: later reads of this program may see what other programs wrote before their release.
bool isAcquire(mlir::Operation* op);
/// Whether the op is a release: other programs that see its effect may read what this program wrote before.
bool isRelease(mlir::Operation* op);

}  // namespace tile::ir
