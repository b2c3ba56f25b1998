// nest.cpp - loops over a box and the vector evaluation of fused expressions inside them.
#include "compiler/host/nest.h"

#include "compiler/host/lanes.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/STLExtras.h"

namespace tile::ir::host {
using namespace mlir;

Access Access::identity(size_t rank) {
  Access a;
  for (size_t d = 0; d < rank; ++d) a.loop.push_back(static_cast<int>(d));
  a.offset.assign(rank, 0);
  return a;
}

/// The access of a fused op's operand that gives the result's element.
Access Nest::through(Operation* op, const Access& a) const {
  if (auto cast = dyn_cast<BroadcastOp>(op)) {
    Access in = a;
    for (auto [d, size] : llvm::enumerate(shapeOf(cast.getSource())))
      if (size == 1) in.loop[d] = -1, in.offset[d] = 0;
    return in;
  }
  if (isa<ReshapeOp, TransOp>(op)) {
    auto from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
    Access in;
    in.loop.assign(from.size(), -1);
    in.offset.assign(from.size(), 0);
    for (auto [source, result] : matchDims(from, to))
      in.loop[source] = a.loop[result], in.offset[source] = a.offset[result];
    return in;
  }
  if (auto extract = dyn_cast<ExtractOp>(op)) {
    Access in = a;
    for (auto [d, offset] : llvm::enumerate(extract.getOffsets())) in.offset[d] += offset;
    return in;
  }
  return a;
}

SmallVector<int64_t, 4> Nest::loopStrides(const Ref& ref, const Access& a) const {
  SmallVector<int64_t, 4> strides(shape_.size(), 0);
  const bool apart = e_.pitchOf(ref) != nullptr;
  for (auto [d, loop] : llvm::enumerate(a.loop))
    if (loop >= 0)  // where rows lie apart, none begins where another ends
      strides[loop] += ref.strides[d] + (apart && d + 1 < a.loop.size());
  return strides;
}

/// Visits the strides, per dim of the box, of everything in memory (or numbered, like iota) below `tile`.
void Nest::leaves(Value tile, const Access& a, llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  std::set<Key> seen;
  std::function<void(Value, const Access&)> walk = [&](Value tile, const Access& a) {
    if (!isTile(tile) || !seen.insert(key(tile, 0, a)).second) return;
    if (const Ref* ref = e_.plan.place(tile)) {
      visit(loopStrides(*ref, a));
      if (!isMadeHere(tile)) return;
    }
    Operation* op = tile.getDefiningOp();
    if (isa<IotaOp>(op) ||
        (isa<arith::ConstantOp>(op) && !isa<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue())))
      return visit(loopStrides(Ref{-1, 0, rowMajorStrides(shapeOf(tile))}, a));
    for (Value operand : op->getOperands()) walk(operand, through(op, a));
  };
  walk(tile, a);
}

void Nest::uses(Value tile, Access access) {
  leaves(tile, access, [&](ArrayRef<int64_t> strides) { touched_.emplace_back(strides); });
  std::set<Key> seen;
  keepRowsOfGathers(tile, access, seen);
  roots_.push_back({tile, std::move(access)});
}

/// Gathers that are read here: where their offsets lie in memory, rows that become one no longer show that each is a
/// run.
void Nest::keepRowsOfGathers(Value tile, const Access& a, std::set<Key>& seen) {
  if (!isTile(tile) || !seen.insert(key(tile, 0, a)).second || (e_.plan.place(tile) && !isMadeHere(tile))) return;
  Operation* op = tile.getDefiningOp();
  if (auto gather = dyn_cast<GatherOp>(op))
    if (e_.plan.place(gather.getOffsets()) && a.loop.size() > 1 && a.loop.back() >= 0) keepApart(a.loop.back());
  for (Value operand : op->getOperands()) keepRowsOfGathers(operand, through(op, a), seen);
}

void Nest::uses(const Ref& ref) { touched_.push_back(loopStrides(ref, Access::identity(shape_.size()))); }

