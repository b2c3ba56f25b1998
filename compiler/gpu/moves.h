// moves.h - how ops that only rearrange elements do it once layouts are known: by renaming registers, by shuffles
// inside warps, or through shared memory. Shared by place_buffers (who needs scratch) and the lowering (what to emit).
#pragma once
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/layout/exchange.h"
#include "compiler/layout/lane_trades.h"

namespace tile::ir {

/// Shared memory in which a warp moves small tiles among its own lanes: all of them pass through the same bytes.
inline constexpr int64_t kOwnScratch = 512;

struct Move {
  enum Kind {
    rename,    ///< result register i is source register map[i] (-1: padding)
    swap,      ///< lanes swap registers with each other, then the rest is renaming
    exchange,  ///< through shared memory, both sides in one coordinate system: layout::Exchange from `from` to `to`
    linear,    ///< through a row-major buffer
  } kind = rename;
  std::vector<int> map;
  std::vector<layout::LaneSwap> swaps;
  layout::Layout from, to;  ///< exchange: as the result's shape sees both; of a piece: as a warp does
  layout::Shape box;        ///< exchange: what passes at once, one box after another
  int64_t bytes = 0;        ///< of shared memory
  int64_t piece = 0;        ///< not 0: lanes exchange within their warp, which has so many of the bytes to itself
};

Move planConvert(const layout::Layout& from, const layout::Layout& to, int elementBytes);
Move planMove(ConvertOp op);
Move planMove(TransOp op);
Move planMove(ReshapeOp op);
Move planMove(ExtractOp op);
/// rename: map of result register -> source * (registers of one source) + register, all sources alike in count.
struct CatMove {
  bool isRename = false;
  std::vector<std::pair<int, int>> map;  ///< (source, register); source -1: padding
  int64_t bytes = 0;
};
CatMove planMove(CatOp op);

/// Gathers through one pointer under one mask: those that follow each other are read element by element, side by side.
bool readTogether(GatherOp first, GatherOp gather);

/// What lanes hand to others `rotation` lane numbers below them, round the warp (0: keep): each gives the register of
/// the first pair of `given` whose mask has its bit, or else the last one; `receivers` take what they get.
struct Handover {
  int rotation = 0;
  uint32_t receivers = 0;
  std::vector<std::pair<int, uint32_t>> given;
};

/// A take whose indices are known: result register i is register map[i] (-1: padding) of the lane whose number differs
/// from the own one in the bits flips[i]; where no single one serves all lanes (a tile shifted by an element, say), it
/// comes by handovers[i]. Nullopt: through shared memory.
struct TakeMove {
  std::vector<int> map, flips;
  std::vector<std::vector<Handover>> handovers;
};
std::optional<TakeMove> planMove(TakeOp op);

/// A take along an axis that lies whole in each thread, for elements whose line is the thread's own: result register i
/// is one of the registers lines[i], by its index. Nullopt: it is not like that, or the axis is long.
std::optional<std::vector<std::vector<int>>> linesOf(TakeOp op);

/// How a tile lies in shared memory in row-major order with `bytes` left free behind every `row` bytes. None: 0.
struct Gaps {
  int64_t row = 0, bytes = 0;
  explicit operator bool() const { return bytes != 0; }
  /// Runs of elements stay aligned; else they move one by one.
  bool keepVectors() const { return bytes % 16 == 0; }
  int64_t place(int64_t byte) const { return bytes ? byte + byte / row * bytes : byte; }
};

/// Of a tile that takes read from shared memory: where they are known to read it in steps, as threads do that hold runs
/// of neighbours, or threads write runs far apart, lanes that would meet in one bank then do not.
Gaps gapsForTakes(mlir::Value source);
/// What place_buffers has decided for the take.
Gaps gapsOf(TakeOp op);

/// Elements of rows that a thread with this layout moves at once.
int rowVector(const layout::Layout& layout, int elementBytes);
/// The same of what the op reads: along another axis than its own neighbours stay neighbours.
int takenVector(TakeOp op);

/// Bytes of an element in shared or global memory.
int elementBytes(mlir::Type type);
/// Bytes of all elements of a tile.
int64_t tileBytes(mlir::Type tile);
/// Registers of 32 bits that a thread holds of a value of this type, under its layout; 1 for what has none.
int64_t registersOf(mlir::Type type);

}  // namespace tile::ir
