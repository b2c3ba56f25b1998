// emit_rounding.cpp - conversions to fewer bits that do not round to nearest. The nearest number is one of the two that
// enclose the value; where it lies on the wrong side, the other one is its neighbour, one up or down in its bits.
#include <cmath>

#include "dsl/tracing/emit_at.h"
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
namespace {

DType word_of(DType d) {
  switch (size_of(d)) {
    case 1:
      return DType::u8;
    case 2:
      return DType::u16;
    case 4:
      return DType::u32;
    default:
      return DType::u64;
  }
}
/// Whether every `from`, an integer, is a `to`, a float.
bool holds(DType to, DType from) {
  const int digits = to == DType::f64 ? 53 : to == DType::f32 ? 24 : to == DType::f16 ? 11 : to == DType::bf16 ? 8 : 3;
  return bits_of(from) - (is_unsigned(from) ? 0 : 1) <= digits && (to != DType::f8e4m3 || bits_of(from) <= 4);
}

/// Rounds floats of `from` to the narrower float type `to`.
struct Rounder {
  At at;
  DType from, to;

  Value wide(Value narrow) const { return convert(at(narrow), from); }
  Value magnitude(Value x) const { return at.apply(Op::abs, x); }
  Value word(Value narrow) const { return reinterpret(at(narrow), word_of(to)); }
  Value narrow(Value word) const { return reinterpret(at(word), to); }
  /// f8 has its largest number where others have infinities.
  Value inside(Value x) const {
    if (size_of(to) > 1) return x;
    x = at.choose(at.apply(Op::gt, x, largest_float(to)), largest_float(to), x);
    return at.choose(at.apply(Op::lt, x, -largest_float(to)), -largest_float(to), x);
  }
  Value toward_zero(Value x) const {
    x = inside(x);
    const Value nearest = convert(at(x), to), bits = word(nearest);
    const Value beyond = at.apply(Op::gt, magnitude(wide(nearest)), magnitude(x));
    return narrow(at.choose(beyond, at.apply(Op::sub, bits, 1), bits));
  }
  /// The largest number not above x (down), or the smallest not below it.
  Value toward(bool down, Value x) const {
    x = inside(x);
    const Value nearest = convert(at(x), to), bits = word(nearest);
    const Value beyond = at.apply(down ? Op::gt : Op::lt, wide(nearest), x);
    // Words count away from 0. A zero on the wrong side has the sign of x: the step away from it is the right one.
    const Value negative = at.apply(Op::ne, at.apply(Op::shr, bits, bits_of(to) - 1), 0);
    const Value more = at.apply(Op::add, bits, 1), less = at.apply(Op::sub, bits, 1);
    const Value moved = down ? at.choose(negative, more, less) : at.choose(negative, less, more);
    return narrow(at.choose(beyond, moved, bits));
  }
  /// Away from zero with the probability that makes the mean x; `bits` are 32 random ones.
  Value randomly(Value x, Value bits) const {
    const Value low = toward_zero(x), below = magnitude(wide(low));
    const Value high = narrow(at.apply(Op::add, word(low), 1));
    const Value gap = at.apply(Op::sub, magnitude(wide(high)), below);
    const Value rest = at.apply(Op::sub, magnitude(inside(x)), below);
    const Value chance = at.apply(Op::mul, convert(at(at.apply(Op::shr, bits, 8)), from), 0x1p-24);
    // Comparisons with what lies beyond the largest number, or next to a NaN, are false.
    return at.choose(at.apply(Op::lt, at.apply(Op::mul, chance, gap), rest), high, low);
  }
};

/// The operand as a number, f16, bf16 and f8 as f32; Value{0} after an error.
Value source(Tracer& t, const Operand& o, DType to, const char* verb) {
  if (!t.known(static_cast<int>(to), kNumDTypes, "DType", o.loc)) return {0};
  const Value x = o.kind == Operand::value ? use(t, o) : literal(o);
  if (t.is_bad(x)) return {0};
  if (t.info(x).kind == ValueKind::number) return x;
  t.error(std::string(verb) + " to " + std::string(name(to)) + " expects numbers, found " + t.type_of(x).to_string(),
          o.loc);
  return {0};
}

}  // namespace

Value convert_rounding(const Operand& o, DType to, Rounding rounding) {
  Tracer* t = Tracer::current();
  if (!t || !t->known(static_cast<int>(rounding), 4, "Rounding", o.loc)) return {0};
  const At at{o.loc};
  Value x = source(*t, o, to, "cast");
  if (t->is_bad(x)) return {0};
  DType from = t->info(x).dtype;
  if (from == DType::i1 || to == DType::i1 || (!is_float(from) && !is_float(to)) || widens(from, to))
    return convert(at(x), to);
  if (!is_float(to)) {  // to whole numbers
    if (size_of(from) == 1) x = convert(at(x), DType::f32);
    constexpr Op whole[] = {Op::rint, Op::trunc, Op::ceil, Op::floor};
    return convert(at(at.apply(whole[static_cast<int>(rounding)], x)), to);
  }
  if (!is_float(from)) {
    if (rounding == Rounding::nearest || holds(to, from)) return convert(at(x), to);
    if (bits_of(from) == 64) {
      t->error("cast of " + t->type_of(x).to_string() + " to " + std::string(name(to)) +
                   " rounds to nearest only; other roundings take integers of up to 32 bits",
               o.loc);
      return {0};
    }
    x = convert(at(x), from = DType::f64);
    if (to == from) return x;
  }
  if (rounding == Rounding::nearest) return convert(at(x), to);
  if (size_of(from) < 4) x = convert(at(x), from = DType::f32);
  const Rounder round{at, from, to};
  return rounding == Rounding::toward_zero ? round.toward_zero(x) : round.toward(rounding == Rounding::down, x);
}

Value convert_randomly(const Operand& o, DType to, const Operand& bits) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const At at{o.loc};
  Value x = source(*t, o, to, "cast_stochastic");
  const Value random = coerce(*t, bits, DType::u32, {}, "the random bits of cast_stochastic");
  if (t->is_bad(x) || t->is_bad(random)) return {0};
  DType from = t->info(x).dtype;
  if (!is_float(from) || !is_float(to) || size_of(to) >= size_of(from)) {
    t->error("cast_stochastic rounds floats to floats of fewer bits, found " + t->type_of(x).to_string() + " to " +
                 std::string(name(to)),
             o.loc);
    return {0};
  }
  if (size_of(from) < 4) x = convert(at(x), from = DType::f32);
  return Rounder{at, from, to}.randomly(x, random);
}

}  // namespace tile::detail
