// place_buffers.cpp - assigns addresses in shared memory, by first fit over lifetimes. A buffer lives from its
// allocation to the end of the last statement (of the allocation's block) that uses it, or until the copies that it
// began have landed; the scratch of an op lives while the op runs. Buffers whose lifetimes do not overlap may share
// bytes: insert_barriers, which runs later, keeps their users apart. Small scratch gets bytes of its own as long as
// there is little of it: sharing would save nothing and cost barriers. Takes from one small tile, and boxes of it that
// overlap, share the copy that the first of them has put there.
#include <algorithm>
#include <limits>

#include "compiler/diagnostics.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/rings/lifetimes.h"
#include "compiler/gpu/rings/plan.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

SmemAllocOp allocationOf(Value smem) {
  while (Operation* op = smem.getDefiningOp()) {
    if (auto alloc = dyn_cast<SmemAllocOp>(op)) return alloc;
    if (auto slot = dyn_cast<SmemSlotOp>(op))
      smem = slot.getRing();
    else if (auto trans = dyn_cast<SmemTransOp>(op))
      smem = trans.getSource();
    else
      break;
  }
  return {};
}

int64_t ringBytes(RingAllocOp ring) {
  RingType type = ring.getResult().getType();
  return (type.bytes() + type.getStages() * ring.getPayload() + 7) / 8 * 8;
}

std::string bufferName(Operation* op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (auto alloc = dyn_cast<SmemAllocOp>(op)) {
    SmemType type = alloc.getResult().getType();
    if (type.isRing()) out << "ring of " << type.getStages() << " x ";
    for (int64_t dim : type.getShape()) out << dim << "x";
    out << type.getElementType();
  } else if (auto ring = dyn_cast<RingAllocOp>(op)) {
    out << "barriers of a ring of " << ring.getResult().getType().getStages();
  } else {
    out << scratchName(op);
  }
  return text;
}

std::vector<BufferInfo> sharedBuffers(func::FuncOp func) {
  std::vector<BufferInfo> buffers;
  func.walk([&](Operation* op) {
    BufferInfo info;
    if (auto alloc = dyn_cast<SmemAllocOp>(op)) {
      if (!alloc.getOffset()) return;
      info.offset = *alloc.getOffset();
      info.bytes = static_cast<uint32_t>(alloc.getResult().getType().bytes());
    } else if (auto ring = dyn_cast<RingAllocOp>(op)) {
      if (!ring.getOffset()) return;
      info.offset = *ring.getOffset();
      info.bytes = static_cast<uint32_t>(ringBytes(ring));
    } else if (auto offset = op->getAttrOfType<IntegerAttr>(kScratchAttr)) {
      info.offset = static_cast<uint32_t>(offset.getInt());
      info.bytes = static_cast<uint32_t>(scratchOf(op)->bytes);
      if (!info.bytes) return;  // only a barrier
    } else {
      return;
    }
    SourcePlace place = sourcePlace(op->getLoc());
    info.what = bufferName(op);
    info.file = place.file;
    info.line = place.line;
    buffers.push_back(std::move(info));
  });
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const BufferInfo& a, const BufferInfo& b) { return a.offset < b.offset; });
  return buffers;
}

namespace {

constexpr int64_t kSmallScratch = 1024, kSmallScratchTotal = 4096;
constexpr int64_t kSharedForBarrier = 4;  ///< bytes per thread that saving a barrier may cost, see placeGroups

struct Buffer {
  Operation* op;
  int64_t bytes, alignment;
  int64_t begin, end;  ///< positions in program order, inclusive
  int64_t offset = -1;
  int64_t firstUse = 0, lastUse = 0;  ///< `begin` and `end` as used, see Rests
};

/// Bytes "rest" if they stay allocated after their last use, until the next buffer or scratch beside them is done with.
/// Reusing them at once would need a barrier for the last readers; later there has been one anyway. This says what
/// rests.
struct Rests {
  bool scratch = false;   ///< of ops with a barrier of all threads
  bool ofWarps = false;   ///< of exchanges inside a warp
  bool ofLast = false;    ///< what the last op of an iteration uses: it stays allocated for the whole loop
  bool operands = false;  ///< without roles: operands that loops compute into shared memory
};

class Placer {
 public:
  explicit Placer(func::FuncOp func) : func_(func), order_(func) {
    leaveGaps();
    collect();
  }

