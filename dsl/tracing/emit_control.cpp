// emit_control.cpp - loops, branches, early exits, hints and debugging: the boundary functions around the tracer's
// frames.
#include <bit>

#include "dsl/tracing/emit_at.h"
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
using namespace mlir;
namespace {

bool constructs_allowed(Tracer& t, const char* what, SrcLoc loc) {
  if (!t.in_combiner()) return true;
  t.error(std::string(what) + " cannot be used inside a combiner; use where", loc);
  return false;
}

/// A scalar i1, or 0 with an error.
uint32_t scalar_condition(Tracer& t, const Operand& o, const char* what) {
  const Value v = use(t, o);
  if (t.is_bad(v)) return 0;
  const TileType type = t.type_of(v);
  if (type.dtype == DType::i1 && type.shape.rank() == 0 && !type.pointer) return v.id;
  t.error(std::string(what) + " needs a scalar i1 condition, found " + type.to_string() +
              (type.shape.rank() == 0                                     ? "; compare, e.g. x != 0"
               : type.shape.elements() == 1 && type.dtype == DType::i1 ? "; take its element with to_scalar(x)"
               : type.shape.elements() == 1 ? "; take its element and compare, e.g. to_scalar(x) != 0"
                                            : "; choose per element with where(), or combine with any() or all()"),
          o.loc);
  return 0;
}

uint32_t negate(Tracer& t, uint32_t condition, SrcLoc loc) {
  if (t.is_bad({condition})) return 0;
  OpBuilder& b = t.at_end();
  const Location where = t.location(loc);
  mlir::Value yes = arith::ConstantOp::create(b, where, b.getBoolAttr(true));
  return t.add(arith::XOrIOp::create(b, where, t.info({condition}).value, yes), DType::i1, loc).id;
}

/// An integer scalar for a loop bound: i32 or i64 stay, narrower ones widen, u32 counts in i64.
bool loop_bound(Tracer& t, const Operand& o, const char* what, DType& widest, bool& is_unsigned_loop) {
  if (o.kind != Operand::value) {
    if (o.kind == Operand::floating || o.kind == Operand::boolean) {
      t.error(std::string("the ") + what + " of a range must be an integer scalar", o.loc);
      return false;
    }
    if (natural_dtype(o) != DType::i32) widest = DType::i64;
    return true;
  }
  const Value v = use(t, o);
  if (t.is_bad(v)) return false;
  const TileType type = t.type_of(v);
  if (type.pointer || type.shape.rank() > 0 || is_float(type.dtype) || type.dtype == DType::i1 ||
      type.dtype == DType::u64) {
    const char* hint = type.pointer                ? ""
                       : type.shape.elements() > 1 ? "; combine its elements, e.g. max(x)"
                       : type.shape.rank() > 0     ? "; take its element with to_scalar(x)"
                                                   : "; convert with cast(x, i32)";
    t.error(std::string("the ") + what + " of a range must be an integer scalar (up to i64 or u32), found " +
                type.to_string() + hint,
            o.loc);
    return false;
  }
  if (type.dtype == DType::i64 || type.dtype == DType::u32) widest = DType::i64;
  is_unsigned_loop |= type.dtype == DType::u32;
  return true;
}

/// Whether literals say that a counter of 32 bits would wrap behind the last iteration, and the loop go on for ever.
bool passes_i32(const Operand& low, const Operand& high, const Operand& step) {
  if (high.kind != Operand::integer || step.kind != Operand::integer) return false;
  if (step.i > 0) return high.i + step.i - 1 > INT32_MAX;
  return low.kind == Operand::integer && low.i - high.i - step.i - 1 > INT32_MAX;
}

uint32_t bound_value(Tracer& t, const Operand& o, DType d) {
  if (o.kind != Operand::value) return constant(t, o, d, {}).id;
  return convert_value(t, use(t, o), d, o.loc).id;
}

}  // namespace

