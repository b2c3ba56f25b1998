// The references themselves: formats bit by bit, formulas against each other and against hand-computed values, and that
// the comparison rejects what it must reject.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/reference/attention.h"
#include "kernels/reference/compare.h"
#include "kernels/reference/gated_linear_attention.h"
#include "kernels/reference/gemm.h"
#include "kernels/reference/rows.h"

namespace tile::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Matrix random_matrix(int64_t rows, int64_t cols, uint64_t seed, double scale = 1) {
  HostTensor t(DType::f64, Dims{rows, cols});
  t.fill_normal(seed, scale);
  Matrix m(rows, cols);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) m(i, j) = t.at({i, j});
  return m;
}

TEST(Number, EveryCodeOfTheSmallFormatsRoundTrips) {
  for (DType type : {DType::f8e4m3, DType::f8e5m2, DType::f16, DType::bf16})
    for (uint32_t code = 0; code < (1u << bits_of(type)); ++code) {
      double value = decode(type, &code);
      uint32_t again = 0;
      encode(type, value, &again);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(decode(type, &again))) << name(type) << " " << code;
      else
        EXPECT_EQ(again, code) << name(type) << " value " << value;
    }
}

TEST(Number, RoundsToNearestEven) {
  EXPECT_EQ(round_to(DType::f16, 1 + 0x1p-11), 1.0);
  EXPECT_EQ(round_to(DType::f16, 1 + 3 * 0x1p-11), 1 + 0x1p-9);
  EXPECT_EQ(round_to(DType::f16, 65519.0), 65504.0);
  EXPECT_EQ(round_to(DType::f16, 65520.0), kInf);
  EXPECT_EQ(round_to(DType::f16, 0x1p-25), 0.0);
  EXPECT_EQ(round_to(DType::f16, 0x1.8p-25), 0x1p-24);
  EXPECT_EQ(round_to(DType::bf16, 1 + 0x1p-8), 1.0);
  EXPECT_EQ(round_to(DType::bf16, 1 + 0x1.8p-8), 1 + 0x1p-7);
  EXPECT_EQ(round_to(DType::f8e4m3, 448.0), 448.0);
  EXPECT_EQ(round_to(DType::i8, 200.0), 127.0);
  EXPECT_EQ(round_to(DType::i32, -2.5), -2.0);
  EXPECT_EQ(round_to_tf32(1 + 0x1p-11), 1.0);
  EXPECT_EQ(round_to_tf32(1 + 0x1.8p-11), 1 + 0x1p-10);
}

TEST(HostTensor, PoisonSurroundsTheElements) {
  HostTensor t(DType::f16, Placement::ordered({2, 3, 4}, {1, 0, 2}, 5, 1));
  EXPECT_EQ(t.strides(), (Dims{9, 18, 1}));
  EXPECT_TRUE(std::isnan(t.at({1, 2, 3})));
  t.fill_normal(1);
  EXPECT_TRUE(t.gaps_intact());
  EXPECT_FALSE(std::isnan(t.at({1, 2, 3})));
  t.bytes()[t.origin_bytes() + 4 * 2] = std::byte{0};  // the first gap element after row (0,0)
  EXPECT_FALSE(t.gaps_intact());
}

TEST(HostTensor, NormalDataHasUnitVariance) {
  HostTensor t(DType::f32, Dims{100000});
  t.fill_normal(7);
  double sum = 0, squares = 0;
  for (double x : t.row({})) sum += x, squares += x * x;
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1, 0.03);
}

TEST(Softmax, ThreeFormsAgreeAndOnlyTheNaiveOneOverflows) {
  std::vector<double> x = {0.5, -1, 2, 3, -7};
  auto naive = softmax_naive(x, Arithmetic::exact()), safe = softmax_safe(x, Arithmetic::exact()),
       online = softmax_online(x, Arithmetic::exact());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(naive[i], safe[i], 1e-15);
    EXPECT_NEAR(online[i], safe[i], 1e-15);
    sum += safe[i];
  }
  EXPECT_NEAR(sum, 1, 1e-15);
  EXPECT_TRUE(std::isnan(softmax_naive({89, 0}, Arithmetic::working(DType::f32))[0]));  // e^89 > largest float
  EXPECT_NEAR(softmax_safe({89, 0}, Arithmetic::working(DType::f32))[0], 1, 1e-6);
}

