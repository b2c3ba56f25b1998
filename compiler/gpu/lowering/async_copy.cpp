// async_copy.cpp - global to shared memory: cp.async where chunks of 4 bytes or more are aligned, else through
// registers.
//
// Threads stand in rows of 2^c along the buffer's contiguous dim, so that neighbours read neighbouring chunks; each
// thread takes every (threads / 2^c)-th row. Its addresses are one base per copy plus constants: what changes from
// iteration to iteration of a loop is the same for all threads and is added last. In loops, many chunks through
// registers are read one way where the box is inside as a whole, without conditions, another way where it is not.
#include <functional>
#include <map>

#include "compiler/analysis/diagonals.h"
#include "compiler/gpu/access/copy_layout.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "compiler/gpu/lowering/tile_access.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace tile::ir {
using namespace llvm;

namespace {

/// Issues the chunks of one copy. Chunks through registers are loaded in batches before they are stored.
class ChunkCopier {
 public:
  /// Emitted beside the access that needs it: in front of a branch all of them would be in registers.
  using Made = std::function<Value*()>;

  /// `ofParts`: conditions are made of several. As a size each would be selected by one after the other, with a
  /// comparison at the end; as a condition they are one. `inMostWarps`: of half the warps or more some threads write. A
  /// branch around them would keep the arithmetic of addresses from running beside other work, and save little.
  ChunkCopier(Emitter& e, int bytes, CacheHint cache, bool ofParts = false, bool inMostWarps = false)
      : e_(e),
        bytes_(bytes),
        cache_(cache),
        policy_(l2Policy(e, cache)),
        ofParts_(ofParts),
        inMostWarps_(inMostWarps) {}

  /// `read`: chunk is read if true (null: always), else zeros. `partial`: bytes to read, the rest zeros (null: all).
  /// `write`: false leaves the buffer alone (null: always write).
  /// `isSecond`: it lies behind the chunk before in the buffer, and both together are a word. `diagonal`: chunks
  /// through registers with the same number are the same, and read once.
  void copy(Value* target, Made sourceAt, Made isRead, Value* partial, Value* write, bool isSecond = false,
            std::optional<int64_t> diagonal = {}) {
    if (bytes_ < 4) {
      e_.roles().storesChunks = true;
      const bool isKnown = diagonal && ofDiagonals_.contains(*diagonal);
      if (!isKnown && reads_ == (diagonal ? kSharedBatch : kBatch)) finish(), isSecond = false;
      isSecond &= !pending_.empty() && pending_.back().write == write;
      pending_.push_back({target, std::move(sourceAt), std::move(isRead), write, isSecond, diagonal});
      if (diagonal) ofDiagonals_.try_emplace(*diagonal, nullptr);
      if (!isKnown) ++reads_;
      return;
    }
    IRBuilder<>& b = e_.b;
    Value *source = sourceAt(), *read = isRead();
    Value* predicate = inMostWarps_ && !partial ? write : nullptr;
    emitIf(e_, predicate ? nullptr : write, [&] {
      if (predicate || (ofParts_ && read && !partial))
        return copyPart(target, source, read ? b.CreateNot(read) : nullptr, "b", predicate);
      Value* size = partial;
      if (read) size = b.CreateSelect(read, partial ? partial : e_.i32(bytes_), e_.i32(0));
      if (policy_) return copyPart(target, source, size, "r", nullptr);
      SmallVector<Value*, 3> args{target, source};
      if (size) args.push_back(size);
      b.CreateIntrinsic(intrinsic(size), {}, args);
    });
  }

  /// Where the condition holds, for all threads of most warps, all that is written is read: chunks through registers
  /// need no conditions of their own there.
  void readWholeIf(Value* inside) { inside_ = inside; }

