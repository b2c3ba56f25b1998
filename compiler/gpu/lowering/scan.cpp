// scan.cpp - inclusive scans: serial in each thread's run of the axis, then between lanes, then between warps and
// repetitions; at the end every element gets what comes before its thread's run. See across.h for the cut of the axis.
// Totals of whole lines (total ops) are what is carried behind the last run.
#include <algorithm>

#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/combine.h"
#include "compiler/gpu/lowering/lowering.h"

namespace tile::ir {
using namespace mlir;
using layout::Coord;
using layout::Digit;
using layout::Layout;

namespace {

// A tuple that may be absent: statically (empty) or by a run-time flag.
struct Maybe {
  Tuple value;
  llvm::Value* present = nullptr;  ///< null: always, when value is not empty
  bool none() const { return value.empty(); }
};

class Scan {
 public:
  Scan(Emitter& e, ScanOp op, const ScanPlan& plan)
      : e(e),
        op_(op),
        plan_(plan),
        axis_(static_cast<int>(op.getAxis())),
        reverse_(op.getReverse()),
        layout_(e.layoutOf(op.getSources()[0])),
        combine_(e, op.getCombiner()) {}

  LogicalResult run() {
    collectLines();
    position_ = e.b.CreateURem(e.b.CreateUDiv(e.lane(), e.i32(plan_.laneStep)), e.i32(plan_.lanes));
    for (Line& line : lines_)
      for (Run& run : line.runs) scanRun(run);
    collectTotals();
    if (plan_.needsShared())
      carriesThroughShared();
    else
      for (Line& line : lines_) carriesInWarp(line);
    for (Line& line : lines_)
      for (Run& run : line.runs) addPrefix(run);

    for (auto [i, result] : llvm::enumerate(op_.getResults())) {
      Regs values(layout_.numRegs(), llvm::PoisonValue::get(e.elementType(result)));
      for (auto [reg, tuple] : done_) values[reg] = tuple[i];
      e.define(result, std::move(values));
    }
    for (auto [i, op] : totals_) defineTotal(op, i);
    return failure(combine_.failed());
  }

 private:
  // The registers of one repetition, in order of coordinate (scan order is backwards when reversed).
  struct Run {
    int64_t start = 0;  ///< axis coordinate of the first, for a thread at its origin
    std::vector<std::pair<int64_t, std::vector<int>>> elements;  ///< (axis coordinate, registers: replicas share)
    std::vector<Tuple> values;
    Tuple total;   ///< after the lane scan: of all lanes up to this one
    Maybe before;  ///< of the lanes before this one
    Maybe carry;   ///< of the warps and repetitions before
  };
  struct Line {
    Coord coord;            ///< register coordinate with the axis at 0
    std::vector<Run> runs;  ///< in scan order
    Tuple total;            ///< of all runs, if any op wants it
  };

  int64_t extent() const { return layout_.shape()[axis_]; }

  // Whether the element `c` above the thread's origin is in the tile; null: always.
  llvm::Value* valid(int64_t c) {
    if (layout_.maxThreadCoord(axis_) + c < extent()) return nullptr;
    if (c >= extent()) return e.b.getFalse();
    return e.b.CreateICmpULT(e.threadCoord(layout_, axis_), e.i32(extent() - c));
  }

  void collectLines() {
    std::map<Coord, std::map<int64_t, std::vector<int>>> byLine;
    for (int reg = 0; reg < layout_.numRegs(); ++reg) {
      if (layout_.isRegPadding(reg)) continue;
      Coord coord = layout_.regCoord(reg);
      int64_t at = coord[axis_];
      coord[axis_] = 0;
      byLine[coord][at].push_back(reg);
    }
    int64_t span = plan_.inner * plan_.lanes * plan_.warps;
    for (auto& [coord, elements] : byLine) {
      Line line{coord, {}, {}};
      for (auto& [at, regs] : elements) {
        if (line.runs.empty() || line.runs.back().start != at / span * span) {
          line.runs.emplace_back();
          line.runs.back().start = at / span * span;
        }
        line.runs.back().elements.emplace_back(at, regs);
      }
      if (reverse_) std::reverse(line.runs.begin(), line.runs.end());
      lines_.push_back(std::move(line));
    }
  }

  void collectTotals() {
    for (auto [i, result] : llvm::enumerate(op_.getResults()))
      for (Operation* user : result.getUsers())
        if (auto total = dyn_cast<TotalOp>(user)) totals_.emplace_back(i, total);
  }

  void defineTotal(TotalOp total, size_t result) {
    const Layout& layout = e.layoutOf(total.getResult());
    Regs values(layout.numRegs(), llvm::PoisonValue::get(e.elementType(total.getResult())));
    for (const Line& line : lines_)
      for (int reg = 0; reg < layout.numRegs(); ++reg)
        if (layout.regCoord(reg) == line.coord) values[reg] = line.total[result];
    e.define(total.getResult(), std::move(values));
  }

