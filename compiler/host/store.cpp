// store.cpp - tile.store and tile.accumulate: boxes of views, clipped to the view, rows in vectors, several boxes in
// one loop; large outputs go around the caches.
#include "compiler/dialect/boxes.h"
#include "compiler/host/box.h"
#include "compiler/host/nest.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

/// Outputs of this size outlive no cache: their lines need not be read before they are written.
constexpr int64_t kStreamBytes = 32 << 20;

/// Whether stores to the view may go around the caches: nothing in this kernel reads what they write, and no other
/// program is told by an atomic that it is there (relaxed ones tell nothing; the runtime orders such stores at the end
/// of a launch).
bool mayStream(Value view) {
  auto arg = dyn_cast<BlockArgument>(view);
  if (!arg || !llvm::all_of(arg.getUsers(), [](Operation* op) { return isa<StoreOp, ViewDimOp, ViewStrideOp>(op); }))
    return false;
  auto kernel = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp());
  return kernel && !kernel
                        .walk([](Operation* op) {
                          auto load = dyn_cast<LoadOp>(op);
                          auto gather = dyn_cast<GatherOp>(op);
                          const bool waits = (load && load.getCache() == CacheHint::volatile_) ||
                                             (gather && gather.getCache() == CacheHint::volatile_);
                          auto update = dyn_cast<AtomicRmwOp>(op);
                          const bool tells = isa<AtomicCasOp>(op) || (update && update.getOrder() != MemOrder::relaxed);
                          return waits || tells ? WalkResult::interrupt() : WalkResult::advance();
                        })
                        .wasInterrupted();
}

/// i1: the view is large.
llvm::Value* isLarge(Emitter& e, const View& view, Type element) {
  llvm::Value* elements = e.i64(1);
  for (llvm::Value* dim : view.dims) elements = e.b.CreateMul(elements, dim);
  return e.b.CreateICmpSGE(elements, e.i64(kStreamBytes / Numbers::bytes(element)));
}

/// `w` elements to row[j ...], one by one where the row's stride is not 1.
void storeVector(Emitter& e, Type element, llvm::Value* v, llvm::Value* row, llvm::Value* j, unsigned w,
                 llvm::Value* stride, llvm::Value* unit, bool isVolatile) {
  auto& b = e.b;
  e.ifThen(
      unit, [&] { e.numbers.store(element, v, e.offsetBy(row, element, j), isVolatile); },
      [&] {
        llvm::Value* bits = e.numbers.toMemory(element, v);
        for (unsigned lane = 0; lane < w; ++lane) {
          llvm::Value* at = b.CreateMul(b.CreateAdd(j, e.i64(lane)), stride);
          b.CreateAlignedStore(b.CreateExtractElement(bits, lane), e.offsetBy(row, element, at),
                               llvm::Align(Numbers::bytes(element)), isVolatile);
        }
      });
}

/// A store, and where its box lies; the nest of its loops has the box's dims.
struct Target {
  StoreOp op;
  View view;
  Box box;
  Type element() { return op.getView().getType().getElementType(); }
  bool isVolatile() { return op.getCache() == CacheHint::volatile_; }
};

/// Vectors of a row that are stored around the caches.
struct Around {
  llvm::Value *large, *unit;  ///< i1: the output is large; its rows lie together
  llvm::Align whole;
};

unsigned widthOf(Emitter& e, Target& target, Nest& nest) {
  const Value value = target.op.getValue();
  // Values that are no wider than in memory while they are computed fill vectors.
  const int64_t widest = std::max(nest.widestElement(value), Numbers::bytes(target.element()));
  const int narrow = static_cast<int>(std::max<int64_t>(1, 4 / widest));
  return e.vectorWidth(widest, target.box.shape.back(), isLong(e.plan.cost(value)) ? narrow : 2 * narrow);
}

Around aroundOf(Emitter& e, Target& target, unsigned width) {
  auto& b = e.b;
  // Stores around the caches are of whole aligned vectors.
  const int64_t bytes = width * Numbers::bytes(target.element());
  // Pieces of lines are better put together in a cache.
  constexpr int64_t kLine = 64;
  const bool hasLines = target.box.shape.back() * Numbers::bytes(target.element()) >= kLine;
  const bool inVectors = bytes % 16 == 0 && llvm::isPowerOf2_64(bytes);
  llvm::Value* unit = b.CreateICmpEQ(target.box.stride.back(), e.i64(1));
  const bool may = !target.isVolatile() && inVectors && hasLines && mayStream(target.op.getView());
  llvm::Value* large = may ? b.CreateAnd(unit, isLarge(e, target.view, target.element())) : b.getFalse();
  return {large, unit, llvm::Align(std::min<int64_t>(bytes, e.target.vectorBytes))};
}

