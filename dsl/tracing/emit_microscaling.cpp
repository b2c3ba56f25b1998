// emit_microscaling.cpp - numbers of few bits with factors: widened, multiplied by their factors, then a product like
// any other. Second operands are turned for that, so that factors stand beside groups in the last dim both ways.
#include "dsl/tracing/emit_at.h"
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
using namespace mlir;

namespace {

bool is_bytes(DType d) { return d == DType::u8; }
bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

std::string size_text(int64_t rows, int64_t columns) { return std::to_string(rows) + "x" + std::to_string(columns); }

/// A tile of bytes, and an element type that holds what they stand for.
bool takes(Tracer& t, const Operand& x, Value v, DType to, const char* verb) {
  if (t.is_bad(v)) return false;
  const TileType type = t.type_of(v);
  if (t.info(v).kind != ValueKind::number || !is_bytes(type.dtype)) {
    t.error(std::string(verb) + " takes u8, found " + type.to_string(), x.loc);
    return false;
  }
  if (to == DType::f16 || to == DType::bf16 || to == DType::f32) return true;
  t.error(std::string(verb) + " gives f16, bf16 or f32, found " + std::string(name(to)), x.loc);
  return false;
}

RankedTensorType tensor(mlir::Value like, Type element) {
  return RankedTensorType::get(mlir::cast<RankedTensorType>(like.getType()).getShape(), element);
}
Type with_element(mlir::Value like, Type element) {
  return isa<RankedTensorType>(like.getType()) ? Type(tensor(like, element)) : element;
}

/// An operand of the product with rows of K numbers: the second one turned.
struct Rows {
  Value values{0}, scales{0};
  TileType given;      ///< as the user wrote it
  DType dtype = DType::u8;
  int64_t rows = 0, k = 0, groups = 0;
  bool packed_along_k = true;
  SrcLoc loc;
  bool is_packed() const { return is_bytes(dtype); }
};

/// Looks at one operand; false after an error.
bool look(Tracer& t, const ScaledInput& in, bool second, Rows& out) {
  const char* which = second ? "second" : "first";
  auto refuse = [&](const std::string& why, const SrcLoc& loc) {
    t.error("dot_scaled: the " + std::string(which) + " operand " + why, loc);
    return false;
  };
  const Value v = operand_tile(t, in.values, "dot_scaled");
  if (t.is_bad(v)) return false;
  out.loc = in.values.loc, out.given = t.type_of(v), out.dtype = out.given.dtype, out.values = v;
  if (out.given.shape.rank() != 2) return refuse("must have 2 dims, found " + out.given.to_string(), out.loc);
  const DType d = out.dtype;
  if (!is_f8(d) && d != DType::f16 && d != DType::bf16 && d != DType::u8)
    return refuse("must be f8e4m3, f8e5m2, f16, bf16 or u8 (two e2m1 numbers), found " + out.given.to_string(),
                  out.loc);
  if (!in.packed_along_k && d != DType::u8)
    return refuse("holds one number per element, found .packed_along_k = false with " + out.given.to_string(), out.loc);
  const int of_k = second ? 0 : 1;
  out.k = out.given.shape[of_k], out.rows = out.given.shape[1 - of_k], out.packed_along_k = in.packed_along_k;
  if (d == DType::u8) (in.packed_along_k ? out.k : out.rows) *= 2;
  if (in.scales.kind == Operand::absent) return true;
  const Value s = operand_tile(t, in.scales, "the factors of dot_scaled");
  if (t.is_bad(s)) return false;
  const TileType type = t.type_of(s);
  const std::string found = ", found " + type.to_string();
  if (type.dtype != DType::u8 && type.dtype != DType::f8e4m3)
    return refuse("has factors of u8 (e8m0) or f8e4m3" + found, in.scales.loc);
  if (type.shape.rank() != 2 || type.shape[0] != out.rows || out.k % type.shape[1] != 0) {
    const bool isTurned = second && type.shape.rank() == 2 && type.shape[0] == out.given.shape[0];
    return refuse("is " + size_text(out.rows, out.k) + (second ? " (columns of the product by K)" : " (rows by K)") +
                      ": its factors are " + std::to_string(out.rows) + "xG, G a divisor of " + std::to_string(out.k) +
                      found + (isTurned ? "; the second operand is K by columns: trans(w)?" : ""),
                  in.scales.loc);
  }
  out.scales = s, out.groups = type.shape[1];
  return true;
}

/// The numbers times their factors, RxK.
Value widened(const Rows& x, bool second, DType to) {
  const At at{x.loc};
  Value v = x.values;
  if (second) v = transpose(at(v));
  v = x.is_packed() ? from_e2m1(at(v), to, x.packed_along_k ? 1 : 0) : convert(at(v), to);
  if (x.groups == 0) return v;
  const Value factors = is_bytes(Tracer::current()->type_of(x.scales).dtype) ? from_e8m0(at(x.scales), to)
                                                                             : convert(at(x.scales), to);
  const Value groups = reshape(at(v), {x.rows, x.groups, x.k / x.groups});
  return reshape(at(at.apply(Op::mul, groups, expand_dims(at(factors), 2))), {x.rows, x.k});
}

}  // namespace

