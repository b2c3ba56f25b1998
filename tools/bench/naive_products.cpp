// naive_products.cpp - matrix products: dense, gated, quantised, by experts, convolution, block-sparse. Triple loops in
// the order that walks rows of both matrices and that compilers vectorise; row times column in the innermost loop is an
// order of magnitude slower at these sizes.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/bench/naive.h"

namespace tile::bench {

void naive_gemm(NaiveData& data) {
  const float *a = data.in("a"), *b = data.in("b");
  float* d = data.out("d");
  const int64_t m = data.dim("d", 1), n = data.dim("d", 2), k = data.dim("a", 2);
  std::fill(d, d + m * n, 0.f);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j) d[i * n + j] += a[i * k + l] * b[l * n + j];
}

void naive_gemm_leaky_relu(NaiveData& data) {
  naive_gemm(data);
  float* d = data.out("d");
  const int64_t count = data.dim("d", 1) * data.dim("d", 2);
  for (int64_t i = 0; i < count; ++i) d[i] = d[i] > 0 ? d[i] : 0.25f * d[i];
}

void naive_gated_gemm(NaiveData& data) {
  const float *a = data.in("a"), *g = data.in("g"), *u = data.in("u");
  float* d = data.out("d");
  const int64_t m = data.dim("d", 0), n = data.dim("d", 1), k = data.dim("a", 1);
  std::vector<float> gate(static_cast<size_t>(n)), up(static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    std::fill(gate.begin(), gate.end(), 0.f), std::fill(up.begin(), up.end(), 0.f);
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j) {
        gate[static_cast<size_t>(j)] += a[i * k + l] * g[l * n + j];
        up[static_cast<size_t>(j)] += a[i * k + l] * u[l * n + j];
      }
    for (int64_t j = 0; j < n; ++j)
      d[i * n + j] = gate[static_cast<size_t>(j)] / (1 + std::exp(-gate[static_cast<size_t>(j)])) *
                     up[static_cast<size_t>(j)];
  }
}

/// D = A W with the weight of a row and column of W from `weight`, times the scale of its group of rows.
template <class Weight>
static void multiply_quantised(NaiveData& data, Weight weight) {
  const float *a = data.in("a"), *s = data.in("s");
  const int32_t* w = data.ints("w");
  float* d = data.out("d");
  const int64_t m = data.dim("d", 0), n = data.dim("d", 1), k = data.dim("a", 1), group = data.size("G", 128);
  std::fill(d, d + m * n, 0.f);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j)
        d[i * n + j] += a[i * k + l] * static_cast<float>(weight(w, l, j, n)) * s[l / group * n + j];
}

void naive_gemm_w8(NaiveData& data) {
  multiply_quantised(data, [](const int32_t* w, int64_t l, int64_t j, int64_t n) { return w[l * n + j]; });
}

void naive_gemm_w4(NaiveData& data) {
  multiply_quantised(data, [](const int32_t* w, int64_t l, int64_t j, int64_t n) {
    return (w[l / 2 * n + j] >> (l % 2 * 4) & 15) - 8;
  });
}

void naive_expert_gemm(NaiveData& data) {
  const float *x = data.in("x"), *w = data.in("w"), *scale = data.in("scale");
  const int32_t* choice = data.ints("choice");
  float* d = data.out("d");
  const int64_t m = data.dim("d", 0), n = data.dim("d", 1), k = data.dim("x", 1), top = data.size("top", 2);
  std::fill(d, d + m * n, 0.f);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j) d[i * n + j] += x[i / top * k + l] * w[(choice[i] * k + l) * n + j];
    for (int64_t j = 0; j < n; ++j) d[i * n + j] *= scale[i];
  }
}

