// Attention over lists of blocks, on every device present: lists from a mask function, from a mask of blocks and from
// content, entry by entry against lists made here; and the attention that reads them against the float64 reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/block_lists.h"
#include "kernels/block_sparse_attention_backward.h"
#include "kernels/catalog.h"
#include "kernels/reference/attention.h"
#include "tests/test_names.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::AttentionSpec;
using reference::HostTensor;

constexpr int64_t kB = 1, kHq = 2, kHkv = 1, kD = 16;

/// What is known of one call: the sizes, tensors on a device, the lists.
struct Problem {
  Problem(std::shared_ptr<Device> d, int64_t queries, int64_t keys, int64_t list_heads)
      : device(std::move(d)), sq(queries), sk(keys), heads(list_heads) {
    config =
        default_block_sparse_attention_config(DType::f32, sq, kD, kD, false, 1.f, Machine::of(device->properties()));
    config.BM = config.BN = 64;  // the same lists on every device
    mb = cdiv<int64_t>(sq, config.BM), nb = cdiv<int64_t>(sk, config.BN);
    for (auto* t : {&q, &k, &v}) t->resize(static_cast<size_t>(kB * (t == &q ? kHq * sq : kHkv * sk) * kD));
    std::mt19937 draw(7);
    std::normal_distribution<float> normal;
    for (auto* t : {&q, &k, &v})
      for (float& x : *t) x = normal(draw);
  }

  template <class T>
  Buffer<T> upload(const std::vector<T>& values) {
    return Buffer<T>::from(device, values).value_or_throw();
  }
  template <class T>
  std::vector<T> download(const Buffer<T>& b) {
    device->default_stream().synchronize().value_or_throw();
    std::vector<T> values(b.size());
    b.copy_to(values).value_or_throw();
    return values;
  }
  TensorView<int32_t, 4> kinds_view() { return {kinds.data(), {1, heads, mb, nb}}; }
  AttentionLists<int32_t> lists() {
    return {{partial_counts.data(), {1, heads, mb}},
            {partial_blocks.data(), {1, heads, mb, nb}},
            {full_counts.data(), {1, heads, mb}},
            {full_blocks.data(), {1, heads, mb, nb}}};
  }
  AttentionListsConfig lists_config() const {
    AttentionListsConfig c = attention_lists_config(config);
    c.WIDTH = 4;  // a few steps for each row
    return c;
  }

  template <class Kernel>
  void find_kinds(const Kernel& kernel, const AttentionListsConfig& c, TensorView<const int32_t, 4> mask = {},
                  int left = -1, int right = -1) {
    attention_block_kinds(kernel, stream(), kinds_view(), mask, sq, sk, left, right, c).value_or_throw();
  }
  void make_lists() { attention_lists(stream(), kinds_view(), lists(), lists_config()).value_or_throw(); }

