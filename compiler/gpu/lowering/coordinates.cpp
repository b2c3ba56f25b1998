// coordinates.cpp - masks that compare coordinates of elements: above and below diagonals, parts of rows and columns.
#include "compiler/gpu/lowering/lowering.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/PatternMatch.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// What the tile repeats, if that is the coordinates of elements: 32 bits, not negative.
IotaOp coordinatesOf(mlir::Value tile) {
  while (mlir::isa_and_nonnull<BroadcastOp, ReshapeOp, TransOp>(tile.getDefiningOp()))
    tile = tile.getDefiningOp()->getOperand(0);
  auto iota = tile.getDefiningOp<IotaOp>();
  const bool is32Bits = mlir::getElementTypeOrSelf(tile.getType()).isInteger(32);
  return iota && is32Bits && static_cast<int32_t>(iota.getStart()) >= 0 ? iota : IotaOp();
}

/// The mask is made or used in a loop, maybe by other masks.
bool servesLoop(mlir::Operation* mask) {
  llvm::SmallSetVector<mlir::Operation*, 8> masks;
  masks.insert(mask);
  for (size_t i = 0; i < masks.size(); ++i) {
    if (masks[i]->getParentOfType<mlir::LoopLikeOpInterface>()) return true;
    for (mlir::Operation* user : masks[i]->getUsers()) {
      if (user->getParentOfType<mlir::LoopLikeOpInterface>()) return true;
      if (user->getNumResults() == 1 && mlir::getElementTypeOrSelf(user->getResult(0).getType()).isInteger(1))
        masks.insert(user);
    }
  }
  return false;
}

llvm::CmpInst::Predicate signedPredicate(mlir::arith::CmpIPredicate predicate) {
  using P = mlir::arith::CmpIPredicate;
  switch (predicate) {
    case P::eq: return llvm::CmpInst::ICMP_EQ;
    case P::ne: return llvm::CmpInst::ICMP_NE;
    case P::slt: case P::ult: return llvm::CmpInst::ICMP_SLT;
    case P::sle: case P::ule: return llvm::CmpInst::ICMP_SLE;
    case P::sgt: case P::ugt: return llvm::CmpInst::ICMP_SGT;
    case P::sge: case P::uge: return llvm::CmpInst::ICMP_SGE;
  }
  llvm_unreachable("all predicates are there");
}

}  // namespace

// Each element compares the difference of two places, which a thread has once, with a constant of its own: no registers
// for all the rows and columns of a mask.
bool emitCoordinateCompare(Emitter& e, mlir::arith::CmpIOp op) {
  using namespace llvm::PatternMatch;
  IotaOp ofLeft = coordinatesOf(op.getLhs()), ofRight = coordinatesOf(op.getRhs());
  if (!isa<mlir::RankedTensorType>(op.getResult().getType()) || !ofLeft || !ofRight) return false;
  const int64_t mostLeft = e.layoutOf(ofLeft.getResult()).maxThreadCoord(0),
                mostRight = e.layoutOf(ofRight.getResult()).maxThreadCoord(0);
  const llvm::CmpInst::Predicate predicate = signedPredicate(op.getPredicate());
  llvm::ArrayRef<llvm::Value*> left = e.regs(op.getLhs()), right = e.regs(op.getRhs());
  // A few places are no burden, and outside loops they end soon.
  constexpr size_t kManyPlaces = 8;
  llvm::SmallPtrSet<llvm::Value*, 32> places(left.begin(), left.end());
  places.insert(right.begin(), right.end());
  if (places.size() < kManyPlaces || !servesLoop(op)) return false;
  llvm::DenseMap<std::pair<llvm::Value*, llvm::Value*>, llvm::Value*> differences;
  Regs result;
  for (auto [x, y] : llvm::zip(left, right)) {
    llvm::Value *from = nullptr, *to = nullptr;
    llvm::ConstantInt *add = nullptr, *against = nullptr;
    if (!llvm::PatternMatch::match(x, m_Add(m_Value(from), m_ConstantInt(add))) ||
        !llvm::PatternMatch::match(y, m_Add(m_Value(to), m_ConstantInt(against)))) {
      result.push_back(e.b.CreateICmp(predicate, x, y));
      continue;
    }
    // Blocks of an element's own rows and columns may lie on one side for all threads: nothing is computed then.
    const int64_t bound = against->getSExtValue() - add->getSExtValue();
    const llvm::ConstantRange range(llvm::APInt(64, static_cast<uint64_t>(-mostRight), true),
                                    llvm::APInt(64, static_cast<uint64_t>(mostLeft + 1), true));
    const llvm::ConstantRange limit(llvm::APInt(64, static_cast<uint64_t>(bound), true));
    const bool always = range.icmp(predicate, limit);
    if (always || range.icmp(llvm::CmpInst::getInversePredicate(predicate), limit)) {
      result.push_back(e.b.getInt1(always));
      continue;
    }
    llvm::Value*& difference = differences[{from, to}];
    if (!difference) difference = e.b.CreateSub(from, to, "", /*HasNUW=*/false, /*HasNSW=*/true);
    result.push_back(e.b.CreateICmp(predicate, difference, e.i32(bound)));
  }
  e.define(op.getResult(), std::move(result));
  return true;
}

}  // namespace tile::ir
