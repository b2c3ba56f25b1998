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
                     Arithmetic how, const Matrix* gv, bool reverse) {
  Matrix o(v.rows, v.cols);
  if (state.values.empty()) state = Matrix(k.cols, v.cols);
  for (int64_t i = 0; i < v.rows; ++i) {
    int64_t t = reverse ? v.rows - 1 - i : i;
    for (int64_t c = 0; c < k.cols; ++c) {
      double decay = how.op(std::exp(g(t, c))), qc = how.op(q(t, c) * scale);
      for (int64_t d = 0; d < v.cols; ++d) {
        double kept = how.op(state(c, d) * decay);
        if (gv) kept = how.op(kept * how.op(std::exp((*gv)(t, d))));
        state(c, d) = how.op(kept + k(t, c) * v(t, d));
        o(t, d) = how.op(o(t, d) + qc * state(c, d));
      }
    }
  }
  for (double& x : o.values) x = how.store(x);
  return o;
}

GlaGradients gla_backward(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& g, double scale,
                          const Matrix& h0, const Matrix& d_o, const Matrix& dht, Arithmetic how) {
  GlaGradients out{Matrix(q.rows, q.cols), Matrix(q.rows, q.cols), Matrix(q.rows, v.cols), Matrix(q.rows, q.cols),
                   dht.values.empty() ? Matrix(q.cols, v.cols) : dht};
  // States before every row would fill memory for long sequences: those of every kEvery-th row are kept, the ones
  // between are walked again.
  constexpr int64_t kEvery = 64;
  Matrix state = h0.values.empty() ? Matrix(q.cols, v.cols) : h0;
  auto walk = [&](int64_t t) {
    for (int64_t c = 0; c < q.cols; ++c) {
      double decay = how.op(std::exp(g(t, c)));
      for (int64_t d = 0; d < v.cols; ++d) state(c, d) = how.op(how.op(state(c, d) * decay) + k(t, c) * v(t, d));
    }
  };
  std::vector<Matrix> kept;
  for (int64_t t = 0; t < q.rows; ++t) {
    if (t % kEvery == 0) kept.push_back(state);
    walk(t);
  }
  for (int64_t first = (q.rows - 1) / kEvery * kEvery; first >= 0 && q.rows > 0; first -= kEvery) {
    int64_t end = std::min(first + kEvery, q.rows);
    std::vector<Matrix> before;
    state = kept[first / kEvery];
    for (int64_t t = first; t < end; ++t) before.push_back(state), walk(t);
    for (int64_t t = end - 1; t >= first; --t) {
      Matrix& dh = out.dh0;  // of the state behind row t, then of the one before it
      const Matrix& h = before[t - first];
      for (int64_t c = 0; c < q.cols; ++c) {
        double decay = how.op(std::exp(g(t, c))), to_q = 0, to_k = 0, to_g = 0;
        for (int64_t d = 0; d < v.cols; ++d) {
          double with_o = how.op(dh(c, d) + how.op(q(t, c) * scale) * d_o(t, d)), old = how.op(h(c, d) * decay);
          to_q = how.op(to_q + how.op(old + k(t, c) * v(t, d)) * d_o(t, d));
          to_k = how.op(to_k + with_o * v(t, d));
          to_g = how.op(to_g + with_o * old);
          out.dv(t, d) = how.op(out.dv(t, d) + with_o * k(t, c));
          dh(c, d) = how.op(with_o * decay);
        }
        out.dq(t, c) = how.store(how.op(to_q * scale)), out.dk(t, c) = how.store(to_k), out.dg(t, c) = to_g;
      }
    }
  }
  for (double& x : out.dv.values) x = how.store(x);
  return out;
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
