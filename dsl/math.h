// math.h - operators and mathematical functions on tiles, creation and conversion.
// Operands broadcast only between equal ranks (sizes equal or 1) or against a scalar. Within a kind (signed, unsigned,
// float) the narrower operand widens; across kinds, and between f16 and bf16, a cast must be written.
#pragma once
#include <cmath>  // INFINITY and NAN: what masked scores and sentinels are
#include <concepts>
#include <string>
#include <utility>

#include "value.h"

namespace tile {

namespace detail {
inline Tile apply(Op op, const Expr& a) { return make_tile(elementwise(op, &a, 1), a.loc); }
inline Tile apply(Op op, const Expr& a, const Expr& b) {
  const Operand args[] = {a, b};
  return make_tile(elementwise(op, args, 2), a.loc);
}
inline Tile apply(Op op, const Expr& a, const Expr& b, const Expr& c) {
  const Operand args[] = {a, b, c};
  return make_tile(elementwise(op, args, 3), a.loc);
}
/// Whether a verb made of others gets what it is defined on; reports it in the verb's own name if not.
inline bool is_defined(const Expr& x, bool floats, const char* verb) {
  if (x.kind != Expr::value || !x.v.id) return true;
  const TileType type = type_of(x.v);
  if (!type.pointer && is_float(type.dtype) == floats && type.dtype != i1) return true;
  report_undefined(verb, type, floats, x.loc);
  return false;
}
/// x op= y: like x = x op y, located where y was written.
inline Tile& update(Tile& x, Op op, const Expr& y) {
  const Operand args[] = {Expr(x, y.loc), y};
  write_slot(slot_of(x), elementwise(op, args, 2), y.loc);
  return x;
}
}  // namespace detail

#define TILE_UNARY_OPERATOR(name, symbol, ...) \
  [[nodiscard]] inline Tile operator symbol(Expr x) { return detail::apply(detail::Op::name, x); }
#define TILE_UNARY(name, ...) \
  [[nodiscard]] inline Tile name(Expr x) { return detail::apply(detail::Op::name, x); }
#define TILE_PREDICATE TILE_UNARY
#define TILE_BINARY_OPERATOR(name, symbol, ...)                                                               \
  [[nodiscard]] inline Tile operator symbol(Expr x, Expr y) { return detail::apply(detail::Op::name, x, y); } \
  inline Tile& operator symbol##=(Tile& x, Expr y) { return detail::update(x, detail::Op::name, y); }
#define TILE_BINARY(name, ...) \
  [[nodiscard]] inline Tile name(Expr x, Expr y) { return detail::apply(detail::Op::name, x, y); }
#define TILE_COMPARISON(name, symbol, ...) \
  [[nodiscard]] inline Tile operator symbol(Expr x, Expr y) { return detail::apply(detail::Op::name, x, y); }
#define TILE_TERNARY(name, ...) \
  [[nodiscard]] inline Tile name(Expr x, Expr y, Expr z) { return detail::apply(detail::Op::name, x, y, z); }
#include "elementwise.def"

/// Closer than the built-in ! of a bool, which a Tile could (to give its error) become. As an operator on a reference
/// it cannot learn the user's line: it points at where x was computed.
[[nodiscard]] inline Tile operator!(const Tile& x) {
  return detail::apply(detail::Op::logical_not, Expr(x, detail::origin(detail::slot_of(x))));
}

// The same names on plain C++ numbers stay plain numbers: config arithmetic must not become part of the kernel.
/// a / b rounded up; -1 for divisors of 0, so that the grid of a bad configuration is an error and no trap.
template <std::integral A, std::integral B>
constexpr std::common_type_t<A, B> cdiv(A a, B b) {
  if (b == 0) return static_cast<std::common_type_t<A, B>>(-1);
  return static_cast<std::common_type_t<A, B>>(a / b + (a % b != 0 ? 1 : 0));
}
template <Arithmetic A, Arithmetic B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  return a < b ? static_cast<std::common_type_t<A, B>>(b) : static_cast<std::common_type_t<A, B>>(a);
}
template <Arithmetic A, Arithmetic B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  return b < a ? static_cast<std::common_type_t<A, B>>(b) : static_cast<std::common_type_t<A, B>>(a);
}

/// std::cout << x, printing while tracing.
template <class S>
requires requires(S& s) { s.rdbuf(); }
S& operator<<(S& stream, const Tile&) {
  static_assert(detail::kAlwaysFalse<S>, "a tile has no value while the kernel is being traced -> device_print(\"x\", x)");
  return stream;
}

