// tma.cpp - bulk tensor copies: boxes of views into stages, and accumulators through a staging buffer into views.
#include <map>

#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Coordinates of the copies of one box, in the order of its tensor map.
class Coordinates {
 public:
  Coordinates(Emitter& e, const TmaBox& box, ValueRange indices) : e_(e), box_(box) {
    for (int d = 0; d < box.map.rank; ++d) origin_.push_back(clamped(indices[box.dims[d]]));
  }

  /// Of the element at (row, col) of the box; `row` and `column`, the parts that are no constants, may be null for 0.
  SmallVector<llvm::Value*> at(llvm::Value* row, int64_t rowConstant, int64_t col,
                               llvm::Value* column = nullptr) const {
    SmallVector<llvm::Value*> result = origin_;
    const size_t rowDims = std::max<size_t>(1, box_.rowExtents.size());
    if (col || column) {
      llvm::Value* columns = column ? e_.b.CreateAdd(column, e_.i32(col)) : e_.i32(col);
      count(result, columns, box_.columnExtents, [&](size_t d) { return d ? rowDims + d : 0; });
    }
    if (!row && !rowConstant) return result;
    llvm::Value* rows = row ? e_.b.CreateAdd(row, e_.i32(rowConstant)) : e_.i32(rowConstant);
    count(result, rows, box_.rowExtents, [](size_t d) { return 1 + d; });
    return result;
  }

 private:
  /// Adds a number that counts through dims of these extents, the first one fastest; none: one dim.
  void count(SmallVector<llvm::Value*>& at, llvm::Value* number, ArrayRef<int64_t> extents,
             llvm::function_ref<size_t(size_t)> dimOf) const {
    for (size_t d = 0; d + 1 < extents.size(); ++d) {
      llvm::Value* extent = e_.i32(extents[d]);
      at[dimOf(d)] = e_.b.CreateAdd(at[dimOf(d)], e_.b.CreateURem(number, extent));
      number = e_.b.CreateUDiv(number, extent);
    }
    const size_t last = dimOf(extents.empty() ? 0 : extents.size() - 1);
    at[last] = e_.b.CreateAdd(at[last], number);
  }

  // The hardware takes i32; what is outside the view must stay outside.
  llvm::Value* clamped(Value index) const {
    llvm::IRBuilder<>& b = e_.b;
    llvm::Value* value = e_.scalar(index);
    if (value->getType()->isIntegerTy(32)) return value;
    const Range range = e_.facts().rangeOf(index);
    if (range.min < INT32_MIN) value = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, e_.i64(INT32_MIN));
    if (range.max > INT32_MAX) value = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, value, e_.i64(INT32_MAX));
    return b.CreateTrunc(value, b.getInt32Ty());
  }

  Emitter& e_;
  const TmaBox& box_;
  SmallVector<llvm::Value*> origin_;
};

llvm::Intrinsic::ID loadIntrinsic(int rank) {
  using namespace llvm::Intrinsic;
  static constexpr ID kByRank[] = {nvvm_cp_async_bulk_tensor_g2s_tile_1d, nvvm_cp_async_bulk_tensor_g2s_tile_2d,
                                   nvvm_cp_async_bulk_tensor_g2s_tile_3d, nvvm_cp_async_bulk_tensor_g2s_tile_4d,
                                   nvvm_cp_async_bulk_tensor_g2s_tile_5d};
  return kByRank[rank - 1];
}

llvm::Intrinsic::ID storeIntrinsic(int rank, bool add) {
  using namespace llvm::Intrinsic;
  static constexpr ID kWrite[] = {nvvm_cp_async_bulk_tensor_s2g_tile_2d, nvvm_cp_async_bulk_tensor_s2g_tile_3d,
                                  nvvm_cp_async_bulk_tensor_s2g_tile_4d, nvvm_cp_async_bulk_tensor_s2g_tile_5d};
  static constexpr ID kAdd[] = {
      nvvm_cp_async_bulk_tensor_reduce_add_tile_2d, nvvm_cp_async_bulk_tensor_reduce_add_tile_3d,
      nvvm_cp_async_bulk_tensor_reduce_add_tile_4d, nvvm_cp_async_bulk_tensor_reduce_add_tile_5d};
  return (add ? kAdd : kWrite)[rank - 2];
}

