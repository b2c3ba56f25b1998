// across.cpp - tile.reduce and tile.scan. Along the innermost dim a reduction keeps a vector of partial results and
// folds it at the end, the vectors of many rows together, and a scan combines the lanes of a vector; along any other
// dim each lane of a vector is a column of its own.
#include "compiler/host/nest.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

using Values = SmallVector<llvm::Value*>;

/// A reduction or scan while it is emitted: evaluation of all operands, and the combiner with its first error kept.
class Across {
 public:
  Across(Emitter& e, ValueRange sources, ResultRange results, Region& combiner, int64_t axis)
      : e_(e), nest_(e, shapeOf(sources[0])), sources_(sources), results_(results), combiner_(combiner) {
    nest_.keepApart(static_cast<int>(axis));
    nest_.makeTilesOf(combiner.getParentOp());
    for (Value v : sources) nest_.uses(v);
    made_ = e.plan.tilesMadeIn(combiner.getParentOp());
    for (Value v : made_) nest_.uses(v);
    for (Value v : results) {
      Ref ref;
      if (e.plan.owns(v)) {
        ref = *e.plan.place(v);
        if (shapeOf(v)[axis] == 1) ref.strides[axis] = 0;
        nest_.uses(ref);
      }
      targets_.push_back(ref);
    }
    nest_.dims();
    axis_ = nest_.dimOf(static_cast<int>(axis));
    length_ = shapeOf(sources[0])[axis];
    for (Value v : sources) {
      bytes_ = std::max(bytes_, Numbers::bytes(elementOf(v)));
      cost_ += e.plan.cost(v);
    }
    cost_ += e.plan.costOfMadeIn(combiner.getParentOp());
  }

  bool isInner() { return axis_ == static_cast<int>(nest_.sizes().size()) - 1; }