const SmallVector<int64_t, 4>& Nest::dims() {
  group_.assign(shape_.size(), -1);
  int previous = -1;
  for (int d = 0; d < static_cast<int>(shape_.size()); ++d) {
    if (shape_[d] == 1 && !llvm::is_contained(apart_, d)) continue;
    bool merge = previous >= 0 && !llvm::is_contained(apart_, previous) && !llvm::is_contained(apart_, d) &&
                 llvm::all_of(touched_, [&](auto& strides) { return strides[previous] == strides[d] * shape_[d]; });
    if (merge) {
      sizes_.back() *= shape_[d];
      lead_.back() = d;
    } else {
      sizes_.push_back(shape_[d]);
      lead_.push_back(d);
    }
    group_[d] = static_cast<int>(sizes_.size()) - 1;
    previous = d;
  }
  if (sizes_.empty()) {
    sizes_.push_back(1);
    lead_.push_back(shape_.empty() ? -1 : 0);
  }
  index_.assign(sizes_.size(), e_.i64(0));
  return sizes_;
}

bool Nest::isContiguous(const Ref& ref) const {
  return sizes_.back() == 1 || loopStrides(ref, Access::identity(shape_.size()))[lead_.back()] == 1;
}

int64_t Nest::stride(const Ref& ref, int dim) const {
  return loopStrides(ref, Access::identity(shape_.size()))[lead_[dim]];
}

int Nest::dimOf(int d) { return group_[d]; }

LogicalResult Nest::outer(llvm::function_ref<LogicalResult()> row, int also) {
  int last = static_cast<int>(sizes_.size()) - 1;
  std::function<LogicalResult(int)> open = [&](int d) -> LogicalResult {
    if (d == static_cast<int>(sizes_.size())) {
      enterRow();
      return row();
    }
    if (d == last || d == also) return open(d + 1);
    bool ok = true;
    e_.loop(e_.i64(0), e_.i64(sizes_[d]), 1, [&](llvm::Value* i) {
      index_[d] = i;
      ok = succeeded(open(d + 1)) && ok;
    });
    return success(ok);
  };
  return open(0);
}

LogicalResult Nest::row(unsigned width, llvm::function_ref<LogicalResult(unsigned)> body) {
  bool ok = true;
  e_.inVectors(e_.i64(0), e_.i64(sizes_.back()), width, [&](llvm::Value* i, unsigned lanes) {
    if (!ok) return;
    enter();
    index_.back() = i;
    ok = succeeded(body(lanes));
  });
  return success(ok);
}

LogicalResult Nest::run(unsigned width, llvm::function_ref<LogicalResult(unsigned)> body) {
  return outer([&] {
    hoistAll();
    return row(width, body);
  });
}

bool Nest::isInvariant(Value tile, const Access& a) {
  if (sizes_.back() == 1) return false;
  auto [it, fresh] = isInvariant_.try_emplace(key(tile, 0, a), true);
  if (fresh) leaves(tile, a, [&](ArrayRef<int64_t> strides) { it->second &= strides[lead_.back()] == 0; });
  return it->second;
}

void Nest::hoist(Value tile, const Access& a, std::set<Key>& seen) {
  if (!isTile(tile) || !seen.insert(key(tile, 0, a)).second) return;
  if (isInvariant(tile, a)) {
    llvm::Value* v = eval(tile, a, 1);
    if (v) invariant_[key(tile, 1, a)] = v;
    return;
  }
  if (e_.plan.place(tile) && !isMadeHere(tile)) return;
  Operation* op = tile.getDefiningOp();
  for (Value operand : op->getOperands()) hoist(operand, through(op, a), seen);
}

void Nest::hoistAll() {
  std::set<Key> seen;
  for (auto& [tile, access] : roots_) hoist(tile, access, seen);
}

