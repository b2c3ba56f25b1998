// warp_grid.cpp - union of connected tiles, then one grid per class of products.
#include "compiler/gpu/products/warp_grid.h"

#include <tuple>

#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/rings/register_plan.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/MapVector.h"

namespace tile::ir {
using namespace mlir;

bool WarpGrids::isRemade(Value tile) {
  if (!isTile(tile)) return true;
  Operation* op = tile.getDefiningOp();
  if (!op) return false;
  if (isa<SplatOp, IotaOp, arith::ConstantOp>(op)) return true;
  if (!isElementwise(op) && !isa<AssumeOp, BroadcastOp, ReshapeOp, TransOp>(op)) return false;
  if (auto it = remade_.find(tile); it != remade_.end()) return it->second;
  const bool remade = llvm::all_of(op->getOperands(), [&](Value v) { return isRemade(v); });
  return remade_[tile] = remade;
}

void WarpGrids::join(Value a, Value b) {
  if (isTile(a) && isTile(b) && !isRemade(a) && !isRemade(b))
    classes_.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer());
}

Value WarpGrids::leaderOf(Value value) const {
  auto it = classes_.findLeader(value.getAsOpaquePointer());
  return it == classes_.member_end() ? value : Value::getFromOpaquePointer(*it);
}

void WarpGrids::connect(Operation* op) {
  if (auto dot = dyn_cast<DotOp>(op)) return join(dot.getAcc(), dot.getResult());
  if (auto dot = dyn_cast<BatchMmaOp>(op)) return join(dot.getAcc(), dot.getResult());
  // Loads make new tiles; transposition and reordering hand elements to other owners.
  if (isa<LoadOp, GatherOp, StoreOp, AccumulateOp, ScatterOp, AtomicRmwOp, AtomicCasOp, TransOp, TakeOp, PutOp,
          HistogramOp>(op))
    return;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    auto* yield = loop.getBody()->getTerminator();
    for (auto [i, arg] : llvm::enumerate(loop.getRegionIterArgs())) {
      join(loop.getInitArgs()[i], arg);
      join(yield->getOperand(i), arg);
      join(loop.getResult(i), arg);
    }
    return;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [i, arg] : llvm::enumerate(loop.getBeforeArguments())) {
      join(loop.getInits()[i], arg);
      join(loop.getYieldOp().getOperand(i), arg);
    }
    for (auto [i, arg] : llvm::enumerate(loop.getAfterArguments())) {
      join(loop.getConditionOp().getArgs()[i], arg);
      join(loop.getResult(i), arg);
    }
    return;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (Region& region : branch->getRegions())
      if (!region.empty())
        for (auto [i, result] : llvm::enumerate(branch.getResults()))
          join(region.front().getTerminator()->getOperand(i), result);
    return;
  }
  if (op->hasTrait<OpTrait::IsTerminator>()) return;
  Value first;
  auto add = [&](Value v) {
    if (!isTile(v) || isRemade(v)) return;
    if (first) join(first, v);
    first = v;
  };
  for (Value v : op->getOperands()) add(v);
  for (Value v : op->getResults()) add(v);
}