Value from_e2m1(const Operand& bytes, DType to, int axis) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const Value v = operand_tile(*t, bytes, "from_e2m1");
  if (!takes(*t, bytes, v, to, "from_e2m1")) return {0};
  Shape shape = t->type_of(v).shape;
  const int at = axis < 0 ? axis + shape.rank() : axis;
  if (at < 0 || at >= shape.rank()) {
    t->error("axis " + std::to_string(axis) + " is out of range for " + t->type_of(v).to_string(), bytes.loc);
    return {0};
  }
  const mlir::Value x = t->info(v).value;
  const Type type = tensor(x, ir_element_type(t->context(), to));
  auto widen = ir::WidenE2m1Op::create(t->at_end(), t->location(bytes.loc), type, type, x);
  const At here{bytes.loc};
  const Operand halves[] = {
      here(expand_dims(here(t->add(widen.getLow(), to, bytes.loc)), at + 1)),
      here(expand_dims(here(t->add(widen.getHigh(), to, bytes.loc)), at + 1)),
  };
  shape[at] *= 2;
  return reshape(here(cat(halves, 2, at + 1)), shape);
}

Value from_e8m0(const Operand& exponents, DType to) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const Value v = use(*t, exponents);
  if (!takes(*t, exponents, v, to, "from_e8m0")) return {0};
  const mlir::Value x = t->info(v).value;
  const Type type = with_element(x, ir_element_type(t->context(), to));
  return t->add(ir::WidenE8m0Op::create(t->at_end(), t->location(exponents.loc), type, x), to, exponents.loc);
}

Value dot_scaled(const ScaledInput& first, const ScaledInput& second, const Operand& acc) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  Rows a, b;
  const bool good = look(*t, first, false, a);
  if (!look(*t, second, true, b) || !good) return {0};
  auto refuse = [&](const std::string& why) {
    t->error("dot_scaled: " + why + ": " + a.given.to_string() + " and " + b.given.to_string(), a.loc);
    return Value{0};
  };
  if (a.k != b.k)
    return refuse("inner dimensions do not agree, " + std::to_string(a.k) + " and " + std::to_string(b.k) + " numbers");
  if (a.dtype != b.dtype && is_half(a.dtype) && is_half(b.dtype)) return refuse("f16 and bf16 do not mix");
  if (a.groups == 0 && b.groups == 0 && a.dtype == b.dtype && !a.is_packed())
    return dot(first.values, second.values, acc, Prec::ieee);
  const DType to = a.dtype == DType::f16 || b.dtype == DType::f16 ? DType::f16 : DType::bf16;
  const At at{a.loc};
  const Value left = widened(a, false, to), right = widened(b, true, to);
  return dot(at(left), at(transpose(at(right))), acc, Prec::ieee);
}

}  // namespace tile::detail
