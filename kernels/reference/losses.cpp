// losses.cpp - the formulas of losses.h as loops.
#include "kernels/reference/losses.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tile::reference {

CrossEntropy cross_entropy(const std::vector<double>& x, int64_t label, bool ignored, Arithmetic how) {
  double m = -std::numeric_limits<double>::infinity();
  for (double v : x) m = std::max(m, v);
  double s = 0;
  for (double v : x) s = how.op(s + how.op(std::exp(how.op(v - m))));
  CrossEntropy r;
  r.lse = how.op(m + how.op(std::log(s)));
  const bool known = label >= 0 && label < static_cast<int64_t>(x.size());
  if (!ignored) r.loss = how.op(r.lse - (known ? x[static_cast<size_t>(label)] : 0));
  return r;
}

std::vector<double> cross_entropy_gradient(const std::vector<double>& x, int64_t label, bool ignored, double lse,
                                           double upstream, Arithmetic how) {
  std::vector<double> d(x.size(), 0.0);
  if (ignored) return d;
  for (size_t j = 0; j < x.size(); ++j) {
    const double p = how.op(std::exp(how.op(x[j] - lse)));
    d[j] = how.store(how.op(how.op(static_cast<int64_t>(j) == label ? p - 1 : p) * upstream));
  }
  return d;
}

}  // namespace tile::reference
