// emit_memory.cpp - loads, stores and atomics through pointers and views.
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
using namespace mlir;
namespace {

bool outside_combiner(Tracer& t, const char* verb, SrcLoc loc) {
  if (!t.in_combiner()) return true;
  t.error(std::string(verb) + " cannot be used inside a combiner", loc);
  return false;
}

ir::CacheHintAttr cache_attr(Tracer& t, Cache c, SrcLoc loc) {
  static_assert(int(Cache::none) == int(ir::CacheHint::none) &&
                int(Cache::streaming) == int(ir::CacheHint::streaming) &&
                int(Cache::last) == int(ir::CacheHint::last) && int(Cache::volatile_) == int(ir::CacheHint::volatile_));
  if (!t.known(static_cast<int>(c), 4, "Cache", loc)) c = Cache::none;
  return ir::CacheHintAttr::get(t.context(), static_cast<ir::CacheHint>(c));
}

/// A pointer access with its lanes brought to one shape. Values and masks broadcast against the pointers and back.
struct Access {
  mlir::Value pointer, mask;
  DType dtype = DType::f32;
  Shape shape;
};

/// `each_place`: not many lanes at one place, as atomics may have, which add up there.
bool make_access(Tracer& t, const Operand& pointer, const Operand& mask, const Operand* value, const char* verb,
                 Access& out, bool each_place = false) {
  if (!outside_combiner(t, verb, pointer.loc)) return false;
  const Value p = use(t, pointer);
  const Value m = mask.kind == Operand::absent ? Value{0} : coerce(t, mask, DType::i1, {}, "mask");
  if (t.is_bad(p)) return false;
  if (t.info(p).kind != ValueKind::pointer) {
    const bool swapped = value && value->kind == Operand::value && !t.is_bad(value->v) &&
                         t.info(value->v).kind == ValueKind::pointer;
    t.error(std::string(verb) + " expects a pointer or a tile of pointers, found " + t.type_of(p).to_string() +
                (swapped ? "; the pointer comes first, then the value" : ""),
            pointer.loc);
    return false;
  }
  if (mask.kind != Operand::absent && t.is_bad(m)) return false;
  if (value && !t.writable(p, verb, pointer.loc)) return false;
  out.dtype = t.info(p).dtype;
  out.shape = t.type_of(p).shape;
  Shape joint;
  if (m.id) {
    if (!broadcast_shapes(t, out.shape, t.type_of(m).shape, mask.loc, joint)) return false;
    if (each_place && out.shape.rank() == 0 && joint.rank() > 0) {
      t.error(std::string("a mask of ") + t.type_of(m).to_string() + " for " + verb + " at one place, " +
                  t.type_of(p).to_string() + "; the mask of one place is a scalar i1, a tile wants a pointer for each "
                  "element, p + offsets",
              mask.loc);
      return false;
    }
    out.shape = joint;
  }
  if (value && value->kind == Operand::value && !t.is_bad(value->v)) {
    if (!broadcast_shapes(t, out.shape, t.type_of(value->v).shape, value->loc, joint)) return false;
    // Lanes come from the pointers: a wider value would write one address from many lanes.
    if (!(joint == out.shape)) {
      t.error("value of shape " + t.type_of(value->v).to_string() + " does not fit the pointers " +
                  t.type_of(p).to_string() +
                  (out.shape.rank() == 0 ? "; one place takes one value, such as sum(x) or to_scalar(x), a tile wants a "
                                           "pointer for each element, p + offsets"
                                         : ""),
              value->loc);
      return false;
    }
  }
  const auto going = t.going(out.shape, verb, pointer.loc);
  if (!going) return false;
  out.pointer = stretch(t, t.info(p).value, out.shape, pointer.loc);
  if (m.id) out.mask = stretch(t, t.info(m).value, out.shape, mask.loc);
  if (*going)
    out.mask = out.mask ? arith::AndIOp::create(t.at_end(), t.location(pointer.loc), out.mask, *going).getResult() : *going;
  return true;
}

mlir::Value lanes(Tracer& t, const Operand& o, const Access& a, const char* what) {
  const Value v = coerce(t, o, a.dtype, a.shape, what);
  if (t.is_bad(v)) return {};
  Shape joint;
  if (!broadcast_shapes(t, a.shape, shape_of(t.info(v).value), o.loc, joint)) return {};
  return stretch(t, t.info(v).value, a.shape, o.loc);
}

Type lane_type(Tracer& t, const Access& a) {
  Type element = ir_element_type(t.context(), a.dtype);
  if (a.shape.rank() == 0) return element;
  return RankedTensorType::get(llvm::ArrayRef(a.shape.begin(), a.shape.end()), element);
}

}  // namespace

