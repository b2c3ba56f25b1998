// pointer_access.cpp - tile.gather and tile.scatter. Offsets that are consecutive become (masked) vector accesses;
// offsets with a small step are read as neighbouring vectors and shuffled; for any others every lane has an address of
// its own. A lane whose mask is false touches no memory.
#include "compiler/host/lanes.h"
#include "compiler/host/nest.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

/// Addresses of the elements at the nest's current index: one of a width of 1, else a vector of them.
llvm::Value* addressesOf(Emitter& e, Nest& nest, Value ptr, Value offsets, const Access& a, Type element,
                         unsigned width) {
  if (isTile(ptr)) return nest.eval(ptr, a, width);
  llvm::Value* offset = nest.eval(offsets, a, width);
  if (!offset) return nullptr;
  return e.offsetBy(e.scalar(ptr), element, e.b.CreateSExt(offset, withElement(offset->getType(), e.b.getInt64Ty())));
}

llvm::Value* addressesOf(Emitter& e, Nest& nest, Value ptr, Value offsets, Type element, unsigned width) {
  const size_t rank = shapeOf(isTile(ptr) ? ptr : offsets).size();
  return addressesOf(e, nest, ptr, offsets, Access::identity(rank), element, width);
}

/// True where the mask is absent or known to hold.
bool isAlways(llvm::Value* mask) {
  return !mask || (llvm::isa<llvm::Constant>(mask) && llvm::cast<llvm::Constant>(mask)->isAllOnesValue());
}

llvm::Value* allLanes(Emitter& e, llvm::Value* mask) {
  return mask->getType()->isVectorTy() ? e.b.CreateAndReduce(mask) : mask;
}

/// The result of one of two computations.
llvm::Value* either(Emitter& e, llvm::Value* condition, llvm::function_ref<llvm::Value*()> then,
                    llvm::function_ref<llvm::Value*()> otherwise) {
  llvm::Value* values[2] = {};
  llvm::BasicBlock* ends[2] = {};
  e.ifThen(
      condition, [&] { values[0] = then(), ends[0] = e.b.GetInsertBlock(); },
      [&] { values[1] = otherwise(), ends[1] = e.b.GetInsertBlock(); });
  if (!values[0] || !values[1]) return values[0] ? values[0] : values[1];  // the condition was known
  llvm::PHINode* phi = e.b.CreatePHI(values[0]->getType(), 2);
  for (int i : {0, 1}) phi->addIncoming(values[i], ends[i]);
  return phi;
}

/// Whether loads under a mask are one instruction, of elements of any size (AVX-512).
bool hasMaskedLoads(Emitter& e) { return e.target.vectorBytes >= 64; }

/// `width` elements at `address`; `mask` may be null; `other` is what lanes without memory read. Loops that do nothing
/// else `branch` on whether all lanes read; among other work an instruction with a mask does as well.
llvm::Value* maskedLoad(Emitter& e, Type element, llvm::Value* address, llvm::Value* mask, llvm::Value* other,
                        unsigned width, bool isVolatile, bool branch = true) {
  auto& b = e.b;
  auto whole = [&] { return e.numbers.load(element, address, width, isVolatile); };
  if (isAlways(mask)) return whole();
  auto partly = [&] {
    if (width == 1) return other;
    auto* type = llvm::FixedVectorType::get(e.numbers.inMemory(element), width);
    return e.numbers.fromMemory(element, b.CreateMaskedLoad(type, address, llvm::Align(Numbers::bytes(element)), mask,
                                                            e.numbers.toMemory(element, other)));
  };
  return width > 1 && !branch && hasMaskedLoads(e) ? partly() : either(e, allLanes(e, mask), whole, partly);
}

/// The same of elements that do not lie side by side, in vectors: `step` is how far apart they are, if that is known.
llvm::Value* loadScattered(Emitter& e, Type element, llvm::Value* addresses, std::optional<int64_t> step,
                           llvm::Value* mask, llvm::Value* other, unsigned width) {
  auto each = [&](llvm::Value* on) {
    llvm::Value* instead = on ? e.numbers.toMemory(element, other) : nullptr;
    return e.numbers.fromMemory(element, loadLanes(e, element, addresses, on, instead));
  };
  if (!step || *step < 2 || *step > kWidestStep) return each(isAlways(mask) ? nullptr : mask);
  auto apart = [&] {
    llvm::Value* first = e.b.CreateExtractElement(addresses, uint64_t{0});
    return e.numbers.fromMemory(element, loadApart(e, element, first, *step, width));
  };
  return isAlways(mask) ? apart() : either(e, allLanes(e, mask), apart, [&] { return each(mask); });
}

