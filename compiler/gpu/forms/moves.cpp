// moves.cpp - chooses how elements move: renamed registers if threads keep their elements, else shuffles or shared
// memory.
#include "compiler/gpu/forms/moves.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "compiler/analysis/known_values.h"
#include "compiler/analysis/memo.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/layout/relations.h"

namespace tile::ir {
using namespace mlir;

int elementBytes(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<PtrType>(element)) return 8;
  return static_cast<int>((element.getIntOrFloatBitWidth() + 7) / 8);
}

int64_t tileBytes(Type type) { return cast<RankedTensorType>(type).getNumElements() * elementBytes(type); }

int64_t registersOf(Type type) {
  const auto layout = isa<RankedTensorType>(type) ? layoutOf(type) : std::nullopt;
  return layout ? std::max<int64_t>(1, int64_t{layout->numRegs()} * elementBytes(type) / 4) : 1;
}

int64_t registersCarried(Operation* kernel) {
  int64_t most = 0;
  kernel->walk([&](LoopLikeOpInterface loop) {
    int64_t carried = 0;
    for (Type type : loop->getResultTypes())
      if (isa<RankedTensorType>(type)) carried += registersOf(type);
    most = std::max(most, carried);
  });
  return most;
}

namespace {

constexpr int64_t kMostAtOnce = 20480;  ///< bytes of all warps together for an exchange inside warps

layout::Layout layoutOrDie(Value value) { return *layoutOf(value.getType()); }

/// Flattens all dims but the last one, if both layouts allow it: then stmatrix and ldmatrix apply, and pieces can reach
/// across rows.
void seeAsRows(layout::Layout& from, layout::Layout& to) {
  if (from.rank() <= 2) return;
  int64_t rows = 1;
  for (int dim = 0; dim + 1 < from.rank(); ++dim) rows *= from.shape()[dim];
  const layout::Shape shape{rows, from.shape().back()};
  auto flatFrom = from.reshaped(shape), flatTo = to.reshaped(shape);
  if (flatFrom && flatTo) from = std::move(*flatFrom), to = std::move(*flatTo);
}

/// An exchange inside each warp. Waiting for lanes costs nothing, so a large tile passes in pieces through few bytes.
Move exchangeInPieces(const layout::Layout& from, const layout::Layout& to, int bytes) {
  Move move;
  move.kind = Move::exchange;
  move.from = from;
  move.to = to;
  seeAsRows(move.from, move.to);
  move.box = move.to.shape();
  move.piece = layout::planExchange(move.from, move.to, bytes).bytes;
  const int64_t most = kMostAtOnce / from.numWarps();
  if (move.piece > std::max(most, kOwnScratch)) {
    move.box = layout::exchangeBox(move.from, move.to, bytes, most);
    const layout::Coord origin(move.box.size(), 0);
    move.piece = layout::planExchange(*layout::boxLayout(move.from, origin, move.box),
                                      *layout::boxLayout(move.to, origin, move.box), bytes)
                     .bytes;
  }
  move.piece = std::max(move.piece, kOwnScratch);
  move.bytes = move.piece * from.numWarps();
  return move;
}

}  // namespace

Move planConvert(const layout::Layout& from, const layout::Layout& to, int bytes) {
  Move move;
  if (layout::conversion(from, to) != layout::Conversion::shared) {
    move.map = layout::registerMap(from, to);
    return move;
  }
  // A swap moves half of the registers once; through shared memory all registers move twice, and warps wait.
  constexpr size_t kMostSwaps = 2;
  if (auto swaps = bytes == 4 ? layout::laneSwaps(from, to) : std::nullopt;
      swaps && swaps->swaps.size() <= kMostSwaps) {
    move.kind = Move::swap;
    move.swaps = std::move(swaps->swaps);
    move.map = std::move(swaps->map);
    return move;
  }
  move.kind = Move::exchange;
  if (auto own = layout::withinWarps(from, to)) return exchangeInPieces(own->first, own->second, bytes);
  move.from = from;
  move.to = to;
  seeAsRows(move.from, move.to);
  move.bytes = layout::planExchange(move.from, move.to, bytes).bytes;
  move.box = move.to.shape();
  // If all warps hold the same elements, each can exchange by itself.
  if (from.numWarps() > 1 && from.warpReplicas() == from.numWarps() && move.bytes <= kOwnScratch) {
    move.piece = kOwnScratch;
    move.bytes = move.piece * from.numWarps();
  }
  return move;
}

