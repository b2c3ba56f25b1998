// access_layout.cpp - layouts for accesses to memory: neighbours in a thread, whole sectors and lines in a warp.
#include "compiler/gpu/layouts/access_layout.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "compiler/analysis/memory_roots.h"
#include "compiler/analysis/neighbours.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/fields.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/layouts/combined_rows.h"
#include "compiler/gpu/layouts/diagonal_blocks.h"
#include "compiler/gpu/layouts/shared_places.h"
#include "compiler/gpu/layouts/stored_pieces.h"
#include "compiler/layout/lane_trades.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

/// `vector`, or less if that would leave threads without elements.
int AccessLayouts::shareOf(int64_t elements, int vector) const {
  const int64_t perThread = std::max<int64_t>(1, elements / (int64_t{numWarps_} * target_.lanes));
  while (vector > perThread) vector /= 2;
  return vector;
}

/// Dims from fastest to slowest: `fastest` (-1: none), then from the last one to the first.
Layout AccessLayouts::blocked(const layout::Shape& shape, int vector, int fastest) const {
  std::vector<int> order;
  if (fastest >= 0) order.push_back(fastest);
  for (int dim = static_cast<int>(shape.size()) - 1; dim >= 0; --dim)
    if (dim != fastest) order.push_back(dim);
  return layout::blocked(shape, vector, order, numWarps_, target_.lanes);
}

Layout AccessLayouts::defaultLayout(Type type, int fastest) const {
  const auto tensor = cast<RankedTensorType>(type);
  const int vector = shareOf(tensor.getNumElements(), std::max(1, 16 / elementBytes(type)));
  return blocked({tensor.getShape().begin(), tensor.getShape().end()}, vector, fastest);
}

static Value offsetsOf(Operation* op) {
  return llvm::TypeSwitch<Operation*, Value>(op)
      .Case<GatherOp, ScatterOp, AtomicRmwOp, AtomicCasOp>([](auto o) { return o.getOffsets(); })
      .Default([](Operation*) { return Value(); });
}

/// Whether a few elements (fields of a record, say) are taken out of the tile one by one, as scalars.
static bool isTakenApart(Operation* op) {
  constexpr int64_t kFew = 64;  // bytes
  if (!isa<LoadOp, GatherOp>(op)) return false;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return type && type.getNumElements() > 1 && tileBytes(type) <= kFew && !op->use_empty() &&
         llvm::all_of(op->getUsers(), [](Operation* user) {
           auto extract = dyn_cast<ExtractOp>(user);
           return extract && cast<RankedTensorType>(extract.getType()).getNumElements() == 1;
         });
}

