// emit_elementwise.cpp - operators and element by element functions: one switch generated from elementwise.def.
#include "dsl/tracing/composed_functions.h"
#include "dsl/tracing/emit_rules.h"
#include "mlir/IR/Matchers.h"

namespace tile::detail {
using namespace mlir;
namespace {

// What a column of elementwise.def may name besides an op of arith or math.
struct none {};
struct Identity {
  static mlir::Value make(OpBuilder&, Location, Args a) { return a[0]; }
};
mlir::Value splat_integer(OpBuilder& b, Location loc, Type type, int64_t v) {
  return arith::ConstantOp::create(
      b, loc,
      isa<RankedTensorType>(type)
          ? TypedAttr(SplatElementsAttr::get(cast<RankedTensorType>(type),
                                             ArrayRef<Attribute>(b.getIntegerAttr(getElementTypeOrSelf(type), v))))
          : TypedAttr(b.getIntegerAttr(type, v)));
}
struct Negate {
  static mlir::Value make(OpBuilder& b, Location loc, Args a) {
    return arith::SubIOp::create(b, loc, splat_integer(b, loc, a[0].getType(), 0), a[0]);
  }
};
struct FlipBits {
  static mlir::Value make(OpBuilder& b, Location loc, Args a) {
    return arith::XOrIOp::create(b, loc, a[0], splat_integer(b, loc, a[0].getType(), -1));
  }
};
struct IsNan {
  static mlir::Value make(OpBuilder& b, Location loc, Args a) { return math::IsNaNOp::create(b, loc, a[0]); }
};
struct IsInf {
  static mlir::Value make(OpBuilder& b, Location loc, Args a) { return math::IsInfOp::create(b, loc, a[0]); }
};
struct IsFinite {
  static mlir::Value make(OpBuilder& b, Location loc, Args a) { return math::IsFiniteOp::create(b, loc, a[0]); }
};
struct CeilDivide {  // friendlier to divisibility facts than the signed op
  static mlir::Value make(OpBuilder& b, Location loc, Args a) { return arith::CeilDivUIOp::create(b, loc, a[0], a[1]); }
};
/// Counts of what may be less than nothing (`n - first`, behind the end): none. Then the unsigned op, of a dividend that
/// is not negative whatever it is folded to; simplify_masks drops the maximum where it is known not to be anyway.
struct SignedCeilDivide {
  static mlir::Value make(OpBuilder& b, Location loc, Args a) {
    const mlir::Value none = splat_integer(b, loc, a[0].getType(), 0);
    return arith::CeilDivUIOp::create(b, loc, b.createOrFold<arith::MaxSIOp>(loc, a[0], none), a[1]);
  }
};
struct MulHigh {
  static mlir::Value make(OpBuilder& b, Location loc, Args a) {
    return arith::MulUIExtendedOp::create(b, loc, a[0], a[1]).getHigh();
  }
};
struct SignedMulHigh {
  static mlir::Value make(OpBuilder& b, Location loc, Args a) {
    return arith::MulSIExtendedOp::create(b, loc, a[0], a[1]).getHigh();
  }
};
template <arith::CmpFPredicate P>
struct FloatIs {
  static mlir::Value make(OpBuilder& b, Location loc, Args a) { return arith::CmpFOp::create(b, loc, P, a[0], a[1]); }
};
template <arith::CmpIPredicate P>
struct IntIs {
  static mlir::Value make(OpBuilder& b, Location loc, Args a) { return arith::CmpIOp::create(b, loc, P, a[0], a[1]); }
};

/// Null when the column says `none`.
template <class Column>
mlir::Value build(OpBuilder& b, Location loc, Args a) {
  if constexpr (std::is_same_v<Column, none>) {
    return {};
  } else if constexpr (requires { Column::make(b, loc, a); }) {
    return Column::make(b, loc, a);
  } else {
    OperationState state(loc, Column::getOperationName());
    state.addOperands(a);
    state.addTypes(a[0].getType());
    return b.create(state)->getResult(0);
  }
}
template <class F, class S, class U, class B>
mlir::Value build_row(DType d, OpBuilder& b, Location loc, Args a) {
  if (is_float(d)) return build<F>(b, loc, a);
  if (d == DType::i1) return build<B>(b, loc, a);
  return is_unsigned(d) ? build<U>(b, loc, a) : build<S>(b, loc, a);
}

const char* spelling(Op op) {
  switch (op) {
#define TILE_UNARY_OPERATOR(name, symbol, ...) \
  case Op::name:                               \
    return #symbol;
#define TILE_UNARY(name, ...) \
  case Op::name:              \
    return #name;
#define TILE_PREDICATE(name, ...) \
  case Op::name:                  \
    return #name;
#define TILE_BINARY_OPERATOR(name, symbol, ...) \
  case Op::name:                                \
    return #symbol;
#define TILE_BINARY(name, ...) \
  case Op::name:               \
    return #name;
#define TILE_COMPARISON(name, symbol, ...) \
  case Op::name:                           \
    return #symbol;
#define TILE_TERNARY(name, ...) \
  case Op::name:                \
    return #name;
#include "dsl/elementwise.def"
  }
  return "?";
}

bool gives_i1(Op op) {
  switch (op) {
#define TILE_PREDICATE(name, ...) \
  case Op::name:                  \
    return true;
#define TILE_COMPARISON(name, ...) \
  case Op::name:                   \
    return true;
#include "dsl/elementwise.def"
    default:
      return false;
  }
}

mlir::Value build_op(Op op, DType d, OpBuilder& b, Location loc, Args a) {
  switch (op) {
#define TILE_UNARY_OPERATOR(name, symbol, f, s, u, bo, ...) \
  case Op::name:                                            \
    return build_row<f, s, u, bo>(d, b, loc, a);
#define TILE_UNARY(name, f, s, u, bo, ...) \
  case Op::name:                           \
    return build_row<f, s, u, bo>(d, b, loc, a);
#define TILE_PREDICATE(name, f, s, u, bo, ...) \
  case Op::name:                               \
    return build_row<f, s, u, bo>(d, b, loc, a);
#define TILE_BINARY_OPERATOR(name, symbol, f, s, u, bo, ...) \
  case Op::name:                                             \
    return build_row<f, s, u, bo>(d, b, loc, a);
#define TILE_BINARY(name, f, s, u, bo, ...) \
  case Op::name:                            \
    return build_row<f, s, u, bo>(d, b, loc, a);
#define TILE_COMPARISON(name, symbol, f, s, u, bo, ...) \
  case Op::name:                                        \
    return build_row<f, s, u, bo>(d, b, loc, a);
#define TILE_TERNARY(name, f, s, u, bo, ...) \
  case Op::name:                             \
    return build_row<f, s, u, bo>(d, b, loc, a);
#include "dsl/elementwise.def"
  }
  return {};
}

/// The element type two operands meet in, or nothing: widening inside a kind only.
bool common_dtype(DType a, DType b, DType& out) {
  if (widens(a, b)) return out = b, true;
  if (widens(b, a)) return out = a, true;
  return false;
}

std::string mixing_hint(DType a, DType b) {
  if (is_float(a) != is_float(b)) return "convert one side with cast(x, dtype)";
  if (is_float(a)) return "neither holds every value of the other; convert both, e.g. to f32";
  if (a == DType::i1 || b == DType::i1) return "an i1 is not a number; use where(condition, a, b) or cast it";
  return "signed and unsigned do not mix; convert one side with cast(x, dtype)";
}

/// `Tile m = 0;`, in front of a loop or in one, which is a block without an op until it ends: literals of an expression
/// are no values.
bool is_number_of_tile(mlir::Value v) {
  auto arg = dyn_cast<BlockArgument>(v);
  const bool is_carried = arg && !arg.getOwner()->getParentOp();
  return isa<IntegerType>(v.getType()) && (is_carried || matchPattern(v, m_Constant()));
}

/// where(c, 1, 0): no tile told the literals their type.
bool chooses_literals(mlir::Value v) {
  auto choice = v.getDefiningOp<arith::SelectOp>();
  auto is_constant = [](mlir::Value x) {
    while (auto splat = x.getDefiningOp<ir::SplatOp>()) x = splat->getOperand(0);
    return x.getDefiningOp<arith::ConstantOp>() != nullptr;
  };
  return choice && is_constant(choice.getTrueValue()) && is_constant(choice.getFalseValue());
}

struct Operands {
  SmallVector<mlir::Value, 3> values;
  DType dtype = DType::f32;
};

/// Brings number operands to one element type and one shape.
bool unify(Tracer& t, Op op, const Operand* args, int count, const char* verb, Operands& out) {
  bool first = true;
  const Operand* decided_by = nullptr;
  Shape shape;
  SmallVector<Value, 3> ids(count, Value{0});
  bool ok = true;
  for (int i = 0; i < count; ++i) {
    if (args[i].kind != Operand::value) continue;
    ids[i] = use(t, args[i]);
    if (t.is_bad(ids[i])) {
      ok = false;
      continue;
    }
    const TileType type = t.type_of(ids[i]);
    DType d = type.dtype;
    if (first)
      out.dtype = d, decided_by = &args[i];
    else if (!common_dtype(out.dtype, d, out.dtype)) {
      std::string hint = mixing_hint(out.dtype, d);
      for (const Value v : {use(t, *decided_by), ids[i]})
        if (chooses_literals(t.info(v).value))
          hint += " (where() of two literals is " + std::string(name(t.info(v).dtype)) + " on its own)";
      const Value decided = use(t, *decided_by);
      if (is_float(d) && type.shape.rank() > 0 && is_number_of_tile(t.info(decided).value))
        hint += "; a tile that a loop adds to begins as one, e.g. zeros_like(x)";
      t.error("'" + std::string(verb) + "' mixes " + t.type_of(decided).to_string() + " and " + type.to_string() +
                  "; " + hint,
              args[0].loc);
      return false;
    }
    Shape joint;
    if (!broadcast_shapes(t, shape, type.shape, args[0].loc, joint)) return false;
    shape = joint;
    first = false;
  }
  if (!ok) return false;
  if (first) {  // literals only
    out.dtype = natural_dtype(args[0]);
    for (int i = 1; i < count; ++i) {
      const DType d = natural_dtype(args[i]);
      if (is_float(d) || !is_float(out.dtype))
        out.dtype = is_float(d) == is_float(out.dtype) ? std::max(out.dtype, d) : d;
    }
  }
  for (int i = 0; i < count; ++i) {
    if (args[i].kind != Operand::value) {
      const Value c = constant(t, args[i], out.dtype, shape);
      if (c.id == 0) return false;
      out.values.push_back(t.info(c).value);
    } else {
      const Value v = convert_value(t, ids[i], out.dtype, args[i].loc);
      out.values.push_back(stretch(t, t.info(v).value, shape, args[i].loc));
    }
  }
  return true;
}

bool is_pointer(Tracer& t, const Operand& o) {
  return o.kind == Operand::value && !t.is_bad(o.v) && t.info(o.v).kind == ValueKind::pointer;
}

/// pointer + integer, integer + pointer, pointer - integer.
Value pointer_arithmetic(Tracer& t, Op op, const Operand& a, const Operand& b) {
  const bool pointer_first = is_pointer(t, a);
  const Operand& pointer = pointer_first ? a : b;
  const Operand& offset = pointer_first ? b : a;
  if (is_pointer(t, offset) || (op != Op::add && !(op == Op::sub && pointer_first))) {
    t.error("'" + std::string(spelling(op)) +
                "' is not defined on pointers: only pointer + integer and pointer - integer are",
            a.loc);
    return {0};
  }
  const Value p = use(t, pointer);
  Value o = offset.kind == Operand::value
                ? use(t, offset)
                : constant(t, offset, natural_dtype(offset) == DType::f32 ? DType::i32 : natural_dtype(offset), {});
  if (t.is_bad(p) || t.is_bad(o)) return {0};
  if (const DType d = t.info(o).dtype; is_float(d) || d == DType::i1) {
    t.error("a pointer offset counts elements and must be an integer, found " + t.type_of(o).to_string(), offset.loc);
    return {0};
  }
  // ptr_add reads offsets as signed i32 or i64.
  const DType d = t.info(o).dtype;
  o = convert_value(t, o, d == DType::i64 || d == DType::u32 || d == DType::u64 ? DType::i64 : DType::i32, offset.loc);
  Shape shape;
  if (!broadcast_shapes(t, t.type_of(p).shape, t.type_of(o).shape, a.loc, shape)) return {0};
  OpBuilder& builder = t.at_end();
  const Location loc = t.location(a.loc);
  mlir::Value off = stretch(t, t.info(o).value, shape, offset.loc);
  if (op == Op::sub) off = Negate::make(builder, loc, {off});
  const DType element = t.info(p).dtype;
  mlir::Value base = stretch(t, t.info(p).value, shape, pointer.loc);
  return t.add(ir::PtrAddOp::create(builder, loc, base.getType(), base, off), element, a.loc, ValueKind::pointer);
}

/// Why an operation on integers makes no sense with this literal on its right; empty: it does.
std::string literal_fault(Op op, const Operand& right, DType dtype) {
  if (is_float(dtype) || (right.kind != Operand::integer && right.kind != Operand::uinteger)) return "";
  const int bits = bits_of(dtype);
  const bool negative = right.kind == Operand::integer && right.i < 0;
  if ((op == Op::shl || op == Op::shr) && (negative || right.u >= static_cast<uint64_t>(bits)))
    return "'" + std::string(spelling(op)) + "' moves the bits of " + std::string(name(dtype)) + " by 0 to " +
           std::to_string(bits - 1) + ", found " + text_of(right);
  if ((op == Op::div || op == Op::rem || op == Op::cdiv || op == Op::floor_div || op == Op::floor_mod) && right.u == 0)
    return "'" + std::string(spelling(op)) + "' of " + std::string(name(dtype)) + " by the literal 0";
  return "";
}

/// Counts of shifts are numbers below the width, of either sign: those beside an unsigned (signed) value become
/// unsigned (signed).
Operand count_beside(Tracer& t, const Operand& shifted, const Operand& count) {
  if (shifted.kind != Operand::value || count.kind != Operand::value) return count;
  const Value from = use(t, count), beside = use(t, shifted);
  if (t.is_bad(from) || t.is_bad(beside)) return count;
  auto is_integer = [](DType d) { return !is_float(d) && d != DType::i1; };
  const DType d = t.info(from).dtype, like = t.info(beside).dtype;
  if (!is_integer(d) || !is_integer(like)) return count;
  constexpr int kApart = static_cast<int>(DType::u8) - static_cast<int>(DType::i8);
  const bool is_unsigned = d >= DType::u8, wants_unsigned = like >= DType::u8;
  if (is_unsigned == wants_unsigned) return count;
  Operand same = count;
  const auto converted = static_cast<DType>(static_cast<int>(d) + (wants_unsigned ? kApart : -kApart));
  same.v = convert_value(t, from, converted, count.loc);
  return same;
}

void allow_contraction(mlir::Value v) {
  Operation* op = v.getDefiningOp();
  if (auto fast = dyn_cast_if_present<arith::ArithFastMathInterface>(op))
    op->setAttr(fast.getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(op->getContext(), arith::FastMathFlags::contract));
}

}  // namespace

Value elementwise(Op op, const Operand* args, int count) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const SrcLoc loc = args[0].loc;
  for (int i = 0; i < count; ++i)
    if (is_pointer(*t, args[i])) {
      if (count == 2) return pointer_arithmetic(*t, op, args[0], args[1]);
      t->error(
          "'" + std::string(spelling(op)) + "' is not defined on pointers, found " + t->type_of(args[i].v).to_string(),
          loc);
      return {0};
    }
  Operands o;
  Operand sides[2];
  if (op == Op::shl || op == Op::shr)
    sides[0] = args[0], sides[1] = count_beside(*t, args[0], args[1]), args = sides;
  if (!unify(*t, op, args, count, spelling(op), o)) return {0};
  if (size_of(o.dtype) == 1 && is_float(o.dtype)) {  // a storage format: no target computes in it
    t->error("'" + std::string(spelling(op)) + "' is not defined on " + std::string(name(o.dtype)) +
                 "; compute in a wider type, e.g. cast(x, f32)",
             loc);
    return {0};
  }
  if (count == 2)
    if (const std::string fault = literal_fault(op, args[1], o.dtype); !fault.empty()) {
      t->error(fault, loc);
      return {0};
    }
  mlir::Value result = build_op(op, o.dtype, t->at_end(), t->location(loc), o.values);
  if (!result) {
    const TileType type{o.dtype, false, shape_of(o.values[0])};
    std::string message = "'" + std::string(spelling(op)) + "' is not defined on " + type.to_string();
    if (op == Op::logical_not)
      message += "; it takes i1, use ~x for bits or x == 0";
    else if (o.dtype == DType::i1)
      message += "; an i1 is not a number, cast it first";
    else if (is_float(o.dtype))
      message += "; it takes integers";
    else
      message += "; it takes floats, convert with cast(x, f32)";
    t->error(message, loc);
    return {0};
  }
  allow_contraction(result);
  return t->add(result, gives_i1(op) ? DType::i1 : o.dtype, loc);
}