void Nest::hoistAcross(int dim, unsigned width) {
  constexpr size_t kMost = 2;  // more would leave too few registers for the sums
  std::set<Key> seen;
  std::function<void(Value, const Access&)> visit = [&](Value tile, const Access& a) {
    if (!isTile(tile) || lasting_.size() >= kMost || isInvariant(tile, a)) return;
    if (!seen.insert(key(tile, 0, a)).second) return;
    bool fixed = true;
    leaves(tile, a, [&](ArrayRef<int64_t> strides) { fixed &= strides[lead_[dim]] == 0; });
    if (fixed) {
      if (llvm::Value* v = eval(tile, a, width)) lasting_[key(tile, width, a)] = v;
      return;
    }
    if (e_.plan.place(tile) && !isMadeHere(tile)) return;
    Operation* op = tile.getDefiningOp();
    for (Value operand : op->getOperands()) visit(operand, through(op, a));
  };
  for (auto& [tile, access] : roots_) visit(tile, access);
}

llvm::Value* Nest::elementNumber(const Ref& ref, const Access& a) {
  if (const auto pitches = e_.pitchesOf(ref); !pitches.empty()) {  // a tile whose rows lie apart
    auto index = [&](int d) -> llvm::Value* {
      llvm::Value* i = a.loop[d] < 0 || group_[a.loop[d]] < 0 ? e_.i64(0) : index_[group_[a.loop[d]]];
      return e_.b.CreateAdd(i, e_.i64(a.offset[d]), "", true, true);
    };
    const int last = static_cast<int>(a.loop.size()) - 1;
    llvm::Value* n = index(last);
    // Rows may run backwards: signed.
    for (int d = 0; d < last; ++d)
      n = e_.b.CreateAdd(e_.b.CreateMul(index(d), pitches[d], "", false, true), n, "", false, true);
    return n;
  }
  SmallVector<int64_t, 4> strides = loopStrides(ref, a);
  int64_t fixed = ref.offset;
  for (auto [offset, stride] : llvm::zip(a.offset, ref.strides)) fixed += offset * stride;
  llvm::Value* n = e_.i64(fixed);
  for (size_t g = 0; g < sizes_.size(); ++g)
    if (int64_t stride = lead_[g] < 0 ? 0 : strides[lead_[g]]; stride != 0 && sizes_[g] > 1)
      n = e_.b.CreateAdd(n, e_.b.CreateMul(index_[g], e_.i64(stride), "", true, true), "", true, true);
  return n;
}

llvm::Value* Nest::address(const Ref& ref, Type element) {
  return e_.address(ref, element, elementNumber(ref, Access::identity(shape_.size())));
}

llvm::Value* Nest::linearIndex() {
  return elementNumber(Ref{-1, 0, rowMajorStrides(shape_)}, Access::identity(shape_.size()));
}

llvm::Value* Nest::evalLeaf(const Ref& ref, Type element, const Access& a, llvm::Value* base, unsigned width) {
  llvm::Value* number = elementNumber(ref, a);
  int64_t step = width == 1 ? 0 : loopStrides(ref, a)[lead_.back()];
  auto load = [&](llvm::Value* n, unsigned w) { return e_.numbers.load(element, e_.offsetBy(base, element, n), w); };
  if (step == 0) return e_.numbers.splat(load(number, 1), width);
  if (step == 1) return load(number, width);
  if (step > 1 && step <= kWidestStep && !e_.pitchOf(ref))
    return e_.numbers.fromMemory(element, loadApart(e_, element, e_.offsetBy(base, element, number), step, width));
  llvm::Value* v = llvm::PoisonValue::get(llvm::FixedVectorType::get(e_.numbers.inRegister(element), width));
  llvm::Value* next = e_.i64(step);
  for (auto [d, pitch] : llvm::enumerate(e_.pitchesOf(ref)))
    if (a.loop[d] == lead_.back()) next = pitch;
  for (unsigned lane = 0; lane < width; ++lane)
    v = e_.b.CreateInsertElement(v, load(e_.b.CreateAdd(number, e_.b.CreateMul(next, e_.i64(lane))), 1), lane);
  return v;
}

