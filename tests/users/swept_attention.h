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

}  // namespace swept_attention
}  // namespace users