Value open_for(const Operand& low, const Operand& high, const Operand& step, LoopHints hints, SrcLoc loc,
               uint32_t& handle) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  DType d = DType::i32;
  bool as_u32 = false;
  bool ok = constructs_allowed(*t, "range", loc);
  ok &= loop_bound(*t, low, "start", d, as_u32);
  ok &= loop_bound(*t, high, "end", d, as_u32);
  ok &= loop_bound(*t, step, "step", d, as_u32);
  const bool down = step.kind == Operand::integer && step.i < 0;
  if (step.kind == Operand::integer && step.i == 0) {
    t->error("the step of a range must not be 0", step.loc);
    ok = false;
  }
  if (ok && d == DType::i32 && passes_i32(low, high, step)) d = DType::i64;
  // What counts down is counted up by as much: of the lowest number there is none.
  const int64_t lowest = d == DType::i64 ? INT64_MIN : INT32_MIN;
  if (down && step.i <= lowest) {
    t->error("the step of a range of " + std::string(name(d)) + " must be above " + std::to_string(lowest) + ", found " +
                 std::to_string(step.i),
             step.loc);
    ok = false;
  }
  constexpr int kMost = 1024;  // more is a mistake, and code without end
  if (hints.stages < 0 || hints.unroll < 0 || hints.stages > kMost || hints.unroll > kMost) {
    t->error("stages and unroll of a range are 0 (the compiler chooses) to " + std::to_string(kMost) + ", found " +
                 std::to_string(hints.stages) + " and " + std::to_string(hints.unroll),
             loc);
    ok = false;
  }
  for (const int choice : {hints.specialize, hints.overlap, hints.pingpong})
    ok &= t->known(choice + 1, 3, "Choice", loc);
  uint32_t bounds[3] = {0, 0, 0};
  if (ok)
    bounds[0] = bound_value(*t, low, d), bounds[1] = bound_value(*t, high, d), bounds[2] = bound_value(*t, step, d);
  ok &= !t->is_bad({bounds[0]}) && !t->is_bad({bounds[1]}) && !t->is_bad({bounds[2]});
  mlir::Value first;  // of a loop that counts down: how far it is from there is what counts up
  if (ok && down) {
    first = t->info({bounds[0]}).value;
    const mlir::Value end = t->info({bounds[1]}).value;
    mlir::Value from = first;  // an end far above it would be far below it otherwise; a literal is near 0
    if (high.kind != Operand::integer) from = arith::MaxSIOp::create(t->at_end(), t->location(loc), first, end);
    auto far = arith::SubIOp::create(t->at_end(), t->location(loc), from, end);
    Operand zero, width = step;
    zero.kind = Operand::integer, zero.loc = loc, width.i = -step.i;
    bounds[0] = bound_value(*t, zero, d), bounds[1] = t->add(far, d, loc).id, bounds[2] = bound_value(*t, width, d);
  }
  auto* block = new Block;
  mlir::Value counter = block->addArgument(ir_element_type(t->context(), d), t->location(loc));
  Frame& f = t->push(FrameKind::for_loop, block, loc);
  f.broken = !ok;
  f.low = bounds[0], f.high = bounds[1], f.step = bounds[2];
  f.hints = hints;
  handle = f.handle;
  if (first) counter = arith::SubIOp::create(t->at_end(), t->location(loc), first, counter);
  const Value v = t->add(counter, d, loc);
  return as_u32 ? convert_value(*t, v, DType::u32, loc) : v;
}

void close_for(uint32_t handle) {
  Tracer* t = Tracer::current();
  if (t && t->settle(handle)) t->close_loop();
}

void abandon_for(uint32_t handle, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t) return;
  t->error(
      "the body of a traced loop was left with a C++ break, return or goto; use break_if(cond), continue_if(cond) or "
      "return_if(cond)",
      loc);
  if (t->settle(handle)) t->close_loop();
}

void unwind(uint32_t handle, SrcLoc loc) noexcept {
  if (Tracer* t = Tracer::current()) t->unwind(handle, loc);
}

