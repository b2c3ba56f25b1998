// microscaling.h - the OCP microscaling formats (MX): numbers of 4 or 8 bits with a factor for every 32 of them, and
// products of them. Tiles hold two e2m1 numbers in a u8, the first one in its lower half, and the factors, powers of
// two without a mantissa (e8m0), as u8, too: 2^(x - 127), 255 is NaN.
#pragma once
#include "shape.h"

namespace tile {

/// The e2m1 numbers (0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives) in the bytes of a u8 tile as f16, bf16 or f32, two
/// neighbours along an axis out of each: 64x16 bytes give 64x32 numbers.
[[nodiscard]] inline Tile from_e2m1(Expr bytes, DType to, axis along = axis(-1)) {
  return detail::make_tile(detail::from_e2m1(bytes, to, along.index), bytes.loc);
}
/// 2^(x - 127) of a u8 tile as f16 (rounded), bf16 or f32; NaN where x is 255.
[[nodiscard]] inline Tile from_e8m0(Expr exponents, DType to) {
  return detail::make_tile(detail::from_e8m0(exponents, to), exponents.loc);
}

/// An operand of dot_scaled: {values}, {values, scales}, or {.values = w, .scales = s, .packed_along_k = false}.
struct ScaledOperand {
  /// RxK for the first operand (R rows of the product), KxC for the second (C columns), of f8e4m3, f8e5m2, f16, bf16 or
  /// u8. A u8 holds two e2m1 numbers: the tile is RxK/2 or K/2xC then.
  Expr values;
  /// A factor for every K / G neighbours along K (32 in MX, 16 in NVFP4): RxG for the first operand and CxG for the
  /// second one, of u8 (e8m0) or f8e4m3. Without it values count as they are.
  OptionalExpr scales{};
  /// Whether the two e2m1 numbers of a byte are neighbours along K. If not, along R or C: R/2xK or KxC/2.
  bool packed_along_k = true;
};

/// acc + a * b in f32, of operands of few bits with factors. Values and factors are converted to bf16 (f16 if one of
/// the operands is f16), exactly but for factors that f16 does not hold, multiplied there and rounded once; the rest is
/// as in dot. Without acc it starts from zero.
[[nodiscard]] inline Tile dot_scaled(ScaledOperand a, ScaledOperand b, OptionalExpr acc = {}) {
  return detail::make_tile(detail::dot_scaled({a.values, a.scales, a.packed_along_k},
                                              {b.values, b.scales, b.packed_along_k}, acc),
                           a.values.loc);
}

}  // namespace tile