  /// Places everything; returns the bytes needed. Gaps between rows that takes read (against bank conflicts) are given
  /// up if without them there is room for bytes to rest: barriers cost more.
  int64_t place(const Target& target) {
    const int64_t total = placePieces(target);
    if (gaps_.empty() || !isTight_) return total;
    for (auto [take, gaps] : gaps_) take->removeAttr(kScratchGapsAttr);
    collect();
    const int64_t without = placePieces(target);
    if (!isTight_) return without;
    for (auto [take, gaps] : gaps_) take->setAttr(kScratchGapsAttr, gaps);
    collect();
    return placePieces(target);
  }

  int64_t placePieces(const Target& target) {
    const int64_t total = placeGroups(target);
    if (!alignPieces()) return total;
    const int64_t aligned = placeGroups(target), limit = sharedBytesEach(target, programsWanted(target));
    if (aligned <= std::max(total, limit)) return aligned;
    func_.walk([](Operation* op) { op->removeAttr(kScratchPitchAttr); });
    collect();
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
    collect();
    return true;
  }

  int64_t placeGroups(const Target& target) {
    const int64_t total = placeAll(target);
    // The members of a group that shares a barrier (meet_together.cpp) need their scratch at the same time. Groups are
    // split again if that would cost programs of a multiprocessor. In programs that gather, the bytes come out of the
    // L1 cache, and must be worth the barriers saved. Groups of two are not worth it either: they save one barrier if
    // the two could alternate, and none if there is no room for that.
    const auto barriers = static_cast<int64_t>(meetings_.size());
    llvm::DenseSet<Operation*> groups;
    for (auto [other, first] : meetings_) groups.insert(first);
    const int64_t limit =
        gathers() ? kSharedForBarrier * threads(target) * barriers : sharedBytesEach(target, programsWanted(target));
    if (barriers == 0 || (barriers >= 2 * static_cast<int64_t>(groups.size()) && total <= limit)) return total;
    splitGroups();
    return placeAll(target);
  }

