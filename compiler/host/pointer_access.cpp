// pointer_access.cpp - tile.gather and tile.scatter. Offsets that run along memory become (masked) vector accesses, those
// that keep small steps neighbouring ones, of others every lane has its address; a lane whose mask is false touches no
// memory.
#include "compiler/host/lanes.h"
#include "compiler/host/nest.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

/// Addresses of the elements at the nest's current index: one of a width of 1, else a vector of them.
llvm::Value* addressesOf(Emitter& e, Nest& nest, Value ptr, Value offsets, Type element, unsigned width) {
  if (isTile(ptr)) return nest.eval(ptr, width);
  llvm::Value* offset = nest.eval(offsets, width);
  if (!offset) return nullptr;
  return e.offsetBy(e.scalar(ptr), element,
                    e.b.CreateSExt(offset, withElement(offset->getType(), e.b.getInt64Ty())));
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

/// `width` elements at `address`; `mask` may be null; `other` is what lanes without memory read.
llvm::Value* maskedLoad(Emitter& e, Type element, llvm::Value* address, llvm::Value* mask, llvm::Value* other,
                        unsigned width, bool isVolatile) {
  auto& b = e.b;
  auto whole = [&] { return e.numbers.load(element, address, width, isVolatile); };
  if (isAlways(mask)) return whole();
  return either(e, allLanes(e, mask), whole, [&] {
    if (width == 1) return other;
    auto* type = llvm::FixedVectorType::get(e.numbers.inMemory(element), width);
    return e.numbers.fromMemory(element, b.CreateMaskedLoad(type, address, llvm::Align(Numbers::bytes(element)), mask,
                                                            e.numbers.toMemory(element, other)));
  });
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
                 bool isVolatile) {
  if (isAlways(mask)) return e.numbers.store(element, value, address, isVolatile);
  auto partial = [&] {
    if (width > 1)
      e.b.CreateMaskedStore(e.numbers.toMemory(element, value), address, llvm::Align(Numbers::bytes(element)), mask);
  };
  e.ifThen(
      allLanes(e, mask), [&] { e.numbers.store(element, value, address, isVolatile); }, partial);
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

}  // namespace

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
  int64_t n = nest.dims().back();
  const auto step = nest.step(where);
  return nest.run(lanesOf(e, where, op.getMask(), element, step, n, isVolatile), [&](unsigned w) {
    const bool scattered = w > 1 && step != 1;
    llvm::Value* address = addressesOf(e, nest, op.getPtr(), op.getOffsets(), element, scattered ? w : 1);
    llvm::Value* mask = op.getMask() ? nest.eval(op.getMask(), w) : nullptr;
    llvm::Value* other = op.getOther() ? nest.eval(op.getOther(), w) : e.numbers.splat(zero, w);
    if (!address || !other || (op.getMask() && !mask)) return failure();
    llvm::Value* loaded = scattered ? loadScattered(e, element, address, step, mask, other, w)
                                    : maskedLoad(e, element, address, mask, other, w, isVolatile);
    e.numbers.store(element, loaded, nest.address(to, element));
    return success();
  });
}

LogicalResult emitScatter(Emitter& e, ScatterOp op) {
  Type element = elementOf(op.getValue());
  bool isVolatile = op.getCache() == CacheHint::volatile_;
  if (!isTile(op.getValue())) {
    llvm::Value* mask = op.getMask() ? e.scalar(op.getMask()) : nullptr;
    maskedStore(e, element, e.scalar(op.getValue()), e.scalar(op.getPtr()), mask, 1, isVolatile);
    return success();
  }
  Value where = isTile(op.getPtr()) ? op.getPtr() : op.getOffsets();
  Nest nest(e, shapeOf(op.getValue()));
  for (Value v : {where, op.getValue(), op.getMask()})
    if (v) nest.uses(v);
  int64_t n = nest.dims().back();
  const auto step = nest.step(where);
  return nest.run(lanesOf(e, where, {op.getMask(), op.getValue()}, element, step, n, isVolatile), [&](unsigned w) {
    const bool scattered = w > 1 && step != 1;
    llvm::Value* address = addressesOf(e, nest, op.getPtr(), op.getOffsets(), element, scattered ? w : 1);
    llvm::Value* mask = op.getMask() ? nest.eval(op.getMask(), w) : nullptr;
    llvm::Value* value = nest.eval(op.getValue(), w);
    if (!address || !value || (op.getMask() && !mask)) return failure();
    if (scattered)
      storeLanes(e, element, e.numbers.toMemory(element, value), address, isAlways(mask) ? nullptr : mask);
    else
      maskedStore(e, element, value, address, mask, w, isVolatile);
    return success();
  });
}

}  // namespace tile::ir::host
