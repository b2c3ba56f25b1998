// select_one.cpp - finds sums of one element in the IR, and their elements among the lanes.
#include "compiler/gpu/lowering/select_one.h"

#include <algorithm>

#include "compiler/gpu/forms/across.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;
using layout::Digit;
using layout::Layout;

namespace {

ArrayRef<int64_t> shapeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); }

bool isZero(Value value) {
  return matchPattern(value, m_Zero()) || matchPattern(value, m_PosZeroFloat());
}

/// The tile is the coordinates along `axis`, from `start` on, the same everywhere else.
bool isCoordinate(Value tile, int axis, int64_t extent, int64_t& start) {
  while (auto broadcast = tile.getDefiningOp<BroadcastOp>()) tile = broadcast.getSource();
  if (shapeOf(tile)[axis] != extent) return false;
  while (isa_and_nonnull<ReshapeOp, TransOp>(tile.getDefiningOp())) tile = tile.getDefiningOp()->getOperand(0);
  auto iota = tile.getDefiningOp<IotaOp>();
  if (!iota || !getElementTypeOrSelf(tile.getType()).isInteger(32) || shapeOf(tile)[0] != extent) return false;
  start = static_cast<int32_t>(iota.getStart());
  return true;
}

/// A scalar that all elements of the tile are; null: there is none.
Value scalarOf(Value tile) {
  while (auto broadcast = tile.getDefiningOp<BroadcastOp>()) tile = broadcast.getSource();
  auto splat = tile.getDefiningOp<SplatOp>();
  return splat ? splat->getOperand(0) : Value();
}

/// A value whose registers all are the number that all elements of the tile are: a scalar, a tile of one element, or a
/// constant. Null: there is none.
Value oneNumberOf(Value tile) {
  if (Value scalar = scalarOf(tile)) return scalar;
  while (auto broadcast = tile.getDefiningOp<BroadcastOp>()) tile = broadcast.getSource();
  const bool isOne = cast<RankedTensorType>(tile.getType()).getNumElements() == 1;
  SplatElementsAttr splat;
  return isOne || matchPattern(tile, m_Constant(&splat)) ? tile : Value();
}

/// What the coordinates are compared with: one number, or a tile that is the same along the axis.
Value placeOf(Value tile, int axis, ArrayRef<int64_t> shape) {
  if (Value number = oneNumberOf(tile)) return number;
  auto broadcast = tile.getDefiningOp<BroadcastOp>();
  const bool isAlike = broadcast && shapeOf(broadcast.getSource())[axis] == 1 && shapeOf(tile) == shape;
  return isAlike ? tile : Value();
}

/// Registers and lanes count along the axis like digits of one number, lowest first.
bool countsInDigits(const Layout& layout, int axis) {
  std::vector<Digit> digits;
  for (const auto& list : {layout.regs(), layout.lanes()})
    for (const Digit& digit : list)
      if (digit.dim == axis) digits.push_back(digit);
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
  int64_t next = 1;
  for (const Digit& digit : digits) {
    if (digit.stride != next) return false;
    next *= digit.count;
  }
  return true;
}

}  // namespace

std::optional<SelectedOne> selectedOne(ReduceOp reduce, const Layout& source) {
  const int axis = static_cast<int>(reduce.getAxis());
  if (reduce.getNumResults() != 1 || warpsAlong(source, axis) > 1 || !countsInDigits(source, axis)) return std::nullopt;
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(soleOperation(reduce, 0))) return std::nullopt;
  auto select = reduce.getSources()[0].getDefiningOp<arith::SelectOp>();
  if (!select || !isa<RankedTensorType>(select.getCondition().getType()) || !isZero(select.getFalseValue()))
    return std::nullopt;
  const ArrayRef<int64_t> shape = shapeOf(select.getResult());
  Value condition = select.getCondition();
  while (auto broadcast = condition.getDefiningOp<BroadcastOp>()) {
    condition = broadcast.getSource();
    if (shapeOf(condition)[axis] != shape[axis]) return std::nullopt;
  }
  int along = axis;  // the axis of what is compared: of a vector, its only one
  if (auto reshape = condition.getDefiningOp<ReshapeOp>(); reshape && shapeOf(reshape.getSource()).size() == 1)
    if (condition = reshape.getSource(), along = 0; shapeOf(condition)[0] != shape[axis]) return std::nullopt;
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq) return std::nullopt;
  for (auto [coordinate, place] :
       {std::pair(compare.getLhs(), compare.getRhs()), std::pair(compare.getRhs(), compare.getLhs())}) {
    SelectedOne one{.values = select.getTrueValue()};
    if (!isa<RankedTensorType>(place.getType()) || !getElementTypeOrSelf(place.getType()).isInteger(32)) break;
    one.place = placeOf(place, along, shape);
    if (!one.place) continue;
    one.isAlike = one.place == oneNumberOf(place);
    if (auto add = coordinate.getDefiningOp<arith::AddIOp>()) {
      const bool isFirst = scalarOf(add.getLhs()) != nullptr;
      one.base = scalarOf(isFirst ? add.getLhs() : add.getRhs());
      if (!one.base) continue;
      coordinate = isFirst ? add.getRhs() : add.getLhs();
    }
    if (isCoordinate(coordinate, along, shape[axis], one.start)) return one;
  }
  return std::nullopt;
}

llvm::Value* chosenOf(Emitter& e, llvm::ArrayRef<llvm::Value*> line, llvm::Value* index) {
  SmallVector<llvm::Value*> left(line);
  for (int bit = 0; left.size() > 1; ++bit) {
    llvm::Value* isSet = e.b.CreateICmpNE(e.b.CreateAnd(index, e.i32(int64_t{1} << bit)), e.i32(0));
    SmallVector<llvm::Value*> next;
    for (size_t i = 0; i < left.size(); i += 2)
      next.push_back(i + 1 < left.size() ? e.b.CreateSelect(isSet, left[i + 1], left[i]) : left[i]);
    left = std::move(next);
  }
  return left[0];
}

llvm::Value* registerHolding(Emitter& e, const Layout& source, int axis, llvm::Value* at) {
  std::vector<Digit> digits;
  for (const Digit& digit : source.regs())
    if (digit.dim == axis) digits.push_back(digit);
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
  llvm::Value* index = e.i32(0);
  int weight = 1;
  for (const Digit& digit : digits) {
    llvm::Value* own = e.b.CreateURem(e.b.CreateUDiv(at, e.i32(digit.stride)), e.i32(digit.count));
    index = e.b.CreateAdd(index, e.b.CreateMul(own, e.i32(weight)));
    weight *= digit.count;
  }
  return index;
}

llvm::Value* laneHolding(Emitter& e, const Layout& source, int axis, llvm::Value* at) {
  llvm::Value* lane = e.lane();
  int weight = 1;
  for (const Digit& digit : source.lanes()) {
    if (digit.dim == axis) {
      llvm::Value* own = e.b.CreateURem(e.b.CreateUDiv(e.lane(), e.i32(weight)), e.i32(digit.count));
      llvm::Value* wanted = e.b.CreateURem(e.b.CreateUDiv(at, e.i32(digit.stride)), e.i32(digit.count));
      lane = e.b.CreateAdd(lane, e.b.CreateMul(e.b.CreateSub(wanted, own), e.i32(weight)));
    }
    weight *= digit.count;
  }
  return lane == e.lane() ? nullptr : lane;
}

}  // namespace tile::ir
