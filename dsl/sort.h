// sort.h - order along an axis, and places in an ordered table. Sorting is a bitonic network over the next power of two:
// log2(n)^2 / 2 steps. Long rows of integers known to have few bits (x & 255) take a round for two bits. NaNs come last
// whichever way, -0 is less than 0.
#pragma once
#include <utility>

#include "shape.h"

namespace tile {

struct SortOptions {
  bool descending = false;
};
/// The elements along an axis in ascending (or descending) order: integers, f16, bf16, f32 or f64; shape and type stay.
[[nodiscard]] inline Tile sort(Expr x, axis along, SortOptions o = {}) {
  return detail::make_tile(detail::sort(x, along.index, o.descending, nullptr), x.loc);
}
/// Where (i32) each element of the sorted tile was; of equal ones the first comes first. Payloads follow with
/// take(payload, argsort(x, axis(i)), i).
[[nodiscard]] inline Tile argsort(Expr x, axis along, SortOptions o = {}) {
  detail::Value indices{};
  detail::sort(x, along.index, o.descending, &indices);
  return detail::make_tile(indices, x.loc);
}
/// The k largest elements along an axis, largest first, and where they were; of equal ones the first. A small k takes
/// fewer steps than sorting: log2(k)^2 / 2 for all elements, then log2(k) each for half, a quarter, ... of them.
[[nodiscard]] inline std::pair<Tile, Tile> topk(Expr x, int64_t k, axis along) {
  detail::Value indices{};
  Tile values = detail::make_tile(detail::sort(x, along.index, true, &indices, k), x.loc);
  return {values, detail::make_tile(indices, x.loc)};
}
/// How many (i32) elements of `table`, one dim in ascending order, are less than each element of x, of the table's type
/// and any shape: where x would be put in front of its equals. log2 of the table's size look-ups each. NaN: 0.
[[nodiscard]] inline Tile lower_bound(Expr table, Expr x) {
  return detail::make_tile(detail::bound(table, x, false), x.loc);
}
/// The same of elements that are not more: where x would be put behind its equals.
[[nodiscard]] inline Tile upper_bound(Expr table, Expr x) {
  return detail::make_tile(detail::bound(table, x, true), x.loc);
}

}  // namespace tile
