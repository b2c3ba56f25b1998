// attention_blocks.h - which blocks of keys a block of queries visits (and the other way round), and which of them need
// a mask. The bounds are templates: over tiles when a kernel computes them, over int64_t when the host counts them.
#pragma once
#include "../../dsl/tile.h"

namespace tile::kernels {

/// Row i sees column j where i + offset - left <= j <= i + offset + right; a side that is not there has no limit.
/// `left` and `right` are >= 0.
template <class I>
struct Band {
  I offset, left, right;
  bool has_left = false, has_right = false;

  /// Rows and columns exchanged: column j is seen by row i where j - offset - right <= i <= j - offset + left.
  Band transposed() const { return {I(0 - offset), right, left, has_right, has_left}; }
};

/// Of the blocks of columns, [begin, end) hold something that a block of rows sees, and of these it sees [whole_begin,
/// whole_end) whole. begin <= whole_begin <= whole_end <= end; all equal where nothing is visible.
template <class I>
struct BlockRange {
  I begin, whole_begin, whole_end, end;
};

/// Blocks of `width` columns that rows first .. first + height - 1 (those below num_rows) see. With `keep_ragged` a
/// last block that reaches past num_columns may count as whole: right where the columns there add nothing.
template <class I>
BlockRange<I> visible_blocks(const Band<I>& band, const I& first, int height, const I& num_rows, const I& num_columns,
                             int width, bool keep_ragged = false) {
  const I last = min(first + height, num_rows) - 1;
  auto column = [&](const I& x) -> I { return min(max(x, 0), num_columns); };
  const I low = band.has_left ? column(first + band.offset - band.left) : I(0);
  const I high = band.has_right ? column(last + band.offset + band.right + 1) : num_columns;
  const I any_row = min(max(num_rows - first, 0), 1);  // 0: the block lies past the last row and sees nothing
  const I whole_low = band.has_left ? max(last + band.offset - band.left, 0) : I(0);
  const I whole_high = band.has_right ? max(first + band.offset + band.right + 1, 0) : num_columns;
  const I begin = low / width;
  const I end = max(cdiv(high * any_row, width), begin);
  const I whole_begin = band.has_left ? min(max(cdiv(whole_low, width), begin), end) : begin;
  const I whole_end = !keep_ragged     ? I(min(whole_high, num_columns) / width)
                      : band.has_right ? I(whole_high / width)
                                       : end;
  return {begin, whole_begin, min(max(whole_end, whole_begin), end), end};
}

/// Runs body(block, masked) for every block of the range, the last one first: where only the right side is limited, the
/// iterations that mask come first. `split`: three loops, the middle one without a mask; else one loop that masks
/// always and leaves the splitting to the compiler. A loop the band cannot need is left out: `masks_end` says that the
/// last blocks may need a mask.
template <class Body>
void for_each_block(const BlockRange<Tile>& r, bool masks_begin, bool masks_end, bool split, LoopOptions options,
                    const Body& body) {
  const Tile last = r.end - 1, count = r.end - r.begin;
  if (!split) {
    for (auto i : range(0, count, 1, options)) body(last - i, masks_begin || masks_end);
    return;
  }
  const Tile head = masks_end ? r.end - r.whole_end : Tile(0), tail = masks_begin ? r.end - r.whole_begin : count;
  if (masks_end)
    for (auto i : range(0, head, 1, options)) body(last - i, true);
  for (auto i : range(head, tail, 1, options)) body(last - i, false);
  if (masks_begin)
    for (auto i : range(tail, count, 1, options)) body(last - i, true);
}

/// Blocks by name, for every block of the other kind: those that need a mask and those that are visible whole. COUNTS
/// [B', H', rows], BLOCKS [B', H', rows, room], in any order.
struct ListedBlocks {
  const Tensor<const int32_t, 3>& partial_counts;
  const Tensor<const int32_t, 4>& partial_blocks;
  const Tensor<const int32_t, 3>& full_counts;
  const Tensor<const int32_t, 4>& full_blocks;
  bool masks;  ///< whether there is something to mask with; else there are no partial blocks, and none are read
};

/// Runs body(block, masked, whole) for every block listed for `row`: the partial ones first. `whole` is an i1 scalar. It
/// is one walk: the compiler makes two loops of it, the second without a mask, and rotates products across their
/// border.
template <class Body>
void for_each_listed_block(const ListedBlocks& lists, const Tile& batch, const Tile& head, const Tile& row,
                           LoopOptions options, const Body& body) {
  const Tile partials = lists.masks ? lists.partial_counts.load({batch, head, row}) : Tile(0);
  const Tile count = partials + lists.full_counts.load({batch, head, row});
  auto row_of = [&](const Tensor<const int32_t, 4>& t) {
    return t.ptr() + (cast(batch, i64) * t.stride(0) + cast(head, i64) * t.stride(1) + cast(row, i64) * t.stride(2));
  };
  const auto partial = row_of(lists.partial_blocks), full = row_of(lists.full_blocks);
  auto block = [&](const Tile& e) -> Tile {
    auto entry = [&](const auto& list, const Tensor<const int32_t, 4>& t, const Tile& i, const Tile& inside) -> Tile {
      return load(list + cast(i, i64) * t.stride(3), {.mask = inside});
    };
    if (!lists.masks) return entry(full, lists.full_blocks, e, e < count);
    // One of them is not read and 0.
    return entry(partial, lists.partial_blocks, e, e < partials) +
           entry(full, lists.full_blocks, e - partials, (e >= partials) & (e < count));
  };
  Tile next = block(Tile(0));  // indices are read an iteration ahead of the copies that need them
  for (auto e : range(0, count, 1, options)) {
    const Tile here = next, whole = e >= partials;
    next = block(e + 1);
    body(here, lists.masks, &whole);
  }
}

}  // namespace tile::kernels
