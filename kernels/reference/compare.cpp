// compare.cpp - gates on the maximum and on the mean: the mean catches one wrong tile that a loose maximum would hide.
#include "kernels/reference/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/reference/number.h"

namespace tile::reference {
namespace {

bool same_special(double actual, double exact) {
  if (std::isnan(exact) || std::isnan(actual)) return std::isnan(exact) && std::isnan(actual);
  return actual == exact;  // both infinite with one sign, or one is finite and this is false
}

/// Fills the error statistics; false (and `why`) when NaN or infinity is where it should not be.
bool measure(Comparison& c, const std::vector<double>& actual, const std::vector<double>& exact, size_t& worst) {
  double error_squares = 0, exact_squares = 0;
  c.values = static_cast<int64_t>(exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    if (!std::isfinite(exact[i]) || !std::isfinite(actual[i])) {
      if (same_special(actual[i], exact[i])) continue;
      c.pass = false;
      c.why = fmt::format("element {} is {}, expected {}", i, actual[i], exact[i]);
      c.max_error = INFINITY;
      return false;
    }
    double error = std::fabs(actual[i] - exact[i]);
    if (error > c.max_error) c.max_error = error, worst = i;
    c.max_value = std::max(c.max_value, std::fabs(exact[i]));
    c.mean_error += error;
    error_squares += error * error;
    exact_squares += exact[i] * exact[i];
  }
  if (c.values) c.mean_error /= static_cast<double>(c.values);
  c.rmse_ratio = exact_squares > 0 ? std::sqrt(error_squares / exact_squares) : std::sqrt(error_squares);
  return true;
}

Comparison size_mismatch(size_t actual, size_t exact) {
  Comparison c;
  c.pass = false;
  c.why = fmt::format("{} values compared with {}", actual, exact);
  return c;
}

}  // namespace

Tolerance tolerance(DType working, int64_t reduction_length, bool tf32) {
  double sum_growth = std::sqrt(static_cast<double>(std::max<int64_t>(reduction_length, 1)));
  Tolerance t{};
  switch (working) {
    case DType::f16:
      t.floor_relative = epsilon(DType::f16), t.rmse_ratio = 3e-3;
      break;
    case DType::bf16:
      t.floor_relative = epsilon(DType::bf16), t.rmse_ratio = 1e-2;
      break;
    case DType::f64:
      t.floor_relative = 1e-13 * sum_growth, t.rmse_ratio = 1e-14 * sum_growth;
      break;
    case DType::f32:
      // The floor covers approximate exp2 and reciprocals (about 2 ulp) and another order of summation.
      t.floor_relative = 1e-5, t.rmse_ratio = 2e-6 * sum_growth;
      break;
    default:
      t.floor_relative = 0, t.rmse_ratio = 0;
  }
  if (tf32) t.floor_relative = 1e-3, t.rmse_ratio = 2e-3;
  return t;
}

Comparison compare(const std::vector<double>& actual, const std::vector<double>& exact,
                   const std::vector<double>& baseline, const Tolerance& tolerance) {
  if (actual.size() != exact.size() || baseline.size() != exact.size())
    return size_mismatch(actual.size(), exact.size());
  Comparison c;
  size_t worst = 0;
  if (!measure(c, actual, exact, worst)) return c;
  double baseline_squares = 0, exact_squares = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    if (!std::isfinite(exact[i]) || !std::isfinite(baseline[i])) continue;
    double error = std::fabs(baseline[i] - exact[i]);
    baseline_squares += error * error, exact_squares += exact[i] * exact[i];
    c.baseline_max = std::max(c.baseline_max, error);
    c.baseline_mean += error;
  }
  if (c.values) c.baseline_mean /= static_cast<double>(c.values);
  if (exact_squares > 0) c.baseline_rmse_ratio = std::sqrt(baseline_squares / exact_squares);
  double rmse_gate = std::max(tolerance.rmse_ratio, 2 * c.baseline_rmse_ratio);
  double floor = tolerance.floor_relative * c.max_value;
  // Where every exact value is 0 there is nothing to be relative to: only 0 passes.
  double max_gate = tolerance.max_factor * c.baseline_max + floor,
         mean_gate = tolerance.mean_factor * c.baseline_mean + floor / 4;
  if (c.max_error > max_gate)
    c.why = fmt::format("max error {:.3g} > {:.3g} (baseline {:.3g}) at element {}: {:.9g}, expected {:.9g}",
                        c.max_error, max_gate, c.baseline_max, worst, actual[worst], exact[worst]);
  else if (c.mean_error > mean_gate)
    c.why = fmt::format("mean error {:.3g} > {:.3g} (baseline {:.3g})", c.mean_error, mean_gate, c.baseline_mean);
  else if (c.rmse_ratio > rmse_gate)
    c.why = fmt::format("rms error ratio {:.3g} > {:.3g} (baseline {:.3g})", c.rmse_ratio, rmse_gate,
                        c.baseline_rmse_ratio);
  c.pass = c.why.empty();
  return c;
}

Comparison compare_absolute(const std::vector<double>& actual, const std::vector<double>& exact, double bound) {
  if (actual.size() != exact.size()) return size_mismatch(actual.size(), exact.size());
  Comparison c;
  size_t worst = 0;
  if (!measure(c, actual, exact, worst)) return c;
  if (c.max_error > bound)
    c.why = fmt::format("max error {:.3g} > {:.3g} at element {}: {:.9g}, expected {:.9g}", c.max_error, bound, worst,
                        actual[worst], exact[worst]);
  c.pass = c.why.empty();
  return c;
}

Comparison compare_equal(const std::vector<double>& actual, const std::vector<double>& exact) {
  return compare_absolute(actual, exact, 0);
}

}  // namespace tile::reference
