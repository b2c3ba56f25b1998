// across.cpp - tile.reduce and tile.scan. Along the innermost dim a reduction keeps a vector of partial results and
// folds it at the end; along any other dim, and for scans there, each lane of a vector is a column of its own.
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
    for (Value v : sources) nest_.uses(v);
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
    unsigned width = e_.vectorWidth(bytes_, length_, isLong(cost_) ? 1 : 4);
    int64_t main = length_ / width * width;
    Values sum =
        e_.loopCarrying(width, main, width, at(e_.i64(0), width),
                        [&](llvm::Value* i, ArrayRef<llvm::Value*> sum) { return combine(sum, at(i, width)); });
    for (unsigned w = width / 2; w >= 1; w /= 2) sum = combine(part(sum, 0, w), part(sum, w, w));
    sum = e_.loopCarrying(main, length_, 1, sum,
                          [&](llvm::Value* i, ArrayRef<llvm::Value*> sum) { return combine(sum, at(i, 1)); });
    nest_.enter();
    store(sum);
  }

  void reduceColumns(unsigned width) {
    Values sum = e_.loopCarrying(1, length_, 1, at(e_.i64(0), width), [&](llvm::Value* i, ArrayRef<llvm::Value*> sum) {
      return combine(sum, at(i, width));
    });
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

  /// `inner` when the axis is the innermost dim left, else `columns` per vector of columns.
  LogicalResult run(llvm::function_ref<void()> inner, llvm::function_ref<void(unsigned)> columns) {
    LogicalResult walked = success();
    if (isInner()) {
      walked = nest_.outer([&] {
        inner();
        return success(ok_);
      });
    } else {
      unsigned width = e_.vectorWidth(bytes_, nest_.sizes().back());
      walked =
          nest_.outer([&] { return nest_.row(width, [&](unsigned w) { return columns(w), success(ok_); }); }, axis_);
    }
    return success(ok_ && succeeded(walked));
  }

 private:
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
  return across.run([&] { across.reduceRow(); }, [&](unsigned width) { across.reduceColumns(width); });
}

LogicalResult emitScan(Emitter& e, ScanOp op) {
  if (nobodyReads(e, op.getResults())) return success();
  Across across(e, op.getSources(), op.getResults(), op.getCombiner(), op.getAxis());
  return across.run([&] { across.scan(1, op.getReverse()); },
                    [&](unsigned width) { across.scan(width, op.getReverse()); });
}

}  // namespace tile::ir::host