void open_then(const Operand& condition, uint32_t& handle) {
  Tracer* t = Tracer::current();
  if (!t) return;
  uint32_t c = scalar_condition(*t, condition, "if_");
  if (!constructs_allowed(*t, "if_", condition.loc)) c = 0;
  Frame& f = t->push(FrameKind::branch, new Block, condition.loc);
  f.condition = c;
  handle = f.handle;
}

void open_else(uint32_t handle) {
  Tracer* t = Tracer::current();
  if (!t || !t->settle(handle)) return;
  const uint32_t condition = t->top().condition;
  const SrcLoc loc = t->top().loc;
  auto then_side = std::make_unique<BranchSide>(t->pop_branch());
  t->remark_if_empty(then_side->block, !then_side->before.empty(), "if_", loc);
  Frame& f = t->push(FrameKind::branch, new Block, loc);
  f.condition = condition;
  f.then_side = std::move(then_side);
  f.handle = handle;
}

void close_if(uint32_t handle) {
  Tracer* t = Tracer::current();
  if (!t || !t->settle(handle)) return;
  const uint32_t condition = t->top().condition;
  const SrcLoc loc = t->top().loc;
  std::unique_ptr<BranchSide> then_side = std::move(t->top().then_side);
  BranchSide side = t->pop_branch();
  t->remark_if_empty(side.block, !side.before.empty(), "if_ or when", loc);
  if (then_side)
    t->finish_if(condition, std::move(*then_side), std::move(side), loc);
  else
    t->finish_if(condition, std::move(side), {}, loc);
}

void abandon_when(uint32_t handle, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t) return;
  t->error(
      "the body of when() was left with a C++ break, return or goto; use continue_if(cond), break_if(cond) or "
      "return_if(cond) outside of it",
      loc);
  close_if(handle);
}

void open_while(SrcLoc loc, uint32_t& handle) {
  Tracer* t = Tracer::current();
  if (!t) return;
  const bool ok = constructs_allowed(*t, "while_", loc);
  auto* before = new Block;
  Frame& f = t->push(FrameKind::while_loop, before, loc);
  f.before = before;
  f.in_condition = true;
  f.broken = !ok;
  handle = f.handle;
}

void while_condition(uint32_t handle, const Operand& condition) {
  Tracer* t = Tracer::current();
  if (!t || !t->settle(handle)) return;
  const Value v = use(*t, condition);
  const TileType type = t->is_bad(v) ? TileType{} : t->type_of(v);
  uint32_t each = 0, c = 0;
  if (type.dtype == DType::i1 && type.shape.elements() > 1 && !type.pointer) {
    const At at{condition.loc};
    each = v.id;
    // inside another such loop: of the elements that go on there
    const auto outer = t->going(type.shape, "the condition of while_", condition.loc);
    if (outer && *outer) each = at.apply(Op::bit_and, v, t->add(*outer, DType::i1, condition.loc)).id;
    c = outer ? reduce_all(Fold::any, at({each})).id : 0;
  } else {
    c = scalar_condition(*t, condition, "while_");
  }
  Frame& f = t->top();
  f.condition = c;
  f.each = each;
  f.broken |= c == 0;
  f.in_condition = false;
  f.block = new Block;
}

void close_while(uint32_t handle) {
  Tracer* t = Tracer::current();
  if (t && t->settle(handle)) t->close_loop();
}

static bool exit_allowed(Tracer& t, const char* what, bool in_loop, SrcLoc loc) {
  Frame& f = t.body_frame();
  if (!(in_loop ? f.is_loop() : f.kind == FrameKind::function) || f.in_condition) {
    t.error(std::string(what) +
                (in_loop ? " must stand directly in the body of a traced loop, not inside if_, when or a condition"
                         : " must stand directly in the kernel's body, not inside a loop or if_"),
            loc, {{"the innermost open construct is here", f.loc}});
    return false;
  }
  return true;
}