void maskedStore(Emitter& e, Type element, llvm::Value* value, llvm::Value* address, llvm::Value* mask, unsigned width,
                 bool isVolatile, bool branch = true) {
  if (isAlways(mask)) return e.numbers.store(element, value, address, isVolatile);
  auto partial = [&] {
    if (width > 1)
      e.b.CreateMaskedStore(e.numbers.toMemory(element, value), address, llvm::Align(Numbers::bytes(element)), mask);
  };
  if (width > 1 && !branch && hasMaskedLoads(e)) return partial();
  e.ifThen(
      allLanes(e, mask), [&] { e.numbers.store(element, value, address, isVolatile); }, partial);
}

/// Lanes whose addresses grow by `most` elements from one to the next but for edges, where they grow by less: where the
/// last one of a vector is as far away as it can be, all are, and the vector is one load (or neighbouring ones). Other
/// vectors are gathered. `store` takes what was read of the nest's current index on.
LogicalResult gatherEdged(Emitter& e, Nest& nest, GatherOp op, Type element, int64_t most, unsigned width,
                          llvm::function_ref<void(llvm::Value*)> store) {
  auto& b = e.b;
  const int last = static_cast<int>(nest.sizes().size()) - 1;
  llvm::Value* start = nest.index(last);
  llvm::Value* zero = llvm::Constant::getNullValue(e.numbers.inRegister(element));
  bool ok = true;
  auto from = [&](llvm::Value* lane) {
    nest.enter();
    nest.setIndex(last, b.CreateAdd(start, lane));
  };
  auto addresses = [&](unsigned lanes) {
    llvm::Value* address = ok ? addressesOf(e, nest, op.getPtr(), op.getOffsets(), element, lanes) : nullptr;
    ok &= address != nullptr;
    llvm::Type* pointers =
        lanes > 1 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(b.getPtrTy(), lanes)) : b.getPtrTy();
    return address ? address : llvm::PoisonValue::get(pointers);
  };
  auto maskAndOther = [&](unsigned lanes) {
    llvm::Value* mask = ok && op.getMask() ? nest.eval(op.getMask(), lanes) : nullptr;
    llvm::Value* other = ok && op.getOther() ? nest.eval(op.getOther(), lanes) : e.numbers.splat(zero, lanes);
    ok &= other && (mask || !op.getMask());
    return std::pair(mask, other ? other : e.numbers.splat(zero, lanes));
  };
  if (width == 1) {
    llvm::Value* at = addresses(1);
    const auto [mask, other] = maskAndOther(1);
    if (ok) store(maskedLoad(e, element, at, mask, other, 1, /*isVolatile=*/false));
    return success(ok);
  }
  from(e.i64(width - 1));
  llvm::Value* end = addresses(1);
  from(e.i64(0));
  llvm::Value* first = addresses(1);
  llvm::Value* distance = b.CreateSub(b.CreatePtrToInt(end, b.getInt64Ty()), b.CreatePtrToInt(first, b.getInt64Ty()));
  llvm::Value* moves = b.CreateICmpEQ(distance, e.i64(most * (width - 1) * Numbers::bytes(element)));
  e.ifThen(
      moves,
      [&] {
        const auto [mask, other] = maskAndOther(width);
        if (!ok) return;
        if (most == 1) return store(maskedLoad(e, element, first, mask, other, width, /*isVolatile=*/false));
        auto apart = [&] { return e.numbers.fromMemory(element, loadApart(e, element, first, most, width)); };
        if (isAlways(mask)) return store(apart());
        store(either(e, allLanes(e, mask), apart, [&, mask = mask, other = other] {
          llvm::Value* all = b.CreateGEP(e.numbers.inMemory(element), first, laneOffsets(e, most, width));
          return loadScattered(e, element, all, std::nullopt, mask, other, width);
        }));
      },
      [&] {
        const unsigned lanes = std::min(width, e.vectorWidth(8, width, 2));
        e.loop(e.i64(0), e.i64(width), lanes, [&](llvm::Value* lane) {
          from(lane);
          llvm::Value* at = addresses(lanes);
          const auto [mask, other] = maskAndOther(lanes);
          if (!ok) return;
          store(lanes > 1 ? loadScattered(e, element, at, std::nullopt, mask, other, lanes)
                          : maskedLoad(e, element, at, mask, other, 1, /*isVolatile=*/false));
        });
      });
  from(e.i64(0));
  return success(ok);
}