/// Whether the kernel reads, for each element of the tile, from a place in space. Lanes next to each other read lines
/// in common there if they are neighbours.
bool AccessLayouts::isBesidePlaces(Value tile) const {
  const ArrayRef<int64_t> shape = tileType(tile).getShape();
  auto func = tile.getParentRegion()->getParentOfType<FunctionOpInterface>();
  return func
      ->walk([&](GatherOp gather) {
        auto type = dyn_cast<RankedTensorType>(gather.getResult().getType());
        if (!type || type.getShape() != shape) return WalkResult::advance();
        auto access = accessOf(gather, facts_);
        return access && isPlaceInSpace(gather, *access) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Of pieces of `vector` loaded elements along `dim`, and smaller ones, the largest with which stores of what is
/// computed of them write whole sectors (stored_pieces.h), as far as any do.
int AccessLayouts::widestToStore(Value loaded, int vector, int dim) const {
  auto share = [&](int piece) { return shareOfSectorsStored(loaded, blocked(shapeOf(loaded), piece, dim), facts_); };
  constexpr double kWhole = 0.99, kMore = 0.01;
  int best = vector;
  double most = vector > 1 ? share(vector) : 1;
  for (int piece = vector / 2; piece > 0 && most < kWhole; piece /= 2)
    if (const double now = share(piece); now > most + kMore) most = now, best = piece;
  return best;
}

/// Whether the integers are sums with what a scan found: where elements of different lengths, or those that are kept,
/// go.
static bool isSumWithScan(Value places) {
  constexpr size_t kMost = 32;
  SmallVector<Value> parts{places};
  for (size_t i = 0; i < parts.size() && i < kMost; ++i) {
    Operation* op = parts[i].getDefiningOp();
    if (isa_and_nonnull<ScanOp>(op)) return true;
    if (isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::ExtSIOp, arith::ExtUIOp>(op))
      parts.append(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Whether the kernel writes, for each element of the vector, several times to where a scan says that it goes. What
/// neighbours write is near each other: a warp whose lanes are neighbours writes few sectors at a time, one whose
/// threads hold runs the same ones again for every element of a run (numbers as text: 0.57 ms on an H200 for two to a
/// thread, 0.30 ms for one).
bool AccessLayouts::isBesideRuns(Value tile) const {
  constexpr int kSeveral = 4;  // for fewer, wide loads are worth as much
  const ArrayRef<int64_t> shape = tileType(tile).getShape();
  auto func = tile.getParentRegion()->getParentOfType<FunctionOpInterface>();
  int writes = 0;
  if (shape.size() == 1)
    func->walk([&](ScatterOp scatter) {
      auto offsets = scatter.getOffsets() ? dyn_cast<RankedTensorType>(scatter.getOffsets().getType()) : nullptr;
      writes += offsets && offsets.getShape() == shape && isSumWithScan(scatter.getOffsets());
    });
  return writes >= kSeveral;
}

/// For elements narrower than a word, in places that begin anywhere, which are read beside their neighbours (bytes of
/// text and those in front of them): the elements of a word, if a thread that has them in a row loads much less than
/// threads with one each (lowering/windows.cpp). 1: others.
static int64_t runOfWindow(Operation* op, const GlobalAccess& access, const Facts& facts) {
  constexpr int kWord = 4;
  auto gather = dyn_cast<GatherOp>(op);
  const int bytes = elementBytes(access.tile.getType());
  if (!gather || access.width.dim < 0 || access.width.aligned > 1 || bytes >= kWord || isVolatile(gather)) return 1;
  const int64_t run = std::gcd<int64_t>(kWord / bytes, facts.of(gather.getOffsets()).contiguity[access.width.dim]);
  const auto [readers, spread] = readersOfWindow(gather);
  return savesEnough(run + spread, readers * run) ? run : 1;
}

std::optional<Layout> AccessLayouts::coalescedLayout(Operation* op) const {
  auto access = accessOf(op, facts_);
  if (!access) return std::nullopt;
  if (isTakenApart(op)) {  // every thread reads them all
    std::vector<layout::Digit> regs, lanes{{layout::kReplicated, target_.lanes, 0}}, warps;
    const layout::Shape whole = shapeOf(access->tile);
    for (int dim = static_cast<int>(whole.size()) - 1; dim >= 0; --dim)
      if (whole[dim] > 1) regs.push_back({dim, static_cast<int>(whole[dim]), 1});
    if (numWarps_ > 1) warps.push_back({layout::kReplicated, numWarps_, 0});
    return Layout(whole, regs, lanes, warps);
  }
  const layout::Shape shape = shapeOf(access->tile);
  int vector = access->width.aligned;
  if (isa<AccumulateOp>(op) || addsToMemory(op))
    vector = std::min(vector, widestAdd(getElementTypeOrSelf(access->tile.getType()), target_));
  else if (isa<AtomicRmwOp, AtomicCasOp>(op))
    vector = 1;
  int fastest = access->width.dim;
  // Elements that are read from one word lie in one thread, which reads it once.
  if (const int64_t alike = columnsAlike(op, facts_); fastest < 0 && alike > 1)
    vector = static_cast<int>(alike), fastest = static_cast<int>(shape.size()) - 1;
  // So do elements whose places are found together, unless wider accesses want them so anyway.
  if (const int64_t run = fastest < 0 || vector == 1 ? runOfPlaces(op, facts_) : 1; run > 1)
    vector = static_cast<int>(run), fastest = 0;
  if (const int64_t run = runOfWindow(op, *access, facts_); run > vector) vector = static_cast<int>(run);
  if (fastest < 0)
    if (Value offsets = offsetsOf(op)) fastest = nearestDim(offsets, elementBytes(access->tile.getType()), facts_);
  vector = shareOf(tileType(access->tile).getNumElements(), vector);
  const int bytes = elementBytes(access->tile.getType());
  constexpr int kWord = 4;
  if (vector * bytes > kWord && isBesidePlaces(access->tile)) vector = std::max(1, kWord / bytes);
  if (vector > 1 && isBesideRuns(access->tile)) vector = 1;
  if (isa<LoadOp, GatherOp>(op) && access->width.dim >= 0) vector = widestToStore(access->tile, vector, fastest);
  Layout best = blocked(shape, vector, fastest);
  // Rather smaller pieces (of whole lines still) than threads without elements; short dims are divided over lanes.
  for (int piece = vector / 2; best.isPadded() && access->width.dim >= 0 && piece > 0; piece /= 2) {
    Layout narrower = blocked(shape, piece, access->width.dim);
    if (!narrower.isPadded() && wholeLines(narrower, access->width.dim, bytes)) best = std::move(narrower);
  }
  if (auto whole = shortRowsInThreads(best, access->width.dim, numWarps_, target_.lanes)) best = std::move(*whole);
  if (auto gather = dyn_cast<GatherOp>(op); gather && vector == 1)
    if (auto blocks = blocksOfDiagonals(gather, best, bytes, numWarps_, target_.lanes)) return *blocks;
  // If rows are reduced, are read from the same words, or are combined with runs of loaded vectors, the rows of a
  // thread are consecutive ones.
  const bool isRead = isa<LoadOp, GatherOp>(op) && access->width.dim > 0 && !best.isPadded(0);
  if (!isRead) return best;
  if (auto blocks = blocksInWarps(access->tile, best, access->width.dim, bytes)) return *blocks;
  if (auto rows = axisInThreads(access->tile, best, access->width.dim, bytes)) return *rows;
  if (auto pieces = rowsAcrossWarps(access->tile, best, access->width.dim, numWarps_, target_)) return *pieces;
  if (foldsBlocksOfRows(access->tile) || rowsAlike(op, facts_) > 1) return withRowsTogether(best);
  if (shape.size() != 2 || best.numRegs() <= best.runLength(1) || !meetsLoadedColumns(access->tile)) return best;
  const Layout together = withRowsTogether(best);
  return sectorUse(together, access->width.dim, bytes) < sectorUse(best, access->width.dim, bytes) ? best : together;
}

/// Of the 32-byte sectors that one instruction of a warp writes, the share of bytes that it has for them: of a box
/// whose rows, along `dim`, lie side by side.
static double sectorsWritten(const Layout& layout, int dim, int vector, int bytes) {
  constexpr int64_t kSector = 32;
  const int64_t row = layout.shape()[dim];
  std::set<std::pair<layout::Coord, int64_t>> sectors, written;
  for (int lane = 0; lane < layout.numLanes(); ++lane) {
    layout::Coord at = layout.threadCoord(lane, 0);
    const int64_t first = (at[dim - 1] * row + at[dim]) * bytes;
    at[dim - 1] = at[dim] = 0;
    for (int64_t byte = first; byte < first + int64_t{vector} * bytes; byte += bytes) {
      written.insert({at, byte});
      sectors.insert({at, byte / kSector});
    }
  }
  return double(written.size()) * bytes / double(int64_t(sectors.size()) * kSector);
}

/// Whether a store of rows shorter than a sector (pairs, colours, 2 x 2 matrices), which probably lie side by side,
/// would write several times the sectors that it would under `best`. The second-level cache is sent every one by itself
/// (products of 2 x 2 matrices took 0.228 ms on an H200 and take 0.139). Not of many registers, which would wait
/// together to be exchanged: a gate of 32 took 5 % longer.
bool AccessLayouts::scattersShortRows(Operation* op, const Layout& own, const Layout& best) const {
  auto store = dyn_cast<StoreOp>(op);
  const auto access = accessOf(op, facts_);
  if (!store || !access || access->width.dim < 1) return false;
  const int dim = access->width.dim, bytes = elementBytes(access->tile.getType());
  const int rows = dim - 1 + static_cast<int>(store.getIndices().size()) - own.rank();
  const int64_t row = own.shape()[dim];
  constexpr int kMostRegisters = 16;
  if (own.numRegs() > kMostRegisters || row * bytes >= 32 || tileBytes(access->tile.getType()) <= kSmallTileBytes ||
      rows < 0 || facts_.strideDivisibility(store.getView(), rows) > row)
    return false;  // or apart
  auto written = [&](const Layout& layout) {
    return sectorsWritten(layout, dim, widthUnder(access->width, layout).aligned, bytes);
  };
  constexpr int kTimes = 2;  // more sectors: half of them are no worse than a conversion
  return kTimes * written(own) + 0.01 < written(best);
}

bool AccessLayouts::serves(Operation* op, const Layout& own, const Layout& best, bool isStore) const {
  auto access = accessOf(op, facts_);
  if (!access || own == best || op->hasAttr(kAsComputedAttr)) return true;
  int bytes = elementBytes(access->tile.getType());
  bool isSmall = tileBytes(access->tile.getType()) <= kSmallTileBytes;
  if (isSmall && !isStore) return true;
  int replicas = own.laneReplicas() * own.warpReplicas() * own.regReplicas();
  int bestReplicas = best.laneReplicas() * best.warpReplicas();
  if (!isStore && replicas > bestReplicas) return false;
  // Single elements at any addresses: if lanes hold copies of each other's elements, most of every instruction is
  // unused.
  constexpr int kFewStores = 8, kTimes = 4;
  if (isStore && access->width.dim < 0 && own.numRegs() > kFewStores && own.numRegs() >= kTimes * best.numRegs())
    return false;
  if (access->width.dim < 0) return true;
  if (isStore && scattersShortRows(op, own, best)) return false;
  int dim = access->width.dim;
  if (sectorUse(own, dim, bytes) + 0.01 < std::min(1.0, sectorUse(best, dim, bytes))) return false;
  // Full sectors in pieces of 8 bytes are nearly as good as in pieces of 16; whole lines in pieces of 4 are better than
  // a conversion.
  int vector = widthUnder(access->width, own).aligned * bytes,
      bestVector = widthUnder(access->width, best).aligned * bytes;
  return vector >= std::min(wholeLines(own, dim, bytes) ? 4 : 8, bestVector);
}

Layout AccessLayouts::storeLayout(Operation* store, const Layout& own) const {
  auto best = coalescedLayout(store);
  if (!best) return own;
  if (auto lines = linesToAdd(store, own)) return *lines;
  if (!serves(store, own, *best, true)) return *best;
  if (auto pieces = wholeSectors(store, own)) return *pieces;
  return own;
}

// Threads that hold longer runs than they can write at once (of scans, sorts) write parts of sectors: a warp hands the
// elements of large tiles around before it stores them.
std::optional<Layout> AccessLayouts::wholeSectors(Operation* op, const Layout& own) const {
  constexpr int kWidest = 16, kLine = 128;
  const auto access = accessOf(op, facts_);
  if (!isa<StoreOp, ScatterOp>(op) || !access || access->width.dim < 0 || op->hasAttr(kAsComputedAttr)) return {};
  const int dim = access->width.dim, bytes = elementBytes(access->tile.getType()), vector = kWidest / bytes;
  if (vector < 2 || tileBytes(access->tile.getType()) <= kSmallTileBytes || access->width.aligned < vector ||
      own.runLength(dim) <= vector || sectorUse(own, dim, bytes, vector) > 0.51)
    return {};
  return layout::runsOfWarps(own, dim, vector, kLine / bytes);
}

// Additions to memory are carried out in the second-level cache, line by line. A warp in which each line of an
// accumulator is scattered over its lanes redistributes it first, and then sends a quarter of the requests.
std::optional<Layout> AccessLayouts::linesToAdd(Operation* op, const Layout& own) const {
  constexpr int kLine = 128;
  if (!isa<AccumulateOp>(op) && !addsToMemory(op)) return std::nullopt;
  auto access = accessOf(op, facts_);
  const int dim = access->width.dim, bytes = elementBytes(access->tile.getType());
  if (dim < 0 || tileBytes(access->tile.getType()) <= kSmallTileBytes || wholeLines(own, dim, bytes))
    return std::nullopt;
  const int vector = std::min(access->width.aligned, widestAdd(getElementTypeOrSelf(access->tile.getType()), target_));
  if (widthUnder(access->width, own).aligned >= vector) return std::nullopt;
  return layout::runsOfWarps(own, dim, vector, kLine / bytes);
}

}  // namespace tile::ir