  template <class Kernel>
  void attend(const Kernel& kernel, const AttentionOptions<>& options) {
    auto Q = upload(q), K = upload(k), V = upload(v);
    auto O = upload(std::vector<float>(q.size(), NAN)),
         L = upload(std::vector<float>(static_cast<size_t>(kB * kHq * sq), NAN));
    run_block_sparse_attention(kernel, stream(), TensorView<const float, 4>(Q.data(), {kB, kHq, sq, kD}),
                               TensorView<const float, 4>(K.data(), {kB, kHkv, sk, kD}),
                               TensorView<const float, 4>(V.data(), {kB, kHkv, sk, kD}),
                               TensorView<float, 4>(O.data(), {kB, kHq, sq, kD}),
                               TensorView<float, 3>(L.data(), {kB, kHq, sq}), lists(), options, config)
        .value_or_throw();
    o = download(O), lse = download(L);
  }
  void expect_agrees(AttentionSpec spec) {
    auto host = [&](const std::vector<float>& values, int64_t h, int64_t s) {
      HostTensor t(DType::f32, {kB, h, s, kD});
      size_t next = 0;
      reference::for_each_index(t.shape(), [&](std::span<const int64_t> at) { t.set(at, values[next++]); });
      return t;
    };
    const HostTensor Q = host(q, kHq, sq), K = host(k, kHkv, sk), V = host(v, kHkv, sk);
    std::vector<int64_t> rows(static_cast<size_t>(sq));
    std::iota(rows.begin(), rows.end(), 0);
    for (int64_t h = 0; h < kHq; ++h) {
      const auto want = attention_rows(spec, Q, K, V, 0, h, rows, Arithmetic::exact());
      for (int64_t i = 0; i < sq; ++i) {
        const auto row = static_cast<size_t>(h * sq + i);
        for (int64_t d = 0; d < kD; ++d)
          ASSERT_NEAR(o[row * kD + static_cast<size_t>(d)], want[i].o[d], 1e-5) << "head " << h << " query " << i;
        if (std::isinf(want[i].lse))
          ASSERT_EQ(lse[row], want[i].lse) << "head " << h << " query " << i;
        else
          ASSERT_NEAR(lse[row], want[i].lse, 1e-5) << "head " << h << " query " << i;
      }
    }
  }
  /// The lists on the device say what `kind(head, row, column)` says.
  template <class Kind>
  void expect_lists(const Kind& kind) {
    const auto pc = download(partial_counts), pb = download(partial_blocks), fc = download(full_counts),
               fb = download(full_blocks);
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t m = 0; m < mb; ++m) {
        const auto row = static_cast<size_t>(h * mb + m);
        auto listed = [&](const std::vector<int32_t>& counts, const std::vector<int32_t>& blocks) {
          const auto begin = blocks.begin() + static_cast<int64_t>(row) * nb;
          return std::vector<int32_t>(begin, begin + counts[row]);
        };
        std::vector<int32_t> partial, full;
        for (int64_t n = 0; n < nb; ++n) {
          const int what = kind(h, m, n);
          if (what == kPartialBlock) partial.push_back(static_cast<int32_t>(n));
          if (what == kFullBlock) full.push_back(static_cast<int32_t>(n));
        }
        ASSERT_EQ(listed(pc, pb), partial) << "partial blocks of head " << h << " row " << m;
        ASSERT_EQ(listed(fc, fb), full) << "full blocks of head " << h << " row " << m;
      }
  }
  /// dQ, dK and dV by both variants, over lists made of kinds with smaller blocks than forward's, against the reference.
  /// Forward has run. `find` makes kinds; those of forward's blocks are their mask with `refine`.
  template <class Find, class Kernels>
  void expect_gradients(const Find& find, const Kernels& kernels, const AttentionOptions<>& options,
                        const AttentionSpec& spec, bool refine) {
    std::vector<float> d_o(o.size());
    std::mt19937 draw(11);
    std::normal_distribution<float> normal;
    for (float& x : d_o) x = normal(draw);
    AttentionBackwardConfig c = default_block_sparse_attention_backward_config(
        DType::f32, sq, sk, kD, kD, options.causal, false, false, Machine::of(device->properties()));
    c.keys.BN = 64, c.keys.BM = c.queries.BM = c.queries.BN = 32;
    for (AttentionConfig* one : {&c.keys, &c.queries}) {
      one->causal = config.causal, one->left = config.left, one->right = config.right;
    }
    auto Q = upload(q), K = upload(k), V = upload(v), O = upload(o), DO = upload(d_o), L = upload(lse);
    for (bool deterministic : {false, true}) {
      c.keys.accumulate = !deterministic;
      MadeLists keys = make_lists(find, c.keys, options, refine, true),
                queries = make_lists(find, c.queries, options, refine, false);
      const int64_t floats = attention_backward_workspace(kB, kHq, sq, kD, deterministic);
      auto scratch = upload(std::vector<float>(static_cast<size_t>(floats), NAN)),
           DQ = upload(std::vector<float>(q.size(), NAN)), DK = upload(std::vector<float>(k.size(), NAN)),
           DV = upload(std::vector<float>(v.size(), NAN));
      auto in = [](const Buffer<float>& b, int64_t h, int64_t s) {
        return TensorView<const float, 4>(b.data(), {kB, h, s, kD});
      };
      auto out = [](Buffer<float>& b, int64_t h, int64_t s) { return TensorView<float, 4>(b.data(), {kB, h, s, kD}); };
      run_block_sparse_attention_backward(kernels, stream(), in(Q, kHq, sq), in(K, kHkv, sk), in(V, kHkv, sk),
                                          in(O, kHq, sq), in(DO, kHq, sq),
                                          TensorView<const float, 3>(L.data(), {kB, kHq, sq}), out(DQ, kHq, sq),
                                          out(DK, kHkv, sk), out(DV, kHkv, sk), scratch.view(floats),
                                          {keys.views(), queries.views()}, options, c)
          .value_or_throw();
      compare_gradients(spec, d_o, download(DQ), download(DK), download(DV));
    }
  }
  void compare_gradients(const AttentionSpec& spec, const std::vector<float>& d_o, const std::vector<float>& dq,
                         const std::vector<float>& dk, const std::vector<float>& dv) {
    auto host = [&](const std::vector<float>& values, int64_t h, int64_t s) {
      HostTensor t(DType::f32, {kB, h, s, kD});
      size_t next = 0;
      reference::for_each_index(t.shape(), [&](std::span<const int64_t> at) { t.set(at, values[next++]); });
      return t;
    };
    const HostTensor Q = host(q, kHq, sq), K = host(k, kHkv, sk), V = host(v, kHkv, sk), DO = host(d_o, kHq, sq);
    auto near = [&](const std::vector<float>& found, size_t row, const std::vector<double>& want, const char* what) {
      for (size_t d = 0; d < kD; ++d)
        ASSERT_NEAR(found[row * kD + d], want[d], 1e-4 * (1 + std::abs(want[d]))) << what << " row " << row;
    };
    std::vector<int64_t> rows(static_cast<size_t>(sq)), keys(static_cast<size_t>(sk));
    std::iota(rows.begin(), rows.end(), 0), std::iota(keys.begin(), keys.end(), 0);
    std::vector<reference::AttentionStats> stats;
    for (int64_t h = 0; h < kHq; ++h) {
      stats.push_back(attention_stats(spec, Q, K, V, DO, 0, h, Arithmetic::exact()));
      const auto want = attention_query_gradients(spec, Q, K, V, DO, 0, h, rows, stats.back(), Arithmetic::exact());
      for (int64_t i = 0; i < sq; ++i) near(dq, static_cast<size_t>(h * sq + i), want[static_cast<size_t>(i)], "dQ");
    }
    const auto want = attention_key_gradients(spec, Q, K, V, DO, 0, 0, keys, stats, Arithmetic::exact());
    for (size_t j = 0; j < keys.size(); ++j) near(dk, j, want.dk[j], "dK"), near(dv, j, want.dv[j], "dV");
  }

  struct MadeLists {
    int64_t heads, rows, room;
    Buffer<int32_t> partial_counts, partial_blocks, full_counts, full_blocks;
    AttentionLists<int32_t> views() {
      return {{partial_counts.data(), {1, heads, rows}},
              {partial_blocks.data(), {1, heads, rows, room}},
              {full_counts.data(), {1, heads, rows}},
              {full_blocks.data(), {1, heads, rows, room}}};
    }
  };
  template <class Find>
  MadeLists make_lists(const Find& find, const AttentionConfig& tiles, const AttentionOptions<>& options, bool refine,
                       bool by_key) {
    AttentionListsConfig c = attention_lists_config(tiles);
    if (refine) c.MASK_BM = config.BM, c.MASK_BN = config.BN;
    const int64_t m = cdiv<int64_t>(sq, c.BM), n = cdiv<int64_t>(sk, c.BN);
    auto fine = upload(std::vector<int32_t>(static_cast<size_t>(heads * m * n), -7));
    const TensorView<int32_t, 4> view(fine.data(), {1, heads, m, n});
    attention_block_kinds(find, stream(), view,
                          refine ? TensorView<const int32_t, 4>(kinds_view()) : TensorView<const int32_t, 4>{}, sq, sk,
                          options.left, options.right, c)
        .value_or_throw();
    MadeLists made{heads, by_key ? n : m, by_key ? m : n, {}, {}, {}, {}};
    for (auto* b : {&made.partial_counts, &made.full_counts})
      *b = upload(std::vector<int32_t>(static_cast<size_t>(heads * made.rows), -7));
    for (auto* b : {&made.partial_blocks, &made.full_blocks})
      *b = upload(std::vector<int32_t>(static_cast<size_t>(heads * m * n), -7));
    const TensorView<const int32_t, 4> found(view);
    attention_lists(stream(), by_key ? found.transposed() : found, made.views(), c).value_or_throw();
    stream().synchronize().value_or_throw();  // `fine` ends here
    return made;
  }

  /// The kind of a block by looking at all its pairs.
  template <class Mask>
  int kind_of(const Mask& visible, int64_t h, int64_t m, int64_t n) const {
    int64_t seen = 0, all = 0;
    for (int64_t i = m * config.BM; i < std::min(sq, (m + 1) * config.BM); ++i)
      for (int64_t j = n * config.BN; j < std::min(sk, (n + 1) * config.BN); ++j) ++all, seen += visible(h, i, j);
    return seen == 0 ? kHiddenBlock : seen == all ? kFullBlock : kPartialBlock;
  }
  Stream& stream() { return device->default_stream(); }

  std::shared_ptr<Device> device;
  int64_t sq, sk, heads, mb = 0, nb = 0;
  AttentionConfig config;
  std::vector<float> q, k, v, o, lse;
  Buffer<int32_t> kinds, partial_counts, partial_blocks, full_counts, full_blocks;
};

