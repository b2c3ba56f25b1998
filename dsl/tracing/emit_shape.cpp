// emit_shape.cpp - broadcasting rules, and the verbs that keep elements but change their shape or order.
#include "dsl/tracing/emit_at.h"
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
using namespace mlir;

Shape shape_of(mlir::Value v) {
  Shape s;
  if (auto tensor = mlir::dyn_cast<RankedTensorType>(v.getType()))
    for (int64_t d : tensor.getShape()) s.push_back(d);
  return s;
}

bool valid_shape(Tracer& t, const Shape& s, SrcLoc loc) {
  constexpr int64_t kLargest = int64_t{1} << 22;
  if (s.rank() > Shape::kMaxRank) {
    t.error("a tile has at most " + std::to_string(Shape::kMaxRank) + " dims, found " + std::to_string(s.rank()), loc);
    return false;
  }
  int64_t elements = 1;
  for (int i = 0; i < s.rank(); ++i) {
    if (s[i] <= 0) {
      t.error("tile dims must be positive, found " + std::to_string(s[i]) + " as dim " + std::to_string(i), loc);
      return false;
    }
    if (s[i] > kLargest || (elements *= s[i]) > kLargest) {
      t.error("a tile has at most " + std::to_string(kLargest) + " elements; this shape is larger", loc);
      return false;
    }
  }
  return true;
}

bool broadcast_shapes(Tracer& t, const Shape& a, const Shape& b, SrcLoc loc, Shape& out) {
  out = a.rank() == 0 ? b : a;
  if (a.rank() == 0 || b.rank() == 0) return true;
  auto text = [](const Shape& s) {
    std::string r;
    for (int64_t d : s) r += (r.empty() ? "" : "x") + std::to_string(d);
    return r;
  };
  if (a.rank() != b.rank()) {
    t.error("operands have different ranks: " + text(a) + " and " + text(b) +
                " (nothing is padded implicitly; .col(), .row() and expand_dims add dims of size 1, squeeze drops them)",
            loc);
    return false;
  }
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) {
      t.error("operands cannot be broadcast: " + text(a) + " and " + text(b) + " differ in dim " + std::to_string(i),
              loc);
      return false;
    }
    out[i] = std::max(a[i], b[i]);
  }
  return true;
}

mlir::Value stretch(Tracer& t, mlir::Value v, const Shape& to, SrcLoc loc) {
  const Shape from = shape_of(v);
  if (from == to) return v;
  OpBuilder& b = t.at_end();
  auto type = RankedTensorType::get(llvm::ArrayRef(to.begin(), to.end()), getElementTypeOrSelf(v.getType()));
  if (from.rank() == 0) return ir::SplatOp::create(b, t.location(loc), type, v);
  return ir::BroadcastOp::create(b, t.location(loc), type, v);
}

static bool resolve_axis(Tracer& t, int& axis, int rank, const TileType& type, SrcLoc loc, const char* what = "axis") {
  const int wanted = axis;
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank) return true;
  t.error(std::string(what) + " " + std::to_string(wanted) + " is out of range for " + type.to_string(), loc);
  return false;
}

namespace {
/// Common start of the shape verbs: the operand as a tile; literals and scalars are refused unless allowed.
struct TileOperand {
  Tracer* t = Tracer::current();
  Value v{0};
  TileType type;
  mlir::Value value;
  SrcLoc loc;
  TileOperand(const Operand& o, const char* verb, bool scalar_ok = false) : loc(o.loc) {
    if (!t) return;
    v = use(*t, o);
    if (t->is_bad(v)) return;
    type = t->type_of(v);
    value = t->info(v).value;
    if (!scalar_ok && type.shape.rank() == 0) {
      t->error(std::string(verb) + " needs a tile, found the scalar " + type.to_string(), loc);
      v = {0};
    }
    if (t->in_combiner()) {
      t->error(std::string(verb) + " cannot be used inside a combiner", loc);
      v = {0};
    }
  }
  explicit operator bool() const { return v.id != 0; }
  Value result(mlir::Value r) const {
    return t->add(r, type.dtype, loc, type.pointer ? ValueKind::pointer : ValueKind::number);
  }
  RankedTensorType like(const Shape& s) const {
    return RankedTensorType::get(llvm::ArrayRef(s.begin(), s.end()), getElementTypeOrSelf(value.getType()));
  }
};
}  // namespace

