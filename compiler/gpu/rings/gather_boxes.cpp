// gather_boxes.cpp - the row of a box says where it lies along each dim, by division; its columns are neighbours.
#include "compiler/gpu/rings/gather_boxes.h"

namespace tile::ir {
using namespace mlir;

namespace {

class BoxGather {
 public:
  explicit BoxGather(LoadSharedOp load) : load_(load), b_(load), loc_(load.getLoc()) {}

  void run() {
    const ArrayRef<int64_t> box = load_.getBox();
    Value view = load_.getView();
    const int64_t rank = load_.getView().getType().getRank(), lead = rank - static_cast<int64_t>(box.size());
    const int64_t firstColumn = rank - load_.getResult().getType().columnDims(box);
    // Row and column parts apart: what is known about columns (neighbours, aligned) must stay visible.
    Value rowOffset, rowInside, columnOffset, columnInside;
    rows_ = run(box, lead, firstColumn, rowOffset, rowInside);
    columns_ = run(box, firstColumn, rank, columnOffset, columnInside);
    for (int64_t d = 0; d < lead; ++d) {
      Value at = splat(wide(load_.getIndices()[d]), rows_);
      add(rowOffset, arith::MulIOp::create(b_, loc_, at, splat(strideOf(view, d), rows_)));
      bothOf(rowInside, inside(at, view, d, rows_));
    }
    Value offsets = arith::AddIOp::create(b_, loc_, asColumn(rowOffset), asRow(columnOffset));
    Value mask = arith::AndIOp::create(b_, loc_, asColumn(rowInside), asRow(columnInside));
    const Type pointer = PtrType::get(b_.getContext(), load_.getView().getType().getElementType());
    Value start = ViewPtrOp::create(b_, loc_, pointer, view);
    Value gathered = GatherSharedOp::create(b_, loc_, load_.getResult().getType(), start, offsets, mask,
                                            load_.getCache());
    load_.getResult().replaceAllUsesWith(gathered);
    load_.erase();
  }

 private:
  /// Offsets of what counts through the view's dims from `first` to in front of `end`, the last one fastest, and
  /// whether it lies inside; returns how much that is.
  int64_t run(ArrayRef<int64_t> box, int64_t first, int64_t end, Value& offset, Value& isInside) {
    const int64_t lead = load_.getView().getType().getRank() - static_cast<int64_t>(box.size());
    int64_t size = 1;
    for (int64_t extent : box.slice(static_cast<size_t>(first - lead), static_cast<size_t>(end - first)))
      size *= extent;
    Value left = iota(size);
    for (int64_t d = end - 1; d >= first; --d) {
      const int64_t extent = box[static_cast<size_t>(d - lead)];
      Value at = d == first ? left : arith::RemUIOp::create(b_, loc_, left, splat(i32(extent), size)).getResult();
      if (d > first) left = arith::DivUIOp::create(b_, loc_, left, splat(i32(extent), size));
      at = arith::ExtSIOp::create(b_, loc_, tileOf(size, b_.getI64Type()), at);
      at = arith::AddIOp::create(b_, loc_, at, splat(wide(load_.getIndices()[d]), size));
      add(offset, arith::MulIOp::create(b_, loc_, at, splat(strideOf(load_.getView(), d), size)));
      bothOf(isInside, inside(at, load_.getView(), d, size));
    }
    return size;
  }
  RankedTensorType tileOf(int64_t size, Type element) { return RankedTensorType::get({size}, element); }
  Value i32(int64_t value) { return arith::ConstantIntOp::create(b_, loc_, b_.getI32Type(), value); }
  Value iota(int64_t size) { return IotaOp::create(b_, loc_, tileOf(size, b_.getI32Type()), uint64_t{0}); }
  Value splat(Value scalar, int64_t size) { return SplatOp::create(b_, loc_, tileOf(size, scalar.getType()), scalar); }
  Value wide(Value index) {
    return index.getType().isInteger(64) ? index : arith::ExtSIOp::create(b_, loc_, b_.getI64Type(), index).getResult();
  }
  Value strideOf(Value view, int64_t dim) {
    return ViewStrideOp::create(b_, loc_, b_.getI64Type(), view, b_.getI32IntegerAttr(static_cast<int32_t>(dim)));
  }
  Value inside(Value at, Value view, int64_t dim, int64_t size) {
    Value end = ViewDimOp::create(b_, loc_, b_.getI64Type(), view, b_.getI32IntegerAttr(static_cast<int32_t>(dim)));
    return arith::CmpIOp::create(b_, loc_, arith::CmpIPredicate::ult, at, splat(end, size));  // negative ones are large
  }
  void add(Value& sum, Value value) { sum = sum ? arith::AddIOp::create(b_, loc_, sum, value).getResult() : value; }
  void bothOf(Value& all, Value value) { all = all ? arith::AndIOp::create(b_, loc_, all, value).getResult() : value; }
  Value spread(Value tile, int64_t rows, int64_t columns) {
    Type element = cast<RankedTensorType>(tile.getType()).getElementType();
    tile = ReshapeOp::create(b_, loc_, RankedTensorType::get({rows, columns}, element), tile);
    return BroadcastOp::create(b_, loc_, RankedTensorType::get({rows_, columns_}, element), tile);
  }
  Value asColumn(Value tile) { return spread(tile, rows_, 1); }
  Value asRow(Value tile) { return spread(tile, 1, columns_); }

  LoadSharedOp load_;
  OpBuilder b_;
  Location loc_;
  int64_t rows_ = 1, columns_ = 1;
};

}  // namespace

void gatherBoxes(func::FuncOp func) {
  SmallVector<LoadSharedOp> loads;
  func.walk([&](LoadSharedOp load) {
    if (load.getBox().size() > 2) loads.push_back(load);
  });
  for (LoadSharedOp load : loads) BoxGather(load).run();
}

}  // namespace tile::ir
