// async_plan.h - the new order of one block: where products are waited for, and what goes behind the waits. A plan is
// made without touching the IR; async_waits.cpp says what is planned and carries it out.
#pragma once
#include "compiler/gpu/async_products.h"
#include "llvm/ADT/MapVector.h"

namespace tile::ir {

/// One unfinished product: `value` is the name of its result here.
struct Group {
  MmaOp product;
  mlir::Value value;
  bool isCarried = false;  ///< issued in the iteration before
};

/// When a moved release happens.
enum class Guard { always, notFirst, ran };

/// A ring_release that waits for a group.
struct Held {
  RingReleaseOp release;
  Guard guard = Guard::always;
  mlir::scf::ForOp loop;  ///< of the guard
};

/// What a loop leaves running behind its last iteration.
struct Carry {
  llvm::SmallVector<Group> groups;
  llvm::SmallVector<Held> releases;
};

/// One statement of a block as it will be.
struct Item {
  enum Kind { op, wait, release } kind = op;
  mlir::Operation* statement = nullptr;     ///< op
  int pending = 0;                          ///< wait
  llvm::SmallVector<mlir::Value> finished;  ///< wait: results that become readable
  Held held;                                ///< release
};

/// The terminator, or null in blocks that have none (roles, work loops).
mlir::Operation* endOf(mlir::Block& block);

/// Moves tiles that are cheap to make and dear to keep (masks, indices) to their first readers.
void sinkToReaders(mlir::Block& block);

/// Loops that have been planned, inner ones first.
using Carries = llvm::MapVector<mlir::Operation*, Carry>;

/// The block's statements in their new order, without its terminator. `entry`: what the iteration before left running.
/// With `carry` the block is the body of a loop that may leave products running; filled with those. With
/// `registersInFlight` they may have operands in registers.
llvm::SmallVector<Item> planBlock(mlir::Block& block, const AsyncReads& reads, const Carries& carries,
                                  const Carry& entry, Carry* carry, bool registersInFlight = true);

}  // namespace tile::ir