/// The rows with which a view ends, fewer than the box has: a box of their own, and zeros behind them.
class LastRows {
 public:
  LastRows(Emitter& e, TmaLoadOp op, const TmaBox& box) : e_(e), box_(box), rows_(box.map.box[1]) {
    llvm::IRBuilder<>& b = e.b;
    const int dim = box.dims[1];
    llvm::Value *size = e.view(op.getView()).dims[static_cast<size_t>(dim)], *at = e.scalar(op.getIndices()[dim]);
    llvm::Value* left = b.CreateURem(size, e.i64(rows_));
    isHere_ = b.CreateAnd(b.CreateICmpNE(left, e.i64(0)),
                          b.CreateICmpEQ(b.CreateSub(size, b.CreateSExtOrTrunc(at, b.getInt64Ty())), left));
    left_ = b.CreateTrunc(left, b.getInt32Ty());
  }

  /// Whether the box begins where they do.
  llvm::Value* isHere() const { return isHere_; }

  /// Zeros for the other rows of the box at `target`, of all its copies.
  void fill(llvm::Value* target, llvm::Value* barrier) const {
    llvm::IRBuilder<>& b = e_.b;
    const layout::SharedTile tile = box_.type.slot();
    const int64_t pitch = tile.swizzle ? tile.swizzle : tile.pitch;
    // From two places in turn, by the stage (whose barriers are 8 bytes apart): all multiprocessors read the same one.
    // (Boxes of 128 rows, 64 of them zeros: 512 cycles from one place, 387 from two by the program's number, for which
    // a producer may lack a register, 476 from eight.)
    const int64_t place = e_.roles().remainderBytes();
    llvm::Value* zeros = zeroedArray(e_, "tile_zero_rows", b.getInt8Ty(), 2 * place, 128);
    llvm::Value* turn = b.CreateAnd(b.CreatePtrToInt(barrier, b.getInt32Ty()), e_.i32(8));
    zeros = b.CreatePtrAdd(zeros, b.CreateMul(turn, e_.i32(place / 8)));
    llvm::Value* begin = b.CreateMul(left_, e_.i32(pitch));
    llvm::Value* bytes = b.CreateSub(e_.i32(rows_ * pitch), begin);
    for (const TmaCopy& copy : box_.copies) {
      llvm::Value* to = b.CreatePtrAdd(target, b.CreateAdd(begin, e_.i32(copy.byte)));
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_bulk_global_to_shared_cluster,
                        {b.CreateAddrSpaceCast(to, b.getPtrTy(7)), barrier, zeros, bytes, b.getInt16(0), e_.i64(0),
                         b.getFalse(), b.getFalse()});
    }
  }

 private:
  Emitter& e_;
  const TmaBox& box_;
  const int64_t rows_;
  llvm::Value *isHere_, *left_;
};

/// The thread of each warpgroup that issues its stores: bulk groups belong to threads, so always the same one.
void byIssuer(Emitter& e, llvm::function_ref<void()> body) {
  llvm::Value* firstWarp = e.b.CreateICmpEQ(e.b.CreateURem(e.warp(), e.i32(kGroupWarps)), e.i32(0));
  emitIf(e, firstWarp, [&] { emitIf(e, electThread(e), body); });
}

/// Of an accumulator over warpgroups side by side the columns first .. first + own - 1 of every group (of a transposed
/// one those of all groups that lie there, round by round), as an accumulator with no others.
std::pair<Regs, layout::Layout> columnsOfGroups(Emitter& e, Value accumulator, int groups, int64_t first, int64_t own,
                                                bool transposed) {
  const layout::Layout all = e.layoutOf(accumulator);
  const int64_t columns[] = {all.shape()[0], own * groups};
  layout::Layout part = tmaStoreLayout(columns, e.numWarps(), groups, transposed);
  const ArrayRef<llvm::Value*> values = e.regs(accumulator);
  std::map<layout::Coord, int> at;
  for (int reg = 0; reg < all.numRegs(); ++reg) at.try_emplace(all.regCoord(reg), reg);
  Regs chosen;
  for (int reg = 0; reg < part.numRegs(); ++reg) {
    layout::Coord coord = part.regCoord(reg);
    coord[1] += first;
    chosen.push_back(values[static_cast<size_t>(at.at(coord))]);
  }
  return {std::move(chosen), std::move(part)};
}

}  // namespace