TEST(Norms, HandComputed) {
  // x = 1, 3: mean 2, variance 1, mean square 5.
  auto y = layer_norm({1, 3}, {2, 2}, {0, 1}, 0, Arithmetic::exact());
  EXPECT_DOUBLE_EQ(y[0], -2);
  EXPECT_DOUBLE_EQ(y[1], 3);
  EXPECT_DOUBLE_EQ(rms_norm({1, 3}, {1, 1}, 0, Arithmetic::exact())[1], 3 / std::sqrt(5.0));
}

TEST(Gemm, TransposesAlphaBetaEpilogue) {
  HostTensor a(DType::f64, Dims{2, 3}), at(DType::f64, Dims{3, 2}), b(DType::f64, Dims{3, 2}),
      bt(DType::f64, Dims{2, 3}), c(DType::f64, Dims{2, 2});
  c.fill(10);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t k = 0; k < 3; ++k) {
      a.set({i, k}, i * 3.0 + k + 1), at.set({k, i}, i * 3.0 + k + 1);
      b.set({k, i}, k * 2.0 + i + 1), bt.set({i, k}, k * 2.0 + i + 1);
    }
  int64_t rows[] = {0, 1};
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      auto d = gemm_rows({ta, tb, 2, 0.5, [](double x) { return -x; }}, ta ? at : a, tb ? bt : b, &c, rows,
                         Arithmetic::exact());
      EXPECT_DOUBLE_EQ(d[0][0], -(2 * 22 + 5));
      EXPECT_DOUBLE_EQ(d[1][1], -(2 * 64 + 5));
    }
}

TEST(Attention, WorkedExampleCausalAndEmptyRows) {
  // Two heads share one key head; Sq 3 > Sk 2, so causal (bottom right) leaves row 0 with nothing, row 1 with key 0.
  HostTensor q(DType::f64, Dims{1, 2, 3, 1}), k(DType::f64, Dims{1, 1, 2, 1}), v(DType::f64, Dims{1, 1, 2, 1});
  q.fill(1);
  k.set({0, 0, 0, 0}, 0), k.set({0, 0, 1, 0}, std::log(3.0));
  v.set({0, 0, 0, 0}, 4), v.set({0, 0, 1, 0}, 8);
  int64_t rows[] = {0, 1, 2};
  AttentionSpec spec;
  spec.causal = true;
  auto r = attention_rows(spec, q, k, v, 0, 1, rows, Arithmetic::exact());
  EXPECT_EQ(r[0].o[0], 0);
  EXPECT_EQ(r[0].lse, -kInf);
  EXPECT_DOUBLE_EQ(r[1].o[0], 4);
  EXPECT_DOUBLE_EQ(r[1].lse, 0);
  EXPECT_NEAR(r[2].o[0], 0.25 * 4 + 0.75 * 8, 1e-14);
  EXPECT_NEAR(r[2].lse, std::log(4.0), 1e-14);
  EXPECT_EQ(visible_pairs(3, 2, true), 3);
  EXPECT_EQ(visible_pairs(4, 4, true), 10);
}