  /// `more`: the copy that follows at once begins to read before what this one has read is stored.
  void finish(bool more = false) {
    Type* type = e_.b.getIntNTy(8 * bytes_);
    auto load = [&](bool isInside) {
      Regs values;
      auto known = ofDiagonals_;
      for (const Pending& p : pending_) {
        Value* read = p.diagonal ? known[*p.diagonal] : nullptr;
        if (!read)
          read = loadVector(e_, p.source(), type, 1, isInside ? p.write : e_.andAll({p.read(), p.write}),
                            {Constant::getNullValue(type)}, cache_)[0];
        if (p.diagonal) known[*p.diagonal] = read;
        values.push_back(read);
      }
      return values;
    };
    const Regs values = inside_ && !pending_.empty() ? branch(e_, inside_, load) : load(false);
    SmallVector<KernelRoles::ReadChunk> loaded;
    for (auto [p, value] : zip(pending_, values))
      if (p.diagonal) ofDiagonals_[*p.diagonal] = value;
    for (auto [p, value] : zip(pending_, values))
      if (p.isSecond)
        loaded.back().value = asWord(loaded.back().value, value);
      else
        loaded.push_back({p.target, value, p.write});
    pending_.clear(), reads_ = 0;
    auto& read = e_.roles().readChunks;
    storeRead();
    read = std::move(loaded);
    if (!more) storeRead();
  }

 private:
  void storeRead() {
    auto& read = e_.roles().readChunks;
    for (const KernelRoles::ReadChunk& chunk : read) storeVector(e_, chunk.target, {chunk.value}, chunk.write);
    read.clear();
  }

  Value* asWord(Value* low, Value* high) {
    IRBuilder<>& b = e_.b;
    Type* word = b.getIntNTy(16 * bytes_);
    return b.CreateOr(b.CreateZExt(low, word), b.CreateShl(b.CreateZExt(high, word), 8 * bytes_), "", true);
  }

  static constexpr int kBatch = 16, kSharedBatch = 24;  // loads; those that several chunks share save registers
  struct Pending {
    Value* target;
    Made source, read;
    Value* write;
    bool isSecond = false;
    std::optional<int64_t> diagonal;
  };

  /// What no intrinsic says: with a cache policy, zeros instead where a condition holds, or nothing without `predicate`
  /// (null: always). `part`: how many bytes are read ("r"), the condition ("b"), or null.
  void copyPart(Value* target, Value* source, Value* part, const char* constraint, Value* predicate) {
    SmallVector<Value*, 4> args{target, source};
    std::string constraints = "r,l", operands;
    auto add = [&](Value* value, const char* kind) {
      if (!value) return;
      operands.append(", $").append(std::to_string(args.size()));
      args.push_back(value);
      constraints.append(",").append(kind);
    };
    add(part, constraint), add(policy_, "l");
    std::string text = llvm::formatv("cp.async.{0}.shared.global{1} [$0], [$1], {2}{3};", bytes_ == 16 ? "cg" : "ca",
                                     policy_ ? ".L2::cache_hint" : "", bytes_, operands);
    if (predicate) text = "@$" + std::to_string(args.size()) + " " + text, add(predicate, "b");
    e_.inlineAsm(e_.b.getVoidTy(), text, constraints.append(",~{memory}"), args);
  }

  Intrinsic::ID intrinsic(bool sized) const {
    switch (bytes_) {
      case 4:
        return sized ? Intrinsic::nvvm_cp_async_ca_shared_global_4_s : Intrinsic::nvvm_cp_async_ca_shared_global_4;
      case 8:
        return sized ? Intrinsic::nvvm_cp_async_ca_shared_global_8_s : Intrinsic::nvvm_cp_async_ca_shared_global_8;
      default:
        return sized ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s : Intrinsic::nvvm_cp_async_cg_shared_global_16;
    }
  }

  Emitter& e_;
  int bytes_;
  CacheHint cache_;
  Value* policy_;  ///< null without a hint
  bool ofParts_, inMostWarps_;
  Value* inside_ = nullptr;  ///< null: not known
  SmallVector<Pending> pending_;
  int reads_ = 0;                          ///< loads of the pending ones
  DenseMap<int64_t, Value*> ofDiagonals_;  ///< what was read of each; null: it will be
};

Value* wide(Emitter& e, Value* v) { return e.b.CreateSExt(v, e.b.getInt64Ty()); }

/// One dim of the copied box.
struct Axis {
  Value *start, *dim, *stride;  ///< i64: box origin, view dim, view stride in elements
  int64_t extent;
  bool whole;      ///< the box is entirely inside or entirely outside the view along this dim
  bool fromZero;   ///< the origin is never negative
  bool varies;     ///< the origin is computed in the loop around the copy
  Value* start32;  ///< the origin when it is an i32, else null
};

/// i32 in [0, extent]: the first position of the box at or behind view position `at`.
Value* boxPosition(Emitter& e, const Axis& axis, Value* at) {
  IRBuilder<>& b = e.b;
  if (axis.start32 && axis.fromZero) {  // half the registers: a view end beyond i32 is beyond every such box
    Value* end = b.CreateTrunc(b.CreateBinaryIntrinsic(Intrinsic::smin, at, e.i64(INT32_MAX)), b.getInt32Ty());
    Value* position = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(end, axis.start32), e.i32(0));
    return b.CreateBinaryIntrinsic(Intrinsic::smin, position, e.i32(axis.extent));
  }
  Value* position = b.CreateSub(at, axis.start);
  position = b.CreateBinaryIntrinsic(Intrinsic::smax, position, e.i64(0));
  position = b.CreateBinaryIntrinsic(Intrinsic::smin, position, e.i64(axis.extent));
  return b.CreateTrunc(position, b.getInt32Ty());
}

