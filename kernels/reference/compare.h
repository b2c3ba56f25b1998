// compare.h - the pass criterion of every numeric test, bench --check and the demo.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dtype.h"

namespace tile::reference {

struct Tolerance {
  double
      floor_relative;  ///< absolute slack as a fraction of the largest reference value: what rounding the output costs
  double max_factor = 2;  ///< max |x - exact| may be this many times the baseline's (plus the floor)
  double mean_factor = 1.5;
  double rmse_ratio;  ///< rms(x - exact) / rms(exact); where the baseline itself is worse, twice the baseline's
};

/// The one place where tolerances come from: the type values are rounded to, how many terms each sum has, and whether
/// the factors of a product keep only 10 mantissa bits.
Tolerance tolerance(DType working, int64_t reduction_length, bool tf32 = false);

struct Comparison {
  bool pass = true;
  double max_error = 0, mean_error = 0, rmse_ratio = 0, max_value = 0;  ///< against the exact values
  double baseline_max = 0, baseline_mean = 0, baseline_rmse_ratio = 0;
  int64_t values = 0;
  std::string why;  ///< empty when it passed; else the criterion that failed, with both numbers and the worst element
};

/// Compares values computed by a kernel with the exact ones; `baseline` is the same formula in working precision and
/// sets the gate. NaN and infinities must be where the exact result has them, with the same sign.
Comparison compare(const std::vector<double>& actual, const std::vector<double>& exact,
                   const std::vector<double>& baseline, const Tolerance& tolerance);

/// |actual - exact| <= bound for every finite element, the same rule for NaN and infinities (LSE of attention).
Comparison compare_absolute(const std::vector<double>& actual, const std::vector<double>& exact, double bound);

/// Every element equal (integers, indices).
Comparison compare_equal(const std::vector<double>& actual, const std::vector<double>& exact);

}  // namespace tile::reference
