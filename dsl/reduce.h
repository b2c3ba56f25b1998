// reduce.h - combining elements along an axis. The reduced axis stays, with size 1, so that the result broadcasts
// against what it came from: x - max(x, axis(1)). Without an axis everything is combined into a scalar. Sums and
// products of elements narrower than 32 bits are computed and returned in 32 (i1 counts in i32).
#pragma once
#include <array>
#include <tuple>
#include <utility>

#include "math.h"
#include "shape.h"

namespace tile {

#define TILE_FOLD(verb)                                                                  \
  [[nodiscard]] inline Tile verb(Expr x, axis along) {                                   \
    return detail::make_tile(detail::reduce(detail::Fold::verb, x, along.index), x.loc); \
  }                                                                                      \
  [[nodiscard]] inline Tile verb(Expr x) {                                               \
    return detail::make_tile(detail::reduce_all(detail::Fold::verb, x), x.loc);          \
  }
TILE_FOLD(sum)
TILE_FOLD(prod)
TILE_FOLD(max)  // NaNs lose against numbers
TILE_FOLD(min)
TILE_FOLD(any)      // i1
TILE_FOLD(all)      // i1
TILE_FOLD(xor_sum)  // integers
#undef TILE_FOLD
namespace detail {
template <class I>
void axis_wanted() {
  static_assert(kAlwaysFalse<I>, "the axis of a reduction is written axis(i) -> sum(x, axis(1))");
}
}  // namespace detail
#define TILE_FOLD_BY_NUMBER(verb)        \
  template <std::integral I>             \
  Tile verb(const Expr& x, I) {          \
    detail::axis_wanted<I>();            \
    return detail::make_tile({}, x.loc); \
  }
TILE_FOLD_BY_NUMBER(sum)
TILE_FOLD_BY_NUMBER(prod)
TILE_FOLD_BY_NUMBER(any)
TILE_FOLD_BY_NUMBER(all)
#undef TILE_FOLD_BY_NUMBER
/// Index (i32) of the largest or smallest element along an axis; the first one among equals, NaNs never win.
[[nodiscard]] inline Tile argmax(Expr x, axis along) {
  return detail::make_tile(detail::reduce(detail::Fold::argmax, x, along.index), x.loc);
}
[[nodiscard]] inline Tile argmin(Expr x, axis along) {
  return detail::make_tile(detail::reduce(detail::Fold::argmin, x, along.index), x.loc);
}
/// The same over all elements, as a scalar: the index counts them in row-major order, as those of ravel(x).
[[nodiscard]] inline Tile argmax(Expr x) {
  return to_scalar(Expr(argmax(Expr(ravel(x), x.loc), axis(0)), x.loc));
}
[[nodiscard]] inline Tile argmin(Expr x) {
  return to_scalar(Expr(argmin(Expr(ravel(x), x.loc), axis(0)), x.loc));
}

/// max or min along an axis together with argmax or argmin, at the price of the latter: auto [value, at] = ...
[[nodiscard]] inline std::pair<Tile, Tile> max_with_index(Expr x, axis along) {
  detail::Value index{};
  const detail::Value value = detail::reduce_with_index(detail::Fold::argmax, x, along.index, index);
  return {detail::make_tile(value, x.loc), detail::make_tile(index, x.loc)};
}
[[nodiscard]] inline std::pair<Tile, Tile> min_with_index(Expr x, axis along) {
  detail::Value index{};
  const detail::Value value = detail::reduce_with_index(detail::Fold::argmin, x, along.index, index);
  return {detail::make_tile(value, x.loc), detail::make_tile(index, x.loc)};
}
/// The same over all elements, as two scalars.
[[nodiscard]] inline std::pair<Tile, Tile> max_with_index(Expr x) {
  const auto [value, index] = max_with_index(Expr(ravel(x), x.loc), axis(0));
  return {to_scalar(Expr(value, x.loc)), to_scalar(Expr(index, x.loc))};
}
[[nodiscard]] inline std::pair<Tile, Tile> min_with_index(Expr x) {
  const auto [value, index] = min_with_index(Expr(ravel(x), x.loc), axis(0));
  return {to_scalar(Expr(value, x.loc)), to_scalar(Expr(index, x.loc))};
}

struct ScanOptions {
  bool reverse = false;  ///< from the last element to the first
};
struct RunningOptions {
  bool reverse = false;    ///< from the last element to the first
  bool exclusive = false;  ///< of the elements before, without the element itself
};
/// Running sum and product.
[[nodiscard]] inline Tile cumsum(Expr x, axis along, RunningOptions o = {}) {
  const Tile sums = detail::make_tile(detail::scan(detail::Fold::sum, x, along.index, o.reverse), x.loc);
  return o.exclusive ? shift(Expr(sums, x.loc), o.reverse ? -1 : 1, along) : sums;
}
[[nodiscard]] inline Tile cumprod(Expr x, axis along, RunningOptions o = {}) {
  const Tile products = detail::make_tile(detail::scan(detail::Fold::prod, x, along.index, o.reverse), x.loc);
  return o.exclusive ? shift(Expr(products, x.loc), o.reverse ? -1 : 1, along, {.fill = 1}) : products;
}

namespace detail {
template <class R>
inline constexpr size_t kTilesIn = std::is_convertible_v<R, Tile> ? 1 : 0;
template <class R>
requires requires { std::tuple_size<R>::value; }
inline constexpr size_t kTilesIn<R> = std::tuple_size_v<R>;
template <size_t>
using TileAt = Tile;
/// Whether f combines N tiles: it takes 2 N and returns N.
template <size_t N, class F, size_t... I>
constexpr bool is_combiner() {
  constexpr bool takes = std::is_invocable_v<F&, TileAt<I>..., TileAt<I>...>;
  static_assert(takes,
                "a combiner takes two values of every tile that is combined -> (Tile before, Tile next), or for "
                "{a, b} (Tile a0, Tile b0, Tile a1, Tile b1)");
  if constexpr (takes) {
    constexpr size_t made = kTilesIn<std::decay_t<std::invoke_result_t<F&, TileAt<I>..., TileAt<I>...>>>;
    static_assert(made == N,
                  "a combiner returns a value of every tile that is combined -> a Tile, or for {a, b} "
                  "std::tuple(a, b)");
    return made == N;
  }
  return false;
}
template <size_t N, class F, size_t... I>
auto combine(const std::array<Operand, N>& sources, int along, bool is_scan, bool reverse, F&& f,
             std::index_sequence<I...>) {
  const SrcLoc loc = sources[0].loc;
  Value args[2 * N] = {}, out[N] = {};
  if constexpr (is_combiner<N, F, I...>()) {
    uint32_t handle = 0;
    open_combiner(sources.data(), int(N), along, is_scan, reverse, args, loc, handle);
    const Unwinding guard(handle, loc);
    if constexpr (N == 1) {
      Tile r = f(make_tile(args[0], loc), make_tile(args[1], loc));
      const Operand yields[] = {Expr(r, loc)};
      close_combiner(yields, 1, out);
    } else {
      auto r = f(make_tile(args[I], loc)..., make_tile(args[N + I], loc)...);
      const Operand yields[] = {Expr(Tile(std::get<I>(r)), loc)...};
      close_combiner(yields, int(N), out);
    }
  }
  if constexpr (N == 1)
    return make_tile(out[0], loc);
  else
    return std::array<Tile, N>{make_tile(out[I], loc)...};
}
}  // namespace detail

/// Combines along an axis with f(accumulated, next), which must be associative and commutative and may use only its
/// arguments and constants: the order of combination is not specified.
template <class F>
[[nodiscard]] Tile reduce(Expr x, axis along, F&& f) {
  return detail::combine<1>({x}, along.index, false, false, f, std::index_sequence<0>{});
}
/// Several tiles of one shape at once: reduce({v, i}, axis(0), [](Tile v0, Tile i0, Tile v1, Tile i1) { return
/// std::tuple(...); }).
template <class F, size_t N>
[[nodiscard]] auto reduce(const Expr (&x)[N], axis along, F&& f) {
  std::array<detail::Operand, N> sources;
  for (size_t i = 0; i < N; ++i) sources[i] = x[i];
  return detail::combine<N>(sources, along.index, false, false, f, std::make_index_sequence<N>{});
}
/// Inclusive prefix combination; f(before, next) must be associative.
template <class F>
[[nodiscard]] Tile scan(Expr x, axis along, F&& f, ScanOptions o = {}) {
  return detail::combine<1>({x}, along.index, true, o.reverse, f, std::index_sequence<0>{});
}
template <class F, size_t N>
[[nodiscard]] auto scan(const Expr (&x)[N], axis along, F&& f, ScanOptions o = {}) {
  std::array<detail::Operand, N> sources;
  for (size_t i = 0; i < N; ++i) sources[i] = x[i];
  return detail::combine<N>(sources, along.index, true, o.reverse, f, std::make_index_sequence<N>{});
}

struct HistogramOptions {
  OptionalExpr mask{};    ///< elements where it is false are not counted
  OptionalExpr weight{};  ///< what an element adds instead of 1
};
/// How many elements of an i32 tile are 0, 1, .. bins - 1, as an i32 tile of `bins`. Other values are not counted. With
/// weights: the sums of those, of the type that sum() has. The order of these additions is not specified, and on GPUs
/// another one in every run: so are the last bits of sums of floats.
[[nodiscard]] inline Tile histogram(Expr x, int64_t bins, HistogramOptions o = {}) {
  if (o.mask.kind == Expr::absent) return detail::make_tile(detail::histogram(x, o.weight, bins), x.loc);
  const Tile counted = detail::make_tile(detail::select(o.mask, x, Expr(-1, x.loc)), x.loc);
  return detail::make_tile(detail::histogram(Expr(counted, x.loc), o.weight, bins), x.loc);
}

/// e^x normalised along an axis, safe against overflow; f32 of 16-bit floats.
[[nodiscard]] inline Tile softmax(Expr x, axis along) {
  const SrcLoc at = x.loc;
  if (!detail::is_defined(x, /*floats=*/true, "softmax")) return detail::make_tile({}, at);
  Tile shifted = detail::apply(detail::Op::sub, detail::widened(x), Expr(max(x, along), at));
  Tile e = exp2(Expr(detail::apply(detail::Op::mul, Expr(shifted, at), Expr(1.4426950408889634, at)), at));
  return detail::apply(detail::Op::div, Expr(e, at), Expr(sum(Expr(e, at), along), at));
}

}  // namespace tile