/// The rows of stored boxes, each being that of its op or what its dims are together; the nest has the same dims. Of
/// several, the first one's bounds are those of all; every vector of them is computed before any is stored.
LogicalResult storeRows(Emitter& e, MutableArrayRef<Target> targets, Nest& nest) {
  auto& b = e.b;
  const Box& box = targets[0].box;
  const int last = static_cast<int>(box.shape.size()) - 1;
  unsigned width = ~0u;
  for (Target& target : targets) width = std::min(width, widthOf(e, target, nest));
  SmallVector<Around, 1> arounds;
  for (Target& target : targets) arounds.push_back(aroundOf(e, target, width));
  bool ok = true;
  clippedRows(e, box, [&](ArrayRef<llvm::Value*> index) {
    for (auto [d, i] : llvm::enumerate(index)) nest.setIndex(static_cast<int>(d), i);
    nest.enterRow();
    nest.hoistAll();
    SmallVector<llvm::Value*, 1> rows, streams;
    for (auto [target, around] : llvm::zip(targets, arounds)) {
      rows.push_back(e.offsetBy(target.box.origin, target.element(), rowOffset(e, target.box, index)));
      streams.push_back(around.large);
      if (isa<llvm::Constant>(around.large)) continue;
      llvm::Value* start = b.CreatePtrToInt(e.offsetBy(rows.back(), target.element(), box.low.back()), b.getInt64Ty());
      llvm::Value* off = b.CreateAnd(start, e.i64(static_cast<int64_t>(around.whole.value()) - 1));
      streams.back() = b.CreateAnd(around.large, b.CreateICmpEQ(off, e.i64(0)));
    }
    e.inVectors(box.low.back(), box.high.back(), width, [&](llvm::Value* j, unsigned w) {
      nest.enter();
      nest.setIndex(last, j);
      SmallVector<llvm::Value*, 1> values;
      for (Target& target : targets) {
        values.push_back(ok ? nest.eval(target.op.getValue(), w) : nullptr);
        ok &= values.back() != nullptr;
      }
      if (!ok) return;
      for (size_t i = 0; i < targets.size(); ++i) {
        const Type element = targets[i].element();
        const bool isVolatile = targets[i].isVolatile();
        llvm::Value *v = values[i], *row = rows[i], *stride = targets[i].box.stride.back();
        if (w == width && w > 1 && !isa<llvm::Constant>(streams[i])) {
          e.ifThen(
              streams[i],
              [&] {
                auto* store =
                    b.CreateAlignedStore(e.numbers.toMemory(element, v), e.offsetBy(row, element, j), arounds[i].whole);
                auto* one = llvm::ConstantAsMetadata::get(b.getInt32(1));
                store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b.getContext(), {one}));
              },
              [&] { storeVector(e, element, v, row, j, w, stride, arounds[i].unit, isVolatile); });
        } else if (w == 1) {
          e.numbers.store(element, v, e.offsetBy(row, element, b.CreateMul(j, stride)), isVolatile);
        } else {
          storeVector(e, element, v, row, j, w, stride, arounds[i].unit, isVolatile);
        }
      }
    });
  });
  return success(ok);
}

LogicalResult storeBox(Emitter& e, StoreOp op, const View& view, const Box& box) {
  auto nestWith = [&](size_t apart) {
    Nest nest(e, box.shape);
    for (size_t d = 0; d < apart; ++d) nest.keepApart(static_cast<int>(d));
    nest.uses(op.getValue());
    nest.dims();
    return nest;
  };
  bool ok = true;
  auto apart = [&] {
    Nest nest = nestWith(box.shape.size());
    Target target{op, view, box};
    ok &= succeeded(storeRows(e, target, nest));
  };
  const size_t first = box.rowsFrom();
  Nest rows = nestWith(first);
  if (first + 1 == box.shape.size() || rows.sizes().size() != first + 1) return apart(), success(ok);
  e.ifThen(
      box.isTogether(e, first),
      [&] {
        Target target{op, view, box.together(e, first)};
        ok &= succeeded(storeRows(e, target, rows));
      },
      apart);
  return success(ok);
}

Box boxOf(Emitter& e, StoreOp op) {
  Box box(e, op.getView(), op.getIndices(), op.getValue().getType());
  if (op->hasAttr(kInsideAttr)) box.isInside(e);
  return box;
}