llvm::Value* Nest::eval(Value tile, const Access& a, unsigned width) {
  if (!isTile(tile)) return e_.numbers.splat(e_.scalar(tile), width);
  if (auto it = computed_.find(key(tile, width, a)); it != computed_.end()) return it->second;
  if (auto it = lasting_.find(key(tile, width, a)); it != lasting_.end()) return it->second;
  if (auto it = invariant_.find(key(tile, 1, a)); it != invariant_.end()) return e_.numbers.splat(it->second, width);
  const Ref* ref = e_.plan.place(tile);
  if (ref && !isMadeHere(tile)) {
    llvm::Value* base = e_.arenaBase(*ref);
    if (width > 1 && loopStrides(*ref, a)[lead_.back()] == 1)
      e_.prefetchBeside(*ref, e_.offsetBy(base, elementOf(tile), elementNumber(*ref, a)),
                        width * Numbers::bytes(elementOf(tile)));
    return computed_[key(tile, width, a)] = evalLeaf(*ref, elementOf(tile), a, base, width);
  }
  Operation* op = tile.getDefiningOp();
  SmallVector<llvm::Value*, 2> results;
  if (!evalOp(op, a, width, results)) return nullptr;
  if (ref && !e_.plan.isPassing(tile)) e_.numbers.store(elementOf(tile), results[0], address(*ref, elementOf(tile)));
  for (auto [value, result] : llvm::zip(results, op->getResults())) computed_[key(result, width, a)] = value;
  return results[cast<OpResult>(tile).getResultNumber()];
}

/// Computes all results of a fusable op at one access.
bool Nest::evalOp(Operation* op, const Access& a, unsigned width, SmallVectorImpl<llvm::Value*>& results) {
  Value tile = op->getResult(0);
  auto one = [&](llvm::Value* v) {
    results.push_back(v);
    return true;
  };
  if (auto splat = dyn_cast<SplatOp>(op)) return one(e_.numbers.splat(e_.scalar(splat.getValue()), width));
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return one(e_.numbers.splat(e_.numbers.constant(splat.getSplatValue<Attribute>()), width));
    return one(
        evalLeaf(Ref{-1, 0, rowMajorStrides(shapeOf(tile))}, elementOf(tile), a, e_.constantData(constant), width));
  }
  if (auto iota = dyn_cast<IotaOp>(op)) return one(evalIota(iota, a, width));
  if (auto gather = dyn_cast<GatherOp>(op)) {
    llvm::Value* read = evalGather(gather, a, width);
    return read && one(read);
  }
  Access in = through(op, a);
  SmallVector<llvm::Value*, 4> args;
  for (Value operand : op->getOperands()) {
    args.push_back(eval(operand, in, width));
    if (!args.back()) return false;
  }
  if (isa<BroadcastOp, ReshapeOp, TransOp, ExtractOp, AssumeOp>(op)) return one(args[0]);
  if (isa<PtrAddOp>(op)) {
    Type pointee = cast<PtrType>(elementOf(tile)).getElementType();
    llvm::Value* offset = e_.b.CreateSExt(args[1], withElement(args[1]->getType(), e_.b.getInt64Ty()));
    return one(e_.b.CreateGEP(e_.numbers.inMemory(pointee), args[0], offset));
  }
  results = e_.numbers.apply(op, args);
  if (results.size() == op->getNumResults()) return true;
  op->emitError() << "the host target cannot compute " << op->getName() << " on " << elementOf(op->getOperand(0));
  return false;
}

llvm::Value* Nest::evalIota(IotaOp iota, const Access& a, unsigned width) {
  Ref numbers{-1, static_cast<int64_t>(iota.getStart()), {1}};
  auto type = llvm::cast<llvm::IntegerType>(e_.numbers.inRegister(elementOf(iota.getResult())));
  llvm::Value* first = e_.numbers.splat(e_.b.CreateZExtOrTrunc(elementNumber(numbers, a), type), width);
  int64_t step = width == 1 ? 0 : loopStrides(numbers, a)[lead_.back()];
  if (step == 0) return first;
  SmallVector<llvm::Constant*> steps;
  for (unsigned lane = 0; lane < width; ++lane) steps.push_back(llvm::ConstantInt::get(type, lane * step, true, true));
  return e_.b.CreateAdd(first, llvm::ConstantVector::get(steps));
}

