// split_tf32.cpp - products in tf32x3 by warpgroups.
// Before: tile.dot of f32 tiles with precision tf32x3 (inverses of triangles, chains of small matrices, large
//         products): single warps multiply, and every one splits what it reads of both operands, many times over.
// After:  each operand is split where it was computed or loaded, once, into the nearest tf32 and what is left of it;
//         three products in tf32, small terms first, add up: dot(rest, b) + dot(a, rest) + dot(a, b). Warpgroups have
//         such products. Sums that a loop carries are added outside, where they are rounded: tensor cores cut them off
//         (of 4096 squares added there 4e-5 was lost).
//
// Loaded operands of small products stay as they are: they come straight into shared memory, and warps split what they
// read of it. Parts of them go through registers and back, which pays from 128 x 128 on: products of 4096 on an H200,
// before their sums were added outside, 1.92 ms by single warps and 1.56 by warpgroups, with B [N, K] 1.83 and 1.36;
// in tiles of 64 x 128 1.88 and 1.93, 1.85 and 1.65.
#include "compiler/dialect/products.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/forms/mma_table.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kRows = 64, kColumns = 32;  ///< of a warpgroup's product: smaller ones are left to single warps
constexpr int64_t kLoaded = 128 * 128;        ///< elements of products of loaded operands, at least
constexpr int64_t kOfThread = 96;             ///< at most: of more a thread has no room for a second sum
constexpr int64_t kPartBytes = 96 * 1024;  ///< of shared memory, for the parts of their operands: less than half of it

bool isComputed(Value operand) {
  while (auto trans = operand.getDefiningOp<TransOp>()) operand = trans.getSource();
  return !isa_and_nonnull<LoadOp, GatherOp>(operand.getDefiningOp());
}

bool isCarried(Value tile) {
  auto argument = dyn_cast<BlockArgument>(tile);
  return argument && isa<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
}

bool areComputed(DotOp dot) { return isComputed(dot.getA()) && isComputed(dot.getB()); }

bool isForWarpgroups(DotOp dot, int warps) {
  const auto shape = dot.getResult().getType().getShape();
  const int64_t k = dot.getA().getType().getDimSize(1);
  const int64_t elements = shape[0] * shape[1];
  return dot.getPrecision() == Precision::tf32x3 && shape[0] % kRows == 0 && shape[1] % kColumns == 0 &&
         k % kColumns == 0 && (areComputed(dot) || (elements >= kLoaded && elements <= kOfThread * 32 * warps));
}

class Splitter {
 public:
  void split(DotOp dot) {
    const auto [a, restOfA] = partsOf(dot.getA());
    const auto [b, restOfB] = partsOf(dot.getB());
    OpBuilder builder(dot);
    const Location loc = dot.getLoc();
    const bool isLong = isCarried(dot.getAcc());
    Value acc = dot.getAcc();
    if (isLong) acc = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(dot.getType()));
    for (auto [x, y] : {std::pair(restOfA, b), {a, restOfB}, {a, b}})
      acc = DotOp::create(builder, loc, dot.getType(), x, y, acc, Precision::tf32);
    // Not to be contracted into the products (accumulate_products.cpp).
    if (isLong) acc = arith::AddFOp::create(builder, loc, acc, dot.getAcc());
    dot.replaceAllUsesWith(acc);
    dot.erase();
  }

 private:
  /// The nearest tf32, halves up, and the rest, in f32; of a transposed tile, those of its source.
  std::pair<Value, Value> partsOf(Value tile) {
    if (auto it = parts_.find(tile); it != parts_.end()) return it->second;
    OpBuilder b(tile.getContext());
    b.setInsertionPointAfterValue(tile);
    std::pair<Value, Value> parts;
    if (auto trans = tile.getDefiningOp<TransOp>()) {
      const auto [near, rest] = partsOf(trans.getSource());
      parts = {TransOp::create(b, trans.getLoc(), tile.getType(), near, trans.getPermutationAttr()),
               TransOp::create(b, trans.getLoc(), tile.getType(), rest, trans.getPermutationAttr())};
    } else {
      auto type = cast<RankedTensorType>(tile.getType());
      auto words = type.clone(b.getI32Type());
      const Location loc = tile.getLoc();
      auto every = [&](int32_t word) -> Value {
        return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(words, b.getI32IntegerAttr(word)));
      };
      constexpr int32_t kHalf = 1 << 12, kKept = ~((1 << 13) - 1);
      Value bits = arith::BitcastOp::create(b, loc, words, tile);
      Value kept = arith::AndIOp::create(b, loc, arith::AddIOp::create(b, loc, bits, every(kHalf)), every(kKept));
      Value near = arith::BitcastOp::create(b, loc, type, kept);
      parts = {near, arith::SubFOp::create(b, loc, tile, near)};
    }
    return parts_[tile] = parts;
  }

  llvm::DenseMap<Value, std::pair<Value, Value>> parts_;
};

class SplitTf32Pass : public PassWrapper<SplitTf32Pass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SplitTf32Pass)
  explicit SplitTf32Pass(TargetOf target) : target_(std::move(target)) {}
  StringRef getArgument() const override { return "tile-split-tf32"; }
  StringRef getDescription() const override { return "tf32x3 as three products of warpgroups"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    if (!target_().hasWgmma) return;
    SmallVector<DotOp> dots;
    const int warps = warpsOf(getOperation(), 8);
    bool all = true;  // tiles of one chain of products have one layout: one that single warps multiply is that of all
    getOperation().walk([&](DotOp dot) {
      const Type element = dot.getA().getType().getElementType(), acc = dot.getResult().getType().getElementType();
      if (isForWarpgroups(dot, warps))
        dots.push_back(dot);
      else
        all &= chooseWarpgroupEngine(element, acc, dot.getPrecision(), target_()).has_value();
    });
    llvm::SmallSetVector<Value, 8> loaded;
    for (DotOp dot : dots)
      if (!areComputed(dot)) loaded.insert(dot.getA()), loaded.insert(dot.getB());
    int64_t bytes = 0;
    for (Value tile : loaded) bytes += 2 * 4 * cast<RankedTensorType>(tile.getType()).getNumElements();
    if (!all || bytes > kPartBytes) return;
    Splitter splitter;
    for (DotOp dot : dots) splitter.split(dot);
  }

 private:
  TargetOf target_;
};

}  // namespace

std::unique_ptr<Pass> createSplitTf32Pass(TargetOf target) {
  return std::make_unique<SplitTf32Pass>(std::move(target));
}

}  // namespace tile::ir