static Value reshape_to(const TileOperand& x, const Shape& s) {
  if (x.type.shape == s) return x.v;
  OpBuilder& b = x.t->at_end();
  if (s.rank() == 0)
    return x.result(ir::ItemOp::create(b, x.t->location(x.loc), getElementTypeOrSelf(x.value.getType()), x.value));
  if (x.type.shape.rank() == 0) return x.result(ir::SplatOp::create(b, x.t->location(x.loc), x.like(s), x.value));
  return x.result(ir::ReshapeOp::create(b, x.t->location(x.loc), x.like(s), x.value));
}

Value reshape(const Operand& o, const Shape& s) {
  TileOperand x(o, "reshape", true);
  if (!x || !valid_shape(*x.t, s, o.loc)) return {0};
  if (s.elements() != x.type.shape.elements()) {
    x.t->error("reshape keeps the number of elements: " + x.type.to_string() + " has " +
                   std::to_string(x.type.shape.elements()) + ", the new shape " + std::to_string(s.elements()),
               o.loc);
    return {0};
  }
  return reshape_to(x, s);
}

Value expand_dims(const Operand& o, int axis) {
  TileOperand x(o, "expand_dims", true);
  if (!x || !resolve_axis(*x.t, axis, x.type.shape.rank() + 1, x.type, o.loc)) return {0};
  Shape s = x.type.shape;
  s.insert(axis, 1);
  return valid_shape(*x.t, s, o.loc) ? reshape_to(x, s) : Value{0};
}

Value line(const Operand& o, int axis) {
  const char* verb = axis == 0 ? ".row()" : ".col()";
  TileOperand x(o, verb);
  if (!x) return {0};
  if (x.type.shape.rank() == 1) return expand_dims(o, axis);
  x.t->error(std::string(verb) + " makes a " + (axis == 0 ? "1xN" : "Nx1") + " tile of one with 1 dim, found " +
                 x.type.to_string() + "; use expand_dims, or extract and squeeze for a part of it",
             o.loc);
  return {0};
}

Value squeeze(const Operand& o, int axis) {
  TileOperand x(o, "squeeze");
  if (!x || !resolve_axis(*x.t, axis, x.type.shape.rank(), x.type, o.loc)) return {0};
  if (x.type.shape[axis] != 1) {
    x.t->error("squeeze drops dims of size 1; dim " + std::to_string(axis) + " of " + x.type.to_string() +
                   " has size " + std::to_string(x.type.shape[axis]),
               o.loc);
    return {0};
  }
  Shape s = x.type.shape;
  s.erase(axis);
  return reshape_to(x, s);
}

Value to_scalar(const Operand& o) {
  TileOperand x(o, "to_scalar", true);
  if (!x) return {0};
  if (x.type.shape.elements() != 1) {
    x.t->error("to_scalar needs a tile of one element, found " + x.type.to_string(), o.loc);
    return {0};
  }
  return reshape_to(x, {});
}

Value broadcast_to(const Operand& o, const Shape& s) {
  TileOperand x(o, "broadcast_to", true);
  if (!x || !valid_shape(*x.t, s, o.loc)) return {0};
  Shape joint;
  if (!broadcast_shapes(*x.t, x.type.shape, s, o.loc, joint)) return {0};
  if (!(joint == s)) {
    x.t->error("broadcast_to only repeats dims of size 1; " + x.type.to_string() + " does not fit", o.loc);
    return {0};
  }
  return x.result(stretch(*x.t, x.value, s, o.loc));
}

