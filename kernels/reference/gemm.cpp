// gemm.cpp - row-by-row products; the k loop is outermost so that each row of B is decoded once for all rows wanted.
#include "kernels/reference/gemm.h"

namespace tile::reference {

std::vector<std::vector<double>> gemm_rows(const GemmSpec& spec, const HostTensor& a, const HostTensor& b,
                                           const HostTensor* c, std::span<const int64_t> rows, Arithmetic how) {
  const size_t lead = a.shape().size() - 2;
  auto at = [&](const HostTensor& t, int64_t i, int64_t j) { return lead ? t.at({spec.batch, i, j}) : t.at({i, j}); };
  int64_t depth = a.dim(lead + (spec.trans_a ? 0 : 1)), n = b.dim(lead + (spec.trans_b ? 0 : 1));
  std::vector<std::vector<double>> d(rows.size(), std::vector<double>(n, 0.0));
  std::vector<double> b_row(n);
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t j = 0; j < n; ++j) b_row[j] = how.factor(spec.trans_b ? at(b, j, k) : at(b, k, j));
    for (size_t r = 0; r < rows.size(); ++r) {
      double a_rk = how.factor(spec.trans_a ? at(a, k, rows[r]) : at(a, rows[r], k));
      for (int64_t j = 0; j < n; ++j) d[r][j] = how.op(d[r][j] + a_rk * b_row[j]);
    }
  }
  for (size_t r = 0; r < rows.size(); ++r)
    for (int64_t j = 0; j < n; ++j) {
      double x = how.op(spec.alpha * d[r][j]);
      if (spec.beta != 0) x = how.op(x + how.op(spec.beta * at(*c, rows[r], j)));
      d[r][j] = how.store(spec.epilogue ? how.op(spec.epilogue(x)) : x);
    }
  return d;
}

std::vector<std::vector<double>> block_sparse_rows(const HostTensor& a, const HostTensor& b, const HostTensor& mask_a,
                                                   const HostTensor& mask_b, int64_t bm, int64_t bn, int64_t bk,
                                                   std::span<const int64_t> rows, Arithmetic how) {
  int64_t depth = a.dim(1), n = b.dim(1);
  std::vector<std::vector<double>> d(rows.size(), std::vector<double>(n, 0.0));
  for (size_t r = 0; r < rows.size(); ++r)
    for (int64_t k = 0; k < depth; ++k) {
      if (mask_a.at({rows[r] / bm, k / bk}) == 0) continue;
      double a_rk = how.factor(a.at({rows[r], k}));
      for (int64_t j = 0; j < n; ++j)
        if (mask_b.at({k / bk, j / bn}) != 0) d[r][j] = how.op(d[r][j] + a_rk * how.factor(b.at({k, j})));
    }
  for (auto& row : d)
    for (double& x : row) x = how.store(x);
  return d;
}

int64_t block_pairs(const HostTensor& mask_a, const HostTensor& mask_b) {
  int64_t pairs = 0;
  for (int64_t k = 0; k < mask_a.dim(1); ++k) {
    int64_t column = 0, row = 0;
    for (int64_t i = 0; i < mask_a.dim(0); ++i) column += mask_a.at({i, k}) != 0;
    for (int64_t j = 0; j < mask_b.dim(1); ++j) row += mask_b.at({k, j}) != 0;
    pairs += column * row;
  }
  return pairs;
}

}  // namespace tile::reference