/// Element by element: a where the condition holds, else b.
[[nodiscard]] inline Tile where(Expr condition, Expr a, Expr b) {
  return detail::make_tile(detail::select(condition, a, b), condition.loc);
}
/// The same values as elements of another type. Float to integer truncates (out of range: undefined), to i1 tests != 0.
[[nodiscard]] inline Tile cast(Expr x, DType to) { return detail::make_tile(detail::convert(x, to), x.loc); }
/// The same, rounded as told: floats (and integers of up to 32 bits) to floats, floats to integers. Where cast would
/// give infinities, roundings toward zero give the largest number; f8 types give it always.
[[nodiscard]] inline Tile cast(Expr x, DType to, Rounding rounding) {
  return detail::make_tile(detail::convert_rounding(x, to, rounding), x.loc);
}
/// Floats of fewer bits, rounded up or down at random so that the mean is x: `bits` are random u32 words, one an
/// element (`randint(seed, i)`), of which the upper 24 bits count. Beyond the largest number it stays there.
[[nodiscard]] inline Tile cast_stochastic(Expr x, DType to, Expr bits) {
  return detail::make_tile(detail::convert_randomly(x, to, bits), x.loc);
}
/// The nearest values that another type has: out of range becomes its largest or lowest number (infinities, too), NaN
/// becomes 0 in integers; inside the range like cast. Quantising: saturate(rint(x / scale), i8).
[[nodiscard]] inline Tile saturate(Expr x, DType to) { return detail::make_tile(detail::saturate(x, to), x.loc); }
/// The same bits read as another type of equal size.
[[nodiscard]] inline Tile bitcast(Expr x, DType to) { return detail::make_tile(detail::reinterpret(x, to), x.loc); }

/// The place (row, column) of element i * columns + j of a grid that is walked in groups of `group` rows, column by
/// column within a group (the last may have fewer rows): programs that follow each other share operands of products.
[[nodiscard]] inline std::pair<Tile, Tile> swizzle2d(Expr i, Expr j, Expr rows, Expr columns, Expr group) {
  detail::require_positive(group, "the group of swizzle2d");
  const SrcLoc at = i.loc;
  auto op = [&](detail::Op o, const Expr& x, const Expr& y) { return Expr(detail::apply(o, x, y), at); };
  const Expr number = op(detail::Op::add, op(detail::Op::mul, i, columns), j);
  const Expr whole = op(detail::Op::mul, group, columns), in = op(detail::Op::rem, number, whole);
  const Expr first = op(detail::Op::mul, op(detail::Op::div, number, whole), group);
  const Expr size = op(detail::Op::min, op(detail::Op::sub, rows, first), group);
  return {detail::apply(detail::Op::add, first, op(detail::Op::rem, in, size)),
          detail::apply(detail::Op::div, in, size)};
}

/// The place (row, column <= row) of element i (i32) of a lower triangle that is walked row by row: the blocks of a
/// symmetric matrix that are not mirror images of others. i < 2^30.
[[nodiscard]] inline std::pair<Tile, Tile> triangle(Expr i) {
  const SrcLoc at = i.loc;
  auto op = [&](detail::Op o, const Expr& x, const Expr& y) { return Expr(detail::apply(o, x, y), at); };
  auto as = [&](const Expr& x, DType type) { return detail::make_tile(detail::convert(x, type), at); };
  // i = r (r + 1) / 2 + c: of the exact 8 i + 1 the root in f64 is on the right side of every whole number.
  const Expr square = op(detail::Op::add, op(detail::Op::mul, Expr(as(i, DType::f64), at), Expr(8.0, at)), Expr(1.0, at));
  const Expr root = Expr(detail::apply(detail::Op::sqrt, square), at);
  const Tile row = as(op(detail::Op::mul, op(detail::Op::sub, root, Expr(1.0, at)), Expr(0.5, at)), DType::i32);
  const Expr r(row, at), twice = op(detail::Op::mul, r, op(detail::Op::add, r, Expr(1, at)));
  return {row, detail::apply(detail::Op::sub, i, op(detail::Op::div, twice, Expr(2, at)))};
}