/// {0, 2, 1}
std::string text_of(const Shape& numbers) {
  std::string text = "{";
  for (int64_t n : numbers) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "}";
}

Value permute(const Operand& o, const Shape& order) {
  TileOperand x(o, "permute");
  if (!x) return {0};
  const int rank = x.type.shape.rank();
  llvm::SmallVector<int32_t> permutation;
  Shape s;
  uint32_t seen = 0;
  for (int i = 0; i < rank && i < order.rank(); ++i)
    if (order[i] >= 0 && order[i] < rank)
      permutation.push_back(static_cast<int32_t>(order[i])), seen |= 1u << order[i],
          s.push_back(x.type.shape[static_cast<int>(order[i])]);
  if (order.rank() != rank || seen != (1u << rank) - 1) {
    x.t->error("permute must name each of the " + std::to_string(rank) + " dims of " + x.type.to_string() +
                   " once, found " + text_of(order),
               o.loc);
    return {0};
  }
  return x.result(ir::TransOp::create(x.t->at_end(), x.t->location(o.loc), x.like(s), x.value, permutation));
}

Value transpose(const Operand& o) {
  TileOperand x(o, "trans");
  if (!x) return {0};
  const int rank = x.type.shape.rank();
  if (rank < 2) {
    x.t->error("trans needs at least 2 dims, found " + x.type.to_string(), o.loc);
    return {0};
  }
  Shape order;
  for (int i = 0; i < rank; ++i) order.push_back(i < rank - 2 ? i : 2 * rank - 3 - i);
  return permute(o, order);
}

Value cat(const Operand* parts, int count, int axis) {
  TileOperand first(parts[0], "cat");
  if (!first || !resolve_axis(*first.t, axis, first.type.shape.rank(), first.type, first.loc)) return {0};
  llvm::SmallVector<mlir::Value> values{first.value};
  Shape s = first.type.shape;
  for (int i = 1; i < count; ++i) {
    TileOperand x(parts[i], "cat");
    if (!x) return {0};
    Shape other = x.type.shape;
    bool fits = x.type.dtype == first.type.dtype && x.type.pointer == first.type.pointer && other.rank() == s.rank();
    for (int d = 0; fits && d < s.rank(); ++d) fits = d == axis || other[d] == s[d];
    if (!fits) {
      x.t->error("tiles put together along axis " + std::to_string(axis) +
                     " must agree in everything else: " + first.type.to_string() + " and " + x.type.to_string(),
                 x.loc);
      return {0};
    }
    s[axis] += other[axis];
    values.push_back(x.value);
  }
  if (!valid_shape(*first.t, s, first.loc)) return {0};
  return first.result(ir::CatOp::create(first.t->at_end(), first.t->location(first.loc), first.like(s), values, axis));
}

Value extract(const Operand& o, const Shape& offsets, const Shape& s) {
  TileOperand x(o, "extract");
  if (!x || !valid_shape(*x.t, s, o.loc)) return {0};
  const int rank = x.type.shape.rank();
  llvm::SmallVector<int32_t> at;
  bool fits = offsets.rank() == rank && s.rank() == rank;
  for (int i = 0; fits && i < rank; ++i) {
    fits = offsets[i] >= 0 && s[i] <= x.type.shape[i] && offsets[i] <= x.type.shape[i] - s[i];
    at.push_back(static_cast<int32_t>(offsets[i]));
  }
  if (!fits) {
    x.t->error("extract needs one offset and one size per dim, inside " + x.type.to_string() + ", found offsets " +
                   text_of(offsets) + " and sizes " + text_of(s),
               o.loc);
    return {0};
  }
  return x.result(ir::ExtractOp::create(x.t->at_end(), x.t->location(o.loc), x.like(s), x.value, at));
}