/// Lanes whose places are computed (mirrored coordinates, those of short rows) often turn out to be neighbours, or to
/// lie in one vector (pictures that are enlarged). Offsets are compared as they are, and become addresses where they
/// are used: that way an instruction takes them, too.
llvm::Value* loadPerhapsTogether(Emitter& e, GatherOp op, llvm::Value* where, llvm::Value* mask, llvm::Value* other,
                                 unsigned width) {
  auto& b = e.b;
  const Type element = elementOf(op.getResult());
  const bool isOffset = !isTile(op.getPtr());
  auto addressOf = [&](llvm::Value* place) {
    if (!isOffset) return place;
    return e.offsetBy(e.scalar(op.getPtr()), element,
                      b.CreateSExt(place, withElement(place->getType(), b.getInt64Ty())));
  };
  auto scattered = [&] { return loadScattered(e, element, addressOf(where), std::nullopt, mask, other, width); };
  auto window = [&] {
    if (!isOffset || !isPermutable(e, element, width)) return scattered();
    llvm::Value* first = b.CreateExtractElement(where, uint64_t{0});
    llvm::Value* places = b.CreateSub(where, b.CreateVectorSplat(width, first));
    llvm::Value* together = allLanes(e, b.CreateICmpULT(places, llvm::ConstantInt::get(places->getType(), width)));
    if (!isAlways(mask)) together = b.CreateAnd(together, allLanes(e, mask));
    return either(
        e, together, [&] { return e.numbers.fromMemory(element, loadWindow(e, element, addressOf(first), places)); },
        scattered);
  };
  llvm::Value* numbers = isOffset ? where : b.CreatePtrToInt(where, llvm::FixedVectorType::get(b.getInt64Ty(), width));
  return either(
      e, growBy(e, numbers, isOffset ? 1 : Numbers::bytes(element)),
      [&] {
        llvm::Value* first = addressOf(b.CreateExtractElement(where, uint64_t{0}));
        return maskedLoad(e, element, first, mask, other, width, /*isVolatile=*/false);
      },
      window);
}

/// Lanes to access at a time, `computed` beside the places: of scattered ones as many as fill a vector with the offsets
/// they come from. Without an instruction for them a loop over single elements is as fast, unless computing where they
/// are is what takes time.
unsigned lanesOf(Emitter& e, Value where, ValueRange computed, Type element, std::optional<int64_t> step, int64_t limit,
                 bool isVolatile) {
  constexpr int kCheap = 4;
  int cost = e.plan.cost(where);
  for (Value v : computed)
    if (v) cost += e.plan.cost(v);
  if (step == 1) return e.vectorWidth(Numbers::bytes(element), limit, isLong(cost) ? 1 : 2);
  const bool apart = step && *step > 1 && *step <= kWidestStep;
  if (isVolatile || (!apart && !hasGather(e) && cost <= kCheap)) return 1;
  return e.vectorWidth(std::max(Numbers::bytes(element), Numbers::bytes(elementOf(where))), limit, 1);
}

/// Offsets that several accesses share lie in memory. Row by row it still shows how they were computed, as neighbours
/// mostly; of rows that have become one they would have to be compared.
void keepRows(Emitter& e, Nest& nest, Value where) {
  constexpr int64_t kShort = 16;
  const auto shape = shapeOf(where);
  const int rank = static_cast<int>(shape.size());
  if (rank > 1 && shape.back() >= kShort && e.plan.place(where) && nest.isComputed(where)) nest.keepApart(rank - 1);
}

}  // namespace