/// Index of this program, and the number of programs, along an axis (0, 1, 2) of the grid. i32.
[[nodiscard]] inline Tile program_id(int axis, SrcLoc loc = SrcLoc::current()) {
  return detail::make_tile(detail::program_id(axis, loc), loc);
}
[[nodiscard]] inline Tile num_programs(int axis, SrcLoc loc = SrcLoc::current()) {
  return detail::make_tile(detail::num_programs(axis, loc), loc);
}
/// low, low + 1, ... high - 1 as a rank-1 i32 tile; both known while tracing.
[[nodiscard]] inline Tile arange(int64_t low, int64_t high, SrcLoc loc = SrcLoc::current()) {
  return detail::make_tile(detail::arange(low, high, loc), loc);
}
template <class Low, class High>
requires(std::derived_from<Low, Tile> || std::derived_from<High, Tile>) Tile arange(const Low&, const High&) {
  static_assert(detail::kAlwaysFalse<Low>,
                "both ends of arange are known while tracing -> start + arange(0, c.B), with a mask for what is beyond "
                "the end; range(n) is the loop over a number known when the kernel runs");
  return {};
}
/// A tile with one value everywhere.
[[nodiscard]] inline Tile full(Shape shape, Expr value, DType dtype) {
  return detail::make_tile(detail::full(shape, value, dtype), value.loc);
}
[[nodiscard]] inline Tile zeros(Shape shape, DType dtype, SrcLoc loc = SrcLoc::current()) {
  return full(shape, Expr(0, loc), dtype);
}
[[nodiscard]] inline Tile ones(Shape shape, DType dtype, SrcLoc loc = SrcLoc::current()) {
  return full(shape, Expr(1, loc), dtype);
}
/// The same of the shape and element type of x.
[[nodiscard]] inline Tile full_like(Expr x, Expr value) {
  if (x.kind == Expr::value && !x.v.id) return detail::make_tile({}, x.loc);
  const TileType t = detail::type_of(x.kind == Expr::value ? x.v : detail::literal(x));
  return full(t.shape, value, t.dtype);
}
[[nodiscard]] inline Tile zeros_like(Expr x) { return full_like(x, Expr(0, x.loc)); }
[[nodiscard]] inline Tile ones_like(Expr x) { return full_like(x, Expr(1, x.loc)); }

/// x limited to [low, high].
[[nodiscard]] inline Tile clamp(Expr x, Expr low, Expr high) { return min(Expr(max(x, low), x.loc), high); }
namespace detail {
/// What functions made of others are computed in: 16-bit floats in f32, to be rounded once.
inline Expr widened(const Expr& x) {
  if (x.kind != Expr::value || !x.v.id) return x;
  const DType dtype = type_of(x.v).dtype;
  return dtype == f16 || dtype == bf16 ? Expr(cast(x, f32), x.loc) : x;
}
inline Tile as(const Tile& y, const Expr& x) {
  return x.kind == Expr::value && x.v.id ? cast(Expr(y, x.loc), type_of(x.v).dtype) : y;
}
inline Tile sigmoid_of(const Expr& x) {
  const SrcLoc at = x.loc;
  Tile e = exp2(Expr(apply(Op::mul, x, Expr(-1.4426950408889634, at)), at));
  return apply(Op::div, Expr(1.0, at), Expr(apply(Op::add, Expr(e, at), Expr(1.0, at)), at));
}
}  // namespace detail

/// 1 / (1 + e^-x), computed with exp2.
[[nodiscard]] inline Tile sigmoid(Expr x) {
  if (!detail::is_defined(x, /*floats=*/true, "sigmoid")) return detail::make_tile({}, x.loc);
  return detail::as(detail::sigmoid_of(detail::widened(x)), x);
}
/// x * sigmoid(x).
[[nodiscard]] inline Tile silu(Expr x) {
  if (!detail::is_defined(x, /*floats=*/true, "silu")) return detail::make_tile({}, x.loc);
  const Expr wide = detail::widened(x);
  return detail::as(detail::apply(detail::Op::mul, wide, Expr(detail::sigmoid_of(wide), x.loc)), x);
}
/// log(e^x + e^y), also of large and of infinite ones.
[[nodiscard]] inline Tile logaddexp(Expr x, Expr y) {
  const SrcLoc at = x.loc;
  if (!detail::is_defined(x, /*floats=*/true, "logaddexp") || !detail::is_defined(y, /*floats=*/true, "logaddexp"))
    return detail::make_tile({}, at);
  const Expr a = detail::widened(x), b = detail::widened(y);
  const Tile most = maximum(a, b), least = minimum(a, b);
  // Infinities of one sign have no difference.
  const Tile apart = where(Expr(least == most, at), Expr(0.0, at), Expr(least - most, at));
  const Tile sum = most + log1p(Expr(exp(Expr(apart, at)), at));
  return detail::as(sum, x.kind == Expr::value ? x : y);
}

}  // namespace tile