Value insert(const Operand& o, const Operand& box, const Shape& offsets) {
  TileOperand into(o, "insert"), part(box, "insert");
  if (!into || !part) return {0};
  const Shape &whole = into.type.shape, &size = part.type.shape;
  const int rank = whole.rank();
  bool fits = part.type.dtype == into.type.dtype && part.type.pointer == into.type.pointer && size.rank() == rank &&
              offsets.rank() == rank;
  for (int d = 0; fits && d < rank; ++d)
    fits = offsets[d] >= 0 && size[d] <= whole[d] && offsets[d] <= whole[d] - size[d];
  if (!fits) {
    into.t->error("insert needs a part of the same element type and one offset per dim, inside " +
                      into.type.to_string() + ", found " + part.type.to_string() + " and offsets " + text_of(offsets),
                  box.loc);
    return {0};
  }
  OpBuilder& b = into.t->at_end();
  const Location at = into.t->location(o.loc);
  // From the last dim to the first: what lies before and behind, which is as wide as the dims that are whole already.
  mlir::Value grown = part.value;
  Shape shape = size;
  for (int dim = rank - 1; dim >= 0; --dim) {
    llvm::SmallVector<mlir::Value> pieces{grown};
    auto piece = [&](int64_t begin, int64_t end) -> mlir::Value {
      Shape box = shape;
      llvm::SmallVector<int32_t> from;
      for (int d = 0; d < rank; ++d)
        from.push_back(static_cast<int32_t>(d < dim ? offsets[d] : d == dim ? begin : 0));
      box[dim] = end - begin;
      return ir::ExtractOp::create(b, at, into.like(box), into.value, from);
    };
    const int64_t begin = offsets[dim], end = begin + size[dim];
    if (begin > 0) pieces.insert(pieces.begin(), piece(0, begin));
    if (end < whole[dim]) pieces.push_back(piece(end, whole[dim]));
    shape[dim] = whole[dim];
    if (pieces.size() > 1) grown = ir::CatOp::create(b, at, into.like(shape), pieces, dim);
  }
  return into.result(grown);
}

namespace {
/// A dim of size 1 behind the axis, which then has n elements, and goes into the axis.
struct Copies {
  Shape apart, copied, joined;
  Copies(const Shape& shape, int axis, int64_t n) : joined(shape) {
    for (int d = 0; d < shape.rank(); ++d) {
      apart.push_back(shape[d]), copied.push_back(shape[d]);
      if (d == axis) apart.push_back(1), copied.push_back(n);
    }
    joined[axis] *= n;
  }
};
}  // namespace

Value repeat(const Operand& o, int64_t n, int axis) {
  TileOperand x(o, "repeat");
  if (!x || !resolve_axis(*x.t, axis, x.type.shape.rank(), x.type, o.loc)) return {0};
  if (n < 1) return x.t->error("repeat needs a positive number, found " + std::to_string(n), o.loc), Value{0};
  if (x.type.shape[axis] > INT32_MAX / n) return x.t->error("repeat makes too large a tile", o.loc), Value{0};
  const Copies shapes(x.type.shape, axis, n);
  if (!valid_shape(*x.t, shapes.copied, o.loc)) return {0};
  OpBuilder& b = x.t->at_end();
  const Location at = x.t->location(o.loc);
  mlir::Value apart = ir::ReshapeOp::create(b, at, x.like(shapes.apart), x.value);
  mlir::Value copied = ir::BroadcastOp::create(b, at, x.like(shapes.copied), apart);
  return x.result(ir::ReshapeOp::create(b, at, x.like(shapes.joined), copied));
}