class BlockSparseAttention : public testing::TestWithParam<std::string> {
 protected:
  Problem problem(int64_t sq, int64_t sk, int64_t list_heads) {
    Problem p(open_device(GetParam()).value_or_throw(), sq, sk, list_heads);
    const auto rows = static_cast<size_t>(list_heads * p.mb), blocks = rows * static_cast<size_t>(p.nb);
    for (auto* b : {&p.kinds, &p.partial_blocks, &p.full_blocks}) *b = p.upload(std::vector<int32_t>(blocks, -7));
    for (auto* b : {&p.partial_counts, &p.full_counts}) *b = p.upload(std::vector<int32_t>(rows, -7));
    return p;
  }
};

/// Documents of 100 tokens, causal inside; head 1 sees its documents whole.
struct DocumentMask {
  Tile operator()(const Tile&, const Tile& head, const Tile& i, const Tile& j) const {
    return (i / 100 == j / 100) & ((j <= i) | (head == 1));
  }
};
bool document_mask(int64_t h, int64_t i, int64_t j) { return i / 100 == j / 100 && (j <= i || h == 1); }

TEST_P(BlockSparseAttention, S2_12_ListsFromAMaskFunction) {
  const auto find = make_attention_block_kinds_kernel("document_kinds", DocumentMask{});
  const auto attention = make_block_sparse_attention_kernel<float>("document_attention", DocumentMask{});
  for (auto [sq, sk] : {std::pair<int64_t, int64_t>{330, 330}, {200, 450}, {450, 170}}) {  // some queries see nothing
    Problem p = problem(sq, sk, kHq);
    p.find_kinds(find, p.lists_config());
    p.make_lists();
    p.expect_lists([&](int64_t h, int64_t m, int64_t n) { return p.kind_of(document_mask, h, m, n); });
    p.attend(attention, {});
    AttentionSpec spec;
    spec.mask_mod = [](int64_t, int64_t h, int64_t i, int64_t j) { return document_mask(h, i, j); };
    p.expect_agrees(spec);
    p.expect_gradients(find, make_block_sparse_attention_backward_kernels<float>("document_gradients", DocumentMask{}),
                       {}, spec, /*refine=*/false);
  }
}

