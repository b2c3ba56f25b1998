// plan.h - the resources of a kernel with roles: shared memory (stages of its rings, columns of its staging buffers),
// and registers of its roles, with an estimate of those that consumers need. The decision is made before any rewriting,
// so that a kernel that does not fit stays as it was.
#pragma once
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/targets/target.h"

namespace tile::ir {

/// The most stages that a ring gets without asking: far fewer cover the latency of memory.
inline constexpr int kMostStages = 8;
/// For scalars that a producer hands to the consumers of a program (hand_scalars.cpp).
inline constexpr int64_t kMostHandedBytes = 96;
inline constexpr int kHandedStages = 2;  ///< the producer is a program ahead
/// Shared memory left for small reductions and conversions.
inline constexpr int64_t kScratchReserve = 2048;

struct RingPlan {
  mlir::Location loc;
  std::string what;  ///< for tables: "ring of 128x64xf16 + 64x256xf16"
  int64_t bytesPerStage = 0;
  int wished = 0;       ///< stages asked for; 0: no wish
  bool inLoop = false;  ///< filled several times while a program runs; otherwise once per program
  int stages = 1;       ///< the answer
  int beside = 0;       ///< stages on top of `wished` that are of use where there is room: products read as many
};
struct StagingPlan {
  mlir::Location loc;
  std::string what;
  int64_t rowBytes = 0;          ///< bytes per column: rows times element
  std::vector<int64_t> columns;  ///< the possible numbers, the best first
  int64_t chosen = 0;            ///< the answer
  int host = -1;  ///< a ring whose stage could serve instead: as large, and no longer needed by then; -1: none
  bool isHosted = false;         ///< the answer: the tile leaves through that stage, as a whole
  int64_t bytes() const { return isHosted ? 0 : rowBytes * chosen; }
};
struct FixedBytes {
  mlir::Location loc;
  std::string what;
  int64_t bytes = 0;
};

struct MemoryPlan {
  std::vector<RingPlan> rings;
  std::vector<StagingPlan> stagings;
  std::vector<FixedBytes> fixed;  ///< shares, scratch
  int64_t limit = 0;

  /// Chooses stages and columns; false when one stage of everything does not fit. Nothing else gets less for stages
  /// beside those asked for.
  bool choose();
  /// Whether nothing waits for lack of stages: loops have three (or as many as wished), and others have room for the
  /// next program's tiles. `fewer`: by so many loops may fall short, of two stages though.
  bool isComfortable(int fewer = 0) const;
  /// Stages of all rings of loops together.
  int stagesInLoops() const;
  int64_t bytes() const;
  /// Adds notes that say what needs how much.
  void explain(mlir::Diagnostic& diagnostic) const;

 private:
  bool distribute();
  void growBeside();
  bool fits(int loopStages, int otherStages, size_t staging);
};

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
/// Bytes of shared memory for each of so many programs on a multiprocessor.
int64_t sharedBytesEach(const Target& target, int programs);

/// An estimate, made before layouts are chosen, of the scratch of ops: the most that any one needs.
int64_t estimateScratch(mlir::func::FuncOp func, llvm::function_ref<bool(mlir::Operation*)> isStaged);

/// Shared memory of tiles that are computed in registers and shared; each with what it adds to those before it, because
/// they can share bytes (place_buffers.cpp). Those of `alternating` have two buffers, which share nothing.
std::vector<FixedBytes> estimateShares(mlir::func::FuncOp func, llvm::ArrayRef<ShareOp> alternating);

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