/// What a move depends on: the kind of op, the types of its operands and its result.
template <class Op>
static MemoKey moveKey(Op op) {
  MemoKey key;
  key.add(TypeID::get<Op>()).add(op.getType());
  for (Type type : op->getOperandTypes()) key.add(type);
  return key;
}

template <class Op, class Compute>
static Move kept(Op op, MemoKey key, Compute compute) {
  return Memo<Move>::get(op->getContext(), std::move(key), compute);
}

Move planMove(ConvertOp op) {
  return kept(op, moveKey(op), [&] {
    return planConvert(layoutOrDie(op.getSource()), layoutOrDie(op.getResult()), elementBytes(op.getType()));
  });
}

Move planMove(TransOp op) {
  return kept(op, moveKey(op).add(op.getPermutationAttr()), [&] {
    std::vector<int> permutation(op.getPermutation().begin(), op.getPermutation().end());
    return planConvert(layoutOrDie(op.getSource()).transposed(permutation), layoutOrDie(op.getResult()),
                       elementBytes(op.getType()));
  });
}

static Move planReshape(ReshapeOp op) {
  if (auto moved = layoutOrDie(op.getSource()).reshaped(shapeOf(op.getResult())))
    return planConvert(*moved, layoutOrDie(op.getResult()), elementBytes(op.getType()));
  // Else the layout of the result may have a form in the shape of the source.
  if (auto moved = layoutOrDie(op.getResult()).reshaped(shapeOf(op.getSource())))
    return planConvert(layoutOrDie(op.getSource()), *moved, elementBytes(op.getType()));
  Move move;
  move.kind = Move::linear;
  move.bytes = tileBytes(op.getType());
  return move;
}

Move planMove(ReshapeOp op) {
  return kept(op, moveKey(op), [&] { return planReshape(op); });
}

static Move planExtract(ExtractOp op) {
  Move move;
  layout::Coord offset(op.getOffsets().begin(), op.getOffsets().end());
  if (auto map = layout::shiftedRegisterMap(layoutOrDie(op.getSource()), layoutOrDie(op.getResult()), offset)) {
    move.map = std::move(*map);
    return move;
  }
  move.kind = Move::linear;
  move.bytes = tileBytes(op.getType());  // who has elements of the box puts them
  move.from = layoutOrDie(op.getSource()), move.to = layoutOrDie(op.getResult());
  // Nobody else looks into the buffer: elements may lie in it in any order, best in that of a thread's registers.
  constexpr int kVector = 16;
  const int bytes = elementBytes(op.getType()), dim = layout::minorDim(move.to.shape());
  if (auto runs = layout::withRunsAlong(move.from, move.to, dim, std::max(1, kVector / bytes)))
    std::tie(move.from, move.to) = std::move(*runs);
  return move;
}

Move planMove(ExtractOp op) {
  return kept(op, moveKey(op).add(op.getOffsetsAttr()), [&] { return planExtract(op); });
}

