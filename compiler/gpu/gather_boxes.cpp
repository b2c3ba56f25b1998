// gather_boxes.cpp - the row of a box says where it lies along each dim, by division; its columns are neighbours.
#include "compiler/gpu/gather_boxes.h"

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
    rows_ = 1;
    for (int64_t extent : box.drop_back()) rows_ *= extent;
    columns_ = box.back();
    // Row and column parts apart: what is known about columns (neighbours, aligned) must stay visible.
    Value rowOffset, rowInside, left = iota(rows_);
    for (int64_t d = rank - 2; d >= 0; --d) {
      Value at;  // along dim d, of every row
      if (d >= lead) {
        const int64_t extent = box[d - lead];
        at = d == lead ? left : arith::RemUIOp::create(b_, loc_, left, splat(i32(extent), rows_)).getResult();
        if (d > lead) left = arith::DivUIOp::create(b_, loc_, left, splat(i32(extent), rows_));
        at = arith::ExtSIOp::create(b_, loc_, tileOf(rows_, b_.getI64Type()), at);
        at = arith::AddIOp::create(b_, loc_, at, splat(wide(load_.getIndices()[d]), rows_));
      } else {
        at = splat(wide(load_.getIndices()[d]), rows_);
      }
      add(rowOffset, arith::MulIOp::create(b_, loc_, at, splat(strideOf(view, d), rows_)));
      bothOf(rowInside, inside(at, view, d, rows_));
    }
    Value column = arith::ExtSIOp::create(b_, loc_, tileOf(columns_, b_.getI64Type()), iota(columns_));
    column = arith::AddIOp::create(b_, loc_, column, splat(wide(load_.getIndices()[rank - 1]), columns_));
    Value columnInside = inside(column, view, rank - 1, columns_);
    Value columnOffset = arith::MulIOp::create(b_, loc_, column, splat(strideOf(view, rank - 1), columns_));
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
