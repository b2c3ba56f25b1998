// feed_forward.cpp - the formulas of feed_forward.h as loops.
#include "kernels/reference/feed_forward.h"

#include <algorithm>
#include <cmath>

namespace tile::reference {
namespace {

/// sum_k x[k] m(k, n) for all n.
template <class Matrix>
std::vector<double> times(const std::vector<double>& x, int64_t columns, Arithmetic how, Matrix m) {
  std::vector<double> y(static_cast<size_t>(columns), 0.0);
  for (size_t k = 0; k < x.size(); ++k)
    for (int64_t n = 0; n < columns; ++n) {
      double& sum = y[static_cast<size_t>(n)];
      sum = how.op(sum + x[k] * m(static_cast<int64_t>(k), n));
    }
  return y;
}

}  // namespace

std::vector<std::vector<double>> gated_rows(const HostTensor& a, const HostTensor& g, const HostTensor& u,
                                            const std::function<double(double)>& gate, std::span<const int64_t> rows,
                                            Arithmetic how) {
  std::vector<std::vector<double>> out;
  for (int64_t row : rows) {
    const std::vector<double> x = a.row({row});
    std::vector<double> y = times(x, g.dim(1), how, [&](int64_t k, int64_t n) { return g.at({k, n}); });
    const std::vector<double> up = times(x, u.dim(1), how, [&](int64_t k, int64_t n) { return u.at({k, n}); });
    for (size_t n = 0; n < y.size(); ++n) y[n] = how.store(how.op(how.op(gate(y[n])) * up[n]));
    out.push_back(std::move(y));
  }
  return out;
}

double quantized_weight(const HostTensor& weights, bool packed, int64_t k, int64_t n) {
  if (!packed) return weights.at({k, n});
  const auto byte = static_cast<int>(weights.at({k / 2, n}));
  return (k % 2 ? byte / 16 : byte % 16) - 8;
}

std::vector<std::vector<double>> quantized_rows(const HostTensor& a, const HostTensor& weights, bool packed,
                                                const HostTensor& scales, int64_t group, std::span<const int64_t> rows,
                                                Arithmetic how) {
  std::vector<std::vector<double>> out;
  for (int64_t row : rows) {
    std::vector<double> y = times(a.row({row}), scales.dim(1), how, [&](int64_t k, int64_t n) {
      return how.store(quantized_weight(weights, packed, k, n) * scales.at({k / group, n}));
    });
    for (double& v : y) v = how.store(v);
    out.push_back(std::move(y));
  }
  return out;
}

std::vector<double> expert_row(const HostTensor& x, int64_t token, const HostTensor& w, int64_t expert, double scale,
                               Arithmetic how) {
  std::vector<double> y = times(x.row({token}), w.dim(2), how, [&](int64_t k, int64_t n) {
    return w.at({expert, k, n});
  });
  for (double& v : y) v = how.store(how.op(v * scale));
  return y;
}

std::vector<double> convolution_pixel(const HostTensor& x, const HostTensor& f, int64_t image, int64_t p, int64_t q,
                                      int64_t stride, int64_t pad, int64_t dilation, Arithmetic how) {
  std::vector<double> y(static_cast<size_t>(f.dim(3)), 0.0);
  for (int64_t r = 0; r < f.dim(0); ++r)
    for (int64_t s = 0; s < f.dim(1); ++s) {
      const int64_t h = p * stride - pad + r * dilation, w = q * stride - pad + s * dilation;
      if (h < 0 || h >= x.dim(1) || w < 0 || w >= x.dim(2)) continue;
      const std::vector<double> tap = times(x.row({image, h, w}), f.dim(3), how, [&](int64_t c, int64_t k) {
        return f.at({r, s, c, k});
      });
      for (size_t k = 0; k < y.size(); ++k) y[k] = how.op(y[k] + tap[k]);
    }
  for (double& v : y) v = how.store(v);
  return y;
}

std::vector<double> paged_attention_row(const std::vector<double>& q, const HostTensor& k, const HostTensor& v,
                                        std::span<const int64_t> table, int64_t length, int64_t head, double scale,
                                        Arithmetic how) {
  const int64_t page = k.dim(1);
  std::vector<double> scores(static_cast<size_t>(length)), y(q.size(), 0.0);
  double highest = -INFINITY, sum = 0;
  auto row = [&](const HostTensor& cache, int64_t token) {
    return cache.row({table[static_cast<size_t>(token / page)], token % page, head});
  };
  for (int64_t t = 0; t < length; ++t) {
    const std::vector<double> key = row(k, t);
    double s = 0;
    for (size_t d = 0; d < q.size(); ++d) s = how.op(s + q[d] * key[d]);
    highest = std::max(highest, scores[static_cast<size_t>(t)] = how.op(s * scale));
  }
  for (double& s : scores) {
    s = how.op(std::exp(how.op(s - highest)));
    sum = how.op(sum + s);
  }
  for (int64_t t = 0; t < length; ++t) {
    const std::vector<double> value = row(v, t);
    const double p = how.store(scores[static_cast<size_t>(t)]);
    for (size_t d = 0; d < y.size(); ++d) y[d] = how.op(y[d] + p * value[d]);
  }
  for (double& x : y) x = how.store(length ? how.op(x / sum) : 0);
  return y;
}

}  // namespace tile::reference
