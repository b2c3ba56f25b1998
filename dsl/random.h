// random.h - counter-based random numbers (Philox 4x32, Salmon et al., SC 2011; ten rounds): element i of stream `seed`
// does not depend on tile shapes or the grid, so results are reproducible on every device.
#pragma once
#include <array>

#include "math.h"

namespace tile {

/// Four u32 tiles from a 128-bit counter (u32 tiles or literals) and a 64-bit key (two u32 scalars). Seven `rounds` are
/// the fewest that pass the authors' tests.
[[nodiscard]] inline std::array<Tile, 4> philox(Expr c0, Expr c1, Expr c2, Expr c3, Expr key0, Expr key1,
                                                int rounds = 10) {
  const SrcLoc at = c0.loc;
  auto op = [&](detail::Op o, const Tile& a, const Tile& b) { return detail::apply(o, Expr(a, at), Expr(b, at)); };
  auto word = [&](const Expr& e) {
    return cast(e.kind == Expr::value ? e : Expr(detail::make_tile(detail::literal_as(e, u32), at), at), u32);
  };
  auto constant = [&](uint32_t c) { return detail::make_tile(detail::literal_as(Expr(c, at), u32), at); };
  Tile x0 = word(c0), x1 = word(c1), x2 = word(c2), x3 = word(c3), k0 = word(key0), k1 = word(key1);
  // One widening product where upper and lower halves apart would be two.
  auto product = [&](const Tile& x, uint32_t c) {
    const Tile factor = detail::make_tile(detail::literal_as(Expr(c, at), u64), at);
    const Tile both = op(detail::Op::mul, cast(Expr(x, at), u64), factor);
    const Tile high = detail::apply(detail::Op::shr, Expr(both, at), Expr(32, at));
    return std::array<Tile, 2>{cast(Expr(high, at), u32), cast(Expr(both, at), u32)};
  };
  const Tile w0 = constant(0x9E3779B9u), w1 = constant(0xBB67AE85u);
  for (int round = 0; round < rounds; ++round) {
    const auto [high0, low0] = product(x0, 0xD2511F53u);
    const auto [high1, low1] = product(x2, 0xCD9E8D57u);
    x0 = op(detail::Op::bit_xor, op(detail::Op::bit_xor, high1, x1), k0);
    x2 = op(detail::Op::bit_xor, op(detail::Op::bit_xor, high0, x3), k1);
    x1 = low1, x3 = low0;
    k0 = op(detail::Op::add, k0, w0), k1 = op(detail::Op::add, k1, w1);
  }
  return {x0, x1, x2, x3};
}

namespace detail {
/// The four words for element `offset` of stream `seed`; both may be up to 64 bits wide.
inline std::array<Tile, 4> random_words(const Expr& seed, const Expr& offset) {
  const SrcLoc at = offset.loc;
  if (!is_defined(seed, /*floats=*/false, "seed of random numbers") ||
      !is_defined(offset, /*floats=*/false, "offset of random numbers"))
    return {make_tile({}, at), make_tile({}, at), make_tile({}, at), make_tile({}, at)};
  auto low = [&](const Expr& e) { return cast(Expr(cast(e, u64), at), u32); };
  auto high = [&](const Expr& e) { return cast(Expr(apply(Op::shr, Expr(cast(e, u64), at), Expr(32, at)), at), u32); };
  return philox(Expr(low(offset), at), Expr(high(offset), at), Expr(0u, at), Expr(0u, at), Expr(low(seed), at),
                Expr(high(seed), at));
}
/// Upper 24 bits of a word as f32 in [0, 1).
inline Tile to_unit(const Tile& word, SrcLoc at) {
  Tile bits = apply(Op::shr, Expr(word, at), Expr(8, at));
  return apply(Op::mul, Expr(cast(Expr(bits, at), f32), at), Expr(0x1p-24, at));
}
}  // namespace detail

/// The four words that an element of a stream has, at the price of one: uniform u32.
[[nodiscard]] inline std::array<Tile, 4> randint4(Expr seed, Expr offset) { return detail::random_words(seed, offset); }
/// Uniform u32 words, one per element of `offset`: the first of randint4.
[[nodiscard]] inline Tile randint(Expr seed, Expr offset) { return detail::random_words(seed, offset)[0]; }
/// Uniform f32 in [0, 1).
[[nodiscard]] inline Tile rand(Expr seed, Expr offset) {
  return detail::to_unit(detail::random_words(seed, offset)[0], offset.loc);
}
/// Four of the same, independent, at the price of one.
[[nodiscard]] inline std::array<Tile, 4> rand4(Expr seed, Expr offset) {
  const auto w = detail::random_words(seed, offset);
  auto unit = [&](int i) { return detail::to_unit(w[i], offset.loc); };
  return {unit(0), unit(1), unit(2), unit(3)};
}

namespace detail {
/// Two independent normal f32 from two words (Box-Muller).
inline std::array<Tile, 2> to_normal(const Tile& first, const Tile& second, SrcLoc at) {
  auto op = [&](Op o, const Tile& a, double b) { return apply(o, Expr(a, at), Expr(b, at)); };
  // 1 - u lies in (0, 1]: its logarithm is finite.
  const Tile u = apply(Op::sub, Expr(1.0, at), Expr(to_unit(first, at), at));
  const Tile radius = sqrt(Expr(op(Op::mul, log2(Expr(u, at)), -2.0 * 0.6931471805599453), at));
  const Tile turns = op(Op::mul, to_unit(second, at), 2.0);  // half ones: exact, and reduced without a rounding
  return {apply(Op::mul, Expr(radius, at), Expr(cospi(Expr(turns, at)), at)),
          apply(Op::mul, Expr(radius, at), Expr(sinpi(Expr(turns, at)), at))};
}
}  // namespace detail

/// Normal f32 with mean 0 and variance 1.
[[nodiscard]] inline Tile randn(Expr seed, Expr offset) {
  const auto w = detail::random_words(seed, offset);
  return detail::to_normal(w[0], w[1], offset.loc)[0];
}
/// Four of the same, independent, at about the price of two.
[[nodiscard]] inline std::array<Tile, 4> randn4(Expr seed, Expr offset) {
  const auto w = detail::random_words(seed, offset);
  const auto first = detail::to_normal(w[0], w[1], offset.loc), second = detail::to_normal(w[2], w[3], offset.loc);
  return {first[0], first[1], second[0], second[1]};
}

}  // namespace tile
