// gla_chunked.cpp - forward and backward of gated linear attention in chunks, as implementations on matrix units round.
#include <algorithm>
#include <cmath>

#include "kernels/reference/gated_linear_attention.h"

namespace tile::reference {
namespace {

/// Rows of a chunk at one level: queries of upper halves, keys of lower ones, and the decay each was multiplied with.
struct LevelRows {
  Matrix decayed, decay;
};

/// One chunk: rows [begin, begin + n) of the sequence, c counts channels.
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

  LevelRows level(int64_t half) const {
    LevelRows rows{Matrix(n, q.cols), Matrix(n, q.cols)};
    for (int64_t t = 0; t < n; ++t) {
      bool upper = t & half;
      int64_t boundary = (t & ~(half - 1)) + (upper ? -1 : half - 1);  // last row of the lower half
      if (boundary >= n) continue;                                     // its upper half is past the end
      for (int64_t c = 0; c < q.cols; ++c) {
        rows.decay(t, c) = upper ? decay(boundary, t, c) : decay(t, boundary, c);
        rows.decayed(t, c) = decayed(upper ? query(t, c) : key(t, c), rows.decay(t, c));
      }
    }
    return rows;
  }
  static bool is_pair(int64_t t, int64_t u, int64_t half) { return u < t && (t ^ u) >= half && (t ^ u) < 2 * half; }

  /// Scores of all pairs u <= t.
  Matrix scores() const {
    Matrix a(n, n);
    for (int64_t t = 0; t < n; ++t)
      for (int64_t c = 0; c < q.cols; ++c) a(t, t) = how.op(a(t, t) + how.op(query(t, c) * key(t, c)));
    for (int64_t half = 1; half < n; half *= 2) {
      LevelRows rows = level(half);
      for (int64_t t = 0; t < n; ++t)
        for (int64_t u = 0; u < t; ++u) {
          if (!is_pair(t, u, half)) continue;
          double sum = 0;
          for (int64_t c = 0; c < q.cols; ++c) sum = how.op(sum + rows.decayed(t, c) * rows.decayed(u, c));
          a(t, u) = sum;
        }
    }
    for (double& x : a.values) x = how.store(x);
    return a;
  }