static CatMove planCat(CatOp op) {
  CatMove move;
  layout::Layout to = layoutOrDie(op.getResult());
  int axis = static_cast<int>(op.getAxis());
  move.map.assign(to.numRegs(), {-1, -1});
  move.isRename = true;
  int64_t start = 0;
  for (auto [i, source] : llvm::enumerate(op.getSources())) {
    layout::Layout from = layoutOrDie(source);
    int64_t end = start + from.shape()[axis];
    bool fits = layout::sameThreads(from, to) && !from.isPadded(axis);
    for (int reg = 0; fits && reg < from.numRegs(); ++reg) {
      layout::Coord coord = from.regCoord(reg);
      coord[axis] += start;
      // Quadratic in the number of registers, which is small.
      for (int into = 0; into < to.numRegs(); ++into)
        if (to.regCoord(into) == coord) move.map[into] = {static_cast<int>(i), reg};
    }
    move.isRename &= fits;
    start = end;
  }
  for (int reg = 0; reg < to.numRegs(); ++reg) move.isRename &= move.map[reg].first >= 0 || to.isRegPadding(reg);
  if (!move.isRename) move.bytes = tileBytes(op.getType());
  return move;
}

CatMove planMove(CatOp op) {
  return Memo<CatMove>::get(op->getContext(), moveKey(op).add(op.getAxis()), [&] { return planCat(op); });
}

constexpr int kMostShuffles = 2;  ///< for one result register

constexpr int kLanes = 32;
// Per lane what it receives: (rotation, register); -1: nothing.
using Sources = std::vector<std::pair<int, int>>;

// Where elements of a result register come from that lie in lanes of the same warp, in the same pattern in all warps.
// Nullopt: they do not.
static std::optional<Sources> sourcesOf(const layout::Layout& from, const layout::Layout& to, int reg,
                                        llvm::function_ref<layout::Coord(layout::Coord)> sourceOf) {
  if (from.numLanes() != kLanes) return std::nullopt;
  Sources sources(kLanes, {-1, -1});
  for (int warp = 0; warp < to.numWarps(); ++warp) {
    std::map<layout::Coord, std::pair<int, int>> held;  // (lane, register), the first of several
    for (int source = 0; source < from.numRegs(); ++source)
      for (int lane = 0; lane < kLanes; ++lane) held.emplace(from.coordOf(source, lane, warp), std::pair(lane, source));
    for (int lane = 0; lane < kLanes; ++lane) {
      const layout::Coord coord = to.coordOf(reg, lane, warp);
      if (!to.inTile(coord)) continue;
      const layout::Coord wanted = sourceOf(coord);
      auto it = held.find(wanted);
      if (it == held.end()) return std::nullopt;
      auto [giver, source] = it->second;
      if (from.coordOf(source, lane, warp) == wanted) giver = lane;
      const std::pair<int, int> found{(giver - lane + kLanes) % kLanes, source};
      if (sources[lane].first >= 0 && sources[lane] != found) return std::nullopt;
      sources[lane] = found;
    }
  }
  return sources;
}

// The register that all lanes receive from others, and which lane gives it: the first of a row, or neighbours in turns
// ((t + 1) % 4). Nullopt: it is several, or another lane.
static std::optional<std::pair<int, LaneOfGroup>> planGiver(const Sources& sources) {
  if (sources[0].first < 0 || sources[1].first < 0) return std::nullopt;
  const int first = sources[0].first, second = (1 + sources[1].first) % kLanes;
  for (int size = 2; size <= kLanes; size *= 2) {
    const LaneOfGroup giver{size, (second - first + kLanes) % size, first % size};
    const bool servesAll = llvm::all_of(llvm::enumerate(sources), [&](const auto& it) {
      const int lane = static_cast<int>(it.index());
      const auto [rotation, source] = it.value();
      return rotation < 0 || (source == sources[0].second && giver.of(lane) == (lane + rotation) % kLanes);
    });
    if (servesAll) return std::pair(sources[0].second, giver);
  }
  return std::nullopt;
}

// Of handovers that there are not: too many.
static int64_t shufflesOf(const std::optional<std::vector<Handover>>& handovers) {
  return handovers ? llvm::count_if(*handovers, [](const Handover& h) { return h.rotation != 0; }) : kMostShuffles + 1;
}

