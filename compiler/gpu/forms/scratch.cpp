// scratch.cpp - how much shared memory each op needs while it runs.
#include "compiler/gpu/forms/scratch.h"

#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/votes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

namespace tile::ir {
using namespace mlir;

namespace {

std::string tileText(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream out(text);
  if (!tensor)
    out << type;
  else
    out << RankedTensorType::get(tensor.getShape(), tensor.getElementType());
  return text;
}

std::optional<Scratch> fromMove(const Move& move) {
  if (move.kind == Move::rename || move.kind == Move::swap) return std::nullopt;
  return Scratch{move.bytes, 16, move.piece};
}

std::optional<Scratch> withPitch(std::optional<Scratch> scratch, Operation* op) {
  auto pitch = op->getAttrOfType<IntegerAttr>(kScratchPitchAttr);
  if (scratch && scratch->piece && pitch)
    scratch->bytes = scratch->bytes / scratch->piece * pitch.getInt(), scratch->piece = pitch.getInt();
  return scratch;
}

// The results of an atomic that several threads hold come from the one that performed it.
template <class Op>
std::optional<Scratch> atomicScratch(Op op) {
  if (op.getResult().use_empty()) return std::nullopt;
  auto tensor = dyn_cast<RankedTensorType>(op.getType());
  if (!tensor) return Scratch{16, 16};
  auto layout = layoutOf(tensor);
  if (layout->laneReplicas() == 1 && layout->warpReplicas() == 1) return std::nullopt;
  return Scratch{tensor.getNumElements() * elementBytes(tensor), 16};
}

}  // namespace

std::optional<Scratch> scratchOf(Operation* op) {
  auto scratch = llvm::TypeSwitch<Operation*, std::optional<Scratch>>(op)
      .Case<ConvertOp, TransOp, ReshapeOp>([](auto o) { return fromMove(planMove(o)); })
      .Case<ExtractOp>([](ExtractOp o) {
        Move move = planMove(o);
        if (o->hasAttr(kPutsWholeAttr) && move.kind == Move::linear) move.bytes = tileBytes(o.getSource().getType());
        return fromMove(move);
      })
      .Case<CatOp>([](CatOp o) -> std::optional<Scratch> {
        CatMove move = planMove(o);
        if (move.isRename) return std::nullopt;
        return Scratch{move.bytes, 16};
      })
      .Case<TakeOp>([](TakeOp o) -> std::optional<Scratch> {
        if (!o->hasAttr(kMakesCopyAttr) && (planMove(o) || linesOf(o))) return std::nullopt;
        auto source = cast<RankedTensorType>(o.getSource().getType());
        int64_t bytes = source.getNumElements() * elementBytes(source);
        bytes = gapsOf(o).place(bytes);
        return Scratch{bytes, 16};
      })
      .Case<PutOp>([](PutOp o) -> std::optional<Scratch> { return Scratch{tileBytes(o.getType()), 16}; })
      .Case<HistogramOp>([](HistogramOp o) -> std::optional<Scratch> {
        auto counts = cast<RankedTensorType>(o.getType());
        return Scratch{counts.getNumElements() * elementBytes(counts), 16};
      })
      .Case<ReduceOp>([](ReduceOp o) -> std::optional<Scratch> {
        auto layout = *layoutOf(o.getSources()[0].getType());
        int axis = static_cast<int>(o.getAxis());
        int64_t parts = warpsAlong(layout, axis);
        if (parts == 1 || o->hasAttr(kPartsAttr)) return std::nullopt;
        if (votesAtBarrier(o)) return Scratch{0, 16};
        return Scratch{partsTable(o).bytes, 16};
      })
      .Case<ScanOp>([](ScanOp o) -> std::optional<Scratch> {
        auto layout = *layoutOf(o.getSources()[0].getType());
        auto plan = planScan(layout, static_cast<int>(o.getAxis()));
        if (!plan || !plan->needsShared()) return std::nullopt;
        return Scratch{
            partsTable(layout, static_cast<int>(o.getAxis()), plan->outer * plan->warps, o.getSources()).bytes, 16};
      })
      .Case<AtomicRmwOp, AtomicCasOp>([](auto o) { return atomicScratch(o); })
      .Default([](Operation*) { return std::nullopt; });
  return withPitch(std::move(scratch), op);
}

std::string scratchName(Operation* op) {
  auto of = [](const char* what, Value tile) { return what + tileText(tile.getType()); };
  return llvm::TypeSwitch<Operation*, std::string>(op)
      .Case<ConvertOp>([&](auto o) { return of("conversion of ", o.getResult()); })
      .Case<TransOp>([&](auto o) { return of("transposition of ", o.getSource()); })
      .Case<ReshapeOp>([&](auto o) { return of("reshape of ", o.getSource()); })
      .Case<ExtractOp>([&](auto o) { return of("extract from ", o.getSource()); })
      .Case<CatOp>([&](auto o) { return of("cat to ", o.getResult()); })
      .Case<TakeOp>([&](auto o) { return of("take from ", o.getSource()); })
      .Case<PutOp>([&](auto o) { return of("put into ", o.getResult()); })
      .Case<HistogramOp>([&](auto o) { return of("counts of ", o.getResult()); })
      .Case<ReduceOp>([&](auto o) {
        return votesAtBarrier(o) ? "vote of the program's threads" : of("reduction of ", o.getSources()[0]);
      })
      .Case<ScanOp>([&](auto o) { return of("scan of ", o.getSources()[0]); })
      .Case<AtomicRmwOp, AtomicCasOp>([&](auto o) {
        return isa<RankedTensorType>(o.getType()) ? of("results of an atomic on ", o.getResult())
                                                  : std::string("result of an atomic");
      })
      .Default([](Operation*) { return std::string(); });
}

SmallVector<Operation*> metWith(Operation* first) {
  SmallVector<Operation*> others;
  const Attribute group = first->getAttr(kMeetsAttr);
  for (Operation* op = group ? first->getNextNode() : nullptr; op; op = op->getNextNode())
    if (op->getAttr(kMetAttr) == group) others.push_back(op);
  return others;
}

}  // namespace tile::ir