Value unpack(const Operand& o, int bits, int axis, DType to, bool is_signed) {
  TileOperand x(o, "unpack");
  if (!x || !resolve_axis(*x.t, axis, x.type.shape.rank(), x.type, o.loc)) return {0};
  Tracer& t = *x.t;
  auto word = dyn_cast<IntegerType>(getElementTypeOrSelf(x.value.getType()));
  if (x.type.pointer || !word || word.getWidth() == 1)
    return t.error("unpack takes integers, found " + x.type.to_string(), o.loc), Value{0};
  const int width = static_cast<int>(word.getWidth());
  if (bits < 1 || bits >= width || width % bits != 0)
    return t.error("unpack takes numbers of bits that divide a word of " + std::to_string(width) + ", found " +
                       std::to_string(bits), o.loc), Value{0};
  const int64_t per = width / bits;
  const Copies shapes(x.type.shape, axis, per);
  if (!valid_shape(t, shapes.copied, o.loc)) return {0};
  Shape places;
  for (int d = 0; d < shapes.copied.rank(); ++d) places.push_back(d == axis + 1 ? per : 1);
  OpBuilder& b = t.at_end();
  const Location at = t.location(o.loc);
  auto constant = [&](int64_t v) {
    auto type = x.like(shapes.copied);
    return arith::ConstantOp::create(b, at, DenseElementsAttr::get(type, b.getIntegerAttr(word, v)));
  };
  // Of unsigned numbers the field comes to the lowest bits, of signed ones to the highest first.
  llvm::SmallVector<Attribute> moved;
  for (int64_t i = 0; i < per; ++i)
    moved.push_back(b.getIntegerAttr(word, is_signed ? width - bits - i * bits : i * bits));
  mlir::Value by = arith::ConstantOp::create(b, at, DenseElementsAttr::get(x.like(places), moved));
  by = ir::BroadcastOp::create(b, at, x.like(shapes.copied), by);
  mlir::Value apart = ir::ReshapeOp::create(b, at, x.like(shapes.apart), x.value);
  mlir::Value v = ir::BroadcastOp::create(b, at, x.like(shapes.copied), apart);
  if (is_signed)
    v = arith::ShRSIOp::create(b, at, arith::ShLIOp::create(b, at, v, by), constant(width - bits));
  else
    v = arith::AndIOp::create(b, at, arith::ShRUIOp::create(b, at, v, by), constant((int64_t{1} << bits) - 1));
  const DType fields = width == 8    ? (is_signed ? DType::i8 : DType::u8)
                       : width == 16 ? (is_signed ? DType::i16 : DType::u16)
                       : width == 32 ? (is_signed ? DType::i32 : DType::u32)
                                     : (is_signed ? DType::i64 : DType::u64);
  const Value number = convert_value(t, t.add(v, fields, o.loc), to, o.loc);
  if (t.is_bad(number)) return {0};
  auto type = RankedTensorType::get(llvm::ArrayRef(shapes.joined.begin(), shapes.joined.end()), ir_element_type(t.context(), to));
  return t.add(ir::ReshapeOp::create(b, at, type, t.info(number).value), to, o.loc);
}

