// swept_attention.h - what the swept kernels of attention have in common.
#pragma once
#include "tests/users/use.h"
namespace users {
namespace swept_attention {

constexpr float kLog2e = 1.4426950408889634f;

/// One row of attention in float64: keys [begin, end), score(j), value(j, d); a sink takes part in the sum alone.
template <class S, class V>
void attend(int begin, int end, S score, V value, int D, double* out, double sink = -INFINITY) {
  std::vector<double> s(std::max(0, end - begin));
  double top = sink, sum = 0;
  for (int j = begin; j < end; ++j) top = std::max(top, s[j - begin] = score(j));
  if (std::isfinite(sink)) sum = std::exp(sink - top);
  for (double& x : s) sum += x = std::exp(x - top);
  for (int d = 0; d < D; ++d) {
    double o = 0;
    for (int j = begin; j < end; ++j)
      if (s[j - begin] != 0) o += s[j - begin] * value(j, d);
    out[d] = o / sum;
  }
}

/// Causal attention of [H, N, D] and its gradients, one query after the other. Of big problems, which nobody checks,
/// the statistics are made up.
template <class T>
struct CausalGradients {
  int H, N, D;
  double scale;
  Array<T> q, k, v, g;             ///< g: of the result
  std::vector<double> lse, delta;  ///< [H, N]; log of the sum of exponentials, to base e
  std::vector<double> P, dP;       ///< [H, N, N]

  CausalGradients(const Env& e, int H, int N, int D, double scale, Array<T> q, Array<T> k, Array<T> v, Array<T> g)
      : H(H), N(N), D(D), scale(scale), q(q), k(k), v(v), g(g), lse(size_t(H) * N, 8.), delta(size_t(H) * N, .1) {
    if (e.big) return;
    P.resize(size_t(H) * N * N), dP = P;
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < N; ++i) {
        const size_t r = size_t(h) * N + i;
        double sum = 0, dd = 0;
        for (int n = 0; n <= i; ++n) {
          double s = 0, x = 0;
          for (int d = 0; d < D; ++d)
            s += q[r * D + d] * k[(size_t(h) * N + n) * D + d], x += g[r * D + d] * v[(size_t(h) * N + n) * D + d];
          sum += P[r * N + n] = std::exp(s * scale), dP[r * N + n] = x;
        }
        lse[r] = std::log(sum);
        for (int n = 0; n <= i; ++n) P[r * N + n] /= sum, dd += P[r * N + n] * dP[r * N + n];
        delta[r] = dd;
      }
  }

  /// Which of dQ, dK and dV differs, and where.
  template <class Q>
  std::string agree_with(const std::vector<Q>& dq, const std::vector<T>& dk, const std::vector<T>& dv) const {
    std::vector<double> wq(size_t(H) * N * D), wk = wq, wv = wq;
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < N; ++i)
        for (int x = 0; x <= i; ++x) {
          const size_t r = size_t(h) * N + i, n = size_t(h) * N + x;
          const double p = P[r * N + x], ds = p * (dP[r * N + x] - delta[r]);
          for (int d = 0; d < D; ++d)
            wq[r * D + d] += scale * ds * k[n * D + d], wk[n * D + d] += scale * ds * q[r * D + d],
                wv[n * D + d] += p * g[r * D + d];
        }
    auto a = agree(dv, wv, 1e-2, 1e-2), b = agree(dk, wk, 1e-2, 1e-2), d = agree(dq, wq, 1e-2, 1e-2);
    return !a.empty() ? "dv " + a : !b.empty() ? "dk " + b : !d.empty() ? "dq " + d : "";
  }
};

}  // namespace swept_attention
}  // namespace users
