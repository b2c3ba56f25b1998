// emit_saturate.cpp - conversions that stay inside the range of their target, built of comparisons and plain ones.
#include <cmath>

#include "dsl/tracing/emit_at.h"
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
namespace {

Value float_to_integer(const At& at, Value x, DType to) {
  const int bits = bits_of(to);
  const double end = std::ldexp(1.0, is_unsigned(to) ? bits : bits - 1), low = is_unsigned(to) ? 0 : -end;
  if (bits <= 16) {  // f32 holds both ends
    x = at.choose(at.apply(Op::eq, x, x), x, 0.0);
    return convert(at(at.apply(Op::min, at.apply(Op::max, x, low), end - 1)), to);
  }
  const Value inside = at.apply(Op::bit_and, at.apply(Op::gt, x, low), at.apply(Op::lt, x, end));
  Value r = convert(at(at.choose(inside, x, 0.0)), to);
  r = at.choose(at.apply(Op::ge, x, end), largest_integer(to), r);
  return at.choose(at.apply(Op::le, x, low), lowest_integer(to), r);
}

Value integer_to_integer(const At& at, Value x, DType from, DType to) {
  if (lowest_integer(to) > lowest_integer(from)) x = at.apply(Op::max, x, lowest_integer(to));
  if (largest_integer(to) < largest_integer(from)) x = at.apply(Op::min, x, largest_integer(to));
  return convert(at(x), to);
}

}  // namespace

Value saturate(const Operand& o, DType to) {
  Tracer* t = Tracer::current();
  if (!t || !t->known(static_cast<int>(to), kNumDTypes, "DType", o.loc)) return {0};
  const At at{o.loc};
  Value x = use(*t, o);
  if (t->is_bad(x)) return {0};
  DType from = t->info(x).dtype;
  if (t->info(x).kind != ValueKind::number || from == DType::i1 || to == DType::i1) {
    t->error("saturate converts numbers to numbers, found " + t->type_of(x).to_string() + " to " +
                 std::string(name(to)),
             o.loc);
    return {0};
  }
  if (from == to) return x;
  if (is_float(from) && size_of(from) < 4) x = convert(at(x), from = DType::f32);
  if (!is_float(to)) return is_float(from) ? float_to_integer(at, x, to) : integer_to_integer(at, x, from, to);
  if (!is_float(from)) x = convert(at(x), from = size_of(to) < 4 ? DType::f32 : to);
  const double largest = largest_float(to);
  if (largest < largest_float(from)) {  // comparisons with NaN are false: it stays
    x = at.choose(at.apply(Op::gt, x, largest), largest, x);
    x = at.choose(at.apply(Op::lt, x, -largest), -largest, x);
  }
  return convert(at(x), to);
}

}  // namespace tile::detail