Value shift(const Operand& o, int64_t by, int axis, const Operand& fill) {
  TileOperand x(o, "shift");
  if (!x || !resolve_axis(*x.t, axis, x.type.shape.rank(), x.type, o.loc)) return {0};
  if (x.type.pointer) return x.t->error("shift is for tiles of numbers, found " + x.type.to_string(), o.loc), Value{0};
  Operand scalar = fill;
  if (fill.kind == Operand::absent) scalar.kind = Operand::integer, scalar.i = 0, scalar.loc = o.loc;
  if (is_float(x.type.dtype) && scalar.kind == Operand::integer) scalar.kind = Operand::floating, scalar.f = scalar.i;
  if (x.type.dtype == DType::i1 && fill.kind == Operand::absent) scalar.kind = Operand::boolean, scalar.b = false;
  const Value edge = coerce(*x.t, scalar, x.type.dtype, {}, "the filling of shift");
  if (x.t->is_bad(edge)) return {0};
  if (x.t->type_of(edge).shape.rank() > 0)
    return x.t->error("the filling of shift is a scalar, found " + x.t->type_of(edge).to_string(), fill.loc), Value{0};
  const int64_t size = x.type.shape[axis], far = std::clamp(by, -size, size);
  if (far == 0) return x.v;
  Shape filled = x.type.shape, kept = x.type.shape;
  filled[axis] = std::abs(far), kept[axis] = size - std::abs(far);
  OpBuilder& b = x.t->at_end();
  const Location at = x.t->location(o.loc);
  mlir::Value filling = ir::SplatOp::create(b, at, x.like(filled), x.t->info(edge).value);
  if (kept[axis] == 0) return x.result(filling);
  llvm::SmallVector<int32_t> from(x.type.shape.rank(), 0);
  if (far < 0) from[axis] = static_cast<int32_t>(-far);
  mlir::Value rest = ir::ExtractOp::create(b, at, x.like(kept), x.value, from);
  llvm::SmallVector<mlir::Value> parts{rest, filling};
  if (far > 0) std::swap(parts[0], parts[1]);
  return x.result(ir::CatOp::create(b, at, x.like(x.type.shape), parts, axis));
}

/// Indices of another rank than the tile's: a number of one slice (the axis goes), a list of slices, a table that is
/// looked up at places of any shape. Nullopt: none of these.
static std::optional<Value> take_slices(const TileOperand& x, const TileOperand& i, int axis) {
  const At of{x.loc}, at{i.loc};
  const Shape& shape = x.type.shape;
  const int64_t count = i.type.shape.elements();
  if (shape.rank() == 1) {  // a table
    const Value found = take(of(x.v), at(reshape(at(i.v), Shape{count})), 0);
    return x.t->is_bad(found) ? found : reshape(of(found), i.type.shape);
  }
  if (i.type.shape.rank() > 1) return std::nullopt;
  Shape line, full = shape;
  for (int d = 0; d < shape.rank(); ++d) line.push_back(d == axis ? count : 1);
  full[axis] = count;
  const Value slices = take(of(x.v), at(broadcast_to(at(reshape(at(i.v), line)), full)), axis);
  return i.type.shape.rank() == 1 || x.t->is_bad(slices) ? slices : squeeze(of(slices), axis);
}

Value take(const Operand& o, const Operand& indices, int axis) {
  TileOperand x(o, "take"), i(indices, "take", true);
  if (!x || !i || !resolve_axis(*x.t, axis, x.type.shape.rank(), x.type, o.loc)) return {0};
  Shape s = i.type.shape;
  const bool are_indices = !i.type.pointer && i.type.dtype == DType::i32;
  if (are_indices && !x.type.pointer && s.rank() != x.type.shape.rank())
    if (const auto slices = take_slices(x, i, axis)) return *slices;
  bool fits = !x.type.pointer && s.rank() == x.type.shape.rank();
  for (int d = 0; fits && d < s.rank(); ++d) fits = d == axis || s[d] == x.type.shape[d];
  if (!fits || !are_indices) {
    x.t->error("take needs i32 indices: one number, a list of one dim, or a tile that agrees with " +
                   x.type.to_string() + " outside axis " + std::to_string(axis) + ", found " + i.type.to_string() +
                   (are_indices || i.type.pointer ? "" : "; convert with cast(x, i32)"),
               indices.loc);
    return {0};
  }
  return x.result(ir::TakeOp::create(x.t->at_end(), x.t->location(o.loc), x.like(s), x.value, i.value, axis));
}

