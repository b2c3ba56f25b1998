// raise_pointers.cpp - pointer tiles become a scalar base and an offset tile.
// Before: gather, scatter and atomics take tiles of pointers built by splat, ptr_add, select and shape operations, and
//         carried through scf.for, scf.while and scf.if.
// After:  no tile of pointers is left. Every access has a scalar base plus an i32 or i64 tile of element offsets.
//
//   1. Walk the blocks in order, giving each pointer tile a pair (base, offsets). The scalar part of an offset goes
//      into the base.
//   2. Rebuild loops and branches that carry pointer tiles so that they carry pairs. A loop that only advances its
//      pointer by scalars carries the base alone; its offsets are constant.
//   3. Where a tile mixes bases element by element (select, cat), offsets count from the first base, in 64 bits.
//   4. Erase what built the tiles of pointers.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/split_offset.h"
#include "compiler/transforms/transforms.h"

namespace tile::ir {
#define GEN_PASS_DEF_RAISEPOINTERS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

bool isPointerTile(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<PtrType>(tensor.getElementType());
}
bool isPointerTile(Value v) { return isPointerTile(v.getType()); }
ArrayRef<int64_t> shapeOf(Value v) { return cast<RankedTensorType>(v.getType()).getShape(); }
PtrType pointerType(Value v) { return cast<PtrType>(getElementTypeOrSelf(v.getType())); }

/// A tile of pointers: base + offsets[i] elements.
struct Raised {
  Value base;
  OffsetTile offsets;
};

class PointerRaiser {
 public:
  explicit PointerRaiser(func::FuncOp func) : facts_(func), builder_(func.getContext()), func_(func) {}

  LogicalResult run() {
    if (failed(raise(func_.getBody().front()))) return failure();
    for (Operation* op : llvm::reverse(dead_)) {
      if (!op->use_empty()) return op->emitError("a tile of pointers is used in a way that has no offset form");
      op->erase();
    }
    for (Operation* op : replaced_) op->erase();  // their arguments were named by what is erased above
    return success();
  }

 private:
  LogicalResult raise(Block& block) {
    for (Operation& op : llvm::make_early_inc_range(block)) {
      builder_.setInsertionPoint(&op);
      if (failed(raise(&op))) return failure();
    }
    return success();
  }

  LogicalResult raise(Operation* op) {
    if (auto loop = dyn_cast<scf::ForOp>(op);
        loop && llvm::any_of(loop.getInitArgs(), [](Value v) { return isPointerTile(v); }))
      return raiseFor(loop);
    if (auto loop = dyn_cast<scf::WhileOp>(op); loop && carriesPointers(loop)) return raiseWhile(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op);
        branch && llvm::any_of(branch.getResultTypes(), [](Type t) { return isPointerTile(t); }))
      return raiseIf(branch);
    if (isa<GatherOp, ScatterOp, AtomicRmwOp, AtomicCasOp>(op)) return raiseAccess(op);
    if (auto item = dyn_cast<ItemOp>(op); item && isPointerTile(item.getSource())) return raiseItem(item);
    for (Region& region : op->getRegions())
      for (Block& block : region)
        if (failed(raise(block))) return failure();
    if (op->getNumResults() == 1 && isPointerTile(op->getResult(0))) return raiseValue(op);
    return success();
  }

  // ---- values