// Not a branch: ptxas moves what is computed from accumulators behind a branch in front of it, over waits for the
// products that make them, and then waits for all (C7517).
void waitForReads(Emitter& e, int pending) {
  llvm::Value* firstWarp = e.b.CreateICmpEQ(e.b.CreateURem(e.warp(), e.i32(kGroupWarps)), e.i32(0));
  e.inlineAsm(e.b.getVoidTy(), "@$0 cp.async.bulk.wait_group.read " + std::to_string(pending) + ";", "b,~{memory}",
              {e.b.CreateAnd(electThread(e), firstWarp)});
}

LogicalResult emitTmaLoad(Emitter& e, TmaLoadOp op) {
  llvm::IRBuilder<>& b = e.b;
  const TmaBox& box = e.roles().boxOf(op);
  const Coordinates coordinates(e, box, op.getIndices());
  llvm::Value* barrier = fullBarrier(e, op.getRing(), e.scalar(op.getSlot()));
  // A program of a cluster starts its share of the copies, into the same place of all programs; each counts the bytes
  // that arrive in its own memory.
  const int64_t shares = op->hasAttr(kMulticastAttr) ? e.roles().cluster() : 1;
  const size_t own = box.copies.size() / static_cast<size_t>(shares);
  llvm::Value* rank =
      shares > 1 ? b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank, {}) : nullptr;
  auto constant = [&](size_t index, int64_t TmaCopy::*field) -> llvm::Value* {
    llvm::Value* value = e.i32(box.copies[index].*field);
    for (int64_t share = 1; share < shares; ++share)
      value = b.CreateSelect(b.CreateICmpEQ(rank, e.i32(share)),
                             e.i32(box.copies[index + static_cast<size_t>(share) * own].*field), value);
    return value;
  };
  llvm::Value* policy = l2Policy(e, op.getCache());
  auto copyWith = [&](llvm::function_ref<llvm::Value*(const TmaCopy&)> mapOf) {
    for (size_t i = 0; i < own; ++i) {
      llvm::Value* target = b.CreatePtrAdd(e.scalar(op.getTarget()), constant(i, &TmaCopy::byte));
      SmallVector<llvm::Value*> args{b.CreateAddrSpaceCast(target, b.getPtrTy(7)), barrier, mapOf(box.copies[i])};
      if (shares > 1)
        args.append(coordinates.at(constant(i, &TmaCopy::row), 0, 0, constant(i, &TmaCopy::col)));
      else
        args.append(coordinates.at(nullptr, box.copies[i].row, box.copies[i].col));
      args.append({b.getInt16(static_cast<uint16_t>((1 << shares) - 1)), policy ? policy : e.i64(0),
                   b.getInt1(shares > 1), b.getInt1(policy), e.i32(0)});
      b.CreateIntrinsic(loadIntrinsic(box.map.rank), args);
    }
  };
  auto ofBox = [&](const TmaCopy& copy) { return e.roles().mapOf(e, op, copy); };
  llvm::Value* remainder = e.roles().remainderOf(op);
  if (!remainder) return copyWith(ofBox), success();
  const LastRows last(e, op, box);
  emitIf(e, last.isHere(), [&] {
    copyWith([&](const TmaCopy&) { return remainder; });
    last.fill(e.scalar(op.getTarget()), barrier);
  });
  emitIf(e, b.CreateNot(last.isHere()), [&] { copyWith(ofBox); });
  return success();
}