/// Through registers an iteration that needs no copy any more takes as long as the others: loops inside of others, of
/// few iterations mostly (channels of each tap), leave it out. (A branch costs registers.)
bool isLeftOut(AsyncGatherOp op) {
  auto loop = op->getParentOfType<mlir::LoopLikeOpInterface>();
  return op.getEnable() && loop && loop->getParentOfType<mlir::LoopLikeOpInterface>();
}

/// By another copy through registers, without conditions for all of it, and with nothing between them that touches
/// memory: the ends of groups of copies are none of theirs.
bool isFollowed(Emitter& e, mlir::Operation* op) {
  auto isPassed = [](mlir::Operation* between) {
    return mlir::isa<AsyncCommitOp, SmemAllocOp>(between) ||
           (between->getNumRegions() == 0 && mlir::isMemoryEffectFree(between));
  };
  mlir::Operation* next = op->getNextNode();
  while (next && isPassed(next)) next = next->getNextNode();
  auto isNarrow = [&](auto copy) {
    return copy.getTarget().getType().elementBytes() < 4 && copyBytes(copy, e.facts()) < 4;
  };
  if (auto copy = mlir::dyn_cast_or_null<AsyncCopyOp>(next)) return isNarrow(copy);
  auto gather = mlir::dyn_cast_or_null<AsyncGatherOp>(next);
  return gather && isNarrow(gather) && !isLeftOut(gather);
}

/// Emits one copy of a box.
class BoxCopy {
 public:
  BoxCopy(Emitter& e, AsyncCopyOp op)
      : e_(e),
        b_(e.b),
        op_(op),
        tile_(op.getTarget().getType().slot()),
        minor_(static_cast<int>(op.getTarget().getType().getMinor())),
        lead_(static_cast<int>(op.getView().getType().getRank()) - 2),
        view_(e.view(op.getView())),
        eb_(tile_.elementBytes),
        chunk_(copyBytes(op, e.facts())),
        rows_(axisOf(1 - minor_)),
        cols_(axisOf(minor_)) {
    unit_ = e.facts().unitStrideDim(op.getView()) == lead_ + minor_;
    turns_ = e.facts().unitStrideDim(op.getView()) == lead_ + 1 - minor_;
    // A view that may end inside a chunk: cp.async reads part of it; through registers, elements go one by one.
    mayCut_ = !cols_.whole && e.facts().dimDivisibility(op.getView(), lead_ + minor_) * eb_ % chunk_ != 0;
    if (chunk_ < 4 && mayCut_) chunk_ = eb_, mayCut_ = false;
    perChunk_ = chunk_ / eb_;
    auto func = op->getParentOfType<mlir::func::FuncOp>();
    comparesNarrow_ = !func.walk([](MmaOp) { return mlir::WalkResult::interrupt(); }).wasInterrupted();
    isInPairs_ = chunk_ == 2 && perChunk_ == 1 && unit_ && cols_.extent % 2 == 0;
  }