TEST_P(BlockSparseAttention, S2_12_SlidingWindowByLists) {
  Problem p = problem(400, 430, 1);  // both heads share lists
  AttentionOptions<> options;
  options.left = 140, options.right = 20;
  p.config.left = p.config.right = true;
  p.find_kinds(attention_block_kinds_kernel(), p.lists_config(), {}, 140, 20);
  p.make_lists();
  p.expect_lists([&](int64_t h, int64_t m, int64_t n) {
    return p.kind_of([](int64_t, int64_t i, int64_t j) { return j >= i + 30 - 140 && j <= i + 30 + 20; }, h, m, n);
  });
  p.attend(block_sparse_attention_kernel<float>(), options);
  AttentionSpec spec;
  spec.left = 140, spec.right = 20;
  p.expect_agrees(spec);
  p.expect_gradients(attention_block_kinds_kernel(), block_sparse_attention_backward_kernels<float>(), options, spec,
                     /*refine=*/false);
}

TEST_P(BlockSparseAttention, S2_12_ListsFromABlockMaskAndHiddenBlocksAreNotRead) {
  Problem p = problem(300, 500, kHq);
  const int64_t rows = cdiv(300, 128), columns = cdiv(500, 128);  // two by two tiles for each bit
  std::vector<int32_t> mask(static_cast<size_t>(kHq * rows * columns));
  std::mt19937 draw(3);
  for (int32_t& bit : mask) bit = draw() % 2;
  auto present = [&](int64_t h, int64_t i, int64_t j) {
    return mask[static_cast<size_t>((h * rows + i / 128) * columns + j / 128)] != 0;
  };
  for (int64_t n = 0; n < columns; ++n) mask[static_cast<size_t>(1 * columns + n)] = 0;  // a row of blocks with nothing
  for (int64_t h = 0; h < kHq; ++h)
    for (int64_t m = 0; m < rows; ++m) mask[static_cast<size_t>((h * rows + m) * columns + 2)] = 0;
  for (int64_t j = 256; j < 384; ++j)  // nobody looks at these keys
    std::fill_n(p.k.begin() + j * kD, kD, NAN), std::fill_n(p.v.begin() + j * kD, kD, NAN);
  auto MASK = p.upload(mask);
  AttentionListsConfig c = p.lists_config();
  c.MASK_BM = c.MASK_BN = 128;
  p.find_kinds(attention_block_kinds_kernel(), c, {MASK.data(), {1, kHq, rows, columns}});
  p.make_lists();
  p.expect_lists([&](int64_t h, int64_t m, int64_t n) { return p.kind_of(present, h, m, n); });
  p.attend(block_sparse_attention_kernel<float>(), {});
  AttentionSpec spec;
  spec.mask_mod = [&](int64_t, int64_t h, int64_t i, int64_t j) { return present(h, i, j); };
  p.expect_agrees(spec);
}

