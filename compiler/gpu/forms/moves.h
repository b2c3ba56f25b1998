// moves.h - how ops that only rearrange elements do it once layouts are known: by renaming registers, by shuffles
// inside warps, or through shared memory. Shared by place_buffers (who needs scratch) and the lowering (what to emit).
#pragma once
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/layout/exchange.h"
#include "compiler/layout/lane_trades.h"

namespace tile::ir {

/// Bytes of shared memory that each warp has for moving small tiles among its own lanes; all such moves use the same
/// ones.
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
  layout::Layout from, to;  ///< exchange: both layouts in coordinates of the result; with `piece`, those of one warp.
                            ///< Boxes: of the tile and the box, numbered as the elements lie in the buffer
  layout::Shape box;        ///< exchange: how much of the tile passes at a time, box by box
  int64_t bytes = 0;        ///< of shared memory
  int64_t piece = 0;        ///< not 0: only lanes of one warp exchange; each warp has this many of the bytes
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

/// Whether two gathers through one pointer under one mask, next to each other, are read side by side, element by
/// element.
bool readTogether(GatherOp first, GatherOp gather);

/// A shuffle in which every lane sends a register to the lane `rotation` numbers below it, modulo the warp (0: to
/// itself). A lane sends the register of the first pair of `given` whose mask has the lane's bit, or else that of the
/// last pair. Lanes in `receivers` keep what they get.
struct Handover {
  int rotation = 0;
  uint32_t receivers = 0;
  std::vector<std::pair<int, uint32_t>> given;
};

/// Of the `size` neighbouring lanes that a lane belongs to (a power of two), the one with the number
/// (times * lane + plus) % size.
struct LaneOfGroup {
  int size = 0;  ///< 0: none
  int times = 0, plus = 0;
  int of(int lane) const { return lane / size * size + (times * lane + plus) % size; }
};

/// A take whose indices are known at compile time: result register i is register map[i] (-1: padding) of the lane whose
/// number is this lane's xor flips[i], or that is givers[i]. If no single such pair serves all lanes (a tile shifted by
/// one element, say), it comes by the shuffles handovers[i]. Nullopt: the take goes through shared memory.
struct TakeMove {
  std::vector<int> map, flips;
  std::vector<LaneOfGroup> givers;
  std::vector<std::vector<Handover>> handovers;
};
std::optional<TakeMove> planMove(TakeOp op);

/// A take along an axis that each thread holds as a whole, for the lines of its own elements: result register i is
/// chosen by its index from the registers lines[i]. Nullopt: threads do not, or the axis is long.
std::optional<std::vector<std::vector<int>>> linesOf(TakeOp op);

/// Padding of a row-major tile in shared memory: `bytes` are left free behind every `row` bytes. 0: none.
struct Gaps {
  int64_t row = 0, bytes = 0;
  explicit operator bool() const { return bytes != 0; }
  /// Whether runs of elements stay aligned; otherwise they are moved one by one.
  bool keepVectors() const { return bytes % 16 == 0; }
  int64_t place(int64_t byte) const { return bytes ? byte + byte / row * bytes : byte; }
};

/// The padding that avoids bank conflicts for a tile that takes read from shared memory, if they are known to read it
/// with a fixed stride (threads that hold runs of neighbours do), or if threads write runs that lie far apart.
Gaps gapsForTakes(mlir::Value source);
/// The padding that place_buffers has decided for the take.
Gaps gapsOf(TakeOp op);

/// How many neighbours in a row a thread with this layout moves at a time.
int rowVector(const layout::Layout& layout, int elementBytes);
/// The same for what the op reads, or puts: if its axis is not the last one, neighbours stay neighbours.
int takenVector(TakeOp op);
int putVector(PutOp op);

/// Bytes of an element in shared or global memory.
int elementBytes(mlir::Type type);
/// Bytes of all elements of a tile.
int64_t tileBytes(mlir::Type tile);
/// 32-bit registers of a thread for a value of this type under its layout; 1 for types without one.
int64_t registersOf(mlir::Type type);
/// The most 32-bit registers of a thread that tiles take which one loop of the kernel carries.
int64_t registersCarried(mlir::Operation* kernel);

}  // namespace tile::ir
