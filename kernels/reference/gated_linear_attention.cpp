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

namespace {

/// One chunk of gla_chunked: rows [begin, begin + n) of the sequence, c counts channels.
struct Chunk {
  const Matrix &q, &k, &sums;
  double scale;
  int64_t begin, n;
  Arithmetic how;

  /// Decay over the chunk's rows first + 1 .. last; first = -1 is the chunk's start.
  double decay(int64_t first, int64_t last, int64_t c) const {
    double from = first < 0 ? 0.0 : sums(begin + first, c);
    return how.op(std::exp2(how.op(sums(begin + last, c) - from)));
  }
  double query(int64_t t, int64_t c) const { return how.op(q(begin + t, c) * scale); }
  double key(int64_t u, int64_t c) const { return k(begin + u, c); }
  double decayed(double x, double decay) const { return how.store(how.op(x * decay)); }

  /// Scores of all pairs u <= t.
  Matrix scores() const {
    Matrix a(n, n);
    for (int64_t t = 0; t < n; ++t)
      for (int64_t c = 0; c < q.cols; ++c) a(t, t) = how.op(a(t, t) + how.op(query(t, c) * key(t, c)));
    for (int64_t half = 1; half < n; half *= 2) {
      Matrix row(n, q.cols);  // queries of upper halves, keys of lower ones
      for (int64_t t = 0; t < n; ++t) {
        bool upper = t & half;
        int64_t boundary = (t & ~(half - 1)) + (upper ? -1 : half - 1);  // last row of the lower half
        if (boundary >= n) continue;                                     // its upper half is past the end
        for (int64_t c = 0; c < q.cols; ++c)
          row(t, c) = upper ? decayed(query(t, c), decay(boundary, t, c)) : decayed(key(t, c), decay(t, boundary, c));
      }
      for (int64_t t = 0; t < n; ++t)
        for (int64_t u = 0; u < t; ++u) {
          if ((t ^ u) < half || (t ^ u) >= 2 * half) continue;
          double sum = 0;
          for (int64_t c = 0; c < q.cols; ++c) sum = how.op(sum + row(t, c) * row(u, c));
          a(t, u) = sum;
        }
    }
    for (double& x : a.values) x = how.store(x);
    return a;
  }
};

}  // namespace

Matrix gla_chunked(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& g, double scale, int64_t chunk,
                   Matrix& state, Arithmetic how) {
  Matrix o(v.rows, v.cols), sums = gla_decay_cumsum(g, chunk, how);
  if (state.values.empty()) state = Matrix(k.cols, v.cols);
  for (int64_t begin = 0; begin < v.rows; begin += chunk) {
    Chunk at{q, k, sums, scale, begin, std::min(chunk, v.rows - begin), how};
    Matrix scores = at.scores(), rounded = state;
    for (double& x : rounded.values) x = how.store(x);
    for (int64_t t = 0; t < at.n; ++t) {
      for (int64_t c = 0; c < q.cols; ++c) {
        double qc = at.decayed(at.query(t, c), at.decay(-1, t, c));
        for (int64_t d = 0; d < v.cols; ++d) o(begin + t, d) = how.op(o(begin + t, d) + qc * rounded(c, d));
      }
      for (int64_t u = 0; u <= t; ++u)
        for (int64_t d = 0; d < v.cols; ++d) o(begin + t, d) = how.op(o(begin + t, d) + scores(t, u) * v(begin + u, d));
    }
    for (int64_t c = 0; c < k.cols; ++c) {
      double whole = at.decay(-1, at.n - 1, c);
      for (int64_t d = 0; d < v.cols; ++d) state(c, d) = how.op(state(c, d) * whole);
      for (int64_t u = 0; u < at.n; ++u) {
        double kc = at.decayed(at.key(u, c), at.decay(u, at.n - 1, c));
        for (int64_t d = 0; d < v.cols; ++d) state(c, d) = how.op(state(c, d) + kc * v(begin + u, d));
      }
    }
  }
  for (double& x : o.values) x = how.store(x);
  return o;
}

}  // namespace tile::reference