Value load(const Operand& pointer, const Operand& mask, const Operand& other, Cache cache) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  Access a;
  if (!make_access(*t, pointer, mask, nullptr, "load", a, true)) return {0};
  mlir::Value fill;
  if (other.kind != Operand::absent) {
    if (!a.mask) return t->error("`other` is what masked-off lanes read: it needs a mask", other.loc), Value{0};
    if (!(fill = lanes(*t, other, a, "`other`"))) return {0};
  }
  return t->add(ir::GatherOp::create(t->at_end(), t->location(pointer.loc), lane_type(*t, a), a.pointer, mlir::Value(),
                                     a.mask, fill, cache_attr(*t, cache, pointer.loc)),
                a.dtype, pointer.loc);
}

void store(const Operand& pointer, const Operand& value, const Operand& mask, Cache cache) {
  Tracer* t = Tracer::current();
  if (!t) return;
  Access a;
  if (!make_access(*t, pointer, mask, &value, "store", a, true)) return;
  mlir::Value v = lanes(*t, value, a, "the stored value");
  if (v)
    ir::ScatterOp::create(t->at_end(), t->location(pointer.loc), a.pointer, mlir::Value(), v, a.mask,
                          cache_attr(*t, cache, pointer.loc));
}

// ---- views

/// The offsets as numbers of 32 or 64 bits; false after an error.
static bool box_indices(Tracer& t, Value view, const Operand* offsets, int rank, SmallVectorImpl<mlir::Value>& out) {
  if (t.is_bad(view) || !t.reachable(view, offsets[0].loc)) return false;
  bool ok = true;
  for (int i = 0; i < rank; ++i) {
    if (offsets[i].kind == Operand::floating || offsets[i].kind == Operand::boolean) {
      t.error("the offset of a box must be an integer scalar, found the literal " + text_of(offsets[i]) + " as offset " +
                  std::to_string(i),
              offsets[i].loc);
      ok = false;
      continue;
    }
    Value v = offsets[i].kind == Operand::value
                  ? use(t, offsets[i])
                  : constant(t, offsets[i], natural_dtype(offsets[i]) == DType::i64 ? DType::i64 : DType::i32, {});
    if (t.is_bad(v)) {
      ok = false;
      continue;
    }
    const TileType type = t.type_of(v);
    if (type.pointer || is_float(type.dtype) || type.dtype == DType::i1 || type.shape.rank() > 0) {
      t.error("the offset of a box must be an integer scalar, found " + type.to_string() + " as offset " +
                  std::to_string(i) +
                  (type.shape.rank() > 0 ? "; for a tile of offsets use pointers: load(A.ptr() + offsets)" : ""),
              offsets[i].loc);
      ok = false;
      continue;
    }
    const DType d = type.dtype;
    out.push_back(
        t.info(convert_value(t, v, d == DType::i64 || d == DType::u32 || d == DType::u64 ? DType::i64 : DType::i32,
                             offsets[i].loc))
            .value);
  }
  return ok;
}

void too_many_dims(Tracer& t, const Operand* offsets, int rank, const std::string& found, SrcLoc loc) {
  const auto dropped = std::count_if(offsets, offsets + rank, [](const Operand& o) { return o.drops_dim; });
  t.error("a box has at most as many dims as its tensor (" + std::to_string(rank) +
              (dropped ? ", of which " + std::to_string(dropped) + " with only(..)" : "") + "), found " + found,
          loc);
}

std::optional<Shape> with_dropped_dims(const Operand* offsets, int rank, const Shape& shape) {
  llvm::SmallVector<int64_t> box;  // last dim first
  int left = shape.rank();
  for (int i = rank - 1; i >= 0 && left > 0; --i) box.push_back(offsets[i].drops_dim ? 1 : shape[--left]);
  if (left > 0) return std::nullopt;
  Shape full;
  for (int64_t size : llvm::reverse(box)) full.push_back(size);
  return full;
}