TEST_P(BlockSparseAttention, S2_12_ListsFromContent) {
  Problem p = problem(330, 450, kHq);
  const int keep = 3;
  p.config.causal = true;  // of those the diagonal leaves
  for (auto* t : {&p.q, &p.k})
    for (float& x : *t) x = std::round(x * 4);                   // sums are exact, so that ties are ties
  std::copy_n(p.k.begin(), 64 * kD, p.k.begin() + 2 * 64 * kD);  // blocks 0 and 2 score the same
  AttentionOptions<> options;
  options.causal = true;
  p.find_kinds(attention_block_kinds_kernel(), p.lists_config());
  auto Q = p.upload(p.q), K = p.upload(p.k);
  auto MEANS = p.upload(std::vector<float>(static_cast<size_t>(kHkv * p.nb * kD))),
       SCORES = p.upload(std::vector<float>(static_cast<size_t>(kHq * p.mb * p.nb)));
  attention_top_blocks<float>(p.stream(), {Q.data(), {kB, kHq, p.sq, kD}}, {K.data(), {kB, kHkv, p.sk, kD}},
                              {MEANS.data(), {kB, kHkv, p.nb, kD}}, {SCORES.data(), {kB, kHq, p.mb, p.nb}},
                              p.kinds_view(), keep, 1.f, p.lists_config())
      .value_or_throw();
  p.make_lists();

  auto mean = [&](const std::vector<float>& t, int64_t first, int64_t begin, int64_t end, int64_t d) {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += t[static_cast<size_t>((first + i) * kD + d)];
    return sum / static_cast<double>(end - begin);
  };
  std::vector<int> kinds(static_cast<size_t>(kHq * p.mb * p.nb), kHiddenBlock);
  for (int64_t h = 0; h < kHq; ++h)
    for (int64_t m = 0; m < p.mb; ++m) {
      std::vector<std::pair<double, int64_t>> best;  // (-score, block)
      for (int64_t n = 0; n < p.nb; ++n) {
        double score = 0;
        for (int64_t d = 0; d < kD; ++d)
          score += mean(p.q, h * p.sq, m * 64, std::min(p.sq, m * 64 + 64), d) *
                   mean(p.k, 0, n * 64, std::min(p.sk, n * 64 + 64), d);
        if (p.kind_of([&](int64_t, int64_t i, int64_t j) { return j <= i + 120; }, h, m, n) != kHiddenBlock)
          best.emplace_back(-std::round(score * 1e6), n);
      }
      std::sort(best.begin(), best.end());
      best.resize(std::min<size_t>(best.size(), keep));
      for (auto [score, n] : best)
        kinds[static_cast<size_t>((h * p.mb + m) * p.nb + n)] =
            p.kind_of([&](int64_t, int64_t i, int64_t j) { return j <= i + 120; }, h, m, n);
    }
  auto kind = [&](int64_t h, int64_t m, int64_t n) { return kinds[static_cast<size_t>((h * p.mb + m) * p.nb + n)]; };
  p.expect_lists(kind);
  for (auto* t : {&p.q, &p.k})
    for (float& x : *t) x /= 8;
  p.attend(block_sparse_attention_kernel<float>(), options);
  AttentionSpec spec;
  spec.causal = true;
  spec.mask_mod = [&](int64_t, int64_t h, int64_t i, int64_t j) { return kind(h, i / 64, j / 64) != kHiddenBlock; };
  p.expect_agrees(spec);
  p.expect_gradients(attention_block_kinds_kernel(), block_sparse_attention_backward_kernels<float>(), options, spec,
                     /*refine=*/true);
}

