// emit_search.cpp - places in an ordered table, by halving what is left of it: every step looks at one element, which
// the table has whatever the steps before found.
#include <algorithm>

#include "dsl/tracing/emit_at.h"
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {

Value bound(const Operand& table, const Operand& o, bool upper) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const std::string verb = upper ? "upper_bound" : "lower_bound";
  const Value list = operand_tile(*t, table, verb.c_str());
  if (t->is_bad(list)) return {0};
  const TileType type = t->type_of(list);
  if (type.shape.rank() != 1 || type.dtype == DType::i1) {
    t->error(verb + " needs a table of one dim, numbers in ascending order, found " + type.to_string(), table.loc);
    return {0};
  }
  const Value x = coerce(*t, o, type.dtype, {}, ("what " + verb + " looks for").c_str());
  if (t->is_bad(x)) return {0};
  const At at{o.loc};
  const int64_t size = type.shape[0];
  Value place = full(t->type_of(x).shape, at(0), DType::i32);
  for (int64_t left = size; left > 0;) {
    const int64_t half = std::max<int64_t>(left / 2, 1);
    const Value found = take(at(list), at(at.apply(Op::add, place, half - 1)), 0);
    const Value is_before = at.apply(upper ? Op::le : Op::lt, found, x);
    place = at.choose(is_before, at.apply(Op::add, place, half), place);
    left -= half;
  }
  t->set_below(place, size + 1);
  return place;
}

}  // namespace tile::detail