std::optional<int64_t> Nest::step(Value tile, const Access& a) {
  auto it = step_.find(key(tile, 0, a));
  return it != step_.end() ? it->second : step_[key(tile, 0, a)] = stepOf(tile, a);
}

std::optional<int64_t> Nest::stepOf(Value tile, const Access& a) {
  if (!isTile(tile) || isInvariant(tile, a)) return 0;
  // How a tile was made holds where it is read from memory, too; but rows of such tiles may have become one.
  if (e_.plan.place(tile) && sizes_.back() != shape_[lead_.back()]) return std::nullopt;
  Operation* op = tile.getDefiningOp();
  if (!op || (isa<ReshapeOp, TransOp>(op) && !movesOnlyUnitDims(op))) return std::nullopt;
  if (isa<IotaOp>(op)) return loopStrides(Ref{-1, 0, {1}}, a)[lead_.back()];
  if (e_.plan.beginsAgain(op)) return std::nullopt;
  Access in = through(op, a);
  auto of = [&](unsigned i) { return step(op->getOperand(i), in); };
  if (isa<BroadcastOp, ReshapeOp, TransOp, ExtractOp, AssumeOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp,
          arith::IndexCastOp>(op))
    return of(0);
  if (isa<arith::AddIOp, arith::SubIOp, PtrAddOp>(op)) {
    auto x = of(0), y = of(1);
    if (!x || !y) return std::nullopt;
    return isa<arith::SubIOp>(op) ? *x - *y : *x + *y;
  }
  if (isa<arith::MulIOp>(op))
    for (unsigned i : {0u, 1u})
      if (auto factor = uniform(op->getOperand(i)))
        if (auto x = of(1 - i)) return *x * *factor;
  return std::nullopt;
}

Nest::Steps Nest::steps(Value tile, const Access& a) {
  auto it = steps_.find(key(tile, 0, a));
  return it != steps_.end() ? it->second : steps_[key(tile, 0, a)] = stepsOf(tile, a);
}

/// The least and the most an integer tile grows per element. The larger of two numbers grows by no less than the one
/// and no more than the other; so does the smaller.
Nest::Steps Nest::stepsOf(Value tile, const Access& a) {
  if (auto known = step(tile, a)) return std::pair(*known, *known);
  Operation* op = tile.getDefiningOp();
  if (e_.plan.place(tile) && sizes_.back() != shape_[lead_.back()]) return std::nullopt;  // as in stepOf
  if (!op || (isa<ReshapeOp, TransOp>(op) && !movesOnlyUnitDims(op)) || e_.plan.beginsAgain(op)) return std::nullopt;
  Access in = through(op, a);
  if (isa<arith::ExtSIOp>(op) && elementOf(op->getOperand(0)).getIntOrFloatBitWidth() < 32)
    return std::nullopt;  // the larger of two that begin again: its range does not show it
  if (isa<BroadcastOp, ReshapeOp, TransOp, ExtractOp, AssumeOp, arith::ExtSIOp>(op))
    return steps(op->getOperand(0), in);
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MaxSIOp, arith::MinSIOp, PtrAddOp>(op))
    return std::nullopt;
  if (isa<arith::MulIOp>(op)) {
    for (unsigned i : {0u, 1u})
      if (auto factor = uniform(op->getOperand(i)); factor && *factor >= 0)
        if (auto x = steps(op->getOperand(1 - i), in)) return std::pair(x->first * *factor, x->second * *factor);
    return std::nullopt;
  }
  auto x = steps(op->getOperand(0), in), y = steps(op->getOperand(1), in);
  if (!x || !y) return std::nullopt;
  if (isa<arith::SubIOp>(op)) return std::pair(x->first - y->second, x->second - y->first);
  if (isa<arith::AddIOp, PtrAddOp>(op)) return std::pair(x->first + y->first, x->second + y->second);
  return std::pair(std::min(x->first, y->first), std::max(x->second, y->second));
}

