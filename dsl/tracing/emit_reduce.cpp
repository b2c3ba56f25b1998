// emit_reduce.cpp - reductions and scans. A combiner is a region over scalars: built in for sum, max ..., traced
// from the user's lambda otherwise.
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
using namespace mlir;

Value operand_tile(Tracer& t, const Operand& o, const char* verb) {
  const Value v = use(t, o);
  if (t.is_bad(v)) return {0};
  if (t.in_combiner()) return t.error(std::string(verb) + " cannot be used inside a combiner", o.loc), Value{0};
  const TileType type = t.type_of(v);
  if (type.shape.rank() == 0 || t.info(v).kind != ValueKind::number)
    return t.error(std::string(verb) + " needs a tile of numbers, found " +
                       (type.shape.rank() == 0 ? "the scalar " : "") + type.to_string(),
                   o.loc),
           Value{0};
  return v;
}

DType type_of_sum(DType d) {
  if (is_float(d)) return size_of(d) < 4 ? DType::f32 : d;
  if (d == DType::i1) return DType::i32;
  return bits_of(d) >= 32 ? d : is_unsigned(d) ? DType::u32 : DType::i32;
}

namespace {

const char* name_of(Fold f) {
  static constexpr const char* names[] = {"sum", "prod", "max", "min", "any", "all", "xor_sum", "argmax", "argmin"};
  return names[static_cast<int>(f)];
}

bool check_axis(Tracer& t, int& axis, const TileType& type, SrcLoc loc) {
  const int wanted = axis, rank = type.shape.rank();
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank) return true;
  t.error("axis " + std::to_string(wanted) + " is out of range for " + type.to_string(), loc);
  return false;
}

DType accumulator(Fold f, DType d) { return f == Fold::sum || f == Fold::prod ? type_of_sum(d) : d; }

bool allowed(Fold f, DType d) {
  switch (f) {
    case Fold::any:
    case Fold::all:
      return d == DType::i1;
    case Fold::xor_sum:
      return !is_float(d);
    case Fold::sum:
      return true;
    case Fold::prod:
      return d != DType::i1;
    default:
      return d != DType::i1 && !(is_float(d) && size_of(d) == 1);
  }
}

template <class F>
void allow_contraction(F op) {
  op.setFastmath(arith::FastMathFlags::contract);
}

mlir::Value combine_pair(OpBuilder& b, Location loc, Fold f, DType d, mlir::Value x, mlir::Value y) {
  const bool u = is_unsigned(d);
  if (is_float(d)) switch (f) {
      case Fold::sum: {
        auto op = arith::AddFOp::create(b, loc, x, y);
        allow_contraction(op);
        return op;
      }
      case Fold::prod: {
        auto op = arith::MulFOp::create(b, loc, x, y);
        allow_contraction(op);
        return op;
      }
      case Fold::max:
        return arith::MaxNumFOp::create(b, loc, x, y);
      default:
        return arith::MinNumFOp::create(b, loc, x, y);
    }
  switch (f) {
    case Fold::sum:
      return arith::AddIOp::create(b, loc, x, y);
    case Fold::prod:
      return arith::MulIOp::create(b, loc, x, y);
    case Fold::max:
      return u ? mlir::Value(arith::MaxUIOp::create(b, loc, x, y)) : mlir::Value(arith::MaxSIOp::create(b, loc, x, y));
    case Fold::min:
      return u ? mlir::Value(arith::MinUIOp::create(b, loc, x, y)) : mlir::Value(arith::MinSIOp::create(b, loc, x, y));
    case Fold::any:
      return arith::OrIOp::create(b, loc, x, y);
    case Fold::all:
      return arith::AndIOp::create(b, loc, x, y);
    default:
      return arith::XOrIOp::create(b, loc, x, y);
  }
}

Operation* fold_op(Tracer& t, bool is_scan, bool reverse, ValueRange sources, int axis, SrcLoc loc, Block* combiner) {
  OpBuilder& b = t.at_end();
  OperationState state(t.location(loc), is_scan ? ir::ScanOp::getOperationName() : ir::ReduceOp::getOperationName());
  state.addOperands(sources);
  for (mlir::Value v : sources) {
    auto type = cast<RankedTensorType>(v.getType());
    SmallVector<int64_t> shape(type.getShape());
    if (!is_scan) shape[axis] = 1;
    state.addTypes(RankedTensorType::get(shape, type.getElementType()));
  }
  state.addAttribute("axis", b.getI32IntegerAttr(axis));
  if (reverse) state.addAttribute("reverse", b.getUnitAttr());
  state.addRegion()->push_back(combiner);
  return b.create(state);
}

