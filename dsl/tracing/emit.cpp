// emit.cpp - literals, conversions and creation of tiles: the type rules every other emit_*.cpp builds on.
#include <fmt/format.h>

#include <cmath>

#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
using namespace mlir;
namespace {

// ---- element types

Type element_type(MLIRContext* ctx, DType d) {
  switch (d) {
    case DType::i1:
      return IntegerType::get(ctx, 1);
    case DType::i8:
    case DType::u8:
      return IntegerType::get(ctx, 8);
    case DType::i16:
    case DType::u16:
      return IntegerType::get(ctx, 16);
    case DType::i32:
    case DType::u32:
      return IntegerType::get(ctx, 32);
    case DType::i64:
    case DType::u64:
      return IntegerType::get(ctx, 64);
    case DType::f8e4m3:
      return Float8E4M3FNType::get(ctx);
    case DType::f8e5m2:
      return Float8E5M2Type::get(ctx);
    case DType::f16:
      return Float16Type::get(ctx);
    case DType::bf16:
      return BFloat16Type::get(ctx);
    case DType::f32:
      return Float32Type::get(ctx);
    case DType::f64:
      return Float64Type::get(ctx);
  }
  return {};
}

}  // namespace

double largest_float(DType d) {
  switch (d) {
    case DType::f8e4m3:
      return 448;
    case DType::f8e5m2:
      return 57344;
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 3.3895313892515355e38;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

uint64_t largest_integer(DType d) { return ~uint64_t{0} >> (64 - bits_of(d) + (is_unsigned(d) ? 0 : 1)); }
int64_t lowest_integer(DType d) { return is_unsigned(d) ? 0 : -static_cast<int64_t>(largest_integer(d)) - 1; }

std::string text_of(const Operand& o) {
  switch (o.kind) {
    case Operand::boolean:
      return o.b ? "true" : "false";
    case Operand::integer:
      return std::to_string(o.i);
    case Operand::uinteger:
      return std::to_string(o.u);
    case Operand::floating:
      return fmt::format("{}", o.f);
    default:
      return "?";
  }
}

Type ir_element_type(MLIRContext* ctx, DType d) { return element_type(ctx, d); }

// ---- literals

/// The literal as an attribute of one element, or null with an error when the type cannot hold it.
TypedAttr literal_attribute(Tracer& t, const Operand& o, DType d) {
  OpBuilder& b = t.at_end();
  Type type = element_type(t.context(), d);
  auto refuse = [&](const std::string& why) -> TypedAttr {
    t.error(why, o.loc);
    return {};
  };
  if (is_float(d)) {
    double v = o.kind == Operand::floating   ? o.f
               : o.kind == Operand::integer  ? static_cast<double>(o.i)
               : o.kind == Operand::uinteger ? static_cast<double>(o.u)
                                             : 0;
    if (o.kind == Operand::boolean)
      return refuse("bool literal used with a tile of " + std::string(name(d)) + "; write a number");
    if (std::isfinite(v) && std::fabs(v) > largest_float(d) &&
        static_cast<float>(std::fabs(v)) > static_cast<float>(largest_float(d)))
      return refuse("literal " + text_of(o) + " is out of range of " + std::string(name(d)) + " (largest " +
                    fmt::format("{}", largest_float(d)) + ")");
    if (std::isinf(v) && d == DType::f8e4m3) return refuse("f8e4m3 has no infinity");
    return b.getFloatAttr(type, v);
  }
  if (o.kind == Operand::floating)
    return refuse("floating-point literal " + text_of(o) + " used with a tile of " + std::string(name(d)) +
                  "; write cast(x, f32) or an integer literal");
  if (d == DType::i1) {
    if (o.kind == Operand::boolean) return b.getBoolAttr(o.b);
    if (o.u > 1) return refuse("literal " + text_of(o) + " is out of range of i1");
    return b.getBoolAttr(o.u == 1);
  }
  if (o.kind == Operand::boolean)
    return refuse("bool literal used with a tile of " + std::string(name(d)) + "; write 0 or 1");
  const int bits = bits_of(d);
  const bool negative = o.kind == Operand::integer && o.i < 0;
  const uint64_t limit = largest_integer(d);
  const bool fits = negative ? o.i >= lowest_integer(d) : o.u <= limit;
  if (!fits)
    return refuse("literal " + text_of(o) + " is out of range of " + std::string(name(d)) + " (" +
                  std::to_string(lowest_integer(d)) + " to " + std::to_string(limit) + ")");
  return IntegerAttr::get(type, APInt(bits, o.u, false, /*implicitTrunc=*/true));
}

DType natural_dtype(const Operand& o) {
  switch (o.kind) {
    case Operand::boolean:
      return DType::i1;
    case Operand::floating:
      return DType::f32;
    case Operand::integer:
      return o.i >= INT32_MIN && o.i <= INT32_MAX ? DType::i32 : DType::i64;
    case Operand::uinteger:
      return o.u <= INT32_MAX    ? DType::i32
             : o.u <= UINT32_MAX ? DType::u32
             : o.u <= INT64_MAX  ? DType::i64
                                 : DType::u64;
    default:
      return DType::f32;
  }
}

Value constant(Tracer& t, const Operand& o, DType d, const Shape& shape) {
  TypedAttr one = literal_attribute(t, o, d);
  if (!one) return {0};
  OpBuilder& b = t.at_end();
  if (shape.rank() > 0)
    one = SplatElementsAttr::get(RankedTensorType::get(llvm::ArrayRef(shape.begin(), shape.end()), one.getType()),
                                 ArrayRef<Attribute>(one));
  return t.add(arith::ConstantOp::create(b, t.location(o.loc), one), d, o.loc);
}

Value literal(const Operand& o) {
  Tracer* t = Tracer::current();
  return t ? constant(*t, o, natural_dtype(o), {}) : Value{0};
}

Value use(Tracer& t, const Operand& o) {
  if (o.kind != Operand::value) return o.kind == Operand::absent ? Value{0} : literal(o);
  if (t.is_bad(o.v) || !t.reachable(o.v, o.loc)) return {0};
  return o.v;
}

Value literal_as(const Operand& o, DType d) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  return coerce(*t, o, d, {}, "value");
}

Value scalar_as(const Operand& o, DType d) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const Value v = coerce(*t, o, d, {}, "scalar");
  if (!t->is_bad(v) && t->type_of(v).shape.rank() > 0) {
    t->error("expected a scalar of " + std::string(name(d)) + ", found " + t->type_of(v).to_string(), o.loc);
    return {0};
  }
  return v;
}

