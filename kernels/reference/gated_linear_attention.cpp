// gated_linear_attention.cpp - the recurrence and the five steps as loops over rows.
#include "kernels/reference/gated_linear_attention.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tile::reference {
namespace {
int64_t window_end(int64_t t, int64_t window, int64_t rows) { return std::min(t - t % window + window, rows); }
}  // namespace

Matrix gla_recurrent(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& g, double scale, Matrix& state,
                     Arithmetic how) {
  Matrix o(v.rows, v.cols);
  if (state.values.empty()) state = Matrix(k.cols, v.cols);
  for (int64_t t = 0; t < v.rows; ++t)
    for (int64_t c = 0; c < k.cols; ++c) {
      double decay = how.op(std::exp(g(t, c))), qc = how.op(q(t, c) * scale);
      for (int64_t d = 0; d < v.cols; ++d) {
        state(c, d) = how.op(how.op(state(c, d) * decay) + k(t, c) * v(t, d));
        o(t, d) = how.op(o(t, d) + qc * state(c, d));
      }
    }
  for (double& x : o.values) x = how.store(x);
  return o;
}

Matrix gla_decay_cumsum(const Matrix& g, int64_t window, Arithmetic how) {
  Matrix sums(g.rows, g.cols);
  for (int64_t t = 0; t < g.rows; ++t)
    for (int64_t c = 0; c < g.cols; ++c)
      sums(t, c) = how.op((t % window ? sums(t - 1, c) : 0.0) + how.op(g(t, c) * std::numbers::log2e));
  return sums;
}

void gla_prepare(const Matrix& q, const Matrix& k, const Matrix& cumsum, double scale, int64_t window, Matrix& q_g,
                 Matrix& k_g, Arithmetic how) {
  q_g = Matrix(q.rows, q.cols), k_g = Matrix(k.rows, k.cols);
  for (int64_t t = 0; t < q.rows; ++t)
    for (int64_t c = 0; c < q.cols; ++c) {
      double last = cumsum(window_end(t, window, q.rows) - 1, c);
      q_g(t, c) = how.store(how.op(how.op(q(t, c) * how.op(std::exp2(cumsum(t, c)))) * scale));
      k_g(t, c) = how.store(how.op(k(t, c) * how.op(std::exp2(how.op(last - cumsum(t, c))))));
    }
}

Matrix gla_inter_chunk(const Matrix& q_g, const Matrix& k_g, const Matrix& v, const Matrix& cumsum, int64_t window,
                       Arithmetic how) {
  Matrix o(v.rows, v.cols), h(k_g.cols, v.cols);
  for (int64_t first = 0; first < v.rows; first += window) {
    int64_t end = window_end(first, window, v.rows);
    for (int64_t t = first; t < end; ++t)
      for (int64_t d = 0; d < v.cols; ++d)
        for (int64_t c = 0; c < k_g.cols; ++c) o(t, d) = how.op(o(t, d) + q_g(t, c) * how.store(h(c, d)));
    for (int64_t c = 0; c < k_g.cols; ++c)
      for (int64_t d = 0; d < v.cols; ++d) {
        h(c, d) = how.op(h(c, d) * how.op(std::exp2(cumsum(end - 1, c))));
        for (int64_t t = first; t < end; ++t) h(c, d) = how.op(h(c, d) + k_g(t, c) * v(t, d));
      }
  }
  for (double& x : o.values) x = how.store(x);
  return o;
}

Matrix gla_inner_scores(const Matrix& q, const Matrix& k, const Matrix& cumsum, double scale, int64_t window,
                        Arithmetic how) {
  Matrix a(q.rows, window);
  for (int64_t t = 0; t < q.rows; ++t)
    for (int64_t j = t - t % window; j <= t; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < q.cols; ++c)
        sum = how.op(sum + how.op(q(t, c) * k(j, c)) * how.op(std::exp2(how.op(cumsum(t, c) - cumsum(j, c)))));
      a(t, j % window) = how.op(sum * scale);
    }
  return a;
}

Matrix gla_combine(const Matrix& inter, const Matrix& scores, const Matrix& v, int64_t window, Arithmetic how) {
  Matrix o(v.rows, v.cols);
  for (int64_t t = 0; t < v.rows; ++t)
    for (int64_t d = 0; d < v.cols; ++d) {
      double sum = inter(t, d);
      for (int64_t j = t - t % window; j <= t; ++j) sum = how.op(sum + how.store(scores(t, j % window)) * v(j, d));
      o(t, d) = how.store(sum);
    }
  return o;
}

}  // namespace tile::reference
