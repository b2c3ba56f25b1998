// places_apart.h - whether iterations of a loop access the same memory: what accesses through pointers cover in one
// iteration, and how far the loop moves the pointers from one iteration to the next.
#pragma once
#include <array>
#include <optional>

#include "compiler/analysis/facts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {

/// Pointer, offsets and mask of an access through pointers.
std::optional<std::array<mlir::Value, 3>> placeOf(mlir::Operation* op);

/// Emits, in front of the loop, an i1 that is false only if no iteration accesses an element at `pointer` + `offsets`
/// (under `mask`, which may be null) that another iteration accesses. That is so if the loop advances the pointer
/// evenly, by more than the offsets, which it does not change, lie apart. Null: it cannot be computed. Of a loop of
/// several `bodies` it is asked of the first one, and the answer is for all of them: each moves on by its share.
mlir::Value placesMeet(mlir::Value pointer, mlir::Value offsets, mlir::Value mask, mlir::scf::ForOp loop,
                       int64_t bodies = 1);

/// Which body of an unrolled loop an access through a pointer is in.
struct BodyOf {
  int64_t loop;    ///< what the loop is marked with
  int64_t access;  ///< the same number for copies of one access, and for accesses to the same places
  int64_t body, bodies;
  static constexpr const char* kAttr = "tile.body";
  /// Nullopt, too, where the access is not in that loop any more.
  static std::optional<BodyOf> find(mlir::Operation* op);
  void mark(mlir::Operation* op) const;
};
/// Numbers the accesses through pointers of a loop that will have so many bodies, where it writes through some, as
/// those of the first body. A loop that has bodies already loses their marks.
void markFirstBody(mlir::scf::ForOp loop, int64_t bodies);
void unmarkBodies(mlir::scf::ForOp loop);

/// An access in a loop, and the i1 that says whether it may touch what another iteration accessed.
struct Meeting {
  mlir::Operation* access;
  mlir::Value meets;
};
/// Puts barriers in front of the accesses, executed only if their i1 holds. Short loops are duplicated instead: the
/// copy without barriers can be unrolled.
void orderIfMet(mlir::scf::ForOp loop, llvm::ArrayRef<Meeting> meetings);

}  // namespace tile::ir
