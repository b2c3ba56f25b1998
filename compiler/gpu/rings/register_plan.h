// register_plan.h - registers of a kernel: what its tiles need, by an estimate made before layouts are chosen, and what
// roles get of a multiprocessor's.
#pragma once
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/targets/target.h"

namespace tile::ir {

/// Registers per thread of the roles when `programs` share a multiprocessor.
struct RolePlan {
  int warpgroups, programs, producerRegs, consumerRegs;
};
/// Registers per thread at the entry of a program with these roles, before setmaxnreg: its share of the
/// multiprocessor's.
int registersOnEntry(const RolePlan& plan, const Target& target);
/// The possible plans for a kernel of so many consumer warps, most programs first; empty if its warpgroups cannot have
/// roles. `addressRegisters`: what each thread of a producer needs if all of them copy, or transpose; 0: a single
/// thread starts bulk copies.
std::vector<RolePlan> rolePlans(int numWarps, const Target& target, int addressRegisters = 0);
/// Registers per thread for the tiles that are alive at once, at the op where they are most.
struct RegisterEstimate {
  static constexpr int kOther = 24;  ///< addresses, loop counters, temporaries
  int registers = 0;
  mlir::Operation* at = nullptr;
  /// With room for what the estimate overlooks.
  int needed() const { return registers + registers / 8 + 2 * kOther; }
};
/// Intermediate values of elementwise work behind loops do not count: threads compute one element after the other.
/// `atLeast` gives a lower bound: neither do those in loops beside the results, nor addresses.
RegisterEstimate estimateRegisters(mlir::func::FuncOp func, int numWarps, bool atLeast = false);
/// The most registers per thread that one asynchronous product takes. ptxas wants a program to have them at its entry,
/// whatever setmaxnreg changes later.
int registersOfProducts(mlir::func::FuncOp func);
/// The number of programs per multiprocessor that the kernel asks for (tile.programs), or less if threads would not
/// have the registers that products need: ptxas refuses that. 0: it does not ask.
int askedPrograms(mlir::func::FuncOp func, int threads, const Target& target);

}  // namespace tile::ir
