// exponent.h - floats taken apart into mantissa and power of two, and put together.
#pragma once
#include <utility>

#include "math.h"

namespace tile {

namespace detail {
/// How the float type of a tile keeps its numbers; f16 and bf16 are computed on as f32, which holds them.
struct FloatForm {
  DType type, number, word;  ///< given; computed in; integers of its size
  int digits, bias;          ///< bits of a stored mantissa; what is added to an exponent
  explicit FloatForm(const Expr& x) : type(type_of(x.kind == Expr::value ? x.v : literal(x)).dtype) {
    const bool wide = type == f64;
    number = wide ? f64 : f32, word = wide ? i64 : i32;
    digits = wide ? 52 : 23, bias = wide ? 1023 : 127;
  }
  /// 2^n for exponents of normal numbers.
  Tile power(const Tile& n, SrcLoc at) const {
    const Tile field = Expr(cast(Expr(n, at), word), at) + Expr(bias, at);
    return bitcast(Expr(Expr(field, at) << Expr(digits, at), at), number);
  }
};
}  // namespace detail

/// x 2^n for whole n of any size, rounded once.
[[nodiscard]] inline Tile ldexp(Expr x, Expr n) {
  const SrcLoc at = x.loc;
  if (!detail::is_defined(x, /*floats=*/true, "ldexp") || !detail::is_defined(n, /*floats=*/false, "ldexp's exponent"))
    return detail::make_tile({}, at);
  const detail::FloatForm form(x);
  auto e = [&](const Tile& t) { return Expr(t, at); };
  const int most = form.bias, least = 1 - form.bias, step = least + form.digits + 1;
  const DType count = detail::type_of(n.kind == Expr::value ? n.v : detail::literal(n)).dtype;
  const bool isLong = count == i64 || count == u64 || count == u32;
  Tile y = cast(x, form.number), left = cast(n, isLong ? i64 : i32);
  left = cast(e(clamp(e(left), Expr(-4 * most, at), Expr(4 * most, at))), i32);
  // Two steps that round nothing bring what is left into the range of one power: downwards they stop short of where
  // the last one would find a number already rounded.
  for (int i = 0; i < 2; ++i) {
    const Tile down = where(e(e(left) < Expr(least, at)), Expr(step, at), Expr(0, at));
    const Tile taken = where(e(e(left) > Expr(most, at)), Expr(most, at), e(down));
    y = e(y) * e(form.power(taken, at));
    left = e(left) - e(taken);
  }
  left = clamp(e(left), Expr(least, at), Expr(most, at));
  return cast(e(e(y) * e(form.power(left, at))), form.type);
}

/// Mantissa m, 1/2 <= |m| < 1, and exponent n (i32) of x = m 2^n; of zeros, infinities and NaNs themselves and 0.
[[nodiscard]] inline std::pair<Tile, Tile> frexp(Expr x) {
  const SrcLoc at = x.loc;
  if (!detail::is_defined(x, /*floats=*/true, "frexp")) return {detail::make_tile({}, at), detail::make_tile({}, at)};
  const detail::FloatForm form(x);
  auto e = [&](const Tile& t) { return Expr(t, at); };
  const int64_t field = 2 * form.bias + 1, half = form.bias - 1;
  const Tile y = cast(x, form.number);
  // Subnormals are made normal first.
  const Tile tiny = e(abs(e(y))) < Expr(std::ldexp(1.0, 1 - form.bias), at);
  const Tile grown = where(e(tiny), e(e(y) * Expr(std::ldexp(1.0, form.digits + 1), at)), e(y));
  const Tile word = bitcast(e(grown), form.word);
  const Tile found = e(e(word) >> Expr(form.digits, at)) & Expr(field, at);
  const Tile less = where(e(tiny), Expr(form.digits + 1 + static_cast<int>(half), at), Expr(static_cast<int>(half), at));
  const Tile exponent = e(cast(e(found), i32)) - e(less);
  const Tile bits = e(e(word) & Expr(~(field << form.digits), at)) | Expr(half << form.digits, at);
  const Tile itself = e(e(y) == Expr(0.0, at)) | e(!e(isfinite(e(y))));
  return {cast(e(where(e(itself), e(y), e(bitcast(e(bits), form.number)))), form.type),
          where(e(itself), Expr(0, at), e(exponent))};
}

}  // namespace tile
