// load_ahead.h - loads that loops make an iteration before they need them, in registers.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Registers of a thread (32 bits each) that loads made an iteration early may hold.
inline constexpr int64_t kMostEarlyRegisters = 16;
/// Large ones only beside products that leave room for them: registers of all their results and of what is loaded.
inline constexpr int64_t kMostBesideProducts = 96;

/// Registers of a thread that the op's result takes, before layouts are known: small tiles are held by several threads,
/// at least a register each; words that rows share are held once.
int64_t registersHeld(mlir::Operation* op, int64_t warps, const Facts& facts);
/// And those of all products' results in the loop.
int64_t registersOfResults(mlir::scf::ForOp loop, int64_t warps, const Facts& facts);

/// The loads of the loop's body for the iteration `distance` further on stand at the top of this one; `updates` are
/// those of them that read nothing an earlier iteration writes, although the loop writes to their view. Boxes past the
/// last iteration are loaded, too: their bounds are checked, and nobody uses them. Nothing happens where addresses are
/// not known so early. Returns the loop in the place of the old one, null: nothing happened.
mlir::scf::ForOp loadAhead(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Operation*> loads,
                           llvm::ArrayRef<mlir::Operation*> updates = {}, int64_t distance = 1);

}  // namespace tile::ir