  // Scan inside the thread, then totals between lanes (Kogge-Stone). In reverse, what comes first may be padding.
  void scanRun(Run& run) {
    size_t n = run.elements.size();
    for (auto& [at, regs] : run.elements) {
      Tuple tuple;
      for (Value operand : op_.getSources()) tuple.push_back(e.regs(operand)[regs[0]]);
      run.values.push_back(std::move(tuple));
    }
    for (size_t i = 1; i < n; ++i) {
      size_t now = reverse_ ? n - 1 - i : i, before = reverse_ ? now + 1 : now - 1;
      Tuple both = combine_(run.values[before], run.values[now]);
      llvm::Value* isValid = reverse_ ? valid(run.elements[before].first) : nullptr;
      run.values[now] = isValid ? combine_.select(isValid, both, run.values[now]) : both;
    }
    run.total = run.values[reverse_ ? 0 : n - 1];
    for (int distance = 1; distance < plan_.lanes; distance *= 2) {
      Tuple other = fromLaneBefore(run.total, distance);
      run.total = combine_.select(hasLaneBefore(run, distance), combine_(other, run.total), run.total);
    }
    if (plan_.lanes > 1) run.before = {fromLaneBefore(run.total, 1), hasLaneBefore(run, 1)};
  }

  Tuple fromLaneBefore(const Tuple& tuple, int distance) {
    int step = distance * plan_.laneStep;
    return combine_.map(tuple,
                        [&](llvm::Value* v) { return reverse_ ? e.shuffleDown(v, step) : e.shuffleUp(v, step); });
  }

  llvm::Value* hasLaneBefore(const Run& run, int distance) {
    if (!reverse_) return e.b.CreateICmpUGE(position_, e.i32(distance));
    llvm::Value* exists = e.b.CreateICmpULT(position_, e.i32(plan_.lanes - distance));
    return e.andAll({exists, valid(run.start + distance * plan_.inner)});
  }

  Maybe combined(const Maybe& acc, const Maybe& next) {
    if (acc.none()) return next;
    if (next.none()) return acc;
    Tuple both = combine_(acc.value, next.value);
    if (next.present) both = combine_.select(next.present, both, acc.value);
    if (!acc.present) return {both, nullptr};
    Tuple value = combine_.select(acc.present, both, next.value);
    return {value, next.present ? e.b.CreateOr(acc.present, next.present) : nullptr};
  }

  // One warp owns the axis: the total of a repetition is the last lane's.
  void carriesInWarp(Line& line) {
    Maybe carry;
    for (Run& run : line.runs) {
      run.carry = carry;
      if (&run == &line.runs.back() && totals_.empty()) break;
      Tuple total = run.total;
      if (plan_.lanes > 1) {
        int last = reverse_ ? 0 : plan_.lanes - 1;
        llvm::Value* away = e.b.CreateSub(e.i32(last), position_);
        llvm::Value* lane = e.b.CreateAdd(e.lane(), e.b.CreateMul(away, e.i32(plan_.laneStep)));
        total = combine_.map(total, [&](llvm::Value* v) { return e.shuffleIdx(v, lane); });
      }
      // A repetition of padding only has no registers here; its first lane decides whether anything is in the tile.
      carry = combined(carry, {total, nullptr});
    }
    line.total = carry.value;
  }