  void emit() {
    // What a thread has of a row at a time: a chunk, or two that go into the buffer as a word.
    const int64_t together = isInPairs_ ? 2 : 1, bytes = together * chunk_, elements = together * perChunk_;
    const int64_t boxRows = rows_.extent, chunksPerRow = cols_.extent / elements;
    const auto [threadRows, threadCols] = threadGrid(boxRows, chunksPerRow);
    Value* side = e_.i32(turns_ ? threadRows : threadCols);  // the threads that read neighbours
    Value *threadRow = b_.CreateUDiv(e_.thread(), side), *threadCol = b_.CreateURem(e_.thread(), side);
    if (turns_) std::swap(threadRow, threadCol);
    SmemAddress address(e_, tile_, threadRow, static_cast<int64_t>(PowerOf2Ceil(threadRows)) - 1,
                        b_.CreateNUWMul(threadCol, e_.i32(bytes)),
                        (static_cast<int64_t>(PowerOf2Ceil(threadCols)) - 1) * bytes);
    Type* element = b_.getIntNTy(8 * eb_);
    Value* col64 = b_.CreateZExt(b_.CreateNUWMul(threadCol, e_.i32(elements)), b_.getInt64Ty());
    Value* threadOffset =
        b_.CreateAdd(b_.CreateMul(b_.CreateZExt(threadRow, b_.getInt64Ty()), rows_.stride), steps(col64));
    // The thread's share is invariant in loops; the box's origin is the same for all threads.
    Value* first = b_.CreateGEP(element, b_.CreateGEP(element, view_.ptr, threadOffset), origin());
    Value* exists = sharedCondition();

    // Of the warps that have nothing to copy, few compute addresses in vain.
    const int64_t copying = (turns_ ? std::min<int64_t>(chunksPerRow, threadCols) * threadRows
                                    : std::min<int64_t>(boxRows, threadRows) * threadCols);
    const bool inMostWarps = divideCeil(copying, e_.target.lanes) * 2 * e_.target.lanes >= e_.numThreads();
    ChunkCopier copier(e_, chunk_, op_.getCache(), /*ofParts=*/false, inMostWarps);
    // Once, or of a few chunks, conditions cost less than another way; the elements of a way wait in registers
    // together, so that many cost programs of a multiprocessor, unless they are a producer's.
    constexpr int64_t kMany = 8, kMost = 16;
    const int64_t chunks = divideCeil(boxRows, threadRows) * divideCeil(chunksPerRow, threadCols) * together;
    const bool isMany = chunks >= kMany && (chunks <= kMost || e_.roles().hasRoles());
    if (chunk_ < 4 && isMany && op_->getParentOfType<mlir::LoopLikeOpInterface>())
      copier.readWholeIf(allInside(exists));
    std::map<std::pair<BasicBlock*, int64_t>, Value*> above;  // of a column's chunks, the last one that was addressed
    for (int64_t c = 0; c < chunksPerRow; c += threadCols) {
      Value* partial = nullptr;
      Value* colInside = cols_.whole ? nullptr : columnCondition(col64, c * elements, partial);
      Value* secondInside = !isInPairs_ || cols_.whole ? nullptr : columnCondition(col64, c * elements + 1, partial);
      Value* colInBox =
          c + threadCols <= chunksPerRow ? nullptr : b_.CreateICmpULT(threadCol, e_.i32(chunksPerRow - c));
      // Of two elements the second is inside alone where the box begins in front of the first column.
      const bool eachAlone = secondInside && !cols_.fromZero;
      Value* readAny = e_.andAll({exists, eachAlone ? b_.CreateOr(colInside, secondInside) : colInside});
      // Row r of the thread is inside when threadRow + r < rows inside: one comparison with a constant per row. Rows in
      // front of the view's first need another, in front of the loop if the box's rows are the same in all iterations;
      // else both are one, where such rows are unsigned numbers past all counts.
      Value *below = nullptr, *rowsBefore = nullptr, *position = nullptr, *count = nullptr;
      if (!rows_.whole) {
        Value* inside = boxPosition(e_, rows_, rows_.dim);
        auto before = [&] { return boxPosition(e_, rows_, e_.i64(0)); };
        const bool isOne = !rows_.fromZero && rows_.varies;
        if (isOne) {
          Value* skipped = before();
          inside = b_.CreateSub(inside, skipped);
          position = b_.CreateSub(threadRow, skipped);
        }
        if (readAny) inside = b_.CreateSelect(readAny, inside, e_.i32(0));
        if (isOne) {
          count = inside;
        } else {
          below = b_.CreateSub(threadRow, inside);
          if (!rows_.fromZero) rowsBefore = b_.CreateSub(threadRow, before());
        }
      }
      for (int64_t r = 0; r < boxRows; r += threadRows) {
        auto source = [=, this, &above] {
          // From row to row: products of the stride for each would stay in registers.
          Value*& at = above[{b_.GetInsertBlock(), c}];
          if (at && chunk_ < 4) return at = b_.CreateGEP(element, at, b_.CreateMul(rows_.stride, e_.i64(threadRows)));
          at = r ? b_.CreateGEP(element, first, b_.CreateMul(rows_.stride, e_.i64(r))) : first;
          if (c) at = b_.CreateGEP(element, at, steps(e_.i64(c * elements)));
          return at;
        };
        auto read = [=, this] {
          Value* is = readAny;
          if (below) is = b_.CreateICmpSLT(below, e_.i32(-r));
          if (rowsBefore) is = b_.CreateAnd(is, b_.CreateICmpSGE(rowsBefore, e_.i32(-r)));
          if (position) is = b_.CreateICmpULT(b_.CreateAdd(position, e_.i32(r)), count);
          return is;
        };
        Value* rowInBox = r + threadRows <= boxRows ? nullptr : b_.CreateICmpULT(threadRow, e_.i32(boxRows - r));
        Value *target = address.at(e_.scalar(op_.getTarget()), r, c * bytes), *write = e_.andAll({rowInBox, colInBox});
        auto readFirst = [=, this] { return eachAlone ? e_.andAll({read(), colInside}) : read(); };
        copier.copy(target, source, readFirst, partial, write);
        if (!isInPairs_) continue;
        auto second = [=, this, &above] { return b_.CreateGEP(element, above[{b_.GetInsertBlock(), c}], e_.i64(1)); };
        auto readSecond = [=, this] { return e_.andAll({read(), secondInside}); };
        copier.copy(target, second, readSecond, nullptr, write, /*isSecond=*/true);
      }
    }
    copier.finish(chunk_ < 4 && isFollowed(e_, op_));
  }

