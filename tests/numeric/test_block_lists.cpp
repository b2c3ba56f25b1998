// Lists of blocks made on the device against lists made here, entry by entry, on every device present; and products
// from those lists, from bit masks and from plain masks, which must be one and the same (S2.7, S2.9, S2.10).
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/block_lists.h"
#include "kernels/block_sparse.h"
#include "kernels/block_sparse_matmul.h"
#include "tests/test_names.h"

namespace tile::kernels {
namespace {

class BlockLists : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<Device> device() { return open_device(GetParam()).value_or_throw(); }
  Stream& stream() { return device()->default_stream(); }
  template <class T>
  Buffer<T> upload(const std::vector<T>& v) {
    return Buffer<T>::from(device(), v).value_or_throw();
  }
  template <class T>
  Buffer<T> room(int64_t n) {
    return Buffer<T>::from(device(), std::vector<T>(static_cast<size_t>(std::max<int64_t>(n, 1)), T(-7))).value_or_throw();
  }
  template <class T>
  std::vector<T> download(const Buffer<T>& b) {
    stream().synchronize().value_or_throw();
    std::vector<T> v(b.size());
    b.copy_to(v).value_or_throw();
    return v;
  }
  static std::vector<int32_t> random_mask(int64_t n, int percent, unsigned seed) {
    std::mt19937 draw(seed);
    std::vector<int32_t> mask(static_cast<size_t>(n));
    for (int32_t& m : mask) m = static_cast<int>(draw() % 100) < percent ? static_cast<int32_t>(draw() % 5 + 1) : 0;
    return mask;
  }
};

TEST_P(BlockLists, S2_7_ZeroBlocksAreFoundOnTheDevice) {
  const int64_t m = 70, n = 150;
  std::vector<float> x(m * n, 0.f);
  x[3 * n + 140] = 1e-30f, x[69 * n + 0] = -1.f, x[40 * n + 70] = NAN, x[33 * n + 33] = -0.f;
  auto X = upload(x);
  const int64_t rows = cdiv(m, 32), columns = cdiv(n, 32);
  auto MASK = room<int32_t>(rows * columns);
  BlockListsConfig c{.BM = 32, .BN = 32};
  block_mask<float>(stream(), {X.data(), {m, n}}, {MASK.data(), {rows, columns}}, c).value_or_throw();
  std::vector<int32_t> expected(static_cast<size_t>(rows * columns), 0);
  expected[0 * columns + 4] = expected[2 * columns + 0] = expected[1 * columns + 2] = 1;  // -0 is zero, NaN is not
  EXPECT_EQ(download(MASK), expected);
}

TEST_P(BlockLists, S2_10_ListsByRowAndByColumn) {
  for (auto [rows, columns, percent] : {std::tuple{7, 300, 30}, {40, 5, 50}, {3, 3, 0}, {1100, 2, 60}, {1, 1, 100}}) {
    const std::vector<int32_t> mask = random_mask(int64_t{rows} * columns, percent, 5);
    auto MASK = upload(mask);
    const int64_t entries = std::count_if(mask.begin(), mask.end(), [](int32_t v) { return v != 0; });
    std::vector<int32_t> index(mask.size(), -7), row_of, column_of;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        if (mask[static_cast<size_t>(i * columns + j)]) {
          index[static_cast<size_t>(i * columns + j)] = static_cast<int32_t>(row_of.size());
          row_of.push_back(static_cast<int32_t>(i)), column_of.push_back(static_cast<int32_t>(j));
        }
    auto INDEX = room<int32_t>(int64_t{rows} * columns);
    for (bool by_column : {false, true}) {
      BlockListsConfig c{.indexed = by_column};
      TensorView<const int32_t, 2> view(MASK.data(), {rows, columns}), places(INDEX.data(), {rows, columns});
      if (by_column) view = view.transposed(), places = places.transposed();
      const int64_t lists = view.shape[0];
      auto COUNTS = room<int32_t>(lists), OFFSETS = room<int32_t>(lists + 1);
      auto COLUMNS = room<int32_t>(entries), ROWS = room<int32_t>(entries), POSITIONS = room<int32_t>(entries);
      TensorView<int32_t, 1> offsets(OFFSETS.data(), {lists + 1}), cols(COLUMNS.data(), {entries}),
          rws(ROWS.data(), {entries}), positions(POSITIONS.data(), {entries});
      block_offsets(stream(), view, view, {COUNTS.data(), {lists}}, offsets, c).value_or_throw();
      block_entries(stream(), view, view, places, offsets, cols, rws, positions, c).value_or_throw();
      // What a straightforward walk finds.
      std::vector<int32_t> want_offsets{0}, want_columns, want_rows, want_positions;
      for (int64_t a = 0; a < lists; ++a) {
        for (int64_t b = 0; b < view.shape[1]; ++b) {
          size_t at = static_cast<size_t>(by_column ? b * columns + a : a * columns + b);
          if (!mask[at]) continue;
          want_columns.push_back(static_cast<int32_t>(b)), want_rows.push_back(static_cast<int32_t>(a));
          want_positions.push_back(index[at]);
        }
        want_offsets.push_back(static_cast<int32_t>(want_columns.size()));
      }
      EXPECT_EQ(download(OFFSETS), want_offsets);
      if (entries == 0) continue;
      EXPECT_EQ(download(COLUMNS), want_columns);
      EXPECT_EQ(download(ROWS), want_rows);
      if (by_column) {
        EXPECT_EQ(download(POSITIONS), want_positions);
        continue;
      }
      block_index_kernel()
          .try_call(stream(), c, TensorView<const int32_t, 1>(rws), TensorView<const int32_t, 1>(cols), INDEX.data(), columns)
          .value_or_throw();
      EXPECT_EQ(download(INDEX), index);  // absent blocks are not touched
    }
  }
}

TEST_P(BlockLists, S2_9_MasksBitsAndListsGiveOneProduct) {
  const int64_t m = 100, n = 70, depth = 33 * 40;  // more than 32 blocks along K
  BlockSparseConfig c = default_block_sparse_config(DType::f32, 32, 32, 32, false, Machine::of(stream()));
  const int64_t mb = cdiv(m, 32), nb = cdiv(n, 32), kb = cdiv(depth, 32);
  std::mt19937 draw(1);
  std::vector<float> a(m * depth), b(depth * n);
  for (float& v : a) v = static_cast<float>(static_cast<int>(draw() % 9) - 4);
  for (float& v : b) v = static_cast<float>(static_cast<int>(draw() % 9) - 4);
  std::vector<int32_t> mask_a = random_mask(mb * kb, 50, 2), mask_b = random_mask(kb * nb, 50, 3);
  for (int64_t j = 0; j < kb; ++j) mask_a[static_cast<size_t>(1 * kb + j)] = 0;  // a row of C with nothing
  auto A = upload(a), B = upload(b);
  auto MA = upload(mask_a), MB = upload(mask_b);
  TensorView<const float, 2> va(A.data(), {m, depth}), vb(B.data(), {depth, n});
  TensorView<const int32_t, 2> ma(MA.data(), {mb, kb}), mbv(MB.data(), {kb, nb});
  auto C0 = room<float>(m * n), C1 = room<float>(m * n), C2 = room<float>(m * n);
  block_sparse_matmul<float>(stream(), va, vb, {C0.data(), {m, n}}, ma, mbv, c).value_or_throw();

  const int64_t words = cdiv(kb, 32);
  auto WA = room<int32_t>(mb * words), WB = room<int32_t>(nb * words);
  pack_mask_kernel().try_call(stream(), c, ma, {WA.data(), {mb, words}}).value_or_throw();
  pack_mask_kernel().try_call(stream(), c, mbv.transposed(), {WB.data(), {nb, words}}).value_or_throw();
  BlockSparseConfig bits = c;
  bits.bits = true;
  block_sparse_matmul<float>(stream(), va, vb, {C1.data(), {m, n}}, {WA.data(), {mb, words}}, {WB.data(), {nb, words}}, bits)
      .value_or_throw();

  BlockListsConfig lists{.meeting = true};
  auto COUNTS = room<int32_t>(mb * nb), OFFSETS = room<int32_t>(mb * nb + 1);
  TensorView<int32_t, 1> offsets(OFFSETS.data(), {mb * nb + 1});
  block_offsets(stream(), ma, mbv, {COUNTS.data(), {mb * nb}}, offsets, lists).value_or_throw();
  const int64_t entries = download(OFFSETS).back();
  auto LIST = room<int32_t>(entries), ROWS = room<int32_t>(entries);
  TensorView<int32_t, 1> list(LIST.data(), {entries}), rows(ROWS.data(), {entries});
  block_entries(stream(), ma, mbv, ma, offsets, list, rows, list, lists).value_or_throw();
  block_sparse_matmul_lists<float>(stream(), va, vb, {C2.data(), {m, n}}, offsets, list, c).value_or_throw();

  std::vector<float> expected(static_cast<size_t>(m * n), 0.f);  // small integers: exact in any order
  for (int64_t i = 0; i < m; ++i)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = 0; j < n; ++j)
        if (mask_a[static_cast<size_t>(i / 32 * kb + k / 32)] && mask_b[static_cast<size_t>(k / 32 * nb + j / 32)])
          expected[static_cast<size_t>(i * n + j)] += a[static_cast<size_t>(i * depth + k)] * b[static_cast<size_t>(k * n + j)];
  EXPECT_EQ(download(C0), expected);
  EXPECT_EQ(download(C1), expected);
  EXPECT_EQ(download(C2), expected);
}

