// linear_attention.cpp - row by row.
#include "kernels/reference/linear_attention.h"

#include <algorithm>
#include <cmath>

namespace tile::reference {
namespace {

double feature(Feature map, double x) {
  switch (map) {
    case Feature::elu_plus_one:
      return x > 0 ? x + 1 : std::exp(x);
    case Feature::relu:
      return std::max(x, 0.0);
    case Feature::exp:
      return std::exp(x);
    default:
      return x;
  }
}

}  // namespace

Matrix linear_attention(const Matrix& q, const Matrix& k, const Matrix& v, Feature map, bool normalize, double scale,
                        Matrix& state, std::vector<double>& z, Arithmetic how) {
  Matrix o(v.rows, v.cols);
  if (state.values.empty()) state = Matrix(k.cols, v.cols);
  if (z.empty()) z.assign(k.cols, 0.0);
  for (int64_t t = 0; t < v.rows; ++t) {
    double weight = 0;
    for (int64_t c = 0; c < k.cols; ++c) {
      double qc = how.store(how.op(feature(map, q(t, c)))), kc = how.store(how.op(feature(map, k(t, c))));
      z[c] = how.op(z[c] + kc);
      weight = how.op(weight + qc * z[c]);
      for (int64_t d = 0; d < v.cols; ++d) {
        state(c, d) = how.op(state(c, d) + kc * v(t, d));
        o(t, d) = how.op(o(t, d) + qc * how.store(state(c, d)));
      }
    }
    double factor = !normalize ? scale : weight == 0 ? 0 : how.op(1 / weight);
    for (int64_t d = 0; d < v.cols; ++d) o(t, d) = how.store(how.op(o(t, d) * factor));
  }
  return o;
}

Matrix gla_parallel(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& g, double scale, bool factored,
                    Arithmetic how) {
  Matrix o(v.rows, v.cols), sums(g.rows, g.cols);
  for (int64_t t = 0; t < g.rows; ++t)
    for (int64_t c = 0; c < g.cols; ++c) sums(t, c) = how.op((t ? sums(t - 1, c) : 0.0) + g(t, c));
  for (int64_t t = 0; t < v.rows; ++t)
    for (int64_t u = 0; u <= t; ++u) {
      double p = 0;
      for (int64_t c = 0; c < q.cols; ++c) {
        double product = factored
                             ? how.op(how.op(q(t, c) * how.op(std::exp(sums(t, c)))) *
                                      how.op(k(u, c) * how.op(std::exp(-sums(u, c)))))
                             : how.op(how.op(q(t, c) * k(u, c)) * how.op(std::exp(how.op(sums(t, c) - sums(u, c)))));
        p = how.op(p + product);
      }
      for (int64_t d = 0; d < v.cols; ++d) o(t, d) = how.op(o(t, d) + how.store(how.op(p * scale)) * v(u, d));
    }
  for (double& x : o.values) x = how.store(x);
  return o;
}

}  // namespace tile::reference
