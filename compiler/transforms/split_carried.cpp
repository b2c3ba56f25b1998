// split_carried.cpp - tiles that a loop cuts and puts together again in every iteration are carried in pieces.
// Before: a carried tile all of whose users extract boxes, and whose next value puts just those boxes together
//         (accumulators of several products at once).
// After:  a carried value for every piece; if a piece is only used without its dims of size 1, it is carried without
//         them. Behind the loop the whole is put together once. Products can then update their accumulators in place.
// A carried tile that the loop reads in one other shape, and leaves in it (the one matrix of a batch), is carried in
// that shape.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/transforms/transforms.h"
#include "mlir/IR/PatternMatch.h"

namespace tile::ir {
#define GEN_PASS_DEF_SPLITCARRIED
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

/// A box of a carried tile.
struct Piece {
  SmallVector<int32_t> offsets;
  RankedTensorType box;           ///< as it is extracted
  RankedTensorType carried;       ///< as the loop will carry it: the box, or what it is reshaped to
  Value next;                     ///< of the carried type, in the loop's body
  SmallVector<Operation*> users;  ///< ops of the body whose results it replaces
};

/// A carried tile that the loop reads and leaves in one other shape: it is carried in that one.
SmallVector<Piece> reshapedWhole(scf::ForOp loop, unsigned number, ReshapeOp next) {
  const Value whole = loop.getRegionIterArg(number);
  Piece piece{{}, tileType(whole), tileType(next.getSource()), next.getSource(), {}};
  for (Operation* user : whole.getUsers()) {
    if (!isa<ReshapeOp>(user) || user->getResult(0).getType() != piece.carried) return {};
    piece.users.push_back(user);
  }
  if (piece.users.empty()) return {};
  return {std::move(piece)};
}

/// The pieces that argument `number` consists of; none where it cannot be carried so.
SmallVector<Piece> piecesOf(scf::ForOp loop, unsigned number) {
  Operation* next = loop.getYieldedValues()[number].getDefiningOp();
  if (auto reshape = dyn_cast_or_null<ReshapeOp>(next); reshape && reshape->getBlock() == loop.getBody())
    return reshapedWhole(loop, number, reshape);
  auto cat = dyn_cast_or_null<CatOp>(next);
  if (!cat || cat->getBlock() != loop.getBody()) return {};
  SmallVector<Piece> pieces;
  int64_t begin = 0;
  for (Value source : cat.getSources()) {
    Piece piece{{}, tileType(source), tileType(source), source, {}};
    piece.offsets.assign(static_cast<size_t>(piece.box.getRank()), 0);
    piece.offsets[cat.getAxis()] = static_cast<int32_t>(begin);
    begin += piece.box.getDimSize(cat.getAxis());
    pieces.push_back(std::move(piece));
  }
  for (Operation* user : loop.getRegionIterArg(number).getUsers()) {
    auto extract = dyn_cast<ExtractOp>(user);
    auto* piece = llvm::find_if(pieces, [&](const Piece& p) {
      return extract && p.box == extract.getType() && ArrayRef<int32_t>(p.offsets) == extract.getOffsets();
    });
    if (piece == pieces.end()) return {};
    piece->users.push_back(extract);
  }
  // As both its readers and the next value have it, where these only drop dims.
  for (Piece& piece : pieces) {
    auto reshape = piece.next.getDefiningOp<ReshapeOp>();
    SmallVector<Operation*> readers;
    for (Operation* extract : piece.users) llvm::append_range(readers, extract->getUsers());
    auto isAlike = [&](Operation* op) { return isa<ReshapeOp>(op) && op->getResult(0).getType() == piece.carried; };
    if (!reshape) continue;
    piece.carried = tileType(reshape.getSource());
    if (llvm::all_of(readers, isAlike)) {
      piece.next = reshape.getSource();
      piece.users = std::move(readers);
    } else {
      piece.carried = piece.box;
    }
  }
  return pieces;
}

class SplitCarriedPass : public impl::SplitCarriedBase<SplitCarriedPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      for (unsigned i = 0, count = loop.getNumRegionIterArgs(); i < count; ++i)
        if (SmallVector<Piece> pieces = piecesOf(loop, i); !pieces.empty()) loop = carry(loop, i, pieces);
  }

  /// The loop with `pieces` as further arguments; number `whole` comes round unchanged and unread.
  static scf::ForOp carry(scf::ForOp loop, unsigned whole, ArrayRef<Piece> pieces) {
    IRRewriter rewriter(loop.getContext());
    rewriter.setInsertionPoint(loop);
    const Location loc = loop.getLoc();
    const unsigned before = loop.getNumRegionIterArgs();
    auto cat = loop.getYieldedValues()[whole].getDefiningOp<CatOp>();
    SmallVector<Value> inits;
    for (const Piece& piece : pieces) {
      Value start = loop.getInitArgs()[whole];
      if (cat) start = rewriter.createOrFold<ExtractOp>(loc, piece.box, start, piece.offsets);
      if (piece.carried != piece.box) start = rewriter.createOrFold<ReshapeOp>(loc, piece.carried, start);
      inits.push_back(start);
    }
    auto next = [&](OpBuilder&, Location, ArrayRef<BlockArgument>) {
      SmallVector<Value> values;
      for (const Piece& piece : pieces) values.push_back(piece.next);
      return values;
    };
    auto made = cast<scf::ForOp>(
        *loop.replaceWithAdditionalYields(rewriter, inits, /*replaceInitOperandUsesInLoop=*/false, next));
    for (auto [i, piece] : llvm::enumerate(pieces))
      for (Operation* user : piece.users)
        rewriter.replaceAllUsesWith(user->getResult(0), made.getRegionIterArg(before + static_cast<unsigned>(i)));
    made.getBody()->getTerminator()->setOperand(whole, made.getRegionIterArg(whole));

    rewriter.setInsertionPointAfter(made);
    SmallVector<Value> parts;
    for (auto [i, piece] : llvm::enumerate(pieces)) {
      Value part = made.getResult(before + static_cast<unsigned>(i));
      if (piece.carried != piece.box) part = ReshapeOp::create(rewriter, loc, piece.box, part);
      parts.push_back(part);
    }
    Value result = made.getResult(whole);
    Value together = parts.front();
    if (cat) together = CatOp::create(rewriter, loc, result.getType(), parts, cat.getAxis());
    rewriter.replaceAllUsesWith(result, together);
    return made;
  }
};

}  // namespace
}  // namespace tile::ir