// ---- S2.16: what lists of blocks are for. Each mask is one tile function, which makes the lists on the device and is
// looked at in partial blocks, and the same function of integers for the reference.

/// Long text: a window over the last tokens, and the first ones, which everybody sees.
struct TextMask {
  static constexpr int kWindow = 90, kFirst = 5;
  Tile operator()(const Tile&, const Tile&, const Tile& i, const Tile& j) const {
    return (j <= i) & ((i - j < kWindow) | (j < kFirst));
  }
  static bool of(int64_t, int64_t i, int64_t j) { return j <= i && (i - j < kWindow || j < kFirst); }
};
/// Patches of an image, row by row: those at most `kReach` away in both directions.
struct PatchMask {
  static constexpr int kWidth = 18, kReach = 3;
  Tile operator()(const Tile&, const Tile&, const Tile& i, const Tile& j) const {
    return (abs(i / kWidth - j / kWidth) <= kReach) & (abs(i % kWidth - j % kWidth) <= kReach);
  }
  static bool of(int64_t, int64_t i, int64_t j) {
    return std::abs(i / kWidth - j / kWidth) <= kReach && std::abs(i % kWidth - j % kWidth) <= kReach;
  }
};
/// A user's history, oldest first: earlier events of the same day (of 50), and of every earlier day the first ten;
/// head 1 has forgotten the events 70 .. 199. What the sixth day did is nobody's: its queries see nothing.
struct HistoryMask {
  static constexpr int kDay = 50;
  Tile operator()(const Tile&, const Tile& head, const Tile& i, const Tile& j) const {
    const Tile known = (j <= i) & ((i / kDay == j / kDay) | (j % kDay < 10)) & (i / kDay != 5);
    return known & ((head == 0) | (j < 70) | (j >= 200));
  }
  static bool of(int64_t h, int64_t i, int64_t j) {
    const bool known = j <= i && (i / kDay == j / kDay || j % kDay < 10) && i / kDay != 5;
    return known && (h == 0 || j < 70 || j >= 200);
  }
};

/// Forward and both backward variants over lists made of `Mask`, against the float64 reference.
template <class Mask>
void expect_application(Problem& p, const std::string& name) {
  const auto find = make_attention_block_kinds_kernel((name + "_kinds").c_str(), Mask{});
  p.find_kinds(find, p.lists_config());
  p.make_lists();
  p.expect_lists([&](int64_t h, int64_t m, int64_t n) { return p.kind_of(Mask::of, h, m, n); });
  p.attend(make_block_sparse_attention_kernel<float>(name.c_str(), Mask{}), {});
  AttentionSpec spec;
  spec.mask_mod = [](int64_t, int64_t h, int64_t i, int64_t j) { return Mask::of(h, i, j); };
  p.expect_agrees(spec);
  p.expect_gradients(find, make_block_sparse_attention_backward_kernels<float>(name + "_gradients", Mask{}), {}, spec,
                     /*refine=*/false);
}

TEST_P(BlockSparseAttention, S2_16_WindowOverALongText) {
  Problem p = problem(450, 450, 1);
  expect_application<TextMask>(p, "text");
}
TEST_P(BlockSparseAttention, S2_16_PatchesOfAnImage) {
  Problem p = problem(PatchMask::kWidth * 20, PatchMask::kWidth * 20, 1);
  expect_application<PatchMask>(p, "patches");
}
TEST_P(BlockSparseAttention, S2_16_HistoryOfAUser) {
  Problem p = problem(330, 330, kHq);
  expect_application<HistoryMask>(p, "history");
}

