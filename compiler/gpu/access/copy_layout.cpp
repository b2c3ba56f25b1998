// copy_layout.cpp - chunk sizes from facts.
#include "compiler/gpu/access/copy_layout.h"

#include "compiler/analysis/diagonals.h"
#include "compiler/analysis/neighbours.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Elements of 16 bits that a warp has two by two.
constexpr int64_t kWordsOfWarp = 64;
/// Rows of a thread whose elements lie on common diagonals.
constexpr int kMostRows = 16;

/// Largest power of two, at most 16, that divides every number given to it.
class Chunk {
 public:
  void divides(int64_t n) {
    while (bytes_ > 1 && n % bytes_) bytes_ /= 2;
  }
  int bytes() const { return bytes_; }

 private:
  int bytes_ = 16;
};

// Chunks must start where the buffer's 16-byte runs do, and must not leave the tile.
void inBuffer(Chunk& chunk, SmemType type, int64_t boxMinor) {
  layout::SharedTile tile = type.slot();
  chunk.divides(boxMinor * tile.elementBytes);
  if (!tile.swizzle) chunk.divides(tile.pitch);
}

int gatherBytes(Value ptr, Value offsets, Value mask, SmemType type, const Facts& facts) {
  const int minor = static_cast<int>(type.getMinor());
  const int64_t eb = type.elementBytes();
  AxisFacts axis = facts.of(offsets);
  Chunk chunk;
  inBuffer(chunk, type, cast<ShapedType>(offsets.getType()).getShape()[minor]);
  chunk.divides(facts.alignOf(ptr));
  chunk.divides(axis.contiguity[minor] * eb);
  chunk.divides(axis.divisibility[minor] * eb);
  if (mask) chunk.divides(facts.of(mask).constancy[minor] * eb);
  return std::max<int>(chunk.bytes(), static_cast<int>(eb));
}

/// Whether lanes that have two elements side by side, and read one after the other, read about as many lines at a time
/// as lanes that have one: elements next to each other, each in a line of its own, or anywhere.
bool mayReadInPairs(AsyncGatherOp op, int minor, const Facts& facts) {
  constexpr int64_t kLine = 128;  // bytes
  const auto apart = stepAlong(op.getOffsets(), minor, facts);
  if (!apart || (apart->isKnown && std::abs(apart->elements) <= 1)) return true;
  return std::abs(apart->elements) * op.getTarget().getType().elementBytes() >= kLine;
}

}  // namespace

int copyBytes(AsyncCopyOp op, const Facts& facts) {
  SmemType type = op.getTarget().getType();
  const int rank = static_cast<int>(op.getView().getType().getRank()), minor = static_cast<int>(type.getMinor());
  const int minorDim = rank - 2 + minor;
  const int64_t eb = type.elementBytes();
  if (facts.unitStrideDim(op.getView()) != minorDim) return static_cast<int>(eb);
  Chunk chunk;
  inBuffer(chunk, type, op.getBox()[minor]);
  chunk.divides(facts.alignOf(op.getView()));
  chunk.divides(facts.divisibility(op.getIndices()[minorDim]) * eb);
  for (int d = 0; d < rank; ++d)
    if (d != minorDim) chunk.divides(facts.strideDivisibility(op.getView(), d) * eb);
  return std::max<int>(chunk.bytes(), static_cast<int>(eb));
}

std::string narrowReason(AsyncCopyOp op, const Facts& facts) {
  const int rank = static_cast<int>(op.getView().getType().getRank());
  const int minorDim = rank - 2 + static_cast<int>(op.getTarget().getType().getMinor());
  const int64_t eb = op.getTarget().getType().elementBytes();
  auto multiple = [](const llvm::Twine& what, int64_t n) {
    return (what + " is only known as a multiple of " + llvm::Twine(n) + " (multiple_of promises more)").str();
  };
  if (facts.unitStrideDim(op.getView()) != minorDim)
    return ("dim " + llvm::Twine(minorDim) + " of the view is not known to have stride 1").str();
  if (int64_t n = facts.alignOf(op.getView()); n % 4) return multiple("the view's address in bytes", n);
  for (int d = 0; d < rank; ++d)
    if (int64_t n = facts.strideDivisibility(op.getView(), d); d != minorDim && n * eb % 4)
      return multiple("stride " + llvm::Twine(d) + " of the view", n);
  if (int64_t n = facts.divisibility(op.getIndices()[minorDim]); n * eb % 4) return multiple("where the box starts", n);
  return "the buffer's rows are no multiple of 4 bytes";
}

int copyBytes(AsyncGatherOp op, const Facts& facts) {
  return gatherBytes(op.getPtr(), op.getOffsets(), op.getMask(), op.getTarget().getType(), facts);
}

bool copiedThroughRegisters(Operation* copy, const Facts& facts) {
  constexpr int kLeast = 4;
  auto gather = dyn_cast<GatherSharedOp>(copy);
  return gather &&
         gatherBytes(gather.getPtr(), gather.getOffsets(), gather.getMask(), gather.getType(), facts) < kLeast;
}

layout::Layout asyncGatherLayout(AsyncGatherOp op, const Facts& facts, int numWarps) {
  ArrayRef<int64_t> shape = cast<ShapedType>(op.getOffsets().getType()).getShape();
  SmemType type = op.getTarget().getType();
  const int minor = static_cast<int>(type.getMinor());
  int vector = static_cast<int>(copyBytes(op, facts) / type.elementBytes());
  // Two elements of 16 bits that a thread reads one by one are one word for the buffer.
  if (vector == 1 && type.elementBytes() == 2 && shape[minor] % kWordsOfWarp == 0) {
    vector = mayReadInPairs(op, minor, facts) ? 2 : 1;
    // Of a block of rows and columns whose diagonals are the same elements few need to be read.
    const auto diagonals = diagonalsOf(op.getOffsets());
    const int rows = static_cast<int>(shape[1 - minor]) / numWarps;
    if (diagonals && std::abs((*diagonals)[0]) == std::abs((*diagonals)[1]) && (*diagonals)[0] != 0 && rows > 1 &&
        rows <= kMostRows && rows * numWarps == shape[1 - minor])
      return layout::Layout(
          {shape.begin(), shape.end()},
          {{minor, 2, 1}, {1 - minor, rows, 1}, {minor, int(shape[minor] / kWordsOfWarp), kWordsOfWarp}},
          {{minor, int(kWordsOfWarp / 2), 2}}, {{1 - minor, numWarps, rows}});
  }
  return layout::blocked({shape.begin(), shape.end()}, vector, {minor, 1 - minor}, numWarps);
}

}  // namespace tile::ir