Block* combiner_block(Tracer& t, ValueRange sources, SrcLoc loc) {
  auto* block = new Block;
  for (int half = 0; half < 2; ++half)
    for (mlir::Value v : sources) block->addArgument(getElementTypeOrSelf(v.getType()), t.location(loc));
  return block;
}

mlir::Value fold(Tracer& t, Fold f, mlir::Value x, DType d, int axis, bool is_scan, bool reverse, SrcLoc loc) {
  Block* block = combiner_block(t, {x}, loc);
  OpBuilder inner(t.context());
  inner.setInsertionPointToEnd(block);
  const Location at = t.location(loc);
  ir::YieldOp::create(inner, at, combine_pair(inner, at, f, d, block->getArgument(0), block->getArgument(1)));
  return fold_op(t, is_scan, reverse, {x}, axis, loc, block)->getResult(0);
}

/// The least index of an element equal to the extreme one: a NaN equals nothing, and the extreme one is often wanted
/// anyway. Pairs of value and index combined at once would take two and a half times the instructions.
mlir::Value arg_along(Tracer& t, Fold f, mlir::Value x, DType d, int axis, SrcLoc at, mlir::Value* value) {
  OpBuilder& b = t.at_end();
  const Location loc = t.location(at);
  auto type = cast<RankedTensorType>(x.getType());
  const auto i32 = b.getI32Type();
  const auto length = static_cast<int32_t>(type.getDimSize(axis));
  Shape shape;
  SmallVector<int64_t> thin(type.getRank(), 1);
  thin[axis] = length;
  for (int64_t size : type.getShape()) shape.push_back(size);
  auto constant = [&](ArrayRef<int64_t> like, int32_t value) -> mlir::Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(RankedTensorType::get(like, i32), b.getI32IntegerAttr(value).getValue()));
  };
  mlir::Value index = ir::IotaOp::create(b, loc, RankedTensorType::get({length}, i32), 0);
  if (type.getRank() > 1) index = ir::ReshapeOp::create(b, loc, RankedTensorType::get(thin, i32), index);
  mlir::Value extreme = fold(t, f == Fold::argmax ? Fold::max : Fold::min, x, d, axis, false, false, at);
  *value = extreme;
  mlir::Value best = stretch(t, extreme, shape, at);
  mlir::Value is_best = is_float(d) ? mlir::Value(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, best))
                                    : mlir::Value(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, best));
  mlir::Value everywhere = stretch(t, index, shape, at);
  mlir::Value found = arith::SelectOp::create(b, loc, is_best, everywhere, constant(type.getShape(), length));
  mlir::Value first = fold(t, Fold::min, found, DType::i32, axis, false, false, at);
  if (!is_float(d)) return first;
  // NaNs only: the first of them.
  SmallVector<int64_t> reduced(type.getShape());
  reduced[axis] = 1;
  mlir::Value none = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, first, constant(reduced, length));
  return arith::SelectOp::create(b, loc, none, constant(reduced, 0), first);
}

/// `extreme`, of argmax and argmin, is set to the element found.
Value fold_along(Tracer& t, Fold f, const Operand& o, int axis, bool is_scan, bool reverse, Value* extreme = nullptr) {
  const char* verb = is_scan   ? (f == Fold::sum ? "cumsum" : "cumprod")
                     : extreme ? (f == Fold::argmax ? "max_with_index" : "min_with_index")
                               : name_of(f);
  Value v = operand_tile(t, o, verb);
  if (t.is_bad(v) || !check_axis(t, axis, t.type_of(v), o.loc)) return {0};
  DType d = t.info(v).dtype;
  if (!allowed(f, d)) {
    const char* hint = f == Fold::any || f == Fold::all ? "; it takes i1, e.g. x != 0"
                       : d == DType::i1                 ? "; conditions combine with any(x), all(x) or sum(x)"
                       : f == Fold::xor_sum             ? "; it takes integers"
                                                        : "";
    t.error("'" + std::string(verb) + "' is not defined on " + t.type_of(v).to_string() + hint, o.loc);
    return {0};
  }
  v = convert_value(t, v, accumulator(f, d), o.loc);
  d = t.info(v).dtype;
  if (f == Fold::argmax || f == Fold::argmin) {
    mlir::Value found;
    const mlir::Value index = arg_along(t, f, t.info(v).value, d, axis, o.loc, &found);
    if (extreme) *extreme = t.add(found, d, o.loc);
    return t.add(index, DType::i32, o.loc);
  }
  return t.add(fold(t, f, t.info(v).value, d, axis, is_scan, reverse, o.loc), d, o.loc);
}

}  // namespace

Value reduce(Fold f, const Operand& o, int axis) {
  Tracer* t = Tracer::current();
  return t ? fold_along(*t, f, o, axis, false, false) : Value{0};
}

