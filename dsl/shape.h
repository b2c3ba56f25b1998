// shape.h - the same elements under another shape or order, and putting tiles together. All sizes are known while
// tracing.
#pragma once
#include <utility>

#include "value.h"

namespace tile {

/// Row-major order kept; the number of elements must agree. A one-element tile reshaped to {} is a scalar.
[[nodiscard]] inline Tile reshape(Expr x, Shape shape) { return detail::make_tile(detail::reshape(x, shape), x.loc); }
/// All elements in one dim.
[[nodiscard]] inline Tile ravel(Expr x) {
  return reshape(x, {detail::type_of(x.kind == Expr::value ? x.v : detail::literal(x)).shape.elements()});
}
/// A new dim of size 1 at `at` (negative counts from the last of the result).
[[nodiscard]] inline Tile expand_dims(Expr x, int at) { return detail::make_tile(detail::expand_dims(x, at), x.loc); }
/// Drops a dim of size 1. Dropping the last one gives a scalar.
[[nodiscard]] inline Tile squeeze(Expr x, int dim) { return detail::make_tile(detail::squeeze(x, dim), x.loc); }
/// The only element of a tile as a scalar.
[[nodiscard]] inline Tile to_scalar(Expr x) { return detail::make_tile(detail::to_scalar(x), x.loc); }
/// Repeats dims of size 1 up to `shape`; scalars fill it.
[[nodiscard]] inline Tile broadcast_to(Expr x, Shape shape) {
  return detail::make_tile(detail::broadcast_to(x, shape), x.loc);
}
/// Swaps the last two dims.
[[nodiscard]] inline Tile trans(Expr x) { return detail::make_tile(detail::transpose(x), x.loc); }
/// Dim i of the result is dim order[i] of x.
[[nodiscard]] inline Tile permute(Expr x, Shape order) { return detail::make_tile(detail::permute(x, order), x.loc); }

/// a, then b, along an axis.
[[nodiscard]] inline Tile cat(Expr a, Expr b, int axis = 0) {
  const detail::Operand parts[] = {a, b};
  return detail::make_tile(detail::cat(parts, 2, axis), a.loc);
}
/// Any number of tiles, one behind the other: cat({a, b, c}, 1).
template <size_t N>
[[nodiscard]] Tile cat(const Expr (&parts)[N], int axis = 0) {
  detail::Operand all[N];
  for (size_t i = 0; i < N; ++i) all[i] = parts[i];
  return detail::make_tile(detail::cat(all, int(N), axis), parts[0].loc);
}
/// Tiles of one shape along a new dim: stack({a, b, c}, 0)[i] would be the i-th.
template <size_t N>
[[nodiscard]] Tile stack(const Expr (&parts)[N], int at = 0) {
  detail::Operand all[N];
  for (size_t i = 0; i < N; ++i) all[i] = Expr(expand_dims(parts[i], at), parts[i].loc);
  return detail::make_tile(detail::cat(all, int(N), at), parts[0].loc);
}
/// Stacks two equal shapes along a new last dim of size 2.
[[nodiscard]] inline Tile join(Expr a, Expr b) {
  return stack({a, b}, -1);
}
/// The two halves of a last dim of size 2; undoes join.
[[nodiscard]] inline std::pair<Tile, Tile> split(Expr x) {
  const Shape shape = detail::type_of(x.v).shape;
  if (x.kind != Expr::value || shape.rank() < 1 || shape[shape.rank() - 1] != 2) {
    if (x.kind != Expr::value || x.v.id) {
      const std::string found = x.kind == Expr::value ? ", found " + detail::type_of(x.v).to_string() : "";
      detail::report(("split needs a tile whose last dim has size 2" + found).c_str(), x.loc);
    }
    return {detail::make_tile({}, x.loc), detail::make_tile({}, x.loc)};
  }
  Shape half = shape, offsets;
  half[shape.rank() - 1] = 1;
  for (int i = 0; i < shape.rank(); ++i) offsets.push_back(0);
  Tile a = detail::make_tile(detail::extract(x, offsets, half), x.loc);
  offsets[shape.rank() - 1] = 1;
  Tile b = detail::make_tile(detail::extract(x, offsets, half), x.loc);
  return {squeeze(Expr(a, x.loc), -1), squeeze(Expr(b, x.loc), -1)};
}
/// The box of `shape` at static offsets.
[[nodiscard]] inline Tile extract(Expr x, Shape offsets, Shape shape) {
  return detail::make_tile(detail::extract(x, offsets, shape), x.loc);
}
/// `into` with the box at static offsets replaced by `part`, the opposite of extract.
[[nodiscard]] inline Tile insert(Expr into, Expr part, Shape offsets) {
  return detail::make_tile(detail::insert(into, part, offsets), into.loc);
}
/// result[.., i, ..] = x[.., indices[.., i, ..], ..] along an axis; i32 indices of x's rank. One number takes a slice
/// (the axis goes), a list of one dim several; a table of one dim is looked up at places of any shape. Places are inside
/// of the axis.
[[nodiscard]] inline Tile take(Expr x, Expr indices, int axis) {
  return detail::make_tile(detail::take(x, indices, axis), x.loc);
}
/// Every element `n` times, one behind the other along an axis: a, a, b, b, .. (values of groups for their members).
[[nodiscard]] inline Tile repeat(Expr x, int64_t n, axis along) {
  return detail::make_tile(detail::repeat(x, n, along.index), x.loc);
}
struct UnpackOptions {
  bool is_signed = false;  ///< the numbers are two's complement, not from 0 on
};
/// Numbers of `bits` bits that lie side by side in integers, the lowest bits first, as elements of type `to`: of K words
/// along the axis K * (bits of a word / bits) elements. Weights of 4 bits: unpack(words, 4, axis(0), f16).
[[nodiscard]] inline Tile unpack(Expr words, int bits, axis along, DType to, UnpackOptions o = {}) {
  return detail::make_tile(detail::unpack(words, bits, along.index, to, o.is_signed), words.loc);
}
struct ShiftOptions {
  OptionalExpr fill{};  ///< a scalar that comes in at the end; default 0
};
/// The elements `by` places further along an axis (back, where it is negative): result[i] = x[i - by].
[[nodiscard]] inline Tile shift(Expr x, int64_t by, axis along, ShiftOptions o = {}) {
  return detail::make_tile(detail::shift(x, by, along.index, o.fill), x.loc);
}
struct PutOptions {
  OptionalExpr mask{};  ///< elements where it is false are not put
  bool whole = false;   ///< every element of the result is put, as by a permutation: nothing of `into` has to be kept
};
/// `into` with result[.., indices[.., i, ..], ..] = values[.., i, ..] along an axis, the inverse of take: i32 indices and
/// values of one shape (or stretched to one) that agrees with `into` outside the axis. Elements whose index is outside
/// of the axis are put nowhere. Where several are put to one place one of them stays, which is not specified; neither is
/// an element that is not put although the put is `whole`.
[[nodiscard]] inline Tile put(Expr into, Expr indices, Expr values, int axis, PutOptions o = {}) {
  return detail::make_tile(detail::put(into, indices, values, axis, o.mask, o.whole), into.loc);
}
/// Opposite order along an axis.
[[nodiscard]] inline Tile flip(Expr x, axis along) {
  if (x.kind != Expr::value || !x.v.id) return detail::make_tile({}, x.loc);
  const Shape shape = detail::type_of(x.v).shape;
  const int at = along.index < 0 ? along.index + shape.rank() : along.index;
  if (at < 0 || at >= shape.rank()) {
    detail::report("axis " + std::to_string(along.index) + " is out of range for " + detail::type_of(x.v).to_string(),
                   x.loc);
    return detail::make_tile({}, x.loc);
  }
  Shape line;
  for (int d = 0; d < shape.rank(); ++d) line.push_back(d == at ? shape[at] : 1);
  auto e = [&](detail::Value v) { return Expr(detail::make_tile(v, x.loc), x.loc); };
  const detail::Operand ends[] = {Expr(static_cast<int>(shape[at] - 1), x.loc), e(detail::arange(0, shape[at], x.loc))};
  const Expr back = e(detail::reshape(e(detail::elementwise(detail::Op::sub, ends, 2)), line));
  return take(x, e(detail::broadcast_to(back, shape)), at);
}
/// a[0], b[0], a[1], b[1] ... along the last axis.
[[nodiscard]] inline Tile interleave(Expr a, Expr b) {
  const Tile pairs = join(a, b);
  Shape shape = detail::type_of(a.v).shape;
  if (a.kind == Expr::value && shape.rank() > 0) shape[shape.rank() - 1] *= 2;
  return reshape(Expr(pairs, a.loc), shape.rank() > 0 ? shape : Shape{2});
}

}  // namespace tile