// ---- conversion

bool widens(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::i1 || to == DType::i1) return false;
  if (is_float(from) != is_float(to)) return false;
  if (!is_float(from)) return is_unsigned(from) == is_unsigned(to) && bits_of(from) < bits_of(to);
  return size_of(from) < size_of(to);  // f8 to f16 and bf16 to f32 are exact; f16 and bf16 do not mix
}

static RankedTensorType tensor_of(mlir::Type like, Type element) {
  return RankedTensorType::get(mlir::cast<RankedTensorType>(like).getShape(), element);
}
static Type with_element(Type like, Type element) {
  return isa<RankedTensorType>(like) ? Type(tensor_of(like, element)) : element;
}

Value convert_value(Tracer& t, Value v, DType to, SrcLoc loc) {
  const ValueInfo from = t.info(v);
  if (from.dtype == to) return v;
  OpBuilder& b = t.at_end();
  const Location where = t.location(loc);
  const DType d = from.dtype;
  mlir::Value x = from.value;
  auto as = [&](DType k) { return with_element(x.getType(), element_type(t.context(), k)); };
  auto done = [&](mlir::Value r) { return t.add(r, to, loc); };
  if (to == DType::i1) {  // x != 0
    if (is_f8(d)) x = arith::ExtFOp::create(b, where, as(DType::f32), x);
    Type element = getElementTypeOrSelf(x.getType());
    TypedAttr zero = b.getZeroAttr(x.getType());
    mlir::Value z = arith::ConstantOp::create(b, where, zero);
    if (isa<FloatType>(element)) return done(arith::CmpFOp::create(b, where, arith::CmpFPredicate::UNE, x, z));
    return done(arith::CmpIOp::create(b, where, arith::CmpIPredicate::ne, x, z));
  }
  if (is_float(d) && is_float(to)) {
    if (size_of(d) < size_of(to)) return done(arith::ExtFOp::create(b, where, as(to), x));
    if (size_of(d) > size_of(to)) return done(arith::TruncFOp::create(b, where, as(to), x));
    mlir::Value wide = arith::ExtFOp::create(b, where, as(DType::f32), x);  // f16 <-> bf16, f8 <-> f8: through f32
    return done(arith::TruncFOp::create(b, where, as(to), wide));
  }
  if (is_float(d)) {
    if (is_f8(d)) x = arith::ExtFOp::create(b, where, as(DType::f32), x);
    if (is_unsigned(to)) return done(arith::FPToUIOp::create(b, where, as(to), x));
    return done(arith::FPToSIOp::create(b, where, as(to), x));
  }
  if (is_float(to)) {
    const DType target = is_f8(to) ? DType::f32 : to;
    const bool zero_extend = is_unsigned(d) || d == DType::i1;
    mlir::Value f = zero_extend ? mlir::Value(arith::UIToFPOp::create(b, where, as(target), x))
                                : mlir::Value(arith::SIToFPOp::create(b, where, as(target), x));
    if (target != to) f = arith::TruncFOp::create(b, where, as(to), f);
    return done(f);
  }
  if (bits_of(d) == bits_of(to)) return done(x);  // signedness only
  if (bits_of(d) > bits_of(to)) return done(arith::TruncIOp::create(b, where, as(to), x));
  if (is_unsigned(d) || d == DType::i1) return done(arith::ExtUIOp::create(b, where, as(to), x));
  return done(arith::ExtSIOp::create(b, where, as(to), x));
}

