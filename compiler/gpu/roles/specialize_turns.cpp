// specialize_turns.cpp - tiles of 8-bit or 32-bit elements whose contiguous dim is not the one that wgmma needs. At the
// value level such a tile is loaded into shared memory as it lies, read into registers, and shared transposed: work for
// the consumers, with a barrier for all of them. With roles it is a load like others that is transposed on its way: the
// producer copies the tile as it lies into one ring, and other warps of its warpgroup transpose it into a stage of
// another ring (tile.smem_turn).
#include "compiler/dialect/products.h"
#include "compiler/gpu/roles/specialize.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kBlock = 32;  ///< rows and columns that are transposed at a time

/// Whether instructions of warpgroups read the tile, not threads.
bool isReadByInstructions(ShareOp share, Operation* reader) {
  if (!isAsyncProduct(reader)) return false;
  Value fragment = fragmentOperand(cast<MmaOp>(reader));
  while (auto trans = fragment ? fragment.getDefiningOp<SmemTransOp>() : SmemTransOp()) fragment = trans.getSource();
  return fragment != share.getResult();
}

/// The load that the shared tile comes from, if all that happens in between is a transpose; else null.
LoadSharedOp turnedLoad(ShareOp share) {
  auto read = share.getSource().getDefiningOp<SmemLoadOp>();
  auto load = read ? read.getSource().getDefiningOp<LoadSharedOp>() : LoadSharedOp();
  if (!load || !read->hasOneUse() || !load->hasOneUse() || load->getBlock() != share->getBlock()) return {};
  const SmemType from = load.getResult().getType(), to = share.getResult().getType();
  const bool isWhole = from.getShape() == to.getShape() && load.getBox() == from.getShape() &&
                       llvm::all_of(from.getShape(), [](int64_t extent) { return extent % kBlock == 0; });
  if (!isWhole || !SmemTurnOp::turns(from.elementBytes()) || from.getMinor() == to.getMinor()) return {};
  const bool onlyProducts = llvm::all_of(readersOf(share.getResult()),
                                         [&](Operation* reader) { return isReadByInstructions(share, reader); });
  return onlyProducts ? load : LoadSharedOp();
}

/// Whether products that read the tile have their other operand in registers: if it is of bytes its order is the better
/// one for them.
bool feedsRegisterProducts(ShareOp share) {
  if (share.getResult().getType().elementBytes() != 1) return false;
  return llvm::all_of(readersOf(share.getResult()),
                      [](Operation* reader) { return isa<RankedTensorType>(cast<MmaOp>(reader).getA().getType()); });
}

/// Users read `now`, transposes with the types that follow from its.
void replaceTile(Value tile, Value now) {
  for (OpOperand& use : llvm::make_early_inc_range(tile.getUses())) {
    use.set(now);
    auto trans = dyn_cast<SmemTransOp>(use.getOwner());
    if (!trans) continue;
    trans.getResult().setType(cast<SmemType>(now.getType()).transposed());
    replaceTile(trans.getResult(), trans.getResult());
  }
}

}  // namespace

SmemType rawType(SmemType turned) {
  return SmemType::get(turned.getContext(), turned.getShape(), turned.getElementType(), 1 - turned.getMinor(),
                       turned.getStages());
}

llvm::DenseSet<Operation*> foldTurns(func::FuncOp func) {
  llvm::DenseSet<Operation*> turned;
  SmallVector<ShareOp> shares;
  func.walk([&](ShareOp share) { shares.push_back(share); });
  for (ShareOp share : shares) {
    LoadSharedOp load = turnedLoad(share);
    if (!load) continue;
    Operation* read = share.getSource().getDefiningOp();
    const bool interleaved = feedsRegisterProducts(share);
    OpBuilder builder(load);
    auto made = LoadSharedOp::create(builder, load.getLoc(), share.getResult().getType().withInterleaved(interleaved),
                                     load.getView(), load.getIndices(), load.getBox(), load.getCache());
    replaceTile(share.getResult(), made.getResult());
    share.erase();
    read->erase();
    load.erase();
    turned.insert(made);
  }
  return turned;
}

void unfoldTurns(const llvm::DenseSet<Operation*>& turned) {
  for (Operation* op : turned) {
    auto load = cast<LoadSharedOp>(op);
    const SmemType type = load.getResult().getType();
    OpBuilder builder(load);
    auto raw =
        LoadSharedOp::create(builder, load.getLoc(), rawType(type), load.getView(), load.getIndices(), load.getBox(),
                             load.getCache());
    auto tile = RankedTensorType::get(type.getShape(), type.getElementType());
    Value read = SmemLoadOp::create(builder, load.getLoc(), tile, raw);
    Value share = ShareOp::create(builder, load.getLoc(), type.withInterleaved(false), read);
    replaceTile(load.getResult(), share);
    load.erase();
  }
}

}  // namespace tile::ir
