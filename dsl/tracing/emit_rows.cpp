// emit_rows.cpp - rows of a tensor chosen by number: loads and stores through pointers, bounds as their mask.
#include "dsl/tracing/emit_at.h"
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
namespace {

struct Lanes {
  Value pointer{0}, mask{0};
};

/// `o`, an integer scalar or tile of one dim as asked, of 32 bits where it has no more; Value{0} after an error.
Value index_of(Tracer& t, const Operand& o, int rank, const std::string& what) {
  const Value v = o.kind == Operand::value ? use(t, o) : literal(o);
  if (t.is_bad(v)) return {0};
  const TileType type = t.type_of(v);
  if (!type.pointer && !is_float(type.dtype) && type.dtype != DType::i1 && type.shape.rank() == rank)
    return convert_value(t, v, size_of(type.dtype) < 4 || type.dtype == DType::i32 ? DType::i32 : DType::i64, o.loc);
  t.error(what + ", found " + type.to_string(), o.loc);
  return {0};
}

/// Pointers to the first `columns` elements from `column` on of the rows, and which lie inside.
Lanes lanes_of(Tracer& t, Value view, const Operand& rows, const Operand& column, int64_t columns, const char* verb) {
  const At at{rows.loc};
  const Value r = index_of(t, rows, 1, std::string(verb) + " takes row numbers as an integer tile of 1 dim");
  const Value first = index_of(t, column, 0, std::string("the column ") + verb + " begins at is an integer scalar");
  if (t.is_bad(view) || !t.reachable(view, rows.loc) || t.is_bad(r) || t.is_bad(first)) return {};
  if (!valid_shape(t, {t.type_of(r).shape[0], columns}, rows.loc)) return {};
  const Value row = line(at(r), 1);
  auto wide = [&](Value index) { return convert(at(index), DType::i64); };
  const Value column_of = at.apply(Op::add, wide(line(at(arange(0, columns, rows.loc)), 0)), wide(first));
  // Numbers of 32 bits are compared as such: without a sign, with the rows that there are or all that they can name.
  auto inside = [&](Value index, int dim) {
    const Value end = view_dim(view, dim, DType::i64, rows.loc);
    if (t.type_of(index).dtype != DType::i32)
      return at.apply(Op::bit_and, at.apply(Op::ge, index, 0), at.apply(Op::lt, index, end));
    const Value reach = convert(at(at.apply(Op::min, end, int64_t{1} << 31)), DType::u32);
    return at.apply(Op::lt, convert(at(index), DType::u32), reach);
  };
  auto offset = [&](Value index, int dim) { return at.apply(Op::mul, wide(index), view_stride(view, dim, rows.loc)); };
  const Value start = at.apply(Op::add, view_pointer(view, rows.loc), offset(row, 0));
  return {at.apply(Op::add, start, offset(column_of, 1)), at.apply(Op::bit_and, inside(row, 0), inside(column_of, 1))};
}

}  // namespace

Value gather_rows(Value view, const Operand& rows, const Operand& column, int64_t columns, double pad, Cache cache) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const At at{rows.loc};
  const Lanes lanes = lanes_of(*t, view, rows, column, columns, "gather");
  if (t->is_bad(lanes.pointer)) return {0};
  if (pad == 0) return load(at(lanes.pointer), at(lanes.mask), {}, cache);
  const bool whole = !is_float(t->info(view).dtype) && pad == static_cast<double>(static_cast<int64_t>(pad));
  return load(at(lanes.pointer), at(lanes.mask), whole ? at(static_cast<int64_t>(pad)) : at(pad), cache);
}

void scatter_rows(Value view, const Operand& rows, const Operand& column, const Operand& value, Cache cache) {
  Tracer* t = Tracer::current();
  if (!t || !t->writable(view, "scatter", rows.loc)) return;
  const Value v = operand_tile(*t, value, "scatter");
  if (t->is_bad(v)) return;
  const TileType type = t->type_of(v);
  if (type.shape.rank() != 2) {
    t->error("scatter writes a tile of rows and columns, found " + type.to_string(), value.loc);
    return;
  }
  const At at{rows.loc};
  const Lanes lanes = lanes_of(*t, view, rows, column, type.shape[1], "scatter");
  if (!t->is_bad(lanes.pointer)) store(at(lanes.pointer), value, at(lanes.mask), cache);
}

}  // namespace tile::detail
