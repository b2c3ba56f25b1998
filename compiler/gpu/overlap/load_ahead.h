// load_ahead.h - loads into registers, one or more iterations before they are needed.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// The most 32-bit registers of a thread for loads that are made early.
inline constexpr int64_t kMostEarlyRegisters = 16;
/// The same beside products, for large loads: registers of all results of products and of what is loaded.
inline constexpr int64_t kMostBesideProducts = 96;

/// Iterations for which a loop holds what it loads early, where they are several: as many bodies (unroll_held.cpp), so
/// that values stay in their registers. A move from one to the next would wait for the load.
inline constexpr const char* kHeldAttr = "tile.held";
/// Fewer are not worth the code: an iteration that leaves registers for two has so much to do that it hides one latency
/// (unpacking a tile of 128 x 64, two bodies took a tenth longer than one).
inline constexpr int64_t kFewestHeld = 3;

/// An estimate, before layouts are known, of a thread's registers for the result of an op: several threads hold the
/// same elements of small tiles, each at least one register; words that rows share are held once.
int64_t registersHeld(mlir::Operation* op, int64_t warps, const Facts& facts);
/// The same for the results of all products in the loop.
int64_t registersOfResults(mlir::scf::ForOp loop, int64_t warps, const Facts& facts);

/// Whether an iteration can tell where `load` reads in later ones: from the loop's counter and from pointers and numbers
/// that the loop moves on, without reading memory and without branches. `updates` as below.
bool isKnownEarly(mlir::Operation* load, mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Operation*> updates = {});

/// Whether that takes pointers or numbers that the loop moves on: registers of their own for what runs ahead.
bool walks(mlir::Operation* load, mlir::scf::ForOp loop);

/// Moves the given loads of the loop's body to the top of the body `distance` iterations earlier. `updates` are those
/// of them that read nothing an earlier iteration writes, although the loop writes to their view. Boxes past the last
/// iteration are loaded, too: their bounds are checked, and the results are not used. Returns the loop that replaces
/// the old one; null, and nothing changed, if addresses are not known so early.
mlir::scf::ForOp loadAhead(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Operation*> loads,
                           llvm::ArrayRef<mlir::Operation*> updates = {}, int64_t distance = 1);

}  // namespace tile::ir
