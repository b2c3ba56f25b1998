// split_loads.cpp - a box that is loaded only to be cut is loaded piece by piece.
// Before: a load all of whose users extract boxes of it (both rows of a list of edges, the parts of a row that holds
//         queries, keys and values). Dims may be permuted on the way, or one dim reshaped into two (the matrices of a
//         batched product).
// After:  a load for every such box, in the same place: each gets its own layout, is copied ahead or left out by
//         itself, and threads do not exchange what they could have loaded.
//
// A load stays whole where its pieces add up to clearly more than it has, or are shorter than what memory is read in.
#include <limits>

#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"

namespace tile::ir {
#define GEN_PASS_DEF_SPLITLOADS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

constexpr int64_t kSector = 32;  ///< bytes that memory is read in
constexpr int64_t kAgain = 8;    ///< of so many elements one may be read twice

/// Nobody wants more of the tile than boxes, which are large enough to be read by all threads.
bool isCut(Operation* op) {
  constexpr int64_t kLeast = 2048;  // bytes
  return !op->use_empty() && llvm::all_of(op->getUsers(), [](Operation* user) {
    auto extract = dyn_cast<ExtractOp>(user);
    return extract && extract.getType().getNumElements() * extract.getType().getElementTypeBitWidth() >= 8 * kLeast;
  });
}

Value boxOf(OpBuilder& b, ExtractOp like, Value source, ArrayRef<int32_t> offsets, ArrayRef<int64_t> shape) {
  return ExtractOp::create(b, like.getLoc(), like.getType().clone(shape), source, b.getDenseI32ArrayAttr(offsets));
}

/// Boxes of what was permuted are permuted boxes.
void extractInFront(TransOp trans) {
  const ArrayRef<int32_t> order = trans.getPermutation();
  for (Operation* user : llvm::make_early_inc_range(trans->getUsers())) {
    auto extract = cast<ExtractOp>(user);
    SmallVector<int32_t> offsets(order.size());
    SmallVector<int64_t> shape(order.size());
    for (auto [to, from] : llvm::enumerate(order))
      offsets[from] = extract.getOffsets()[to], shape[from] = extract.getType().getDimSize(static_cast<unsigned>(to));
    OpBuilder b(extract);
    Value box = boxOf(b, extract, trans.getSource(), offsets, shape);
    extract.replaceAllUsesWith(
        TransOp::create(b, extract.getLoc(), extract.getType(), box, trans.getPermutationAttr()).getResult());
    extract.erase();
  }
}

/// The dim that the reshape makes two of, if that is all it does and boxes have all of the second one; -1: it is not.
int dimMadeTwo(ReshapeOp reshape) {
  const ArrayRef<int64_t> from = reshape.getSource().getType().getShape(), to = reshape.getType().getShape();
  if (to.size() != from.size() + 1) return -1;
  const auto dim = static_cast<size_t>(std::mismatch(from.begin(), from.end(), to.begin()).first - from.begin());
  if (dim == from.size() || from[dim] != to[dim] * to[dim + 1] || from.drop_front(dim + 1) != to.drop_front(dim + 2))
    return -1;
  auto hasWhole = [&](Operation* user) {
    return cast<ExtractOp>(user).getType().getDimSize(static_cast<unsigned>(dim) + 1) == to[dim + 1];
  };
  return llvm::all_of(reshape->getUsers(), hasWhole) ? static_cast<int>(dim) : -1;
}

void extractInFront(ReshapeOp reshape, int dim) {
  const int64_t second = reshape.getType().getDimSize(dim + 1);
  for (Operation* user : llvm::make_early_inc_range(reshape->getUsers())) {
    auto extract = cast<ExtractOp>(user);
    SmallVector<int32_t> offsets(extract.getOffsets());
    SmallVector<int64_t> shape(extract.getType().getShape());
    offsets[dim] *= static_cast<int32_t>(second), shape[dim] *= second;
    offsets.erase(offsets.begin() + dim + 1), shape.erase(shape.begin() + dim + 1);
    OpBuilder b(extract);
    Value box = boxOf(b, extract, reshape.getSource(), offsets, shape);
    extract.replaceAllUsesWith(ReshapeOp::create(b, extract.getLoc(), extract.getType(), box).getResult());
    extract.erase();
  }
}

class SplitLoadsPass : public impl::SplitLoadsBase<SplitLoadsPass> {
  void runOnOperation() override {
    SmallVector<Operation*> moves;
    getOperation().walk([&](Operation* op) {
      if (isa<TransOp, ReshapeOp>(op)) moves.push_back(op);
    });
    for (Operation* move : llvm::reverse(moves)) {
      if (!isCut(move)) continue;
      if (auto trans = dyn_cast<TransOp>(move)) {
        extractInFront(trans);
      } else {
        auto reshape = cast<ReshapeOp>(move);
        const int dim = dimMadeTwo(reshape);
        if (dim < 0) continue;
        extractInFront(reshape, dim);
      }
      move->erase();
    }
    const Facts facts(getOperation());
    SmallVector<LoadOp> loads;
    getOperation().walk([&](LoadOp load) {
      if (splits(load, facts)) loads.push_back(load);
    });
    for (LoadOp load : loads) split(load, facts);
  }