// Shuffles for a result register whose elements lie in several registers. Nullopt: it takes too many.
static std::optional<std::vector<Handover>> planHandovers(const Sources& sources) {
  constexpr int kMostGiven = 4;
  std::vector<Handover> all;
  int given = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    auto [rotation, source] = sources[lane];
    if (rotation < 0) continue;
    auto handover = llvm::find_if(all, [r = rotation](const Handover& h) { return h.rotation == r; });
    if (handover == all.end()) handover = all.insert(all.end(), Handover{rotation, 0, {}});
    handover->receivers |= 1u << lane;
    auto pair = llvm::find_if(handover->given, [s = source](const auto& p) { return p.first == s; });
    if (pair == handover->given.end()) pair = handover->given.insert(handover->given.end(), {source, 0}), ++given;
    pair->second |= 1u << (lane + rotation) % kLanes;
  }
  if (all.empty() || shufflesOf(all) > kMostShuffles || given > kMostGiven) return std::nullopt;
  return all;
}

static int64_t rowMajor(const layout::Coord& coord, const layout::Shape& shape) {
  int64_t index = 0;
  for (size_t d = 0; d < coord.size(); ++d) index = index * shape[d] + coord[d];
  return index;
}

// The coordinate that an element of the result comes from; indices outside the axis read its last element.
static layout::Coord takenFrom(TakeOp op, const std::vector<int64_t>& indices, layout::Coord coord) {
  const auto axis = static_cast<size_t>(op.getAxis());
  const auto wanted = static_cast<uint64_t>(indices[rowMajor(coord, shapeOf(op.getResult()))]) & 0xffffffffu;
  const auto last = static_cast<uint64_t>(shapeOf(op.getSource())[axis]) - 1;
  coord[axis] = static_cast<int64_t>(std::min(wanted, last));
  return coord;
}

static std::optional<TakeMove> planTake(TakeOp op, const std::vector<int64_t>& indices) {
  const layout::Layout from = layoutOrDie(op.getSource()), to = layoutOrDie(op.getResult());
  if (from.numWarps() != to.numWarps() || from.numLanes() != to.numLanes()) return std::nullopt;
  auto sourceOf = [&](layout::Coord coord) { return takenFrom(op, indices, std::move(coord)); };
  const bool readsRuns = takenVector(op) > 1;  // from shared memory: a shuffle for every element would be more
  TakeMove move;
  int64_t shuffles = 0;
  for (int reg = 0; reg < to.numRegs(); ++reg) {
    move.map.push_back(-1);
    move.flips.push_back(0);
    move.givers.emplace_back();
    move.handovers.emplace_back();
    if (to.isRegPadding(reg)) continue;
    auto servesAll = [&](int source, int flip) {
      for (int warp = 0; warp < to.numWarps(); ++warp)
        for (int lane = 0; lane < to.numLanes(); ++lane) {
          const layout::Coord coord = to.coordOf(reg, lane, warp);
          if (to.inTile(coord) && from.coordOf(source, lane ^ flip, warp) != sourceOf(coord)) return false;
        }
      return true;
    };
    // This lane first: it costs nothing.
    const layout::Coord first = sourceOf(to.coordOf(reg, 0, 0));
    bool found = false;
    for (int flip = 0; flip < from.numLanes() && !found; ++flip)
      for (int source = 0; source < from.numRegs() && !found; ++source)
        if (from.coordOf(source, flip, 0) == first && servesAll(source, flip))
          move.map[reg] = source, move.flips[reg] = flip, found = true;
    if (found) continue;
    const auto sources = sourcesOf(from, to, reg, sourceOf);
    if (!sources) return std::nullopt;
    auto handed = planHandovers(*sources);
    if (auto giver = shufflesOf(handed) > 1 && !readsRuns ? planGiver(*sources) : std::nullopt) {
      std::tie(move.map[reg], move.givers[reg]) = *giver, ++shuffles;
      continue;
    }
    if (!handed) return std::nullopt;
    shuffles += shufflesOf(handed);
    move.handovers.back() = std::move(*handed);
  }
  // Through shared memory several elements are read and written at a time, but there is a barrier.
  if (shuffles > to.numRegs() + kMostShuffles) return std::nullopt;
  return move;
}