void continue_if(const Operand& condition) {
  Tracer* t = Tracer::current();
  if (!t || !exit_allowed(*t, "continue_if", true, condition.loc)) return;
  const uint32_t c = scalar_condition(*t, condition, "continue_if");
  t->open_rest(negate(*t, c, condition.loc), condition.loc);
}

void return_if(const Operand& condition) {
  Tracer* t = Tracer::current();
  if (!t || !exit_allowed(*t, "return_if", false, condition.loc)) return;
  const uint32_t c = scalar_condition(*t, condition, "return_if");
  t->open_rest(negate(*t, c, condition.loc), condition.loc);
}

void break_if(const Operand& condition) {
  Tracer* t = Tracer::current();
  if (!t || !exit_allowed(*t, "break_if", true, condition.loc)) return;
  const uint32_t c = scalar_condition(*t, condition, "break_if");
  Frame& loop = t->body_frame();
  const uint32_t alive = loop.alive_slot == kNoSlot ? t->new_alive_slot(loop, condition.loc) : loop.alive_slot;
  const uint32_t go_on = negate(*t, c, condition.loc);
  t->write(alive, go_on, condition.loc);
  t->open_rest(go_on, condition.loc);
}

// ---- hints and debugging

Value multiple_of(const Operand& o, int64_t n) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const Value v = use(*t, o);
  if (t->is_bad(v)) return {0};
  const TileType type = t->type_of(v);
  if (type.pointer || is_float(type.dtype) || type.dtype == DType::i1)
    return t->error("multiple_of is about integers, found " + type.to_string(), o.loc), Value{0};
  if (n < 1) return t->error("multiple_of needs a positive number, found " + std::to_string(n), o.loc), Value{0};
  if (o.kind == Operand::integer && o.i % n != 0)
    return t->error("multiple_of(" + text_of(o) + ", " + std::to_string(n) +
                        "): the number is known while tracing, and is no multiple",
                    o.loc),
           Value{0};
  mlir::Value x = t->info(v).value;
  const mlir::Value kept = ir::AssumeOp::create(t->at_end(), t->location(o.loc), x.getType(), x, n, nullptr, nullptr);
  return t->add(kept, type.dtype, o.loc);
}

void assume(const Operand& o) {
  Tracer* t = Tracer::current();
  if (!t || !constructs_allowed(*t, "assume", o.loc)) return;
  if (o.kind == Operand::boolean && !o.b)
    return t->error("assume(false): the condition is known while tracing, and does not hold", o.loc);
  if (const uint32_t c = scalar_condition(*t, o, "assume"))
    ir::AssumeTrueOp::create(t->at_end(), t->location(o.loc), t->info({c}).value);
}

void set_read_only(Value v) {
  if (Tracer* t = Tracer::current()) t->set_read_only(v);
}

Value read_only_copy(const Operand& pointer) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const Value p = use(*t, pointer);
  if (t->is_bad(p)) return {0};
  // A value of its own, because the pointer it comes from stays one that may be stored through. It folds to that one.
  OpBuilder& b = t->at_end();
  const mlir::Location where = t->location(pointer.loc);
  const mlir::Value zero = arith::ConstantIntOp::create(b, where, 0, 32);
  const Value copy = t->add(ir::PtrAddOp::create(b, where, t->info(p).value, zero), t->info(p).dtype, pointer.loc,
                            ValueKind::pointer);
  t->set_read_only(copy);
  return copy;
}

Value pointer_as(const Operand& o, DType element, bool read_only) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const Value p = use(*t, o);
  if (t->is_bad(p)) return {0};
  if (t->info(p).kind != ValueKind::pointer || t->info(p).dtype != element) {
    t->error("a Ptr to elements of " + std::string(name(element)) + " begins with an address of such, found " +
                 t->type_of(p).to_string(),
             o.loc);
    return {0};
  }
  if (read_only) return read_only_copy(o);
  if (!t->is_read_only(t->info(p).value)) return p;
  t->error("a Ptr<T> of an address of const elements: make it a Ptr<const T>, or declare the kernel parameter without "
           "const",
           o.loc);
  return {0};
}

