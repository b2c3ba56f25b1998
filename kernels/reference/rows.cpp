// rows.cpp - the formulas of rows.h as loops.
#include "kernels/reference/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tile::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<std::string_view, 7> kNames = {"sum", "mean", "max", "min", "prod", "argmax", "argmin"};

double sum_of(const std::vector<double>& x, Arithmetic how) {
  double s = 0;
  for (double v : x) s = how.op(s + v);
  return s;
}

double max_of(const std::vector<double>& x) {
  double m = -kInfinity;
  for (double v : x) {
    if (std::isnan(v)) return v;
    m = std::max(m, v);
  }
  return m;
}

}  // namespace

std::vector<double> softmax_naive(const std::vector<double>& x, Arithmetic how) {
  std::vector<double> y(x.size());
  for (size_t j = 0; j < x.size(); ++j) y[j] = how.op(std::exp(x[j]));
  double d = sum_of(y, how);
  for (double& v : y) v = how.store(how.op(v / d));
  return y;
}

std::vector<double> softmax_safe(const std::vector<double>& x, Arithmetic how) {
  std::vector<double> y(x.size());
  double m = max_of(x);
  for (size_t j = 0; j < x.size(); ++j) y[j] = how.op(std::exp(how.op(x[j] - m)));
  double d = sum_of(y, how);
  for (double& v : y) v = how.store(how.op(v / d));
  return y;
}

std::vector<double> softmax_online(const std::vector<double>& x, Arithmetic how) {
  double m = -kInfinity, d = 0;
  for (double v : x) {
    double m_next = std::max(m, v);
    if (m_next == -kInfinity) continue;  // e^{-inf + inf}: nothing seen yet, nothing to add
    d = how.op(how.op(d * how.op(std::exp(m - m_next))) + how.op(std::exp(how.op(v - m_next))));
    m = m_next;
  }
  std::vector<double> y(x.size());
  for (size_t j = 0; j < x.size(); ++j) y[j] = how.store(how.op(how.op(std::exp(how.op(x[j] - m))) / d));
  return y;
}

Reduction reduction_named(std::string_view name) {
  return static_cast<Reduction>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
}
std::string_view name(Reduction r) { return kNames[static_cast<size_t>(r)]; }

double reduce_row(Reduction r, const std::vector<double>& x, Arithmetic how) {
  switch (r) {
    case Reduction::sum:
      return how.store(sum_of(x, how));
    case Reduction::mean:
      return how.store(how.op(sum_of(x, how) / static_cast<double>(x.size())));
    case Reduction::max:
      return max_of(x);
    case Reduction::min: {
      double m = kInfinity;
      for (double v : x) m = std::min(m, v);
      return m;
    }
    case Reduction::prod: {
      double p = 1;
      for (double v : x) p = how.op(p * v);
      return how.store(p);
    }
    case Reduction::argmax:
      return static_cast<double>(std::max_element(x.begin(), x.end()) - x.begin());
    case Reduction::argmin:
      return static_cast<double>(std::min_element(x.begin(), x.end()) - x.begin());
  }
  return 0;
}

std::vector<double> rms_norm(const std::vector<double>& x, const std::vector<double>& w, double eps, Arithmetic how,
                             double* rstd) {
  double squares = 0;
  for (double v : x) squares = how.op(squares + how.op(v * v));
  double r = how.op(1 / std::sqrt(squares / static_cast<double>(x.size()) + eps));
  if (rstd) *rstd = r;
  std::vector<double> y(x.size());
  for (size_t j = 0; j < x.size(); ++j) y[j] = how.store(how.op(how.op(x[j] * r) * w[j]));
  return y;
}

std::vector<double> layer_norm(const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& b,
                               double eps, Arithmetic how, double* mean, double* rstd) {
  double n = static_cast<double>(x.size()), m = how.op(sum_of(x, how) / n), squares = 0;
  for (double v : x) squares = how.op(squares + how.op((v - m) * (v - m)));
  double r = how.op(1 / std::sqrt(squares / n + eps));
  if (mean) *mean = m;
  if (rstd) *rstd = r;
  std::vector<double> y(x.size());
  for (size_t j = 0; j < x.size(); ++j) y[j] = how.store(how.op(how.op(how.op(how.op(x[j] - m) * r) * w[j]) + b[j]));
  return y;
}

}  // namespace tile::reference