  // Totals of every (repetition, warp) go to a table; every thread sums up those before its own.
  void carriesThroughShared() {
    int64_t reps = plan_.outer, parts = reps * plan_.warps, span = plan_.inner * plan_.lanes * plan_.warps;
    PartsTable table = partsTable(layout_, axis_, parts, op_.getSources());
    llvm::Value* base = e.scratch(op_);
    llvm::Value* warp = e.b.CreateURem(e.b.CreateUDiv(e.warp(), e.i32(plan_.warpStep)), e.i32(plan_.warps));
    llvm::Value* entry = e.i32(0);
    for (int dim = 0; dim < layout_.rank(); ++dim) {
      if (dim == axis_ || layout_.maxThreadCoord(dim) == 0) continue;
      entry = e.b.CreateAdd(entry, e.b.CreateMul(e.threadCoord(layout_, dim), e.i32(table.strides[dim])));
    }
    auto place = [&](size_t operand, const Line& line, llvm::Value* at, int64_t part) {
      int64_t bytes = memoryBytes(e.elementType(op_.getSources()[operand])), constant = part;
      for (size_t dim = 0; dim < line.coord.size(); ++dim) constant += line.coord[dim] * table.strides[dim];
      return e.b.CreatePtrAdd(e.b.CreatePtrAdd(base, e.b.CreateMul(at, e.i32(bytes))),
                              e.i32(table.operandOffset[operand] + constant * bytes));
    };
    const bool byLanes = sumsUpByLanes(plan_, layout_, axis_);
    llvm::Value* isLast =
        plan_.lanes == 1 ? nullptr : e.b.CreateICmpEQ(position_, e.i32(reverse_ ? 0 : plan_.lanes - 1));
    llvm::Value* own = e.b.CreateAdd(entry, warp);
    for (Line& line : lines_)
      for (Run& run : line.runs)
        for (size_t i = 0; i < run.total.size(); ++i)
          storeVector(e, place(i, line, own, run.start / span * plan_.warps), {run.total[i]}, isLast);
    e.barrier();
    for (Line& line : lines_) {
      if (byLanes) {
        const int count = static_cast<int>(partsOfScan(plan_, layout_, axis_));
        llvm::Value* order = e.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, e.lane(), e.i32(count - 1));
        llvm::Value* part = reverse_ ? e.b.CreateSub(e.i32(count - 1), order) : order;
        Tuple total;
        for (size_t i = 0; i < op_.getSources().size(); ++i)
          total.push_back(loadVector(e, place(i, line, e.b.CreateAdd(entry, part), 0),
                                     e.elementType(op_.getSources()[i]), 1)[0]);
        carriesByLanes(line, std::move(total), count, warp);
        continue;
      }
      Maybe carry;
      for (Run& run : line.runs) {
        for (int step = 0; step < plan_.warps; ++step) {
          int w = reverse_ ? plan_.warps - 1 - step : step;
          llvm::Value* mine = e.b.CreateICmpEQ(warp, e.i32(w));
          if (!carry.none()) {
            llvm::Value* present = run.carry.none() ? mine : e.b.CreateOr(run.carry.present, mine);
            Tuple value = run.carry.none() ? carry.value : combine_.select(mine, carry.value, run.carry.value);
            run.carry = {value, present};
          }
          // Parts of padding only are known here and left out.
          if (run.start + w * plan_.inner * plan_.lanes >= extent()) continue;
          Tuple total;
          for (size_t i = 0; i < run.total.size(); ++i)
            total.push_back(loadVector(e, place(i, line, entry, run.start / span * plan_.warps + w),
                                       e.elementType(op_.getSources()[i]), 1)[0]);
          carry = combined(carry, {total, nullptr});
        }
      }
      line.total = carry.value;
    }
  }

  // Lane p has the total of the part that comes p-th in scan order: a scan over lanes, of which every part wants what
  // is before its own.
  void carriesByLanes(Line& line, Tuple total, int count, llvm::Value* warp) {
    for (int distance = 1; distance < count; distance *= 2) {
      Tuple other = combine_.map(total, [&](llvm::Value* v) { return e.shuffleUp(v, distance); });
      total = combine_.select(e.b.CreateICmpUGE(e.lane(), e.i32(distance)), combine_(other, total), total);
    }
    if (!totals_.empty())
      line.total = combine_.map(total, [&](llvm::Value* v) { return e.shuffleIdx(v, e.i32(count - 1)); });
    const int64_t span = plan_.inner * plan_.lanes * plan_.warps;
    for (Run& run : line.runs) {
      llvm::Value* part = e.b.CreateAdd(warp, e.i32(run.start / span * plan_.warps));
      llvm::Value* order = reverse_ ? e.b.CreateSub(e.i32(count - 1), part) : part;
      llvm::Value* before = e.b.CreateSub(order, e.i32(1));  // of parts of padding anything: nobody reads them
      Tuple carry = combine_.map(total, [&](llvm::Value* v) { return e.shuffleIdx(v, before); });
      run.carry = {carry, e.b.CreateICmpSGT(order, e.i32(0))};
    }
  }

  void addPrefix(Run& run) {
    Maybe prefix = combined(run.carry, run.before);
    for (auto [element, value] : llvm::zip(run.elements, run.values)) {
      Tuple result = value;
      if (!prefix.none()) {
        result = combine_(prefix.value, value);
        if (prefix.present) result = combine_.select(prefix.present, result, value);
      }
      for (int reg : element.second) done_.emplace_back(reg, result);
    }
  }

  Emitter& e;
  ScanOp op_;
  ScanPlan plan_;
  int axis_;
  bool reverse_;
  const Layout& layout_;
  Combiner combine_;
  llvm::Value* position_ = nullptr;  ///< of this lane along the axis
  std::vector<Line> lines_;
  std::vector<std::pair<size_t, TotalOp>> totals_;  ///< by the result they are of
  std::vector<std::pair<int, Tuple>> done_;
};

}  // namespace

LogicalResult emitScan(Emitter& e, ScanOp op) {
  auto plan = planScan(e.layoutOf(op.getSources()[0]), static_cast<int>(op.getAxis()));
  if (!plan) return op.emitOpError() << "cannot be scanned under this layout (a bug of assign_layouts)";
  return Scan(e, op, *plan).run();
}

}  // namespace tile::ir
