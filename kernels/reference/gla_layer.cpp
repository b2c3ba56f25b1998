// gla_layer.cpp - plain loops.
#include "kernels/reference/gla_layer.h"

#include <algorithm>
#include <cmath>

namespace tile::reference {
namespace {

Matrix product(const Matrix& a, const Matrix& b, Arithmetic how, bool rounded = true) {
  Matrix c(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.cols; ++k)
      for (int64_t j = 0; j < b.cols; ++j) c(i, j) = how.op(c(i, j) + a(i, k) * b(k, j));
  if (rounded)
    for (double& x : c.values) x = how.store(x);
  return c;
}

Matrix columns(const Matrix& m, int64_t first, int64_t count) {
  Matrix part(m.rows, count);
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t j = 0; j < count; ++j) part(i, j) = m(i, first + j);
  return part;
}

}  // namespace

Matrix gla_output_gate(const Matrix& o, const Matrix& gate, const std::vector<double>& norm, double eps,
                       Arithmetic how) {
  Matrix y(o.rows, o.cols);
  for (int64_t i = 0; i < o.rows; ++i) {
    double squares = 0;
    for (int64_t j = 0; j < o.cols; ++j) squares = how.op(squares + o(i, j) * o(i, j));
    double rstd = how.op(1 / std::sqrt(squares / static_cast<double>(o.cols) + eps));
    for (int64_t j = 0; j < o.cols; ++j) {
      double silu = how.op(gate(i, j) / (1 + std::exp(-gate(i, j))));
      y(i, j) = how.store(how.op(how.op(how.op(o(i, j) * rstd) * norm[j]) * silu));
    }
  }
  return y;
}

Matrix gla_layer(const Matrix& x, const GlaLayerMatrices& w, int64_t heads, int64_t chunk, Arithmetic how) {
  Matrix q = product(x, w.wq, how), k = product(x, w.wk, how), v = product(x, w.wv, how), r = product(x, w.wr, how);
  Matrix g = product(product(x, w.w1, how), w.w2, how, /*rounded=*/false);
  for (double& z : g.values) z = how.op((std::min(z, 0.0) - std::log1p(std::exp(-std::fabs(z)))) / 16);
  int64_t keys = q.cols / heads, values = v.cols / heads;
  double scale = 1 / std::sqrt(static_cast<double>(keys));
  Matrix y(x.rows, v.cols);
  for (int64_t h = 0; h < heads; ++h) {
    Matrix state, qh = columns(q, h * keys, keys), kh = columns(k, h * keys, keys), vh = columns(v, h * values, values),
                  gh = columns(g, h * keys, keys);
    Matrix o = chunk ? gla_chunked(qh, kh, vh, gh, scale, chunk, state, how)
                     : gla_recurrent(qh, kh, vh, gh, scale, state, how);
    Matrix gated = gla_output_gate(o, columns(r, h * values, values), w.norm, 1e-5, how);
    for (int64_t i = 0; i < x.rows; ++i)
      for (int64_t j = 0; j < values; ++j) y(i, h * values + j) = gated(i, j);
  }
  return product(y, w.wo, how);
}

}  // namespace tile::reference