std::optional<int64_t> Nest::mostStep(Value tile) {
  const Steps found = steps(tile, Access::identity(shape_.size()));
  return found && found->second > 0 ? std::optional(found->second) : std::nullopt;
}

bool Nest::isComputed(Value tile) const {
  llvm::DenseSet<Value> seen;
  std::function<bool(Value)> visit = [&](Value v) {
    if (!isTile(v) || !seen.insert(v).second) return true;
    Operation* op = v.getDefiningOp();
    if (!op ||
        (!isElementwise(op) &&
         !isa<SplatOp, BroadcastOp, IotaOp, ExtractOp, AssumeOp, PtrAddOp, ReshapeOp, TransOp, arith::ConstantOp>(op)))
      return false;
    return llvm::all_of(op->getOperands(), visit);
  };
  return visit(tile);
}

int64_t Nest::widestElement(Value tile) const {
  int64_t widest = 1;
  llvm::DenseSet<Value> seen;
  std::function<void(Value)> visit = [&](Value v) {
    if (!isTile(v) || !seen.insert(v).second) return;
    const auto bits = static_cast<int64_t>(e_.numbers.inRegister(elementOf(v))->getScalarSizeInBits());
    widest = std::max(widest, bits == 0 ? int64_t{8} : (bits + 7) / 8);  // pointers have no size here
    if (e_.plan.place(v)) return;
    auto gather = v.getDefiningOp<GatherOp>();  // one offset is enough for a vector
    for (Value operand : v.getDefiningOp()->getOperands())
      if (!gather || operand != gather.getOffsets()) visit(operand);
  };
  visit(tile);
  return widest;
}

std::optional<int64_t> Nest::uniform(Value v) {
  if (!isTile(v)) {
    auto* word = llvm::dyn_cast<llvm::ConstantInt>(e_.scalar(v));
    return word ? std::optional(word->getSExtValue()) : std::nullopt;
  }
  Operation* op = v.getDefiningOp();
  if (!op) return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    return splat ? std::optional(splat.getSplatValue<APInt>().getSExtValue()) : std::nullopt;
  }
  if (isa<SplatOp, BroadcastOp, ReshapeOp, TransOp, ExtractOp, AssumeOp, arith::ExtSIOp>(op))
    return uniform(op->getOperand(0));
  return std::nullopt;
}

void Nest::usesOperands(Operation* op) {
  Access in = through(op, Access::identity(shape_.size()));
  for (Value operand : op->getOperands())
    if (isTile(operand)) uses(operand, in);
  // Numbered leaves of the op itself (iota, constants) count as well.
  if (op->getNumOperands() == 0 && isTile(op->getResult(0)))
    uses(Ref{-1, 0, rowMajorStrides(shapeOf(op->getResult(0)))});
}

bool Nest::define(Operation* op, unsigned width, SmallVectorImpl<llvm::Value*>& computed) {
  return evalOp(op, Access::identity(shape_.size()), width, computed);
}

LogicalResult Emitter::evaluateInto(Value tile, const Ref& to, Type as) {
  Nest nest(*this, shapeOf(tile));
  nest.uses(tile);
  nest.uses(to);
  int64_t n = nest.dims().back();
  // A piece of a larger tile (cat) may be strided along its last dim that is not 1.
  unsigned widest = nest.isContiguous(to) ? vectorWidth(std::max(Numbers::bytes(as), Numbers::bytes(elementOf(tile))),
                                                        n, vectorsAtATime(plan.cost(tile)))
                                          : 1;
  return nest.run(widest, [&](unsigned width) {
    llvm::Value* v = nest.eval(tile, width);
    if (!v) return failure();
    numbers.store(as, numbers.widen(elementOf(tile), as, v), nest.address(to, as));
    return success();
  });
}

}  // namespace tile::ir::host
