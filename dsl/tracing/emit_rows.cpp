// emit_rows.cpp - elements of a tensor one by one: rows chosen by number, boxes under masks. Loads and stores through
// pointers, with bounds as their mask.
#include "dsl/tracing/emit_at.h"
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
namespace {

/// Pointers to elements of a view, and which of them are touched.
struct Lanes {
  Value pointer{0}, mask{0};

  /// Leaves out also those for which a mask of the user's is false; false after an error.
  bool also(Tracer& t, const Operand& given, const At& at) {
    if (given.kind == Operand::absent) return true;
    const Value m = coerce(t, given, DType::i1, {}, "mask");
    if (t.is_bad(m)) return false;
    mask = at.apply(Op::bit_and, mask, m);
    return !t.is_bad(mask);
  }
};

/// Numbers of 32 bits are compared as such: without a sign, with the rows that there are or all that they can name.
Value inside(Tracer& t, Value index, Value end, const At& at) {
  if (t.type_of(index).dtype != DType::i32)
    return at.apply(Op::bit_and, at.apply(Op::ge, index, 0), at.apply(Op::lt, index, end));
  const Value reach = convert(at(at.apply(Op::min, end, int64_t{1} << 31)), DType::u32);
  return at.apply(Op::lt, convert(at(index), DType::u32), reach);
}

/// The elements at indices of all dims, scalars and tiles that broadcast; those inside of the view.
Lanes lanes_at(Tracer& t, Value view, llvm::ArrayRef<Value> indices, const At& at) {
  Lanes lanes{view_pointer(view, at.loc), {0}};
  for (auto [dim, index] : llvm::enumerate(indices)) {
    const Value stride = view_stride(view, static_cast<int>(dim), at.loc);
    lanes.pointer = at.apply(Op::add, lanes.pointer, at.apply(Op::mul, convert(at(index), DType::i64), stride));
  }
  for (auto [dim, index] : llvm::enumerate(indices)) {
    const Value within = inside(t, index, view_dim(view, static_cast<int>(dim), DType::i64, at.loc), at);
    lanes.mask = dim == 0 ? within : at.apply(Op::bit_and, lanes.mask, within);
  }
  return lanes;
}

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

/// The first number and those behind it, as 64 bits: a box's indices of a dim.
Value from(Value first, const Operand& numbers, const At& at) {
  return at.apply(Op::add, convert(numbers, DType::i64), convert(at(first), DType::i64));
}

/// The first `columns` elements from `column` on of the rows.
Lanes lanes_of(Tracer& t, Value view, const Operand& rows, const Operand& column, int64_t columns, const char* verb) {
  const At at{rows.loc};
  const Value r = index_of(t, rows, 1, std::string(verb) + " takes row numbers as an integer tile of 1 dim");
  const Value first = index_of(t, column, 0, std::string("the column ") + verb + " begins at is an integer scalar");
  if (t.is_bad(view) || !t.reachable(view, rows.loc) || t.is_bad(r) || t.is_bad(first)) return {};
  if (!valid_shape(t, {t.type_of(r).shape[0], columns}, rows.loc)) return {};
  const Value row = line(at(r), 1);
  return lanes_at(t, view, {row, from(first, at(line(at(arange(0, columns, rows.loc)), 0)), at)}, at);
}

/// The elements of a box whose tile has the shape.
Lanes lanes_of_box(Tracer& t, Value view, const Operand* offsets, int rank, const Shape& shape, SrcLoc loc) {
  const At at{loc};
  if (t.is_bad(view) || !t.reachable(view, loc)) return {};
  if (!with_dropped_dims(offsets, rank, shape))
    return too_many_dims(t, offsets, rank, std::to_string(shape.rank()), loc), Lanes{};
  const auto kept = std::count_if(offsets, offsets + rank, [](const Operand& o) { return !o.drops_dim; });
  int axis = shape.rank() - static_cast<int>(kept);  // of the tile; dims in front of its first one have extent 1
  llvm::SmallVector<Value, 4> indices;
  for (int dim = 0; dim < rank; ++dim) {
    Value index = index_of(t, offsets[dim], 0, "the offset of a box must be an integer scalar");
    if (t.is_bad(index)) return {};
    if (!offsets[dim].drops_dim && axis++ >= 0) {
      Shape along;
      for (int i = 0; i < shape.rank(); ++i) along.push_back(i + 1 == axis ? shape[i] : 1);
      index = from(index, at(reshape(at(arange(0, shape[axis - 1], loc)), along)), at);
    }
    indices.push_back(index);
  }
  return lanes_at(t, view, indices, at);
}

Value load_lanes(Tracer& t, Value view, const Lanes& lanes, double pad, Cache cache, const At& at) {
  if (pad == 0) return load(at(lanes.pointer), at(lanes.mask), {}, cache);
  const bool whole = !is_float(t.info(view).dtype) && pad == static_cast<double>(static_cast<int64_t>(pad));
  return load(at(lanes.pointer), at(lanes.mask), whole ? at(static_cast<int64_t>(pad)) : at(pad), cache);
}

}  // namespace

Value load_masked(Tracer& t, Value view, const Operand* offsets, int rank, const Shape& shape, double pad,
                  const Operand& mask, Cache cache, SrcLoc loc) {
  const At at{loc};
  if (!valid_shape(t, shape, loc)) return {0};
  Lanes lanes = lanes_of_box(t, view, offsets, rank, shape, loc);
  if (t.is_bad(lanes.pointer) || !lanes.also(t, mask, at)) return {0};
  return load_lanes(t, view, lanes, pad, cache, at);
}

void store_masked(Tracer& t, Value view, const Operand* offsets, int rank, const Operand& value, const Operand& mask,
                  Cache cache, SrcLoc loc) {
  const At at{loc};
  const Value v = coerce(t, value, t.info(view).dtype, {}, "the stored value");
  if (t.is_bad(v)) return;
  Lanes lanes = lanes_of_box(t, view, offsets, rank, t.type_of(v).shape, loc);
  if (t.is_bad(lanes.pointer) || !lanes.also(t, mask, at)) return;
  store(at(lanes.pointer), at(v), at(lanes.mask), cache);
}

Value gather_rows(Value view, const Operand& rows, const Operand& column, int64_t columns, double pad,
                  const Operand& mask, Cache cache) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const At at{rows.loc};
  Lanes lanes = lanes_of(*t, view, rows, column, columns, "gather");
  if (t->is_bad(lanes.pointer) || !lanes.also(*t, mask, at)) return {0};
  return load_lanes(*t, view, lanes, pad, cache, at);
}

void scatter_rows(Value view, const Operand& rows, const Operand& column, const Operand& value, const Operand& mask,
                  Cache cache) {
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
  Lanes lanes = lanes_of(*t, view, rows, column, type.shape[1], "scatter");
  if (t->is_bad(lanes.pointer) || !lanes.also(*t, mask, at)) return;
  store(at(lanes.pointer), value, at(lanes.mask), cache);
}

}  // namespace tile::detail