/// The same elements as a tile of the shape (dims of size 1 more or fewer).
static mlir::Value as_shape(Tracer& t, mlir::Value v, const Shape& shape, SrcLoc loc) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  if (!type || type.getShape() == llvm::ArrayRef(shape.begin(), shape.end())) return v;
  auto to = RankedTensorType::get(llvm::ArrayRef(shape.begin(), shape.end()), type.getElementType());
  return ir::ReshapeOp::create(t.at_end(), t.location(loc), to, v);
}

Value load_box(Value view, const Operand* offsets, int rank, const Shape& shape, double pad, const Operand& mask,
               Cache cache, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t || !outside_combiner(*t, "load", loc)) return {0};
  if (mask.kind != Operand::absent) return load_masked(*t, view, offsets, rank, shape, pad, mask, cache, loc);
  SmallVector<mlir::Value, 4> indices;
  if (!box_indices(*t, view, offsets, rank, indices) || !valid_shape(*t, shape, loc)) return {0};
  const std::optional<Shape> box = with_dropped_dims(offsets, rank, shape);
  if (!box) return too_many_dims(*t, offsets, rank, std::to_string(shape.rank()), loc), Value{0};
  const DType d = t->info(view).dtype;
  Access a;
  a.dtype = d, a.shape = *box;
  FloatAttr fill;
  if (pad != 0) {
    Operand p;
    p.kind = Operand::floating, p.f = pad, p.loc = loc;
    if (!is_float(d) && pad == static_cast<double>(static_cast<int64_t>(pad)))
      p.kind = Operand::integer, p.i = static_cast<int64_t>(pad);
    const Value checked = constant(*t, p, d, {});  // range and kind; the op takes the number itself
    if (t->is_bad(checked)) return {0};
    t->info(checked).value.getDefiningOp()->erase();
    fill = t->at_end().getF64FloatAttr(pad);
  }
  OpBuilder& b = t->at_end();
  auto op = ir::LoadOp::create(b, t->location(loc), lane_type(*t, a), t->info(view).value, indices, fill,
                               cache_attr(*t, cache, loc));
  return t->add(as_shape(*t, op, shape, loc), d, loc);
}

/// View, indices and value of a write to a box; false after an error. `what` names the value in messages.
static bool box_write(Tracer& t, Value view, const Operand* offsets, int rank, const Operand& value, const char* what,
                      SmallVectorImpl<mlir::Value>& indices, mlir::Value& written) {
  const bool ok = box_indices(t, view, offsets, rank, indices);
  if (t.is_bad(view)) return false;
  const Value v = coerce(t, value, t.info(view).dtype, {}, what);
  if (!ok || t.is_bad(v)) return false;
  const TileType type = t.type_of(v);
  const std::optional<Shape> box = with_dropped_dims(offsets, rank, type.shape);
  if (!box) return too_many_dims(t, offsets, rank, type.to_string(), value.loc), false;
  written = as_shape(t, t.info(v).value, *box, value.loc);
  return true;
}

void store_box(Value view, const Operand* offsets, int rank, const Operand& value, const Operand& mask, Cache cache,
               SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t || !outside_combiner(*t, "store", loc) || !t->writable(view, "store", loc)) return;
  if (mask.kind != Operand::absent) return store_masked(*t, view, offsets, rank, value, mask, cache, loc);
  if (t->lacks_mask("a store to a Tensor", loc)) return;
  SmallVector<mlir::Value, 4> indices;
  mlir::Value v;
  if (!box_write(*t, view, offsets, rank, value, "the stored value", indices, v)) return;
  ir::StoreOp::create(t->at_end(), t->location(loc), v, t->info(view).value, indices, cache_attr(*t, cache, loc));
}