TEST_P(BlockLists, S2_BackwardOfSparseTimesDense) {
  const int64_t m = 96, depth = 128, n = 40, bm = 32, bk = 16;
  BlockListConfig c = default_block_list_config(DType::f32, bm, bk, false, Machine::of(stream()));
  const int64_t mb = m / bm, kb = depth / bk;
  const std::vector<int32_t> mask = random_mask(mb * kb, 50, 9);
  std::vector<int32_t> offsets{0}, columns, rows, offsets_t{0}, columns_t, positions_t;
  std::vector<int32_t> index(mask.size(), -1);
  for (int64_t i = 0; i < mb; ++i, offsets.push_back(static_cast<int32_t>(columns.size())))
    for (int64_t j = 0; j < kb; ++j)
      if (mask[static_cast<size_t>(i * kb + j)]) {
        index[static_cast<size_t>(i * kb + j)] = static_cast<int32_t>(columns.size());
        columns.push_back(static_cast<int32_t>(j)), rows.push_back(static_cast<int32_t>(i));
      }
  for (int64_t j = 0; j < kb; ++j, offsets_t.push_back(static_cast<int32_t>(columns_t.size())))
    for (int64_t i = 0; i < mb; ++i)
      if (int32_t at = index[static_cast<size_t>(i * kb + j)]; at >= 0)
        columns_t.push_back(static_cast<int32_t>(i)), positions_t.push_back(at);
  const auto entries = static_cast<int64_t>(columns.size());
  std::mt19937 draw(1);
  auto integers = [&](int64_t count) {
    std::vector<float> v(static_cast<size_t>(count));
    for (float& x : v) x = static_cast<float>(static_cast<int>(draw() % 9) - 4);
    return v;
  };
  const std::vector<float> values = integers(entries * bm * bk), b = integers(depth * n), d = integers(m * n);
  auto V = upload(values), B = upload(b), dD = upload(d), dV = room<float>(entries * bm * bk), dB = room<float>(depth * n);
  auto O = upload(offsets), Cc = upload(columns), R = upload(rows), OT = upload(offsets_t), CT = upload(columns_t),
       PT = upload(positions_t);
  TensorView<const float, 3> v(V.data(), {entries, bm, bk});
  using Ints = TensorView<const int32_t, 1>;
  Ints none(nullptr, {0});
  BlockList<const float> s{v, Ints(O.data(), {mb + 1}), Ints(Cc.data(), {entries}), none};
  BlockList<const float> st{v, Ints(OT.data(), {kb + 1}), Ints(CT.data(), {entries}), Ints(PT.data(), {entries})};
  block_sparse_dense_backward<float>(stream(), s, Ints(R.data(), {entries}), st, {B.data(), {depth, n}},
                                     {dD.data(), {m, n}}, {dV.data(), {entries, bm, bk}}, {dB.data(), {depth, n}}, c)
      .value_or_throw();
  std::vector<float> want_v(values.size(), 0.f), want_b(b.size(), 0.f);  // small integers: exact in any order
  for (int64_t e = 0; e < entries; ++e)
    for (int64_t i = 0; i < bm; ++i)
      for (int64_t k = 0; k < bk; ++k)
        for (int64_t j = 0; j < n; ++j) {
          const auto row = static_cast<size_t>(rows[static_cast<size_t>(e)] * bm + i);
          const auto column = static_cast<size_t>(columns[static_cast<size_t>(e)] * bk + k);
          const auto at = static_cast<size_t>((e * bm + i) * bk + k), j_ = static_cast<size_t>(j);
          want_v[at] += d[row * n + j_] * b[column * n + j_];
          want_b[column * n + j_] += values[at] * d[row * n + j_];
        }
  EXPECT_EQ(download(dV), want_v);
  EXPECT_EQ(download(dB), want_b);
}