 private:
  /// Rows and columns of threads.
  std::pair<int, int> threadGrid(int64_t boxRows, int64_t chunksPerRow) const {
    // More lanes read longer runs, but the swizzle keeps only eight rows of the buffer in different banks (H200, f32: a
    // product of 4096 whose first operand turns takes 2.96 ms with 16, 3.03 with 8, 3.07 with 32).
    constexpr int64_t kInRun = 16;
    if (turns_) {
      const int rows = static_cast<int>(std::min<int64_t>(PowerOf2Ceil(boxRows), kInRun));
      return {rows, e_.numThreads() / rows};
    }
    // A warp has a row, and where there are fewer rows than warps, several have one.
    const int64_t most = std::max<int64_t>(32, bit_floor(e_.numThreads() / PowerOf2Ceil(boxRows)));
    const int columns = threadsPerRow(chunksPerRow, most);
    return {e_.numThreads() / columns, columns};
  }

  /// A power of two. One that divides the row leaves nobody idle and needs no condition, if it reads 64 bytes in a row.
  static int threadsPerRow(int64_t chunksPerRow, int64_t most) {
    const int64_t divisor = chunksPerRow & -chunksPerRow;
    return static_cast<int>(std::min<int64_t>(divisor >= 4 ? divisor : PowerOf2Ceil(chunksPerRow), most));
  }

  Axis axisOf(int tileDim) {
    const Facts& facts = e_.facts();
    const int dim = lead_ + tileDim;
    if (dim < 0)
      return {e_.i64(0), e_.i64(1), e_.i64(0), 1, true, true, false, e_.i32(0)};  // of a vector: its only row
    mlir::Value index = op_.getIndices()[dim];
    const int64_t extent = op_.getBox()[tileDim];
    bool whole = facts.dimDivisibility(op_.getView(), dim) % extent == 0 && facts.divisibility(index) % extent == 0;
    Value* start = e_.scalar(index);
    auto loop = op_->getParentOfType<mlir::LoopLikeOpInterface>();
    return {wide(e_, start),
            view_.dims[dim],
            view_.strides[dim],
            extent,
            whole,
            isFromZero(dim),
            loop && loop->isAncestor(index.getParentRegion()->getParentOp()),
            start->getType()->isIntegerTy(32) ? start : nullptr};
  }

  bool isFromZero(int dim) {
    auto recorded = op_->getAttrOfType<mlir::DenseBoolArrayAttr>(kFromZeroAttr);
    return (recorded && recorded[dim]) || e_.facts().rangeOf(op_.getIndices()[dim]).isNonNegative();
  }

  /// Elements of memory for a number of elements along the contiguous dim.
  Value* steps(Value* count) { return unit_ ? count : b_.CreateMul(count, cols_.stride); }