void add_to_box(Value view, const Operand* offsets, int rank, const Operand& value, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t || !outside_combiner(*t, "atomic_add", loc) || !t->writable(view, "an atomic", loc)) return;
  if (t->lacks_mask("an atomic_add to a Tensor", loc)) return;
  if (!t->is_bad(view)) {
    const DType d = t->info(view).dtype;
    const bool isFloat = d == DType::f64 || d == DType::f32 || d == DType::f16 || d == DType::bf16;
    if (!isFloat && d != DType::i64 && d != DType::u64 && d != DType::i32 && d != DType::u32)
      return t->error("atomic_add to a tensor is defined on floats of 16 to 64 bits and integers of 32 and 64, found " +
                          std::string(name(d)),
                      loc);
  }
  SmallVector<mlir::Value, 4> indices;
  mlir::Value v;
  if (!box_write(*t, view, offsets, rank, value, "the added value", indices, v)) return;
  ir::AccumulateOp::create(t->at_end(), t->location(loc), v, t->info(view).value, indices);
}

static bool view_dim_ok(Tracer& t, Value view, int dim, SrcLoc loc) {
  if (t.is_bad(view) || !t.reachable(view, loc)) return false;
  const int64_t rank = mlir::cast<ir::ViewType>(t.info(view).value.getType()).getRank();
  if (dim >= 0 && dim < rank) return true;
  t.error("dim " + std::to_string(dim) + " is out of range for a tensor of " + std::to_string(rank) + " dims", loc);
  return false;
}

Value view_dim(Value view, int dim, DType as, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t || !view_dim_ok(*t, view, dim, loc)) return {0};
  const Value v =
      t->add(ir::ViewDimOp::create(t->at_end(), t->location(loc), t->info(view).value, dim), DType::i64, loc);
  const Value size = convert_value(*t, v, as, loc);
  // Launches with tensors whose sizes i32 cannot hold are refused (narrow_indices.h); views that a kernel makes are not.
  if (auto narrow = t->info(size).value.getDefiningOp<mlir::arith::TruncIOp>();
      narrow && as == DType::i32 && mlir::isa<mlir::BlockArgument>(t->info(view).value))
    narrow.setOverflowFlags(mlir::arith::IntegerOverflowFlags::nsw);
  return size;
}

Value view_stride(Value view, int dim, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t || !view_dim_ok(*t, view, dim, loc)) return {0};
  return t->add(ir::ViewStrideOp::create(t->at_end(), t->location(loc), t->info(view).value, dim), DType::i64, loc);
}

Value view_pointer(Value view, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t || t->is_bad(view) || !t->reachable(view, loc)) return {0};
  const DType d = t->info(view).dtype;
  auto type = ir::PtrType::get(t->context(), ir_element_type(t->context(), d));
  return t->add(ir::ViewPtrOp::create(t->at_end(), t->location(loc), type, t->info(view).value), d, loc,
                ValueKind::pointer);
}

Value pointer_to(const Operand& address, DType element) {  // declared in dsl/address.h
  Tracer* t = Tracer::current();
  if (!t || !outside_combiner(*t, "pointer_to", address.loc)) return {0};
  const Value from = use(*t, address);
  if (t->is_bad(from)) return {0};
  const TileType found = t->type_of(from);
  if (found.pointer || (found.dtype != DType::i64 && found.dtype != DType::u64)) {
    t->error("pointer_to needs addresses that are i64 or u64, found " + found.to_string(), address.loc);
    return {0};
  }
  auto type = ir::PtrType::get(t->context(), ir_element_type(t->context(), element));
  OpBuilder& b = t->at_end();
  const Location loc = t->location(address.loc);
  auto add = [&](mlir::Value pointer) { return t->add(pointer, element, address.loc, ValueKind::pointer); };
  if (found.shape.rank() == 0) return add(ir::IntToPtrOp::create(b, loc, type, t->info(from).value));
  // Each has an address of its own: elements counted from address zero.
  const int64_t bytes = std::max<int64_t>(1, bits_of(element) / 8);
  mlir::Value first = ir::IntToPtrOp::create(b, loc, type, arith::ConstantIntOp::create(b, loc, b.getI64Type(), 0));
  mlir::Value addresses = t->info(from).value;
  mlir::Value by = arith::ConstantOp::create(
      b, loc, mlir::DenseElementsAttr::get(mlir::cast<mlir::ShapedType>(addresses.getType()),
                                           b.getI64IntegerAttr(llvm::Log2_64(static_cast<uint64_t>(bytes))).getValue()));
  mlir::Value places = arith::ShRUIOp::create(b, loc, addresses, by);
  mlir::Value base = stretch(*t, first, found.shape, address.loc);
  return add(ir::PtrAddOp::create(b, loc, base.getType(), base, places));
}

