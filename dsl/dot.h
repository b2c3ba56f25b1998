// dot.h - the matrix product of two tiles, or of several pairs at once.
#pragma once
#include "value.h"

namespace tile {

/// acc + a * b for an MxK and a KxN tile of one element type: f16, bf16, f8 and f32 accumulate in f32, f64 in f64, i8
/// in i32. f8e4m3 and f8e5m2 may meet, too (gradients and weights). Without acc it starts from zero. f32 operands are
/// multiplied in IEEE f32 unless `prec` says otherwise; for other operands it means nothing.
/// Tiles of B matrices, BxMxK and BxKxN, give BxMxN: a product for each.
[[nodiscard]] inline Tile dot(Expr a, Expr b, OptionalExpr acc = {}, Prec prec = Prec::ieee) {
  return detail::make_tile(detail::dot(a, b, acc, prec), a.loc);
}
[[nodiscard]] inline Tile dot(Expr a, Expr b, Prec prec) {
  return detail::make_tile(detail::dot(a, b, {}, prec), a.loc);
}

/// Counts the bits that rows of `a` and columns of `b` have in common: acc[i, j] + the sum over k of
/// popcount(a[i, k] & b[k, j]). Operands are MxK and KxN words of 32 bits, u32 or i32; counts are i32. Shapes, batches
/// and a missing acc are as for dot. Bits that differ (Hamming): counts(a) + counts(b) - 2 * dot_bits(a, b).
[[nodiscard]] inline Tile dot_bits(Expr a, Expr b, OptionalExpr acc = {}) {
  return detail::make_tile(detail::dot_bits(a, b, acc), a.loc);
}

}  // namespace tile
