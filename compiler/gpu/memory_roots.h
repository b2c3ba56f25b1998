// memory_roots.h - which memory an op reads or writes, as far as moving reads over other ops needs to know: the kernel
// argument an address is made from. Different arguments are taken to be different memory, as a kernel that updates one
// in place gets it once.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// The kernel argument a pointer or view is made from; null when it comes from elsewhere (an address in memory, say).
mlir::Value rootOf(mlir::Value address);
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