  /// Elements from the view's first to the box's.
  Value* origin() {
    Value* sum = b_.CreateAdd(b_.CreateMul(rows_.start, rows_.stride), steps(cols_.start));
    for (int d = 0; d < lead_; ++d)
      sum = b_.CreateAdd(sum, b_.CreateMul(wide(e_, e_.scalar(op_.getIndices()[d])), view_.strides[d]));
    return sum;
  }

  /// What all chunks share: the iteration exists, the box is inside along the leading dims and along whole ones.
  Value* sharedCondition() {
    SmallVector<Value*> all;
    if (op_.getEnable()) all.push_back(e_.scalar(op_.getEnable()));
    for (int d = 0; d < lead_; ++d) all.push_back(isInside(e_.scalar(op_.getIndices()[d]), view_.dims[d]));
    for (const Axis* axis : {&rows_, &cols_})
      if (axis->whole) all.push_back(isInside(axis->start32 ? axis->start32 : axis->start, axis->dim));
    return e_.andAll(all);
  }

  /// Of an index of 32 bits, half the registers and comparisons: none is as large as 2^31, which negative ones are as
  /// unsigned numbers.
  Value* isInside(Value* index, Value* dim) {
    if (!comparesNarrow_ || !index->getType()->isIntegerTy(32)) return b_.CreateICmpULT(wide(e_, index), dim);
    return b_.CreateICmpULT(index, narrowed(dim, uint64_t{1} << 31));
  }
  Value* narrowed(Value* dim, uint64_t most) {
    Value* end = b_.CreateBinaryIntrinsic(Intrinsic::umin, dim, b_.getInt64(most));
    return b_.CreateTrunc(end, b_.getInt32Ty());
  }

  /// The box is inside the view as a whole; null: no chunk asks for more than `exists` anyway.
  Value* allInside(Value* exists) {
    if (rows_.whole && cols_.whole) return nullptr;
    SmallVector<Value*> all{exists};
    for (const Axis* axis : {&rows_, &cols_}) {
      if (axis->whole) continue;
      all.push_back(b_.CreateICmpSLE(axis->start, b_.CreateSub(axis->dim, e_.i64(axis->extent))));
      if (!axis->fromZero) all.push_back(b_.CreateICmpSGE(axis->start, e_.i64(0)));
    }
    return e_.andAll(all);
  }

  Value* columnCondition(Value* col64, int64_t constant, Value*& partial) {
    // Unsigned, 32 bits hold the sum; of boxes that begin at multiples of their size none reaches 2^31.
    const bool endsInside =
        isPowerOf2_64(cols_.extent) && e_.facts().divisibility(op_.getIndices()[lead_ + minor_]) % cols_.extent == 0;
    if (comparesNarrow_ && !mayCut_ && cols_.start32 && (cols_.fromZero || endsInside)) {
      Value* col = b_.CreateAdd(b_.CreateTrunc(col64, b_.getInt32Ty()), e_.i32(constant));
      return b_.CreateICmpULT(b_.CreateAdd(cols_.start32, col),
                              narrowed(cols_.dim, endsInside ? uint64_t{1} << 31 : UINT32_MAX));
    }
    Value* col = b_.CreateAdd(cols_.start, b_.CreateAdd(col64, e_.i64(constant)));
    if (mayCut_) {
      Value* left = b_.CreateMul(b_.CreateSub(cols_.dim, col), e_.i64(eb_));
      partial = b_.CreateTrunc(b_.CreateBinaryIntrinsic(Intrinsic::umin, left, e_.i64(chunk_)), b_.getInt32Ty());
    }
    return b_.CreateICmpULT(col, cols_.dim);
  }

  Emitter& e_;
  IRBuilder<>& b_;
  AsyncCopyOp op_;
  layout::SharedTile tile_;
  int minor_, lead_;
  const ViewValue& view_;
  int eb_, chunk_, perChunk_ = 1;
  Axis rows_, cols_;
  bool unit_ = false;   ///< neighbours in the buffer's rows are neighbours in memory
  bool turns_ = false;  ///< neighbours in the buffer's columns are
  bool mayCut_ = false;
  bool comparesNarrow_ = false;  ///< in kernels without products, as counters (copied_loop.cpp)
  bool isInPairs_ = false;  ///< elements of 16 bits, each read by itself
};

}  // namespace

LogicalResult emitAsyncCopy(Emitter& e, AsyncCopyOp op) {
  if (op->getParentOfType<mlir::LoopLikeOpInterface>() && op.getTarget().getType().elementBytes() < 4 &&
      copyBytes(op, e.facts()) < 4)
    op.emitRemark() << "copied element by element, through registers: " << narrowReason(op, e.facts());
  BoxCopy(e, op).emit();
  return success();
}

