// guarded_values.h - products of weights with values that may be anything where a mask hides them: a weight of 0 is not
// enough, since 0 * NaN is NaN. In blocks that a mask cuts, values that are not finite are taken as 0, and a second
// product counts which queries see one.
#pragma once
#include <cmath>

#include "../../dsl/tile.h"

namespace tile::kernels {

class GuardedValues {
 public:
  GuardedValues(int rows, int columns) : seen_(zeros({rows, columns}, f32)) {}

  /// acc + p v for weights p [rows, n] and values v [n, columns]; scores [rows, n] are -inf where v is hidden.
  template <class T>
  Tile product(const Tile& p, const Tile& scores, const Tile& v, const Tile& acc, Prec precision) {
    auto ones = [](const Tile& where_true) { return cast(where(where_true, 1.f, 0.f), dtype_of<T>()); };
    const Tile finite = abs(cast(v, f32)) < INFINITY;  // false for NaN
    seen_ = dot(ones(scores > -INFINITY), ones(~finite), seen_, precision);
    return dot(p, where(finite, v, 0.f), acc, precision);
  }
  /// x [rows, columns], NaN where a query saw a value that is not finite.
  Tile apply(const Tile& x) const { return where(seen_ > 0.f, NAN, x); }

 private:
  Tile seen_;  ///< how many
};

}  // namespace tile::kernels
