// narrow_products.cpp - an integer product computed in twice the width, of which only one half is read (random numbers,
// hashes, division by constants), becomes one op on the narrow operands. Vectors keep their lanes; a wide product would
// take two vectors, and shuffles to widen and to narrow them.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/host/host.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
namespace {
using namespace mlir;

/// The number that every element is.
std::optional<llvm::APInt> splatOf(Value v) {
  llvm::APInt number;
  if (auto splat = v.getDefiningOp<SplatOp>()) v = splat.getValue();
  return matchPattern(v, m_ConstantInt(&number)) ? std::optional(number) : std::nullopt;
}

/// Halves of one product that are read.
struct Halves {
  llvm::SmallVector<arith::TruncIOp> low, high;
};

std::optional<Halves> halvesOf(arith::MulIOp product, unsigned bits) {
  auto isHalf = [&](Operation* op) {
    auto half = dyn_cast<arith::TruncIOp>(op);
    return half && getElementTypeOrSelf(half.getType()).isInteger(bits);
  };
  Halves halves;
  for (Operation* user : product->getUsers()) {
    if (isHalf(user)) {
      halves.low.push_back(cast<arith::TruncIOp>(user));
      continue;
    }
    auto by = isa<arith::ShRUIOp, arith::ShRSIOp>(user) ? splatOf(user->getOperand(1)) : std::nullopt;
    if (!by || *by != bits || !llvm::all_of(user->getUsers(), isHalf)) return std::nullopt;
    for (Operation* half : user->getUsers()) halves.high.push_back(cast<arith::TruncIOp>(half));
  }
  return halves;
}

class NarrowProductsPass : public PassWrapper<NarrowProductsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NarrowProductsPass)
  StringRef getArgument() const override { return "tile-narrow-products"; }
  StringRef getDescription() const override { return "multiply widened integers in their narrow type"; }

  void runOnOperation() override {
    llvm::SmallVector<arith::MulIOp> products;
    getOperation().walk([&](arith::MulIOp op) {
      if (isTile(op)) products.push_back(op);
    });
    for (arith::MulIOp product : products) narrow(product);
  }

 private:
  /// `wide` as an integer of half its bits that it is the extension of; null if it is not known to be one.
  static Value narrowed(OpBuilder& b, Value wide, Type to, bool isSigned) {
    const unsigned bits = getElementTypeOrSelf(to).getIntOrFloatBitWidth();
    if (auto number = splatOf(wide)) {
      if (!(isSigned ? number->isSignedIntN(bits) : number->isIntN(bits))) return {};
      auto value = SplatElementsAttr::get(cast<ShapedType>(to), number->trunc(bits));
      return arith::ConstantOp::create(b, wide.getLoc(), value);
    }
    Operation* def = wide.getDefiningOp();
    if (auto splat = dyn_cast_or_null<SplatOp>(def)) {
      Value narrow = narrowed(b, splat.getValue(), getElementTypeOrSelf(to), isSigned);
      return narrow ? SplatOp::create(b, wide.getLoc(), to, narrow).getResult() : Value();
    }
    if (isSigned ? isa_and_nonnull<arith::ExtSIOp>(def) : isa_and_nonnull<arith::ExtUIOp>(def))
      return def->getOperand(0).getType() == to ? def->getOperand(0) : Value();
    if (auto masked = dyn_cast_or_null<arith::AndIOp>(def); masked && !isSigned)
      if (auto mask = splatOf(masked.getRhs()); mask && mask->isMask(bits))
        return arith::TruncIOp::create(b, wide.getLoc(), to, masked.getLhs());
    return {};
  }

  static void narrow(arith::MulIOp product) {
    const unsigned bits = getElementTypeOrSelf(product.getType()).getIntOrFloatBitWidth() / 2;
    if (bits != 32) return;  // other widths have no product whose halves are at hand
    auto halves = halvesOf(product, bits);
    if (!halves) return;
    OpBuilder b(product);
    Type to = cast<RankedTensorType>(product.getType()).clone(b.getIntegerType(bits));
    for (bool isSigned : {false, true}) {
      Value x = narrowed(b, product.getLhs(), to, isSigned), y = narrowed(b, product.getRhs(), to, isSigned);
      if (!x || !y) continue;
      Location at = product.getLoc();
      Operation* both = halves->high.empty() ? arith::MulIOp::create(b, at, x, y).getOperation()
                        : isSigned           ? arith::MulSIExtendedOp::create(b, at, x, y).getOperation()
                                             : arith::MulUIExtendedOp::create(b, at, x, y).getOperation();
      for (auto [number, ops] : {std::pair{0, halves->low}, std::pair{1, halves->high}})
        for (arith::TruncIOp half : ops) {
          Operation* shift = half.getIn().getDefiningOp();
          half.replaceAllUsesWith(both->getResult(number));
          half.erase();
          if (shift != product && shift->use_empty()) shift->erase();
        }
      eraseUnused(product);
      return;
    }
  }
  static void eraseUnused(Operation* op) {
    llvm::SmallVector<Value> operands(op->getOperands());
    if (!isOpTriviallyDead(op)) return;
    op->erase();
    for (Value v : operands)
      if (Operation* def = v.getDefiningOp()) eraseUnused(def);
  }
};

}  // namespace

std::unique_ptr<Pass> createNarrowProductsPass() { return std::make_unique<NarrowProductsPass>(); }

}  // namespace tile::ir