LogicalResult emitAsyncGather(Emitter& e, AsyncGatherOp op) {
  const SmemType type = op.getTarget().getType();
  const layout::SharedTile tile = type.slot();
  const int minor = static_cast<int>(type.getMinor()), major = 1 - minor;
  const layout::Layout& layout = e.layoutOf(op.getOffsets());
  const int eb = tile.elementBytes;
  // The offsets should be in asyncGatherLayout; any other layout costs width, not correctness.
  int perChunk = copyBytes(op, e.facts()) / eb;
  while (layout.contiguousRegs(minor) % perChunk) perChunk /= 2;

  SmemAddress address(e, tile, layout, major);
  Value* enable = op.getEnable() ? e.scalar(op.getEnable()) : nullptr;
  const auto places = offsetAccess(e, layout, op.getPtr(), op.getOffsets(), op.getMask(), eb);
  ArrayRef<Value*> mask;
  if (op.getMask()) mask = e.regs(op.getMask());
  if (op.getMask() && !(e.layoutOf(op.getMask()) == layout))
    return op.emitOpError("needs its mask in the layout of its offsets");
  ChunkCopier copier(e, perChunk * eb, op.getCache(), /*ofParts=*/true, layout.warpReplicas() <= 2);
  const bool isInPairs = perChunk == 1 && eb == 2 && layout.contiguousRegs(minor) % 2 == 0;
  // What lies on one diagonal a thread reads once, and at a constant distance from what else it reads: offsets that do
  // not wrap differ as their places do.
  constexpr int64_t kNoWrap = int64_t{1} << 30;
  const auto diagonals = perChunk == 1 && !layout.isPadded() ? diagonalsOf(op.getOffsets()) : std::nullopt;
  const bool isReadOnce = diagonals && (!op.getMask() || isAlongDiagonals(op.getMask(), *diagonals));
  const Range range = e.facts().rangeOf(op.getOffsets());
  Value* start = diagonals && range.min > -kNoWrap && range.max < kNoWrap ? places->address(0) : nullptr;
  if (isReadOnce && !mask.empty() && op->getParentOfType<mlir::LoopLikeOpInterface>() &&
      wantsBetween(op.getMask(), *diagonals, e.facts())) {
    auto diagonalOf = [&](int reg) {
      const layout::Coord coord = layout.regCoord(reg);
      return coord[0] * (*diagonals)[0] + coord[1] * (*diagonals)[1];
    };
    int low = 0, high = 0;  // the registers of the outermost ones
    for (int reg = 0; reg < layout.numRegs(); ++reg) {
      if (diagonalOf(reg) < diagonalOf(low)) low = reg;
      if (diagonalOf(reg) > diagonalOf(high)) high = reg;
    }
    copier.readWholeIf(e.andAll({enable, mask[low], mask[high]}));
  }
  Value* first = e.isFirstReplica(layout);  // small tiles have fewer chunks than there are threads
  const bool isBranch = perChunk * eb < 4 && isLeftOut(op);
  emitIf(e, isBranch ? enable : nullptr, [&] {
    for (int reg = 0; reg < layout.numRegs(); reg += perChunk) {
      if (layout.isRegPadding(reg)) continue;
      layout::Coord coord = layout.regCoord(reg);
      const int64_t diagonal = diagonals ? coord[0] * (*diagonals)[0] + coord[1] * (*diagonals)[1] : 0;
      Value* source = start ? e.b.CreatePtrAdd(start, e.i64(diagonal * eb)) : places->address(reg);
      Value* read = e.andAll({isBranch ? nullptr : enable, mask.empty() ? nullptr : mask[reg]});
      const bool isSecond = isInPairs && reg % 2 != 0 && !layout.isRegPadding(reg - 1);
      copier.copy(
          address.at(e.scalar(op.getTarget()), coord[major], coord[minor] * eb), [=] { return source; },
          [=] { return read; }, nullptr, e.andAll({first, e.inTile(layout, reg)}), isSecond,
          isReadOnce ? std::optional(diagonal) : std::nullopt);
    }
    copier.finish(perChunk * eb < 4 && !isBranch && isFollowed(e, op));
  });
  return success();
}

}  // namespace tile::ir