/// Loss = sum of dO . O; its numeric derivative by every input is what the gradients must be.
TEST(Attention, GradientsAgreeWithFiniteDifferences) {
  const int64_t sq = 5, sk = 7, d = 3, heads = 2;
  HostTensor q(DType::f64, Dims{1, heads, sq, d}), k(DType::f64, Dims{1, 1, sk, d}), v(DType::f64, Dims{1, 1, sk, d}),
      d_o(DType::f64, Dims{1, heads, sq, d}), slopes(DType::f64, Dims{1, heads}),
      bias(DType::f64, Dims{1, heads, sq, sk});
  q.fill_normal(1), k.fill_normal(2), v.fill_normal(3), d_o.fill_normal(4), bias.fill_normal(5);
  slopes.set({0, 0}, 0.5), slopes.set({0, 1}, 0.1);
  AttentionSpec plain, causal, rich, dropped;
  plain.scale = causal.scale = rich.scale = dropped.scale = 0.7;
  dropped.dropout = 0.3f, dropped.seed = 5, dropped.causal = true;
  causal.causal = true;
  rich.left = 4, rich.right = 1, rich.softcap = 1.5, rich.slopes = &slopes, rich.bias = &bias;
  rich.score_mod = [](double t, int64_t, int64_t, int64_t i, int64_t j) { return t * t / 4 + 0.1 * double(i * j); };
  rich.score_gradient = [](double t, int64_t, int64_t, int64_t, int64_t) { return t / 2; };
  rich.mask_mod = [](int64_t, int64_t, int64_t i, int64_t j) { return (i + j) % 4 != 0; };
  std::vector<int64_t> rows = {0, 1, 2, 3, 4}, keys = {0, 1, 2, 3, 4, 5, 6};
  const Arithmetic exact = Arithmetic::exact();
  for (const AttentionSpec& spec : {plain, causal, rich, dropped}) {
    auto loss = [&] {
      double sum = 0;
      for (int64_t h = 0; h < heads; ++h) {
        auto o = attention_rows(spec, q, k, v, 0, h, rows, exact);
        for (int64_t i = 0; i < sq; ++i)
          for (int64_t c = 0; c < d; ++c) sum += o[i].o[c] * d_o.at({0, h, i, c});
      }
      return sum;
    };
    auto numeric = [&](HostTensor& t, std::initializer_list<int64_t> at) {
      const double x = t.at(at), step = 1e-5;
      t.set(at, x + step);
      const double above = loss();
      t.set(at, x - step);
      const double below = loss();
      t.set(at, x);
      return (above - below) / (2 * step);
    };
    std::vector<AttentionStats> stats;
    for (int64_t h = 0; h < heads; ++h) {
      stats.push_back(attention_stats(spec, q, k, v, d_o, 0, h, exact));
      auto dq = attention_query_gradients(spec, q, k, v, d_o, 0, h, rows, stats[h], exact);
      for (int64_t i = 0; i < sq; ++i)
        for (int64_t c = 0; c < d; ++c) EXPECT_NEAR(dq[i][c], numeric(q, {0, h, i, c}), 1e-8);
    }
    auto g = attention_key_gradients(spec, q, k, v, d_o, 0, 0, keys, stats, exact);
    for (int64_t j = 0; j < sk; ++j)
      for (int64_t c = 0; c < d; ++c) {
        EXPECT_NEAR(g.dk[j][c], numeric(k, {0, 0, j, c}), 1e-8);
        EXPECT_NEAR(g.dv[j][c], numeric(v, {0, 0, j, c}), 1e-8);
      }
  }
}

TEST(Attention, PackedSequencesAndWindows) {
  HostTensor q(DType::f64, Dims{1, 1, 6, 2}), k(DType::f64, Dims{1, 1, 7, 2}), v(DType::f64, Dims{1, 1, 7, 2});
  q.fill_normal(1), k.fill_normal(2), v.fill_normal(3);
  AttentionSpec packed;
  packed.cu_q = {1, 3, 3, 6}, packed.cu_k = {0, 3, 5, 7};
  for (int64_t s : {0, 2}) {
    const int64_t nq = packed.cu_q[s + 1] - packed.cu_q[s], nk = packed.cu_k[s + 1] - packed.cu_k[s];
    HostTensor q1(DType::f64, Dims{1, 1, nq, 2}), k1(DType::f64, Dims{1, 1, nk, 2}), v1(DType::f64, Dims{1, 1, nk, 2});
    for (int64_t c = 0; c < 2; ++c) {
      for (int64_t i = 0; i < nq; ++i) q1.set({0, 0, i, c}, q.at({0, 0, packed.cu_q[s] + i, c}));
      for (int64_t j = 0; j < nk; ++j) {
        k1.set({0, 0, j, c}, k.at({0, 0, packed.cu_k[s] + j, c}));
        v1.set({0, 0, j, c}, v.at({0, 0, packed.cu_k[s] + j, c}));
      }
    }
    int64_t rows[] = {0, 1};
    auto a = attention_rows(packed, q, k, v, s, 0, rows, Arithmetic::exact()),
         b = attention_rows({}, q1, k1, v1, 0, 0, rows, Arithmetic::exact());
    for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(a[i].o, b[i].o);
  }
  AttentionSpec window;
  window.left = 1, window.right = 0;
  EXPECT_TRUE(in_band(window, 2, 3, 6, 7) && in_band(window, 2, 2, 6, 7));  // aligned with key 3
  EXPECT_FALSE(in_band(window, 2, 4, 6, 7) || in_band(window, 2, 1, 6, 7));
  window.top_left = true;
  EXPECT_TRUE(in_band(window, 2, 2, 6, 7) && in_band(window, 2, 1, 6, 7));
  EXPECT_EQ(visible_pairs(window, 3, 2), 1 + 2 + 1);
}