llvm::Value* Nest::evalGather(GatherOp op, const Access& a, unsigned width) {
  const Type element = elementOf(op.getResult());
  const auto between = step(op.getOffsets(), a);
  const bool isRun = between == 1;
  llvm::Value* address = addressesOf(e_, *this, op.getPtr(), op.getOffsets(), a, element, isRun ? 1 : width);
  llvm::Value* mask = op.getMask() ? eval(op.getMask(), a, width) : nullptr;
  llvm::Value* zero = e_.numbers.splat(llvm::Constant::getNullValue(e_.numbers.inRegister(element)), width);
  llvm::Value* other = op.getOther() ? eval(op.getOther(), a, width) : zero;
  if (!address || !other || (op.getMask() && !mask)) return nullptr;
  if (width == 1 || isRun) return maskedLoad(e_, element, address, mask, other, width, false, /*branch=*/false);
  return loadScattered(e_, element, address, between, mask, other, width);
}

LogicalResult emitGather(Emitter& e, GatherOp op) {
  Type element = elementOf(op.getResult());
  bool isVolatile = op.getCache() == CacheHint::volatile_;
  llvm::Value* zero = llvm::Constant::getNullValue(e.numbers.inRegister(element));
  if (!isTile(op.getResult())) {
    llvm::Value* mask = op.getMask() ? e.scalar(op.getMask()) : nullptr;
    llvm::Value* other = op.getOther() ? e.scalar(op.getOther()) : zero;
    e.setScalar(op.getResult(), maskedLoad(e, element, e.scalar(op.getPtr()), mask, other, 1, isVolatile));
    return success();
  }
  if (!e.plan.owns(op.getResult())) return success();
  const Ref& to = *e.plan.place(op.getResult());
  Value where = isTile(op.getPtr()) ? op.getPtr() : op.getOffsets();
  Nest nest(e, shapeOf(op.getResult()));
  for (Value v : {where, op.getMask(), op.getOther()})
    if (v) nest.uses(v);
  nest.uses(to);
  keepRows(e, nest, where);
  int64_t n = nest.dims().back();
  const auto step = nest.step(where);
  const bool isApart = step && *step > 1;
  const auto most = isVolatile ? std::nullopt : isApart ? step : step ? std::nullopt : nest.mostStep(where);
  if (most && *most <= kWidestStep) {
    const int narrow = static_cast<int>(std::max<int64_t>(1, 4 / Numbers::bytes(element)));
    const int vectors = isApart ? narrow : Numbers::bytes(element) == 1 ? 4 : 2;
    return nest.run(e.vectorWidth(Numbers::bytes(element), n, vectors), [&](unsigned w) {
      return gatherEdged(e, nest, op, element, *most, w,
                         [&](llvm::Value* loaded) { e.numbers.store(element, loaded, nest.address(to, element)); });
    });
  }
  const bool perhaps = !step && !isVolatile && hasGather(e) && nest.isComputed(where);
  return nest.run(lanesOf(e, where, op.getMask(), element, step, n, isVolatile), [&](unsigned w) {
    const bool scattered = w > 1 && step != 1;
    const bool compares = scattered && perhaps;
    llvm::Value* address =
        compares ? nest.eval(where, w) : addressesOf(e, nest, op.getPtr(), op.getOffsets(), element, scattered ? w : 1);
    llvm::Value* mask = op.getMask() ? nest.eval(op.getMask(), w) : nullptr;
    llvm::Value* other = op.getOther() ? nest.eval(op.getOther(), w) : e.numbers.splat(zero, w);
    if (!address || !other || (op.getMask() && !mask)) return failure();
    llvm::Value* loaded = !scattered ? maskedLoad(e, element, address, mask, other, w, isVolatile)
                          : compares ? loadPerhapsTogether(e, op, address, mask, other, w)
                                     : loadScattered(e, element, address, step, mask, other, w);
    e.numbers.store(element, loaded, nest.address(to, element));
    return success();
  });
}