void require_positive(const Operand& o, const char* what) {
  Tracer* t = Tracer::current();
  if (t && o.kind == Operand::integer && o.i < 1)
    t->error(std::string(what) + " must be at least 1, found " + text_of(o), o.loc);
}

/// Warps of all programs that are to share a multiprocessor: every GPU of the targets holds at most 64.
static void check_resident_warps(Tracer& t, SrcLoc loc) {
  constexpr int kMost = 64;
  auto warps = t.function()->getAttrOfType<mlir::IntegerAttr>("tile.num_warps");
  auto programs = t.function()->getAttrOfType<mlir::IntegerAttr>("tile.programs");
  if (!warps || !programs || warps.getInt() * programs.getInt() <= kMost) return;
  t.error("programs_per_multiprocessor(" + std::to_string(programs.getInt()) + ") of num_warps(" +
              std::to_string(warps.getInt()) + ") are " + std::to_string(warps.getInt() * programs.getInt()) +
              " warps; a multiprocessor holds " + std::to_string(kMost) + ", so at most " +
              std::to_string(kMost / warps.getInt()) + " of these programs",
          loc);
}

void set_num_warps(int n, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t) return;
  if (n == 0) return;  // a field of a configuration that leaves it open
  // Multiples of 4 are whole warpgroups: three of them suit tiles of 192 rows.
  if (n != 1 && n != 2 && (n < 1 || n > 32 || n % 4 != 0))
    return t->error("num_warps must be 1, 2 or a multiple of 4 up to 32, found " + std::to_string(n), loc);
  t->function()->setAttr("tile.num_warps", t->at_end().getI32IntegerAttr(n));
  check_resident_warps(*t, loc);
}

void set_programs(int n, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t) return;
  if (n < 1 || n > 32)
    return t->error("programs_per_multiprocessor must be 1 to 32, found " + std::to_string(n), loc);
  t->function()->setAttr("tile.programs", t->at_end().getI32IntegerAttr(n));
  check_resident_warps(*t, loc);
}

void set_cluster(int n, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t) return;
  if (n < 1 || n > 8 || !std::has_single_bit(static_cast<unsigned>(n)))
    return t->error("programs_per_cluster must be 1, 2, 4 or 8, found " + std::to_string(n), loc);
  t->function()->setAttr("tile.cluster", t->at_end().getI32IntegerAttr(n));
}

void device_print(const std::string& message, const Operand& o) {
  Tracer* t = Tracer::current();
  if (!t || !constructs_allowed(*t, "device_print", o.loc)) return;
  const Value v = use(*t, o);
  if (t->is_bad(v)) return;
  if (t->info(v).kind != ValueKind::number)
    return t->error("device_print takes numbers, found " + t->type_of(v).to_string(), o.loc);
  ir::PrintOp::create(t->at_end(), t->location(o.loc), t->info(v).value, message, is_unsigned(t->info(v).dtype));
}

void device_assert(const Operand& o, const std::string& message) {
  Tracer* t = Tracer::current();
  if (!t || !constructs_allowed(*t, "device_assert", o.loc)) return;
  const Value c = coerce(*t, o, DType::i1, {}, "the condition of device_assert");
  if (t->is_bad(c)) return;
  mlir::Value holds = t->info(c).value;
  const auto going = t->going(shape_of(holds), "what device_assert looks at", o.loc);
  if (!going) return;
  if (*going) {  // elements that are done are not asked
    OpBuilder& b = t->at_end();
    const Location where = t->location(o.loc);
    const auto all = DenseElementsAttr::get(cast<ShapedType>(holds.getType()), true);
    auto done = arith::XOrIOp::create(b, where, *going, arith::ConstantOp::create(b, where, all));
    holds = arith::OrIOp::create(b, where, holds, done);
  }
  ir::AssertOp::create(t->at_end(), t->location(o.loc), holds, message);
}

}  // namespace tile::detail
