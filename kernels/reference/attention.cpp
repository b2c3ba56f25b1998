// attention.cpp - softmax(scale q k^T) v by its definition.
#include "kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tile::reference {

std::vector<AttentionRow> attention_rows(const AttentionSpec& spec, const HostTensor& q, const HostTensor& k,
                                         const HostTensor& v, int64_t batch, int64_t head,
                                         std::span<const int64_t> rows, Arithmetic how) {
  int64_t sq = q.dim(2), sk = k.dim(2), dv = v.dim(3), kv_head = head / (q.dim(1) / k.dim(1));
  std::vector<std::vector<double>> keys(sk), values(sk);  // decoded once for all rows
  for (int64_t j = 0; j < sk; ++j) keys[j] = k.row({batch, kv_head, j}), values[j] = v.row({batch, kv_head, j});

  std::vector<AttentionRow> result;
  for (int64_t i : rows) {
    int64_t visible = spec.causal ? std::clamp<int64_t>(i + sk - sq + 1, 0, sk) : sk;
    AttentionRow row{std::vector<double>(dv, 0.0), -std::numeric_limits<double>::infinity()};
    std::vector<double> query = q.row({batch, head, i}), p(visible);
    double m = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < visible; ++j) {
      double s = 0;
      for (size_t d = 0; d < query.size(); ++d) s = how.op(s + how.factor(query[d]) * how.factor(keys[j][d]));
      p[j] = how.store(how.op(s * spec.scale));
      m = std::isnan(p[j]) ? p[j] : std::max(m, p[j]);
      if (std::isnan(m)) break;
    }
    if (visible > 0) {
      double sum = 0;
      for (double& x : p) x = how.op(std::exp(how.op(x - m))), sum = how.op(sum + x);
      for (int64_t j = 0; j < visible; ++j) {
        double weight = how.store(how.op(p[j] / sum));
        for (int64_t d = 0; d < dv; ++d) row.o[d] = how.op(row.o[d] + how.factor(weight) * how.factor(values[j][d]));
      }
      row.lse = how.op(m + how.op(std::log(sum)));
    }
    for (double& x : row.o) x = how.store(x);
    result.push_back(std::move(row));
  }
  return result;
}

int64_t visible_pairs(int64_t sq, int64_t sk, bool causal) {
  if (!causal) return sq * sk;
  int64_t pairs = 0;
  for (int64_t i = 0; i < sq; ++i) pairs += std::clamp<int64_t>(i + sk - sq + 1, 0, sk);
  return pairs;
}

}  // namespace tile::reference
