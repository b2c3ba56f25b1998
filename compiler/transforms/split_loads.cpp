// split_loads.cpp - boxes that are read to be cut are read piece by piece.
// Before: a load all of whose users extract boxes of it (both rows of a list of edges, the parts of a row that holds
//         queries, keys and values).
// After:  a load for every such box, in the same place: each is laid out, copied ahead, or left out for itself, and
//         threads do not exchange what they could have read.
//
// A load stays whole where its pieces are more than it has, or shorter than what memory is read in.
#include <limits>

#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"

namespace tile::ir {
#define GEN_PASS_DEF_SPLITLOADS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

constexpr int64_t kSector = 32;  ///< bytes that memory is read in

class SplitLoadsPass : public impl::SplitLoadsBase<SplitLoadsPass> {
  void runOnOperation() override {
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
    llvm::SmallDenseSet<Attribute> seen;
    for (Operation* user : load->getUsers()) {
      auto extract = dyn_cast<ExtractOp>(user);
      if (!extract) return false;
      const ArrayRef<int64_t> shape = extract.getResult().getType().getShape();
      const int dim = unit - static_cast<int>(load.getIndices().size() - shape.size());
      // Of a dim whose elements may be neighbours, pieces of whole sectors.
      for (auto [d, size] : llvm::enumerate(shape)) {
        const bool mayBeNeighbours = unit < 0 || static_cast<int>(d) == dim;
        if (size != type.getDimSize(d) && mayBeNeighbours && size * bits < kSector * 8) return false;
      }
      if (!seen.insert(extract.getOffsetsAttr()).second) return false;
      elements += extract.getResult().getType().getNumElements();
    }
    return elements <= type.getNumElements();
  }

  static void split(LoadOp load, const Facts& facts) {
    OpBuilder b(load);
    for (Operation* user : llvm::make_early_inc_range(load->getUsers())) {
      auto extract = cast<ExtractOp>(user);
      SmallVector<Value> indices(load.getIndices());
      const size_t lead = indices.size() - extract.getOffsets().size();
      for (auto [d, by] : llvm::enumerate(extract.getOffsets()))
        if (by) indices[lead + d] = moved(b, load.getLoc(), indices[lead + d], by, facts);
      auto piece = LoadOp::create(b, load.getLoc(), extract.getType(), load.getView(), indices, load.getPadAttr(),
                                  load.getCacheAttr());
      extract.replaceAllUsesWith(piece.getResult());
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