Value make_view(const Operand& pointer, DType element, const Operand* dims, const Operand* strides, int rank,
                SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t || !outside_combiner(*t, "make_view", loc)) return {0};
  const Value p = use(*t, pointer);
  SmallVector<mlir::Value, 4> d, s;
  bool ok = true;
  auto collect = [&](const Operand* from, SmallVectorImpl<mlir::Value>& to, const char* what) {
    for (int i = 0; i < rank; ++i) {
      Value v = from[i].kind == Operand::value ? use(*t, from[i]) : constant(*t, from[i], DType::i64, {});
      if (t->is_bad(v)) {
        ok = false;
        continue;
      }
      const TileType type = t->type_of(v);
      if (type.pointer || is_float(type.dtype) || type.dtype == DType::i1 || type.shape.rank() > 0) {
        t->error(std::string(what) + " of a view must be integer scalars, found " + type.to_string(), from[i].loc);
        ok = false;
        continue;
      }
      to.push_back(t->info(convert_value(*t, v, DType::i64, from[i].loc)).value);
    }
  };
  collect(dims, d, "dims");
  collect(strides, s, "strides");
  if (t->is_bad(p) || !ok) return {0};
  const TileType type = t->type_of(p);
  if (!type.pointer || type.shape.rank() > 0 || type.dtype != element) {
    t->error("make_view needs a pointer to " + std::string(name(element)) + ", found " + type.to_string(), pointer.loc);
    return {0};
  }
  auto view = ir::ViewType::get(t->context(), rank, ir_element_type(t->context(), element));
  return t->add(ir::MakeViewOp::create(t->at_end(), t->location(loc), view, t->info(p).value, d, s), element, loc,
                ValueKind::view);
}

/// The view from `index` along `dim` on; with a length of so many there, without one less that dim.
static Value part_of(Value view, int dim, const Operand& index, const Operand* length, const char* verb, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t || !outside_combiner(*t, verb, loc) || !view_dim_ok(*t, view, dim, loc)) return {0};
  SmallVector<mlir::Value, 2> numbers;
  for (const Operand* o : {&index, length}) {
    if (!o) continue;
    const Value v = o->kind == Operand::value ? use(*t, *o) : constant(*t, *o, DType::i64, {});
    if (t->is_bad(v)) return {0};
    const TileType type = t->type_of(v);
    if (type.pointer || is_float(type.dtype) || type.dtype == DType::i1 || type.shape.rank() > 0) {
      t->error(std::string("the ") + (o == &index ? (length ? "begin" : "index") : "length") + " of " + verb +
                   " must be an integer scalar, found " + type.to_string(),
               o->loc);
      return {0};
    }
    numbers.push_back(t->info(convert_value(*t, v, DType::i64, o->loc)).value);
  }
  const Location where = t->location(loc);
  OpBuilder& b = t->at_end();
  mlir::Value whole = t->info(view).value;
  const DType element = t->info(view).dtype;
  auto type = mlir::cast<ir::ViewType>(whole.getType());
  SmallVector<mlir::Value, 4> dims, strides;
  mlir::Value by;
  for (int d = 0; d < static_cast<int>(type.getRank()); ++d) {
    mlir::Value stride = ir::ViewStrideOp::create(b, where, whole, d);
    if (d == dim) by = arith::MulIOp::create(b, where, numbers[0], stride);
    if (d == dim && !length) continue;
    dims.push_back(d == dim ? numbers[1] : ir::ViewDimOp::create(b, where, whole, d).getResult());
    strides.push_back(stride);
  }
  auto ptr = ir::PtrType::get(t->context(), ir_element_type(t->context(), element));
  mlir::Value first = ir::ViewPtrOp::create(b, where, ptr, whole);
  if (by) first = ir::PtrAddOp::create(b, where, first, by);
  auto part = ir::ViewType::get(t->context(), static_cast<int>(dims.size()), type.getElementType());
  return t->add(ir::MakeViewOp::create(b, where, part, first, dims, strides), element, loc, ValueKind::view);
}
Value narrow_view(Value view, int dim, const Operand& begin, const Operand& length, SrcLoc loc) {
  return part_of(view, dim, begin, &length, "narrow", loc);
}
Value select_view(Value view, int dim, const Operand& index, SrcLoc loc) {
  return part_of(view, dim, index, nullptr, "select", loc);
}