namespace {

// Lower is better: wasted rows and columns first, then multiply-adds in rows of few lanes, then what one warp must read
// from shared memory per k.
struct GridCost {
  int64_t area = 0, narrow = 0, edges = 0;
  bool operator<(const GridCost& other) const {
    return std::tie(area, narrow, edges) < std::tie(other.area, other.narrow, other.edges);
  }
};

int64_t rowsOf(DotOp dot) { return cast<RankedTensorType>(dot.getResult().getType()).getDimSize(0); }
int64_t colsOf(DotOp dot) { return cast<RankedTensorType>(dot.getResult().getType()).getDimSize(1); }

WarpGrids::Grid squarest(ArrayRef<DotOp> dots, int numWarps, function_ref<Engine(DotOp)> engineOf) {
  WarpGrids::Grid best;
  std::optional<GridCost> lowest;
  for (int m = 1; m <= numWarps; ++m) {
    if (numWarps % m) continue;
    GridCost cost;
    for (DotOp dot : dots) {
      Cover cover = coverOf(engineOf(dot), rowsOf(dot), colsOf(dot), 1, m, numWarps / m);
      cost.area += cover.m * cover.n;
      FmaLanes lanes{1, 1, 1};  // lanes, of which each reads on its own
      if (engineOf(dot) == Engine::fma)
        lanes = fmaLanes(rowsOf(dot), colsOf(dot), m, numWarps / m), cost.narrow -= lanes.columns;
      cost.edges += cover.m / (m * lanes.rows) + cover.n * m / (numWarps * lanes.columns);
    }
    if (!lowest || cost < *lowest) lowest = cost, best = {m, numWarps / m};
  }
  return best;
}

// ---- warpgroups

using EngineOf = function_ref<Engine(DotOp)>;

using UnitOf = function_ref<int(DotOp)>;

/// First operands in registers are held as accumulators are; of warpgroups 8-bit ones, too (wgmma_registers.cpp).
bool takesAccumulators(Engine engine) {
  const EngineRow& row = engineRow(engine);
  return row.operandBits == 16 || (row.isWgmma && row.operandBits == 8);
}

/// A grid of warps on which every product is whole instructions of warpgroups, with at most a quarter of them padding.
bool fitsWarpgroups(ArrayRef<DotOp> dots, WarpGrids::Grid grid, bool transposed, EngineOf engineOf, UnitOf unitOf) {
  return llvm::all_of(dots, [&](DotOp dot) {
    const int64_t m = transposed ? colsOf(dot) : rowsOf(dot), n = transposed ? rowsOf(dot) : colsOf(dot);
    const Engine engine = engineOf(dot);
    const Cover cover = coverOf(engine, m, n, 1, grid.m, grid.n);
    if (3 * cover.m * cover.n > 4 * m * n) return false;
    const int64_t part = cover.n / grid.n;
    return grid.n == 1 || part % unitOf(dot) == 0 || (!transposed && part % 16 == 0 && cover.n <= unitOf(dot));
  });
}

/// The grid whose warpgroups read least from shared memory per k; no grid when none fits. Rows before columns: row
/// reductions stay inside a warp. Of transposed products the grid is that of the transposes.
std::optional<WarpGrids::Grid> warpgroupGrid(ArrayRef<DotOp> dots, int numWarps, bool wholeRows, bool transposed,
                                             EngineOf engineOf, UnitOf unitOf) {
  std::optional<WarpGrids::Grid> best;
  GridCost lowest;
  for (int m = numWarps; m >= 4; m -= 4) {
    WarpGrids::Grid grid{m, numWarps / m};
    if (numWarps % m != 0 || (wholeRows && grid.n > 1)) continue;
    if (!fitsWarpgroups(dots, grid, transposed, engineOf, unitOf)) continue;
    GridCost cost;
    for (DotOp dot : dots) {
      const int64_t rows = transposed ? colsOf(dot) : rowsOf(dot), cols = transposed ? rowsOf(dot) : colsOf(dot);
      Cover cover = coverOf(engineOf(dot), rows, cols, 1, grid.m, grid.n);
      cost.area += cover.m * cover.n;
      cost.edges += cover.m / (16 * grid.m) * (64 + cover.n / grid.n);  // each 64 rows read all their columns' b
    }
    if (!best || cost < lowest) lowest = cost, best = grid;
  }
  return best;
}

/// Some product, or what a loop or branch hands on, is in it: not loads alone.
bool isMadeOfProducts(Value tile) {
  SmallVector<Value> pending{tile};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!isTile(value) || !seen.insert(value).second) continue;
    Operation* op = value.getDefiningOp();
    if (!op || isa<DotOp, BatchMmaOp>(op) || (op->getNumRegions() && !isa<ReduceOp, ScanOp>(op))) return true;
    if (!isa<LoadOp, GatherOp>(op)) pending.append(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Tiles that the loop carries are sums of products.
bool carriesOnlyProducts(scf::ForOp loop) {
  auto* yield = loop.getBody()->getTerminator();
  return llvm::all_of(llvm::zip(yield->getOperands(), loop.getRegionIterArgs()), [](const auto& carried) {
    auto [next, arg] = carried;
    auto dot = Value(next).template getDefiningOp<DotOp>();
    return !isTile(arg) || (dot && dot.getAcc() == arg);
  });
}

/// The same in all iterations of the product's loop: warpgroups read it from shared memory as fast, and registers are
/// free for what the iterations compute.
bool isKeptForLoop(DotOp dot) {
  auto loop = dot->getParentOfType<LoopLikeOpInterface>();
  return loop && loop.isDefinedOutsideOfLoop(dot.getA());
}

/// Whether warpgroups may compute the transpose of a product whose rows they do not divide: of 16-bit elements, which
/// they read either way round, or of others that lie along k, in a loop that only multiplies, of as many rows as are
/// worth it.
bool mayTurn(DotOp dot, const EngineChoice& choice) {
  constexpr int64_t kLeastRows = 24;
  auto loop = dot->getParentOfType<scf::ForOp>();
  const EngineRow& row = engineRow(*choice.warpgroups);
  const bool eitherWay = row.operandBits == 16 || (choice.bothAlongK && rowsOf(dot) % row.n == 0);
  return eitherWay && *choice.warpgroups != Engine::wgmma_b1 && rowsOf(dot) >= kLeastRows && loop &&
         carriesOnlyProducts(loop);
}

}  // namespace

WarpGrids::WarpGrids(func::FuncOp func, int numWarps, function_ref<EngineChoice(DotOp)> enginesOf) {
  llvm::MapVector<void*, SmallVector<DotOp>> byClass;
  func.walk([&](Operation* op) { connect(op); });
  SmallVector<DotOp> dots;
  llvm::DenseMap<Operation*, EngineChoice> choices;
  func.walk([&](DotOp dot) {
    dots.push_back(dot);
    choices[dot.getOperation()] = enginesOf(dot);
  });
  auto ofWarps = [&](DotOp dot) { return choices[dot.getOperation()].warps; };
  auto ofWarpgroups = [&](DotOp dot) { return *choices[dot.getOperation()].warpgroups; };
  auto unitOf = [&](DotOp dot) { return choices[dot.getOperation()].columnUnit; };
  auto narrowUnitOf = [&](DotOp dot) { return choices[dot.getOperation()].narrowUnit; };
  // A product that reads accumulators as its first operand divides its rows as they do.
  llvm::DenseSet<void*> accumulators;
  for (DotOp dot : dots) accumulators.insert(leaderOf(dot.getResult()).getAsOpaquePointer());
  for (DotOp dot : dots)
    if (takesAccumulators(ofWarps(dot)) && accumulators.contains(leaderOf(dot.getA()).getAsOpaquePointer()))
      join(dot.getA(), dot.getResult());
  for (DotOp dot : dots) byClass[leaderOf(dot.getResult()).getAsOpaquePointer()].push_back(dot);

  for (auto& [leader, members] : byClass) {
    // First operands made from accumulators of this very class, from indices alone, or widened, in a format whose
    // fragment is the accumulator's.
    auto chainedBy = [&, leader = leader](EngineOf engineOf) {
      SmallVector<DotOp> chained;
      for (DotOp dot : members) {
        const EngineRow& row = engineRow(engineOf(dot));
        const bool isOfClass = leaderOf(dot.getA()).getAsOpaquePointer() == leader && isMadeOfProducts(dot.getA()) &&
                               !(row.isWgmma && isKeptForLoop(dot));
        const bool isMade = isOfClass || isRemade(dot.getA()) ||
                            (row.isWgmma && row.operandBits == 16 && choices[dot.getOperation()].widensA);
        if (takesAccumulators(engineOf(dot)) && isMade) chained.push_back(dot);
      }
      return chained;
    };
    auto keep = [&](Grid grid, EngineOf engineOf, ArrayRef<DotOp> chained) {
      for (DotOp dot : chained) keepsA_.insert(dot);
      for (DotOp dot : members) {
        grid_[dot.getOperation()] = grid;
        engine_[dot.getOperation()] = engineOf(dot);
      }
    };
    // All of them the same way round, because tiles that meet have one layout: transposed where all ask for it and that
    // wastes little, else as they are: what lies across turns.
    auto placeOnWarpgroups = [&](bool transposed, bool unasked = false) {
      if (!llvm::all_of(members, [&](DotOp dot) {
            const EngineChoice& choice = choices[dot.getOperation()];
            if (!choice.warpgroups) return false;
            return unasked ? mayTurn(dot, choice) : choice.transposed || !transposed;
          }))
        return false;
      SmallVector<DotOp> chained = chainedBy(ofWarpgroups);
      if (unasked && !chained.empty()) return false;
      // Units are those of b's columns: the rows of a, which are columns then, stay together.
      const bool isWhole = unasked || !chained.empty();
      auto grid = warpgroupGrid(members, numWarps, isWhole, transposed, ofWarpgroups, unitOf);
      if (!grid && !chained.empty()) {
        chained.clear();
        grid = warpgroupGrid(members, numWarps, false, transposed, ofWarpgroups, unitOf);
      }
      if (!grid && !transposed) grid = warpgroupGrid(members, numWarps, false, transposed, ofWarpgroups, narrowUnitOf);
      if (!grid) return false;
      keep(transposed ? Grid{grid->n, grid->m} : *grid, ofWarpgroups, chained);
      if (transposed)
        for (DotOp dot : members) transposed_.insert(dot);
      return true;
    };
    auto placeTurned = [&] { return placeOnWarpgroups(/*transposed=*/true, /*unasked=*/true); };
    // Rows that instructions do not divide would be padded, and operands with padding copied by threads. (H200, 4096:
    // tiles of 80, 96, 160 and 176 x 128 or 256 1.65, 1.42, 1.5 and 1.2 times as fast turned, of 48 x 128 0.96.)
    const bool pads = llvm::any_of(members, [](DotOp dot) { return rowsOf(dot) > 64 && rowsOf(dot) % 64 != 0; });
    if (placeOnWarpgroups(true) || (pads && placeTurned()) || placeOnWarpgroups(false) || placeTurned()) continue;
    SmallVector<DotOp> chained = chainedBy(ofWarps);
    bool rowsForAll = llvm::all_of(
        members, [&](DotOp dot) { return engineRow(ofWarps(dot)).isMma && (rowsOf(dot) + 15) / 16 >= numWarps; });
    if (!chained.empty() && rowsForAll)
      keep({numWarps, 1}, ofWarps, chained);
    else
      keep(squarest(members, numWarps, ofWarps), ofWarps, {});
  }
}

int planWarps(func::FuncOp func) {
  int64_t largest = 0;
  func.walk([&](DotOp dot) { largest = std::max(largest, rowsOf(dot) * colsOf(dot)); });
  return largest > 128 * 128 ? 8 : 4;
}

int64_t largestTile(func::FuncOp func) {
  int64_t largest = 0;
  func.walk([&](Operation* op) {
    for (Value result : op->getResults())
      if (isTile(result)) largest = std::max(largest, tileType(result).getNumElements());
  });
  return largest;
}

bool anyInInnermostLoop(func::FuncOp func, function_ref<bool(Operation*)> is) {
  return func
      .walk([&](LoopLikeOpInterface loop) {
        bool found = false, hasInner = false;
        loop->walk([&](Operation* op) {
          found |= is(op);
          hasInner |= op != loop.getOperation() && isa<LoopLikeOpInterface>(op);
        });
        return found && !hasInner ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool sharesAsAsked(func::FuncOp func) { return func->hasAttr("tile.programs"); }

bool productsFitOneWarp(func::FuncOp func) {
  constexpr int64_t kSide = 32, kMostElements = kSide * kSide;  // 32 of a lane
  constexpr int kMostRegisters = 96;  // with more, fewer programs than warps of four would be
  bool meets = false, fits = true;
  func.walk([&](BatchDotOp) { fits = false; });
  func.walk([&](DotOp dot) {
    auto loop = dot->getParentOfType<LoopLikeOpInterface>();
    fits &= loop && rowsOf(dot) <= kSide && colsOf(dot) <= kSide;
    if (!fits) return;
    loop->walk([&](Operation* op) {
      meets |= isa<ReduceOp>(op);
      fits &= !isa<LoadOp, GatherOp>(op);  // other warps would load meanwhile
    });
  });
  return fits && meets && !sharesAsAsked(func) && largestTile(func) <= kMostElements &&
         estimateRegisters(func, /*numWarps=*/1, /*atLeast=*/true).registers <= kMostRegisters;
}

int planWarpsOfFew(func::FuncOp func, int ofMany) {
  constexpr int64_t kLeastRows = 64, kLeastElements = 64 * 32;
  if (ofMany != 4 || sharesAsAsked(func)) return ofMany;
  const bool isDivided = func.walk([](DotOp dot) {
    const int64_t rows = rowsOf(dot), columns = colsOf(dot);
    const bool isLarge = std::max(rows, columns) >= kLeastRows && rows * columns >= kLeastElements;
    return isLarge ? WalkResult::interrupt() : WalkResult::advance();
  }).wasInterrupted();
  return isDivided ? 2 * ofMany : ofMany;
}

/// Elements that a thread reads or writes at a time at most, of a tile that the op moves; nullopt: it moves none.
static std::optional<int64_t> widthOf(Operation* op, const Facts& facts, Value& moved) {
  auto ofOffsets = [&](Value ptr, Value offsets, Value mask) {
    const AccessWidth width = offsetWidth(facts, ptr, offsets, mask, elementBytes(moved.getType()));
    return std::min(width.aligned, width.masked);
  };
  auto ofBox = [&](auto box) {
    const AccessWidth width =
        boxWidth(facts, box.getView(), box.getIndices(), tileType(moved).getShape(), elementBytes(moved.getType()));
    return std::min(width.aligned, width.masked);
  };
  if (isa<LoadOp, GatherOp>(op)) moved = op->getResult(0);
  if (auto store = dyn_cast<StoreOp>(op)) moved = store.getValue();
  if (auto scatter = dyn_cast<ScatterOp>(op)) moved = scatter.getValue();
  if (!moved || !isTile(moved)) return std::nullopt;
  if (auto gather = dyn_cast<GatherOp>(op)) return ofOffsets(gather.getPtr(), gather.getOffsets(), gather.getMask());
  if (auto scatter = dyn_cast<ScatterOp>(op))
    return ofOffsets(scatter.getPtr(), scatter.getOffsets(), scatter.getMask());
  if (auto load = dyn_cast<LoadOp>(op)) return ofBox(load);
  return ofBox(cast<StoreOp>(op));
}

/// A straight line of work on tiles that a warp reads and writes with one access of each lane. A multiprocessor holds
/// more programs of one warp than of four, which together have as much or more on its way, for a fourth of the
/// instructions. (Elements of which each is read by itself are as many accesses either way.)
static bool isForOneWarp(func::FuncOp func, const Target& target) {
  constexpr int64_t kWidest = 16, kMostElements = 8;  // bytes of an access; of a lane
  const Facts facts(func);
  int64_t accessed = 0, largest = 0;
  const WalkResult walked = func.walk([&](Operation* op) {
    if (isa<LoopLikeOpInterface, MmaOp, BatchMmaOp>(op)) return WalkResult::interrupt();
    for (Value result : op->getResults())
      if (isTile(result)) largest = std::max(largest, tileType(result).getNumElements());
    Value moved;
    const auto width = widthOf(op, facts, moved);
    if (!width) return WalkResult::advance();
    const int64_t elements = tileType(moved).getNumElements();
    accessed = std::max(accessed, elements);
    const bool isOne =
        elements <= *width * target.lanes && elements * elementBytes(moved.getType()) <= kWidest * target.lanes;
    return isOne ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted() && largest <= accessed && largest <= kMostElements * target.lanes;
}

int defaultWarps(func::FuncOp func, const Target& target) {
  const int64_t largest = largestTile(func);
  // Registers of a thread that tiles take. Eight warps have as many each as four, and fewer of them in use leave room
  // for more programs; sixteen have half as many: only where eight would spill.
  constexpr int kMostOfFour = 120, kMostOfEight = 216;
  constexpr int kFewElements = 8;  // of the largest tile: what a thread holds besides does not become less
  int warps = largest > 2 * target.lanes ? 4 : 1;  // several would wait for each other, for an element each
  if (isForOneWarp(func, target)) warps = 1;
  while ((warps == 4 || warps == 8) && int64_t{kFewElements} * warps * target.lanes < largest &&
         2 * warps * target.lanes <= target.maxThreads &&
         estimateRegisters(func, warps, /*atLeast=*/true).registers > (warps == 4 ? kMostOfFour : kMostOfEight))
    warps *= 2;
  return warps;
}

/// Whether threads combine what they have in every step of an innermost loop (a recurrence whose steps sum): the more
/// warps, the longer each waits for the others.
static bool meetsInSteps(func::FuncOp func) {
  return anyInInnermostLoop(func, [](Operation* op) { return isa<ReduceOp, ScanOp>(op); });
}

int warpsOfFew(func::FuncOp func, int ofMany, const Target& target) {
  constexpr int kLeastElements = 4, kMostWarps = 16;
  if (sharesAsAsked(func) || meetsInSteps(func)) return ofMany;
  const int64_t largest = largestTile(func);
  int warps = ofMany;
  while (warps >= 4 && 2 * warps <= kMostWarps && int64_t{kLeastElements} * 2 * warps * target.lanes <= largest &&
         2 * warps * target.lanes <= target.maxThreads)
    warps *= 2;
  return warps;
}

}  // namespace tile::ir
