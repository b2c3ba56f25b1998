// emit_sort.cpp - sorting along an axis as a bitonic network of exchanges between partners.
#include "dsl/tracing/emit_at.h"
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
namespace {

/// Floats as integers of the same order. Their words count from 0 outwards: those of negative ones are turned round.
struct Keys {
  At at;
  DType given, type;
  bool descending;

  Keys(SrcLoc loc, DType d, bool descending) : at{loc}, given(d), type(d), descending(descending) {
    if (is_float(d)) type = size_of(d) == 2 ? DType::i16 : size_of(d) == 4 ? DType::i32 : DType::i64;
  }
  Value turned(Value word) const {
    const Value sign = at.apply(Op::shr, word, bits_of(type) - 1);
    return at.apply(Op::bit_xor, word, at.apply(Op::bit_and, sign, largest_integer(type)));
  }
  Value inverted(Value key) const {
    const Operand one[] = {at(key)};
    return descending ? elementwise(Op::bit_not, one, 1) : key;
  }
  Value of(Value x) const {
    if (!is_float(given)) return inverted(x);
    const Value isNumber = at.apply(Op::eq, x, x);
    return at.choose(isNumber, inverted(turned(reinterpret(at(x), type))), largest_integer(type));
  }
  Value back(Value key) const {
    key = inverted(key);
    return is_float(given) ? reinterpret(at(turned(key)), given) : key;
  }
};

}  // namespace

Value sort(const Operand& o, int along, bool descending, Value* indices) {
  Tracer* t = Tracer::current();
  if (indices) *indices = {0};
  if (!t) return {0};
  const Value x = use(*t, o);
  if (t->is_bad(x)) return {0};
  const TileType type = t->type_of(x);
  const int rank = type.shape.rank(), axis = along < 0 ? along + rank : along;
  if (axis < 0 || axis >= rank)
    return t->error("axis " + std::to_string(along) + " is out of range for " + type.to_string(), o.loc), Value{0};
  if (type.pointer || type.dtype == DType::i1 || (is_float(type.dtype) && size_of(type.dtype) == 1)) {
    t->error("sort is not defined on " + type.to_string() + "; it takes integers, f16, bf16, f32 and f64", o.loc);
    return {0};
  }

  const int64_t size = type.shape[axis];
  Shape whole = type.shape, line, rest = type.shape, zero;
  for (whole[axis] = 1; whole[axis] < size;) whole[axis] *= 2;
  const int64_t padded = whole[axis];
  for (int d = 0; d < rank; ++d) line.push_back(d == axis ? padded : 1), zero.push_back(0);
  rest[axis] = padded - size;

  const Keys keys(o.loc, type.dtype, descending);
  const At& at = keys.at;
  Value key = keys.of(x);
  if (padded > size) {  // behind everything: the largest key, at places past the end
    const Operand parts[] = {at(key), at(full(rest, at(largest_integer(keys.type)), keys.type))};
    key = cat(parts, 2, axis);
  }
  const Value i = reshape(at(arange(0, padded, o.loc)), line);
  Value place = indices ? broadcast_to(at(i), whole) : Value{0};
  for (int64_t run = 2; run <= padded; run *= 2)
    for (int64_t far = run / 2; far > 0; far /= 2) {
      auto is_clear = [&](int64_t bit) { return at.apply(Op::eq, at.apply(Op::bit_and, i, bit), 0); };
      const Value wants_less = at.apply(Op::bit_xor, at.apply(Op::bit_xor, is_clear(far), is_clear(run)), true);
      const Value partner = broadcast_to(at(at.apply(Op::bit_xor, i, far)), whole);
      const Value other = take(at(key), at(partner), axis);
      if (!indices) {
        key = at.choose(wants_less, at.apply(Op::min, key, other), at.apply(Op::max, key, other));
        continue;
      }
      const Value there = take(at(place), at(partner), axis);
      const Value first = at.apply(Op::bit_and, at.apply(Op::eq, other, key), at.apply(Op::lt, there, place));
      const Value less = at.apply(Op::bit_or, at.apply(Op::lt, other, key), first);
      const Value stays = at.apply(Op::bit_xor, less, wants_less);
      key = at.choose(stays, key, other);
      place = at.choose(stays, place, there);
    }
  auto cut = [&](Value v) { return padded > size ? extract(at(v), zero, type.shape) : v; };
  if (indices) *indices = cut(place);
  return keys.back(cut(key));
}

}  // namespace tile::detail