Value convert(const Operand& o, DType to) {
  Tracer* t = Tracer::current();
  if (!t || !t->known(static_cast<int>(to), kNumDTypes, "DType", o.loc)) return {0};
  if (o.kind != Operand::value) {
    // A literal is made as what it is, unless the target can hold it as such.
    const bool direct =
        is_float(to) ? o.kind != Operand::boolean : o.kind != Operand::floating && o.kind != Operand::boolean;
    if (direct) return constant(*t, o, to, {});
  }
  const Value v = use(*t, o);
  if (t->is_bad(v)) return {0};
  if (t->info(v).kind != ValueKind::number) {
    t->error("cast expects numbers, found " + t->type_of(v).to_string(), o.loc);
    return {0};
  }
  return convert_value(*t, v, to, o.loc);
}

Value reinterpret(const Operand& o, DType to) {
  Tracer* t = Tracer::current();
  if (!t || !t->known(static_cast<int>(to), kNumDTypes, "DType", o.loc)) return {0};
  const Value v = use(*t, o);
  if (t->is_bad(v)) return {0};
  const ValueInfo from = t->info(v);
  if (from.kind != ValueKind::number || from.dtype == DType::i1 || to == DType::i1 ||
      size_of(from.dtype) != size_of(to)) {
    t->error("bitcast needs elements of equal size: " + t->type_of(v).to_string() + " to " + std::string(name(to)),
             o.loc);
    return {0};
  }
  Type type = with_element(from.value.getType(), element_type(t->context(), to));
  if (type == from.value.getType()) return t->add(from.value, to, o.loc);
  return t->add(arith::BitcastOp::create(t->at_end(), t->location(o.loc), type, from.value), to, o.loc);
}

Value coerce(Tracer& t, const Operand& o, DType d, const Shape& literal_shape, const char* what) {
  if (o.kind == Operand::absent) return {0};
  if (o.kind != Operand::value) return constant(t, o, d, literal_shape);
  const Value v = use(t, o);
  if (t.is_bad(v)) return {0};
  const ValueInfo& i = t.info(v);
  if (i.kind == ValueKind::number && widens(i.dtype, d)) return convert_value(t, v, d, o.loc);
  const std::string found = ", found " + t.type_of(v).to_string();
  if (i.kind == ValueKind::pointer)
    t.error(std::string(what) + " must be " + std::string(name(d)) + found + ", an address; load() gives what is there",
            o.loc);
  else if (d == DType::i1)
    t.error(std::string(what) + " must be i1" + found + "; compare, e.g. x != 0", o.loc);
  else
    t.error(std::string(what) + " must be " + std::string(name(d)) + " (or narrower, of the same kind)" + found +
                "; convert with cast(x, " + std::string(name(d)) + ")",
            o.loc);
  return {0};
}

// ---- creation

Value program_id(int axis, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  if (axis < 0 || axis > 2)
    return t->error("program_id takes axis 0, 1 or 2, found " + std::to_string(axis), loc), Value{0};
  return t->add(ir::ProgramIdOp::create(t->at_end(), t->location(loc), axis), DType::i32, loc);
}
Value num_programs(int axis, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  if (axis < 0 || axis > 2)
    return t->error("num_programs takes axis 0, 1 or 2, found " + std::to_string(axis), loc), Value{0};
  return t->add(ir::NumProgramsOp::create(t->at_end(), t->location(loc), axis), DType::i32, loc);
}
Value arange(int64_t low, int64_t high, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  if (high <= low || low < INT32_MIN || high - 1 > INT32_MAX)
    return t->error("arange needs low < high, both i32; found " + std::to_string(low) + " and " + std::to_string(high),
                    loc),
           Value{0};
  if (!valid_shape(*t, {high - low}, loc)) return {0};
  auto type = RankedTensorType::get({high - low}, t->at_end().getI32Type());
  return t->add(ir::IotaOp::create(t->at_end(), t->location(loc), type, low), DType::i32, loc);
}
Value full(const Shape& s, const Operand& o, DType d) {
  Tracer* t = Tracer::current();
  if (!t || !t->known(static_cast<int>(d), kNumDTypes, "DType", o.loc) || !valid_shape(*t, s, o.loc)) return {0};
  if (o.kind != Operand::value) return constant(*t, o, d, s);
  const Value v = scalar_as(o, d);
  if (t->is_bad(v)) return {0};
  return t->add(stretch(*t, t->info(v).value, s, o.loc), d, o.loc);
}

}  // namespace tile::detail