Value reduce_with_index(Fold f, const Operand& o, int axis, Value& index) {
  Tracer* t = Tracer::current();
  Value extreme{0};
  index = t ? fold_along(*t, f, o, axis, false, false, &extreme) : Value{0};
  return extreme;
}

Value reduce_all(Fold f, const Operand& o) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  Value v = operand_tile(*t, o, name_of(f));
  if (t->is_bad(v)) return {0};
  Operand rest = o;
  // Results that no order changes are made in one step: all lanes, and all warps, combine once.
  const TileType type = t->type_of(v);
  const bool isExact = is_int(type.dtype);
  const bool isWhole = std::all_of(type.shape.begin(), type.shape.end(), [](int64_t n) { return (n & (n - 1)) == 0; });
  if (isExact && isWhole && type.shape.rank() > 1) {
    rest.v = reshape(rest, {type.shape.elements()});
    if (t->is_bad(rest.v)) return {0};
    rest.v = fold_along(*t, f, rest, 0, false, false);
    return t->is_bad(rest.v) ? Value{0} : to_scalar(rest);
  }
  // Innermost dim first: it is the one that lies together in memory and registers.
  for (int axis = t->type_of(v).shape.rank() - 1; axis >= 0; --axis) {
    v = fold_along(*t, f, rest, axis, false, false);
    if (t->is_bad(v)) return {0};
    rest.v = v;
  }
  return to_scalar(rest);
}

Value scan(Fold f, const Operand& o, int axis, bool reverse) {
  Tracer* t = Tracer::current();
  return t ? fold_along(*t, f, o, axis, true, reverse) : Value{0};
}

void open_combiner(const Operand* sources, int count, int axis, bool is_scan, bool reverse, Value* args, SrcLoc loc,
                   uint32_t& handle) {
  for (int i = 0; i < 2 * count; ++i) args[i] = {0};
  Tracer* t = Tracer::current();
  if (!t) return;
  bool ok = true;
  SmallVector<mlir::Value, 2> values;
  SmallVector<uint32_t, 2> ids;
  for (int i = 0; i < count; ++i) {
    const Value v = operand_tile(*t, sources[i], is_scan ? "scan" : "reduce");
    if (t->is_bad(v)) {
      ok = false;
      continue;
    }
    if (ok && !ids.empty() && !(t->type_of(v).shape == t->type_of({ids[0]}).shape)) {
      t->error("tiles combined together must have one shape, found " + t->type_of({ids[0]}).to_string() + " and " +
                   t->type_of(v).to_string(),
               sources[i].loc);
      ok = false;
    }
    ids.push_back(v.id);
    values.push_back(t->info(v).value);
  }
  if (ok) ok = check_axis(*t, axis, t->type_of({ids[0]}), loc);
  Frame& f = t->push(FrameKind::combiner, ok ? combiner_block(*t, values, loc) : new Block, loc);
  handle = f.handle;
  f.broken = !ok;
  f.sources = ids;
  f.axis = axis;
  f.is_scan = is_scan;
  f.reverse = reverse;
  if (!ok) return;
  Block* block = f.block;
  for (int i = 0; i < 2 * count; ++i) args[i] = t->add(block->getArgument(i), t->info({ids[i % count]}).dtype, loc);
}

void close_combiner(const Operand* results, int count, Value* out) {
  for (int i = 0; i < count; ++i) out[i] = {0};
  Tracer* t = Tracer::current();
  if (!t) return;
  while (t->top().kind != FrameKind::combiner)
    t->drop(t->pop());  // constructs are refused inside, so only after errors
  SmallVector<mlir::Value, 2> yields;
  bool ok = !t->top().broken;
  for (int i = 0; ok && i < count; ++i) {
    const DType want = t->info({t->top().sources[i]}).dtype;
    const Value v = coerce(*t, results[i], want, {}, "the combiner's result");
    if (t->is_bad(v))
      ok = false;
    else if (t->type_of(v).shape.rank() > 0) {
      t->error("a combiner works on scalars; its result is " + t->type_of(v).to_string(), results[i].loc);
      ok = false;
    } else
      yields.push_back(t->info(v).value);
  }
  if (ok) ir::YieldOp::create(t->at_end(), t->location(t->top().loc), yields);
  Frame f = t->pop();
  if (!ok) return t->drop(std::move(f));
  SmallVector<mlir::Value, 2> sources;
  for (uint32_t id : f.sources) sources.push_back(t->info({id}).value);
  Operation* op = fold_op(*t, f.is_scan, f.reverse, sources, f.axis, f.loc, f.block);
  for (int i = 0; i < count; ++i) out[i] = t->add(op->getResult(i), t->info({f.sources[i]}).dtype, f.loc);
}

}  // namespace tile::detail
