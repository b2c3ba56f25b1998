// block_lists.h - lists of a matrix's non-zero blocks, made on the device: from the matrix itself, from a mask, from the
// meeting of two masks. Row by row (CSR/BSR) with the row of every entry beside it (COO).
#pragma once
#include "parts/shapes.h"

namespace tile::kernels {

struct BlockListsConfig {
  int BM = 64, BN = 64;   ///< blocks of the scanned matrix
  int WIDTH = 128;        ///< mask entries looked at together
  bool meeting = false;   ///< lists of k where both MASK_A[i, k] and MASK_B[k, j] are set, for every (i, j)
  bool indexed = false;   ///< entries also get INDEX at their place: where the values of the entry are stored
  int warps = 4;
};

/// MASK[i, j] = 1 where block (i, j) of X has an element that is not zero (NaN counts), else 0. Grid {rows, columns of
/// MASK}.
template <class T>
void block_mask_program(const BlockListsConfig& c, Tensor<const T, 2> X, Tensor<int32_t, 2> MASK) {
  num_warps(c.warps);
  auto i = program_id(0), j = program_id(1);
  auto x = cast(X.load({i * c.BM, j * c.BN}, {c.BM, c.BN}), f32);
  auto some = max(max(where(x == 0.f, 0, 1), axis(1)), axis(0));
  MASK.store({i, j}, some);
}

/// Which of the WIDTH entries from `k0` on are in list `row`. Lists: rows of MASK_A; with config.meeting the pairs (i, j)
/// of MASK_A's rows and MASK_B's columns, j fastest.
inline Tile listed(const BlockListsConfig& c, const Tensor<const int32_t, 2>& MASK_A,
                   const Tensor<const int32_t, 2>& MASK_B, const Tile& row, const Tile& k0) {
  auto i = c.meeting ? row / MASK_B.dim(1) : Tile(row);
  auto here = reshape(MASK_A.load({i, k0}, {1, c.WIDTH}), {c.WIDTH}) != 0;
  if (!c.meeting) return here;
  auto j = row - i * MASK_B.dim(1);
  return here & (reshape(MASK_B.load({k0, j}, {c.WIDTH, 1}), {c.WIDTH}) != 0);
}

/// COUNTS[row] = length of list `row`. Grid {rows}.
inline void block_counts_program(const BlockListsConfig& c, Tensor<const int32_t, 2> MASK_A,
                                 Tensor<const int32_t, 2> MASK_B, Tensor<int32_t, 1> COUNTS) {
  num_warps(c.warps);
  auto row = program_id(0);
  Tile count = zeros({c.WIDTH}, i32);
  for (auto k0 : range(0, MASK_A.dim(1), c.WIDTH)) count += where(listed(c, MASK_A, MASK_B, row, k0), 1, 0);
  COUNTS.store({row}, sum(count, axis(0)));
}

/// OFFSETS[0] = 0, OFFSETS[i + 1] = COUNTS[0] + ... + COUNTS[i]. One program.
inline void block_offsets_program(const BlockListsConfig& c, Tensor<const int32_t, 1> COUNTS,
                                  Tensor<int32_t, 1> OFFSETS) {
  num_warps(c.warps);
  const int width = 1024;
  OFFSETS.store({0}, zeros({1}, i32));
  Tile before = zeros({1}, i32);
  for (auto i0 : range(0, COUNTS.dim(0), width)) {
    auto counts = COUNTS.load({i0}, {width});
    OFFSETS.store({i0 + 1}, cumsum(counts, axis(0)) + before);
    before += sum(counts, axis(0));
  }
}

/// Fills COLUMNS and ROWS of the entries of list `row`, from OFFSETS[row] on. Grid {rows}.
inline void block_entries_program(const BlockListsConfig& c, Tensor<const int32_t, 2> MASK_A,
                                  Tensor<const int32_t, 2> MASK_B, Tensor<const int32_t, 2> INDEX,
                                  Tensor<const int32_t, 1> OFFSETS, Ptr<int32_t> COLUMNS, Ptr<int32_t> ROWS,
                                  Ptr<int32_t> POSITIONS) {
  num_warps(c.warps);
  auto row = program_id(0);
  Tile next = OFFSETS.load({row}, {1});
  for (auto k0 : range(0, MASK_A.dim(1), c.WIDTH)) {
    auto here = listed(c, MASK_A, MASK_B, row, k0);
    auto one = where(here, 1, 0);
    auto place = next + cumsum(one, axis(0)) - 1;
    store(COLUMNS + place, k0 + arange(0, c.WIDTH), {.mask = here});
    store(ROWS + place, broadcast_to(Tile(row), {c.WIDTH}), {.mask = here});
    if (c.indexed)
      store(POSITIONS + place, reshape(INDEX.load({row, k0}, {1, c.WIDTH}), {c.WIDTH}), {.mask = here});
    next += sum(one, axis(0));
  }
}

/// INDEX[rows[e], columns[e]] = e: where each present block's values are. Grid {ceil(entries / WIDTH)}.
inline void block_index_program(const BlockListsConfig& c, Tensor<const int32_t, 1> ROWS,
                                Tensor<const int32_t, 1> COLUMNS, Ptr<int32_t> INDEX, I32 columns) {
  num_warps(c.warps);
  auto e0 = program_id(0) * c.WIDTH;
  auto e = e0 + arange(0, c.WIDTH);
  auto at = ROWS.load({e0}, {c.WIDTH}) * columns + COLUMNS.load({e0}, {c.WIDTH});
  store(INDEX + at, e, {.mask = e < ROWS.dim(0)});
}

template <class T>
const auto& block_mask_kernel() {
  static const auto k = kernel(typed_name("block_mask", dtype_of<T>()), block_mask_program<T>)
                            .grid([](const BlockListsConfig&, const auto&, const auto& mask) {
                              return Grid{mask.shape[0], mask.shape[1]};
                            });
  return k;
}
inline int64_t block_list_count(const BlockListsConfig& c, const TensorView<const int32_t, 2>& a,
                                const TensorView<const int32_t, 2>& b) {
  return c.meeting ? a.shape[0] * b.shape[1] : a.shape[0];
}
inline const auto& block_counts_kernel() {
  static const auto k = kernel("block_counts", block_counts_program)
                            .grid([](const BlockListsConfig& c, const auto& a, const auto& b, const auto&) {
                              return Grid{block_list_count(c, a, b)};
                            });
  return k;
}
inline const auto& block_offsets_kernel() {
  static const auto k =
      kernel("block_offsets", block_offsets_program).grid([](const BlockListsConfig&, const auto&...) { return Grid{1}; });
  return k;
}
inline const auto& block_entries_kernel() {
  static const auto k = kernel("block_entries", block_entries_program)
                            .grid([](const BlockListsConfig& c, const auto& a, const auto& b, const auto&...) {
                              return Grid{block_list_count(c, a, b)};
                            });
  return k;
}
inline const auto& block_index_kernel() {
  static const auto k = kernel("block_index", block_index_program)
                            .grid([](const BlockListsConfig& c, const auto& rows, const auto&...) {
                              return Grid{cdiv(rows.shape[0], c.WIDTH)};
                            });
  return k;
}

/// MASK [ceil(M / BM), ceil(N / BN)] of X [M, N].
template <class T>
Status block_mask(StreamAt stream, Input<T, 2> X, TensorView<int32_t, 2> MASK, const BlockListsConfig& config) {
  ShapeCheck check("block_mask");
  check.shape("MASK", MASK, {cdiv(X.shape[0], config.BM), cdiv(X.shape[1], config.BN)}, "[ceil(M/BM), ceil(N/BN)]");
  if (!check.ok()) return stream.refuse(check.error());
  return block_mask_kernel<T>().try_call(stream, config, X, MASK);
}

/// OFFSETS [lists + 1] of the lists of MASK_A (of both masks with config.meeting; pass MASK_A twice otherwise), then
/// block_entries fills what they delimit: the last offset says how many entries there are. COUNTS [lists] is scratch.
inline Status block_offsets(StreamAt stream, TensorView<const int32_t, 2> MASK_A, TensorView<const int32_t, 2> MASK_B,
                            TensorView<int32_t, 1> COUNTS, TensorView<int32_t, 1> OFFSETS,
                            const BlockListsConfig& config) {
  const int64_t lists = block_list_count(config, MASK_A, MASK_B);
  ShapeCheck check("block_offsets");
  check.shape("COUNTS", COUNTS, {lists}, "[lists]").shape("OFFSETS", OFFSETS, {lists + 1}, "[lists + 1]");
  if (config.meeting) check.shape("MASK_B", MASK_B, {MASK_A.shape[1], -1}, "[ceil(K/BK), ceil(N/BN)]");
  if (!check.ok()) return stream.refuse(check.error());
  if (Status s = block_counts_kernel().try_call(stream, config, MASK_A, MASK_B, COUNTS); !s) return s;
  return block_offsets_kernel().try_call(stream, config, TensorView<const int32_t, 1>(COUNTS), OFFSETS);
}
/// COLUMNS and ROWS [entries], sorted by list and then by column; POSITIONS [entries] with config.indexed: INDEX
/// [lists, columns] at each entry. Lists by column: pass the transposed views.
inline Status block_entries(StreamAt stream, TensorView<const int32_t, 2> MASK_A, TensorView<const int32_t, 2> MASK_B,
                            TensorView<const int32_t, 2> INDEX, TensorView<const int32_t, 1> OFFSETS,
                            TensorView<int32_t, 1> COLUMNS, TensorView<int32_t, 1> ROWS,
                            TensorView<int32_t, 1> POSITIONS, const BlockListsConfig& config) {
  const int64_t lists = block_list_count(config, MASK_A, MASK_B);
  ShapeCheck check("block_entries");
  check.shape("OFFSETS", OFFSETS, {lists + 1}, "[lists + 1]")
      .shape("ROWS", ROWS, {COLUMNS.shape[0]}, "[entries]")
      .require(COLUMNS.is_contiguous() && ROWS.is_contiguous() && (!config.indexed || POSITIONS.is_contiguous()),
               "COLUMNS, ROWS and POSITIONS must be contiguous");
  if (config.indexed)
    check.shape("INDEX", INDEX, {lists, MASK_A.shape[1]}, "[lists, columns]")
        .shape("POSITIONS", POSITIONS, {COLUMNS.shape[0]}, "[entries]");
  if (!check.ok()) return stream.refuse(check.error());
  if (COLUMNS.shape[0] == 0) return Ok{};
  return block_entries_kernel().try_call(stream, config, MASK_A, MASK_B, INDEX, OFFSETS, COLUMNS.data, ROWS.data,
                                         config.indexed ? POSITIONS.data : COLUMNS.data);
}

}  // namespace tile::kernels