TEST(BlockSparse, MaskedBlocksAreNotLookedAt) {
  HostTensor a(DType::f64, Dims{2, 4}), b(DType::f64, Dims{4, 2}), ma(DType::i32, Dims{1, 2}),
      mb(DType::i32, Dims{2, 1});
  a.fill(1), b.fill(1), ma.fill(1), mb.fill(1);
  for (int64_t i = 0; i < 2; ++i) a.set({i, 3}, kNaN);
  ma.set({0, 1}, 0);
  int64_t rows[] = {0, 1};
  auto d = block_sparse_rows(a, b, ma, mb, 2, 2, 2, rows, Arithmetic::exact());
  EXPECT_EQ(d[1][1], 2);
  EXPECT_EQ(block_pairs(ma, mb), 1);
}

TEST(GatedLinearAttention, FiveStepsEqualTheRecurrence) {
  for (int64_t length : {1, 15, 16, 17, 64, 70})
    for (int64_t window : {16, 32}) {
      Matrix q = random_matrix(length, 5, 1), k = random_matrix(length, 5, 2), v = random_matrix(length, 3, 3),
             g = random_matrix(length, 5, 4, 0.3), h;
      for (double& x : g.values) x = -std::fabs(x);
      Arithmetic exact = Arithmetic::exact();
      Matrix expected = gla_recurrent(q, k, v, g, 0.7, h, exact);
      Matrix sums = gla_decay_cumsum(g, window, exact), q_g, k_g;
      gla_prepare(q, k, sums, 0.7, window, q_g, k_g, exact);
      Matrix o = gla_combine(gla_inter_chunk(q_g, k_g, v, sums, window, exact),
                             gla_inner_scores(q, k, sums, 0.7, window, exact), v, window, exact);
      for (size_t i = 0; i < o.values.size(); ++i)
        EXPECT_NEAR(o.values[i], expected.values[i], 1e-12) << length << " " << window;
    }
}

TEST(GatedLinearAttention, StateContinues) {
  Matrix q = random_matrix(8, 4, 1), k = random_matrix(8, 4, 2), v = random_matrix(8, 4, 3), g(8, 4), whole, first;
  auto half = [](const Matrix& m, int64_t from) {
    Matrix part(4, m.cols);
    std::copy_n(m.values.begin() + from * m.cols, part.values.size(), part.values.begin());
    return part;
  };
  Matrix o = gla_recurrent(q, k, v, g, 1, whole, Arithmetic::exact());
  gla_recurrent(half(q, 0), half(k, 0), half(v, 0), half(g, 0), 1, first, Arithmetic::exact());
  Matrix tail = gla_recurrent(half(q, 4), half(k, 4), half(v, 4), half(g, 4), 1, first, Arithmetic::exact());
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t d = 0; d < 4; ++d) EXPECT_NEAR(tail(t, d), o(t + 4, d), 1e-13);
}

TEST(GatedLinearAttention, ChunksEqualTheRecurrence) {
  for (int64_t length : {1, 7, 8, 37})
    for (int64_t chunk : {8, 16}) {
      Matrix q = random_matrix(length, 5, 1), k = random_matrix(length, 5, 2), v = random_matrix(length, 3, 3),
             g = random_matrix(length, 5, 4), h0 = random_matrix(5, 3, 5), d_o = random_matrix(length, 3, 6),
             dht = random_matrix(5, 3, 7);
      for (double& x : g.values) x = -std::fabs(x);
      Matrix state = h0, chunked_state = h0;
      Matrix o = gla_recurrent(q, k, v, g, 0.7, state, Arithmetic::exact());
      Matrix chunked = gla_chunked(q, k, v, g, 0.7, chunk, chunked_state, Arithmetic::exact());
      for (size_t i = 0; i < o.values.size(); ++i) EXPECT_NEAR(chunked.values[i], o.values[i], 1e-12);
      for (size_t i = 0; i < state.values.size(); ++i) EXPECT_NEAR(chunked_state.values[i], state.values[i], 1e-12);
      GlaGradients exact = gla_backward(q, k, v, g, 0.7, h0, d_o, dht, Arithmetic::exact()),
                   by_chunks = gla_chunked_backward(q, k, v, g, 0.7, chunk, h0, d_o, dht, Arithmetic::exact());
      for (auto part : {&GlaGradients::dq, &GlaGradients::dk, &GlaGradients::dv, &GlaGradients::dg, &GlaGradients::dh0})
        for (size_t i = 0; i < (exact.*part).values.size(); ++i)
          EXPECT_NEAR((by_chunks.*part).values[i], (exact.*part).values[i], 1e-11) << length << " " << chunk;
    }
}