TEST(BlockListConfigs, S2_8_RowsWalkedTogetherFitTheCache) {
  const Machine machine{.gpu = true, .shared_bytes = 232448, .multiprocessors = 132, .warpgroups = true};
  auto group = [&](int block, double entries) {
    return default_block_list_config(DType::f16, block, block, false, machine, entries).GROUP;
  };
  EXPECT_EQ(group(64, 0), 8);    // nothing is known
  EXPECT_EQ(group(128, 64), 8);  // 2 MB each
  EXPECT_EQ(group(128, 16), 32);
  EXPECT_EQ(group(64, 12.8), 128);
  EXPECT_EQ(default_block_list_config(DType::f16, 64, 64, false, machine, 64, 4095).TILE, 256);
  const BlockListConfig wide = default_block_list_config(DType::f16, 64, 64, false, machine, 64, 4096);
  EXPECT_EQ(wide.TILE, 512);
  EXPECT_EQ(wide.GROUP, 128);  // half as many columns of tiles read the values again
  for (double entries = 1; entries < 100; entries += 7)
    EXPECT_LE(group(64, entries) * entries * 64 * 64 * 2, 1 << 24) << entries;
}

INSTANTIATE_TEST_SUITE_P(Each, BlockLists, testing::ValuesIn(device_names()),
                         [](const auto& info) { return test_name_of(info.param); });

}  // namespace
}  // namespace tile::kernels