  static bool splits(LoadOp load, const Facts& facts) {
    auto type = dyn_cast<RankedTensorType>(load.getResult().getType());
    if (!type || load->use_empty() || load.getCache() == CacheHint::volatile_) return false;
    const int unit = facts.unitStrideDim(load.getView());
    const int64_t bits = type.getElementTypeBitWidth();
    int64_t elements = 0;
    llvm::SmallDenseSet<std::pair<Attribute, Type>> seen;
    for (Operation* user : load->getUsers()) {
      auto extract = dyn_cast<ExtractOp>(user);
      if (!extract) return false;
      if (!seen.insert(placeOf(extract)).second) continue;
      const ArrayRef<int64_t> shape = extract.getResult().getType().getShape();
      const int dim = unit - static_cast<int>(load.getIndices().size() - shape.size());
      // Of a dim whose elements may be neighbours, pieces of whole sectors.
      for (auto [d, size] : llvm::enumerate(shape)) {
        const bool mayBeNeighbours = unit < 0 || static_cast<int>(d) == dim;
        if (size != type.getDimSize(d) && mayBeNeighbours && size * bits < kSector * 8) return false;
      }
      elements += extract.getResult().getType().getNumElements();
    }
    return elements <= type.getNumElements() + type.getNumElements() / kAgain;
  }

  static std::pair<Attribute, Type> placeOf(ExtractOp extract) {
    return {extract.getOffsetsAttr(), extract.getResult().getType()};
  }

  static void split(LoadOp load, const Facts& facts) {
    OpBuilder b(load);
    llvm::SmallDenseMap<std::pair<Attribute, Type>, Value> read;
    for (Operation* user : llvm::make_early_inc_range(load->getUsers())) {
      auto extract = cast<ExtractOp>(user);
      Value& box = read[placeOf(extract)];
      if (box) {
        extract.replaceAllUsesWith(box);
        extract.erase();
        continue;
      }
      SmallVector<Value> indices(load.getIndices());
      const size_t lead = indices.size() - extract.getOffsets().size();
      for (auto [d, by] : llvm::enumerate(extract.getOffsets()))
        if (by) indices[lead + d] = moved(b, load.getLoc(), indices[lead + d], by, facts);
      auto piece = LoadOp::create(b, load.getLoc(), extract.getType(), load.getView(), indices, load.getPadAttr(),
                                  load.getCacheAttr());
      box = piece.getResult();
      extract.replaceAllUsesWith(box);
      extract.erase();
    }
    load.erase();
  }

  // The index plus a constant, in 64 bits where 32 might not hold it.
  static Value moved(OpBuilder& b, Location loc, Value index, int64_t by, const Facts& facts) {
    if (index.getType().isInteger(32) && facts.rangeOf(index).max + by > std::numeric_limits<int32_t>::max())
      index = arith::ExtSIOp::create(b, loc, b.getI64Type(), index);
    Value constant = arith::ConstantOp::create(b, loc, b.getIntegerAttr(index.getType(), by));
    return arith::AddIOp::create(b, loc, index, constant);
  }
};

}  // namespace
}  // namespace tile::ir
