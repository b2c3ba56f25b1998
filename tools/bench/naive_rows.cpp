// naive_rows.cpp - elementwise loops and rows: softmax, reductions, norms, losses.
#include <algorithm>
#include <cmath>

#include "tools/bench/naive.h"

namespace tile::bench {

void naive_vector_add(NaiveData& d) {
  const float *x = d.in("x"), *y = d.in("y");
  float* z = d.out("z");
  const int64_t n = d.dim("x", 0);
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
}

void naive_softmax(NaiveData& d) {
  const float* x = d.in("x");
  float* y = d.out("y");
  const int64_t m = d.dim("x", 0), n = d.dim("x", 1);
  for (int64_t i = 0; i < m; ++i) {
    float top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; ++j) top = std::max(top, x[i * n + j]);
    for (int64_t j = 0; j < n; ++j) sum += y[i * n + j] = std::exp(x[i * n + j] - top);
    for (int64_t j = 0; j < n; ++j) y[i * n + j] /= sum;
  }
}

void naive_row_reduction(NaiveData& d) {
  const float* x = d.in("x");
  float* y = d.out("y");
  const int64_t m = d.dim("x", 0), n = d.dim("x", 1);
  for (int64_t i = 0; i < m; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += x[i * n + j];
    y[i] = sum;
  }
}

void naive_row_arg(NaiveData& d) {
  const float* x = d.in("x");
  float* y = d.out("y");
  const int64_t m = d.dim("x", 0), n = d.dim("x", 1);
  for (int64_t i = 0; i < m; ++i) {
    int64_t best = 0;
    for (int64_t j = 1; j < n; ++j)
      if (x[i * n + j] > x[i * n + best]) best = j;
    y[i] = static_cast<float>(best);
  }
}

void naive_rms_norm(NaiveData& d) {
  const float *x = d.in("x"), *w = d.in("w");
  float *y = d.out("y"), *rstd = d.out("rstd");
  const int64_t m = d.dim("x", 0), n = d.dim("x", 1);
  for (int64_t i = 0; i < m; ++i) {
    float squares = 0;
    for (int64_t j = 0; j < n; ++j) squares += x[i * n + j] * x[i * n + j];
    rstd[i] = 1 / std::sqrt(squares / static_cast<float>(n) + 1e-5f);
    for (int64_t j = 0; j < n; ++j) y[i * n + j] = x[i * n + j] * rstd[i] * w[j];
  }
}

void naive_layer_norm(NaiveData& d) {
  const float *x = d.in("x"), *w = d.in("w"), *b = d.in("b");
  float *y = d.out("y"), *mean = d.out("mean"), *rstd = d.out("rstd");
  const int64_t m = d.dim("x", 0), n = d.dim("x", 1);
  for (int64_t i = 0; i < m; ++i) {
    float sum = 0, squares = 0;
    for (int64_t j = 0; j < n; ++j) sum += x[i * n + j];
    mean[i] = sum / static_cast<float>(n);
    for (int64_t j = 0; j < n; ++j) squares += (x[i * n + j] - mean[i]) * (x[i * n + j] - mean[i]);
    rstd[i] = 1 / std::sqrt(squares / static_cast<float>(n) + 1e-5f);
    for (int64_t j = 0; j < n; ++j) y[i * n + j] = (x[i * n + j] - mean[i]) * rstd[i] * w[j] + b[j];
  }
}

void naive_cross_entropy(NaiveData& d) {
  const float* x = d.in("x");
  const int32_t* labels = d.ints("labels");
  float *loss = d.out("loss"), *lse = d.out("lse");
  const int64_t m = d.dim("x", 0), n = d.dim("x", 1);
  for (int64_t i = 0; i < m; ++i) {
    float top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; ++j) top = std::max(top, x[i * n + j]);
    for (int64_t j = 0; j < n; ++j) sum += std::exp(x[i * n + j] - top);
    lse[i] = top + std::log(sum);
    loss[i] = lse[i] - x[i * n + labels[i]];
  }
}

void naive_cross_entropy_backward(NaiveData& d) {
  const float *x = d.in("x"), *lse = d.in("lse"), *upstream = d.in("upstream");
  const int32_t* labels = d.ints("labels");
  float* dx = d.out("dx");
  const int64_t m = d.dim("x", 0), n = d.dim("x", 1);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      dx[i * n + j] = (std::exp(x[i * n + j] - lse[i]) - (j == labels[i] ? 1.f : 0.f)) * upstream[i];
}

}  // namespace tile::bench