  int64_t placeAll(const Target& target) {
    const int64_t tight = arrange();
    // Bytes rest (see Rests) as far as there is room. With roles the number of programs of a multiprocessor is known,
    // and all memory that they leave can be used; buffers rest, and scratch of both kinds, or the most that fits.
    // Without roles, scratch rests only if there is room for as many programs as a multiprocessor has threads for, and
    // registers for what their loops carry.
    SpecializeOp roles = rolesOf();
    const int64_t limit =
        sharedBytesEach(target, roles ? static_cast<int>(roles.getPrograms()) : programsCarrying(target));
    for (Buffer& buffer : buffers_) buffer.firstUse = buffer.begin, buffer.lastUse = buffer.end;
    auto restore = [&] {
      for (Buffer& buffer : buffers_) buffer.begin = buffer.firstUse, buffer.end = buffer.lastUse;
    };
    // Without roles, operands that loops compute rest, too, if at least kKept of kOf programs per multiprocessor
    // remain.
    if (!roles && restScratch({.scratch = true, .operands = true})) {
      constexpr int64_t kOf = 8, kKept = 7;
      const int64_t loose = arrange();
      if (kOf * programsWith(target, loose) >= kKept * programsWith(target, tight)) return loose;
    }
    const Rests all{true, true, true}, inside{true, true}, meetings{true}, none{};
    for (const Rests& rests : {all, inside, meetings, none}) {
      if (rests.ofWarps && !roles) continue;
      restore();
      bool changed = roles && rest(rests);
      if (rests.scratch) changed |= restScratch(rests);
      isTight_ = !rests.scratch;
      if (!changed) break;
      const int64_t loose = arrange();
      if (loose == tight || loose <= limit) return loose;
    }
    restore();
    return arrange();
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

  void splitGroups() {
    func_.walk([](Operation* op) {
      op->removeAttr(kMeetsAttr);
      op->removeAttr(kMetAttr);
    });
    collect();
  }

  int64_t arrange() {
    for (Buffer& buffer : buffers_) buffer.offset = -1;
    // Large buffers first: small ones fill the gaps.
    std::vector<Buffer*> order;
    for (Buffer& buffer : buffers_) order.push_back(&buffer);
    std::stable_sort(order.begin(), order.end(), [](Buffer* a, Buffer* b) { return a->bytes > b->bytes; });
    int64_t total = 0;
    for (Buffer* buffer : order) {
      buffer->offset = firstFit(*buffer, buffers_);
      total = std::max(total, buffer->offset + buffer->bytes);
    }
    return total;
  }

  void write() {
    Builder builder(func_.getContext());
    for (Buffer& buffer : buffers_) {
      auto offset = builder.getI32IntegerAttr(static_cast<int32_t>(buffer.offset));
      if (auto alloc = dyn_cast<SmemAllocOp>(buffer.op))
        alloc.setOffsetAttr(offset);
      else if (auto ring = dyn_cast<RingAllocOp>(buffer.op))
        ring.setOffsetAttr(offset);
      else
        buffer.op->setAttr(kScratchAttr, offset);
      for (Operation* op : sharers_.lookup(buffer.op)) op->setAttr(kScratchAttr, offset);
    }
  }

  // Adds notes that say which buffers need how much, and what would fit.
  void explain(InFlightDiagnostic& error, int64_t total, int64_t limit) {
    std::vector<Buffer*> order;
    for (Buffer& buffer : buffers_) order.push_back(&buffer);
    std::stable_sort(order.begin(), order.end(), [](Buffer* a, Buffer* b) { return a->bytes > b->bytes; });
    constexpr size_t kMost = 10;
    for (Buffer* buffer : ArrayRef(order).take_front(kMost))
      error.attachNote(buffer->op->getLoc())
          << buffer->bytes << " bytes at " << buffer->offset << ": " << bufferName(buffer->op);
    if (order.size() > kMost)
      error.attachNote(order[kMost]->op->getLoc())
          << "and " << order.size() - kMost << " more, of at most " << order[kMost]->bytes << " bytes each";
    const int64_t over = total - limit;
    Buffer* culprit = largestAtFault(order, over, limit);
    if (!culprit) {
      error.attachNote(order.front()->op->getLoc()) << "no buffer alone is at fault: use smaller tiles";
      return;
    }
    auto alloc = dyn_cast<SmemAllocOp>(culprit->op);
    if (alloc && alloc.getResult().getType().isRing()) {
      SmemType type = alloc.getResult().getType();
      int64_t stages = type.getStages() - (over + type.slotBytes() - 1) / type.slotBytes();
      if (stages >= 1) {
        error.attachNote(culprit->op->getLoc())
            << "a ring of " << stages << " stage(s) of " << type.slotBytes() << " bytes would fit";
        return;
      }
    }
    error.attachNote(culprit->op->getLoc())
        << "it fits when this buffer has at most " << culprit->bytes - over << " bytes: use smaller tiles";
  }

 private:
  // The largest buffer that would make everything fit if it were smaller by `over`. Null: there is none.
  Buffer* largestAtFault(ArrayRef<Buffer*> bySize, int64_t over, int64_t limit) {
    for (Buffer* buffer : bySize) {
      if (buffer->bytes <= over) return nullptr;
      buffer->bytes -= over;
      const bool fits = arrange() <= limit;
      buffer->bytes += over;
      if (fits) return buffer;
    }
    return nullptr;
  }

  // All takes from one tile read the same copy, so they agree on its gaps.
  void leaveGaps() {
    llvm::DenseSet<Value> seen;
    func_.walk([&](TakeOp take) {
      const Value source = take.getSource();
      const Gaps gaps = seen.insert(source).second ? gapsForTakes(source) : Gaps{};
      if (!gaps) return;
      for (Operation* user : source.getUsers())
        if (isa<TakeOp>(user)) {
          user->setAttr(kScratchGapsAttr, DenseI64ArrayAttr::get(user->getContext(), {gaps.bytes, gaps.row}));
          gaps_.emplace_back(user, user->getAttr(kScratchGapsAttr));
        }
    });
  }

  void collect() {
    int64_t small = 0;
    std::vector<size_t> smallOnes;
    llvm::DenseMap<Region*, Operation*> own;
    llvm::DenseMap<std::pair<Value, Block*>, size_t> takes, extracts;  // the first op: it puts the tile for the others
    buffers_.clear(), sharers_.clear(), meetings_.clear();
    func_.walk([](Operation* op) { op->removeAttr(kScratchFilledAttr); });
    func_.walk<WalkOrder::PreOrder>([&](Operation* op) {
      if (auto alloc = dyn_cast<SmemAllocOp>(op)) {
        SmemType type = alloc.getResult().getType();
        Buffer buffer{op, type.bytes(), type.alignment(), order_.begin(op), lastUse(op), -1};
        if (isBulkCopied(op)) {  // bulk copies do not follow program order
          buffer.alignment = std::max(buffer.alignment, layout::kBulkAlignment);
          buffer.begin = 0, buffer.end = order_.end(func_);
        }
        buffers_.push_back(buffer);
      } else if (auto ring = dyn_cast<RingAllocOp>(op)) {
        // Payloads are read in vectors.
        buffers_.push_back({op, ringBytes(ring), ring.getPayload() % 16 ? 8 : 16, 0, order_.end(func_), -1});
      } else if (auto scratch = scratchOf(op)) {
        for (Operation* other : metWith(op)) meetings_[other] = op;
        if (scratch->piece == kOwnScratch) {  // one piece of memory for all ops of a role
          Operation*& first = own[roleOf(op)];
          if (first) return sharers_[first].push_back(op);
          first = op;
          return buffers_.push_back({op, scratch->bytes, scratch->alignment, 0, order_.end(func_), -1});
        }
        auto take = dyn_cast<TakeOp>(op);
        if (op->hasAttr(kPutsWholeAttr) || (take && tileBytes(take.getSource().getType()) <= kMostSharedTake)) {
          Operation* loop = op->hasAttr(kReadsCopyAttr) ? behindCopy(take, takes) : nullptr;
          auto [at, isFirst] =
              (take ? takes : extracts)
                  .try_emplace({op->getOperand(0), loop ? loop->getBlock() : op->getBlock()}, buffers_.size());
          if (!isFirst) {
            Buffer& first = buffers_[at->second];
            first.end = std::max(first.end, order_.end(loop ? loop : op));
            op->setAttr(kScratchFilledAttr, UnitAttr::get(op->getContext()));
            return sharers_[first.op].push_back(op);
          }
        }
        if (scratch->bytes <= kSmallScratch) {
          small += scratch->bytes;
          smallOnes.push_back(buffers_.size());
        }
        buffers_.push_back({op, scratch->bytes, scratch->alignment, metAt(op), order_.end(op), -1});
      }
    });
    if (small > kSmallScratchTotal) return;
    for (size_t i : smallOnes) buffers_[i].begin = 0, buffers_[i].end = order_.end(func_);
  }

  /// The loop around a take in front of which the copy of its tile is made (or an op around that loop).
  static Operation* behindCopy(TakeOp take, const llvm::DenseMap<std::pair<Value, Block*>, size_t>& takes) {
    for (Operation* op = take->getParentOp(); op->getBlock(); op = op->getParentOp())
      if (takes.contains({take.getSource(), op->getBlock()})) return op;
    return nullptr;
  }

  /// When the op puts its elements: with the first op of its group.
  int64_t metAt(Operation* op) const {
    Operation* first = meetings_.lookup(op);
    return order_.begin(first ? first : op);
  }

  /// The role that runs the op; null: there are none.
  static Region* roleOf(Operation* op) {
    auto roles = op->getParentOfType<SpecializeOp>();
    if (!roles) return nullptr;
    for (Region& region : roles->getRegions())
      if (region.isAncestor(op->getParentRegion())) return &region;
    return nullptr;
  }

  /// All users of the buffer, also through its slots and transposes.
  static SmallVector<Operation*> usersOf(Operation* alloc) {
    SmallVector<Operation*> users;
    SmallVector<Value> aliases{alloc->getResult(0)};
    for (size_t i = 0; i < aliases.size(); ++i) {
      for (Operation* user : aliases[i].getUsers()) {
        users.push_back(user);
        for (Value result : user->getResults())
          if (isa<SmemType>(result.getType())) aliases.push_back(result);
      }
    }
    return users;
  }

  static bool isBulkCopied(Operation* alloc) {
    return llvm::any_of(usersOf(alloc), [](Operation* user) {
      // Copies by a producer's threads do not follow program order either.
      if (isa<AsyncCopyOp, AsyncGatherOp>(user)) return user->getParentOfType<SpecializeOp>() != nullptr;
      return isa<TmaLoadOp, TmaDescribeOp, TmaStoreOp, SmemTurnOp>(user);
    });
  }

  /// Lets buffers rest until the next one in their block is done with. False: nothing changed.
  bool rest(const Rests& rests) {
    bool changed = false;
    for (Buffer& buffer : buffers_) {
      if (!isa<SmemAllocOp>(buffer.op) || buffer.begin == 0) continue;
      const Buffer* next = nullptr;
      for (const Buffer& other : buffers_)
        if (isa<SmemAllocOp>(other.op) && other.op->getBlock() == buffer.op->getBlock() &&
            other.begin > buffer.lastUse && (!next || other.begin < next->begin))
          next = &other;
      if (next)
        buffer.end = next->lastUse, changed = true;
      else if (rests.ofLast)
        changed |= setAside(buffer);
    }
    return changed;
  }

  /// Whether it is a buffer that a loop computes and reads in every iteration.
  static bool isComputedInLoop(Operation* op) {
    return isa<SmemAllocOp>(op) && isa<LoopLikeOpInterface>(op->getParentOp()) &&
           llvm::all_of(usersOf(op),
                        [](Operation* user) { return !isa<AsyncCopyOp, AsyncGatherOp, TmaStoreOp>(user); });
  }

  /// Keeps the buffer allocated for the whole loop around it. False: there is no loop.
  bool setAside(Buffer& buffer) {
    Operation* loop = buffer.op->getParentOp();
    if (!isa<LoopLikeOpInterface>(loop)) return false;
    buffer.begin = order_.begin(loop), buffer.end = order_.end(loop);
    return true;
  }

  /// Lets scratch rest until the next op of its block with a barrier of all threads is done; scratch of single warps
  /// only if that is the next op with scratch. With `rests.operands` operands, too. False: nothing changed, or operands
  /// were asked for and there are none.
  bool restScratch(const Rests& rests) {
    bool changed = false, any = !rests.operands;
    struct Use {
      Buffer* buffer;
      bool waits;  ///< has a barrier of all warps of its own, not that of an earlier op of its group
    };
    llvm::DenseMap<Block*, std::vector<Use>> uses;  // in program order
    SmallVector<std::pair<Buffer*, bool>> resting;
    for (Buffer& buffer : buffers_) {
      const auto scratch = isa<SmemAllocOp, RingAllocOp>(buffer.op) ? std::nullopt : scratchOf(buffer.op);
      const bool ofWarp = scratch && scratch->warpLocal(), isOperand = rests.operands && isComputedInLoop(buffer.op);
      if (!isOperand && (!scratch || (ofWarp && !rests.ofWarps))) continue;
      any |= isOperand;
      uses[buffer.op->getBlock()].push_back({&buffer, !ofWarp && !buffer.op->hasAttr(kMetAttr)});
      resting.emplace_back(&buffer, ofWarp);
    }
    if (!any) return false;
    for (auto [buffer, ofWarp] : resting) {
      const auto& others = uses[buffer->op->getBlock()];
      auto next = std::upper_bound(others.begin(), others.end(), buffer->lastUse,
                                   [&](int64_t end, const Use& other) { return end < order_.begin(other.buffer->op); });
      if (!ofWarp) next = std::find_if(next, others.end(), [](const Use& other) { return other.waits; });
      if (next != others.end() && next->waits)
        buffer->end = isa<SmemAllocOp>(next->buffer->op) ? next->buffer->lastUse : order_.end(next->buffer->op),
        changed = true;
      else if (next == others.end() && !ofWarp && rests.ofLast)
        changed |= setAside(*buffer);
    }
    return changed;
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
    const int64_t each = (registersCarried(func_) + kOthers) * threads(target);
    return std::clamp(static_cast<int>(target.registersPerSm / each), 1, mostPrograms(target));
  }
  int threads(const Target& target) {
    return target.lanes * warpsOf(func_, kUsualWarps);
  }

  int64_t lastUse(Operation* alloc) {
    int64_t last = order_.end(alloc);
    for (Operation* user : usersOf(alloc)) {
      Operation* statement = alloc->getBlock()->findAncestorOpInBlock(*user);
      if (statement && isa<AsyncCopyOp, AsyncGatherOp>(user)) statement = landed(statement);
      last = std::max(last, statement ? order_.end(statement) : order_.end(func_));
    }
    return last;
  }

  /// The barrier behind which all threads see what copies started by `statement` write (in a pipelined loop also the
  /// last ones, which nobody reads and which write zeros). Null: there is none in the block.
  static Operation* landed(Operation* statement) {
    const bool isCopy = isa<AsyncCopyOp, AsyncGatherOp>(statement);
    bool waited = false;
    int64_t begun = 0;  // groups committed, its own and later ones
    for (Operation* op = statement; op; op = op->getNextNode()) {
      if (isa<AsyncCommitOp>(op)) ++begun;
      if (auto wait = dyn_cast<AsyncWaitOp>(op))
        waited |= wait.getPending() == 0 || (isCopy && static_cast<int64_t>(wait.getPending()) < begun);
      if (waited && isa<BarrierOp>(op)) return op;
    }
    return nullptr;
  }

  func::FuncOp func_;
  ProgramOrder order_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<Operation*, Attribute>> gaps_;  ///< of takes
  bool isTight_ = false;                                ///< there was no room for scratch to rest
  llvm::DenseMap<Operation*, Operation*> meetings_;     ///< from ops that only get to the op that puts for them
  llvm::DenseMap<Operation*, SmallVector<Operation*>> sharers_;  ///< from the first user of scratch to the others
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
