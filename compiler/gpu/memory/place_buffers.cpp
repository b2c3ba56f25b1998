// place_buffers.cpp - assigns addresses in shared memory, by first fit over lifetimes. A buffer lives from its
// allocation to the end of the last statement (of the allocation's block) that uses it, or until the copies that it
// began have landed; the scratch of an op lives while the op runs. Buffers whose lifetimes do not overlap may share
// bytes: insert_barriers, which runs later, keeps their users apart. Small scratch gets bytes of its own as long as
// there is little of it: sharing would save nothing and cost barriers. Takes from one small tile, and boxes of it that
// overlap, share the copy that the first of them has put there.
#include <algorithm>
#include <limits>

#include "compiler/dialect/warps.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/memory/buffers.h"
#include "compiler/gpu/rings/memory_plan.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kSharedForBarrier = 4;  ///< bytes per thread that saving a barrier may cost, see placeGroups

/// All takes from one tile read the same copy, so they agree on its gaps; returns them, by take.
std::vector<std::pair<Operation*, Attribute>> leaveGaps(func::FuncOp func) {
  std::vector<std::pair<Operation*, Attribute>> left;
  llvm::DenseSet<Value> seen;
  func.walk([&](TakeOp take) {
    const Value source = take.getSource();
    const Gaps gaps = seen.insert(source).second ? gapsForTakes(source) : Gaps{};
    if (!gaps) return;
    for (Operation* user : source.getUsers())
      if (isa<TakeOp>(user)) {
        user->setAttr(kScratchGapsAttr, DenseI64ArrayAttr::get(user->getContext(), {gaps.bytes, gaps.row}));
        left.emplace_back(user, user->getAttr(kScratchGapsAttr));
      }
  });
  return left;
}

class Placer {
 public:
  explicit Placer(func::FuncOp func) : func_(func), gaps_(leaveGaps(func)), buffers_(func) {}

  /// Places everything; returns the bytes needed. Gaps between rows that takes read (against bank conflicts) are given
  /// up if without them there is room for bytes to rest: barriers cost more.
  int64_t place(const Target& target) {
    const int64_t total = placePieces(target);
    if (gaps_.empty() || !isTight_) return total;
    for (auto [take, gaps] : gaps_) take->removeAttr(kScratchGapsAttr);
    buffers_.collect();
    const int64_t without = placePieces(target);
    if (!isTight_) return without;
    for (auto [take, gaps] : gaps_) take->setAttr(kScratchGapsAttr, gaps);
    buffers_.collect();
    return placePieces(target);
  }

  void write() { buffers_.write(); }
  void explain(InFlightDiagnostic& error, int64_t total, int64_t limit) { buffers_.explain(error, total, limit); }

 private:
  int64_t placePieces(const Target& target) {
    const int64_t total = placeGroups(target);
    if (!alignPieces()) return total;
    const int64_t aligned = placeGroups(target), limit = sharedBytesEach(target, programsWanted(target));
    if (aligned <= std::max(total, limit)) return aligned;
    func_.walk([](Operation* op) { op->removeAttr(kScratchPitchAttr); });
    buffers_.collect();
    return placeGroups(target);
  }

  /// Gives exchanges in which every warp uses a piece of its own the same size of pieces, if their sizes differ: a warp
  /// that is ahead, at the next exchange, then touches no other warp's piece. False: there is nothing to do.
  bool alignPieces() {
    llvm::MapVector<Region*, int64_t> most;
    bool differ = false;
    auto ownScratch = [](Operation* op) {
      const auto scratch = scratchOf(op);
      return scratch ? scratch->piece : 0;
    };
    func_.walk([&](Operation* op) {
      const int64_t piece = ownScratch(op);
      if (piece <= kOwnScratch) return;
      auto [at, isNew] = most.try_emplace(roleOf(op), piece);
      differ |= !isNew && at->second != piece;
      at->second = std::max(at->second, piece);
    });
    if (!differ) return false;
    func_.walk([&](Operation* op) {
      if (ownScratch(op) <= kOwnScratch) return;
      const auto pitch = static_cast<int32_t>(most[roleOf(op)]);
      op->setAttr(kScratchPitchAttr, Builder(op->getContext()).getI32IntegerAttr(pitch));
    });
    buffers_.collect();
    return true;
  }

  /// The members of a group that shares a barrier (meet_together.cpp) need their scratch at the same time. Groups are
  /// split again if that would cost programs of a multiprocessor. In programs that gather, the bytes come out of the L1
  /// cache, and must be worth the barriers saved. Where groups are small, those of two are not worth it either: they
  /// save one barrier if the two could alternate, and none if there is no room for that.
  int64_t placeGroups(const Target& target) {
    for (const size_t split : {size_t{2}, std::numeric_limits<size_t>::max()}) {
      const int64_t total = placeAll(target);
      const auto barriers = static_cast<int64_t>(buffers_.meetings().size());
      llvm::DenseSet<Operation*> groups;
      for (auto [other, first] : buffers_.meetings()) groups.insert(first);
      const int64_t limit =
          gathers() ? kSharedForBarrier * threads(target) * barriers : sharedBytesEach(target, programsWanted(target));
      if (barriers == 0 || (barriers >= 2 * static_cast<int64_t>(groups.size()) && total <= limit)) return total;
      splitGroups(split);
    }
    return placeAll(target);
  }

