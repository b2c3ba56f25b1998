// plan.h - what a specialised kernel gets of the machine: stages of its rings and columns of its staging buffers
// (shared memory), registers of its roles, and an estimate of the registers its consumers need. Numbers in, numbers
// out: the decision is made before any rewriting, so that a kernel that does not fit stays as it was.
#pragma once
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/targets/target.h"

namespace tile::ir {

/// Most stages a ring gets unasked: memory latency is covered long before.
inline constexpr int kMostStages = 8;
/// Scalars that a producer hands to the consumers of a program (hand_scalars.cpp).
inline constexpr int64_t kMostHandedBytes = 96;
inline constexpr int kHandedStages = 2;  ///< the producer is a program ahead
/// Shared memory left for small reductions and conversions.
inline constexpr int64_t kScratchReserve = 2048;

struct RingPlan {
  mlir::Location loc;
  std::string what;  ///< for tables: "ring of 128x64xf16 + 64x256xf16"
  int64_t bytesPerStage = 0;
  int wished = 0;       ///< stages asked for; 0: no wish
  bool inLoop = false;  ///< refilled while one program runs; otherwise once per program
  int stages = 1;       ///< the answer
};
struct StagingPlan {
  mlir::Location loc;
  std::string what;
  int64_t rowBytes = 0;          ///< bytes per column: rows times element
  std::vector<int64_t> columns;  ///< the choices, the best first
  int64_t chosen = 0;            ///< the answer
  int host = -1;  ///< a ring with a stage that could serve: its tile is like the stored one, and over by then
  bool isHosted = false;         ///< the answer: it does, the whole tile at a time
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

  /// Chooses stages and columns; false when one stage of everything does not fit.
  bool choose();
  /// Nothing waits for want of stages: three in loops (or as many as wished), the next program's tiles beside this
  /// one's.
  bool isComfortable() const;
  /// Of all rings of loops together.
  int stagesInLoops() const;
  int64_t bytes() const;
  /// The table of who needs what, as notes.
  void explain(mlir::Diagnostic& diagnostic) const;

 private:
  bool distribute();
  bool fits(int loopStages, int otherStages, size_t staging);
};

/// Registers per thread of the roles when `programs` share a multiprocessor.
struct RolePlan {
  int warpgroups, programs, producerRegs, consumerRegs;
};
/// Registers per thread that a program with these roles enters with: its share of the multiprocessor's.
int registersOnEntry(const RolePlan& plan, const Target& target);
/// What a kernel of so many warps can have, most programs first; empty when its warpgroups cannot have roles.
/// `addressRegisters`: what each thread of a producer needs whose threads copy or turn; 0: one thread starts bulk
/// copies.
std::vector<RolePlan> rolePlans(int numWarps, const Target& target, int addressRegisters = 0);
/// Bytes of shared memory for each of so many programs of a multiprocessor.
int64_t sharedBytesEach(const Target& target, int programs);

/// Shared memory ops will need while they run, as far as it shows before layouts are chosen: at most one at a time.
int64_t estimateScratch(mlir::func::FuncOp func, llvm::function_ref<bool(mlir::Operation*)> isStaged);

/// Shared memory of tiles that are computed in registers and shared, each with what it adds to those placed before it:
/// they share bytes as place_buffers lets them, but for those that take turns with a second buffer of their own.
std::vector<FixedBytes> estimateShares(mlir::func::FuncOp func, llvm::ArrayRef<ShareOp> alternating);

/// Registers per thread for tiles alive at once, at the worst place of the kernel.
struct RegisterEstimate {
  static constexpr int kOther = 24;  ///< addresses, loop counters, what an instruction needs on its way
  int registers = 0;
  mlir::Operation* at = nullptr;
  /// With room for what an estimate overlooks.
  int needed() const { return registers + registers / 8 + 2 * kOther; }
};
/// `atLeast`: what elementwise work goes through on its way counts as what comes out of it in the end, and addresses do
/// not, as if threads took one element after the other.
RegisterEstimate estimateRegisters(mlir::func::FuncOp func, int numWarps, bool atLeast = false);
/// Registers per thread that one asynchronous product takes for itself, at most. ptxas wants a program to enter with
/// them, whatever its roles change to.
int registersOfProducts(mlir::func::FuncOp func);
/// As many programs of a multiprocessor as the kernel asks for (tile.programs), or the most of which each thread has the
/// registers its products need: ptxas compiles none with fewer. 0: it does not ask.
int askedPrograms(mlir::func::FuncOp func, int threads, const Target& target);

}  // namespace tile::ir