  /// Operands at position `i` of the axis.
  Values at(llvm::Value* i, unsigned width) {
    nest_.enter();
    nest_.setIndex(axis_, i);
    Values v;
    for (Value source : sources_) {
      llvm::Value* x = ok_ ? nest_.eval(source, width) : nullptr;
      if (!x) {
        ok_ = false;
        Type t = elementOf(source);
        llvm::Type* reg = e_.numbers.inRegister(t);
        x = llvm::PoisonValue::get(width > 1 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(reg, width)) : reg);
      }
      v.push_back(x);
    }
    // Behind what the sources read: a state is summed up before it changes.
    for (Value tile : made_) ok_ = ok_ && nest_.eval(tile, width);
    return v;
  }

  Values combine(ArrayRef<llvm::Value*> sum, ArrayRef<llvm::Value*> next) {
    Values args(sum);
    args.append(next.begin(), next.end());
    if (ok_) {
      auto r = e_.combine(combiner_, args);
      if (succeeded(r)) return *r;
      ok_ = false;
    }
    return Values(sum);
  }

  void store(ArrayRef<llvm::Value*> values) {
    for (auto [value, result, target] : llvm::zip(values, results_, targets_))
      if (target.buffer >= 0) e_.numbers.store(elementOf(result), value, nest_.address(target, elementOf(result)));
  }

  void reduceRow() {
    nest_.hoistAll();
    const unsigned width = rowWidth();
    int64_t main = length_ / width * width;
    Values sum = fold(partials(width, main), width, 1);
    sum = e_.loopCarrying(main, length_, 1, sum,
                          [&](llvm::Value* i, ArrayRef<llvm::Value*> sum) { return combine(sum, at(i, 1)); });
    nest_.enter();
    store(sum);
  }

  /// Rows in groups: each leaves a vector of partial results in memory, then the vectors of a group are folded against
  /// each other, two at a time, until one vector holds the result of every row. False where rows are too few, or have
  /// no whole vectors, or their results do not lie side by side.
  bool reduceRowGroups(LogicalResult& walked) {
    const int rows = axis_ - 1;
    if (rows < 0) return false;
    const unsigned group = e_.vectorWidth(bytes_, nest_.sizes()[rows], 1), width = rowWidth();
    const unsigned kept = std::min(width, group);
    const int64_t whole = nest_.sizes()[rows] / group * group;
    if (whole == 0 || kept < 2 || group < 2 || length_ % width != 0) return false;
    for (Value v : sources_)
      if (e_.numbers.inRegister(elementOf(v))->isIntegerTy(1)) return false;  // vectors of bits do not lie side by side
    for (const Ref& target : targets_)
      if (target.buffer >= 0 && nest_.stride(target, rows) != 1) return false;
    SmallVector<llvm::Value*> rooms;
    walked = nest_.outer(
        [&] {
          e_.loop(e_.i64(0), e_.i64(whole), group, [&](llvm::Value* first) {
            e_.loop(e_.i64(0), e_.i64(group), 1, [&](llvm::Value* row) {
              nest_.enterRow();
              nest_.setIndex(rows, e_.b.CreateAdd(first, row));
              nest_.hoistAll();
              Values partial = fold(partials(width, length_), width, kept);
              if (rooms.empty())
                for (llvm::Value* v : partial) rooms.push_back(room(v->getType(), group));
              for (auto [v, to] : llvm::zip(partial, rooms))
                e_.b.CreateStore(v, e_.b.CreateGEP(v->getType(), to, row));
            });
            nest_.enterRow();
            nest_.setIndex(rows, first);
            store(foldGroup(rooms, group, kept));
          });
          e_.loop(e_.i64(whole), e_.i64(nest_.sizes()[rows]), 1, [&](llvm::Value* row) {
            nest_.enterRow();
            nest_.setIndex(rows, row);
            reduceRow();
          });
          return success(ok_);
        },
        rows);
    return true;
  }

  void reduceColumns(unsigned width) {
    nest_.enter();
    nest_.hoistAcross(axis_, width);
    Values sum = e_.loopCarrying(1, length_, 1, at(e_.i64(0), width), [&](llvm::Value* i, ArrayRef<llvm::Value*> sum) {
      return combine(sum, at(i, width));
    });
    nest_.forget();
    nest_.enter();
    store(sum);
  }

  void scan(unsigned width, bool reverse) {
    auto position = [&](llvm::Value* i) { return reverse ? e_.b.CreateSub(e_.i64(length_ - 1), i) : i; };
    Values first = at(position(e_.i64(0)), width);
    store(first);
    e_.loopCarrying(1, length_, 1, first, [&](llvm::Value* i, ArrayRef<llvm::Value*> sum) {
      Values next = combine(sum, at(position(i), width));
      store(next);
      return next;
    });
    nest_.enter();
  }

  /// A row in vectors: sums inside of each by steps of 1, 2, 4, .. lanes, then what all the vectors before come to.
  void scanRow(bool reverse) {
    const unsigned width = e_.vectorWidth(bytes_, length_, 1);
    const bool together =
        llvm::all_of(targets_, [&](const Ref& to) { return to.buffer < 0 || nest_.isContiguous(to); });
    if (width < 4 || !together) return scan(1, reverse);
    nest_.hoistAll();
    const int64_t main = length_ / width * width;
    const unsigned last = reverse ? 0 : width - 1;  // the lane of the whole vector's sum
    auto position = [&](llvm::Value* i, unsigned lanes) {
      return reverse ? e_.b.CreateSub(e_.i64(length_ - lanes), i) : i;
    };
    auto whole = [&](ArrayRef<llvm::Value*> values) {
      Values sums;
      const SmallVector<int> lanes(width, static_cast<int>(last));
      for (llvm::Value* v : values) sums.push_back(e_.b.CreateShuffleVector(v, lanes));
      return sums;
    };
    Values sum = inLanes(at(position(e_.i64(0), width), width), width, reverse);
    store(sum);
    sum = e_.loopCarrying(width, main, width, whole(sum), [&](llvm::Value* i, ArrayRef<llvm::Value*> before) {
      Values next = combine(before, inLanes(at(position(i, width), width), width, reverse));
      store(next);
      return whole(next);
    });
    for (llvm::Value*& v : sum) v = e_.b.CreateExtractElement(v, uint64_t{0});
    e_.loopCarrying(main, length_, 1, sum, [&](llvm::Value* i, ArrayRef<llvm::Value*> sum) {
      Values next = combine(sum, at(position(i, 1), 1));
      store(next);
      return next;
    });
    nest_.enter();
  }

  /// `inner` when the axis is the innermost dim left, else `columns` per vector of columns. `inGroups` for reductions.
  LogicalResult run(llvm::function_ref<void()> inner, llvm::function_ref<void(unsigned)> columns, bool inGroups) {
    LogicalResult walked = success();
    if (isInner() && inGroups && reduceRowGroups(walked)) return success(ok_ && succeeded(walked));
    if (isInner()) {
      walked = nest_.outer([&] {
        inner();
        return success(ok_);
      });
    } else {
      // Sums of a column wait for each other: cheap ones take turns with others.
      const int most = inGroups && cost_ <= kCheap ? 4 : 2;
      unsigned width = e_.vectorWidth(bytes_, nest_.sizes().back(), vectors(most));
      walked =
          nest_.outer([&] { return nest_.row(width, [&](unsigned w) { return columns(w), success(ok_); }); }, axis_);
    }
    return success(ok_ && succeeded(walked));
  }

 private:
  static constexpr int kCheap = 16;
  static constexpr unsigned kSums = 16;

  /// Vectors at a time: their results stay in registers, of every operand.
  int vectors(int most) const {
    const unsigned room = std::max<unsigned>(1, kSums / static_cast<unsigned>(sources_.size()));
    return std::min(most, static_cast<int>(llvm::bit_floor(room)));
  }
  unsigned rowWidth() { return e_.vectorWidth(bytes_, length_, isLong(cost_) ? 1 : vectors(4)); }

  /// Elements [0, end) of the row as `width` partial results.
  Values partials(unsigned width, int64_t end) {
    return e_.loopCarrying(width, end, width, at(e_.i64(0), width),
                           [&](llvm::Value* i, ArrayRef<llvm::Value*> sum) { return combine(sum, at(i, width)); });
  }
  /// Upper halves onto lower ones, until `kept` lanes are left.
  Values fold(Values sum, unsigned width, unsigned kept) {
    for (unsigned w = width / 2; w >= kept; w /= 2) sum = combine(part(sum, 0, w), part(sum, w, w));
    return sum;
  }

  /// Each lane combined with all lanes before it, or with all behind it.
  Values inLanes(Values v, unsigned width, bool reverse) {
    for (unsigned step = 1; step < width; step *= 2) {
      SmallVector<int> from;
      SmallVector<llvm::Constant*> has;
      for (unsigned lane = 0; lane < width; ++lane) {
        const bool inside = reverse ? lane + step < width : lane >= step;
        from.push_back(static_cast<int>(!inside ? lane : reverse ? lane + step : lane - step));
        has.push_back(e_.b.getInt1(inside));
      }
      Values before;
      for (llvm::Value* x : v) before.push_back(e_.b.CreateShuffleVector(x, from));
      Values sums = combine(before, v);
      for (auto [x, sum] : llvm::zip(v, sums)) x = e_.b.CreateSelect(llvm::ConstantVector::get(has), sum, x);
    }
    return v;
  }

  /// Memory of `count` vectors, for as long as the function runs.
  llvm::Value* room(llvm::Type* type, unsigned count) {
    llvm::IRBuilderBase::InsertPointGuard guard(e_.b);
    llvm::BasicBlock& entry = e_.function->getEntryBlock();
    e_.b.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    llvm::AllocaInst* memory = e_.b.CreateAlloca(type, e_.b.getInt32(count));
    memory->setAlignment(llvm::Align(64));  // of the widest vector it is read by
    return memory;
  }

  /// `group` rows of `kept` lanes each, in memory, to one vector with a lane for each row.
  Values foldGroup(ArrayRef<llvm::Value*> rooms, unsigned group, unsigned kept) {
    // Whole vectors first: several rows side by side.
    const unsigned together = group / kept;
    SmallVector<Values> vectors(kept);
    for (llvm::Value* from : rooms) {
      llvm::Type* element = elementIn(from);
      auto* type = llvm::FixedVectorType::get(element, group);
      auto* row = llvm::FixedVectorType::get(element, kept);
      for (unsigned i = 0; i < kept; ++i)
        vectors[i].push_back(e_.b.CreateLoad(type, e_.b.CreateConstGEP1_32(row, from, i * together)));
    }
    for (unsigned lanes = kept; lanes > 1; lanes /= 2) {
      SmallVector<Values> halves;
      for (size_t i = 0; i < vectors.size(); i += 2)
        halves.push_back(combine(lanesOf(vectors[i], vectors[i + 1], 0), lanesOf(vectors[i], vectors[i + 1], 1)));
      vectors = std::move(halves);
    }
    return vectors[0];
  }
  static llvm::Type* elementIn(llvm::Value* room) {
    return llvm::cast<llvm::AllocaInst>(room)->getAllocatedType()->getScalarType();
  }
  /// Lanes `first`, first + 2, ... of a and, behind them, of b.
  Values lanesOf(ArrayRef<llvm::Value*> a, ArrayRef<llvm::Value*> b, int first) {
    Values out;
    for (auto [x, y] : llvm::zip(a, b)) {
      const auto n = static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
      SmallVector<int> lanes;
      for (int i = first; i < 2 * n; i += 2) lanes.push_back(i);
      out.push_back(e_.b.CreateShuffleVector(x, y, lanes));
    }
    return out;
  }

  Values part(ArrayRef<llvm::Value*> values, unsigned from, unsigned count) {
    Values parts;
    for (llvm::Value* v : values) {
      if (count == 1) {
        parts.push_back(e_.b.CreateExtractElement(v, from));
        continue;
      }
      SmallVector<int> lanes;
      for (unsigned i = 0; i < count; ++i) lanes.push_back(static_cast<int>(from + i));
      parts.push_back(e_.b.CreateShuffleVector(v, lanes));
    }
    return parts;
  }

  Emitter& e_;
  Nest nest_;
  ValueRange sources_;
  ResultRange results_;
  Region& combiner_;
  SmallVector<Ref, 2> targets_;
  SmallVector<Value, 2> made_;  ///< tiles made in these loops
  int axis_ = 0, cost_ = 0;
  int64_t length_ = 0, bytes_ = 1;
  bool ok_ = true;
};

bool nobodyReads(Emitter& e, ResultRange results) {
  return llvm::none_of(results, [&](Value v) { return e.plan.owns(v); });
}

}  // namespace

LogicalResult emitReduce(Emitter& e, ReduceOp op) {
  if (nobodyReads(e, op.getResults())) return success();
  Across across(e, op.getSources(), op.getResults(), op.getCombiner(), op.getAxis());
  return across.run([&] { across.reduceRow(); }, [&](unsigned width) { across.reduceColumns(width); },
                    /*inGroups=*/true);
}

LogicalResult emitScan(Emitter& e, ScanOp op) {
  if (nobodyReads(e, op.getResults())) return success();
  Across across(e, op.getSources(), op.getResults(), op.getCombiner(), op.getAxis());
  return across.run([&] { across.scanRow(op.getReverse()); },
                    [&](unsigned width) { across.scan(width, op.getReverse()); }, /*inGroups=*/false);
}

}  // namespace tile::ir::host