  int64_t placeAll(const Target& target) {
    const int64_t tight = buffers_.arrange();
    // Bytes rest (see Rests) as far as there is room. With roles the number of programs of a multiprocessor is known,
    // and all memory that they leave can be used; buffers rest, and scratch of both kinds, or the most that fits.
    // Without roles, scratch rests only if there is room for as many programs as a multiprocessor has threads for, and
    // registers for what their loops carry.
    SpecializeOp roles = rolesOf();
    const int64_t limit =
        sharedBytesEach(target, roles ? static_cast<int>(roles.getPrograms()) : programsCarrying(target));
    // Without roles, operands that loops compute rest, too, if at least kKept of kOf programs per multiprocessor
    // remain.
    if (!roles && buffers_.restScratch({.scratch = true, .operands = true})) {
      constexpr int64_t kOf = 8, kKept = 7;
      const int64_t loose = buffers_.arrange();
      if (kOf * programsWith(target, loose) >= kKept * programsWith(target, tight)) return loose;
    }
    const Rests all{true, true, true}, inside{true, true}, meetings{true}, none{};
    for (const Rests& rests : {all, inside, meetings, none}) {
      if (rests.ofWarps && !roles) continue;
      buffers_.restore();
      bool changed = roles && buffers_.rest(rests);
      if (rests.scratch) changed |= buffers_.restScratch(rests);
      isTight_ = !rests.scratch;
      if (!changed) break;
      const int64_t loose = buffers_.arrange();
      if (loose == tight || loose <= limit) return loose;
    }
    buffers_.restore();
    return buffers_.arrange();
  }

  SpecializeOp rolesOf() {
    SpecializeOp roles;
    func_.walk([&](SpecializeOp op) { roles = op; });
    return roles;
  }

  /// Whether the kernel gathers elements of tiles.
  bool gathers() {
    return func_
        .walk([](GatherOp gather) {
          return isa<RankedTensorType>(gather.getType()) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  int programsWanted(const Target& target) {
    if (SpecializeOp roles = rolesOf()) return static_cast<int>(roles.getPrograms());
    return std::max(1, mostPrograms(target) / 2);  // registers rarely leave room for more
  }

  /// Splits groups of at most so many ops.
  void splitGroups(size_t most) {
    func_.walk([&](Operation* op) {
      if (!op->hasAttr(kMeetsAttr)) return;
      const SmallVector<Operation*> others = metWith(op);
      if (others.size() >= most) return;
      op->removeAttr(kMeetsAttr);
      for (Operation* other : others) other->removeAttr(kMetAttr);
    });
    buffers_.collect();
  }

  /// How many programs of so many bytes a multiprocessor has room for, at most half of what its threads allow.
  int64_t programsWith(const Target& target, int64_t bytes) {
    int programs = std::max(1, mostPrograms(target) / 2);
    while (programs > 1 && sharedBytesEach(target, programs) < bytes) --programs;
    return programs;
  }

  int mostPrograms(const Target& target) {
    constexpr int kThreads = 2048, kMost = 32;  // of a multiprocessor
    return std::clamp(kThreads / threads(target), 1, kMost);
  }
  int programsCarrying(const Target& target) {
    constexpr int64_t kOthers = 16;  ///< registers for addresses and the like, at least
    const int64_t each = (std::max(registersCarried(func_), registersWaiting()) + kOthers) * threads(target);
    return std::clamp(static_cast<int>(target.registersPerSm / each), 1, mostPrograms(target));
  }

  /// The most 32-bit registers of a thread for one tile that is there on both sides of a barrier: elements of it meet
  /// others, and the tile is read again behind.
  int64_t registersWaiting() {
    int64_t most = 0;
    func_.walk([&](Operation* op) {
      const auto scratch = scratchOf(op);
      if (!scratch || scratch->warpLocal()) return;
      for (Value put : op->getOperands())
        if (llvm::any_of(put.getUsers(), [&](Operation* user) {
              return user->getBlock() == op->getBlock() && op->isBeforeInBlock(user) && !scratchOf(user);
            }))
          most = std::max(most, registersOf(put.getType()));
    });
    return most;
  }

  int threads(const Target& target) { return target.lanes * warpsOf(func_, kUsualWarps); }

  func::FuncOp func_;
  std::vector<std::pair<Operation*, Attribute>> gaps_;  ///< of takes
  Buffers buffers_;
  bool isTight_ = false;  ///< there was no room for scratch to rest
};

class PlaceBuffersPass : public PassWrapper<PlaceBuffersPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlaceBuffersPass)
  explicit PlaceBuffersPass(TargetOf target) : target_(std::move(target)) {}
  PlaceBuffersPass(const PlaceBuffersPass& other) = default;
  StringRef getArgument() const override { return "tile-place-buffers"; }
  StringRef getDescription() const override { return "give every buffer and scratch its address in shared memory"; }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal()) return;
    const Target& target = target_();
    Placer placer(func);
    int64_t total = placer.place(target);
    // Also where it is too much: the pipeline asks why this failed.
    const int64_t most = std::numeric_limits<int32_t>::max();
    func->setAttr(kSharedBytesAttr, Builder(func.getContext()).getI32IntegerAttr(std::min(total, most)));
    if (total > target.maxSharedBytes) {
      InFlightDiagnostic error = func.emitError() << "kernel `" << func.getSymName() << "` needs " << total
                                                  << " bytes of shared memory per program, " << target.name << " has "
                                                  << target.maxSharedBytes;
      placer.explain(error, total, target.maxSharedBytes);
      return signalPassFailure();
    }
    placer.write();
  }

 private:
  TargetOf target_;
};

}  // namespace

std::unique_ptr<Pass> createPlaceBuffersPass(TargetOf target) {
  return std::make_unique<PlaceBuffersPass>(std::move(target));
}

}  // namespace tile::ir
