// sort.h - order along an axis of a tile, by a bitonic network over the next power of two: log2(n)^2 / 2 steps, each an
// exchange between partners. The order is total: NaNs come last whichever way, -0 counts as less than 0.
#pragma once
#include <array>
#include <utility>

#include "dsl/shape.h"

namespace tile {

struct SortOptions {
  bool descending = false;
};
inline Tile sort(Expr x, axis along, SortOptions o = {}) {
  return detail::make_tile(detail::sort(x, along.index, o.descending, nullptr), x.loc);
}
/// Where (i32) each element of the sorted tile was; of equal ones the first comes first. Payloads follow with
/// take(payload, argsort(x, axis(i)), i).
inline Tile argsort(Expr x, axis along, SortOptions o = {}) {
  detail::Value indices{};
  detail::sort(x, along.index, o.descending, &indices);
  return detail::make_tile(indices, x.loc);
}
/// The k largest elements along an axis, largest first, and where they were; of equal ones the first.
inline std::pair<Tile, Tile> topk(Expr x, int64_t k, axis along) {
  detail::Value indices{};
  const Tile values = detail::make_tile(detail::sort(x, along.index, true, &indices), x.loc);
  const Tile places = detail::make_tile(indices, x.loc);
  Shape zero, shape = detail::type_of(x.v).shape;
  const int at = along.index < 0 ? along.index + shape.rank() : along.index;
  for (int d = 0; d < shape.rank(); ++d) zero.push_back(0);
  if (indices.id == 0) return {values, places};
  if (k < 1 || k > shape[at]) {
    detail::report("topk of " + std::to_string(k) + " along an axis of " + std::to_string(shape[at]) + " elements: " +
                       detail::type_of(x.v).to_string(),
                   x.loc);
    return {detail::make_tile({}, x.loc), detail::make_tile({}, x.loc)};
  }
  shape[at] = k;
  return {extract(Expr(values, x.loc), zero, shape), extract(Expr(places, x.loc), zero, shape)};
}

}  // namespace tile