std::optional<TakeMove> planMove(TakeOp op) {
  MemoKey key = moveKey(op).add(op.getAxis());
  if (!describeValues(op.getIndices(), key)) return std::nullopt;
  return Memo<std::optional<TakeMove>>::get(op->getContext(), std::move(key), [&]() -> std::optional<TakeMove> {
    const auto indices = knownValues(op.getIndices());
    return indices ? planTake(op, *indices) : std::nullopt;
  });
}

std::optional<std::vector<std::vector<int>>> linesOf(TakeOp op) {
  constexpr int64_t kLongest = 32;
  const layout::Layout from = layoutOrDie(op.getSource()), to = layoutOrDie(op.getResult());
  const int axis = static_cast<int>(op.getAxis());
  const int64_t length = from.shape()[axis];
  auto isAlong = [&](const layout::Digit& digit) { return digit.dim == axis && digit.count > 1; };
  if (length > kLongest || llvm::any_of(from.lanes(), isAlong) || llvm::any_of(from.warps(), isAlong) ||
      !layout::sameThreads(from.sliced(axis), to.sliced(axis)))
    return std::nullopt;
  std::map<layout::Coord, int> held;
  for (int reg = 0; reg < from.numRegs(); ++reg) held.emplace(from.regCoord(reg), reg);
  std::vector<std::vector<int>> lines(to.numRegs());
  for (int reg = 0; reg < to.numRegs(); ++reg) {
    layout::Coord coord = to.regCoord(reg);
    for (int64_t i = 0; i < length && !to.isRegPadding(reg); ++i) {
      coord[axis] = i;
      const auto it = held.find(coord);
      if (it == held.end()) return std::nullopt;
      lines[reg].push_back(it->second);
    }
  }
  return lines;
}

namespace {

// The number of shared memory cycles for lanes that access `bytes` each, at the given addresses: consecutive lanes with
// 128 bytes together are served at once, but each bank serves one word per cycle.
int64_t requests(llvm::ArrayRef<int64_t> places, int64_t bytes) {
  constexpr int64_t kBanks = 32, kWord = 4;
  const size_t together = static_cast<size_t>(kBanks * kWord / std::max(bytes, kWord));
  int64_t total = 0;
  for (size_t first = 0; first < places.size(); first += together) {
    SmallVector<int64_t, 64> words;
    for (int64_t place : places.slice(first, std::min(together, places.size() - first)))
      for (int64_t word = place / kWord; word * kWord < place + bytes; ++word) words.push_back(word);
    llvm::sort(words);
    words.erase(llvm::unique(words), words.end());
    std::array<int64_t, kBanks> wanted{};
    for (int64_t word : words) ++wanted[word % kBanks];
    total += *llvm::max_element(wanted);
  }
  return total;
}

// One access of the lanes of a warp: their addresses in the tile without gaps.
struct Access {
  SmallVector<int64_t> places;
  int64_t elements;  ///< of each lane, side by side
};

// Appends all accesses of a layout's threads, in runs of `vector` elements.
void accesses(const layout::Layout& layout, int vector, std::vector<Access>& into,
              llvm::function_ref<int64_t(layout::Coord)> placeOf) {
  for (const std::vector<int>& run : layout.runs(std::max(0, layout.rank() - 1), vector))
    for (int warp = 0; warp < layout.numWarps(); ++warp) {
      Access access{{}, static_cast<int64_t>(run.size())};
      for (int lane = 0; lane < layout.numLanes(); ++lane) {
        const layout::Coord coord = layout.coordOf(run[0], lane, warp);
        if (layout.inTile(coord)) access.places.push_back(placeOf(coord));
      }
      if (!access.places.empty()) into.push_back(std::move(access));
    }
}

int64_t requests(llvm::ArrayRef<Access> accesses, int64_t bytes, Gaps gaps) {
  int64_t total = 0;
  for (const Access& access : accesses) {
    const int64_t atOnce = gaps.keepVectors() ? access.elements : 1;
    for (int64_t i = 0; i < access.elements; i += atOnce) {
      SmallVector<int64_t> places;
      for (int64_t place : access.places) places.push_back(gaps.place(place + i * bytes));
      total += requests(places, atOnce * bytes);
    }
  }
  return total;
}

}  // namespace

