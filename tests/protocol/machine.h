// machine.h - programs of one producer, maybe a turner, and several consumer warpgroups, run under random interleavings. Barriers are
// those of the hardware: a count of pending arrivals and bytes, and a phase whose parity a wait asks for. A fresh
// barrier lets waits for parity 1 pass. Copies land whenever they like, those of producers' threads in their order, each
// four times: once for each of its warps.
//
// Faults it finds: deadlock; a copy into a stage that somebody has not acquired, has not released, or still reads with
// an unfinished product; a read of a buffer that has not landed, or whose stage the reader does not hold; a release of
// a stage with unfinished products on it, or of none; a result used before it is waited for; stages left over at the
// end. What was read comes back for comparison with the law.
#pragma once
#include <deque>
#include <memory>
#include <random>

#include "tests/protocol/law.h"

namespace tile::ir::protocol {

struct MachineOptions {
  uint64_t seed = 0;
  int programs = 2;
  /// The IR has mma_wait: products run on until waited for. Otherwise they are done at once.
  bool isAsync = true;
};

struct Run {
  std::optional<std::string> fault;
  std::map<int64_t, std::vector<Reads>> reads;  ///< by position: one entry per consumer that took it
};

Run runMachine(mlir::func::FuncOp func, const Inputs& inputs, const MachineOptions& options);

}  // namespace tile::ir::protocol