  /// state = diag(decay of the chunk) state + (rows of x decayed to the boundary the state moves to)^T y.
  void walk(Matrix& state, bool backward, const Matrix& y) const {
    for (int64_t c = 0; c < q.cols; ++c) {
      double whole = decay(-1, n - 1, c);
      for (int64_t d = 0; d < y.cols; ++d) state(c, d) = how.op(state(c, d) * whole);
      for (int64_t t = 0; t < n; ++t) {
        double x = backward ? decayed(query(t, c), decay(-1, t, c)) : decayed(key(t, c), decay(t, n - 1, c));
        for (int64_t d = 0; d < y.cols; ++d) state(c, d) = how.op(state(c, d) + x * y(begin + t, d));
      }
    }
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
    at.walk(state, false, v);
  }
  for (double& x : o.values) x = how.store(x);
  return o;
}

namespace {

Matrix rounded(Matrix m, Arithmetic how) {
  for (double& x : m.values) x = how.store(x);
  return m;
}

/// Gradients of one chunk, given the states before it and the gradients of those behind it.
void chunk_gradients(const Chunk& at, const Matrix& v, const Matrix& d_o, const Matrix& before, const Matrix& behind,
                     GlaGradients& out) {
  const Arithmetic how = at.how;
  const int64_t n = at.n, b = at.begin, channels = at.q.cols;
  Matrix scores = at.scores(), da(n, n), dq(n, channels), dk(n, channels);
  for (int64_t t = 0; t < n; ++t)
    for (int64_t u = 0; u <= t; ++u) {
      double sum = 0;
      for (int64_t d = 0; d < v.cols; ++d) sum = how.op(sum + d_o(b + t, d) * v(b + u, d));
      da(t, u) = how.store(sum);
    }
  for (int64_t u = 0; u < n; ++u)
    for (int64_t d = 0; d < v.cols; ++d) {
      double sum = 0;
      for (int64_t t = u; t < n; ++t) sum = how.op(sum + scores(t, u) * d_o(b + t, d));
      for (int64_t c = 0; c < channels; ++c)
        sum = how.op(sum + at.decayed(at.key(u, c), at.decay(u, n - 1, c)) * behind(c, d));
      out.dv(b + u, d) = how.store(sum);
    }
  std::vector<double> through(channels, 0.0);  // gradient of the chunk's whole log decay
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t d = 0; d < v.cols; ++d) through[c] = how.op(through[c] + how.op(before(c, d) * behind(c, d)));
    through[c] = how.op(through[c] * at.decay(-1, n - 1, c));
    for (int64_t t = 0; t < n; ++t) {
      for (int64_t d = 0; d < v.cols; ++d) {
        dq(t, c) = how.op(dq(t, c) + d_o(b + t, d) * before(c, d));
        dk(t, c) = how.op(dk(t, c) + v(b + t, d) * behind(c, d));
      }
      dq(t, c) = how.op(dq(t, c) * at.decay(-1, t, c));
      dk(t, c) = how.op(dk(t, c) * at.decay(t, n - 1, c));
      through[c] = how.op(through[c] + how.op(dk(t, c) * at.key(t, c)));
      dq(t, c) = how.op(dq(t, c) + da(t, t) * at.key(t, c));
      dk(t, c) = how.op(dk(t, c) + da(t, t) * at.query(t, c));
    }
  }
  for (int64_t half = 1; half < n; half *= 2) {
    LevelRows rows = at.level(half);
    Matrix to_q(n, channels), to_k(n, channels);
    for (int64_t t = 0; t < n; ++t)
      for (int64_t u = 0; u < t; ++u) {
        if (!Chunk::is_pair(t, u, half)) continue;
        for (int64_t c = 0; c < channels; ++c) {
          to_q(t, c) = how.op(to_q(t, c) + da(t, u) * rows.decayed(u, c));
          to_k(u, c) = how.op(to_k(u, c) + da(t, u) * rows.decayed(t, c));
        }
      }
    for (int64_t t = 0; t < n; ++t)
      for (int64_t c = 0; c < channels; ++c) {
        dq(t, c) = how.op(dq(t, c) + how.op(to_q(t, c) * rows.decay(t, c)));
        dk(t, c) = how.op(dk(t, c) + how.op(to_k(t, c) * rows.decay(t, c)));
      }
  }
  for (int64_t c = 0; c < channels; ++c) {
    double sum = through[c];
    for (int64_t t = n - 1; t >= 0; --t) {
      sum = how.op(sum + how.op(at.query(t, c) * dq(t, c)) - how.op(at.key(t, c) * dk(t, c)));
      out.dg(b + t, c) = sum;
      out.dq(b + t, c) = how.store(how.op(dq(t, c) * at.scale));
      out.dk(b + t, c) = how.store(dk(t, c));
    }
  }
}

}  // namespace

GlaGradients gla_chunked_backward(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& g, double scale,
                                  int64_t chunk, const Matrix& h0, const Matrix& d_o, const Matrix& dht,
                                  Arithmetic how) {
  GlaGradients out{Matrix(q.rows, q.cols), Matrix(q.rows, q.cols), Matrix(q.rows, v.cols), Matrix(q.rows, q.cols),
                   dht.values.empty() ? Matrix(q.cols, v.cols) : dht};
  Matrix sums = gla_decay_cumsum(g, chunk, how), state = h0.values.empty() ? Matrix(q.cols, v.cols) : h0;
  std::vector<Chunk> chunks;
  std::vector<Matrix> before;
  for (int64_t begin = 0; begin < q.rows; begin += chunk) {
    chunks.push_back({q, k, sums, scale, begin, std::min(chunk, q.rows - begin), how});
    before.push_back(rounded(state, how));
    chunks.back().walk(state, false, v);
  }
  for (size_t i = chunks.size(); i-- > 0;) {
    chunk_gradients(chunks[i], v, d_o, before[i], rounded(out.dh0, how), out);
    chunks[i].walk(out.dh0, true, d_o);
  }
  return out;
}

}  // namespace tile::reference