LogicalResult emitTmaStore(Emitter& e, TmaStoreOp op) {
  llvm::IRBuilder<>& b = e.b;
  const int groups = e.roles().groups();
  const auto shape = op.getValue().getType().getShape();
  const SmemType stagingType = op.getStaging().getType();
  const layout::SharedTile tile = stagingType.slot();
  const std::optional<int> across = tmaStoreColumnGroups(e.layoutOf(op.getValue()), tile, e.numWarps());
  if (!across)
    return op.emitOpError() << "expects the accumulator layout over " << groups
                            << " warpgroups along the rows, or side by side with panels of their own, found "
                            << op.getValue().getType();
  const TmaBox& box = e.roles().boxOf(op);
  const Coordinates coordinates(e, box, op.getIndices());
  llvm::Value *staging = e.scalar(op.getStaging()), *group = groupIndex(e), *policy = l2Policy(e, op.getCache());
  llvm::Value* barrier = b.CreateAdd(group, e.i32(kGroupBarrier));
  // Of the groups, those of one column of groups follow one another along the rows.
  const int down = groups / *across;
  const int64_t ownColumns = shape[1] / *across;
  llvm::Value *rowGroup = group, *columnGroup = nullptr;
  if (*across > 1) rowGroup = b.CreateURem(group, e.i32(down)), columnGroup = b.CreateUDiv(group, e.i32(down));
  llvm::Value* firstRow = b.CreateMul(rowGroup, e.i32(kTmaStoreRows));
  // Even of one warpgroup: where the address is a constant, ptxas takes the work loop around the copy for divergent,
  // and nothing in it stays in uniform registers (descriptors of products, above all).
  llvm::Value* addressRow = groups > 1 ? firstRow : b.CreateMul(e.warpgroup(), e.i32(kTmaStoreRows));
  const int64_t pitch = tile.swizzle ? tile.swizzle : tile.pitch, round = kTmaStoreRows * down;
  // Staging of some columns only is two buffers where it has an even number of panels: one is filled while the other is
  // copied out. So is that of one column of groups in any case. Of transposed products a group has 64 columns of every
  // round of all groups, which is a part.
  const bool transposed = isTransposedStore(e.layoutOf(op.getValue()), e.numWarps());
  const bool whole = tile.cols == shape[1] && (!transposed || ownColumns == kTmaStoreRows);
  layout::SharedTile part = tile;
  if (transposed) part.cols = kTmaStoreRows * groups;
  const bool two =
      transposed ? tile.cols >= 2 * part.cols
                 : tile.swizzle && tile.rowBytes() % (2 * *across * tile.swizzle) == 0 && (*across == 1 || !whole);
  if (two && !transposed) part.cols /= 2;
  llvm::Value* firstColumn = nullptr;
  if (columnGroup) firstColumn = b.CreateMul(columnGroup, e.i32(transposed ? kTmaStoreRows : ownColumns));
  const int64_t own = part.cols / *across;  // columns of a group in a part
  for (int64_t first = 0; first < ownColumns; first += own) {
    const bool second = two && first / own % 2;
    const int64_t column = transposed ? first * groups : first;  // group 0's
    llvm::Value* buffer = second ? b.CreatePtrAdd(staging, e.i32(tile.address(0, part.cols))) : staging;
    // What was copied out of this buffer before has been read; then everybody of the group may write.
    waitForReads(e, two ? 1 : 0);
    namedBarrier(e, barrier, kGroupThreads);
    if (whole || (*across == 1 && !transposed)) {
      storeTile(e, e.regs(op.getValue()), e.layoutOf(op.getValue()), buffer, part, /*minor=*/1, first);
    } else {
      const auto [values, layout] = columnsOfGroups(e, op.getValue(), *across, column, own, transposed);
      storeTile(e, values, layout, buffer, part, /*minor=*/1);
    }
    fenceAsyncProxy(e);
    namedBarrier(e, barrier, kGroupThreads);
    byIssuer(e, [&] {
      llvm::Value* panels = b.CreatePtrAdd(buffer, b.CreateMul(addressRow, e.i32(pitch)));
      if (columnGroup) panels = b.CreatePtrAdd(panels, b.CreateMul(columnGroup, e.i32(part.address(0, own))));
      for (const TmaCopy& copy : box.copies) {
        // Group 0's slices: the others' lie a few slices behind, or a few panels.
        if (copy.row % round != 0 || copy.col >= own) continue;
        auto issue = [&] {
          SmallVector<llvm::Value*> args{b.CreatePtrAdd(panels, e.i32(copy.byte)), e.roles().mapOf(e, op, copy)};
          args.append(coordinates.at(firstRow, copy.row, column + copy.col, firstColumn));
          args.append({policy ? policy : e.i64(0), b.getInt1(policy)});
          b.CreateIntrinsic(storeIntrinsic(box.map.rank, op.getAdd()), args);
        };
        const bool everyGroupHasOne = copy.row + round <= shape[0];
        emitIf(e, everyGroupHasOne ? nullptr : b.CreateICmpULT(firstRow, e.i32(shape[0] - copy.row)), issue);
      }
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_bulk_commit_group, {});
    });
  }
  return success();
}

void finishTmaStores(Emitter& e) {
  byIssuer(e, [&] { e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_bulk_wait_group, {e.i32(0)}); });
}

}  // namespace tile::ir