TEST(GatedLinearAttention, GradientsAreDifferenceQuotients) {
  constexpr int64_t kLength = 70;  // past one block of kept states
  Matrix inputs[] = {random_matrix(kLength, 3, 1), random_matrix(kLength, 3, 2), random_matrix(kLength, 2, 3),
                     random_matrix(kLength, 3, 4, 0.3), random_matrix(3, 2, 5)};
  for (double& x : inputs[3].values) x = -std::fabs(x);
  Matrix d_o = random_matrix(kLength, 2, 6), dht = random_matrix(3, 2, 7);
  auto loss = [&] {
    Matrix state = inputs[4];
    Matrix o = gla_recurrent(inputs[0], inputs[1], inputs[2], inputs[3], 0.7, state, Arithmetic::exact());
    double sum = 0;
    for (size_t i = 0; i < o.values.size(); ++i) sum += o.values[i] * d_o.values[i];
    for (size_t i = 0; i < state.values.size(); ++i) sum += state.values[i] * dht.values[i];
    return sum;
  };
  GlaGradients made =
      gla_backward(inputs[0], inputs[1], inputs[2], inputs[3], 0.7, inputs[4], d_o, dht, Arithmetic::exact());
  const Matrix* gradients[] = {&made.dq, &made.dk, &made.dv, &made.dg, &made.dh0};
  constexpr double kStep = 1e-5;
  for (int n = 0; n < 5; ++n)
    for (size_t i = 0; i < inputs[n].values.size(); i += 5) {
      double& x = inputs[n].values[i];
      double kept = x;
      x = kept + kStep;
      double above = loss();
      x = kept - kStep;
      double below = loss();
      x = kept;
      EXPECT_NEAR(gradients[n]->values[i], (above - below) / (2 * kStep), 1e-7) << n << " " << i;
    }
}

TEST(Compare, RejectsWrongTilesNaNAndMissingInfinities) {
  std::vector<double> exact(1000), baseline, actual;
  for (size_t i = 0; i < exact.size(); ++i) exact[i] = std::sin(0.1 * static_cast<double>(i));
  for (double x : exact) baseline.push_back(round_to(DType::f16, x));
  Tolerance t = tolerance(DType::f16, 64);
  EXPECT_TRUE(compare(baseline, exact, baseline, t).pass);
  actual = baseline;
  actual[3] = kNaN;
  EXPECT_FALSE(compare(actual, exact, baseline, t).pass);
  actual = baseline;
  actual[500] += 0.01;
  EXPECT_FALSE(compare(actual, exact, baseline, t).pass);
  actual = baseline;
  for (size_t i = 0; i < 700; ++i) actual[i] += 9e-4;  // below the maximum's gate, not below the mean's
  Comparison c = compare(actual, exact, baseline, t);
  EXPECT_FALSE(c.pass);
  EXPECT_NE(c.why.find("mean"), std::string::npos) << c.why;
  EXPECT_TRUE(compare_absolute({-kInf}, {-kInf}, 0).pass);
  EXPECT_FALSE(compare_absolute({kInf}, {-kInf}, 1).pass);
  EXPECT_FALSE(compare_absolute({-1e30}, {-kInf}, 1).pass);
  EXPECT_FALSE(compare_equal({1, 2}, {1, 3}).pass);
  EXPECT_FALSE(compare_equal({1}, {1, 3}).pass);
}

}  // namespace
}  // namespace tile::reference
