// memory_plan.h - shared memory of a kernel with roles: stages of its rings, columns of its staging buffers. Decided
// before any rewriting, so that a kernel that does not fit stays as it was.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/targets/target.h"

namespace tile::ir {

/// The most stages that a ring gets without asking: far fewer cover the latency of memory.
inline constexpr int kMostStages = 8;
/// What a loop that asks for no number of stages is served by.
inline constexpr int kEnoughStages = 3;
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
  /// Those of the chosen stages that a loop may miss: others are beside what it asks for, or what is enough.
  int usefulStages() const { return std::min(stages, wished ? wished : kEnoughStages); }
};
struct StagingPlan {
  mlir::Location loc;
  std::string what;
  int64_t rowBytes = 0;          ///< bytes per column: rows times element
  std::vector<int64_t> columns;  ///< the possible numbers, the best first
  int64_t chosen = 0;            ///< the answer
  bool isStoredInLoop = false;   ///< parts would be waited for in every iteration
  int host = -1;          ///< a ring whose stage could serve instead: as large, and no longer needed by then; -1: none
  bool isHosted = false;  ///< the answer: the tile leaves through that stage, as a whole
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

/// Bytes of shared memory for each of so many programs on a multiprocessor.
int64_t sharedBytesEach(const Target& target, int programs);

/// An estimate, made before layouts are chosen, of the scratch of ops: the most that any one needs.
int64_t estimateScratch(mlir::func::FuncOp func, llvm::function_ref<bool(mlir::Operation*)> isStaged);

/// Shared memory of tiles that are computed in registers and shared; each with what it adds to those before it, because
/// they can share bytes (place_buffers.cpp). Those of `alternating` have two buffers, which share nothing.
std::vector<FixedBytes> estimateShares(mlir::func::FuncOp func, llvm::ArrayRef<ShareOp> alternating);

}  // namespace tile::ir