Value select(const Operand& condition, const Operand& a, const Operand& b) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const SrcLoc loc = condition.loc;
  const Value c = coerce(*t, condition, DType::i1, {}, "the condition of where");
  ValueKind kind = ValueKind::number;
  Operands o;
  if (is_pointer(*t, a) && is_pointer(*t, b)) {
    kind = ValueKind::pointer;
    const Value x = use(*t, a), y = use(*t, b);
    if (t->is_bad(x) || t->is_bad(y)) return {0};
    if (t->info(x).dtype != t->info(y).dtype) {
      t->error("where needs pointers to one element type, found " + t->type_of(x).to_string() + " and " +
                   t->type_of(y).to_string(),
               loc);
      return {0};
    }
    Shape joint;
    if (!broadcast_shapes(*t, t->type_of(x).shape, t->type_of(y).shape, loc, joint)) return {0};
    o.dtype = t->info(x).dtype;
    o.values = {stretch(*t, t->info(x).value, joint, a.loc), stretch(*t, t->info(y).value, joint, b.loc)};
  } else {
    const Operand pair[] = {a, b};
    for (const Operand& p : pair)
      if (is_pointer(*t, p)) return t->error("where cannot choose between a pointer and a number", loc), Value{0};
    if (!unify(*t, Op::add, pair, 2, "where", o)) return {0};
  }
  if (t->is_bad(c)) return {0};
  Shape shape;
  if (!broadcast_shapes(*t, t->type_of(c).shape, shape_of(o.values[0]), loc, shape)) return {0};
  mlir::Value k = stretch(*t, t->info(c).value, shape, loc);
  mlir::Value x = stretch(*t, o.values[0], shape, a.loc), y = stretch(*t, o.values[1], shape, b.loc);
  return t->add(arith::SelectOp::create(t->at_end(), t->location(loc), k, x, y), o.dtype, loc, kind);
}

}  // namespace tile::detail
