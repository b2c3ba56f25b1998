// async_plan.h - the new order of the statements of one block: where asynchronous products are waited for, and which
// ops move behind the waits. A plan is made without touching the IR; async_waits.cpp describes the rules and carries it
// out.
#pragma once
#include "compiler/gpu/forms/async_products.h"
#include "llvm/ADT/MapVector.h"

namespace tile::ir {

/// One unfinished product; `value` is the SSA value of its result at this point.
struct Group {
  MmaOp product;
  mlir::Value value;
  bool isCarried = false;  ///< issued in the previous iteration
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

/// Moves tiles that are cheap to make, but occupy registers (masks, indices), to their first readers.
void sinkToReaders(mlir::Block& block);

/// Loops that have been planned, inner ones first.
using Carries = llvm::MapVector<mlir::Operation*, Carry>;

/// The block's statements in their new order, without its terminator. `entry`: products that the previous iteration
/// left running. With `carry` the block is the body of a loop that may leave products running, which are put there;
/// with `registersInFlight` these may have operands in registers.
llvm::SmallVector<Item> planBlock(mlir::Block& block, const AsyncReads& reads, const Carries& carries,
                                  const Carry& entry, Carry* carry, bool registersInFlight = true);

}  // namespace tile::ir