void naive_convolution(NaiveData& data) {
  const float *x = data.in("x"), *f = data.in("f");
  float* y = data.out("y");
  const int64_t images = data.dim("x", 0), height = data.dim("x", 1), width = data.dim("x", 2), c = data.dim("x", 3);
  const int64_t taps = data.dim("f", 0), filters = data.dim("f", 3), p = data.dim("y", 1), q = data.dim("y", 2);
  const int64_t stride = data.size("stride", 1), pad = data.size("pad"), dilation = data.size("dilation", 1);
  for (int64_t image = 0; image < images; ++image)
    for (int64_t i = 0; i < p; ++i)
      for (int64_t j = 0; j < q; ++j) {
        float* to = y + ((image * p + i) * q + j) * filters;
        for (int64_t o = 0; o < filters; ++o) to[o] = 0;
        for (int64_t r = 0; r < taps; ++r)
          for (int64_t s = 0; s < taps; ++s) {
            const int64_t h = i * stride - pad + r * dilation, w = j * stride - pad + s * dilation;
            if (h < 0 || h >= height || w < 0 || w >= width) continue;
            for (int64_t l = 0; l < c; ++l)
              for (int64_t o = 0; o < filters; ++o)
                to[o] += x[((image * height + h) * width + w) * c + l] * f[((r * taps + s) * c + l) * filters + o];
          }
      }
}

void naive_block_sparse_matmul(NaiveData& data) {
  const float *a = data.in("a"), *b = data.in("b");
  const int32_t *mask_a = data.ints("mask_a"), *mask_b = data.ints("mask_b");
  float* c = data.out("c");
  const int64_t m = data.dim("a", 0), k = data.dim("a", 1), n = data.dim("b", 1);
  const int64_t bm = data.size("bm", 64), bn = data.size("bn", 64), bk = data.size("bk", 64);
  const int64_t columns_a = data.dim("mask_a", 1), columns_b = data.dim("mask_b", 1);
  std::fill(c, c + m * n, 0.f);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l) {
      if (!mask_a[i / bm * columns_a + l / bk]) continue;
      for (int64_t block = 0; block < columns_b; ++block) {
        if (!mask_b[l / bk * columns_b + block]) continue;
        for (int64_t j = block * bn; j < std::min(block * bn + bn, n); ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
      }
    }
}

void naive_block_sparse_dense(NaiveData& data) {
  const float *values = data.in("values"), *b = data.in("b");
  const int32_t *offsets = data.ints("offsets"), *columns = data.ints("columns");
  float* d = data.out("d");
  const int64_t m = data.dim("d", 0), n = data.dim("d", 1), bm = data.dim("values", 1), bk = data.dim("values", 2);
  std::fill(d, d + m * n, 0.f);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t e = offsets[i / bm]; e < offsets[i / bm + 1]; ++e)
      for (int64_t l = 0; l < bk; ++l)
        for (int64_t j = 0; j < n; ++j)
          d[i * n + j] += values[(e * bm + i % bm) * bk + l] * b[(columns[e] * bk + l) * n + j];
}

void naive_dense_block_sparse(NaiveData& data) {
  const float *values = data.in("values"), *a = data.in("a");
  const int32_t *offsets = data.ints("offsets"), *rows = data.ints("columns"), *positions = data.ints("positions");
  float* d = data.out("d");
  const int64_t m = data.dim("d", 0), n = data.dim("d", 1), k = data.dim("a", 1);
  const int64_t bk = data.dim("values", 1), bn = data.dim("values", 2), block_columns = (n + bn - 1) / bn;
  std::fill(d, d + m * n, 0.f);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t column = 0; column < block_columns; ++column)
      for (int64_t e = offsets[column]; e < offsets[column + 1]; ++e)
        for (int64_t l = 0; l < bk; ++l)
          for (int64_t j = 0; j < std::min(bn, n - column * bn); ++j)
            d[i * n + column * bn + j] += a[i * k + rows[e] * bk + l] * values[(positions[e] * bk + l) * bn + j];
}

void naive_sampled_dense(NaiveData& data) {
  const float *a = data.in("a"), *b = data.in("b");
  const int32_t *rows = data.ints("rows"), *columns = data.ints("columns");
  float* values = data.out("values");
  const int64_t k = data.dim("a", 1), n = data.dim("b", 1);
  const int64_t entries = data.dim("values", 0), bm = data.dim("values", 1), bn = data.dim("values", 2);
  for (int64_t e = 0; e < entries; ++e)
    for (int64_t i = 0; i < bm; ++i) {
      float* to = values + (e * bm + i) * bn;
      for (int64_t j = 0; j < bn; ++j) to[j] = 0;
      for (int64_t l = 0; l < k; ++l)
        for (int64_t j = 0; j < bn; ++j) to[j] += a[(rows[e] * bm + i) * k + l] * b[l * n + columns[e] * bn + j];
    }
}

}  // namespace tile::bench
