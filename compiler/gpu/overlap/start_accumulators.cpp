// start_accumulators.cpp - see start_accumulators.h.
#include "compiler/gpu/overlap/start_accumulators.h"

#include "compiler/gpu/forms/async_products.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

bool isAccumulator(BlockArgument arg) {
  if (!isa<RankedTensorType>(arg.getType()) || !arg.hasOneUse()) return false;
  OpOperand& use = *arg.use_begin();
  MmaOp product = asyncProduct(use.getOwner());
  return product && product->getBlock() == arg.getOwner() && &use == &product.getAccMutable();
}

Value assembled(OpBuilder& b, Location loc, Type type, StringRef text, StringRef constraints, ValueRange args) {
  auto made = InlineAsmOp::create(b, loc, TypeRange{type}, b.getStringAttr(text), b.getStringAttr(constraints), args,
                                  b.getI32IntegerAttr(1), b.getUnitAttr());
  return made.getResult(0);
}

/// The same numbers: x + -0 is x, of zeros of either sign, too.
Value written(OpBuilder& b, Location loc, Value tile) {
  if (getElementTypeOrSelf(tile.getType()).isF32())
    return assembled(b, loc, tile.getType(), "add.f32 $0, $1, 0f80000000;", "=f,f", tile);
  // A zero that only the machine knows.
  Value zero = assembled(b, loc, b.getI32Type(), "{.reg .u32 z; mov.u32 z, %smid; shr.u32 $0, z, 31;}", "=r", {});
  Value zeros = SplatOp::create(b, loc, tile.getType(), zero);
  return assembled(b, loc, tile.getType(), "add.s32 $0, $1, $2;", "=r,r,r", {tile, zeros});
}

/// Whether these are sums that a loop around this one carries from a constant through this one only: then the registers
/// are those of the same products in the iteration before, and nothing else writes to them.
bool isCarriedAround(OpOperand& init, scf::ForOp loop) {
  auto arg = dyn_cast<BlockArgument>(init.get());
  auto around = arg ? dyn_cast_or_null<scf::ForOp>(arg.getOwner()->getParentOp()) : scf::ForOp();
  OpOperand* from = around && around == loop->getParentOp() ? around.getTiedLoopInit(arg) : nullptr;
  if (!from || !arg.hasOneUse() || !matchPattern(from->get(), m_Constant())) return false;
  Value next = around.getTiedLoopYieldedValue(arg)->get();
  while (auto wait = next.getDefiningOp<MmaWaitOp>())
    next = wait->getOperand(cast<OpResult>(next).getResultNumber());
  return next == loop.getTiedLoopResult(&init);
}

}  // namespace

void startAccumulators(scf::ForOp loop) {
  OpBuilder builder(loop);
  for (auto [arg, init] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgsMutable()))
    if (isAccumulator(arg) && !matchPattern(init.get(), m_Constant()) && !isCarriedAround(init, loop))
      init.set(written(builder, loop.getLoc(), init.get()));
}

}  // namespace tile::ir