namespace {

/// Scatters of one shape, in one loop: each vector of all of them is computed before any is stored.
LogicalResult storeTogether(Emitter& e, ArrayRef<ScatterOp> ops) {
  auto whereOf = [](ScatterOp op) { return isTile(op.getPtr()) ? op.getPtr() : op.getOffsets(); };
  ScatterOp first = ops[0];
  Nest nest(e, shapeOf(first.getValue()));
  SmallVector<Value> computed;
  for (ScatterOp op : ops) {
    for (Value v : {whereOf(op), op.getValue(), op.getMask()})
      if (v) nest.uses(v);
    keepRows(e, nest, whereOf(op));
    computed.append({op.getMask(), op.getValue()});
  }
  const int64_t n = nest.dims().back();
  unsigned widest = ~0u;
  for (ScatterOp op : ops)
    widest = std::min(widest, lanesOf(e, whereOf(op), computed, elementOf(op.getValue()), nest.step(whereOf(op)), n,
                                      op.getCache() == CacheHint::volatile_));
  return nest.run(widest, [&](unsigned w) {
    struct Vector {
      bool scattered;
      llvm::Value *address, *mask, *value;
    };
    SmallVector<Vector> vectors;
    for (ScatterOp op : ops) {
      const bool scattered = w > 1 && nest.step(whereOf(op)) != 1;
      const unsigned addresses = scattered ? w : 1;
      Vector v{scattered, addressesOf(e, nest, op.getPtr(), op.getOffsets(), elementOf(op.getValue()), addresses),
               op.getMask() ? nest.eval(op.getMask(), w) : nullptr, nest.eval(op.getValue(), w)};
      if (!v.address || !v.value || (op.getMask() && !v.mask)) return failure();
      vectors.push_back(v);
    }
    for (size_t i = 0; i < vectors.size(); ++i) {
      ScatterOp op = ops[i];
      const Vector& v = vectors[i];
      const Type element = elementOf(op.getValue());
      if (v.scattered)
        storeLanes(e, element, e.numbers.toMemory(element, v.value), v.address, isAlways(v.mask) ? nullptr : v.mask);
      else
        maskedStore(e, element, v.value, v.address, v.mask, w, op.getCache() == CacheHint::volatile_,
                    /*branch=*/ops.size() == 1);
    }
    return success();
  });
}

/// i1: no two of the scatters, each of one run, write the same element; null where that is known.
llvm::Value* neverMeet(Emitter& e, ArrayRef<ScatterOp> ops) {
  auto& b = e.b;
  auto firstOf = [&](ScatterOp op) {
    Nest nest(e, shapeOf(op.getOffsets()));
    nest.uses(op.getOffsets());
    nest.dims();
    llvm::Value* first = addressesOf(e, nest, op.getPtr(), op.getOffsets(), elementOf(op.getValue()), 1);
    return first ? b.CreatePtrToInt(first, b.getInt64Ty()) : nullptr;
  };
  auto bytesOf = [](ScatterOp op) {
    return cast<RankedTensorType>(op.getValue().getType()).getNumElements() * Numbers::bytes(elementOf(op.getValue()));
  };
  llvm::Value* apart = nullptr;
  for (size_t i = 0; i < ops.size(); ++i)
    for (ScatterOp other : ops.take_front(i)) {
      ScatterOp op = ops[i];
      if (areApart(op, other)) continue;
      llvm::Value *at = firstOf(op), *before = firstOf(other);
      if (!at || !before) return e.b.getFalse();
      llvm::Value* distance = b.CreateSub(at, before);
      llvm::Value* isBehind = b.CreateICmpSGE(distance, e.i64(bytesOf(other)));
      llvm::Value* isInFront = b.CreateICmpSLE(distance, e.i64(-bytesOf(op)));
      llvm::Value* isApart = b.CreateOr(isBehind, isInFront);
      apart = apart ? b.CreateAnd(apart, isApart) : isApart;
    }
  return apart;
}

}  // namespace

LogicalResult emitScatter(Emitter& e, ScatterOp op) {
  const Type element = elementOf(op.getValue());
  if (!isTile(op.getValue())) {
    llvm::Value* mask = op.getMask() ? e.scalar(op.getMask()) : nullptr;
    maskedStore(e, element, e.scalar(op.getValue()), e.scalar(op.getPtr()), mask, 1,
                op.getCache() == CacheHint::volatile_);
    return success();
  }
  const ArrayRef<Operation*> others = e.plan.storedTogether(op);
  if (others.empty()) return storeTogether(e, op);
  if (others[0] != op) return success();  // stored with the first of them
  const auto together = llvm::map_to_vector<4>(others, [](Operation* one) { return cast<ScatterOp>(one); });
  llvm::Value* apart = neverMeet(e, together);
  if (!apart) return storeTogether(e, together);
  bool ok = true;
  e.ifThen(
      apart, [&] { ok &= succeeded(storeTogether(e, together)); },
      [&] {
        for (ScatterOp one : together) ok &= succeeded(storeTogether(e, one));
      });
  return success(ok);
}

}  // namespace tile::ir::host