/// A graph whose nodes come in communities of 64, the last one smaller: nodes are neighbours where their communities
/// are. Its adjacency matrix is scanned for blocks on the device; no mask function knows the graph.
TEST_P(BlockSparseAttention, S2_16_NeighboursInAGraph) {
  constexpr int64_t nodes = 400, communities = 7;
  const std::pair<int64_t, int64_t> edges[] = {{0, 0}, {0, 4}, {1, 2}, {2, 2}, {4, 5}, {5, 5}, {6, 0}, {6, 6}};
  std::vector<float> adjacency(nodes * nodes, 0.f);  // nobody is a neighbour of community 3
  for (auto [a, b] : edges)
    for (int64_t i = 0; i < nodes; ++i)
      for (int64_t j = 0; j < nodes; ++j)
        if ((i / 64 == a && j / 64 == b) || (i / 64 == b && j / 64 == a)) adjacency[i * nodes + j] = 1;
  auto neighbours = [&](int64_t, int64_t i, int64_t j) { return adjacency[i * nodes + j] != 0; };

  Problem p = problem(nodes, nodes, 1);
  auto A = p.upload(adjacency);
  auto MASK = p.upload(std::vector<int32_t>(communities * communities, -7));
  block_mask<float>(p.stream(), {A.data(), {nodes, nodes}}, {MASK.data(), {communities, communities}},
                    {.BM = 64, .BN = 64})
      .value_or_throw();
  AttentionListsConfig c = p.lists_config();
  c.MASK_BM = c.MASK_BN = 64;
  p.find_kinds(attention_block_kinds_kernel(), c, {MASK.data(), {1, 1, communities, communities}});
  p.make_lists();
  p.expect_lists([&](int64_t h, int64_t m, int64_t n) { return p.kind_of(neighbours, h, m, n); });
  p.attend(block_sparse_attention_kernel<float>(), {});
  AttentionSpec spec;
  spec.mask_mod = [&](int64_t, int64_t h, int64_t i, int64_t j) { return neighbours(h, i, j); };
  p.expect_agrees(spec);
  p.expect_gradients(attention_block_kinds_kernel(), block_sparse_attention_backward_kernels<float>(), {}, spec,
                     /*refine=*/true);
}

TEST_P(BlockSparseAttention, E17_HiddenValuesOfListedBlocksMayBeAnything) {
  const auto find = make_attention_block_kinds_kernel("document_kinds", DocumentMask{});
  const auto attention = make_block_sparse_attention_kernel<float>("document_attention_guarded", DocumentMask{}, true);
  Problem p = problem(330, 330, kHq);
  auto value = [&](int64_t key, int64_t channel) -> float& { return p.v[static_cast<size_t>(key * kD + channel)]; };
  value(150, 3) = NAN;  // its block holds two documents; head 0 sees it from 150 on, head 1 in its whole document
  value(150, 4) = -NAN;
  p.find_kinds(find, p.lists_config());
  p.make_lists();
  p.attend(attention, {});
  for (int64_t h = 0; h < kHq; ++h)
    for (int64_t i = 0; i < p.sq; ++i)
      for (int64_t d = 0; d < kD; ++d) {
        float& x = p.o[static_cast<size_t>((h * p.sq + i) * kD + d)];
        const bool sees = document_mask(h, i, 150) && (d == 3 || d == 4);
        ASSERT_EQ(std::isnan(x), sees) << "head " << h << " query " << i << " channel " << d;
      }
}