// ---- atomics

static_assert(int(Order::acq_rel) == int(ir::MemOrder::acq_rel) && int(Order::relaxed) == int(ir::MemOrder::relaxed) &&
              int(Scope::cta) == int(ir::MemScope::cta) && int(Scope::sys) == int(ir::MemScope::sys));

static bool known(Tracer& t, Order order, Scope scope, SrcLoc loc) {
  return t.known(static_cast<int>(order), 4, "Order", loc) && t.known(static_cast<int>(scope), 3, "Scope", loc);
}

Value atomic_rmw(Rmw kind, const Operand& pointer, const Operand& value, const Operand& mask, Order order,
                 Scope scope) {
  Tracer* t = Tracer::current();
  if (!t || !known(*t, order, scope, pointer.loc)) return {0};
  Access a;
  if (!make_access(*t, pointer, mask, &value, "an atomic", a)) return {0};
  const bool bitwise = kind == Rmw::bit_and || kind == Rmw::bit_or || kind == Rmw::bit_xor;
  const bool narrow = is_float(a.dtype) && size_of(a.dtype) == 1;
  if ((bitwise && is_float(a.dtype)) || a.dtype == DType::i1 || narrow) {
    t->error(std::string(bitwise ? "bitwise atomics are" : "atomics are not") + " defined on " +
                 (bitwise ? "integers, found " : "") + std::string(name(a.dtype)),
             pointer.loc);
    return {0};
  }
  mlir::Value v = lanes(*t, value, a, "the operand of an atomic");
  if (!v) return {0};
  const bool u = is_unsigned(a.dtype);
  ir::RmwKind k = ir::RmwKind::add;
  switch (kind) {
    case Rmw::add:
      k = ir::RmwKind::add;
      break;
    case Rmw::max:
      k = u ? ir::RmwKind::umax : ir::RmwKind::max;
      break;
    case Rmw::min:
      k = u ? ir::RmwKind::umin : ir::RmwKind::min;
      break;
    case Rmw::bit_and:
      k = ir::RmwKind::and_;
      break;
    case Rmw::bit_or:
      k = ir::RmwKind::or_;
      break;
    case Rmw::bit_xor:
      k = ir::RmwKind::xor_;
      break;
    case Rmw::exchange:
      k = ir::RmwKind::exchange;
      break;
  }
  MLIRContext* ctx = t->context();
  auto op = ir::AtomicRmwOp::create(t->at_end(), t->location(pointer.loc), v.getType(), ir::RmwKindAttr::get(ctx, k),
                                    ir::MemOrderAttr::get(ctx, static_cast<ir::MemOrder>(order)),
                                    ir::MemScopeAttr::get(ctx, static_cast<ir::MemScope>(scope)), a.pointer,
                                    mlir::Value(), v, a.mask);
  return t->add(op, a.dtype, pointer.loc);
}

Value atomic_cas(const Operand& pointer, const Operand& expected, const Operand& desired, const Operand& mask,
                 Order order, Scope scope) {
  Tracer* t = Tracer::current();
  if (!t || !known(*t, order, scope, pointer.loc)) return {0};
  Access a;
  if (!make_access(*t, pointer, mask, &desired, "an atomic", a)) return {0};
  if (is_float(a.dtype) || a.dtype == DType::i1) {
    t->error("atomic_cas compares integers, found " + std::string(name(a.dtype)) +
                 "; take the memory as integers of that size (Ptr<int32_t> for f32) and bitcast the values",
             pointer.loc);
    return {0};
  }
  mlir::Value e = lanes(*t, expected, a, "the expected value"), d = lanes(*t, desired, a, "the desired value");
  if (!e || !d) return {0};
  MLIRContext* ctx = t->context();
  auto op = ir::AtomicCasOp::create(
      t->at_end(), t->location(pointer.loc), d.getType(), ir::MemOrderAttr::get(ctx, static_cast<ir::MemOrder>(order)),
      ir::MemScopeAttr::get(ctx, static_cast<ir::MemScope>(scope)), a.pointer, mlir::Value(), e, d, a.mask);
  return t->add(op, a.dtype, pointer.loc);
}

}  // namespace tile::detail