Value put(const Operand& o, const Operand& indices, const Operand& values, int axis, const Operand& mask, bool whole) {
  TileOperand into(o, "put"), i(indices, "put");
  if (!into || !i || !resolve_axis(*into.t, axis, into.type.shape.rank(), into.type, o.loc)) return {0};
  Tracer& t = *into.t;
  const TileType& type = into.type;
  if (type.pointer) return t.error("put is for tiles of numbers, found " + type.to_string(), o.loc), Value{0};
  if (i.type.pointer || i.type.dtype != DType::i32) {
    t.error("put needs i32 indices, found " + i.type.to_string() +
                (i.type.pointer ? "" : "; convert with cast(x, i32)"),
            indices.loc);
    return {0};
  }
  const std::string what = "what is put into " + type.to_string();
  const Value v = coerce(t, values, type.dtype, i.type.shape, what.c_str());
  const Value m = coerce(t, mask, DType::i1, {}, "the mask of put");
  if (t.is_bad(v) || (mask.kind != Operand::absent && t.is_bad(m))) return {0};
  Shape joint;
  if (!broadcast_shapes(t, i.type.shape, t.type_of(v).shape, values.loc, joint)) return {0};
  if (m.id && !broadcast_shapes(t, joint, t.type_of(m).shape, mask.loc, joint)) return {0};
  bool fits = joint.rank() == type.shape.rank();
  for (int d = 0; fits && d < joint.rank(); ++d) fits = d == axis || joint[d] == type.shape[d];
  if (!fits) {
    t.error("put needs indices and values that agree with " + type.to_string() + " outside axis " +
                std::to_string(axis) + ", found " + i.type.to_string() + " and " + t.type_of(v).to_string(),
            indices.loc);
    return {0};
  }
  OpBuilder& b = t.at_end();
  const Location at = t.location(o.loc);
  mlir::Value places = stretch(t, i.value, joint, indices.loc);
  if (m.id) {
    mlir::Value nowhere = arith::ConstantOp::create(b, at, DenseElementsAttr::get(cast<ShapedType>(places.getType()), -1));
    places = arith::SelectOp::create(b, at, stretch(t, t.info(m).value, joint, mask.loc), places, nowhere);
  }
  mlir::Value put = stretch(t, t.info(v).value, joint, values.loc);
  return into.result(ir::PutOp::create(b, at, into.value.getType(), put, places, into.value, axis, whole));
}

/// The weights as what sums are made of, with as many values as there are of both. 0 after an error.
static Value weigh(TileOperand& x, const Operand& weights) {
  Tracer& t = *x.t;
  const Value w = use(t, weights);
  if (t.is_bad(w)) return {0};
  const TileType type = t.type_of(w);
  if (type.pointer)
    return t.error("weights are numbers, found " + type.to_string() + "; load() gives what is there", weights.loc),
           Value{0};
  Shape joint;
  if (!broadcast_shapes(t, x.type.shape, type.shape, weights.loc, joint)) return {0};
  x.value = stretch(t, x.value, joint, x.loc);
  const DType d = type_of_sum(type.dtype);
  mlir::Value number = t.info(convert_value(t, w, d, weights.loc)).value;
  return t.add(stretch(t, number, joint, weights.loc), d, weights.loc);
}

Value histogram(const Operand& o, const Operand& weights, int64_t bins) {
  TileOperand x(o, "histogram");
  if (!x || !valid_shape(*x.t, {bins}, o.loc)) return {0};
  if (x.type.pointer || x.type.dtype != DType::i32) {
    x.t->error("histogram counts the values of an i32 tile, found " + x.type.to_string(), o.loc);
    return {0};
  }
  OpBuilder& b = x.t->at_end();
  const Location at = x.t->location(o.loc);
  if (weights.kind == Operand::absent)
    return x.result(ir::HistogramOp::create(b, at, x.like({bins}), x.value, mlir::Value()));
  const Value weight = weigh(x, weights);
  if (x.t->is_bad(weight)) return {0};
  const DType d = x.t->info(weight).dtype;
  auto type = RankedTensorType::get({bins}, ir_element_type(x.t->context(), d));
  return x.t->add(ir::HistogramOp::create(b, at, type, x.value, x.t->info(weight).value), d, o.loc);
}

}  // namespace tile::detail