  LogicalResult raiseValue(Operation* op) {
    Value result = op->getResult(0);
    Location loc = op->getLoc();
    auto raisedTile = [&](const Raised& from, auto&& make) {
      Raised r = from;
      if (r.offsets) {
        auto type = RankedTensorType::get(shapeOf(result), getElementTypeOrSelf(from.offsets.tile.getType()));
        r.offsets.tile = make(type, from.offsets.tile);
      }
      return r;
    };
    Raised r;
    if (auto splat = dyn_cast<SplatOp>(op)) {
      r = {splat.getValue(), {}};
    } else if (auto add = dyn_cast<PtrAddOp>(op)) {
      r = raised_.lookup(add.getPtr());
      OffsetSplitter splitter(facts_, builder_, loc);
      SplitOffset offset = splitter.split(add.getOffset());
      if (offset.scalar) r.base = builder_.createOrFold<PtrAddOp>(loc, r.base, offset.scalar);
      r.offsets = splitter.add(r.offsets, offset.rest);
    } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      r = raisedTile(raised_.lookup(broadcast.getSource()),
                     [&](Type t, Value v) { return BroadcastOp::create(builder_, loc, t, v).getResult(); });
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      r = raisedTile(raised_.lookup(reshape.getSource()),
                     [&](Type t, Value v) { return ReshapeOp::create(builder_, loc, t, v).getResult(); });
    } else if (auto trans = dyn_cast<TransOp>(op)) {
      r = raisedTile(raised_.lookup(trans.getSource()), [&](Type t, Value v) {
        return TransOp::create(builder_, loc, t, v, trans.getPermutation()).getResult();
      });
    } else if (auto extract = dyn_cast<ExtractOp>(op)) {
      r = raisedTile(raised_.lookup(extract.getSource()), [&](Type t, Value v) {
        return ExtractOp::create(builder_, loc, t, v, extract.getOffsets()).getResult();
      });
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      r = raiseSelect(select);
    } else if (auto cat = dyn_cast<CatOp>(op)) {
      r = raiseCat(cat);
    } else {
      return op->emitError() << "`" << op->getName() << "` cannot make a tile of pointers";
    }
    if (!r.base) return op->emitError("a tile of pointers comes from an operation that has no offset form");
    raised_[result] = r;
    dead_.push_back(op);
    return success();
  }

  /// Offsets of `r` counted from `base` instead of its own base: exact, because both are aligned to the element.
  Value rebased(const Raised& r, Value base, ArrayRef<int64_t> shape, Location loc) {
    OffsetSplitter splitter(facts_, builder_, loc);
    Value own = splitter.materialize(r.offsets, shape, 64);
    if (r.base == base) return own;
    Type element = cast<PtrType>(base.getType()).getElementType();
    const int64_t bytes = std::max<int64_t>(element.getIntOrFloatBitWidth() / 8, 1);
    Value from = PtrToIntOp::create(builder_, loc, base), to = PtrToIntOp::create(builder_, loc, r.base);
    Value distance = arith::SubIOp::create(builder_, loc, to, from);
    if (bytes > 1)
      distance = arith::ShRSIOp::create(
          builder_, loc, distance,
          arith::ConstantOp::create(builder_, loc, builder_.getI64IntegerAttr(llvm::Log2_64(bytes))));
    Value splat = SplatOp::create(builder_, loc, own.getType(), distance);
    return arith::AddIOp::create(builder_, loc, own, splat);
  }

  /// Two pairs made to agree in what offsets exist and how wide they are.
  std::pair<Value, Value> alike(const Raised& a, const Raised& b, ArrayRef<int64_t> shape, Location loc) {
    auto width = [](const OffsetTile& o) {
      return o ? cast<IntegerType>(getElementTypeOrSelf(o.tile.getType())).getWidth() : 32u;
    };
    const unsigned bits = std::max(width(a.offsets), width(b.offsets));
    OffsetSplitter splitter(facts_, builder_, loc);
    return {splitter.materialize(a.offsets, shape, bits), splitter.materialize(b.offsets, shape, bits)};
  }

  Raised raiseSelect(arith::SelectOp select) {
    Location loc = select.getLoc();
    const Raised a = raised_.lookup(select.getTrueValue()), b = raised_.lookup(select.getFalseValue());
    if (!a.base || !b.base) return {};
    ArrayRef<int64_t> shape = shapeOf(select.getResult());
    const bool perElement = isa<RankedTensorType>(select.getCondition().getType());
    Raised r{a.base, {}};
    if (perElement && a.base != b.base) {
      Value x = rebased(a, a.base, shape, loc), y = rebased(b, a.base, shape, loc);
      r.offsets = {arith::SelectOp::create(builder_, loc, select.getCondition(), x, y), fullRange(64)};
      return r;
    }
    if (a.base != b.base) r.base = arith::SelectOp::create(builder_, loc, select.getCondition(), a.base, b.base);
    if (a.offsets.tile != b.offsets.tile) {
      auto [x, y] = alike(a, b, shape, loc);
      r.offsets = {arith::SelectOp::create(builder_, loc, select.getCondition(), x, y),
                   join(a.offsets.range, b.offsets.range)};
    } else {
      r.offsets = a.offsets;
    }
    return r;
  }

  Raised raiseCat(CatOp cat) {
    Raised first = raised_.lookup(cat.getSources().front());
    SmallVector<Value> pieces;
    for (Value source : cat.getSources()) {
      Raised r = raised_.lookup(source);
      if (!r.base) return {};
      pieces.push_back(rebased(r, first.base, shapeOf(source), cat.getLoc()));
    }
    auto type = RankedTensorType::get(shapeOf(cat.getResult()), builder_.getI64Type());
    return {first.base, {CatOp::create(builder_, cat.getLoc(), type, pieces, cat.getAxis()), fullRange(64)}};
  }

  LogicalResult raiseAccess(Operation* op) {
    auto rewrite = [&](auto access) -> LogicalResult {
      if (!isPointerTile(access.getPtr())) return success();
      Raised r = raised_.lookup(access.getPtr());
      if (!r.base) return op->emitError("a tile of pointers comes from an operation that has no offset form");
      Value offsets =
          OffsetSplitter(facts_, builder_, op->getLoc())
              .materialize(
                  r.offsets, shapeOf(access.getPtr()),
                  r.offsets ? cast<IntegerType>(getElementTypeOrSelf(r.offsets.tile.getType())).getWidth() : 32);
      access.getPtrMutable().assign(r.base);
      access.getOffsetsMutable().assign(offsets);
      return success();
    };
    if (auto access = dyn_cast<GatherOp>(op)) return rewrite(access);
    if (auto access = dyn_cast<ScatterOp>(op)) return rewrite(access);
    if (auto access = dyn_cast<AtomicRmwOp>(op)) return rewrite(access);
    return rewrite(cast<AtomicCasOp>(op));
  }

  LogicalResult raiseItem(ItemOp item) {
    Raised r = raised_.lookup(item.getSource());
    if (!r.base) return item.emitError("a tile of pointers comes from an operation that has no offset form");
    if (r.offsets) {
      Value offset =
          ItemOp::create(builder_, item.getLoc(), getElementTypeOrSelf(r.offsets.tile.getType()), r.offsets.tile);
      r.base = PtrAddOp::create(builder_, item.getLoc(), r.base, offset);
    }
    item.getResult().replaceAllUsesWith(r.base);
    item.erase();
    return success();
  }

  // ---- control flow. A pointer tile travels as (base, i64 offsets), or as the base alone when its offsets stay.

  /// Whether going round leaves the offsets of `arg` as they are, so that only its base moves.
  static bool keepsOffsets(Value yielded, Value arg) {
    if (yielded == arg) return true;
    if (auto add = yielded.getDefiningOp<PtrAddOp>())
      return OffsetSplitter::isUniform(add.getOffset()) && keepsOffsets(add.getPtr(), arg);
    if (auto select = yielded.getDefiningOp<arith::SelectOp>();
        select && !isa<RankedTensorType>(select.getCondition().getType()))
      return keepsOffsets(select.getTrueValue(), arg) && keepsOffsets(select.getFalseValue(), arg);
    if (auto branch = yielded.getDefiningOp<scf::IfOp>(); branch && branch.elseBlock()) {
      unsigned i = cast<OpResult>(yielded).getResultNumber();
      return keepsOffsets(branch.thenYield().getOperand(i), arg) && keepsOffsets(branch.elseYield().getOperand(i), arg);
    }
    return false;
  }

  /// Appends what stands for `v` in a list of carried values.
  void carry(Value v, bool baseOnly, SmallVectorImpl<Value>& into, Location loc) {
    if (!isPointerTile(v)) {
      into.push_back(v);
      return;
    }
    Raised r = raised_.lookup(v);
    into.push_back(r.base);
    if (!baseOnly) into.push_back(OffsetSplitter(facts_, builder_, loc).materialize(r.offsets, shapeOf(v), 64));
  }

  LogicalResult raiseFor(scf::ForOp loop) {
    Location loc = loop.getLoc();
    SmallVector<Value> inits;
    SmallVector<char> baseOnly;
    for (auto [arg, init, yielded] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs(), loop.getYieldedValues())) {
      if (isPointerTile(init) && !raised_.lookup(init).base)
        return loop.emitError("carries a tile of pointers that has no offset form");
      baseOnly.push_back(keepsOffsets(yielded, arg));
      carry(init, baseOnly.back(), inits, loc);
    }
    auto fresh = scf::ForOp::create(builder_, loc, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits,
                                    nullptr, loop.getUnsignedCmp());
    fresh->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    // The old block keeps its arguments while the operations move: pointer operations still name them until erased.
    Block& body = *fresh.getBody();
    if (!body.empty() && body.mightHaveTerminator()) body.getTerminator()->erase();
    body.getOperations().splice(body.end(), loop.getBody()->getOperations());
    loop.getInductionVar().replaceAllUsesWith(fresh.getInductionVar());
    unsigned next = 0, nextResult = 0;
    auto bind = [&](Value old, ValueRange values, unsigned& at, size_t i, const Raised& init) {
      if (!isPointerTile(old)) {
        old.replaceAllUsesWith(values[at++]);
        return;
      }
      Raised r{values[at++], init.offsets};
      if (!baseOnly[i]) r.offsets = {values[at++], fullRange(64)};
      raised_[old] = r;
    };
    for (size_t i = 0; i < loop.getInitArgs().size(); ++i)
      bind(loop.getRegionIterArgs()[i], fresh.getRegionIterArgs(), next, i, raised_.lookup(loop.getInitArgs()[i]));
    Operation* yield = body.getTerminator();
    if (failed(raise(body))) return failure();
    builder_.setInsertionPoint(yield);
    SmallVector<Value> back;
    for (auto [i, v] : llvm::enumerate(yield->getOperands())) carry(v, baseOnly[i], back, loc);
    yield->setOperands(back);
    for (size_t i = 0; i < loop.getInitArgs().size(); ++i)
      bind(loop.getResult(i), fresh.getResults(), nextResult, i, raised_.lookup(loop.getInitArgs()[i]));
    loop->dropAllReferences();
    replaced_.push_back(loop);
    return success();
  }

  LogicalResult raiseIf(scf::IfOp branch) {
    Location loc = branch.getLoc();
    SmallVector<Type> types;
    for (Value v : branch.getResults()) {
      types.push_back(isPointerTile(v) ? Type(pointerType(v)) : v.getType());
      if (isPointerTile(v)) types.push_back(RankedTensorType::get(shapeOf(v), builder_.getI64Type()));
    }
    auto fresh =
        scf::IfOp::create(builder_, loc, types, branch.getCondition(), /*addThenBlock=*/false, /*addElseBlock=*/false);
    fresh->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
    fresh.getThenRegion().takeBody(branch.getThenRegion());
    fresh.getElseRegion().takeBody(branch.getElseRegion());
    for (Region* region : {&fresh.getThenRegion(), &fresh.getElseRegion()}) {
      Operation* yield = region->front().getTerminator();
      if (failed(raise(region->front()))) return failure();
      builder_.setInsertionPoint(yield);
      SmallVector<Value> values;
      for (Value v : yield->getOperands()) carry(v, false, values, loc);
      yield->setOperands(values);
    }
    unsigned at = 0;
    for (Value old : branch.getResults()) {
      if (isPointerTile(old)) {
        raised_[old] = {fresh.getResult(at), {fresh.getResult(at + 1), fullRange(64)}};
        at += 2;
      } else {
        old.replaceAllUsesWith(fresh.getResult(at++));
      }
    }
    branch->dropAllReferences();
    replaced_.push_back(branch);
    return success();
  }

  static bool carriesPointers(scf::WhileOp loop) {
    auto is = [](Value v) { return isPointerTile(v); };
    return llvm::any_of(loop.getInits(), is) || llvm::any_of(loop.getResults(), is);
  }

  LogicalResult raiseWhile(scf::WhileOp loop) {
    Location loc = loop.getLoc();
    SmallVector<Value> inits;
    for (Value v : loop.getInits()) carry(v, false, inits, loc);
    SmallVector<Type> resultTypes;
    for (Value v : loop.getResults()) {
      resultTypes.push_back(isPointerTile(v) ? Type(pointerType(v)) : v.getType());
      if (isPointerTile(v)) resultTypes.push_back(RankedTensorType::get(shapeOf(v), builder_.getI64Type()));
    }
    auto fresh = scf::WhileOp::create(builder_, loc, resultTypes, inits, nullptr, nullptr);
    fresh->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    auto move = [&](Block& from, Block& to) -> LogicalResult {
      to.clear();
      to.getOperations().splice(to.end(), from.getOperations());
      bind(from.getArguments(), to.getArguments());
      Operation* end = to.getTerminator();
      if (failed(raise(to))) return failure();
      builder_.setInsertionPoint(end);
      SmallVector<Value> values;
      const bool isCondition = isa<scf::ConditionOp>(end);
      if (isCondition) values.push_back(end->getOperand(0));
      for (Value v : end->getOperands().drop_front(isCondition)) carry(v, false, values, loc);
      end->setOperands(values);
      return success();
    };
    if (failed(move(*loop.getBeforeBody(), *fresh.getBeforeBody())) ||
        failed(move(*loop.getAfterBody(), *fresh.getAfterBody())))
      return failure();
    bind(loop.getResults(), fresh.getResults());
    loop->dropAllReferences();
    replaced_.push_back(loop);
    return success();
  }

  /// Old values take the meaning of new ones, a pointer tile of two.
  void bind(ValueRange old, ValueRange fresh) {
    unsigned at = 0;
    for (Value v : old) {
      if (isPointerTile(v)) {
        raised_[v] = {fresh[at], {fresh[at + 1], fullRange(64)}};
        at += 2;
      } else {
        Value(v).replaceAllUsesWith(fresh[at++]);
      }
    }
  }

  Facts facts_;
  OpBuilder builder_;
  func::FuncOp func_;
  llvm::DenseMap<Value, Raised> raised_;
  std::vector<Operation*> dead_;  ///< builders of pointer tiles, in the order of the program: users after definitions
  std::vector<Operation*> replaced_;  ///< loops and branches whose bodies moved to new ones
};

struct RaisePointers : impl::RaisePointersBase<RaisePointers> {
  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    if (failed(PointerRaiser(getOperation()).run())) signalPassFailure();
  }
};

}  // namespace
}  // namespace tile::ir