/// Boxes of one shape in one loop where all are inside of their views, else one after the other.
LogicalResult storeTogether(Emitter& e, ArrayRef<Operation*> ops) {
  SmallVector<Target, 4> targets;
  llvm::Value* whole = e.b.getTrue();
  for (Operation* op : ops) {
    auto store = cast<StoreOp>(op);
    targets.push_back({store, e.view(store.getView()), boxOf(e, store)});
    whole = e.b.CreateAnd(whole, targets.back().box.whole);
  }
  bool ok = true;
  e.ifThen(
      whole,
      [&] {
        Nest nest(e, targets[0].box.shape);
        nest.keepAllApart();
        SmallVector<Target, 4> inside(targets);
        for (Target& target : inside) nest.uses(target.op.getValue()), target.box.isInside(e);
        nest.dims();
        ok &= succeeded(storeRows(e, inside, nest));
      },
      [&] {
        for (Target& target : targets) ok &= succeeded(storeBox(e, target.op, target.view, target.box));
      });
  return success(ok);
}

/// The store of a tile in memory as one call.
LogicalResult callStore(Emitter& e, StoreOp op, const Ref& from) {
  const BoxWords box(e, op.getView(), op.getIndices());
  std::string name;
  llvm::raw_string_ostream out(name);
  out << "call_store_" << op.getValue().getType() << (op.getCache() == CacheHint::volatile_ ? "_volatile" : "")
      << (mayStream(op.getView()) ? "_stream" : "") << box.name() << "_of_" << op.getIndices().size() << "_from"
      << from.offset;
  for (int64_t stride : from.strides) out << "_" << stride;
  llvm::Value* pitch = e.pitchOf(from);
  SmallVector<llvm::Value*> arguments(box.words());
  arguments.push_back(e.arenaBase(from));
  if (pitch) arguments.push_back(pitch), out << "_apart";
  bool ok = true;
  e.callShared(name, arguments, [&](ArrayRef<llvm::Value*> p) {
    llvm::Value* inside = pitch ? p.back() : nullptr;
    if (pitch) p = p.drop_back();
    const auto [view, indices] = box.inside(p);
    const Box there(e, view, indices, op.getView().getType().getElementType(), op.getValue().getType());
    e.whileReadAt(from, p.back(), inside, [&] { ok = succeeded(storeBox(e, op, view, there)); });
  });
  return success(ok);
}

}  // namespace

LogicalResult emitStore(Emitter& e, StoreOp op) {
  const Ref* place = isTile(op.getValue()) ? e.plan.place(op.getValue()) : nullptr;
  if (e.isLongBody() && place) return callStore(e, op, *place);
  if (const auto together = e.plan.storedTogether(op); !together.empty() && !e.isLongBody())
    return together[0] == op ? storeTogether(e, together) : success();
  const Box box = boxOf(e, op);
  if (!box.shape.empty()) return storeBox(e, op, e.view(op.getView()), box);
  Type element = op.getView().getType().getElementType();
  const bool isVolatile = op.getCache() == CacheHint::volatile_;
  e.ifThen(box.whole, [&] { e.numbers.store(element, e.scalar(op.getValue()), box.origin, isVolatile); });
  return success();
}

LogicalResult emitAccumulate(Emitter& e, AccumulateOp op) {
  Type element = op.getView().getType().getElementType();
  Box box(e, op.getView(), op.getIndices(), op.getValue().getType());
  auto add = [&](llvm::Value* address, llvm::Value* value) {
    atomicUpdate(e, RmwKind::add, MemOrder::relaxed, element, address, value);
  };
  if (box.shape.empty()) {
    e.ifThen(box.whole, [&] { add(box.origin, e.scalar(op.getValue())); });
    return success();
  }
  Nest nest(e, box.shape);
  nest.keepAllApart();
  nest.uses(op.getValue());
  nest.dims();
  const int last = static_cast<int>(box.shape.size()) - 1;
  bool ok = true;
  clippedRows(e, box, [&](ArrayRef<llvm::Value*> index) {
    for (auto [d, i] : llvm::enumerate(index)) nest.setIndex(static_cast<int>(d), i);
    nest.enterRow();
    nest.hoistAll();
    llvm::Value* row = e.offsetBy(box.origin, element, rowOffset(e, box, index));
    e.loop(box.low.back(), box.high.back(), 1, [&](llvm::Value* j) {
      nest.enter();
      nest.setIndex(last, j);
      llvm::Value* v = ok ? nest.eval(op.getValue(), 1) : nullptr;
      if (!v) return void(ok = false);
      add(e.offsetBy(row, element, e.b.CreateMul(j, box.stride[last])), v);
    });
  });
  return success(ok);
}

}  // namespace tile::ir::host