int rowVector(const layout::Layout& layout, int bytes) {
  if (layout.rank() == 0) return 1;
  const int last = layout.rank() - 1;
  int64_t vector = std::gcd<int64_t>(layout.runLength(last), std::max(1, 16 / bytes));
  vector = std::gcd(vector, layout.shape()[last]);
  return static_cast<int>(vector & -vector);
}

/// Of a layout of indices along an axis.
static int indexedVector(const layout::Layout& layout, int axis, Type type) {
  return axis + 1 < layout.rank() ? rowVector(layout, elementBytes(type)) : 1;
}

int takenVector(TakeOp op) {
  return indexedVector(layoutOrDie(op.getResult()), static_cast<int>(op.getAxis()), op.getType());
}

int putVector(PutOp op) {
  return indexedVector(layoutOrDie(op.getValues().front()), static_cast<int>(op.getAxis()), op.getType());
}

Gaps gapsOf(TakeOp op) {
  auto gaps = op->getAttrOfType<DenseI64ArrayAttr>(kScratchGapsAttr);
  return gaps ? Gaps{gaps[1], gaps[0]} : Gaps{};
}

Gaps gapsForTakes(Value source) {
  constexpr double kWorth = 1.5;  // times fewer requests, for the addresses
  constexpr double kClearly = 0.9;
  constexpr int64_t kWord = 4, kBank = 128, kVector = 16;
  const layout::Layout from = layoutOrDie(source);
  const int bytes = elementBytes(source.getType());
  const int64_t all = tileBytes(source.getType());
  std::vector<Access> wanted;
  for (Operation* user : source.getUsers()) {
    auto take = dyn_cast<TakeOp>(user);
    if (!take || (!take->hasAttr(kMakesCopyAttr) && planMove(take))) continue;
    const auto indices = knownValues(take.getIndices());
    if (!indices) continue;
    accesses(layoutOrDie(take.getResult()), takenVector(take), wanted, [&](layout::Coord coord) {
      return rowMajor(takenFrom(take, *indices, std::move(coord)), from.shape()) * bytes;
    });
  }
  if (wanted.empty()) return {};
  // In loops the address of every access would be kept in a register: there only single elements get gaps.
  auto* around = source.getParentBlock()->getParentOp();
  const bool isInLoop = isa<LoopLikeOpInterface>(around) || around->getParentOfType<LoopLikeOpInterface>();
  int64_t plain = 0;
  for (const Access& access : wanted)
    plain += isInLoop && access.elements > 1 ? access.elements : requests(access, bytes, {});
  const size_t reads = wanted.size();
  accesses(from, rowVector(from, bytes), wanted,
           [&](const layout::Coord& coord) { return rowMajor(coord, from.shape()) * bytes; });
  for (const Access& access : llvm::ArrayRef(wanted).drop_front(reads))
    plain += isInLoop ? access.elements : requests(access, bytes, {});
  Gaps best;
  int64_t least = plain;
  auto consider = [&](Gaps gaps) {
    if (gaps.bytes < bytes || all <= gaps.row) return;
    const int64_t count = requests(wanted, bytes, gaps);
    if (double(count) < kClearly * double(least)) best = gaps, least = count;
  };
  // Long rows first: their gaps take the least memory.
  const int64_t longest = isInLoop ? 0 : static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(all)));
  for (int64_t row = longest; row >= kBank; row /= 2) consider({row, kVector});
  consider({kBank, kWord});
  return double(plain) > kWorth * double(least) ? best : Gaps{};
}

}  // namespace tile::ir