TEST_P(BlockSparseAttention, MistakesAreNamed) {
  Problem p = problem(100, 100, kHq);
  auto refused = [](const Status& s, const std::string& words) {
    ASSERT_FALSE(s.ok()) << words;
    EXPECT_EQ(s.error().kind, ErrorKind::user);
    EXPECT_NE(s.error().message.find(words), std::string::npos) << s.error().message;
  };
  AttentionListsConfig c = p.lists_config();
  TensorView<const int32_t, 4> mask(p.kinds.data(), {1, kHq, 1, 1});
  auto kinds = [&](const TensorView<const int32_t, 4>& m) {
    return attention_block_kinds(attention_block_kinds_kernel(), p.stream(), p.kinds_view(), m, p.sq, p.sk, -1, -1, c);
  };
  refused(kinds(mask), "are to be given together");
  c.MASK_BM = c.MASK_BN = 96;
  refused(kinds(mask), "must be multiples of the tile (64 x 64)");
  c.MASK_BM = c.MASK_BN = 64;
  refused(kinds(mask), "MASK must have shape");
  AttentionLists<int32_t> lists = p.lists();
  lists.full_counts.shape[2] = 1;
  TensorView<const float, 4> q(reinterpret_cast<const float*>(p.kinds.data()), {kB, kHq, 100, kD}),
      k(q.data, {kB, kHkv, 100, kD});
  TensorView<float, 4> o(const_cast<float*>(q.data), {kB, kHq, 100, kD});
  TensorView<float, 3> l(o.data, {kB, kHq, 100});
  refused(block_sparse_attention<float>(p.stream(), q, k, k, o, l, lists, {}, p.config), "full_counts must have shape");
  AttentionOptions<> options;
  options.bias = {q.data, {1, 1, 100, 100}};
  refused(block_sparse_attention<float>(p.stream(), q, k, k, o, l, p.lists(), options, p.config), "not supported");

  AttentionBackwardConfig b = default_block_sparse_attention_backward_config(DType::f32, 100, 100, kD, kD, false, false,
                                                                             true, Machine::of(p.device->properties()));
  b.keys.BM = b.keys.BN = b.queries.BM = b.queries.BN = 64;
  const int64_t floats = attention_backward_workspace(kB, kHq, 100, kD, true);
  const AttentionLists<const int32_t> good = p.lists(), bad = lists;
  auto gradients = [&](const AttentionBackwardLists& of, const AttentionOptions<>& with, int64_t scratch) {
    return block_sparse_attention_backward<float>(
        p.stream(), q, k, k, o, q, TensorView<const float, 3>(l), o, TensorView<float, 4>(o.data, k.shape),
        TensorView<float, 4>(o.data, k.shape), TensorView<float, 1>(o.data, {scratch}), of, with, b);
  };
  refused(gradients({bad, good}, {}, floats), "keys.full_counts must have shape");
  refused(gradients({good, bad}, {}, floats), "queries.full_counts must have shape");
  refused(gradients({good, good}, {}, floats - 1), "the workspace must be dense");
  refused(gradients({good, good}, options, floats), "not supported");
}

/// The kernels that make lists have no rows in the catalog whose builds the gate would look at.
TEST(AttentionLists, KernelsAssembleForGpus) {
  const auto documents = make_attention_block_kinds_kernel("document_kinds", DocumentMask{});
  AttentionListsConfig c;
  c.causal = c.left = true, c.MASK_BM = c.MASK_BN = 128;
  AttentionListsConfig f32 = c;
  f32.BM = 64, f32.BN = 32;
  const auto kernels = std::initializer_list<std::tuple<const AnyKernel*, ConfigWords>>{
      {&documents, documents.words(c)},
      {&attention_block_kinds_kernel(), attention_block_kinds_kernel().words(c)},
      {&attention_block_means_kernel<half>(), attention_block_means_kernel<half>().words(c)},
      {&attention_block_means_kernel<float>(), attention_block_means_kernel<float>().words(f32)},
      {&attention_pooled_scores_kernel<half>(), attention_pooled_scores_kernel<half>().words(c)},
      {&attention_pooled_scores_kernel<float>(), attention_pooled_scores_kernel<float>().words(f32)},
      {&attention_top_blocks_kernel(), attention_top_blocks_kernel().words(c)},
      {&attention_lists_kernel(), attention_lists_kernel().words(c)}};
  for (const char* target : {"sm_80", "sm_90a"})
    for (const auto& [kernel, words] : kernels) {
      auto binary = kernel->compile_for(target, words, dense_specialization(*kernel));
      ASSERT_TRUE(binary.ok()) << kernel->describe_config(words) << "\n" << binary.error().to_string();
      EXPECT_EQ(binary->resources.spill_store_bytes, 0u) << kernel->symbol(words) << " for " << target;
    }
}

INSTANTIATE_TEST_SUITE_P(Each, BlockSparseAttention, testing::ValuesIn(device_names()),
                         [](const auto& info) { return test_name_of(info.param); });

}  // namespace
}  // namespace tile::kernels
