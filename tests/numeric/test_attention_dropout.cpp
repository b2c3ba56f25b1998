// test_attention_dropout.cpp - the mask of attention's dropout: the reference's whatever the tiles, independent between
// seeds, sequences and heads, and absent from kernels without it. Gradients are checked by the rows of the catalog.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/attention.h"
#include "kernels/reference/attention.h"

namespace tile::kernels {
namespace {

using reference::AttentionSpec;

std::shared_ptr<Device> host() { return open_device("host").value_or_throw(); }

/// What a row of O shows of the mask: all weights are 1 / keys, values are rows of the identity.
struct Dropped {
  int64_t b, hq, hkv, queries, keys;
  std::vector<float> o;  ///< [b, hq, queries, keys]
  bool kept(int64_t n, int64_t h, int64_t i, int64_t j) const {
    return o[static_cast<size_t>(((n * hq + h) * queries + i) * keys + j)] != 0;
  }
};
Dropped dropped_weights(const AttentionOptions<>& options, int bm, int bn, int64_t queries = 150) {
  const int64_t b = 2, hq = 4, hkv = 2, keys = 112;
  std::vector<float> zero(static_cast<size_t>(b * hq * queries * keys)), identity(static_cast<size_t>(b * hkv * keys * keys));
  for (int64_t n = 0; n < b * hkv; ++n)
    for (int64_t j = 0; j < keys; ++j) identity[static_cast<size_t>((n * keys + j) * keys + j)] = 1;
  auto q = Buffer<float>::from(host(), std::span<const float>(zero)).value_or_throw(),
       v = Buffer<float>::from(host(), std::span<const float>(identity)).value_or_throw(),
       o = Buffer<float>::allocate(host(), zero.size()).value_or_throw(),
       lse = Buffer<float>::allocate(host(), zero.size() / keys).value_or_throw();
  AttentionConfig c = default_attention_config(DType::f32, queries, keys, keys, false, 1, Machine{});
  c.BM = bm, c.BN = bn;
  attention_forward<float>(host()->default_stream(), q.view(b, hq, queries, keys), v.view(b, hkv, keys, keys),
                           v.view(b, hkv, keys, keys), o.view(b, hq, queries, keys), lse.view(b, hq, queries), options, c)
      .value_or_throw();
  host()->default_stream().synchronize().value_or_throw();
  for (float x : lse.to_host().value_or_throw()) EXPECT_NEAR(x, std::log(112.f), 1e-5);  // of all weights
  return {b, hq, hkv, queries, keys, o.to_host().value_or_throw()};
}

TEST(AttentionDropout, E25_TheMaskIsTheReferencesWhateverTheTiles) {
  for (float p : {0.f, 0.1f, 0.5f, 0.99f}) {
    AttentionOptions<> options;
    options.dropout = p, options.seed = 0xfedcba9876543210, options.offset = 0x500000003;
    AttentionSpec spec;
    spec.dropout = p, spec.seed = options.seed, spec.offset = options.offset;
    for (auto [bm, bn] : {std::pair{64, 64}, {16, 112}, {48, 16}}) {
      const Dropped found = dropped_weights(options, bm, bn);
      int64_t kept = 0;
      for (int64_t n = 0; n < found.b; ++n)
        for (int64_t h = 0; h < found.hq; ++h)
          for (int64_t i = 0; i < found.queries; ++i)
            for (int64_t j = 0; j < found.keys; ++j) {
              const bool expected = dropout_keeps(spec, n, found.hq, h, i, j);
              ASSERT_EQ(found.kept(n, h, i, j), expected) << p << " at " << n << " " << h << " " << i << " " << j;
              kept += expected;
            }
      const double dropped = reference::dropout_probability(spec);  // in steps of 1/256
      EXPECT_NEAR(dropped, p, 1. / 512);
      for (float x : found.o) {
        if (x != 0) {
          ASSERT_NEAR(x, 1 / (112 * (1 - dropped)), 1e-5);
        }
      }
      // The share that is kept, within four standard deviations.
      const auto count = static_cast<double>(found.o.size());
      EXPECT_NEAR(static_cast<double>(kept) / count, 1 - dropped, 4 * std::sqrt(dropped * (1 - dropped) / count));
    }
  }
}

/// Any two of: another seed, offset, sequence or head, agree no more often than independent masks do.
TEST(AttentionDropout, E25_SeedsOffsetsSequencesAndHeadsDiffer) {
  AttentionOptions<> options;
  options.dropout = 0.5f;
  const Dropped first = dropped_weights(options, 64, 64);
  options.seed = 1;
  const Dropped seed = dropped_weights(options, 64, 64);
  options.seed = uint64_t{1} << 32;
  const Dropped high = dropped_weights(options, 64, 64);
  options.seed = 0, options.offset = 1;
  const Dropped offset = dropped_weights(options, 64, 64);
  auto agreement = [&](const Dropped& other, int64_t n, int64_t h) {
    int64_t same = 0;
    for (int64_t i = 0; i < first.queries; ++i)
      for (int64_t j = 0; j < first.keys; ++j) same += first.kept(0, 0, i, j) == other.kept(n, h, i, j);
    return static_cast<double>(same) / static_cast<double>(first.queries * first.keys);
  };
  const double spread = 4 * 0.5 / std::sqrt(static_cast<double>(first.queries * first.keys));
  for (const Dropped* other : {&seed, &high, &offset}) EXPECT_NEAR(agreement(*other, 0, 0), 0.5, spread);
  EXPECT_NEAR(agreement(first, 0, 1), 0.5, spread);  // another head of the same keys
  EXPECT_NEAR(agreement(first, 1, 0), 0.5, spread);
  EXPECT_EQ(agreement(first, 0, 0), 1);
  // And neighbours within a mask: rows and columns one and eight further, which share a counter, and two, which do not.
  for (auto [di, dj] : {std::pair<int64_t, int64_t>{0, 1}, {1, 0}, {1, 1}, {0, 8}, {8, 0}, {8, 8}, {9, 9}, {1, 9}, {2, 0}, {0, 2}}) {
    int64_t same = 0, pairs = 0;
    for (int64_t i = 0; i + di < first.queries; ++i)
      for (int64_t j = 0; j + dj < first.keys; ++j)
        same += first.kept(0, 0, i, j) == first.kept(0, 0, i + di, j + dj), ++pairs;
    EXPECT_NEAR(static_cast<double>(same) / static_cast<double>(pairs), 0.5, 4 * 0.5 / std::sqrt(double(pairs)))
        << di << " " << dj;
  }
}

TEST(AttentionDropout, WithoutItNothingOfItIsInTheKernel) {
  AttentionConfig c;
  const std::string without = attention_kernel<half>().trace(c).text();
  c.dropout = true;
  const std::string with = attention_kernel<half>().trace(c).text();
  EXPECT_EQ(without.find("xori"), std::string::npos);
  EXPECT_NE(with.find("xori"), std::string::npos);
}

}  // namespace
}  // namespace tile::kernels
